"""Budget trees of a service: a file for each data set on SQLite, one database on PostgreSQL.

A tree is opened once in a process, and only if its whole history verifies; one that does not is
kept shut, and its data set refuses questions while all others go on.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from discreet.accounting.guarantees import Guarantee
from discreet.neighbors import Neighbors
from discreet.server.refusals import not_there
from discreet.server.settings import Settings
from discreet.trusted.tree.node import Box, Node
from discreet.trusted.tree.tree import BudgetTree

FOLDER = "budgets"


class Trees:
    """The trees that nodes of data sets are in."""

    def __init__(self, where: Callable[[str], str | None], *, secure: bool = True) -> None:
        """`where` says the place of a data set's tree; ``secure=False`` is for tests in memory."""
        self._where, self._secure = where, secure
        self._open: dict[str, BudgetTree] = {}
        self._guard = threading.Lock()

    # ── what is there ─────────────────────────────────────────────────────────────────────────────

    def tree(self, dataset: str) -> BudgetTree:
        """The tree of a data set."""
        place = self._where(dataset)
        name = dataset if place is None else place
        with self._guard:
            if name not in self._open:
                self._open[name] = BudgetTree.open(place)
            return self._open[name]

    def node(self, dataset: str, node: str) -> Node:
        """A node as a ledger."""
        return self.tree(dataset).node(node)

    def box(self, dataset: str, node: str) -> Box:
        """A box as it stands."""
        return self.node(dataset, node).boxes()[0]

    def children(self, dataset: str, node: str) -> list[str]:
        """The nodes right below one."""
        return [box.node for box in self.tree(dataset).children(node)]

    def problems(self, dataset: str) -> list[str]:
        """What is wrong with the history of a data set's tree; empty where all is well."""
        return [*self.tree(dataset).verify().problems]

    # ── what changes it ───────────────────────────────────────────────────────────────────────────

    def root(
        self,
        dataset: str,
        *,
        name: str,
        budget: Guarantee,
        neighbors: Neighbors,
        pure: float | None = None,
        delta0: float | None = None,
    ) -> Node:
        """The box of a data set."""
        return self.tree(dataset).root(
            name,
            budget,
            neighbors=neighbors,
            key=dataset,
            pure=pure,
            delta0=delta0,
            secure=self._secure,
        )

    def carve(self, dataset: str, parent: str, *, name: str, budget: Guarantee, key: str) -> Node:
        """A box that is set aside in its parent."""
        return self.tree(dataset).carve(parent, name, budget, key=key)

    def pool(self, dataset: str, parent: str, *, name: str, budget: Guarantee, key: str) -> Node:
        """One more limit on the money of its parent."""
        return self.tree(dataset).pool(parent, name, budget, key=key)

    def close(self, dataset: str, node: str) -> None:
        """What was not spent goes back."""
        self.tree(dataset).close(node)

    def freeze(self, dataset: str, node: str, reason: str) -> None:
        self.tree(dataset).freeze(node, reason)

    def thaw(self, dataset: str, node: str, reason: str) -> None:
        self.tree(dataset).unfreeze(node, reason)

    def note(self, dataset: str, node: str, kind: str, told: dict[str, Any]) -> None:
        """A decision, in the hash chain."""
        self.tree(dataset).append_note(node, kind, json.dumps(told, sort_keys=True))


def open_trees(settings: Settings) -> Trees:
    """The trees of a service."""
    if settings.database is not None:
        return Trees(lambda dataset: settings.database)
    folder = Path(settings.state) / FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Trees(lambda dataset: os.fspath(folder / f"{_plain(dataset)}.db"))


def _plain(dataset: str) -> str:
    """An id that is one: it becomes the name of a file."""
    if not dataset.isascii() or not dataset.replace("_", "").isalnum():
        raise not_there()
    return dataset
