"""Rényi differential privacy and zCDP: curves, conversions, subsampling."""
