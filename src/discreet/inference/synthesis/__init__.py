"""Synthetic data from released tables, and what may be said from the tables themselves."""
