"""Policies that choose where noisy counts are asked, and the arithmetic of what they were told.

Accuracy alone depends on them.
"""
