"""Property tests repeat: the same examples on every run, and no limit on the time that one takes.

Examples are derived from the test itself, so that a change fails for what it changes. To look for
new ones: ``pytest --hypothesis-profile=explore``.

Of a test marked ``few(n)``, `make quick` runs n of its cases, from the first to the last;
the others are slow ones.

Garbage is looked for after the collection alone, and not among what was collected.
"""

from __future__ import annotations

import gc
import os

# before numpy is loaded: threads of linear algebra in each worker wait for each other by spinning,
# which took ten times the work of small matrices
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
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

gc.disable()  # while modules are loaded: nothing is garbage


def pytest_collection_finish() -> None:
    """Tests and modules stay; to look at all of them again and again took seconds."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # some libraries count what is left at the end


@pytest.hookimpl(tryfirst=True)  # before cases are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("slow"):
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for family in families.values():
        for item in left_out(family, family[0].get_closest_marker("few").args[0]):
            item.add_marker("slow")


def left_out(family: list[pytest.Item], most: int) -> list[pytest.Item]:
    """All but `most` of them, evenly spread; the first stays, and of two or more the last."""
    last = len(family) - 1
    stay = {round(place * last / max(1, most - 1)) for place in range(most)}
    return [item for place, item in enumerate(family) if place not in stay]
