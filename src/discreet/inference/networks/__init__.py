"""Results of small networks: decisions for new rows, and how often they are right."""
