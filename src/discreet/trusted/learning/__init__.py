"""Learning: noise in an objective, small networks, the best of hidden runs. Loaded where used."""
