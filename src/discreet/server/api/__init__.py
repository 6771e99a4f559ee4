"""The desk by HTTP."""
