"""dp.iqr and dp.mad: right answers, intervals that cover, the privacy of a folded histogram,
total behaviour.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet.estimators.scale import iqr_question, mad_question
from discreet.inference.quantiles.scale import IQRResult, MADResult
from discreet.search.policies import Bisection
from discreet.sensitivity import Rows
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.specs.mechanisms.quantiles import QuantileChoice
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.registry import mechanism_from_dict
from discreet.specs.statistics import histogram_of_cells
from discreet.testing import SeededSource, seeded_session
from discreet.trusted.losses.losses import loss_of
from discreet.trusted.losses.pricing import within_spend
from discreet.trusted.noise.samplers import apply
from discreet.trusted.noise.search import folded
from discreet.trusted.release import Release

RELATIONS = [
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="id", max_rows=2),
    dp.AddRemove(unit="id", max_rows=2),
]
SPENDS = [dp.GDP(1), dp.PureDP(1), dp.ZCDP(0.5), dp.ApproxDP(2, 1e-6)]
SCHEMA = {"x": dp.Real(-5, 5), "k": dp.Integer(0, 20), "g": dp.Category(["p", "q"])}


def table(rows: int = 3000) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    return {
        "x": rng.standard_normal(rows),
        "k": rng.binomial(20, 0.4, rows),
        "g": np.where(np.arange(rows) % 2 == 0, "p", "q"),
        "id": np.arange(rows),
    }


def ask(arrays: dict[str, Any], neighbors: Any, schema: Any = None) -> dp.Session:
    return seeded_session(
        dp.from_arrays(arrays, schema=schema or SCHEMA, neighbors=neighbors), dp.GDP(900), "scale"
    )


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_estimates_are_near_and_intervals_hold_them(neighbors: Any, spend: Any) -> None:
    data = table()
    session = ask(data, neighbors)
    spread = stats.iqr(data["x"])
    fit, mad = dp.iqr(session, "x", spend=spend), dp.mad(session, "x", spend=spend)
    assert fit.estimate == pytest.approx(spread, abs=0.5)
    assert mad.estimate == pytest.approx(stats.median_abs_deviation(data["x"]), abs=0.2)
    for result in (fit, mad):
        low, high = result.confidence_interval()[0]
        assert 0 <= low <= result.estimate <= high <= 10
    assert abs(mad.centre) < 0.3
    scaled = dp.mad(session, "x", spend=spend, normal=True, where={"g": "p"})
    assert scaled.estimate == pytest.approx(1, abs=0.5)


def test_with_little_noise_they_are_the_textbook_numbers() -> None:
    data = table()
    session = ask(data, dp.Replace())
    large = dp.GDP(200)
    assert dp.iqr(session, "x", spend=large).estimate == pytest.approx(
        stats.iqr(data["x"]), abs=0.01
    )
    fit = dp.mad(session, "x", spend=large)
    assert fit.estimate == pytest.approx(stats.median_abs_deviation(data["x"]), abs=0.01)
    assert fit.centre == pytest.approx(np.median(data["x"]), abs=0.01)
    assert dp.iqr(session, "k", spend=large).estimate == stats.iqr(data["k"])
    assert dp.mad(session, "k", spend=large).estimate == stats.median_abs_deviation(data["k"])
    inner, outer = (fit.confidence_interval(target=target)[0] for target in ("data", "population"))
    assert outer[1] - outer[0] > inner[1] - inner[0]


# ── privacy ───────────────────────────────────────────────────────────────────────────────────────

CELLS = 5
SMALL = [
    values
    for size in range(4)
    for values in itertools.combinations_with_replacement(range(CELLS), size)
]


def counts(values: tuple[int, ...]) -> np.ndarray:
    return np.bincount(np.array(values, dtype=int), minlength=CELLS)


@pytest.mark.slow
def test_folding_keeps_the_way_in_which_neighbours_differ() -> None:
    """All data sets of up to three rows on five cells, all centres: the folded histogram is that of
    the distances, for every neighbour too.
    """
    for values, centre in itertools.product(SMALL, range(CELLS)):
        histogram = histogram_of_cells(CELLS, np.array(values, dtype=np.int64))
        seen = folded(histogram, centre)
        expected = counts(tuple(abs(value - centre) for value in values))
        found = np.zeros(CELLS, dtype=int)
        found[seen.places] = seen.counts
        assert found.tolist() == expected.tolist()
        assert seen.rows == histogram.rows
        for t in range(CELLS + 1):
            assert seen.below(t) == (
                histogram.below(centre + t) - histogram.below(centre - t + 1) if t else 0
            )
        for other in SMALL:
            came, went = (
                np.maximum(counts(other) - counts(values), 0).sum(),
                np.maximum(counts(values) - counts(other), 0).sum(),
            )
            distances = counts(tuple(abs(value - centre) for value in other)) - expected
            assert np.maximum(distances, 0).sum() <= came
            assert np.maximum(-distances, 0).sum() <= went


def test_a_folded_search_moves_no_further_than_one_count() -> None:
    """The weighted count at every distance, for every neighbour of every small data set:
    `Rows.weighted` is met, and attained.
    """
    replaced, added = Rows(1, "replaced"), Rows(1, "added or removed")
    worst = {replaced: 0, added: 0}
    for values in SMALL:
        neighbours = [((*values, new), added) for new in range(CELLS)] + [
            (tuple(sorted((*values[1:], new))), replaced) for new in range(CELLS) if values
        ]
        for (other, relation), centre in itertools.product(neighbours, range(CELLS)):
            first, second = (
                folded(histogram_of_cells(CELLS, np.array(each, dtype=np.int64)), centre)
                for each in (values, other)
            )
            for t in range(CELLS + 1):
                moved = abs((2 * first.below(t) - first.rows) - (2 * second.below(t) - second.rows))
                worst[relation] = max(worst[relation], moved)
    assert worst == {replaced: replaced.weighted(1, 1), added: added.weighted(1, 1)}


@pytest.mark.few(3)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("spend", SPENDS, ids=str)
@pytest.mark.parametrize("where", [None, {"g": "p"}], ids=["all", "filtered"])
def test_the_parts_cost_what_was_agreed_and_nearly_all_of_it(
    neighbors: Any, spend: Any, where: Any
) -> None:
    public = (
        dp.from_arrays(table(10), schema=SCHEMA, neighbors=neighbors).open(budget=dp.GDP(1)).public
    )
    for build in (iqr_question, mad_question):
        question = build(public, "x", spend=spend, where=where)
        assert within_spend(question.mechanism, spend)
        assert question.mechanism.sensitivity == question.query.sensitivity(neighbors)
        assert mechanism_from_dict(question.mechanism.to_dict()) == question.mechanism
        half = {
            dp.GDP: dp.GDP(0.99),
            dp.PureDP: dp.PureDP(0.99),
            dp.ZCDP: dp.ZCDP(0.49),
            dp.ApproxDP: dp.ApproxDP(1.97, 1e-6),
        }[type(spend)]
        assert not within_spend(question.mechanism, half)
    mechanism = mad_question(public, "x", spend=dp.PureDP(1)).mechanism
    parts = [loss_of(mechanism.centre), *map(loss_of, mechanism.distances.stages)]
    assert loss_of(mechanism).epsilon == sum(loss.epsilon for loss in parts)


def test_a_centre_and_distances_must_read_one_histogram() -> None:
    public = (
        dp.from_arrays(table(10), schema=SCHEMA, neighbors=dp.Replace())
        .open(budget=dp.GDP(1))
        .public
    )
    mechanism = mad_question(public, "x", spend=dp.GDP(1)).mechanism
    other = Rows(2, "changed")
    with pytest.raises(dp.InvalidParameter):
        replace(mechanism, centre=QuantileChoice(other, 1, 2, Fraction(1), "exponential"))
    with pytest.raises(dp.InvalidParameter):
        replace(
            mechanism,
            distances=InTurn((CountSearch(other, 1, 1, "gaussian", Fraction(1), 8, Bisection(4)),)),
        )


# ── coverage ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", RELATIONS[:2], ids=str)
@pytest.mark.parametrize("law", ["normal", "ties"])
def test_intervals_cover(neighbors: Any, law: str) -> None:
    rng, source, size, repetitions = np.random.default_rng(8), SeededSource(law), 800, 80
    schema = {"x": dp.Real(-6, 6) if law == "normal" else dp.Integer(0, 8)}
    public = (
        dp.from_arrays({"x": np.zeros(size)}, schema=schema, neighbors=neighbors)
        .open(budget=dp.GDP(1))
        .public
    )
    big = np.sort(
        rng.standard_normal(100_000)
        if law == "normal"
        else rng.binomial(8, 0.5, 100_000).astype(float)
    )
    quartiles = big[len(big) // 4], big[3 * len(big) // 4]
    asked = [
        (build(public, "x", spend=dp.GDP(0.5)), kind)
        for build, kind in ((iqr_question, IQRResult), (mad_question, MADResult))
    ]
    hits = {"iqr": 0, "mad": 0}
    for _ in range(repetitions):
        values = (
            rng.standard_normal(size)
            if law == "normal"
            else rng.binomial(8, 0.5, size).astype(float)
        )
        for question, kind in asked:
            grid, stride = question.query.factor.encoding, question.query.plan().stride
            cells = (
                (np.floor((values - grid.center) * grid.per_unit + 0.5) - grid.low) // stride
            ).astype(np.int64)
            integers = apply(
                question.mechanism, histogram_of_cells(question.query.size, cells), source
            ).integers
            result = kind(
                Release(
                    question.description,
                    question.query,
                    question.mechanism,
                    integers,
                    neighbors,
                    question.spend,
                    question.spend,
                    public.count,
                    "key",
                    0,
                    "",
                )
            )
            low, high = result.confidence_interval()[0]
            truth = (
                quartiles[1] - quartiles[0]
                if kind is IQRResult
                else float(np.median(np.abs(big - result.centre)))
            )
            hits[question.description.estimator] += low - 1e-9 <= truth <= high + 1e-9
    for name, covered in hits.items():
        assert stats.binom.cdf(covered, repetitions, 0.94) > 1e-6, name


# ── total behaviour ───────────────────────────────────────────────────────────────────────────────

ODD: dict[str, list[Any]] = {
    "empty": [],
    "one": [0.3],
    "two": [0.3, -0.2],
    "constant": [1.5] * 200,
    "at a bound": [9.0] * 200,
    "both bounds": [-9.0, 9.0] * 100,
    "missing": [None, math.nan, math.inf, 1.0, "text"] * 5,
}


@pytest.mark.slow
@pytest.mark.parametrize("values", ODD.values(), ids=ODD)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_odd_data_give_an_answer_within_the_range(values: list[Any], neighbors: Any) -> None:
    rows = len(values)
    session = ask(
        {"x": values, "k": [2] * rows, "g": ["p"] * rows, "id": list(range(rows))}, neighbors
    )
    for result in (
        dp.iqr(session, "x", spend=dp.GDP(1)),
        dp.mad(session, "x", spend=dp.GDP(1)),
        dp.mad(session, "k", spend=dp.PureDP(1), where={"g": "q"}),
    ):
        low, high = result.confidence_interval()[0]
        assert 0 <= low <= high <= 20
        assert np.isfinite(result.estimate)
        assert str(result.summary())


def test_results_round_trip_and_keep_their_scale() -> None:
    session = ask(table(), dp.Replace())
    for fit in (
        dp.iqr(session, "x", spend=dp.GDP(1)),
        dp.mad(session, "x", spend=dp.GDP(1)),
        dp.mad(session, "x", spend=dp.GDP(1), normal=True),
    ):
        again = dp.from_json(fit.to_json())
        assert type(again) is type(fit)
        assert again.confidence_interval().tolist() == fit.confidence_interval().tolist()
        assert 0 <= fit.noise_share[0] <= 1
        assert fit.to_frame()["estimate"][0] == fit.estimate


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_preview_foretells_the_width(neighbors: Any) -> None:
    session = ask(table(), neighbors)
    assume = dp.Assumptions(rows=3000, standard_deviation=1)
    for estimator in (dp.iqr, dp.mad):
        forecast = dp.preview(session, estimator, "x", spend=dp.GDP(1), assume=assume)
        widths = [
            np.diff(estimator(session, "x", spend=dp.GDP(1)).confidence_interval()[0])[0]
            for _ in range(5)
        ]
        assert 0.5 < forecast.width / np.median(widths) < 2
    assert (
        dp.preview(
            session,
            dp.mad,
            "k",
            spend=dp.PureDP(1),
            assume=dp.Assumptions(rows=3000),
            where={"g": "p"},
        ).width
        > 0
    )


def test_what_is_refused_before_any_debit() -> None:
    session = ask(table(50), dp.Replace())
    spent = session.ledger.spent()
    for wrong in (
        lambda: dp.iqr(session, "g", spend=dp.GDP(1)),
        lambda: dp.mad(session, "nothing", spend=dp.GDP(1)),
        lambda: dp.mad(session, "x", spend=dp.GDP(1), normal=1),
        lambda: dp.iqr(session, "x", spend=1),
    ):
        with pytest.raises(dp.DiscreetError):
            wrong()
    assert session.ledger.spent() == spent
