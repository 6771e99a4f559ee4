"""Mechanism → guarantee → price: what was promised, and what it costs."""
