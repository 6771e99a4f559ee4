"""The reusable holdout: opening it, asking it, forecasting it."""
