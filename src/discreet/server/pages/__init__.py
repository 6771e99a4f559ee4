"""The pages of the service: rendered here, usable without scripts."""
