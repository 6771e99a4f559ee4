"""Counts and shares: intervals, tests, power."""
