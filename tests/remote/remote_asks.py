"""Every procedure of the overview's table, as functions of (session, spend), on one made-up survey;
and those that see rows, which no remote session answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import discreet as dp
from discreet.sklearn import PrivateLinearRegression

Ask = Callable[..., Any]
ROWS = 400
SCHEMA: dict[str, Any] = {
    "income": dp.Real(0, 100),
    "after": dp.Real(0, 120),
    "score": dp.Real(-3, 3, missing=0, bits=32),
    "wide": dp.Real(-1e6, 1e6),
    "age": dp.Integer(18, 90, missing=40),
    "visits": dp.Integer(0, 12),
    "region": dp.Category(["E", "N", "S", "W"]),
    "arm": dp.Category(["a", "b", "c"], missing="c"),
    "member": dp.Boolean(),
    "town": dp.Open(),
    "joined": dp.Date("2020-01-01", "2021-12-31"),
}
RELATIONS = (
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="person", max_rows=2),
    dp.AddRemove(unit="person", max_rows=2),
)
SOLVER = dp.SGD(5, batch=40, delta=1e-5)
FILTERS = {
    "young": {"age": (18, 30)},
    "north": {"region": "N"},
    "members": {"member": True, "income": (20, 80)},
}


def survey(seed: int = 5, rows: int = ROWS) -> dict[str, Any]:
    """Columns of the survey; a person has about two rows."""
    draw = np.random.default_rng(seed)
    z = draw.normal(size=rows)
    income = np.clip(50 + 12 * z, 0, 100)
    return {
        "income": income,
        "after": np.clip(20 + 0.7 * income + draw.normal(0, 5, rows), 0, 120),
        "score": np.clip(0.6 * z + draw.normal(0, 0.7, rows), -3, 3),
        "wide": 1000 + 40 * z,
        "age": draw.integers(18, 91, rows),
        "visits": draw.poisson(3, rows),
        "region": draw.choice(["E", "N", "S", "W"], rows),
        "arm": draw.choice(["a", "b", "c"], rows),
        "member": (z + draw.normal(size=rows)) > 0,
        "town": draw.choice(["Großburg", "Ångby", "<b>Ürzig</b>"], rows, p=[0.5, 0.3, 0.2]),
        "joined": np.datetime64("2020-01-01") + draw.integers(0, 731, rows),
        "person": draw.integers(0, rows // 2, rows),
    }


def clip(value: float) -> float:
    """A ψ of plain arithmetic."""
    return max(-1.5, min(1.5, value))


def always(first: Any) -> float:
    """A test of parts that always rejects."""
    return 0.0


def _fitted_by_sklearn(session: Any, spend: Any, **_: Any) -> Any:
    return PrivateLinearRegression(spend=spend).fit(session, "income ~ after + arm").result_


ASKS: dict[str, Ask] = {
    "count": lambda s, spend, **o: dp.count(s, spend=spend, where=FILTERS["members"], **o),
    "sum": lambda s, spend, **o: dp.sum(s, "income", spend=spend, **o),
    "mean": lambda s, spend, **o: dp.mean(s, "age", spend=spend, where={"member": True}, **o),
    "mean of a date": lambda s, spend, **o: dp.mean(s, "joined", spend=spend, **o),
    "variance": lambda s, spend, **o: dp.variance(s, "income", spend=spend, by="region", **o),
    "std": lambda s, spend, **o: dp.std(s, "income", spend=spend, **o),
    "proportion": lambda s, spend, **o: dp.proportion(s, "region", level="N", spend=spend, **o),
    "missing": lambda s, spend, **o: dp.missing(s, spend=spend, **o),
    "describe": lambda s, spend, **o: dp.describe(s, ["income", "age"], spend=spend, **o),
    "histogram": lambda s, spend, **o: dp.histogram(s, "income", spend=spend, **o),
    "density": lambda s, spend, **o: dp.density(s, "score", spend=spend, **o),
    "ecdf": lambda s, spend, **o: dp.ecdf(s, "income", points=16, spend=spend, **o),
    "table": lambda s, spend, **o: dp.table(s, "income", by="region", spend=spend, **o),
    "table of counts": lambda s, spend, **o: dp.table(
        s, by={"arm": None, "age": [18, 40, 65, 90]}, spend=spend, **o
    ),
    "covariance": lambda s, spend, **o: dp.covariance(s, ["income", "age"], spend=spend, **o),
    "correlation": lambda s, spend, **o: dp.correlation(s, ["income", "after"], spend=spend, **o),
    "median": lambda s, spend, **o: dp.median(s, "income", spend=spend, **o),
    "median by": lambda s, spend, **o: dp.median(s, "income", by="member", spend=spend, **o),
    "quantile": lambda s, spend, **o: dp.quantile(
        s, "age", 0.25, method="inverse", spend=spend, **o
    ),
    "quantiles": lambda s, spend, **o: dp.quantiles(s, "income", [0.1, 0.9], spend=spend, **o),
    "iqr": lambda s, spend, **o: dp.iqr(s, "income", spend=spend, **o),
    "mad": lambda s, spend, **o: dp.mad(s, "income", spend=spend, **o),
    "truncated mean": lambda s, spend, **o: dp.truncated_mean(
        s, "wide", bound=2000, spend=spend, **o
    ),
    "unbounded mean": lambda s, spend, **o: dp.unbounded_mean(s, "wide", spend=spend, **o),
    "location": lambda s, spend, **o: dp.location(s, "wide", spend=spend, **o),
    "trimmed mean": lambda s, spend, **o: dp.trimmed_mean(s, "income", spend=spend, **o),
    "select": lambda s, spend, **o: dp.select(s, FILTERS, spend=spend, **o),
    "mode": lambda s, spend, **o: dp.mode(s, "region", spend=spend, **o),
    "top": lambda s, spend, **o: dp.top(s, "region", 2, spend=spend, **o),
    "above threshold": lambda s, spend, **o: dp.above_threshold(
        s, FILTERS, 60, positives=2, spend=spend, **o
    ),
    "proportion test": lambda s, spend, **o: dp.proportion_test(s, "member", 0.5, spend=spend, **o),
    "compare": lambda s, spend, **o: dp.compare(s, "member", by="arm", spend=spend, **o),
    "independence": lambda s, spend, **o: dp.independence_test(
        s, "arm", "member", spend=spend, **o
    ),
    "rank test": lambda s, spend, **o: dp.rank_test(s, "income", by="arm", spend=spend, **o),
    "goodness of fit": lambda s, spend, **o: dp.goodness_of_fit(
        s, "region", {"E": 0.2, "N": 0.3, "S": 0.3, "W": 0.2}, spend=spend, **o
    ),
    "compare means": lambda s, spend, **o: dp.compare_means(
        s, "income", by="arm", spend=spend, **o
    ),
    "mean test": lambda s, spend, **o: dp.mean_test(s, "income", 48, spend=spend, **o),
    "paired test": lambda s, spend, **o: dp.paired_test(s, "after", "income", spend=spend, **o),
    "ols": lambda s, spend, **o: dp.ols(s, "income ~ after + arm", spend=spend, **o),
    "ols of moments": lambda s, spend, **o: dp.ols(
        s, "income ~ after", method="moments", spend=spend, **o
    ),
    "robust": lambda s, spend, **o: dp.robust(s, "income ~ after", spend=spend, **o),
    "logistic": lambda s, spend, **o: dp.logistic(s, "member ~ score", spend=spend, **o),
    "poisson": lambda s, spend, **o: dp.poisson(s, "visits ~ score", spend=spend, **o),
    "own psi": lambda s, spend, **o: dp.m_estimate(
        s, "income ~ after", psi=clip, reach=2, spend=spend, **o
    ),
    "sklearn": _fitted_by_sklearn,
}
# procedures that not every relation or every kind of spend allows
SOME: dict[str, tuple[Ask, Any, Any]] = {
    "open table": (
        lambda s, spend, **o: dp.table(s, by="town", spend=spend, delta=1e-5, **o),
        RELATIONS[0],
        dp.ApproxDP(1.5, 1e-4),
    ),
    "ptr": (
        lambda s, spend, **o: dp.median(s, "income", method="ptr", delta=1e-5, spend=spend, **o),
        RELATIONS[1],
        dp.ApproxDP(1.5, 1e-4),
    ),
    "friendly mean": (
        lambda s, spend, **o: dp.friendly_mean(s, ["income", "after"], radius=40, spend=spend, **o),
        RELATIONS[1],
        dp.ApproxDP(8, 1e-4),
    ),
    "erm": (
        lambda s, spend, **o: dp.erm(s, "member ~ score", spend=spend, **o),
        RELATIONS[0],
        dp.PureDP(1),
    ),
    "network": (
        lambda s, spend, **o: dp.network(
            s,
            "member ~ score",
            hidden=(3,),
            solver=dp.SGD(5, batch=40, delta=1e-5),
            spend=spend,
            **o,
        ),
        RELATIONS[0],
        dp.GDP(2),
    ),
    "accuracy": (
        lambda s, spend, **o: dp.accuracy(
            s, dp.logistic(s, "member ~ score", spend=spend), spend=spend, **o
        ),
        RELATIONS[0],
        dp.GDP(2),
    ),
    "residuals": (
        lambda s, spend, **o: dp.residuals(
            s, dp.ols(s, "income ~ after", spend=spend), spend=spend, **o
        ),
        RELATIONS[0],
        dp.GDP(2),
    ),
    "posterior": (
        lambda s, spend, **o: dp.posterior(s, dp.BetaBinomial("member"), spend=spend, **o),
        RELATIONS[0],
        dp.GDP(1),
    ),
    "posterior sample": (
        lambda s, spend, **o: dp.posterior_sample(
            s, dp.BetaBinomial("member"), grid=[0.1, 0.3, 0.5, 0.7, 0.9], spend=spend, **o
        ),
        RELATIONS[0],
        dp.PureDP(1),
    ),
    "mwem": (
        lambda s, spend, **o: dp.mwem(s, ["arm", "member"], rounds=2, spend=spend, **o),
        RELATIONS[0],
        dp.GDP(1),
    ),
    "synthesize": (
        lambda s, spend, **o: dp.synthesize(s, ["arm", "member", "region"], spend=spend, **o),
        RELATIONS[0],
        dp.GDP(1),
    ),
}
REFUSED: dict[str, tuple[Ask, str]] = {
    "friendly_clusters": (
        lambda s, spend: dp.friendly_clusters(
            s, ["income", "after"], k=1, radius=40, parts=20, spend=dp.ApproxDP(8, 1e-4)
        ),
        "dp.friendly_mean",
    ),
    "watch": (lambda s, spend: dp.watch(s, 60, spend=spend), "above_threshold"),
    "holdout": (
        lambda s, spend: dp.holdout(s, threshold=0.1, answers=2, spend=spend),
        "proportion_test",
    ),
    "subsample_test": (
        lambda s, spend: dp.subsample_test(
            s, always, columns="income", parts=12, inner=0.2, spend=spend
        ),
        "rank_test",
    ),
    "subsample": (
        lambda s, spend: dp.subsample(
            s, always, columns="income", output=dp.Real(0, 1), parts=12, spend=spend
        ),
        "dp.quantiles",
    ),
    "subsample, friendly": (
        lambda s, spend: dp.subsample(
            s,
            always,
            columns="income",
            output={"a": dp.Real(0, 1), "b": dp.Real(0, 1)},
            aggregate="friendly mean",
            radius=1.0,
            parts=100,
            spend=dp.ApproxDP(4, 1e-4),
        ),
        "dp.quantiles",
    ),
    "tune": (
        lambda s, spend: dp.tune(
            s,
            [dp.trial(dp.ols, "income ~ after")],
            score="squared error",
            spend=dp.ApproxDP(4, 1e-4),
            trials=2,
        ),
        "dp.accuracy",
    ),
}


def told(result: Any) -> dict[str, Any]:
    """What a result wrote, up to hashes and keys, which are of one ledger alone."""
    written: dict[str, Any] = json.loads(result.to_json())
    for record in _records(written):
        record.pop("entry_hash", None)
        record.pop("key", None)
    return written


def _records(written: Any) -> Iterator[dict[str, Any]]:
    if isinstance(written, dict):
        yield written
        for held in written.values():
            yield from _records(held)
    elif isinstance(written, Sequence) and not isinstance(written, str):
        for held in written:
            yield from _records(held)
