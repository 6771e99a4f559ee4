"""Tables of counts: tests and comparisons."""
