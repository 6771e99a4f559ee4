"""Functions on parts of the data, and means of rows that most others lie near."""
