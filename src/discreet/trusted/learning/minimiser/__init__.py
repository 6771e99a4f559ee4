"""Minimisers of convex losses with noise: exact gradients of rows, the draw, the price."""
