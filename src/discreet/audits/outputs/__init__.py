"""Laws of outputs, written out: of one answer, of all of them, and what two ask of a claim."""
