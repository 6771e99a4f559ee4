"""discreet: differentially private statistical inference, with intervals that are right and privacy that is proven.

    import discreet as dp

    data = dp.read_parquet("survey.parquet", schema={"income": dp.Real(0, 200_000)}, neighbors=dp.Replace())
    session = data.open(budget=dp.ApproxDP(epsilon=1, delta=1e-6), ledger="survey.ledger")
    print(dp.mean(session, "income", spend=dp.GDP(0.1)).summary())

Names are imported on first use, so that importing discreet costs little more than importing numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "discreet.neighbors": ("AddRemove", "Replace"),
    "discreet.schema": ("Boolean", "Category", "Integer", "Real", "Schema"),
    "discreet.errors": ("BudgetExceeded", "DataShapeRefused", "DiscreetError", "InsecureNoise", "InvalidParameter", "LedgerRefused", "MissingExtra", "NeighborsMissing", "NoTheorem", "UndeclaredColumn", "WrongColumnKind"),
    "discreet.accounting": ("ApproxDP", "GDP", "PureDP", "RDP", "ZCDP", "compose"),
    "discreet.accounting.explain": ("explain",),
    "discreet.accounting.plan": ("plan", "rows_needed"),
    "discreet.accounting.pld": ("PLD",),
    "discreet.accounting.tradeoff": ("TradeOff",),
    "discreet.datasets": ("from_arrays", "from_frame", "read_csv", "read_parquet"),
    "discreet.session": ("Dataset", "ReleaseFailed", "Session"),
    "discreet.ledger": ("Ledger",),
    "discreet.release": ("Release",),
    "discreet.estimators": ("Assumptions", "count", "histogram", "mean", "preview", "proportion", "sum", "table", "variance"),
    "discreet.inference.results": ("Result",),
}
_WHERE = {name: home for home, names in _HOMES.items() for name in names} | {"from_json": "discreet.inference.results"}
__all__ = [
    "AddRemove", "ApproxDP", "Assumptions", "Boolean", "BudgetExceeded", "Category", "DataShapeRefused", "Dataset", "DiscreetError", "GDP", "InsecureNoise", "Integer", "InvalidParameter", "Ledger", "LedgerRefused", "MissingExtra", "NeighborsMissing", "NoTheorem", "PLD", "PureDP", "RDP", "Real", "Release", "ReleaseFailed", "Replace", "Result", "Schema", "Session", "TradeOff", "UndeclaredColumn", "WrongColumnKind", "ZCDP", "compose", "count", "explain", "from_arrays", "from_frame", "from_json", "histogram", "mean", "plan", "preview", "proportion", "read_csv", "read_parquet", "rows_needed", "sum", "table", "variance",
]

if TYPE_CHECKING:
    from discreet.accounting import GDP, RDP, ZCDP, ApproxDP, PureDP, compose
    from discreet.accounting.explain import explain
    from discreet.accounting.plan import plan, rows_needed
    from discreet.accounting.pld import PLD
    from discreet.accounting.tradeoff import TradeOff
    from discreet.datasets import from_arrays, from_frame, read_csv, read_parquet
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
        UndeclaredColumn,
        WrongColumnKind,
    )
    from discreet.estimators import Assumptions, count, histogram, mean, preview, proportion, sum, table, variance
    from discreet.inference.results import Result
    from discreet.inference.results import result_from_json as from_json
    from discreet.ledger import Ledger
    from discreet.neighbors import AddRemove, Replace
    from discreet.release import Release
    from discreet.schema import Boolean, Category, Integer, Real, Schema
    from discreet.session import Dataset, ReleaseFailed, Session


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), "result_from_json" if name == "from_json" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
