"""Case 46 with keys that nobody declared: whoever probes a group-by for a key that one person alone
holds sees it with probability at most δ.

The probability is computed from the mechanism that the public function builds, exactly; a checker
that passes it catches a threshold that is one row too low and a table that shows every key that is
present.
"""

from __future__ import annotations

import dataclasses
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.chance import without_chance

import discreet as dp
from discreet.estimators import questions
from discreet.schema import Schema
from discreet.specs.statistics import KeyCounts
from discreet.testing import SeededSource, seeded_session
from discreet.trusted.extensions.open_keys.loss import show_bounds
from discreet.trusted.noise.samplers import apply
from discreet.trusted.release import PublicFacts

SCHEMA = Schema({"city": dp.Open(), "member": dp.Boolean()})
RELATIONS = [
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="id", max_rows=3),
    dp.AddRemove(unit="id", max_rows=3),
]
SPENDS = [dp.GDP(0.5), dp.PureDP(0.5), dp.ZCDP(0.1), dp.ApproxDP(1, 1e-6)]
# last in the order of keys, so that seeded noise falls on the others as without it
PLANTED = "€planted-4417"


def mechanism_for(neighbors, spend, delta):
    return questions.table_question(
        PublicFacts(SCHEMA, neighbors, 100), by="city", spend=spend, delta=delta
    ).mechanism


def probe(mechanism, rows):
    """The greatest probability that one of the keys which a unit of `rows` rows alone holds is
    shown: every split of its rows, exactly (rounded up).
    """
    worst = Fraction(0)
    for parts in {(rows,), (1,) * rows, (rows - 1, 1)} - {(0, 1)}:
        hidden = Fraction(1)
        for part in parts:
            hidden *= 1 - show_bounds(mechanism.noise, mechanism.threshold, part)[1]
        worst = max(worst, 1 - hidden)
    return worst


@pytest.mark.few(3)
@pytest.mark.parametrize("spend", SPENDS, ids=str)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("delta", [1e-8, 1e-7])
def test_case_46_a_key_of_one_unit_is_shown_with_probability_at_most_delta(neighbors, spend, delta):
    mechanism = mechanism_for(neighbors, spend, delta)
    assert probe(mechanism, neighbors.rows) <= Fraction(repr(delta))
    one_row_lower = dataclasses.replace(
        mechanism, threshold=mechanism.threshold - (1 << mechanism.noise.refinement)
    )
    assert probe(one_row_lower, neighbors.rows) > Fraction(repr(delta))
    shows_what_is_there = dataclasses.replace(
        mechanism, threshold=(neighbors.rows << mechanism.noise.refinement) + 1
    )
    assert probe(shows_what_is_there, neighbors.rows) > Fraction(1, 5)


def test_case_46_the_sampler_shows_a_rare_key_as_seldom_as_it_says():
    """A δ large enough to be seen: the share of draws that show a key of one row,
    against the exact probability and half of it.
    """
    mechanism = mechanism_for(dp.AddRemove(), dp.GDP(0.5), 0.01)
    draws = 200_000
    counts = KeyCounts([f"{place:06d}" for place in range(draws)], np.ones(draws, dtype=np.int64))
    shown, exact = len(apply(mechanism, counts, SeededSource(46)).found), float(probe(mechanism, 1))
    assert stats.binomtest(shown, draws, exact).pvalue > 1e-9
    assert stats.binomtest(shown, draws, exact / 2).pvalue < 1e-9
    assert exact <= 0.01


def city_data(source, rare, folder, neighbors):
    columns = {
        "city": ["Ghent", "Łódź"] * 200 + [PLANTED] * rare,
        "member": [True] * (400 + rare),
        "id": [*range(400), *[9999] * rare],
    }
    if source == "arrays":
        return dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors)
    import polars as pl

    frame = pl.DataFrame(columns)
    if source == "frame":
        return dp.from_frame(frame, schema=SCHEMA, neighbors=neighbors)
    place = folder / f"{rare}.{source}"
    if source == "csv":
        frame.write_csv(place)
        return dp.read_csv(place, schema=SCHEMA, neighbors=neighbors)
    frame.write_parquet(place)
    return dp.read_parquet(place, schema=SCHEMA, neighbors=neighbors)


@pytest.mark.few(2)
@pytest.mark.parametrize("source", ["arrays", "frame", "parquet", "csv"])
@pytest.mark.parametrize(
    "neighbors", [dp.AddRemove(), dp.AddRemove(unit="id", max_rows=2)], ids=str
)
def test_case_46_a_rare_open_key_shows_nowhere(source, neighbors, tmp_path):
    """One unit with 1 or 5 rows of a key of its own:
    no text that leaves the session names it, and the other counts do not move.
    """
    released = []
    for rare in (0, 1, 5) if neighbors.unit else (0, 1):
        session = seeded_session(
            city_data(source, rare, tmp_path, neighbors), dp.ApproxDP(5, 1e-6), "case 46"
        )
        result = dp.table(session, by="city", spend=dp.GDP(0.5), delta=1e-8)
        assert [label for (label,) in result.labels] == ["Ghent", "Łódź"]
        leaves = (
            str(result)
            + result.to_json()
            + repr(result)
            + str(result.to_frame())
            + repr(session)
            + str(dp.preview(session, dp.table, by="city", spend=dp.GDP(0.1), delta=1e-8))
        )
        assert "planted" not in leaves + without_chance(
            "".join(entry.body for entry in session.ledger.entries()), session.ledger
        )
        assert b"planted" not in pickle.dumps(result)
        released.append(result.release.integers)
    assert len(set(released)) == 1


def test_case_34_unicode_keys_are_told_apart_and_come_back_as_they_are():
    keys = [
        "é",
        "e\u0301",
        "日本",
        "😀",
        "İ",
        "i̇",
        "ß",
        "SS",
        " x",
        "x ",
        "\u202eabc",
        "a\0b",
        "\ufeffx",
        '"quoted"',
        "[/bold]",
        "$\\frac$",
        "'; drop table",
        "x" * 200,
    ]
    data = dp.from_arrays(
        {"city": [key for key in keys for _ in range(200)] + ["y" * 201] * 300 + ["\ud800"] * 300},
        schema={"city": dp.Open()},
        neighbors=dp.AddRemove(),
    )
    result = dp.table(
        seeded_session(data, dp.ApproxDP(5, 1e-6), 3), by="city", spend=dp.GDP(1), delta=1e-8
    )
    assert [label for (label,) in result.labels] == sorted(keys)
    assert dp.from_json(result.to_json()).labels == result.labels
    assert np.abs(result.params - 200).max() < 10
    assert str(result)
    assert "a\\x00b" in str(result)
    assert "<table" in result._repr_html_()


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "column",
    [
        [],
        [None],
        [float("nan")] * 3,
        [[1]] * 4,
        [b"x"] * 900,
        [object()] * 900,
        ["one"],
        ["a"] * 2,
        [2**200] * 900,
        [0.5] * 900,
    ],
    ids=range(10),
)
@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
def test_data_without_a_common_key_gives_an_empty_table(column, neighbors):
    session = seeded_session(
        dp.from_arrays({"city": column}, schema={"city": dp.Open()}, neighbors=neighbors),
        dp.ApproxDP(5, 1e-6),
        4,
    )
    result = dp.table(session, by="city", spend=dp.GDP(0.5), delta=1e-9)
    assert result.labels == []
    assert result.params.size == 0
    assert len(result.to_frame()) == 0
    assert next(iter(result.to_frame(backend="polars").columns)) == "city"
    assert "0 keys" in str(result.summary())
    assert result.confidence_interval().shape == (0, 2)
    assert result.plot() is not None
    assert dp.from_json(result.to_json()).summary() == result.summary()
