"""Statistics with their sensitivity theorems, and the plans that engines carry out."""
