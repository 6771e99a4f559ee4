"""Tests of hypotheses, their power and the rows they need."""
