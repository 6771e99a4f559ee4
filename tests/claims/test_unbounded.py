"""Ranges that were found privately: the grids built on them,
and the policies that search for them.
"""

from __future__ import annotations

import json
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.guarantees import GDP
from discreet.estimators.unbounded import CODES, MEAN_CODES, grid_on, zoomed
from discreet.neighbors import AddRemove, Replace
from discreet.search.policies import policy_from_dict
from discreet.search.policy import Count, History
from discreet.search.range_policy import BulkSearch, EndsSearch
from discreet.search.ranges import Purse, Start, replayed
from discreet.search.tails import Seen
from discreet.sensitivity import L2
from discreet.specs.queries.histograms import GridCounts
from discreet.specs.queries.moments import Moments, mean_design
from discreet.specs.queries.plans import Factor
from discreet.trusted.engines.kernels import encode

finite = st.floats(-1e60, 1e60, allow_nan=False, allow_infinity=False)


@settings(max_examples=200, deadline=None)
@given(
    finite, finite, st.lists(finite, min_size=2, max_size=8), st.sampled_from([CODES, MEAN_CODES])
)
def test_codes_on_any_range_are_monotone_and_bounded(
    one: float, other: float, values: list[float], codes: int
) -> None:
    low, high = min(one, other), max(one, other)
    if low == high:
        high = math.nextafter(low, math.inf)
    grid = grid_on(low, high, codes)
    found = encode(np.sort(np.array([*values, low, high])), grid).astype(np.int64)
    assert not grid.is_exact
    assert found.min() >= -codes
    assert found.max() <= codes
    assert (np.diff(found) >= 0).all()


@settings(max_examples=100, deadline=None)
@given(
    st.floats(-50, 50), st.floats(1e-6, 100), st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2)
)
def test_one_row_moves_the_moments_on_a_found_range_no_further_than_their_sensitivity(
    center: float, width: float, pair: list[float]
) -> None:
    factor = Factor("x", grid_on(center - width, center + width, MEAN_CODES))
    for neighbors in (Replace(), AddRemove()):
        query = Moments((), factor, mean_design(neighbors, cells=1, optional=False, norm=2), False)
        codes = encode(np.array(pair), factor.encoding).astype(object)
        rows = [
            query.assemble(np.array([[1, int(code), int(code) ** 2]], dtype=object))
            for code in codes
        ]
        moved = (
            [a - b for a, b in zip(*rows, strict=True)]
            if isinstance(neighbors, Replace)
            else rows[0]
        )
        sensitivity = query.sensitivity(neighbors)
        assert isinstance(sensitivity, L2)
        assert sum(step**2 for step in moved) <= sensitivity.squared


def converse(
    policy: BulkSearch | EndsSearch, cells: int, units: int, deviation: float, answer: object
) -> list[Count]:
    """A search with a given answerer, as trusted/noise/search.py runs it."""
    counts: list[Count] = []
    left = units
    while (
        left > 0
        and (question := policy.next(History(cells, left, deviation, "gaussian", tuple(counts))))
        is not None
    ):
        place, share = question
        assert 0 <= place <= cells
        assert 1 <= share <= left
        left -= share
        counts.append(
            Count(place, share, float(answer(place)), deviation / math.sqrt(share)),
        )  # type: ignore[operator]
    return counts


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 3, 65535, 2**32 - 1]),
    st.sampled_from([0, 1, 1000, None]),
    st.sampled_from([1.0, 50.0, 1e6, 1e12]),
)
def test_searches_end_within_their_units_whatever_is_answered(
    seed: int, cells: int, rows: int | None, deviation: float
) -> None:
    rng = np.random.default_rng(seed)
    wild = [
        lambda place: 0.0,
        lambda place: 1000.0 * (place > cells / 3),
        lambda place: 1e30 * rng.standard_normal(),
        lambda place: -1e300,
        lambda place: rng.normal(500, deviation),
    ]
    answer = wild[seed % len(wild)]
    bulk = BulkSearch(rows)
    counts = converse(bulk, cells, 1 << 16, deviation, answer)
    assert sum(count.share for count in counts) <= 1 << 16
    assert len(counts) < 3000
    start = Start(cells // 2, 300.0, cells / 9, (Seen(cells / 9, 40.0, 20.0),))
    ends = converse(EndsSearch(1000.0, 1.1, start, start), cells, 1 << 16, deviation, answer)
    assert sum(count.share for count in ends) <= 1 << 16


def test_a_policy_is_a_function_of_its_history() -> None:
    """The remembered conversation changes nothing:
    histories in any order get the answers of a fresh replay.
    """
    values = np.sort(np.random.default_rng(4).normal(3e8, 1e6, 1000))
    policy = BulkSearch(1000)
    counts = converse(
        policy, 2**32 - 1, 1 << 16, 400.0, lambda place: np.searchsorted(values, place)
    )
    for length in (0, 5, 3, 3, len(counts) - 1, 1):
        part = tuple(counts[:length])
        left = (1 << 16) - sum(count.share for count in part)
        question = policy.next(History(2**32 - 1, left, 400.0, "gaussian", part))
        assert question is not None
        assert question[0] == counts[length].place
        assert question[1] == counts[length].share
    record = json.loads(json.dumps(policy.to_dict()))
    assert policy_from_dict(record) == policy


def test_specs_of_searches_come_back_from_json_and_replay_to_what_they_found() -> None:
    values = np.sort(np.random.default_rng(5).normal(3e8, 1e6, 1000))
    counts = converse(
        BulkSearch(1000), 2**32 - 1, 1 << 16, 400.0, lambda place: np.searchsorted(values, place)
    )
    bulk = replayed(BulkSearch(1000).talk(Purse(2**32 - 1, 1 << 16, 400.0, "gaussian")), counts)
    assert bulk is not None
    assert abs(bulk.left.place - 3e8) < 1.5e6
    assert 5e5 < bulk.left.extent + bulk.right.extent < 2e7
    grid, left, right = zoomed(bulk, GridCounts((), Factor("x", grid_on(0.0, 1e9, CODES)), False))
    policy = EndsSearch(bulk.rows, 1.1, left, right)
    assert policy_from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    assert grid.high == CODES
    assert GDP(1).mu == 1
