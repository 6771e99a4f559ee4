"""Wrong calls that people from R, pandas, scikit-learn and other privacy libraries write first,
each with the class of its refusal and a word that the text must hold.

A call takes a `Desk`: sessions, data and files that are in order, so that the call alone is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dp


@dataclass(frozen=True)
class Desk:
    """What a person has before the wrong call."""

    session: Any
    data: Any
    columns: dict[str, Any]
    schema: dict[str, Any]
    fit: Any
    mean: Any
    table: Any
    folder: Path

    def declared(self, **changes: Any) -> Any:
        """The same data, declared in another way."""
        wanted = {"schema": self.schema, "neighbors": dp.Replace()} | changes
        return dp.from_arrays(self.columns, **wanted)


@dataclass(frozen=True)
class WrongCall:
    """A call, the class of its refusal, and a word of its text."""

    name: str
    call: Callable[[Desk], Any]
    word: str
    error: type[dp.DiscreetError] = dp.InvalidParameter


MU = dp.GDP(0.1)
OTHER_COLUMN = dp.UndeclaredColumn
OTHER_KIND = dp.WrongColumnKind
SHAPE = dp.DataShapeRefused

# ── what it may cost ──────────────────────────────────────────────────────────────────────────────
SPENDS = [
    WrongCall("no spend", lambda d: dp.mean(d.session, "age"), "spend=dp.GDP"),
    WrongCall(
        "epsilon of a mean", lambda d: dp.mean(d.session, "age", epsilon=1), "spend=dp.PureDP(1)"
    ),
    WrongCall(
        "epsilon and delta",
        lambda d: dp.mean(d.session, "age", epsilon=0.5, delta=1e-6),
        "spend=dp.ApproxDP(0.5, 1e-06)",
    ),
    WrongCall("eps", lambda d: dp.count(d.session, eps=2), "spend=dp.PureDP(2)"),
    WrongCall("mu", lambda d: dp.median(d.session, "age", mu=0.1), "spend=dp.GDP(0.1)"),
    WrongCall("rho", lambda d: dp.ols(d.session, "income ~ age", rho=0.1), "spend=dp.ZCDP(0.1)"),
    WrongCall("a budget", lambda d: dp.sum(d.session, "age", budget=MU), "spend="),
    WrongCall("spend misspelt", lambda d: dp.sum(d.session, "age", spent=MU), "spend="),
    WrongCall("spend by position", lambda d: dp.mean(d.session, "age", MU), "spend="),
    WrongCall("a number as spend", lambda d: dp.mean(d.session, "age", spend=1), "dp.GDP"),
    WrongCall("text as spend", lambda d: dp.mean(d.session, "age", spend="1"), "dp.GDP"),
    WrongCall("a pair as spend", lambda d: dp.mean(d.session, "age", spend=(1, 1e-6)), "dp.GDP"),
    WrongCall("a class as spend", lambda d: dp.mean(d.session, "age", spend=dp.GDP), "dp.GDP("),
    WrongCall("ApproxDP without delta", lambda d: dp.ApproxDP(1), "delta"),
    WrongCall("ApproxDP without epsilon", lambda d: dp.ApproxDP(delta=1e-6), "epsilon"),
    WrongCall("ApproxDP of nothing", lambda d: dp.ApproxDP(), "epsilon"),
    WrongCall("PureDP with delta", lambda d: dp.PureDP(1, 1e-6), "dp.ApproxDP"),
    WrongCall("PureDP by another name", lambda d: dp.PureDP(eps=1), "epsilon="),
    WrongCall("GDP of epsilon", lambda d: dp.GDP(epsilon=1), "dp.PureDP"),
    WrongCall("GDP of nothing", lambda d: dp.GDP(), "mu"),
    WrongCall("delta of zero", lambda d: dp.ApproxDP(1, 0), "PureDP"),
    WrongCall("epsilon of zero", lambda d: dp.PureDP(0), "epsilon"),
    WrongCall("epsilon of infinity", lambda d: dp.PureDP(math.inf), "finite"),
    WrongCall("epsilon in text", lambda d: dp.PureDP("1"), "number"),
    WrongCall(
        "more than the budget",
        lambda d: dp.mean(d.session, "age", spend=dp.GDP(100)),
        "left",
        dp.BudgetExceeded,
    ),
    WrongCall("an explanation of a number", lambda d: dp.explain(1), "dp.GDP"),
    WrongCall("a group of everybody", lambda d: dp.ApproxDP(1, 1e-6).group(10**12), "epsilon"),
    WrongCall("a split into nothing", lambda d: dp.GDP(1).split(0), "whole number"),
    WrongCall("a split in text", lambda d: dp.GDP(1).split("twelve"), "split"),
    WrongCall("a budget over zero", lambda d: dp.GDP(1) / 0, "whole number"),
]

# ── data and their declaration ────────────────────────────────────────────────────────────────────
DECLARATIONS = [
    WrongCall("no schema", lambda d: dp.from_arrays(d.columns, neighbors=dp.Replace()), "schema="),
    WrongCall("schema by position", lambda d: dp.from_arrays(d.columns, d.schema), "schema="),
    WrongCall("schema of None", lambda d: d.declared(schema=None), "schema"),
    WrongCall("nothing at all", lambda d: dp.from_frame(), "schema"),
    WrongCall("a frame alone", lambda d: dp.from_frame(d.columns), "schema="),
    WrongCall(
        "no neighbours", lambda d: d.declared(neighbors=None), "dp.Replace()", dp.NeighborsMissing
    ),
    WrongCall(
        "neighbours in text",
        lambda d: d.declared(neighbors="replace"),
        "neighbors=dp.Replace()",
        dp.NeighborsMissing,
    ),
    WrongCall(
        "neighbours in other text",
        lambda d: d.declared(neighbors="add-remove"),
        "neighbors=dp.AddRemove()",
        dp.NeighborsMissing,
    ),
    WrongCall(
        "the class of neighbours",
        lambda d: d.declared(neighbors=dp.Replace),
        "neighbors=dp.Replace()",
        dp.NeighborsMissing,
    ),
    WrongCall(
        "British neighbours",
        lambda d: dp.from_arrays(d.columns, schema=d.schema, neighbours=dp.Replace()),
        "neighbors=",
    ),
    WrongCall("neighbours by unit alone", lambda d: dp.Replace(unit="id"), "max_rows"),
    WrongCall("neighbours of a number", lambda d: dp.Replace(3), "unit"),
    WrongCall("max rows misspelt", lambda d: dp.Replace(unit="id", maxrows=3), "max_rows="),
    WrongCall("bounds of one end", lambda d: dp.Real(5), "smallest and largest"),
    WrongCall("bounds by min and max", lambda d: dp.Real(min=0, max=1), "low="),
    WrongCall("bounds as one pair", lambda d: dp.Real((0, 1)), "dp.Real(0, 1)"),
    WrongCall("bounds reversed", lambda d: dp.Integer(90, 18), "smallest"),
    WrongCall("bounds of infinity", lambda d: dp.Real(0, math.inf), "finite"),
    WrongCall("bounds too many", lambda d: dp.Integer(0, 1, 0, 1, 1), "by position"),
    WrongCall("a set of levels", lambda d: dp.Category({"N", "S"}), "order"),
    WrongCall("levels in one text", lambda d: dp.Category("NS"), "list"),
    WrongCall("levels one by one", lambda d: dp.Category("N", "S", "W"), "list"),
    WrongCall("no levels", lambda d: dp.Category(), "levels"),
    WrongCall("levels as categories", lambda d: dp.Category(categories=["N"]), "levels="),
    WrongCall("levels twice", lambda d: dp.Category(["N", "N"]), "same"),
    WrongCall("a date that is none", lambda d: dp.Date("2020", "soon"), "ISO"),
    WrongCall("a date without an end", lambda d: dp.Date("2020-01-01"), "dp.Date("),
    WrongCall("a type in the schema", lambda d: d.declared(schema={"age": int}), "dp.Integer"),
    WrongCall(
        "the class in the schema", lambda d: d.declared(schema={"age": dp.Integer}), "dp.Integer("
    ),
    WrongCall("a pair in the schema", lambda d: d.declared(schema={"age": (0, 9)}), "dp.Integer"),
    WrongCall(
        "a column that is not there",
        lambda d: d.declared(schema={"agee": dp.Integer(0, 9)}),
        "age",
        SHAPE,
    ),
    WrongCall(
        "columns twice",
        lambda d: dp.from_frame(twice(), schema=d.schema, neighbors=dp.Replace()),
        "more than once",
        SHAPE,
    ),
    WrongCall(
        "columns of other lengths",
        lambda d: dp.from_arrays(
            {"age": [1, 2], "income": [1]},
            schema={name: d.schema[name] for name in ("age", "income")},
            neighbors=dp.Replace(),
        ),
        "lengths",
        SHAPE,
    ),
    WrongCall(
        "a list as data",
        lambda d: dp.from_arrays([1, 2], schema=d.schema, neighbors=dp.Replace()),
        "mapping",
        SHAPE,
    ),
    WrongCall(
        "a number as data",
        lambda d: dp.from_frame(5, schema=d.schema, neighbors=dp.Replace()),
        "table",
        SHAPE,
    ),
    WrongCall(
        "a file that is not there",
        lambda d: dp.read_csv(d.folder / "no.csv", schema=d.schema, neighbors=dp.Replace()),
        "no such file",
        SHAPE,
    ),
    WrongCall(
        "a Parquet file that is not there",
        lambda d: dp.read_parquet(d.folder / "no.parquet", schema=d.schema, neighbors=dp.Replace()),
        "no such file",
        SHAPE,
    ),
    WrongCall(
        "sep of pandas", lambda d: dp.read_csv("x.csv", schema=d.schema, sep=";"), "separator="
    ),
    WrongCall(
        "na_values of pandas",
        lambda d: dp.read_csv("x.csv", schema=d.schema, na_values=["NA"]),
        "missing_text=",
    ),
]

# ── budgets, sessions, ledgers ────────────────────────────────────────────────────────────────────
SESSIONS = [
    WrongCall("no budget", lambda d: d.data.open(), "budget="),
    WrongCall("a budget by position", lambda d: d.data.open(MU), "budget="),
    WrongCall("a budget in numbers", lambda d: d.data.open(budget=1), "dp."),
    WrongCall("epsilon of a session", lambda d: d.data.open(epsilon=1), "budget=dp.PureDP(1)"),
    WrongCall("a spend of a session", lambda d: d.data.open(spend=MU), "budget="),
    WrongCall("a seed", lambda d: d.data.open(budget=MU, seed=1), "seed"),
    WrongCall(
        "a seed of a question", lambda d: dp.mean(d.session, "age", spend=MU, seed=1), "seed"
    ),
    WrongCall(
        "a random state",
        lambda d: dp.mean(d.session, "age", spend=MU, random_state=1),
        "secret",
    ),
    WrongCall(
        "no folder for a ledger",
        lambda d: d.declared(name="people").open(budget=MU, ledger=d.folder / "no" / "a.ledger"),
        "folder",
        dp.LedgerRefused,
    ),
    WrongCall(
        "a folder as ledger",
        lambda d: d.declared(name="people").open(budget=MU, ledger=d.folder),
        "folder",
        dp.LedgerRefused,
    ),
    WrongCall(
        "no name beside a file",
        lambda d: d.data.open(budget=MU, ledger=d.folder / "a.ledger"),
        "name=",
    ),
    WrongCall("data as session", lambda d: dp.mean(d.data, "age", spend=MU), ".open(budget="),
    WrongCall("a frame as session", lambda d: dp.mean(d.columns, "age", spend=MU), "session"),
    WrongCall("no session", lambda d: dp.mean("age", spend=MU), "session"),
    WrongCall("a key in numbers", lambda d: dp.mean(d.session, "age", spend=MU, key=5), "key="),
    WrongCall("Ledger.open of nothing", lambda d: dp.Ledger.open(), "budget="),
    WrongCall(
        "Ledger.open of a file by position", lambda d: dp.Ledger.open(MU, "a.ledger"), "path="
    ),
    WrongCall("Ledger.open in numbers", lambda d: dp.Ledger.open(1), "dp."),
]

# ── questions ─────────────────────────────────────────────────────────────────────────────────────
QUESTIONS = [
    WrongCall("a name that is near", lambda d: dp.mediane, "dp.median", dp.UnknownName),
    WrongCall("a name of others", lambda d: dp.average, "dp.mean", dp.UnknownName),
    WrongCall("a model of others", lambda d: dp.LinearRegression, "dp.ols", dp.UnknownName),
    WrongCall("a name that is nothing", lambda d: dp.zzzz, "documentation", dp.UnknownName),
    WrongCall("no column", lambda d: dp.mean(d.session, spend=MU), "column"),
    WrongCall(
        "a column misspelt", lambda d: dp.mean(d.session, "agee", spend=MU), "'age'", OTHER_COLUMN
    ),
    WrongCall(
        "a column that is none", lambda d: dp.mean(d.session, 5, spend=MU), "schema", OTHER_COLUMN
    ),
    WrongCall(
        "two columns",
        lambda d: dp.mean(d.session, ["age", "income"], spend=MU),
        "one declared column",
        OTHER_COLUMN,
    ),
    WrongCall(
        "a mean of levels", lambda d: dp.mean(d.session, "region", spend=MU), "Category", OTHER_KIND
    ),
    WrongCall(
        "bounds of a question",
        lambda d: dp.mean(d.session, "age", spend=MU, bounds=(0, 1)),
        "schema",
    ),
    WrongCall("clip", lambda d: dp.mean(d.session, "age", spend=MU, clip=True), "where"),
    WrongCall("groupby", lambda d: dp.table(d.session, groupby="region", spend=MU), "by="),
    WrongCall(
        "group_by", lambda d: dp.mean(d.session, "age", group_by="region", spend=MU), "dp.table"
    ),
    WrongCall(
        "a filter", lambda d: dp.count(d.session, filter={"age": (1, 2)}, spend=MU), "where="
    ),
    WrongCall(
        "bins beside by",
        lambda d: dp.table(d.session, by="age", bins={"age": [18, 90]}, spend=MU),
        "by={'age': [18",
    ),
    WrongCall("a table of nothing", lambda d: dp.table(d.session, spend=MU), "by="),
    WrongCall("a table by numbers", lambda d: dp.table(d.session, by="age", spend=MU), "edge"),
    WrongCall("where in text", lambda d: dp.count(d.session, where="age > 30", spend=MU), "where="),
    WrongCall(
        "where a column is none",
        lambda d: dp.count(d.session, where={"agee": (1, 2)}, spend=MU),
        "'age'",
        OTHER_COLUMN,
    ),
    WrongCall(
        "where one number",
        lambda d: dp.count(d.session, where={"age": 30}, spend=MU),
        "(low, high)",
    ),
    WrongCall(
        "where open at both ends",
        lambda d: dp.count(d.session, where={"age": (None, None)}, spend=MU),
        "leave",
    ),
    WrongCall(
        "where reversed",
        lambda d: dp.count(d.session, where={"age": (30, 18)}, spend=MU),
        "smaller",
    ),
    WrongCall(
        "where beyond the range",
        lambda d: dp.count(d.session, where={"age": (None, -5)}, spend=MU),
        "no row",
    ),
    WrongCall(
        "where NaN", lambda d: dp.count(d.session, where={"age": (math.nan, 5)}, spend=MU), "number"
    ),
    WrongCall(
        "where a level is none",
        lambda d: dp.count(d.session, where={"region": "Q"}, spend=MU),
        "levels",
    ),
    WrongCall(
        "where a level is misspelt",
        lambda d: dp.count(d.session, where={"region": "n"}, spend=MU),
        "'N'",
    ),
    WrongCall(
        "where a truth is text",
        lambda d: dp.count(d.session, where={"member": "yes"}, spend=MU),
        "True",
    ),
    WrongCall("a quantile of 50", lambda d: dp.quantile(d.session, "age", 50, spend=MU), "0.5"),
    WrongCall(
        "a quantile of nothing", lambda d: dp.quantile(d.session, "age", spend=MU), "was not given"
    ),
    WrongCall(
        "a quantile named otherwise",
        lambda d: dp.quantile(d.session, "age", probability=0.5, spend=MU),
        "q=",
    ),
    WrongCall(
        "bins of a half", lambda d: dp.histogram(d.session, "age", bins=2.5, spend=MU), "bins"
    ),
    WrongCall(
        "a proportion of numbers",
        lambda d: dp.proportion(d.session, "age", spend=MU),
        "Boolean",
        OTHER_KIND,
    ),
    WrongCall(
        "a method that is none",
        lambda d: dp.median(d.session, "age", method="magic", spend=MU),
        "method",
    ),
    WrongCall(
        "an option that is none", lambda d: dp.median(d.session, "age", clip=True, spend=MU), "clip"
    ),
    WrongCall(
        "an option and no spend",
        lambda d: dp.median(d.session, "age", interval_share=0.5),
        "spend was not given",
    ),
    WrongCall("a level of 95", lambda d: d.mean.confidence_interval(95), "0.95"),
    WrongCall("a level as alpha", lambda d: d.mean.confidence_interval(alpha=0.05), "level"),
    WrongCall(
        "a preview of text", lambda d: dp.preview(d.session, "mean", "age", spend=MU), "dp.mean"
    ),
    WrongCall("a preview of nothing", lambda d: dp.preview(d.session), "estimator"),
    WrongCall("JSON of nothing", lambda d: dp.from_json(), "text"),
    WrongCall("bundled data by name", lambda d: dp.load_census("income"), "by position"),
    WrongCall("JSON that is none", lambda d: dp.from_json("{}"), "to_json"),
    WrongCall("a frame of another library", lambda d: d.mean.to_frame(backend="R"), "pandas"),
    WrongCall("a cell that is none", lambda d: d.table["X"], "S; W"),
]

# ── regressions ───────────────────────────────────────────────────────────────────────────────────
FORMULAS = [
    WrongCall("no formula", lambda d: dp.ols(d.session, spend=MU), "formula"),
    WrongCall("X and y", lambda d: dp.ols(d.session, np.eye(2), np.ones(2), spend=MU), "formula"),
    WrongCall("a formula without sides", lambda d: dp.ols(d.session, "income", spend=MU), "~"),
    WrongCall("a response of itself", lambda d: dp.ols(d.session, "age ~ age", spend=MU), "'age'"),
    WrongCall(
        "a response among others",
        lambda d: dp.ols(d.session, "age ~ income + log(age)", spend=MU),
        "'age'",
    ),
    WrongCall("a power", lambda d: dp.ols(d.session, "income ~ age**2", spend=MU), "square(age)"),
    WrongCall(
        "a power with a term",
        lambda d: dp.ols(d.session, "income ~ age + age^2", spend=MU),
        "square(age)",
    ),
    WrongCall("a cube", lambda d: dp.ols(d.session, "income ~ age**3", spend=MU), "bs(age"),
    WrongCall("I of R", lambda d: dp.ols(d.session, "income ~ I(age**2)", spend=MU), "square(age)"),
    WrongCall(
        "poly of R", lambda d: dp.ols(d.session, "income ~ poly(age, 2)", spend=MU), "bs(age"
    ),
    WrongCall("np.log", lambda d: dp.ols(d.session, "income ~ np.log(age)", spend=MU), "log(age)"),
    WrongCall(
        "scale of R", lambda d: dp.ols(d.session, "income ~ scale(age)", spend=MU), "log, square"
    ),
    WrongCall("a dot", lambda d: dp.ols(d.session, "income ~ .", spend=MU), "grammar"),
    WrongCall(
        "a log of what may be 0",
        lambda d: dp.ols(d.session, "age ~ log(income)", spend=MU),
        "positive",
    ),
    WrongCall(
        "a term misspelt",
        lambda d: dp.ols(d.session, "income ~ agee", spend=MU),
        "'age'",
        OTHER_COLUMN,
    ),
    WrongCall(
        "a response of levels", lambda d: dp.ols(d.session, "region ~ age", spend=MU), "levels"
    ),
    WrongCall("predict of a dict", lambda d: d.fit.predict({"agee": 30}), "no column gives age"),
    WrongCall("predict of text", lambda d: d.fit.predict("age"), "intercept"),
    WrongCall("predict of too few", lambda d: d.fit.predict([30]), "intercept"),
    WrongCall("predict of nothing", lambda d: d.fit.predict(), "rows"),
    WrongCall("a coefficient that is none", lambda d: d.fit["agee"], "intercept; age"),
    WrongCall("a parameter that is none", lambda d: d.fit.params["agee"], "intercept; age"),
    WrongCall(
        "data of statsmodels",
        lambda d: dp.ols("income ~ age", data=d.columns, spend=MU),
        "dp.from_frame",
    ),
]

# ── fits of other kinds, plans, pictures ──────────────────────────────────────────────────────────

PURE = dp.PureDP(0.5)
LATER = [
    WrongCall(
        "the hinge of a support vector machine",
        lambda d: dp.erm(d.session, "member ~ age", loss="hinge", spend=PURE),
        "'huber-hinge'",
    ),
    WrongCall(
        "a function as loss",
        lambda d: dp.erm(d.session, "member ~ age", loss=np.square, spend=PURE),
        "loss='psi'",
    ),
    WrongCall(
        "a negative penalty",
        lambda d: dp.erm(d.session, "member ~ age", loss="logistic", penalty=-1, spend=PURE),
        "penalty=",
    ),
    WrongCall(
        "layers of another library",
        lambda d: dp.network(d.session, "member ~ age", hidden_layer_sizes=(4,), spend=MU),
        "hidden",
    ),
    WrongCall(
        "a network of frames", lambda d: dp.network(d.columns, d.columns, spend=MU), "session"
    ),
    WrongCall(
        "names of fits to tune",
        lambda d: dp.tune(d.session, ["ols"], score="squared error", spend=MU),
        "dp.trial",
    ),
    WrongCall("a fit's name as a trial", lambda d: dp.trial("ols", "income ~ age"), "dp.ols"),
    WrongCall(
        "a score of scikit-learn",
        lambda d: dp.tune(
            d.session, [dp.trial(dp.ols, "income ~ age")], score="r2", trials=3, spend=MU
        ),
        "'squared error'",
    ),
    WrongCall("accuracy of a line", lambda d: dp.accuracy(d.session, d.fit, spend=MU), "classes"),
    WrongCall("residuals of a name", lambda d: dp.residuals(d.session, "fit", spend=MU), "dp.ols"),
    WrongCall(
        "described twice",
        lambda d: dp.describe(d.session, ["age", "age"], spend=MU),
        "named twice",
    ),
    WrongCall(
        "assumptions in a dict",
        lambda d: dp.preview(d.session, dp.mean, "income", spend=MU, assume={"mean": 3}),
        "dp.Assumptions",
    ),
    WrongCall("a plan as a dict", lambda d: dp.read_plan({"questions": []}), "path"),
    WrongCall("a plan that is not there", lambda d: dp.read_plan("no.toml"), "no.toml"),
    WrongCall(
        "a dialect beside the path",
        lambda d: dp.write_declaration(
            d.folder / "a.toml",
            source={"path": "a.csv", "separator": ";"},
            schema=d.schema,
            neighbors=dp.Replace(),
        ),
        "[dialect]",
    ),
    WrongCall("a picture in no folder", lambda d: d.mean.plot(path="/none/a.png"), "path="),
    WrongCall("axes that are none", lambda d: d.mean.plot(ax=3), "plt.subplots"),
    WrongCall(
        "a square of R",
        lambda d: dp.ols(d.session, "income ~ I(age^2)", spend=MU),
        "square(age)",
    ),
    WrongCall(
        "a key that is a number", lambda d: dp.mode(d.session, "region", spend=MU, key=3), "key"
    ),
    WrongCall(
        "a score that is a level",
        lambda d: dp.select(d.session, "region", score="region", spend=MU),
        "a sum",
        OTHER_KIND,
    ),
]

WRONG_CALLS = [*SPENDS, *DECLARATIONS, *SESSIONS, *QUESTIONS, *FORMULAS, *LATER]


def twice() -> Any:
    """A frame with one name twice."""
    import pandas

    return pandas.DataFrame([[1, 2]], columns=["age", "age"])
