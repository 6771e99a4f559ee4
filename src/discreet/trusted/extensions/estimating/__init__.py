"""Exact sums over the rows of a model, two bytes a cell."""
