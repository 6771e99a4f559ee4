"""Rows that most others lie near: their weights, their noisy mean, and what it costs."""
