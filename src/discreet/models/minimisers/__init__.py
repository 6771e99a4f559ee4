"""Minimisers of convex losses with noise in the objective, or on the minimiser."""
