"""All pairs of groups: intervals that hold at once, and what a comparison of several says."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import studentized_range
from tests.survey import RELATIONS

import discreet as dp
from discreet.inference.results.laws import Noise
from discreet.inference.tables.groups import bonferroni_level, pair_level, pairs_of
from discreet.testing import seeded_session

LEVELS = ("a", "b", "c", "d")
TRUTH = {"share": (0.2, 0.3, 0.5, 0.4), "mean": (40.0, 47.0, 53.0, 60.0)}


def asked(
    kind: str, groups: int, seed: int, rows: int = 500, spend: Any = None, **options: Any
) -> Any:
    rng = np.random.default_rng(seed)
    place = rng.choice(groups, rows)
    truth = np.array(TRUTH[kind])[place]
    schema = {
        "g": dp.Category(LEVELS[:groups]),
        "s": dp.Boolean(),
        "y": dp.Boolean() if kind == "share" else dp.Real(0, 100),
    }
    columns = {
        "g": np.array(LEVELS)[place],
        "s": rng.random(rows) < 0.5,
        "y": rng.random(rows) < truth if kind == "share" else rng.normal(truth, 10),
    }
    relation = options.pop("neighbors", dp.Replace())
    data = dp.from_arrays(
        {**columns, "person": np.arange(rows) // 2}, schema=schema, neighbors=relation
    )
    ask = dp.compare if kind == "share" else dp.compare_means
    session = seeded_session(data, dp.GDP(100), f"pairs {seed}")
    return ask(session, "y", by="g", spend=spend or dp.GDP(0.5), **options)


def holds(result: Any, kind: str, *, joint: bool = True) -> bool:
    """Whether all intervals contain their differences."""
    groups = len(result.groups)
    truth = [TRUTH[kind][high] - TRUTH[kind][low] for high, low in pairs_of(groups)]
    found = (
        result.pairs().quantity if joint else result._differences(pairs_of(groups), 0.95, "data")
    )
    return bool(np.all((found.low <= truth) & (truth <= found.high)))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "groups"), [("share", 4), ("mean", 3)])
def test_all_pairs_are_covered_at_once(kind: str, groups: int) -> None:
    """At least 0.94 of 200 data sets within three Monte-Carlo standard errors (0.017 each);
    intervals of one pair that leave sampling out fail.
    """
    results = [asked(kind, groups, seed) for seed in range(200)]
    error = np.sqrt(0.94 * 0.06 / len(results))
    assert np.mean([holds(result, kind) for result in results]) >= 0.94 - 3 * error
    assert np.mean([holds(result, kind, joint=False) for result in results[:60]]) < 0.94 - 3 * error


@pytest.mark.parametrize("groups", [3, 4])
def test_without_noise_and_with_equal_variances_it_is_tukeys_range(groups: int) -> None:
    """The quantile of 6000 simulated maxima is one standard error (0.003) to the safe side."""
    found = pair_level(np.ones(groups), Noise(0.0), 0.95)
    critical = studentized_range.ppf(0.95, groups, np.inf) / np.sqrt(2)
    tukey = 1 - 2 * float(ndtr(-critical))
    assert tukey - 0.001 < found < tukey + 0.003
    assert found <= bonferroni_level(groups, 0.95)


def test_the_level_of_each_lies_between_one_and_bonferroni() -> None:
    for noise in (Noise(1.0), Noise(1.0, 0.25)):
        found = pair_level(np.array([0.1, 1.0, 4.0]), noise, 0.95)
        assert 0.95 < found <= bonferroni_level(3, 0.95)
    assert pair_level(np.ones(2), Noise(1.0), 0.9) == pytest.approx(0.9)
    # beyond what a simulation resolves
    assert pair_level(np.ones(3), Noise(1.0), 1 - 1e-6) == bonferroni_level(3, 1 - 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("share", marks=pytest.mark.slow), "mean"])
def test_a_summary_shows_groups_pairs_and_the_overall_test(kind: str) -> None:
    result = asked(kind, 3, 1, rows=3000)
    told = result.summary()
    assert [row[0] for row in told.rows] == ["a", "b", "c", "b vs a", "c vs a", "c vs b"]
    assert "all groups. some differ" in told.notes[0]
    assert "all 3 pairs hold at once" in told.notes[1]
    assert not any("One pair at a time" in note for note in told.notes)
    assert result.overall().p_value == result.test().p_value == result.p_value < 0.001
    assert "in b and a" in result.test(group="b").hypothesis
    pairs = result.pairs(0.9)
    single = result._differences(pairs_of(3), 0.9, "population")
    assert np.all(pairs.quantity.low <= single.low)
    assert np.all(pairs.quantity.high >= single.high)
    assert pairs["c vs b"].interval == (pairs.quantity.low[2], pairs.quantity.high[2])
    assert len(repr(pairs).splitlines()) == 3
    assert pairs.to_frame()["pair"].tolist() == ["b vs a", "c vs a", "c vs b"]
    again = dp.from_json(result.to_json()).pairs(0.9)
    assert again.to_markdown() == pairs.to_markdown()
    assert pickle.loads(pickle.dumps(pairs)).records() == pairs.records()
    assert pairs.plot() is not None
    assert set(result.arms().estimate) == {
        entry[0] for entry in (result.share() if kind == "share" else result.means()).values()
    }


def test_of_two_groups_the_arms_are_a_line() -> None:
    told = asked("share", 2, 1).summary()
    assert len(told.rows) == 1
    assert any(note.startswith("share of a: ") and "; b: " in note for note in told.notes)


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_strata_have_a_common_difference_for_every_pair(neighbors: Any) -> None:
    result = asked(
        "share",
        3,
        2,
        2000,
        dp.PureDP(1),
        strata="s",
        neighbors=neighbors,
        where={"s": [True, False]},
    )
    pairs = result.pairs()
    assert pairs.quantity.name == "common difference"
    assert pairs.each == bonferroni_level(3, 0.95)
    assert 0 < result.overall(few=99, many=99).p_value <= 1
    assert holds(result, "share")


@pytest.mark.slow
def test_the_overall_test_of_shares_has_its_size() -> None:
    """0.05 of 200 data sets with equal shares, within four binomial standard errors."""
    rejected = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        data = dp.from_arrays(
            {"g": rng.choice(LEVELS[:3], 300), "y": rng.random(300) < 0.3},
            schema={"g": dp.Category(LEVELS[:3]), "y": dp.Boolean()},
            neighbors=dp.Replace(),
        )
        session = seeded_session(data, dp.GDP(10), f"size {seed}")
        result = dp.compare(session, "y", by="g", spend=dp.GDP(0.5))
        rejected.append(result.overall(few=199, many=199).rejects())
    assert np.mean(rejected) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)


def test_pairs_come_once_each() -> None:
    assert pairs_of(1) == ()
    assert sorted(pairs_of(4)) == sorted(
        (high, low) for low, high in itertools.combinations(range(4), 2)
    )
