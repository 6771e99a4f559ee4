"""Multiplicative weights: a dense model of the rows, bent towards measured counts."""
