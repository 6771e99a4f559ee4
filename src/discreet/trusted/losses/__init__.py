"""What each mechanism costs: one theorem a mechanism, and its price in every box."""
