"""Every release, price, interval and text is what it was when tests/golden/record.py wrote it down.

`golden_compare` says how records are compared: exactly where DISCREET_GOLDEN=exact is set, on the
machine that wrote them; elsewhere floats of post-processing by a tolerance, and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from golden_cases import cases, computed, iterative, opened_sources, part_of, read_recorded
from golden_compare import differences
from golden_data import Sources

CASES = cases()
SHOWN = 12
QUICK = 16  # of so many cases one is among the quick ones
MARKED = [
    name if number % QUICK == 0 else pytest.param(name, marks=pytest.mark.slow)
    for number, name in enumerate(CASES)
]


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    return read_recorded()


@pytest.fixture(scope="module")
def sources() -> Iterator[Sources]:
    with opened_sources() as made:
        yield made


def test_all_recorded_cases_are_computed(recorded: dict[str, Any]) -> None:
    assert list(recorded.keys() - CASES.keys()) == []
    assert list(CASES.keys() - recorded.keys()) == []


@pytest.mark.few(30)
@pytest.mark.parametrize("name", MARKED)
def test_a_case_is_as_recorded(name: str, recorded: dict[str, Any], sources: Sources) -> None:
    expected = recorded[name]
    if isinstance(expected, dict) and "as" in expected:
        expected = part_of(recorded[expected["as"]], expected["fields"])
    found = computed(sources, CASES[name])
    lines = differences(expected, found, iterative=iterative(name))
    assert not lines, "\n".join([f"{name}: {len(lines)} differences", *lines[:SHOWN]])
