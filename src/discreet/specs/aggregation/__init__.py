"""Questions about parts of the data, and about rows that most others lie near."""
