"""Trade-off curves (f-DP), piece by piece."""
