"""A small survey and every question that can be asked of it,
for the tests of the public functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import discreet as dp

ROWS = 1000
SCHEMA = {
    "income": dp.Real(0, 100),
    "age": dp.Integer(18, 90),
    "region": dp.Category(["E", "N", "S", "W"]),
    "member": dp.Boolean(),
}
RELATIONS = (
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="person", max_rows=2),
    dp.AddRemove(unit="person", max_rows=2),
)
SPENDS = (dp.GDP(0.5), dp.PureDP(0.5), dp.ApproxDP(0.5, 1e-6), dp.ZCDP(0.125))

Ask = Callable[[Any, Any], Any]
ASKS: dict[str, Ask] = {
    "count": lambda session, spend: dp.count(
        session, spend=spend, where={"region": ["N", "S"], "age": (20, 60)}
    ),
    "sum": lambda session, spend: dp.sum(session, "income", spend=spend),
    "mean": lambda session, spend: dp.mean(session, "income", spend=spend),
    "mean where": lambda session, spend: dp.mean(
        session, "age", spend=spend, where={"member": True}
    ),
    "variance": lambda session, spend: dp.variance(session, "income", spend=spend),
    "proportion": lambda session, spend: dp.proportion(session, "member", spend=spend),
    "proportion of level": lambda session, spend: dp.proportion(
        session, "region", level="N", spend=spend, where={"age": (18, 50)}
    ),
    "histogram": lambda session, spend: dp.histogram(
        session, "income", bins=[0, 40, 50, 60, 100], spend=spend
    ),
    "histogram of levels": lambda session, spend: dp.histogram(session, "region", spend=spend),
    "table": lambda session, spend: dp.table(session, "income", by="region", spend=spend),
    "table of counts": lambda session, spend: dp.table(
        session, by={"region": None, "age": [18, 40, 65, 90]}, spend=spend, where={"member": False}
    ),
}


def survey(seed: int = 1, rows: int = ROWS) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "income": np.clip(rng.normal(50, 10, rows), 0, 100),
        "age": rng.integers(18, 91, rows),
        "region": rng.choice(["E", "N", "S", "W"], rows, p=[0.4, 0.3, 0.2, 0.1]),
        "member": rng.random(rows) < 0.3,
        "person": np.repeat(np.arange(rows), 2)[:rows],
    }


def data_set(
    neighbors: Any = RELATIONS[0], data: dict[str, np.ndarray] | None = None
) -> dp.Dataset:
    return dp.from_arrays(survey() if data is None else data, schema=SCHEMA, neighbors=neighbors)


def open_session(
    neighbors: Any = RELATIONS[0], budget: Any = None, data: dict[str, np.ndarray] | None = None
) -> dp.Session:
    return data_set(neighbors, data).open(budget=dp.GDP(1000) if budget is None else budget)
