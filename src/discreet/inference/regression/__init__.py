"""Fits of regressions: estimates, covariances, summaries."""
