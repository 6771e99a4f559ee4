"""Regressions: procedures of several releases under one spend."""
