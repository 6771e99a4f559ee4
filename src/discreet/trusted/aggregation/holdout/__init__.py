"""The reusable holdout: what it answers, what that costs, and functions of one row."""
