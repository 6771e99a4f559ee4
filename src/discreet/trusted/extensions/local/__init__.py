"""Local privacy: what one device does with one record."""
