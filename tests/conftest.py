"""Property tests repeat: the same examples on every run, and no limit on the time that one takes.

Examples are derived from the test itself, so that a change fails for what it changes. To look for
new ones: ``pytest --hypothesis-profile=explore``.
"""

from __future__ import annotations

import os

# before numpy is loaded: threads of linear algebra in each worker wait for each other by spinning,
# which took ten times the work of small matrices
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")
