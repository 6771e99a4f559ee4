"""Exact noise: bits from a cryptographic source, and integer draws with exactly the law that the accountant reads."""

from discreet.noise.sampling import draw, from_words
from discreet.noise.source import SecureSource, Source, secure_source

__all__ = ["SecureSource", "Source", "draw", "from_words", "secure_source"]
