"""Processes that open data; web processes import nothing of them but the way to ask."""
