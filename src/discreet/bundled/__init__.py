"""Made-up tables to try things on, and how they are read."""
