"""Hostile objects for every parameter, and what must hold when one is handed in.

A hostile object holds a right value and behaves otherwise: its hash changes, it equals everything
or nothing, its text lies or fails, its number or its items are others each time, its class is not
what it says. A trial hands one of them to one parameter of one call. It is sound if the call is
refused with a `DiscreetError`, or ends exactly as with the plain value: the same integers from the
same seed, the same price, nothing kept but exact built-in types. Here are the calls;
`hostile_objects` makes the values, `hostile_trials` yields the trials (`trials`, `some`) and runs
one (`judge`).

`tests/reliability/test_hostile_objects.py` runs a part of them, `benchmarks/hostile.py` all.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import discreet as dp
from discreet import client
from discreet.encoding import Encoding
from discreet.estimators import questions
from discreet.schema import Schema
from discreet.sensitivity import L1, L2, Frobenius, LInf, OneRow, Rows
from discreet.specs.mechanisms import local as local_specs
from discreet.specs.mechanisms.gradient_requests import GradientRequest
from discreet.specs.queries.histograms import GridCounts
from discreet.specs.queries.keys import Between, Bins, Levels, Split, Subset
from discreet.specs.queries.moments import DESIGNS, Moments
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.sums import Sum
from discreet.testing import seeded_session
from discreet.trusted.extensions.local.gradients import LocalGradients
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.losses.pricing import Price, price_of_spend
from discreet.trusted.release import Description

# -- calls ----------------------------------------

SCHEMA: dict[str, Any] = {
    "x": dp.Real(0, 100),
    "y": dp.Real(-10, 10),
    "k": dp.Integer(0, 7),
    "b": dp.Boolean(),
    "c": dp.Category(["N", "S", "E"]),
    "d": dp.Category(["N", "S"], missing="N"),
    "f": dp.Boolean(missing=False),
}
ROWS = 60
SECRETS = ("73.195", "4.4179", "planted")
CELLS: dict[str, list[Any]] = {
    "x": [73.19573125, 4.417911, *[1.5 * row for row in range(ROWS - 2)]],
    "y": [row % 20 - 9.5 for row in range(ROWS)],
    "k": [row % 8 for row in range(ROWS)],
    "b": [row % 3 == 0 for row in range(ROWS)],
    "c": ["planted-7731", *["NSE"[row % 3] for row in range(ROWS - 1)]],
    "d": ["NS"[row % 2] for row in range(ROWS)],
    "f": [row % 4 == 0 for row in range(ROWS)],
}
GAUSSIAN, PURE = dp.GDP(0.5), dp.PureDP(0.5)
BUDGET = dp.ApproxDP(1e5, 0.1)


_DATA: dict[str, Any] = {}


def fresh_session(relation: Any) -> Any:
    """A session whose noise repeats, with a new ledger."""
    data = _DATA.setdefault(str(relation), dp.from_arrays(CELLS, schema=SCHEMA, neighbors=relation))
    return seeded_session(data, Ledger.open(BUDGET, pure=1e4, delta0=0.01), 7)


@dataclass(frozen=True)
class Call:
    """A call with right arguments; where it `asks`, it is paid for,
    and a key makes it repeatable.
    """

    name: str
    run: Callable[[Any, dict[str, Any]], Any]
    arguments: dict[str, Any]
    asks: bool = False
    relation: Any = dp.AddRemove()  # noqa: RUF009


def asking(asked: Any, /, relation: Any = None, **arguments: Any) -> Call:
    """A public function that asks a session."""
    named = {"spend": GAUSSIAN, "key": "asked once", **arguments}

    def run(session: Any, given: dict[str, Any]) -> Any:
        return asked(session, **given)

    return Call(asked.__name__, run, named, True, dp.AddRemove() if relation is None else relation)


def estimator_calls() -> list[Call]:
    """Every public function that asks a session, small and quick."""
    rows = dp.Replace()
    return [
        asking(dp.count, where={"c": "N", "x": (0, 50)}),
        asking(dp.sum, column="k"),
        asking(dp.mean, column="x", where={"b": True}),
        asking(dp.variance, column="y"),
        asking(dp.proportion, column="c", level="N"),
        asking(dp.histogram, column="x", bins=[0.0, 10.0, 100.0]),
        asking(dp.histogram, column="y", bins=4),
        asking(dp.histogram, column="x", bins=np.array([0.0, 50.0, 100.0])),
        asking(dp.table, by=["c", "b"]),
        asking(dp.table, column="k", by={"x": [0.0, 50.0, 100.0]}),
        asking(dp.ecdf, column="k", points=4),
        asking(dp.density, column="x", bins=4),
        asking(
            dp.select, candidates={"low": {"x": (0, 10)}, "north": {"c": "N"}}, method="exponential"
        ),
        asking(dp.mode, column="c"),
        asking(dp.top, candidates="c", k=2),
        asking(dp.above_threshold, questions=[{"c": "N"}, {"b": True}], threshold=3, positives=1),
        asking(dp.covariance, columns=["x", "y"]),
        asking(dp.correlation, columns=("x", "y")),
        asking(dp.median, column="k"),
        asking(dp.quantile, column="k", q=0.25),
        asking(dp.quantiles, column="k", qs=[0.25, 0.5]),
        asking(dp.iqr, column="k"),
        asking(dp.mad, column="k"),
        asking(dp.truncated_mean, column="x", bound=100.0),
        asking(dp.proportion_test, column="b", null=0.5, alternative="two-sided", relation=rows),
        asking(dp.compare, column="b", by="d"),
        asking(dp.independence_test, first="c", second="b"),
        asking(dp.goodness_of_fit, column="d", expected=[0.5, 0.5]),
        asking(dp.rank_test, column="x", by="d", bins=4),
        asking(dp.mean_test, column="x", null=50.0),
        asking(dp.compare_means, column="x", by="d"),
        asking(dp.paired_test, first="x", second="y", null=0.0),
        asking(dp.subsample_test, test=_rejects, columns=["x"], parts=4, inner=0.25),
    ]


def slow_calls() -> list[Call]:
    """Procedures of several releases, and a plan."""
    return [
        Call(
            "plan",
            lambda session, given: dp.plan(**given),
            {"epsilon": 1.0, "delta": 1e-6, "steps": 10, "noise": "laplace", "accountant": "pld"},
        ),
        asking(dp.ols, formula="y ~ x", relation=dp.Replace(), spend=dp.GDP(5.0)),
        asking(dp.unbounded_mean, column="x", spend=dp.GDP(5.0)),
        asking(dp.location, column="x", spend=dp.GDP(5.0)),
        asking(dp.robust, formula="y ~ x", relation=dp.Replace(), spend=dp.GDP(5.0), c=1.5),
        asking(dp.logistic, formula="b ~ x", where={"c": "N"}, spend=dp.GDP(5.0)),
        asking(dp.poisson, formula="k ~ x", spend=dp.GDP(5.0)),
        asking(
            dp.network,
            formula="b ~ x",
            hidden=(3,),
            activation="tanh",
            clip=2.0,
            solver=dp.SGD(5, 4, delta=1e-6),
            spend=dp.GDP(5.0),
        ),
        asking(dp.m_estimate, formula="y ~ x", psi=_huber, reach=2, spend=dp.GDP(5.0)),
        Call(
            "power",
            lambda session, given: dp.power(dp.proportion_test, **given),
            {"rows": 500, "spend": dp.PureDP(0.5), "alpha": 0.05, "null": 0.5, "share": 0.6},
        ),
        Call(
            "sample_size",
            lambda session, given: dp.sample_size(dp.proportion_test, **given),
            {"spend": dp.PureDP(0.5), "power": 0.8, "null": 0.5, "share": 0.6},
        ),
        Call(
            "holdout",
            _held_out,
            {"threshold": 0.1, "answers": 3, "spend": dp.PureDP(0.5), "training": 0.5},
        ),
        Call("watch", _watched, {"threshold": 3, "spend": dp.PureDP(0.5), "positives": 2}),
    ]


def _huber(residual: float) -> float:
    return max(-1.0, min(1.0, residual))


def _watched(session: Any, given: dict[str, Any]) -> Any:
    watch = dp.watch(session, **given)
    return [watch.above({"c": "N"}), watch.above({"b": True}), watch.left]


def _held_out(session: Any, given: dict[str, Any]) -> Any:
    training = given.pop("training")
    holdout = dp.holdout(session, **given)
    answer = holdout.share({"c": "N"}, training=training)
    return [answer.integer, answer.source, holdout.left]


def _rejects(x: Any) -> float:
    return 0.0  # in every part, whichever rows fall in it: parts are random, and no seed fixes them


def ledger_calls() -> list[Call]:
    """The account's own methods, called on the session's ledger."""
    price = Price(mu_squared=Fraction(1, 100))
    request = {"query": {"kind": "sum"}, "list": [1, 2.5, "a"]}

    def debit(session: Any, given: dict[str, Any]) -> Any:
        paid = session.ledger.debit(**given)
        return session.ledger.store(
            given["key"], lambda: json.dumps({"paid": paid.number})
        ), session.ledger.entries()[1].request

    def reserve(session: Any, given: dict[str, Any]) -> Any:
        return session.ledger.reserve(given["price"], key=given["key"]).remaining().exact()

    def close(session: Any, given: dict[str, Any]) -> Any:
        session.ledger.reserve(price, key="aside")
        first, second = (
            session.ledger.close_reservation(given["reservation"]),
            session.ledger.close_reservation(given["reservation"]),
        )
        return (
            first.exact(),
            second.exact(),
            session.ledger.left_in(given["reservation"]).exact(),
            session.ledger.remaining().exact(),
        )

    def inside(session: Any, given: dict[str, Any]) -> Any:
        session.ledger.reserve(price, key="aside")
        return session.ledger.debit(
            key="inside", request=request, price=price, reservation=given["reservation"]
        ).amounts.exact()

    def set_aside(session: Any, given: dict[str, Any]) -> Any:
        return (
            session.reserve(given["spend"], delta=given["delta"], key=given["key"])
            .remaining()
            .exact()
        )

    def released(session: Any, given: dict[str, Any]) -> Any:
        return session.release(given["question"], key=given["key"])

    def opened(session: Any, given: dict[str, Any]) -> Any:
        ledger = Ledger.open(given["budget"], pure=given["pure"], delta0=given["delta0"])
        return ledger.box, ledger.budget

    question = questions.mean_question(fresh_session(dp.AddRemove()).public, "x", spend=GAUSSIAN)
    return [
        Call("Ledger.debit", debit, {"key": "asked once", "request": request, "price": price}),
        Call("Ledger.reserve", reserve, {"price": [price, price], "key": "aside"}),
        Call("Ledger.reserve one", reserve, {"price": price, "key": "aside"}),
        Call("Ledger.close_reservation", close, {"reservation": "aside"}),
        Call("Ledger.debit inside", inside, {"reservation": "aside"}),
        Call(
            "Ledger.how_many",
            lambda session, given: session.ledger.how_many(given["price"]),
            {"price": price},
        ),
        Call(
            "Ledger.how_many of a spend",
            lambda session, given: session.ledger.how_many(given["spend"]),
            {"spend": GAUSSIAN},
        ),
        Call(
            "Session.remaining",
            lambda session, given: session.remaining(given["delta"]).epsilon,
            {"delta": 1e-6},
        ),
        Call(
            "Ledger.spent_guarantee",
            lambda session, given: session.ledger.spent_guarantee(given["delta"]),
            {"delta": 1e-6},
        ),
        Call(
            "Ledger.replay",
            lambda session, given: (
                session.ledger.replay(given["accountant"], delta=given["delta"]).epsilon
            ),
            {"accountant": "gdp", "delta": 1e-6},
        ),
        Call(
            "Session.reserve", set_aside, {"spend": GAUSSIAN, "delta": Fraction(0), "key": "aside"}
        ),
        Call("Session.release", released, {"question": question, "key": "asked once"}, True),
        Call(
            "Session.price",
            lambda session, given: session.price(given["question"]),
            {"question": question},
        ),
        Call(
            "Ledger.open", opened, {"budget": dp.ApproxDP(1.0, 1e-6), "pure": 0.5, "delta0": 1e-7}
        ),
    ]


def other_calls() -> list[Call]:
    """Declarations, guarantees and devices."""
    spec = client.RandomizedResponse(dp.Category(["a", "b", "c"]), 1)

    def declared(session: Any, given: dict[str, Any]) -> Any:
        data = dp.from_arrays(CELLS, **given)
        return data.schema.to_dict(), data.neighbors, seeded_session(data, BUDGET, 1).public.count

    def reported(session: Any, given: dict[str, Any]) -> Any:
        record = json.loads(client.report(given["spec"], "a"))
        return {**record, "answer": 0}

    def gradient(session: Any, given: dict[str, Any]) -> Any:
        record = LocalGradients(given["mu"], given["rounds"]).report(
            given["x"], given["y"], given["request"]
        )
        return {**record, "integers": len(record["integers"])}

    def call(function: Any, **arguments: Any) -> Call:
        return Call(function.__name__, lambda session, given: function(**given), arguments)

    return [
        Call(
            "from_arrays",
            declared,
            {
                "schema": {"x": dp.Real(0, 100), "c": dp.Category(["N", "S"])},
                "neighbors": dp.Replace(unit="k", max_rows=3),
                "name": "cells",
            },
        ),
        call(dp.explain, guarantee=dp.ApproxDP(1.0, 1e-6), false_alarm=0.05, delta=1e-6),
        Call(
            "split",
            lambda session, given: dp.ApproxDP(1.0, 1e-6).split(
                given["parts"], pure=given["pure"], delta0=given["delta0"]
            ),
            {"parts": {"tables": 3, "model": 1.5}, "pure": 0.25, "delta0": 1e-7},
        ),
        Call(
            "compose",
            lambda session, given: dp.compose(given["first"], given["second"]),
            {"first": dp.GDP(0.5), "second": dp.PureDP(1.0)},
        ),
        call(
            dp.rows_needed,
            spend=GAUSSIAN,
            width=2.0,
            standard_deviation=5.0,
            low=0.0,
            high=100.0,
            level=0.95,
        ),
        Call("report", reported, {"spec": spec}),
        Call(
            "read_spec",
            lambda session, given: client.read_spec(given["text"]),
            {"text": json.dumps(spec.to_dict())},
        ),
        Call(
            "LocalGradients.report",
            gradient,
            {
                "mu": 1.0,
                "rounds": 3,
                "x": [1.0, 2.0],
                "y": 1.0,
                "request": GradientRequest(1, (0.5, 0.25)),
            },
        ),
        Call(
            "from_json",
            lambda session, given: dp.from_json(given["text"]),
            {
                "text": dp.mean(
                    fresh_session(dp.AddRemove()), "x", spend=GAUSSIAN, key="k"
                ).to_json()
            },
        ),
        Call(
            "preview",
            lambda session, given: (
                dp.preview(
                    session,
                    dp.mean,
                    given["column"],
                    spend=given["spend"],
                    assume=given["assume"],
                    level=given["level"],
                ).width
            ),
            {"column": "x", "spend": GAUSSIAN, "assume": dp.Assumptions(rows=100), "level": 0.9},
        ),
    ]


def specifications() -> list[Any]:
    """One of each kind of specification whose fields a caller can give."""
    grid = SCHEMA["x"].encoding()
    factor, levels = Factor("x", grid), Levels("c", 3)
    public = fresh_session(dp.AddRemove()).public
    asked = [
        questions.histogram_question(public, "c", spend=PURE),
        questions.mean_question(public, "x", spend=GAUSSIAN),
        questions.mean_question(public, "x", spend=PURE),
    ]
    return [
        *SCHEMA.values(),
        dp.Open(),
        Encoding(0.5, 2.0, -1, 1),
        grid,
        dp.Replace(),
        dp.Replace(unit="id", max_rows=3),
        dp.AddRemove(unit="id", max_rows=2),
        dp.GDP(0.5),
        dp.PureDP(1.0),
        dp.ApproxDP(1.0, 1e-6),
        dp.ZCDP(0.25),
        dp.RDP((2.0, 4.0), (0.1, 0.2)),
        Price(epsilon=Fraction(1, 2), delta=Fraction(1, 10**6)),
        L1(Fraction(3)),
        L2(Fraction(5)),
        Frobenius(2, Fraction(7)),
        LInf(Fraction(1), True),
        Rows(2, "replaced"),
        OneRow(Fraction(1), "replaced", 10),
        levels,
        Bins("x", (0.0, 1.0, 2.0)),
        Subset("c", (0, 1)),
        Split("c", (0,)),
        Between("x", 0.0, 1.0),
        factor,
        Sum((levels,), (factor,), True),
        GridCounts((), factor, False),
        Moments((), factor, DESIGNS["mean-add-l2"], False),
        Description("mean", "x", ("c",), (("a", "b"),), "x is 1", (0.5, 1.0)),
        *(one.mechanism for one in asked),
        *(one.query for one in asked),
        GradientRequest(1, (0.5, 0.25)),
        dp.GradientDescent(steps=5),
        dp.Newton(steps=2),
        dp.SGD(),
        dp.Assumptions(rows=10.0),
        local_specs.RandomizedResponse(SCHEMA["c"], Fraction(1)),
        local_specs.UnaryResponse(SCHEMA["c"], Fraction(1)),
        local_specs.LaplaceResponse(SCHEMA["x"], Fraction(1)),
        local_specs.GaussianResponse(SCHEMA["x"], mu=Fraction(1)),
        local_specs.OneBitResponse(SCHEMA["x"], Fraction(1)),
        local_specs.HadamardResponse(SCHEMA["c"], Fraction(1)),
    ]


def _making(kind: type) -> Callable[[Any, dict[str, Any]], Any]:
    return lambda session, given: kind(**given)


def specification_calls() -> list[Call]:
    calls = []
    for value in specifications():
        arguments = {
            one.name: getattr(value, one.name) for one in dataclasses.fields(value) if one.init
        }
        calls.append(Call(type(value).__name__, _making(type(value)), arguments))
    calls.append(
        Call(
            "Schema",
            lambda session, given: Schema(given["columns"]).to_dict(),
            {"columns": {"x": dp.Real(0, 1), "c": dp.Category(["N"])}},
        )
    )
    calls.append(
        Call(
            "price_of_spend",
            lambda session, given: price_of_spend(given["spend"], box=given["box"]),
            {"spend": GAUSSIAN, "box": Price(mu_squared=Fraction(1))},
        )
    )
    return calls


def quick_calls() -> list[Call]:
    return [*estimator_calls(), *ledger_calls(), *other_calls(), *specification_calls()]
