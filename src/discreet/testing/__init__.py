"""Tools for testing private releases: repeatable noise and attacks.

Nothing here protects anyone.
"""

from discreet.testing.reachable import epsilon_seen_in_low_bits
from discreet.testing.seeded import SeededSource, seeded_reports, seeded_session

__all__ = ["SeededSource", "epsilon_seen_in_low_bits", "seeded_reports", "seeded_session"]
