"""Exact noise: bits from a cryptographic source,
and integer draws with exactly the law that the accountant reads.
"""
