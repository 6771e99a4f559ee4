"""Sums of estimating equations over the rows of a model.

The statistics that regressions ask for.
"""
