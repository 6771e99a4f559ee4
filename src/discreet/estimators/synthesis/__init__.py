"""Questions whose answer is synthetic data."""
