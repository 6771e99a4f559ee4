"""What people may do, as plain Python: a person and arguments in, a result or a refusal out."""
