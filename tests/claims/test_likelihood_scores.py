"""Scores of likelihoods: their sensitivity on all neighbouring small tables, on memory and files;
and draws from a tempered posterior: the law that runs, against the law that is stated.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import discreet as dp
from discreet.encoding import Encoding
from discreet.estimators.bayes.posterior_sample import sampling_of
from discreet.specs.likelihoods import UNIT_BITS, UNITS, LikelihoodScores, RowLikelihood
from discreet.specs.mechanisms.selection import ExponentialChoice
from discreet.specs.queries.keys import Split, Subset
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.sums import number_factor
from discreet.testing import SeededSource, seeded_session
from discreet.trusted.engines.execution import execute
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.noise.samplers import apply
from discreet.trusted.release import PublicFacts

SCHEMA = dp.Schema(
    {
        "x": dp.Integer(0, 2, missing=0),
        "y": dp.Integer(-1, 1, missing=0),
        "g": dp.Category(["a", "b"], missing="a"),
    }
)
ROWS = [(0, -1, "a"), (2, 1, "b"), (2, -1, "a"), (0, 1, "b")]
RELATIONS = [
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="id", max_rows=2),
    dp.AddRemove(unit="id", max_rows=2),
]


def fine(value: float) -> int:
    return round(Fraction(value) * UNITS)


def queries():
    """Scores of every kind, in units that rows move by parts of: rounding down shows."""
    x, y = number_factor(SCHEMA, "x", "a sum"), number_factor(SCHEMA, "y", "a sum")
    root = 1 << 34  # its square is a fourth of a unit or so
    levels = tuple(
        RowLikelihood((fine(one), fine(other))) for one, other in ((1.5, -0.5), (0.4, 2.6))
    )
    linear = tuple(
        RowLikelihood((fine(level),), (fine(slope),))
        for level, slope in ((0.3, 0.75), (-1.1, -0.6))
    )
    forms = tuple(
        RowLikelihood((fine(level),), (), (constant * root, slope * root, -root))
        for level, constant, slope in ((0.5, 1, 1), (2.5, -2, 1))
    )
    positive = tuple(
        RowLikelihood((fine(one), fine(other))) for one, other in ((1.5, 0.5), (0.7, 3))
    )
    split = (Split("g", (0,)),)
    yield "levels", lambda optional: LikelihoodScores(split, (), levels, (0, 5), optional)
    yield "one sign", lambda optional: LikelihoodScores(split, (), positive, (0, 0), optional)
    yield "linear", lambda optional: LikelihoodScores((), (x,), linear, (0, 0), optional)
    yield "forms", lambda optional: LikelihoodScores((), (x, y), forms, (-3, 0), optional)
    yield (
        "filtered",
        lambda _: LikelihoodScores((Subset("g", (1,)),), (x, y), forms, (0, 0), True),
    )


def columns(rows):
    names = ("x", "y", "g", "id")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def scores_of(query, rows, relation, kind, folder):
    if kind == "memory":
        data = dp.from_arrays(columns(rows), schema=SCHEMA, neighbors=relation)
    else:
        path = folder / "rows.parquet"
        pq.write_table(pa.table(columns(rows)), path)
        data = dp.read_parquet(str(path), schema=SCHEMA, neighbors=relation)
    return query.assemble(execute(data._engine, query.plan()))


def pairs_of(relation):
    """All pairs of neighbouring small tables: three rows of others, and one unit's."""
    base = [(*row, 0) for row in ROWS[:1]]
    one = [[(*row, 1)] for row in ROWS]
    if relation.unit:
        one += [[(*a, 1), (*b, 1)] for a, b in itertools.combinations_with_replacement(ROWS, 2)]
    if isinstance(relation, dp.Replace):
        return [([*base, *a], [*base, *b]) for a, b in itertools.permutations(one, 2)]
    bases = [base * times for times in (1, 2, 3)]
    return [(rows, [*rows, *unit]) for rows in bases for unit in one]


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["memory", pytest.param("file", marks=pytest.mark.slow)])
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_scores_move_by_no_more_than_is_claimed(relation, kind, tmp_path):
    for name, made in queries():
        query = made(False)
        claimed, largest, known = query.sensitivity(relation), 0, {}
        for tables in pairs_of(relation):
            first, second = (
                known[tuple(rows)]
                if tuple(rows) in known
                else known.setdefault(tuple(rows), scores_of(query, rows, relation, kind, tmp_path))
                for rows in tables
            )
            moves = [two - one for one, two in zip(first, second, strict=True)]
            largest = max(largest, *map(abs, moves))
            assert largest <= claimed.value, name
            assert not claimed.one_way or min(moves) >= 0 or max(moves) <= 0, name
        assert largest >= claimed.value - 1 - claimed.value / 3, (name, largest)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_rounding_down_needs_the_next_whole_number(times):
    """A row that adds one and a half units moves a score by two: the ceiling is attained."""
    rows = tuple(RowLikelihood((fine(level),)) for level in (1.5, 0.25))
    query = LikelihoodScores((), (), rows, (0, 0), False)
    claimed = query.sensitivity(dp.AddRemove())
    assert claimed.value == 2
    assert claimed.one_way
    found = [query.assemble(np.array([[count]], dtype=object))[0] for count in range(2 * times + 1)]
    assert max(np.diff(found)) == 2


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-9, 9), min_size=2, max_size=2),
    st.lists(st.integers(-9, 9), min_size=3, max_size=3),
    st.lists(st.integers(-50, 50), min_size=1, max_size=3),
)
def test_every_row_lies_within_its_bounds(linear, form, levels):
    factors = tuple(Factor(name, Encoding(0.0, 1.0, -3, 3)) for name in ("x", "y"))
    one = RowLikelihood(tuple(levels), tuple(linear), tuple(form))
    low, high = one.bounds(factors)
    for level, c, d in itertools.product(levels, range(-3, 4), range(-3, 4)):
        value = level + linear[0] * c + linear[1] * d - (form[0] + form[1] * c + form[2] * d) ** 2
        assert low <= value <= high


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), max_size=6), st.data())
def test_sums_are_those_of_rows(rows, data):
    numbers = st.integers(-(1 << 75), 1 << 75)
    level, a, b = (data.draw(numbers) for _ in range(3))
    form = tuple(data.draw(st.integers(-(1 << 40), 1 << 40)) for _ in range(3))
    factors = tuple(Factor(name, Encoding(0.0, 1.0, -3, 3)) for name in ("x", "y"))
    one = RowLikelihood((level,), (a, b), form)
    query = LikelihoodScores((), factors, (one, one), (0, 7), False)
    sums = [[sum(math.prod(row[i] for i in term) for row in rows) for term in query.terms()]]
    whole = sum(level + a * c + b * d - (form[0] + form[1] * c + form[2] * d) ** 2 for c, d in rows)
    assert query.assemble(np.array(sums, dtype=object)) == [whole // UNITS, whole // UNITS + 7]


# ── the law of a draw ─────────────────────────────────────────────────────────────────────────────

GRIDS = [
    (dp.BetaBinomial("g", level="a", prior=(2, 1)), [0.1, 0.3, 0.5, 0.8]),
    (dp.DirichletMultinomial("g", prior=(2, 0.5)), [(0.2, 0.8), (0.5, 0.5), (0.7, 0.3)]),
    (dp.GammaPoisson("x", prior=(2, 1)), [0.3, 1.0, 2.5]),
    (dp.NormalModel("x", prior=(1, 1, 2, 1)), [(0.5, 0.6), (1.0, 1.0), (1.5, 0.8), (1, 2)]),
    (
        dp.LinearModel("y ~ x", prior=(1, 0.5, 0.4, 2)),
        [(0, 0.5, 0.6), (0.2, -0.5, 1.0), (-0.5, 0.0, 0.8)],
    ),
]


def log_likelihood(family, point, rows):
    """Of a table, from the family's own law, up to what does not depend on the point."""
    x, y = (np.array([row[place] for row in rows], dtype=float) for place in (0, 1))
    yes = sum(row[2] == "a" for row in rows)
    if isinstance(family, dp.BetaBinomial):
        return yes * math.log(point) + (len(rows) - yes) * math.log(1 - point)
    if isinstance(family, dp.DirichletMultinomial):
        return yes * math.log(point[0]) + (len(rows) - yes) * math.log(point[1])
    if isinstance(family, dp.GammaPoisson):
        return float(stats.poisson.logpmf(x, point).sum())
    if isinstance(family, dp.NormalModel):
        return float(stats.norm.logpdf(x, *point).sum())
    return float(stats.norm.logpdf(y, point[0] + point[1] * x, point[2]).sum())


def log_prior(family, point):
    """The declared prior's density, up to a constant."""
    if isinstance(family, dp.BetaBinomial):
        return stats.beta.logpdf(point, *family.prior)
    if isinstance(family, dp.DirichletMultinomial):
        return stats.beta.logpdf(point[0], *family.prior)
    if isinstance(family, dp.GammaPoisson):
        return stats.gamma.logpdf(point, family.prior[0], scale=1 / family.prior[1])
    if isinstance(family, dp.NormalModel):
        mean, rows, shape, scale = family.prior
        variance = point[1] ** 2
        return (
            stats.invgamma.logpdf(variance, shape, scale=scale)
            + stats.norm.logpdf(point[0], mean, math.sqrt(variance / rows))
            + math.log(2 * point[1])  # of the deviation, not of the variance
        )
    slope, place, spread, factor = family.prior
    return (  # both half ranges are 1; the middle of x is 1
        stats.norm.logpdf(point[1], 0, slope)
        + stats.norm.logpdf(point[0] + point[1], 0, place)
        + stats.norm.logpdf(math.log(point[2]), math.log(spread), math.log(factor))
        - math.log(point[2])
    )


def stated_law(family, grid, rows, temper):
    logs = np.array(
        [log_prior(family, point) + temper * log_likelihood(family, point, rows) for point in grid]
    )
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def running_law(question, rows, relation):
    """The law of the mechanism's choice, from the scores of the engine that runs."""
    data = dp.from_arrays(columns([(*row, 0) for row in rows]), schema=SCHEMA, neighbors=relation)
    scores = question.query.assemble(execute(data._engine, question.query.plan()))
    rate = question.mechanism.rate
    weights = np.array([math.exp(rate * (score - max(scores))) for score in scores])
    return weights / weights.sum(), scores


def question_of(family, grid, relation, spend, rows=4):
    count = rows if isinstance(relation, dp.Replace) else None
    public = PublicFacts(SCHEMA, relation, count)
    return sampling_of(public, family, grid=grid, spend=spend).question


@pytest.mark.few(3)
@pytest.mark.parametrize(("family", "grid"), GRIDS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("spend", [dp.PureDP(0.5), dp.GDP(0.3), dp.PureDP(1000)], ids=str)
def test_a_draw_has_the_stated_law(family, grid, spend):
    question = question_of(family, grid, dp.Replace(), spend)
    temper = float(question.mechanism.rate * (1 << UNIT_BITS))
    assert temper <= 1
    assert temper == 1 or spend.__class__ is dp.GDP or spend.epsilon < 1000
    for rows in itertools.product(ROWS, repeat=3):
        stated = stated_law(family, grid, rows, temper)
        found, _ = running_law(question, rows, dp.Replace())
        assert np.abs(stated - found).max() < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize(("family", "grid"), GRIDS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("relation", RELATIONS[:2], ids=str)
def test_neighbours_stay_within_the_price(family, grid, relation):
    question = question_of(family, grid, relation, dp.PureDP(0.7))
    epsilon, largest = float(guarantee_of(question.mechanism).epsilon), 0.0
    assert epsilon <= 0.7
    for first, second in pairs_of(relation):
        one, other = (
            running_law(question, [row[:3] for row in rows], relation)[0]
            for rows in (first, second)
        )
        largest = max(largest, float(np.abs(np.log(one / other)).max()))
    assert largest <= epsilon * (1 + 1e-9)
    assert largest >= 0.1 * epsilon  # the bound is about these scores


def test_half_the_sensitivity_is_caught():
    family, grid = GRIDS[0]
    question = question_of(family, grid, dp.Replace(), dp.PureDP(0.7))
    hasty = dataclasses.replace(
        question,
        mechanism=ExponentialChoice(question.mechanism.sensitivity, 3 * question.mechanism.rate),
    )
    laws = [running_law(hasty, rows, dp.Replace())[0] for rows in (ROWS[:1] * 3, ROWS[1:2] * 3)]
    first = running_law(hasty, [ROWS[0]] * 2 + [ROWS[1]], dp.Replace())[0]
    assert np.abs(np.log(laws[0] / first)).max() > 0.7


@pytest.mark.slow
@pytest.mark.parametrize(("family", "grid"), GRIDS[::2], ids=lambda one: type(one).__name__)
def test_the_sampler_follows_the_law_and_another_temper_is_noticed(family, grid):
    question = question_of(family, grid, dp.Replace(), dp.PureDP(1000))
    rows = [*ROWS, *ROWS[:2]]
    _, scores = running_law(question, rows, dp.Replace())
    source, size = SeededSource(7), 6000
    drawn = [apply(question.mechanism, scores, source).integers[0] for _ in range(size)]
    counts = np.bincount(drawn, minlength=len(grid))
    stated, wrong = (stated_law(family, grid, rows, temper) for temper in (1.0, 0.4))
    assert stats.chisquare(counts, size * stated).pvalue > 1e-6
    assert stats.chisquare(counts, size * wrong).pvalue < 1e-9


@pytest.mark.slow
def test_a_session_draws_by_this_law():
    rows = [(*row, 0) for row in ROWS]
    data = dp.from_arrays(columns(rows), schema=SCHEMA, neighbors=dp.Replace())
    family, grid = GRIDS[0]
    session = seeded_session(data, dp.PureDP(10_000), seed=3)
    size = 250
    found = dp.posterior_sample(session, family, grid=grid, samples=size, spend=dp.PureDP(9000))
    stated = stated_law(family, grid, ROWS, found.temper)
    counts = np.bincount(found.places, minlength=len(grid))
    assert stats.chisquare(counts, size * stated).pvalue > 1e-6
    assert found.prior == pytest.approx(stated_law(family, grid, [], 1.0), abs=1e-3)


@pytest.mark.parametrize(
    "change",
    [
        {"offsets": (0,)},
        {"candidates": (RowLikelihood((0,)),)},
        {"candidates": (RowLikelihood((0, 0)),) * 2},
        {"candidates": (RowLikelihood((0,), (1,)),) * 2},
        {"offsets": (0, 1 << 201)},
    ],
)
def test_scores_that_are_not_proven_are_refused(change):
    query = LikelihoodScores((), (), (RowLikelihood((1,)), RowLikelihood((2,))), (0, 0), False)
    with pytest.raises(dp.InvalidParameter, match="LikelihoodScores"):
        dataclasses.replace(query, **change)
    with pytest.raises(dp.InvalidParameter):
        RowLikelihood((1.5,))
