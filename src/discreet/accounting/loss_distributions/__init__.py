"""How privacy loss distributions are computed; `discreet.accounting.pld` has their names."""
