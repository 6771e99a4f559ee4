"""Whole procedures: the best of several hidden runs, and what was done elsewhere."""
