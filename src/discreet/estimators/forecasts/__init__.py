"""What a question would give, for procedures whose forecast is their own."""
