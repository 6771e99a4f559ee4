"""The command line: a thin mirror of the public functions."""
