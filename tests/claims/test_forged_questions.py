"""Claim: a question whose parts do not belong together is refused before the debit."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from fractions import Fraction

import pytest
from tests.claims.test_one_meeting_point import DATA, SCHEMA, watched_session

import discreet as dp
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise, laplace_noise
from discreet.encoding import Encoding
from discreet.errors import (
    InvalidParameter,
    NeighborsMissing,
)
from discreet.estimators import questions
from discreet.neighbors import require_neighbors
from discreet.schema import Schema
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import GaussianNoise
from discreet.specs.mechanisms.open_keys import ThresholdedCounts, key_count_sensitivity
from discreet.specs.queries.histograms import GridCounts
from discreet.specs.queries.keys import Between, Bins, Held, Levels, Split, Subset, may_leave_out
from discreet.specs.queries.moments import DESIGNS, Moments
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.sums import GramMatrix, Sum
from discreet.trusted.datasets import Dataset
from discreet.trusted.release import Question, plain_question

# -- forged questions ------------------------------------------------------------------------------

X, COARSE = Factor("x", SCHEMA["x"].encoding(16)), Factor("x", SCHEMA["x"].encoding(10))
HALF, MU = Fraction(1, 2), Fraction(1, 4)


class SmallSum(Sum):
    """A query that lies about its sensitivity."""

    def sensitivity(self, neighbors):
        return L1(Fraction(1, 100)), L2(Fraction(1, 100))


class QuietGaussian(GaussianNoise):
    """A mechanism that draws less noise than it is charged for."""

    @property
    def steps(self):
        return Fraction(1 << 10)


def forged_questions(public):
    """Questions whose statistic, noise and spend do not belong together."""
    right = questions.histogram_question(public, "g", spend=dp.GDP(0.5))
    mean = questions.mean_question(public, "x", spend=dp.GDP(0.5))
    pure = questions.histogram_question(public, "g", spend=dp.PureDP(0.5))
    asked, spend = right.description, dp.GDP(0.5)
    exact = right.mechanism.sensitivity
    yield (
        "half the sensitivity",
        dataclasses.replace(right, mechanism=gaussian_noise(L2(exact.squared / 4), MU)),
    )
    yield (
        "half the pure sensitivity",
        dataclasses.replace(
            pure, mechanism=geometric_noise(L1(pure.mechanism.sensitivity.value / 2), HALF)
        ),
    )
    yield "the noise of another question", dataclasses.replace(mean, mechanism=right.mechanism)
    yield (
        "a query that lies",
        Question(asked, SmallSum((), (X,), False), gaussian_noise(L2(Fraction(1, 100)), MU), spend),
    )
    yield (
        "a mechanism that lies",
        dataclasses.replace(
            right,
            mechanism=QuietGaussian(exact, right.mechanism.spread, right.mechanism.refinement),
        ),
    )
    yield (
        "noise for another kind of statistic",
        Question(asked, GridCounts((), X, False), right.mechanism, spend),
    )
    values = GridCounts((), X, False)
    if not isinstance(public.neighbors, dp.Replace):
        rows = values.sensitivity(public.neighbors)
        noise = gaussian_noise(key_count_sensitivity(rows)[1], MU)
        threshold = (rows.rows + 9) * 2**noise.refinement * (1 + int(noise.spread))
        yield (
            "a threshold on a column that declares its values",
            Question(asked, values, ThresholdedCounts(rows, noise, threshold), spend, HALF),
        )
    yield "more than the spend", dataclasses.replace(right, spend=dp.GDP(0.49))
    yield "more than the pure spend", dataclasses.replace(pure, spend=dp.PureDP(0.49))
    yield (
        "more than the approximate spend",
        dataclasses.replace(right, spend=dp.ApproxDP(0.5, 1e-9)),
    )
    yield "a Gaussian for a pure spend", dataclasses.replace(right, spend=dp.PureDP(100.0))
    for key in (
        Subset("g", (0,)),
        Between("x", 0.0, 5.0),
        Levels("g", 2),
        Levels("h", 1),
        Levels("b", 1),
        Bins("x", (0.0, 5.0)),
        Bins("x", (1.0, 2e7)),
    ):
        query = Moments((key,), COARSE, DESIGNS["variance-l2"], False)
        yield (
            f"every row counts, with {key.kind}",
            Question(asked, query, gaussian_noise(query.sensitivity(public.neighbors), MU), spend),
        )


@pytest.mark.parametrize(
    "neighbors", [dp.Replace(), dp.AddRemove(), dp.Replace(unit="id", max_rows=2)], ids=str
)
def test_a_question_whose_parts_do_not_belong_together_is_refused_before_the_debit(neighbors):
    session, engine = watched_session(neighbors)
    head = session.ledger.head
    for name, question in forged_questions(session.public):
        with pytest.raises(InvalidParameter, match="a question"):
            pytest.fail(f"{name} was released: {session.release(question)}")
    assert session.ledger.head == head
    assert engine.reads == 0


def test_the_noise_of_the_other_relation_is_refused():
    """A histogram's ℓ₁ sensitivity is 2 under Replace and 1 under AddRemove,
    and k times that for units.
    """
    relations = [
        dp.Replace(),
        dp.AddRemove(),
        dp.Replace(unit="id", max_rows=2),
        dp.AddRemove(unit="id", max_rows=3),
    ]
    sessions = {neighbors: watched_session(neighbors)[0] for neighbors in relations}
    for built_for in relations:
        question = questions.histogram_question(
            sessions[built_for].public, "h", spend=dp.PureDP(0.5)
        )
        for asked_of, session in sessions.items():
            same = (
                question.mechanism.sensitivity
                == questions.histogram_question(
                    session.public, "h", spend=dp.PureDP(0.5)
                ).mechanism.sensitivity
            )
            assert same == (built_for == asked_of)
            with (
                contextlib.nullcontext()
                if same
                else pytest.raises(InvalidParameter, match="not calibrated")
            ):
                session.release(question)


def test_right_questions_of_every_kind_are_answered():
    for neighbors in (
        dp.Replace(),
        dp.AddRemove(),
        dp.Replace(unit="id", max_rows=2),
        dp.AddRemove(unit="id", max_rows=2),
    ):
        session, _ = watched_session(neighbors)
        for spend in (dp.GDP(0.3), dp.PureDP(0.7), dp.ApproxDP(0.9, 1e-7)):
            for result in (
                dp.mean(session, "x", spend=spend),
                dp.variance(session, "x", spend=spend),
                dp.histogram(session, "h", spend=spend),
                dp.count(session, spend=spend, where={"g": "a"}),
            ):
                assert result.release.spend == spend
    gram = GramMatrix((X,))
    session, _ = watched_session(dp.Replace())
    asked = questions.histogram_question(session.public, "g", spend=dp.GDP(0.5)).description
    assert session.release(
        Question(asked, gram, gaussian_noise(gram.sensitivity(dp.Replace()), MU), dp.GDP(0.5))
    ).integers
    right = questions.mean_question(session.public, "x", spend=dp.PureDP(0.5))
    in_mu = dataclasses.replace(
        right, spend=dp.GDP(0.63), mechanism=laplace_noise(right.mechanism.sensitivity, HALF)
    )
    assert session.release(in_mu).guarantee == dp.PureDP(0.5)  # 0.5-DP is 0.624-GDP


def test_keys_know_which_rows_they_leave_out():
    filled = Schema({**SCHEMA, "x": dp.Real(0, 1e7, missing=0), "b": dp.Boolean(missing=True)})
    total = [
        Levels("h", 2),
        Levels("b", 2),
        Bins("x", (0.0, 5.0, 1e7)),
        Bins("x", (-1.0, 2e7)),
        *(Held(name) for name in "xhb"),
    ]
    assert not any(may_leave_out(key, filled) for key in [*total, Split("g", (0,))])
    assert all(may_leave_out(key, SCHEMA) for key in total if key.column != "h")
    assert not may_leave_out(Split("b", (0,)), SCHEMA)
    partial = [
        Held("g"),
        Levels("g", 2),  # it says no level for missing cells
        Levels("h", 1),
        Levels("b", 1),
        Bins("x", (0.0, 5.0)),
        Bins("x", (1.0, 1e7)),
        Subset("g", (0, 1)),
        Between("x", 0.0, 1e7),
    ]
    # also where it is not missing cells that are left out
    assert all(may_leave_out(key, schema) for key in partial for schema in (SCHEMA, filled))
    with pytest.raises(dp.UndeclaredColumn):
        may_leave_out(Levels("nobody", 2), SCHEMA)


def test_forged_designs_and_grids_cannot_be_made():
    with pytest.raises(InvalidParameter, match="proven"):
        Moments((), X, dataclasses.replace(DESIGNS["mean-add-l2"], add=Fraction(1, 10)), False)
    for wrong in (
        {"per_unit": math.inf},
        {"per_unit": math.nan},
        {"per_unit": -1.0},
        {"center": math.nan},
        {"low": 5, "high": 5},
        {"high": 2**31},
        {"low": -(2**31)},
    ):
        with pytest.raises(InvalidParameter, match="grid"):
            Encoding(**{"center": 0.0, "per_unit": 1.0, "low": -5, "high": 5} | wrong)


def test_a_relation_that_lies_or_differs_from_the_engines_is_refused():
    class OneRow(dp.Replace):
        rows = 1

    with pytest.raises(NeighborsMissing):
        require_neighbors(OneRow(unit="id", max_rows=50))
    with pytest.raises(NeighborsMissing):
        dp.from_arrays(DATA, schema=SCHEMA, neighbors=OneRow(unit="id", max_rows=50))
    data = dp.from_arrays(DATA, schema=SCHEMA, neighbors=dp.Replace(unit="id", max_rows=50))
    for name, other in (
        ("neighbors", dp.Replace(unit="id", max_rows=1)),
        ("schema", Schema({"x": dp.Real(0, 1)})),
    ):
        with pytest.raises(AttributeError):
            setattr(data, name, other)
    for schema, neighbors in (
        (SCHEMA, dp.Replace(unit="id", max_rows=1)),
        (Schema({"x": dp.Real(0, 1)}), data.neighbors),
    ):
        with pytest.raises(InvalidParameter, match="another schema or neighbour relation"):
            Dataset(data._engine, schema, neighbors).open(budget=dp.GDP(1.0))


def test_the_public_facts_of_a_session_cannot_be_exchanged():
    session, _ = watched_session(dp.Replace())
    with pytest.raises(AttributeError):
        session.public = dataclasses.replace(session.public, neighbors=dp.AddRemove())
    with pytest.raises(dataclasses.FrozenInstanceError):
        session.public.neighbors = dp.AddRemove()


@pytest.mark.parametrize("spend", [dp.ApproxDP(1e6, 0.5), dp.ApproxDP(1e-9, 1e-17)], ids=str)
def test_a_spend_whose_guarantee_cannot_be_stated_is_refused_before_the_debit(spend):
    session, engine = watched_session(dp.AddRemove(), budget=dp.ApproxDP(1e6, 0.9))
    head = session.ledger.head
    with pytest.raises(InvalidParameter):
        dp.count(session, spend=spend)
    assert session.ledger.head == head
    assert engine.reads == 0


def test_what_runs_is_nothing_that_the_caller_holds():
    """Each part is a new one: what is changed in the caller's after the check changes nothing."""
    public = watched_session(dp.Replace())[0].public
    given = questions.mean_question(public, "x", spend=dp.GDP(0.5))
    own = plain_question(given)
    assert own == given
    for name in ("description", "query", "mechanism", "spend"):
        assert getattr(own, name) is not getattr(given, name), name
    held = own.to_dict()
    object.__setattr__(given.query.factor, "column", "g")
    object.__setattr__(given.mechanism, "spread", Fraction(0))
    object.__setattr__(given.spend, "mu", 100.0)
    assert own.to_dict() == held
