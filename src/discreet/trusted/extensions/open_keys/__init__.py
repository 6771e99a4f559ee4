"""Keys that nobody declared: counts above a threshold."""
