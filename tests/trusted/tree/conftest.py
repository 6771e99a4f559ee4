"""Trees in every kind of store, for the conformance suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.trusted.tree.tree import BudgetTree


@pytest.fixture(params=["memory", "sqlite"])
def open_tree(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], BudgetTree]:
    """A tree in a new place of each kind; called again, the same place, where it lasts."""
    place = {"memory": None, "sqlite": str(tmp_path / "budgets.db")}[request.param]
    return lambda: BudgetTree.open(place)
