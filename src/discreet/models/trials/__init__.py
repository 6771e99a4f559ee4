"""Settings that are tried on hidden runs, and how their fits are scored."""
