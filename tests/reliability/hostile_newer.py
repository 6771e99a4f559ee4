"""Calls of learners, synthetic data, posteriors, functions on parts and plans, for the trials of
`hostile.py`; and the public names that no trial walks, each with the reason.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import discreet as dp
from discreet.specs.queries.parts import PartRejections
from hostile import Call, asking, fresh_session

ROWS = dp.Replace()
MUCH = dp.GDP(5.0)

# Why a public name has no trial of its own
NOT_WALKED = {
    **dict.fromkeys(
        (
            *("from_batches", "from_database", "from_frame", "from_spark"),
            *("read", "read_csv", "read_parquet", "declare"),
        ),
        "data are read cell by cell (engine_fuzz); what declares them is that of from_arrays",
    ),
    **dict.fromkeys(
        ("load_census", "load_visits"), "made-up tables; what declares them is that of from_arrays"
    ),
    **dict.fromkeys(
        ("read_plan", "write_declaration"), "paths and texts of the holder's own, read as TOML"
    ),
    "connect": "speaks to a service, which reads JSON alone (tests/server)",
    "audit": "runs made-up rows in sessions of its own, and no data of anybody's",
    **dict.fromkeys(
        ("Dataset", "Session", "Ledger", "Watch", "Release", "ReleasePlan", "BundledTable"),
        "made by what is walked, and their own methods are",
    ),
    **dict.fromkeys(
        ("Result", "SelectionResult", "PLD", "TradeOff"),
        "results and curves: computed from public numbers, and nothing reads them back",
    ),
    **dict.fromkeys(("trial",), "walked inside tune"),
}


def newer_quick_calls() -> list[Call]:
    """Of one release each."""
    return [
        asking(dp.std, column="y"),
        asking(dp.missing, columns=["x", "c"]),
        asking(dp.describe, columns=["k"], spend=MUCH),
        asking(dp.trimmed_mean, column="k", trim=0.25, spend=MUCH),
        asking(
            dp.friendly_mean,
            columns=["x"],
            radius=300.0,
            delta=1e-6,
            refine=False,
            spend=MUCH,
            relation=ROWS,
        ),
        asking(dp.posterior, family=dp.BetaBinomial("b", prior=(1.0, 1.0)), naive=False),
        asking(
            dp.posterior_sample,
            family=dp.BetaBinomial("b"),
            grid=[0.1, 0.5, 0.9],
            samples=2,
            spend=dp.PureDP(0.5),
        ),
        Call(
            "Session.book",
            lambda session, given: session.book(**given).amounts.exact(),
            {"spend": dp.GDP(0.5), "note": "elsewhere", "key": "booked"},
        ),
        Call(
            "spend_needed",
            lambda session, given: dp.spend_needed(dp.proportion_test, **given),
            {"rows": 500, "power": 0.8, "kind": "PureDP", "null": 0.5, "share": 0.7},
        ),
    ]


def newer_slow_calls() -> list[Call]:
    """Of several releases, or with processes and plans of their own."""
    return [
        asking(dp.erm, formula="b ~ x", loss="logistic", penalty=1.0, spend=MUCH, relation=ROWS),
        asking(dp.accuracy, fit=fitted(), where={"c": "N"}),
        asking(dp.residuals, fit=fitted_line(), spend=MUCH, relation=ROWS),
        asking(
            dp.tune,
            candidates=[dp.trial(dp.ols, "y ~ x")],
            score="squared error",
            trials=2,
            eta=0,
            spend=MUCH,
            relation=ROWS,
        ),
        asking(
            dp.synthesize,
            columns=["c", "b"],
            bins={},
            analyses=["c by b"],
            spend=MUCH,
            relation=ROWS,
        ),
        asking(
            dp.mwem,
            columns=["d", "f"],
            bins={},
            queries="pairs",
            rounds=2,
            variant="replay",
            spend=MUCH,
            relation=ROWS,
        ),
        asking(
            dp.friendly_clusters,
            columns=["x"],
            k=1,
            radius=300.0,
            parts=2,
            delta=1e-6,
            spend=MUCH,
            relation=ROWS,
        ),
        asking(
            dp.subsample,
            function=_constant,
            columns=["x"],
            output=dp.Real(0, 1),
            parts=2,
            aggregate="mean",
            spend=MUCH,
            relation=ROWS,
        ),
        Call(
            "smallest_effect",
            lambda session, given: dp.smallest_effect(dp.proportion_test, **given),
            {"rows": 500, "spend": dp.PureDP(0.5), "power": 0.8, "null": 0.5},
        ),
    ]


def _constant(x: Any) -> float:
    return 0.5  # of every part: parts are random, and no seed fixes them


@functools.cache
def fitted() -> Any:
    return dp.logistic(fresh_session(dp.AddRemove()), "b ~ x", spend=MUCH)


@functools.cache
def fitted_line() -> Any:
    return dp.ols(fresh_session(ROWS), "y ~ x", spend=MUCH)


def newer_specifications() -> list[Any]:
    """Declarations of columns and of posteriors."""
    return [
        dp.Date("2020-01-01", "2020-12-31"),
        dp.Datetime("2020-01-01", "2020-01-02"),
        dp.BetaBinomial("b", (1.0, 1.0)),
        dp.DirichletMultinomial("c", (1.0, 1.0, 1.0)),
        dp.GammaPoisson("k", (2.0, 1.0)),
        dp.NormalModel("x", (50.0, 1.0, 1.0, 1.0)),
        dp.LinearModel("y ~ x", (1.0, 1.0, 1.0, 2.0)),
    ]


def made(value: Any) -> Call:
    """The constructor of a specification, with the fields that it holds."""
    kind = type(value)
    fields = [one.name for one in dataclasses.fields(value) if one.init]
    arguments = {name: getattr(value, name) for name in fields}
    return Call(kind.__name__, lambda session, given: kind(**given), arguments)


def asked_specifications(calls: list[Call]) -> list[Any]:
    """One query and one mechanism of each kind that these calls are answered with; a function of
    the caller's own stays one, so what holds it is walked by its call.
    """
    found: dict[type, Any] = {}
    for call in calls:
        if call.asks:
            outcome = call.run(fresh_session(call.relation), dict(call.arguments))
            for release in getattr(outcome, "releases", None) or [
                getattr(outcome, "release", None)
            ]:
                for part in (getattr(release, name, None) for name in ("query", "mechanism")):
                    if dataclasses.is_dataclass(part) and type(part) is not PartRejections:
                        found.setdefault(type(part), part)
    return list(found.values())


def newer_specification_calls(calls: list[Call]) -> list[Call]:
    """Specifications that are declared, and those that calls are answered with."""
    return [made(one) for one in [*newer_specifications(), *asked_specifications(calls)]]
