"""Stochastic gradient descent with noise: sampled batches, the draw, the price."""
