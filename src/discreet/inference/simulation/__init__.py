"""Intervals by simulation from released numbers."""
