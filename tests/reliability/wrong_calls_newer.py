"""Wrong calls of learners, synthetic data, posteriors, own functions, large data, services,
audits and attacks, as people write them first; `wrong_calls.py` says what a call is.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import pyarrow as pa
from wrong_calls import MU, OTHER_COLUMN, OTHER_KIND, SHAPE, Desk, WrongCall

import discreet as dp
from discreet import attacks

BINS = {"age": [18, 40, 90]}
PURE = dp.PureDP(0.1)
YES = "member ~ age"
REAL = dp.Real(18, 90)
OPEN = "dp.from_frame"


def filled(d: Desk) -> Any:
    """A session on columns all of whose missing cells are filled in."""
    schema = {
        "age": dp.Integer(18, 90, missing=40),
        "income": dp.Real(0, 100_000, missing=0),
        "region": dp.Category(["N", "S", "W"], missing="N"),
        "member": dp.Boolean(missing=False),
    }
    return d.declared(schema=schema).open(budget=dp.GDP(5))


def held(d: Desk) -> Any:
    return dp.holdout(filled(d), threshold=0.1, answers=3, spend=PURE)


def middle(age: Any) -> float:
    return float(sorted(age)[len(age) // 2])


def half(session: Any, **changes: Any) -> Any:
    """`dp.subsample` in order but for what is changed."""
    wanted = {"columns": ["age"], "output": REAL, "spend": MU} | changes
    return dp.subsample(session, wanted.pop("function", middle), **wanted)


def streamed(d: Desk, make_reader: Any, **changes: Any) -> Any:
    wanted = {"schema": d.schema, "neighbors": dp.Replace()} | changes
    return dp.from_batches(make_reader, **wanted)


def reader(columns: list[str]) -> Any:
    return pa.table({"age": [31, 52]}).select(columns).to_reader()


def base(d: Desk, uri: Any, table: Any = "people") -> Any:
    return dp.from_database(uri, table, schema=d.schema, neighbors=dp.Replace())


def tuned(d: Desk, candidates: Any, **changes: Any) -> Any:
    return dp.tune(d.session, candidates, **({"score": "squared error", "spend": MU} | changes))


def line(formula: str = "income ~ age", **options: Any) -> Any:
    return dp.trial(dp.ols, formula, **options)


LEARNERS = [
    WrongCall("erm without a spend", lambda d: dp.erm(d.session, YES), "spend=dp.GDP"),
    WrongCall("erm of epsilon", lambda d: dp.erm(d.session, YES, epsilon=1), "spend=dp.PureDP(1)"),
    WrongCall("erm of X and y", lambda d: dp.erm(d.session, [[1]], [0], spend=MU), "by position"),
    WrongCall("C", lambda d: dp.erm(d.session, YES, C=1.0, spend=MU), "penalty="),
    WrongCall("an L2 penalty", lambda d: dp.erm(d.session, YES, penalty="l2", spend=MU), "number"),
    WrongCall("classes of money", lambda d: dp.erm(d.session, "income ~ age", spend=MU), "huber"),
    WrongCall("a formula in a dict", lambda d: dp.erm(d.session, {"y": "x"}, spend=MU), "~"),
    WrongCall("a spend in a dict", lambda d: dp.erm(d.session, YES, spend={"mu": 1}), "dp.GDP"),
    WrongCall("psi alone", lambda d: dp.erm(d.session, YES, psi=abs, spend=MU), "'psi'"),
    WrongCall("one width", lambda d: dp.network(d.session, YES, hidden=32, spend=MU), "(32, 16)"),
    WrongCall("GELU", lambda d: dp.network(d.session, YES, activation="gelu", spend=MU), "relu"),
    WrongCall("Adam", lambda d: dp.network(d.session, YES, solver="adam", spend=MU), "dp.SGD("),
    WrongCall("epochs", lambda d: dp.network(d.session, YES, epochs=5, spend=MU), "dp.SGD(steps"),
    WrongCall("a rate", lambda d: dp.network(d.session, YES, lr=0.1, spend=MU), "dp.SGD(steps"),
    WrongCall(
        "a class as solver", lambda d: dp.network(d.session, YES, solver=dp.SGD, spend=MU), "(steps"
    ),
    WrongCall(
        "a network of pure noise",
        lambda d: dp.network(d.session, YES, spend=PURE),
        "law='laplace'",
        dp.NoTheorem,
    ),
    WrongCall("steps in text", lambda d: dp.SGD("many"), "steps="),
    WrongCall("a law that is none", lambda d: dp.SGD(law="cauchy"), "laplace"),
    WrongCall(
        "accuracy of a formula", lambda d: dp.accuracy(d.session, YES, spend=MU), "dp.logistic"
    ),
    WrongCall("a grid of settings", lambda d: tuned(d, {"C": [1, 2]}), "dp.trial("),
    WrongCall("one trial", lambda d: tuned(d, line()), "list of"),
    WrongCall("no trials", lambda d: tuned(d, []), "dp.trial("),
    WrongCall("finished fits to tune", lambda d: tuned(d, [d.fit]), "dp.trial("),
    WrongCall(
        "a score in code", lambda d: tuned(d, [line()], score=lambda fit: 1), "squared error"
    ),
    WrongCall("runs in text", lambda d: tuned(d, [line()], trials="10"), "trials="),
    WrongCall("no run", lambda d: tuned(d, [line()], trials=0), "trials=10"),
    WrongCall("a trial with a spend", lambda d: line(spend=MU), "dp.tune"),
    WrongCall(
        "a trial with a session", lambda d: dp.trial(dp.ols, d.session, YES), "without session"
    ),
    WrongCall(
        "a trial of code", lambda d: tuned(d, [dp.trial(lambda s: 1)]), "the function <lambda>"
    ),
    WrongCall("a trial misspelt", lambda d: tuned(d, [line(solvr="newton")]), "solvr"),
    WrongCall(
        "a trial of an unknown column",
        lambda d: tuned(d, [line("income ~ agee")]),
        "'age'",
        OTHER_COLUMN,
    ),
]

TABLES = [
    WrongCall("a synthesis of a dict", lambda d: dp.synthesize(d.session, BINS, spend=MU), "list"),
    WrongCall("a synthesis of text", lambda d: dp.synthesize(d.session, "age", spend=MU), "list"),
    WrongCall(
        "a synthesis of twins",
        lambda d: dp.synthesize(d.session, ["age", "age"], bins=BINS, spend=MU),
        "twice",
    ),
    WrongCall(
        "a synthesis for nothing", lambda d: dp.synthesize(d.session, ["age"], bins=BINS), "spend="
    ),
    WrongCall(
        "how many rows of a synthesis",
        lambda d: dp.synthesize(d.session, ["age", "region"], bins=BINS, n=9, spend=MU),
        "n=",
    ),
    WrongCall(
        "edges in a list",
        lambda d: dp.synthesize(d.session, ["age", "region"], bins=[18, 90], spend=MU),
        "mapping",
    ),
    WrongCall(
        "edges that fall",
        lambda d: dp.synthesize(d.session, ["age", "region"], bins={"age": [90, 18]}, spend=MU),
        "sort",
    ),
    WrongCall(
        "one analysis in text",
        lambda d: dp.synthesize(d.session, ["age", "region"], bins=BINS, analyses=YES, spend=MU),
        "list",
    ),
    WrongCall(
        "an analysis of others",
        lambda d: dp.synthesize(d.session, ["age", "region"], bins=BINS, analyses=[YES], spend=MU),
        "member",
    ),
    WrongCall(
        "a cell for every row",
        lambda d: dp.mwem(d.session, ["region", "member"], spend=MU),
        "missing=",
    ),
    WrongCall(
        "weights of epsilon", lambda d: dp.mwem(filled(d), ["age"], epsilon=1), "dp.PureDP(1)"
    ),
    WrongCall(
        "weights of triples",
        lambda d: dp.mwem(filled(d), ["region", "member"], queries="triples", spend=MU),
        "'pairs'",
    ),
    WrongCall(
        "rounds in text",
        lambda d: dp.mwem(filled(d), ["region", "member"], rounds="10", spend=MU),
        "rounds=10",
    ),
    WrongCall(
        "a variant that is none",
        lambda d: dp.mwem(filled(d), ["region", "member"], variant="fast", spend=MU),
        "replay",
    ),
    WrongCall(
        "weights without bins",
        lambda d: dp.mwem(filled(d), ["region", "income"], spend=MU),
        "bins=",
    ),
]

POSTERIORS = [
    WrongCall("a posterior of a name", lambda d: dp.posterior(d.session, "member", spend=MU), "("),
    WrongCall(
        "a posterior of a class",
        lambda d: dp.posterior(d.session, dp.BetaBinomial, spend=MU),
        'dp.BetaBinomial("member"',
    ),
    WrongCall("alpha and beta", lambda d: dp.BetaBinomial("member", alpha=1, beta=1), "prior="),
    WrongCall(
        "a prior of one number",
        lambda d: dp.posterior(d.session, dp.BetaBinomial("member", prior=1), spend=MU),
        "(a, b)",
    ),
    WrongCall(
        "an improper prior",
        lambda d: dp.posterior(d.session, dp.BetaBinomial("member", prior=(0, 0)), spend=MU),
        "proper",
    ),
    WrongCall(
        "a share of a number",
        lambda d: dp.posterior(d.session, dp.BetaBinomial("age"), spend=MU),
        "Boolean",
        OTHER_KIND,
    ),
    WrongCall(
        "a share of three levels",
        lambda d: dp.posterior(d.session, dp.BetaBinomial("region"), spend=MU),
        "level=",
    ),
    WrongCall(
        "two weights of three levels",
        lambda d: dp.posterior(d.session, dp.DirichletMultinomial("region", (1, 1)), spend=MU),
        "3 levels",
    ),
    WrongCall(
        "a grid of one number",
        lambda d: dp.posterior_sample(d.session, dp.BetaBinomial("member"), grid=9, spend=PURE),
        "grid=",
    ),
    WrongCall(
        "a grid beyond shares",
        lambda d: dp.posterior_sample(
            d.session, dp.BetaBinomial("member"), grid=[-1, 2], spend=PURE
        ),
        "range",
    ),
    WrongCall(
        "draws of a sample",
        lambda d: dp.posterior_sample(
            d.session, dp.BetaBinomial("member"), grid=[0.1, 0.5], draws=5, spend=PURE
        ),
        "samples=",
    ),
]

HOLDOUTS = [
    WrongCall("a holdout of nothing", lambda d: dp.holdout(d.session), "threshold="),
    WrongCall(
        "a holdout of half an answer",
        lambda d: dp.holdout(d.session, threshold=0.1, answers=2.5, spend=PURE),
        "answers=50",
    ),
    WrongCall(
        "a threshold below 0",
        lambda d: dp.holdout(d.session, threshold=-1, answers=3, spend=PURE),
        "threshold=0.04",
    ),
    WrongCall("a claim of nothing", lambda d: held(d).share({"region": "N"}), "training"),
    WrongCall("a claim about text", lambda d: held(d).share("region", training=0.5), "filter"),
    WrongCall(
        "a claim in percent", lambda d: held(d).share({"region": "N"}, training=50), "between 0"
    ),
    WrongCall(
        "a claim about the mean of levels",
        lambda d: held(d).mean("region", training=1),
        "Integer",
        OTHER_KIND,
    ),
]

FUNCTIONS = [
    WrongCall("a function by name", lambda d: half(d.session, function="mean"), "function"),
    WrongCall("no output", lambda d: half(d.session, output=None), "output=dp.Real"),
    WrongCall("an output in a pair", lambda d: half(d.session, output=(18, 90)), "dp.Real"),
    WrongCall("an output of a type", lambda d: half(d.session, output=float), "dp.Real"),
    WrongCall("columns in a dict", lambda d: half(d.session, columns={"age": 1}), "list"),
    WrongCall("columns twice over", lambda d: half(d.session, columns=["age"] * 2), "different"),
    WrongCall(
        "a column of a function misspelt",
        lambda d: half(d.session, columns="agee"),
        "'age'",
        OTHER_COLUMN,
    ),
    WrongCall("parts in text", lambda d: half(d.session, parts="10"), "parts=100"),
    WrongCall("the largest output", lambda d: half(d.session, aggregate="max"), "median"),
    WrongCall("a bias of yes", lambda d: half(d.session, bias=True), "two sizes"),
    WrongCall(
        "friends without a radius", lambda d: dp.friendly_mean(d.session, "age", spend=MU), "radius"
    ),
    WrongCall(
        "friends of levels",
        lambda d: dp.friendly_mean(d.session, ["region"], radius=2, spend=MU),
        "Real or Integer",
        OTHER_KIND,
    ),
    WrongCall(
        "friends of a dict",
        lambda d: dp.friendly_mean(d.session, {"age": 2}, radius=2, spend=MU),
        "list",
    ),
    WrongCall(
        "a delta of nothing",
        lambda d: dp.friendly_mean(d.session, "age", radius=2, delta=0, spend=MU),
        "delta=1e-6",
    ),
    WrongCall(
        "clusters of scikit-learn",
        lambda d: dp.friendly_clusters(d.session, ["age"], n_clusters=3, radius=2, spend=MU),
        "k=",
    ),
    WrongCall(
        "half a cluster",
        lambda d: dp.friendly_clusters(d.session, ["age"], k=2.5, radius=2, spend=MU),
        "k=3",
    ),
]

SOURCES = [
    WrongCall("a reader gone through", lambda d: streamed(d, iter([])), "no function", SHAPE),
    WrongCall("a frame as reader", lambda d: streamed(d, d.columns), OPEN, SHAPE),
    WrongCall("a reader of nothing", lambda d: streamed(d, lambda names: None), "Arrow", SHAPE),
    WrongCall("a reader that takes nothing", lambda d: streamed(d, lambda: None), "columns", SHAPE),
    WrongCall("a reader that fails", lambda d: streamed(d, lambda names: 1 / 0), "Arrow", SHAPE),
    WrongCall(
        "no neighbours of a stream",
        lambda d: streamed(d, reader, neighbors=None),
        "dp.Replace()",
        dp.NeighborsMissing,
    ),
    WrongCall("memory in words", lambda d: streamed(d, reader, memory_limit="lots"), "'2GB'"),
    WrongCall("a cache of yes", lambda d: streamed(d, reader, cache=True), "path"),
    WrongCall(
        "a cache in no folder",
        lambda d: streamed(d, reader, cache=d.folder / "no" / "such"),
        "folder",
    ),
    WrongCall("chunks of pandas", lambda d: streamed(d, reader, chunksize=9), "memory_limit="),
    WrongCall("a database of others", lambda d: base(d, "mysql://host/name"), "dp.from_batches"),
    WrongCall("a path as database", lambda d: base(d, str(d.folder / "a.db")), "sqlite:///"),
    WrongCall(
        "no such database", lambda d: base(d, f"sqlite:///{d.folder}/a.db"), "no such", SHAPE
    ),
    WrongCall("a connection", lambda d: base(d, sqlite3.connect(":memory:")), "text"),
    WrongCall("a table by number", lambda d: base(d, "sqlite:///a.db", 5), "'visits'"),
]

SERVICES = [
    WrongCall("a port", lambda d: dp.connect(8000), "text"),
    WrongCall("no scheme", lambda d: dp.connect("localhost:8000", token="t"), "https://"),
    WrongCall("a password", lambda d: dp.connect("http://localhost", password="p"), "token="),
    WrongCall("a token in numbers", lambda d: dp.connect("http://localhost", token=5), "text"),
    WrongCall("a booking of nothing", lambda d: d.session.book(), "note="),
    WrongCall("a booking without a note", lambda d: d.session.book(MU), "note"),
    WrongCall("a booking in numbers", lambda d: d.session.book(0.1, note="a"), "dp.GDP(0.1)"),
    WrongCall("nothing set aside", lambda d: d.session.reserve(), "spend=dp.GDP"),
    WrongCall("what is left in epsilon", lambda d: d.session.remaining(epsilon=1), "dp.PureDP"),
    WrongCall("how many of nothing", lambda d: d.session.ledger.how_many(), "price"),
    WrongCall("a release of text", lambda d: d.session.release("mean"), "dp.count"),
]

AUDITS = [
    WrongCall("an audit of nothing", lambda d: dp.audit(), "target"),
    WrongCall("an audit of no name", lambda d: dp.audit("meen", spend=MU), "function"),
    WrongCall("an audit of epsilon", lambda d: dp.audit(dp.mean, epsilon=1), "dp.PureDP(1)"),
    WrongCall("an audit in numbers", lambda d: dp.audit(dp.mean, spend=1), "dp.GDP(0.5)"),
    WrongCall("a pair beside a function", lambda d: dp.audit(dp.mean, spend=MU, pair=5), "pair="),
    WrongCall("two claims", lambda d: dp.audit(dp.mean, spend=MU, claim=PURE), "claim="),
    WrongCall("three values", lambda d: dp.audit(abs, claim=PURE, pair=[1, 2, 3]), "pair=(0.0"),
    WrongCall("runs of an audit in text", lambda d: dp.audit(dp.mean, runs="all"), "whole number"),
    WrongCall("sure in percent", lambda d: dp.audit(dp.mean, confidence=95), "0.95"),
    WrongCall("an attack on text", lambda d: attacks.reconstruction("people"), "whole number"),
    WrongCall("a table of text", lambda d: attacks.uniqueness("a"), "frame", SHAPE),
    WrongCall(
        "nobody's column", lambda d: attacks.uniqueness(d.columns, columns="agee"), "age", SHAPE
    ),
    WrongCall("a publisher by name", lambda d: attacks.uniqueness(against="k"), "Rounded(10)"),
    WrongCall("a budget of nobody", lambda d: attacks.Released(), "budget"),
]

NEWER = [
    *LEARNERS,
    *TABLES,
    *POSTERIORS,
    *HOLDOUTS,
    *FUNCTIONS,
    *SOURCES,
    *SERVICES,
    *AUDITS,
]
