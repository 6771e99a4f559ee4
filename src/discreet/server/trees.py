"""Budget trees of a service: a file for each data set on SQLite, one database on PostgreSQL.

A tree is opened once in a process, by those who answer with a file of pins: the place of each
answer's line is noted there, durably, before the answer leaves.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from discreet.accounting.guarantees import Guarantee
from discreet.neighbors import Neighbors
from discreet.server.refusals import not_there
from discreet.server.settings import Settings
from discreet.trusted.tree.node import Box, Node
from discreet.trusted.tree.recovery import Burnt
from discreet.trusted.tree.tree import BudgetTree

FOLDER = "budgets"
IN = "_po_"  # ds_0123456789_po_0123456789: a data set of a population
MOST_NODES = 4096  # that a process remembers the places of
MOST_HELD = 32  # trees whose connections a process holds between operations


class Trees:
    """The trees that nodes of data sets are in."""

    def __init__(
        self,
        where: Callable[[str], str | None],
        *,
        pins: Callable[[str], str] | None = None,
        secure: bool = True,
    ) -> None:
        """`where` says the place of a data set's tree, and `pins` that of its pins, from which
        answers leave; ``secure=False`` is for tests in memory.
        """
        self._where, self._pins, self._secure = where, pins, secure
        self._open: dict[str, BudgetTree] = {}
        self._used: OrderedDict[str, None] = OrderedDict()  # the one used last at the end
        self._nodes: dict[tuple[str, str], tuple[str, Node]] = {}
        self._guard = threading.Lock()

    # ── what is there ─────────────────────────────────────────────────────────────────────────────

    def tree(self, dataset: str) -> BudgetTree:
        """The tree of a data set."""
        place = self._where(tree_of(dataset))
        name = tree_of(dataset) if place is None else place
        with self._guard:
            self._now_used(name)
            if name not in self._open:
                pins = None if self._pins is None else self._pins(tree_of(dataset))
                tree = self._open[name] = BudgetTree.open(place, pins=pins, held=True)
                if place is not None and not place.startswith("postgres"):
                    share(Path(place))
                return tree
            return self._open[name]

    def let_go(self) -> None:
        """Lets go of all connections, as a process does that ends."""
        with self._guard:
            for tree in self._open.values():
                tree.close_connections()
            self._open.clear()
            self._used.clear()
            self._nodes.clear()

    def node(self, dataset: str, node: str) -> Node:
        """A node as a ledger; where it stands never changes, what it holds is asked."""
        found = self._nodes.get((dataset, node))
        if found is None:
            if len(self._nodes) >= MOST_NODES:
                self._nodes.clear()
            tree = tree_of(dataset)
            found = self._where(tree) or tree, self.tree(dataset).node(node)
            self._nodes[dataset, node] = found
        else:
            with self._guard:
                self._now_used(found[0])
        return found[1]

    def _now_used(self, name: str) -> None:
        """The connections of trees that were not used for long are let go."""
        self._used[name] = None
        self._used.move_to_end(name)
        if len(self._used) > MOST_HELD:
            oldest, _ = self._used.popitem(last=False)
            if oldest in self._open:
                self._open[oldest].close_connections()

    def box(self, dataset: str, node: str) -> Box:
        """A box as it stands."""
        return self.node(dataset, node).boxes()[0]

    def children(self, dataset: str, node: str) -> list[str]:
        """The nodes right below one."""
        return [box.node for box in self.tree(dataset).children(node)]

    def problems(self, dataset: str, *, below: str | None = None) -> list[str]:
        """What is wrong with the history of a data set's tree, or with what stands `below` a root
        of it; empty where all is well.
        """
        report = self.tree(dataset).verify()
        if below is None or report.damage:
            return [*report.problems]
        mine = {below, *self._below(dataset, below)}
        return [
            f"{node}: {problem}"
            for node, one in report.chains.items()
            if node in mine or one.head == ""  # a chain that is gone has no place any more
            for problem in one.problems
        ]

    def forgotten(self, dataset: str, root: str) -> list[str]:
        """The carved nodes below a root that do not know their newest pinned line; the root is
        frozen where there are any.
        """
        tree = self.tree(dataset)
        gone = tree.freeze_forgotten()
        mine = [chain for chain, top in gone.items() if top == root]
        known = any(box.node == root for box in tree.roots())
        return mine if known else [root]

    def recover(
        self, dataset: str, root: str, node: str, receipts: Iterable[tuple[str, int, str]]
    ) -> list[Burnt]:
        """Counts what was forgotten as spent, and takes back the freeze of the root and of the data
        set's `node`; where a whole node was forgotten, with all that was above it but the root,
        that is the root's all.
        """
        tree, known = self.tree(dataset), {root, *self._below(dataset, root)}
        burnt = tree.recover(
            (one if one in known else root, number, digest) for one, number, digest in receipts
        )
        for one in sorted({root, node} & known):
            tree.unfreeze(one, "what was forgotten counts as spent")
        return burnt

    def _below(self, dataset: str, node: str) -> list[str]:
        found = self.children(dataset, node)
        return [*found, *(one for child in found for one in self._below(dataset, child))]

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


def open_trees(settings: Settings, *, pinned: bool = False) -> Trees:
    """The trees of a service; `pinned` where answers leave."""
    heads = settings.heads
    if pinned:
        heads.mkdir(parents=True, exist_ok=True, mode=0o700)
    if settings.database is not None:
        one = os.fspath(heads / "tree.pins")
        return Trees(lambda dataset: settings.database, pins=(lambda _: one) if pinned else None)
    folder = Path(settings.state) / FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o770)

    def pins(dataset: str) -> str:
        return os.fspath(heads / f"{_plain(dataset)}.pins")

    return Trees(
        lambda dataset: os.fspath(folder / f"{_plain(dataset)}.db"), pins=pins if pinned else None
    )


def share(path: Path) -> None:
    """Lets the group of the state's folder use a file, where that folder is shared at all: workers
    may run as another user of it.
    """
    if path.parent.parent.stat().st_mode & 0o020:
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):  # somebody else's, who shared it
                os.chmod(f"{path}{end}", 0o660)


def tree_of(dataset: str) -> str:
    """Whose tree a data set stands in: its own, or that of its population, which ends its id."""
    _, mark, population = dataset.partition(IN)
    return f"{IN[1:]}{population}" if mark else dataset


def _plain(dataset: str) -> str:
    """An id that is one: it becomes the name of a file."""
    if not dataset.isascii() or not dataset.replace("_", "").isalnum():
        raise not_there()
    return dataset
