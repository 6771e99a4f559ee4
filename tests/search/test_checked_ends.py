"""A search that checks the estimate it starts from."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import discreet as dp
from discreet.search.checked_ends import CheckedEnds
from discreet.search.policies import policy_from_dict
from discreet.search.policy import Count, History
from discreet.search.quantile_ends import QuantileEnds

ENDS = QuantileEnds(1, 1, Fraction(95, 100), 1000)
CELLS, UNITS, DEVIATION = 1 << 10, 1 << 16, 256.0


def asked(policy: CheckedEnds, known: tuple[int, ...], quantile: int) -> list[Count]:
    """The whole conversation about 1000 rows, one at every cell about the quantile, without
    noise.
    """
    history = History(CELLS, UNITS, DEVIATION, known=known)
    while True:
        question = policy.next(history)
        if question is None:
            return list(history.counts)
        place, share = question
        assert 0 <= place <= CELLS
        assert 1 <= share <= history.left
        value = 2.0 * min(max(place - quantile, -500), 500)
        count = Count(place, share, value, DEVIATION / share**0.5)
        history = replace(history, left=history.left - share, counts=(*history.counts, count))


@pytest.mark.parametrize("refinement", [0, 5])
@pytest.mark.parametrize("start", [0, 300, 512, 10**40, -(10**40)])
def test_it_finds_the_quantile_from_anywhere(start: int, refinement: int) -> None:
    policy = CheckedEnds(ENDS, refinement)
    known = (1, start << refinement)
    counts = tuple(asked(policy, known, 512))
    found, place = policy.found(counts, CELLS, known)
    assert place is not None
    assert abs(place - 512) <= 16
    assert 0 < len(found) < len(counts)
    low, high = ENDS.ends(found, CELLS, 1000.0, 0.95)
    assert 440 < low < 512 < high < 584


def test_without_an_estimate_it_starts_in_the_middle() -> None:
    policy = CheckedEnds(ENDS, 3, tested=True)
    bottom, answered = (2, 0, 0), (2, 1, 100 << 3)
    assert asked(policy, bottom, 512)[0].place == CELLS // 2
    assert asked(policy, answered, 512)[0].place == 100


def test_a_way_that_takes_all_leaves_nothing_to_test() -> None:
    policy = CheckedEnds(ENDS)
    counts = tuple(asked(policy, (1, 0), 512))[:2]
    assert policy.found(counts, CELLS, (1, 0)) == ((), None)


def test_it_comes_back_from_its_record() -> None:
    for policy in (CheckedEnds(ENDS, 7), CheckedEnds(ENDS, 0, tested=True)):
        assert policy_from_dict(policy.to_dict()) == policy


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: CheckedEnds(replace(ENDS, rows=None)),
        lambda: CheckedEnds(ENDS, -1),
        lambda: CheckedEnds(ENDS, True),
        lambda: CheckedEnds("ends"),  # type: ignore[arg-type]
        lambda: CheckedEnds(ENDS, 0, 1),  # type: ignore[arg-type]
    ],
)
def test_wrong_parts_are_refused(wrong: object) -> None:
    with pytest.raises(dp.InvalidParameter, match="CheckedEnds"):
        wrong()  # type: ignore[operator]
