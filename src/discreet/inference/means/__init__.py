"""Means, variances, pairs and their tests."""
