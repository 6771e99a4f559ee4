"""Learners beside regressions: pure SGD, small networks, and how often a fit is right."""
