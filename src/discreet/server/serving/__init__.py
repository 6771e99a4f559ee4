"""How the service starts: its settings, its processes, its demonstration."""
