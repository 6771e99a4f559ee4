"""Measured lower bounds of what a procedure tells: `dp.audit`.

Nothing here proves a guarantee. A bound above a claim refutes it; a bound below says what was
measured, and no more (docs/theory/audits.md).
"""
