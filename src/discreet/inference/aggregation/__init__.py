"""Results of functions on parts, and of friendly means."""
