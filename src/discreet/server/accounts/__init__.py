"""Who people are: passwords, tokens, sessions of browsers, limits."""
