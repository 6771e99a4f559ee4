"""Trusted parts that most questions never load: each is imported only where it is used."""
