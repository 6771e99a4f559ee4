"""What a regression would give, before anything is spent."""
