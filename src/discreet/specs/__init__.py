"""Frozen specifications.

What is asked (queries) and what is done to it (mechanisms). They hold no data, so everybody may
read them.
"""
