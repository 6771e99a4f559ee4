"""What must be right: if this folder is, no promise can break. README.md has the reading order."""
