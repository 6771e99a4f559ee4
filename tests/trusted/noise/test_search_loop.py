"""The loop of a search: whatever the policy asks, no more is paid than there is, places stay
inside, and a policy that fails has nothing left to ask.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from discreet.accounting.calibration.additive import geometric_noise
from discreet.sensitivity import L1
from discreet.testing.seeded import SeededSource
from discreet.trusted.noise.search import converse

UNITS, CELLS = 5, 10


def transcript(ask: Callable[[Any], Any]) -> list[tuple[int, ...]]:
    """(place, share, answer of noise that is far below one half) of a search with this policy."""
    mechanism: Any = SimpleNamespace(
        units=UNITS,
        law="laplace",
        deviation=lambda share: 1.0 / share,
        noise=lambda share: geometric_noise(L1(Fraction(1)), Fraction(100)),
        policy=SimpleNamespace(next=ask),
    )
    found = converse(mechanism, CELLS, lambda place: 7 * place, SeededSource(1))
    return [found[start : start + 3] for start in range(0, len(found), 3)]


def test_questions_are_answered_until_the_units_are_used() -> None:
    seen = []

    def ask(history: Any) -> tuple[int, int]:
        seen.append((history.left, len(history.counts)))
        return 3, 2

    assert transcript(ask) == [(3, 2, 21)] * 2  # two of five units twice, and one is too few
    assert seen == [(5, 0), (3, 1), (1, 2)]


def test_places_outside_are_the_nearest_inside() -> None:
    places = iter([-4, 99, 10])
    asked = transcript(lambda history: (next(places), 1))
    assert asked == [(0, 1, 0), (10, 1, 70), (10, 1, 70)]  # then the policy fails


@pytest.mark.parametrize("share", [0, -1, UNITS + 1])
def test_a_share_that_is_not_there_ends_the_search(share: int) -> None:
    assert transcript(lambda history: (1, share)) == []


def test_a_policy_ends_the_search_by_asking_nothing_or_by_failing() -> None:
    def fails(history: Any) -> tuple[int, int]:
        raise ArithmeticError(history.left)

    assert transcript(lambda history: None) == []
    assert transcript(fails) == []
