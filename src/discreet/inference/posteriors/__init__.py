"""Posteriors of released numbers, noise and clamping in the likelihood."""
