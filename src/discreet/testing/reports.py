"""Local reports that repeat, for tests and pages. They protect nobody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from discreet.specs.mechanisms.local import LocalSpec
from discreet.testing.seeded import SeededSource
from discreet.trusted.extensions.local.client import _randomized


def seeded_reports(spec: LocalSpec, values: Iterable[Any], seed: int | str) -> Any:
    """`discreet.trusted.extensions.local.client.reports` with seeded bits:
    the same seed gives the same reports.
    """
    return _randomized(spec, values, SeededSource(seed))
