"""discreet: differentially private statistical inference,
with intervals that are right and privacy that is proven.

    import discreet as dp

    data = dp.read_parquet(
        "survey.parquet", schema={"income": dp.Real(0, 200_000)}, neighbors=dp.Replace()
    )
    session = data.open(budget=dp.ApproxDP(epsilon=1, delta=1e-6), ledger="survey.ledger")
    print(dp.mean(session, "income", spend=dp.GDP(0.1)).summary())

Names are imported on first use, so that importing discreet costs little more than importing numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOMES = {
    "discreet.accounting.composition": ("compose",),
    "discreet.accounting.explain": ("explain",),
    "discreet.accounting.guarantees": (
        "ApproxDP",
        "GDP",
        "PureDP",
    ),
    "discreet.accounting.plan": (
        "plan",
        "rows_needed",
    ),
    "discreet.accounting.loss_distributions.curve": ("PLD",),
    "discreet.accounting.renyi.rdp": (
        "RDP",
        "ZCDP",
    ),
    "discreet.accounting.tradeoff.curve": ("TradeOff",),
    "discreet.asking.preview": (
        "Assumptions",
        "preview",
    ),
    "discreet.asking.reading": ("from_json",),
    "discreet.errors": (
        "BudgetExceeded",
        "DataShapeRefused",
        "DiscreetError",
        "InsecureNoise",
        "InvalidParameter",
        "LedgerRefused",
        "MissingExtra",
        "NeighborsMissing",
        "NoTheorem",
        "ReleaseFailed",
        "SourceChanged",
        "UndeclaredColumn",
        "WrongColumnKind",
    ),
    "discreet.estimators.basic": (
        "count",
        "histogram",
        "mean",
        "proportion",
        "sum",
        "table",
        "variance",
    ),
    "discreet.estimators.comparisons": (
        "compare",
        "goodness_of_fit",
        "independence_test",
        "rank_test",
    ),
    "discreet.estimators.distributions": (
        "density",
        "ecdf",
    ),
    "discreet.estimators.matrices": (
        "correlation",
        "covariance",
    ),
    "discreet.estimators.mean_comparisons": (
        "compare_means",
        "mean_test",
        "paired_test",
    ),
    "discreet.estimators.part_tests": ("subsample_test",),
    "discreet.estimators.proportions": (
        "power",
        "proportion_test",
        "sample_size",
    ),
    "discreet.estimators.quantiles": (
        "median",
        "quantile",
        "quantiles",
    ),
    "discreet.estimators.scale": (
        "iqr",
        "mad",
    ),
    "discreet.estimators.selection": (
        "Watch",
        "above_threshold",
        "mode",
        "select",
        "top",
        "watch",
    ),
    "discreet.estimators.unbounded": (
        "location",
        "truncated_mean",
        "unbounded_mean",
    ),
    "discreet.inference.counts.selection": ("SelectionResult",),
    "discreet.inference.results.results": ("Result",),
    "discreet.models.m_estimate": ("m_estimate",),
    "discreet.models.regression": (
        "logistic",
        "ols",
        "poisson",
        "robust",
    ),
    "discreet.models.residuals": ("residuals",),
    "discreet.models.solvers": (
        "GradientDescent",
        "Newton",
        "SGD",
    ),
    "discreet.neighbors": (
        "AddRemove",
        "Replace",
    ),
    "discreet.schema": (
        "Boolean",
        "Category",
        "Integer",
        "Open",
        "Real",
        "Schema",
    ),
    "discreet.trusted.datasets": (
        "Dataset",
        "from_arrays",
        "from_frame",
        "read_csv",
        "read_parquet",
    ),
    "discreet.trusted.ledger.core": ("Ledger",),
    "discreet.trusted.release": ("Release",),
    "discreet.trusted.session": ("Session",),
}
_WHERE = {name: home for home, names in _HOMES.items() for name in names}
__all__ = [
    "AddRemove",
    "ApproxDP",
    "Assumptions",
    "Boolean",
    "BudgetExceeded",
    "Category",
    "DataShapeRefused",
    "Dataset",
    "DiscreetError",
    "GDP",
    "GradientDescent",
    "InsecureNoise",
    "Integer",
    "InvalidParameter",
    "Ledger",
    "LedgerRefused",
    "MissingExtra",
    "NeighborsMissing",
    "Newton",
    "NoTheorem",
    "Open",
    "PLD",
    "PureDP",
    "RDP",
    "Real",
    "Release",
    "ReleaseFailed",
    "Replace",
    "Result",
    "SGD",
    "Schema",
    "SelectionResult",
    "Session",
    "SourceChanged",
    "TradeOff",
    "UndeclaredColumn",
    "Watch",
    "WrongColumnKind",
    "ZCDP",
    "above_threshold",
    "compare",
    "compare_means",
    "compose",
    "correlation",
    "count",
    "covariance",
    "density",
    "ecdf",
    "explain",
    "from_arrays",
    "from_frame",
    "from_json",
    "goodness_of_fit",
    "histogram",
    "independence_test",
    "iqr",
    "location",
    "logistic",
    "m_estimate",
    "mad",
    "mean",
    "mean_test",
    "median",
    "mode",
    "ols",
    "paired_test",
    "plan",
    "poisson",
    "power",
    "preview",
    "proportion",
    "proportion_test",
    "quantile",
    "quantiles",
    "rank_test",
    "read_csv",
    "read_parquet",
    "residuals",
    "robust",
    "rows_needed",
    "sample_size",
    "select",
    "subsample_test",
    "sum",
    "table",
    "top",
    "truncated_mean",
    "unbounded_mean",
    "variance",
    "watch",
]

if TYPE_CHECKING:
    from discreet.accounting.composition import compose
    from discreet.accounting.explain import explain
    from discreet.accounting.guarantees import GDP, ApproxDP, PureDP
    from discreet.accounting.loss_distributions.curve import PLD
    from discreet.accounting.plan import plan, rows_needed
    from discreet.accounting.renyi.rdp import RDP, ZCDP
    from discreet.accounting.tradeoff.curve import TradeOff
    from discreet.asking.preview import Assumptions, preview
    from discreet.asking.reading import from_json
    from discreet.errors import (
        BudgetExceeded,
        DataShapeRefused,
        DiscreetError,
        InsecureNoise,
        InvalidParameter,
        LedgerRefused,
        MissingExtra,
        NeighborsMissing,
        NoTheorem,
        ReleaseFailed,
        SourceChanged,
        UndeclaredColumn,
        WrongColumnKind,
    )
    from discreet.estimators.basic import count, histogram, mean, proportion, sum, table, variance
    from discreet.estimators.comparisons import (
        compare,
        goodness_of_fit,
        independence_test,
        rank_test,
    )
    from discreet.estimators.distributions import density, ecdf
    from discreet.estimators.matrices import correlation, covariance
    from discreet.estimators.mean_comparisons import compare_means, mean_test, paired_test
    from discreet.estimators.part_tests import subsample_test
    from discreet.estimators.proportions import power, proportion_test, sample_size
    from discreet.estimators.quantiles import median, quantile, quantiles
    from discreet.estimators.scale import iqr, mad
    from discreet.estimators.selection import Watch, above_threshold, mode, select, top, watch
    from discreet.estimators.unbounded import location, truncated_mean, unbounded_mean
    from discreet.inference.counts.selection import SelectionResult
    from discreet.inference.results.results import Result
    from discreet.models.m_estimate import m_estimate
    from discreet.models.regression import logistic, ols, poisson, robust
    from discreet.models.residuals import residuals
    from discreet.models.solvers import SGD, GradientDescent, Newton
    from discreet.neighbors import AddRemove, Replace
    from discreet.schema import Boolean, Category, Integer, Open, Real, Schema
    from discreet.trusted.datasets import Dataset, from_arrays, from_frame, read_csv, read_parquet
    from discreet.trusted.ledger.core import Ledger
    from discreet.trusted.release import Release
    from discreet.trusted.session import Session


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
