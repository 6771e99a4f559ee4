"""What a reusable holdout answered."""
