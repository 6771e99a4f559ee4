"""Pictures of results, guarantees and ledgers."""
