"""The reusable holdout: what it is asked, and what it does with the answers."""
