"""Ledgers of every kind for the conformance suite, and a runner for scripts that fork,
race and die.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.accounting.guarantees import PureDP
from discreet.neighbors import AddRemove
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.ledger.requests import Reservation
from discreet.trusted.tree.node import Node
from discreet.trusted.tree.tree import BudgetTree

SCRIPT = Path(__file__).with_name("processes.py")


NODES = ("root", "carved", "pooled")
STORES = (
    "memory",
    "sqlite",
    *NODES,
    *(pytest.param(f"{node} of a file", marks=pytest.mark.slow) for node in NODES),
)


class AsLedger:
    """A node of a tree, asked as these tests ask a ledger: without naming the relation."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def __str__(self) -> str:
        return str(self._node)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._node.__reduce_ex__(protocol)

    def debit(self, *, request: Any, **options: Any) -> Any:
        if type(request) is dict:
            request = request | {"neighbors": AddRemove().to_dict()}
        return self._node.debit(request=request, **options)

    def reserve(self, *prices: Any, **options: Any) -> Any:
        made = self._node.reserve(*prices, **options)
        asked: Any = self
        return Reservation(asked, made.id)


def node_of(tree: BudgetTree, kind: str, budget: Any, **options: Any) -> Node:
    """A node of a kind that has all of its budget to itself."""
    root = tree.root("survey", budget, neighbors=AddRemove(), key="survey", **options)
    if kind == "root":
        return root
    make = tree.carve if kind == "carved" else tree.pool
    return make(root.id, "seat", budget, key="seat", **options)


@pytest.fixture(params=STORES)
def open_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    """`Ledger.open` on a new place of each kind, and nodes of trees, which are used as ledgers."""
    kind, _, place = request.param.partition(" ")

    def opened(budget: Any = None, **options: Any) -> Any:
        if kind in NODES:
            tree = BudgetTree.open(tmp_path / "budgets.db" if place else None)
            return AsLedger(node_of(tree, kind, budget or PureDP(1), **options))
        path = tmp_path / "test.ledger" if kind == "sqlite" else None
        return Ledger.open(budget or PureDP(1), path=path, **options)

    return opened


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    """A file whose box holds ε = 1."""
    path = tmp_path / "test.ledger"
    Ledger.open(PureDP(1), path=path)
    return path


@pytest.fixture
def run_process() -> Callable[..., Any]:
    """Run one command of processes.py in a clean process:
    its JSON output, or its exit code if it was killed.
    """

    def run(command: str, *arguments: object) -> Any:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, str(SCRIPT), command, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=600,
            env=environment,
            check=False,
        )
        if done.returncode < 0:
            return {"signal": -done.returncode, "printed": done.stdout}
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
