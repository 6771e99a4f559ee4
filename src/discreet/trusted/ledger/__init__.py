"""The ledger: a fixed budget, spent once, with a history that can be checked."""
