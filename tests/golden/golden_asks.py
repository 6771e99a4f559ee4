"""Every public question of a session, each as a function of (session, spend, further options).

Kept ledgers (`golden_stored`) are bound to these questions by their names: add questions, change
none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import discreet as dp

Ask = Callable[..., Any]
FILTERS = {
    "young": {"age": (18, 30)},
    "north": {"region": "N"},
    "members": {"member": True, "income": (20, 80)},
}
INCOMES = [0, 25, 40, 50, 60, 75, 100]
SPENDS: dict[str, Any] = {
    "gdp": dp.GDP(0.75),
    "pure": dp.PureDP(1.25),
    "approx": dp.ApproxDP(1.5, 1e-4),
    "zcdp": dp.ZCDP(0.3),
}


def clip(value: float) -> float:
    """A ψ of plain arithmetic."""
    return max(-1.5, min(1.5, value))


def ramp(value: float) -> float:
    """A mean function of plain arithmetic, between 0 and 1."""
    return min(1.0, max(0.0, 0.5 + value / 8))


def sums(first: Any, second: Any) -> float:
    """A test of parts whose p-value depends on all rows alike, not on their order.

    Rows are dealt to parts by the engine's own random numbers, which no seed repeats: what is
    recorded is a test on one part, or one that has the same outcome on all parts.
    """
    return round(abs(math.fsum(first) - 0.7 * math.fsum(second)), 3) % 1


def always(first: Any) -> float:
    """A test of parts that always rejects."""
    return 0.0


def never(first: Any, second: Any) -> float:
    """A test of parts that never rejects."""
    return 1.0


ASKS: dict[str, Ask] = {
    "count": lambda s, spend, **o: dp.count(s, spend=spend, **o),
    "count where": lambda s, spend, **o: dp.count(
        s, spend=spend, where={"region": ["N", "S"], "age": (20, 60)}, **o
    ),
    "sum": lambda s, spend, **o: dp.sum(s, "income", spend=spend, **o),
    "sum of whole numbers": lambda s, spend, **o: dp.sum(
        s, "visits", spend=spend, where={"member": False}, **o
    ),
    "mean": lambda s, spend, **o: dp.mean(s, "income", spend=spend, **o),
    "mean of 32 bits": lambda s, spend, **o: dp.mean(s, "score", spend=spend, **o),
    "mean of yes and no": lambda s, spend, **o: dp.mean(s, "member", spend=spend, **o),
    "mean where": lambda s, spend, **o: dp.mean(s, "age", spend=spend, where={"member": True}, **o),
    "variance": lambda s, spend, **o: dp.variance(s, "income", spend=spend, **o),
    "variance where": lambda s, spend, **o: dp.variance(
        s, "visits", spend=spend, where={"arm": ["a", "b"]}, **o
    ),
    "proportion": lambda s, spend, **o: dp.proportion(s, "member", spend=spend, **o),
    "proportion of a level": lambda s, spend, **o: dp.proportion(
        s, "region", level="N", spend=spend, where={"age": (18, 50)}, **o
    ),
    "proportion tulap": lambda s, spend, **o: dp.proportion(
        s, "member", noise="tulap", spend=spend, **o
    ),
    "histogram": lambda s, spend, **o: dp.histogram(s, "income", bins=INCOMES, spend=spend, **o),
    "histogram of levels": lambda s, spend, **o: dp.histogram(s, "region", spend=spend, **o),
    "table of counts": lambda s, spend, **o: dp.table(
        s, by={"arm": None, "age": [18, 40, 65, 90]}, spend=spend, where={"member": False}, **o
    ),
    "table of means": lambda s, spend, **o: dp.table(s, "income", by="region", spend=spend, **o),
    "open table": lambda s, spend, **o: dp.table(s, by="town", spend=spend, delta=1e-5, **o),
    "open table of means": lambda s, spend, **o: dp.table(
        s, "income", by="town", spend=spend, delta=1e-5, **o
    ),
    "ecdf": lambda s, spend, **o: dp.ecdf(s, "income", points=16, spend=spend, **o),
    "ecdf of whole numbers": lambda s, spend, **o: dp.ecdf(
        s, "visits", spend=spend, where={"arm": "a"}, **o
    ),
    "density": lambda s, spend, **o: dp.density(s, "income", bins=INCOMES, spend=spend, **o),
    "density by itself": lambda s, spend, **o: dp.density(s, "score", spend=spend, **o),
    "covariance": lambda s, spend, **o: dp.covariance(
        s, ["income", "age", "score"], spend=spend, **o
    ),
    "correlation": lambda s, spend, **o: dp.correlation(
        s, ["income", "after"], spend=spend, where={"arm": ["a", "b"]}, **o
    ),
    "median": lambda s, spend, **o: dp.median(s, "income", spend=spend, **o),
    "quantile": lambda s, spend, **o: dp.quantile(
        s, "age", 0.25, spend=spend, where={"member": False}, **o
    ),
    "quantile exponential": lambda s, spend, **o: dp.quantile(
        s, "income", 0.75, method="exponential", spend=spend, **o
    ),
    "quantile inverse": lambda s, spend, **o: dp.quantile(
        s, "income", 0.25, method="inverse", interval_share=0, spend=spend, **o
    ),
    "quantile smooth": lambda s, spend, **o: dp.quantile(
        s, "income", 0.25, method="smooth", interval_share=0, spend=spend, **o
    ),
    "quantile inverse searched": lambda s, spend, **o: dp.quantile(
        s, "income", 0.25, method="inverse", spend=spend, **o
    ),
    "quantile smooth searched": lambda s, spend, **o: dp.quantile(
        s, "income", 0.25, method="smooth", spend=spend, **o
    ),
    "median ptr searched": lambda s, spend, **o: dp.median(
        s, "income", method="ptr", delta=1e-5, spend=spend, **o
    ),
    "quantile smooth cauchy": lambda s, spend, **o: dp.quantile(
        s, "income", 0.5, method="smooth", law="cauchy", shape=4, interval_share=0, spend=spend, **o
    ),
    "quantile smooth lln": lambda s, spend, **o: dp.quantile(
        s, "income", 0.5, method="smooth", law="lln", shape=0.5, interval_share=0, spend=spend, **o
    ),
    "quantile smooth laplace": lambda s, spend, **o: dp.quantile(
        s,
        "income",
        0.5,
        method="smooth",
        law="laplace",
        delta=1e-5,
        interval_share=0,
        spend=spend,
        **o,
    ),
    "quantile smooth gaussian": lambda s, spend, **o: dp.quantile(
        s,
        "income",
        0.5,
        method="smooth",
        law="gaussian",
        delta=1e-5,
        interval_share=0,
        spend=spend,
        **o,
    ),
    "quantile ptr": lambda s, spend, **o: dp.quantile(
        s, "income", 0.5, method="ptr", delta=1e-5, interval_share=0, spend=spend, **o
    ),
    "quantile ptr eta": lambda s, spend, **o: dp.median(
        s, "age", method="ptr", eta=2, delta=1e-5, interval_share=0, spend=spend, **o
    ),
    "quantiles": lambda s, spend, **o: dp.quantiles(s, "income", [0.1, 0.5, 0.9], spend=spend, **o),
    "iqr": lambda s, spend, **o: dp.iqr(s, "income", spend=spend, **o),
    "mad": lambda s, spend, **o: dp.mad(s, "income", spend=spend, **o),
    "mad normal": lambda s, spend, **o: dp.mad(
        s, "age", normal=True, spend=spend, where={"arm": ["b", "c"]}, **o
    ),
    "proportion test": lambda s, spend, **o: dp.proportion_test(s, "member", 0.5, spend=spend, **o),
    "proportion test one-sided": lambda s, spend, **o: dp.proportion_test(
        s, "region", 0.3, level="N", alternative="greater", spend=spend, **o
    ),
    "proportion test tulap": lambda s, spend, **o: dp.proportion_test(
        s, "member", 0.4, noise="tulap", alternative="less", spend=spend, **o
    ),
    "compare": lambda s, spend, **o: dp.compare(s, "member", by="arm", spend=spend, **o),
    "compare strata": lambda s, spend, **o: dp.compare(
        s, "arm", level="a", by="member", strata="region", spend=spend, **o
    ),
    "compare means": lambda s, spend, **o: dp.compare_means(
        s, "income", by="arm", spend=spend, **o
    ),
    "compare means of two": lambda s, spend, **o: dp.compare_means(
        s, "age", by="member", where={"region": ["E", "N"]}, spend=spend, **o
    ),
    "mean test": lambda s, spend, **o: dp.mean_test(s, "income", 48, spend=spend, **o),
    "paired test": lambda s, spend, **o: dp.paired_test(s, "after", "income", spend=spend, **o),
    "paired test of whole numbers": lambda s, spend, **o: dp.paired_test(
        s, "age", "visits", null=40, where={"member": True}, spend=spend, **o
    ),
    "goodness of fit": lambda s, spend, **o: dp.goodness_of_fit(
        s, "region", {"E": 0.2, "N": 0.3, "S": 0.3, "W": 0.2}, spend=spend, **o
    ),
    "goodness of fit bins": lambda s, spend, **o: dp.goodness_of_fit(
        s, "income", [0.1, 0.4, 0.4, 0.1], bins=[0, 30, 50, 70, 100], spend=spend, **o
    ),
    "independence": lambda s, spend, **o: dp.independence_test(
        s, "arm", "member", spend=spend, **o
    ),
    "independence bins": lambda s, spend, **o: dp.independence_test(
        s, "member", "age", bins={"age": [18, 40, 65, 90]}, spend=spend, **o
    ),
    "rank test": lambda s, spend, **o: dp.rank_test(s, "income", by="arm", spend=spend, **o),
    "rank test bins": lambda s, spend, **o: dp.rank_test(
        s, "score", by="member", bins=[-3, -0.5, 0.5, 3], spend=spend, **o
    ),
    "parts": lambda s, spend, **o: dp.subsample_test(
        s, always, columns="income", parts=12, inner=0.2, spend=spend, **o
    ),
    "parts of all rows": lambda s, spend, **o: dp.subsample_test(
        s, sums, columns=["income", "after"], parts=1, inner=0.5, spend=spend, **o
    ),
    "parts by default": lambda s, spend, **o: dp.subsample_test(
        s, never, columns=("score", "income"), where={"member": True}, spend=spend, **o
    ),
    "select": lambda s, spend, **o: dp.select(s, FILTERS, spend=spend, **o),
    "select exponential": lambda s, spend, **o: dp.select(
        s, FILTERS, method="exponential", spend=spend, **o
    ),
    "select flip": lambda s, spend, **o: dp.select(
        s, "region", method="permute-and-flip", spend=spend, **o
    ),
    "select noisy max": lambda s, spend, **o: dp.select(
        s, "arm", method="noisy-max", spend=spend, **o
    ),
    "select sums": lambda s, spend, **o: dp.select(s, "region", score="income", spend=spend, **o),
    "select columns": lambda s, spend, **o: dp.select(
        s, ["income", "age", "member"], spend=spend, **o
    ),
    "mode": lambda s, spend, **o: dp.mode(s, "region", spend=spend, where={"age": (18, 80)}, **o),
    "top": lambda s, spend, **o: dp.top(s, "region", 2, spend=spend, **o),
    "top filters": lambda s, spend, **o: dp.top(s, FILTERS, 2, spend=spend, **o),
    "above threshold": lambda s, spend, **o: dp.above_threshold(
        s, FILTERS, 60, positives=2, spend=spend, **o
    ),
    "above threshold list": lambda s, spend, **o: dp.above_threshold(
        s, list(FILTERS.values()), 90, spend=spend, **o
    ),
    "truncated mean": lambda s, spend, **o: dp.truncated_mean(
        s, "wide", bound=2000, spend=spend, **o
    ),
}
SEARCHES: dict[str, Ask] = {
    "unbounded mean": lambda s, spend, **o: dp.unbounded_mean(s, "wide", spend=spend, **o),
    "unbounded mean where": lambda s, spend, **o: dp.unbounded_mean(
        s, "age", where={"member": False}, spend=spend, **o
    ),
    "location": lambda s, spend, **o: dp.location(s, "wide", spend=spend, **o),
    "location where": lambda s, spend, **o: dp.location(
        s, "income", where={"arm": ["a", "b"]}, spend=spend, **o
    ),
}
LINE, WHOLE = "income ~ after + arm", "income ~ after + log(age) * member"
STEPS = dp.SGD(30, batch=60, delta=1e-5, shown=6)
FITS: dict[str, Ask] = {
    "ols": lambda s, spend, **o: dp.ols(s, LINE, spend=spend, **o),
    "ols where": lambda s, spend, **o: dp.ols(
        s, "income ~ after", where={"member": True}, spend=spend, **o
    ),
    "ols moments": lambda s, spend, **o: dp.ols(s, LINE, method="moments", spend=spend, **o),
    "ols gradient": lambda s, spend, **o: dp.ols(
        s, LINE, solver=dp.GradientDescent(12, step_size=0.8), spend=spend, **o
    ),
    "ols newton": lambda s, spend, **o: dp.ols(
        s, "income ~ after", solver=dp.Newton(3), spend=spend, **o
    ),
    "ols sgd": lambda s, spend, **o: dp.ols(s, "income ~ after", solver=STEPS, spend=spend, **o),
    "robust": lambda s, spend, **o: dp.robust(s, "income ~ after - 1", spend=spend, **o),
    "robust c": lambda s, spend, **o: dp.robust(
        s, "income ~ score", c=2.0, where={"region": ["N", "S", "E"]}, spend=spend, **o
    ),
    "robust newton": lambda s, spend, **o: dp.robust(
        s, "income ~ after", solver=dp.Newton(4, damping=0.5, radius=1.5), spend=spend, **o
    ),
    "logistic": lambda s, spend, **o: dp.logistic(s, "member ~ income", spend=spend, **o),
    "logistic gradient": lambda s, spend, **o: dp.logistic(
        s, "member ~ income", solver=dp.GradientDescent(10), spend=spend, **o
    ),
    "logistic sgd": lambda s, spend, **o: dp.logistic(
        s, "member ~ score", solver=STEPS, spend=spend, **o
    ),
    "logistic damped newton": lambda s, spend, **o: dp.logistic(
        s, "member ~ score", solver="damped newton", spend=spend, **o
    ),
    "poisson": lambda s, spend, **o: dp.poisson(s, "visits ~ score", spend=spend, **o),
    "poisson newton": lambda s, spend, **o: dp.poisson(
        s, "visits ~ score", solver=dp.Newton(3), spend=spend, **o
    ),
    "own psi": lambda s, spend, **o: dp.m_estimate(
        s, "income ~ after", psi=clip, reach=2, spend=spend, **o
    ),
    "own mean": lambda s, spend, **o: dp.m_estimate(
        s, "member ~ score", mean=ramp, reach=4, spend=spend, **o
    ),
    "own mean of counts": lambda s, spend, **o: dp.m_estimate(
        s, "visits ~ score", mean=lambda value: 12 * ramp(value), reach=4, spend=spend, **o
    ),
}
PREVIEWS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "count": (dp.count, (), {"where": {"region": "N"}}),
    "sum": (dp.sum, ("income",), {}),
    "mean": (dp.mean, ("income",), {}),
    "mean where": (dp.mean, ("age",), {"where": {"member": True}}),
    "variance": (dp.variance, ("income",), {}),
    "proportion": (dp.proportion, ("member",), {}),
    "proportion tulap": (dp.proportion, ("member",), {"noise": "tulap"}),
    "histogram": (dp.histogram, ("region",), {}),
    "table": (dp.table, ("income",), {"by": "member"}),
    "open table": (dp.table, (), {"by": "town", "delta": 1e-5}),
    "ecdf": (dp.ecdf, ("income",), {"points": 16}),
    "density": (dp.density, ("income",), {}),
    "covariance": (dp.covariance, (["income", "age"],), {}),
    "correlation": (dp.correlation, (["income", "age"],), {}),
    "median": (dp.median, ("income",), {}),
    "quantile": (dp.quantile, ("income", 0.25), {}),
    "quantile exponential": (dp.quantile, ("income", 0.25), {"method": "exponential"}),
    "quantile inverse": (dp.quantile, ("income", 0.25), {"method": "inverse"}),
    "quantile smooth": (dp.quantile, ("income", 0.25), {"method": "smooth"}),
    "quantile ptr": (dp.quantile, ("income", 0.25), {"method": "ptr", "delta": 1e-5}),
    "quantiles": (dp.quantiles, ("income", [0.25, 0.75]), {}),
    "iqr": (dp.iqr, ("income",), {}),
    "mad": (dp.mad, ("income",), {}),
    "mad normal": (dp.mad, ("income",), {"normal": True}),
    "proportion test": (dp.proportion_test, ("member", 0.5), {}),
    "compare": (dp.compare, ("member",), {"by": "arm"}),
    "compare means": (dp.compare_means, ("income",), {"by": "arm"}),
    "mean test": (dp.mean_test, ("income", 50), {}),
    "paired test": (dp.paired_test, ("after", "income"), {}),
    "goodness of fit": (dp.goodness_of_fit, ("region", [0.25, 0.25, 0.25, 0.25]), {}),
    "independence": (dp.independence_test, ("arm", "member"), {}),
    "rank test": (dp.rank_test, ("income",), {"by": "arm"}),
    "parts": (dp.subsample_test, (sums,), {"columns": ["income", "after"], "parts": 12}),
    "select": (dp.select, (FILTERS,), {}),
    "mode": (dp.mode, ("region",), {}),
    "top": (dp.top, ("region", 2), {}),
    "above threshold": (dp.above_threshold, (FILTERS, 60), {"positives": 2}),
    "watch": (dp.watch, (60,), {"positives": 2}),
    "truncated mean": (dp.truncated_mean, ("wide",), {"bound": 2000}),
    "unbounded mean": (dp.unbounded_mean, ("wide",), {}),
    "location": (dp.location, ("wide",), {}),
    "ols": (dp.ols, (LINE,), {}),
    "ols moments": (dp.ols, (LINE,), {"method": "moments"}),
    "ols newton": (dp.ols, (LINE,), {"solver": "newton"}),
    "robust": (dp.robust, (LINE,), {}),
    "logistic": (dp.logistic, ("member ~ income",), {}),
    "logistic sgd": (dp.logistic, ("member ~ income",), {"solver": STEPS}),
    "poisson": (dp.poisson, ("visits ~ score",), {}),
}
