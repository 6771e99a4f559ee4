"""Quantiles, distributions and spreads by order."""
