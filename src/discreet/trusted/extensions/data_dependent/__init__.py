"""Mechanisms whose noise depends on the data.

Exponential choice, smooth sensitivity, propose-test-release.
"""
