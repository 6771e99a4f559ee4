"""A question that fails, fails before its debit and whatever the rows are: no failure tells that
there is a row, or what a column nobody may read so holds.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.exact import sqrt_up
from discreet.schema import Encoding, Schema
from discreet.sensitivity import LInf
from discreet.specs import reads
from discreet.specs.estimating import components
from discreet.specs.estimating.components import (
    LevelComponent,
    ModelColumn,
    NumberComponent,
    number_table,
)
from discreet.specs.estimating.components import Response as ModelResponse
from discreet.specs.estimating.equations import WeightedGradient, WeightedGram
from discreet.specs.estimating.families import Huber, psi_bound
from discreet.specs.estimating.metric import Metric
from discreet.specs.estimating.model import EstimatingPlan, Model, Point
from discreet.specs.estimating.residuals import ResidualCounts
from discreet.specs.estimating.tabulated import TabulatedResidual
from discreet.specs.mechanisms.additive import GaussianNoise, GeometricNoise
from discreet.specs.mechanisms.selection import ExponentialChoice
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.specs.queries.keys import Between, Bins, Levels, Split, Subset
from discreet.specs.queries.parts import PartRejections
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.scores import CandidateGroup, CandidateScores
from discreet.specs.queries.sums import Sum
from discreet.specs.queries.trees import TreeCounts
from discreet.trusted.engines.kernels import encoding_limits
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.extensions.estimating import kernels as model_kernels
from discreet.trusted.extensions.estimating import loops
from discreet.trusted.release import Description, Question

X = Factor("x", dp.Real(0, 1).encoding())
UNITS = dp.AddRemove(unit="x", max_rows=1)
METRIC = Metric(((1,),), 0, 1 << 28)
SCHEMA = {"x": dp.Real(0, 1), "c": dp.Category(["a", "b"]), "k": dp.Open()}


def question_of(query: Any, neighbors: Any) -> Question:
    """A query with noise that its sensitivity under a relation asks for, at a small price."""
    proven = query.sensitivity(neighbors)
    if isinstance(proven, LInf):
        chosen = ExponentialChoice(proven, Fraction(1, 100))
        return Question(Description("x"), query, chosen, dp.PureDP(0.1))
    if isinstance(proven, tuple):
        noise: Any = GeometricNoise(proven[0], Fraction(1000), 0)
        return Question(Description("x"), query, noise, dp.PureDP(float(proven[0].value) / 999))
    sigma = Fraction(float(sqrt_up(proven.squared * 10**8)) * 1.01)
    noise = (
        SymmetricGaussianNoise(proven, sigma, Fraction(float(sigma) * 0.75), 0)
        if hasattr(proven, "order")
        else GaussianNoise(proven, sigma, 0)
    )
    return Question(Description("x"), query, noise, dp.GDP(1e-4))


def session_of(neighbors: Any, rows: int = 1) -> Any:
    columns = {"x": np.full(rows, 0.5), "c": ["a"] * rows, "k": ["mm"] * rows}
    data = dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors)
    return data.open(budget=dp.ApproxDP(5, 1e-5), pure=1)


def entries(session: Any) -> int:
    return sum(entry.kind == "debit" for entry in session.ledger.entries())


def queries_of(component: Any, code: int) -> list[Any]:
    """All estimating queries with a component, over the rows of one level."""
    columns, keys = (ModelColumn("x", (component,)),), (Subset("c", (code,)),)
    without, model = Model(columns, None, keys), Model(columns, ModelResponse(X), keys)
    point = Point((1,), 0, 1.0)
    return [
        WeightedGram(without, METRIC, "metric", True),
        WeightedGradient(model, METRIC, Huber(1.0), point, True),
        ResidualCounts(model, point, (0, 5), True),
    ]


# -- tables ----------------------------------------


@pytest.mark.parametrize(
    ("transform", "fields"),
    [
        ("nope", {}),
        ("log", {}),
        ("log", {"factor": Factor("x", Encoding(0.0, 1.0, -2, 2))}),
        ("spline", {}),
        ("spline", {"knots": (0.0, 1.0), "index": 7}),
        ("spline", {"knots": (0.0, 0.0, 1.0), "index": -1}),
        ("spline", {"knots": (1.0, 0.0)}),
        ("spline", {"knots": (0.0, 5e-324, 1.0)}),
        ("linear", {"low": 0.0, "high": 0.0}),
        ("linear", {"low": float("nan")}),
        ("linear", {"low": 1e308, "high": -1e308}),
        ("linear", {"knots": (0.0, 1.0)}),
        ("square", {"factor": Factor("x", Encoding(1e200, 1e-200, -2, 2))}),
        ("linear", {"factor": Factor("x", Encoding(0.0, 1.0, -(1 << 30), 1 << 30))}),
        ("linear", {"factor": "x"}),
    ],
)
def test_a_component_without_a_table_is_refused(transform: str, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        NumberComponent(fields.pop("factor", X), transform, **fields)


@pytest.mark.parametrize("neighbors", [dp.AddRemove(), dp.Replace()])
def test_a_broken_component_is_refused_whether_or_not_there_are_rows(neighbors: Any) -> None:
    # what is checked is the session's own copy, so one that was edited is refused as well
    for code in (0, 1):
        session = session_of(neighbors)
        component = NumberComponent(X)
        asked = [question_of(query, neighbors) for query in queries_of(component, code)]
        object.__setattr__(component, "transform", "nope")
        for question in asked:
            with pytest.raises(InvalidParameter):
                session.release(question)
        assert entries(session) == 0


def test_a_part_of_another_kind_is_no_component() -> None:
    with pytest.raises(InvalidParameter):
        ModelColumn("x", (ModelResponse(X),))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Model((NumberComponent(X),), None)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Model((ModelColumn("one", ()),), NumberComponent(X))  # type: ignore[arg-type]


@pytest.mark.parametrize("neighbors", [dp.AddRemove(), dp.Replace(), UNITS])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_what_would_fail_on_rows_is_refused_before_the_debit(
    neighbors: Any, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("a table that cannot be built, which no check foresaw")

    monkeypatch.setattr(components, "transformed", broken)
    components._number_table.cache_clear()
    session = session_of(neighbors, rows)
    for code in (0, 1):
        for query in queries_of(NumberComponent(X), code):
            with pytest.raises(InvalidParameter, match="rows that its schema allows"):
                session.release(question_of(query, neighbors))
    assert entries(session) == 0


def test_a_filter_hides_nothing_from_the_rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: LevelComponent, codes: Any) -> Any:
        if len(codes):
            raise ValueError
        return np.zeros(0, dtype=np.int16)

    monkeypatch.setattr(LevelComponent, "values", broken)
    session = session_of(dp.AddRemove(), 0)
    for query in queries_of(LevelComponent("c", (1, 0)), 1):
        nobody = replace(query.model, keys=(Subset("c", ()),))
        with pytest.raises(InvalidParameter, match="rows that its schema allows"):
            session.release(question_of(replace(query, model=nobody), dp.AddRemove()))
    assert entries(session) == 0


def test_a_formula_whose_log_meets_zero_on_its_grid_is_refused_before_the_debit() -> None:
    # the grid's lowest value is 1e-20 away from 0, which rounds to 0
    data = {"x": np.full(5, 0.5), "y": np.full(5, 0.5)}
    schema = {"x": dp.Real(1e-20, 1), "y": dp.Real(0, 1)}
    session = dp.from_arrays(data, schema=schema, neighbors=dp.Replace()).open(budget=dp.GDP(1))
    with pytest.raises(InvalidParameter):
        dp.ols(session, "y ~ log(x)", spend=dp.GDP(0.5))
    assert entries(session) == 0


def test_honest_questions_pass_and_a_level_contrast_needs_no_table() -> None:
    session = session_of(dp.AddRemove())
    for component in (
        NumberComponent(X),
        NumberComponent(X, "spline", knots=(0.0, 0.0, 0.5, 1.0, 1.0), index=2),
        LevelComponent("c", (1, 0)),
    ):
        for query in queries_of(component, 0):
            session.release(question_of(query, dp.AddRemove()))
    assert entries(session) == 9


# -- kinds of columns ----------------------------------------


def counts(*keys: Any) -> Sum:
    return Sum(keys, (), True)


WRONG_KINDS = {
    "levels of keys": counts(Levels("k", 3)),
    "one key's label": counts(Subset("k", (0,))),
    "all labels": counts(Split("k", (0,))),
    "bins of keys": counts(Bins("k", (0.0, 1.0))),
    "a range of keys": counts(Between("k", 0.0, 1.0)),
    "a sum of keys": Sum((), (Factor("k", X.encoding),), True),
    "a sum of levels": Sum((), (Factor("c", X.encoding),), True),
    "levels of numbers": counts(Levels("x", 2)),
    "bins of levels": counts(Bins("c", (0.0, 1.0))),
    "a range of levels": counts(Between("c", 0.0, 1.0)),
    "a level too many": counts(Levels("c", 3)),
    "a code too far": counts(Subset("c", (2,))),
    "no level at all": counts(Subset("c", (-1,))),
    "a split too far": counts(Split("c", (0, 5))),
    "a grid of keys": TreeCounts((), Factor("k", X.encoding), True, 4, 2),
    "candidates by keys": CandidateScores((CandidateGroup((Levels("k", 2),)),)),
    "a contrast of keys": queries_of(LevelComponent("k", (1, 0)), 0)[0],
    "a contrast of numbers": queries_of(LevelComponent("x", (1, 0)), 0)[0],
    "a number of levels": queries_of(NumberComponent(Factor("c", X.encoding)), 0)[0],
    "parts of keys": PartRejections((), ("k",), 2, Fraction(1, 5), "t", lambda column: 1.0),
}


@pytest.mark.parametrize("name", WRONG_KINDS)
def test_no_part_reads_a_column_of_another_kind(name: str) -> None:
    session = session_of(UNITS, 3)  # bounding has read all columns once
    dp.count(session, spend=dp.PureDP(0.1))
    paid = entries(session)
    with pytest.raises(InvalidParameter, match="another kind"):
        session.release(question_of(WRONG_KINDS[name], UNITS))
    assert entries(session) == paid


def test_an_open_watch_reads_no_column_of_another_kind() -> None:
    session = session_of(dp.AddRemove(), 3)
    watch = dp.watch(session, 2, spend=dp.PureDP(0.5))
    for key in (Subset("k", (0,)), Between("c", 0.0, 1.0), Subset("c", (7,))):
        with pytest.raises(InvalidParameter, match="another kind"):
            watch._noisy.above(CandidateScores((CandidateGroup((key,)),)))


def test_labels_of_keys_are_not_kept_as_codes_of_levels() -> None:
    # below the session, where nothing is checked any more
    rows = memory_engine_from_arrays(
        {"k": ["b", "a"], "x": [0.1, 0.2], "c": ["a", "b"]}, Schema(SCHEMA), dp.AddRemove()
    )
    rows.open_labels("k")
    with pytest.raises(AssertionError):
        rows.level_codes("k")


def test_a_number_of_levels_is_positive() -> None:
    for size in (0, -1, True, 1 << 40):
        with pytest.raises(InvalidParameter):
            Levels("c", size)


def test_a_part_without_a_rule_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "_RULES", {})
    assert reads.misread(counts(Levels("c", 2)), Schema(SCHEMA)) is not None
    assert reads.misread(counts(), Schema(SCHEMA)) is None


# -- numbers that overflow or vanish ----------------------------------------


@pytest.mark.parametrize(
    ("center", "per_unit"), [(1e300, 1e300), (0.0, 1e300), (1e308, 2.0), (0.0, 5e-324)]
)
def test_a_grid_that_only_some_passes_can_read_is_refused(center: float, per_unit: float) -> None:
    # numpy reads it, the compiled pass for many rows does not
    with pytest.raises(InvalidParameter, match="finite grid"):
        Encoding(center, per_unit, -3, 3)


def test_the_grids_of_declared_columns_are_read_by_every_pass() -> None:
    for low, high in ((-1e60, 1e60), (0, 1e-60), (1e59, 1e60), (0, 1)):
        column = dp.Real(low, high)
        limits = encoding_limits(column, column.encoding(16))
        table = number_table(NumberComponent(Factor("x", column.encoding(16)), "linear", 0.0, 1.0))
        matrix = np.zeros((1, 1), dtype=np.int16)
        assert loops._encoding_fits(np.zeros(1), limits, table, matrix, 0, 0)


def test_an_estimating_function_that_rounds_to_nothing_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="rounds to 0"):
        TabulatedResidual((0,) * 64 + (1,) * 65)
    assert psi_bound(TabulatedResidual((0,) * 64 + (32,) * 65)) == 1
    data = {"x": np.linspace(0, 1, 50), "y": np.linspace(0, 1, 50)}
    schema = {"x": dp.Real(0, 1), "y": dp.Real(0, 1)}
    session = dp.from_arrays(data, schema=schema, neighbors=dp.AddRemove()).open(budget=dp.GDP(1))
    for size in (1e-6, 2e-5):
        with pytest.raises(InvalidParameter):
            dp.m_estimate(
                session,
                "y ~ x",
                psi=lambda r, size=size: size * np.clip(r, -1, 1),
                spend=dp.GDP(0.5),
            )
    assert entries(session) == 0


@pytest.mark.parametrize("part", ["curvature", "scores"])
def test_multipliers_are_finite_whatever_the_bounds_are(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_kernels, "psi_bound", lambda family: 0)
    monkeypatch.setattr(model_kernels, "slope_bound", lambda family: 0)
    model = Model((ModelColumn("one", ()),), ModelResponse(X))
    plan = EstimatingPlan(model, METRIC, part, Huber(1.0), Point((0,), 0, 1.0))
    weights, zeros = np.zeros(3, dtype=np.int32), np.zeros(3, dtype=np.int32)
    found = model_kernels.multipliers(plan, weights, np.zeros((3, 1)), zeros, None)
    assert np.isfinite(found).all()
