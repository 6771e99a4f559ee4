"""Exact noise: bits from a cryptographic source, and integer draws with exactly the law that the accountant reads."""

from discreet.trusted.noise.apply import Answer, apply
from discreet.trusted.noise.sampling import draw, from_words
from discreet.trusted.noise.source import SecureSource, Source, secure_source

__all__ = ["Answer", "SecureSource", "Source", "apply", "draw", "from_words", "secure_source"]
