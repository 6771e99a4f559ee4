"""Sessions on data that somebody else holds: `dp.connect`."""
