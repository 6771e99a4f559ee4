"""Whoever edits a tree's file is found out, whichever cell it is: lines commit to all that they
say, and meters and reservations are what the lines add up to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.accounting.guarantees import PureDP
from discreet.neighbors import AddRemove
from discreet.trusted.ledger.entries import FIRST_PREVIOUS
from discreet.trusted.losses.pricing import Price
from discreet.trusted.tree import schema
from discreet.trusted.tree.node import Node
from discreet.trusted.tree.tree import BudgetTree

TENTH = Price(epsilon=Fraction(1, 10))
NAMES = {
    "tree_nodes": ("id",),
    "tree_lines": ("chain", "number"),
    "tree_reservations": ("node", "owner", "key"),
}
# where a node writes in the chain of another
SAYING_NOTHING = [("tree_nodes", "entries", 0), ("tree_nodes", "head", FIRST_PREVIOUS)]
TRIGGERS = schema.SQLITE[0][-2:]


def pay(node: Node, key: str, **options: str) -> None:
    request = {"query": key, "neighbors": AddRemove().to_dict()}
    node.debit(key=key, request=request, price=TENTH, **options)
    node.store(key, lambda: "answer")


def tree_of_every_kind(folder: Path) -> BudgetTree:
    """A tree with lines of every kind that a node of each kind writes."""
    tree = BudgetTree.open(folder / "budgets.db")
    root = tree.root("survey", PureDP(2), neighbors=AddRemove(), key="survey")
    study = tree.carve(root.id, "study", PureDP(1), key="study")
    seat = tree.pool(study.id, "anna", PureDP(0.5), key="anna")
    pay(seat, "asked")
    held = seat.reserve(TENTH, key="aside")
    pay(seat, "step", reservation=held.id)
    tree.close(tree.carve(root.id, "gone", PureDP(0.5), key="gone").id)
    return tree


@pytest.fixture
def tree(tmp_path: Path) -> BudgetTree:
    return tree_of_every_kind(tmp_path)


class Editor:
    """Somebody with the file, who can take the triggers off and put them back."""

    def __init__(self, file: Path) -> None:
        self.connection = sqlite3.connect(file, isolation_level=None)
        for setting in ("ignore_check_constraints = ON", "synchronous = OFF"):
            self.connection.execute(f"PRAGMA {setting}")

    def cells(self) -> Iterator[tuple[str, str, tuple[object, ...], object]]:
        """Every cell: table, column, the name of its row, what it holds."""
        for table, names in NAMES.items():
            asked = self.connection.execute(f"SELECT {', '.join(names)}, * FROM {table}")
            columns = [column for column, *_ in asked.description[len(names) :]]
            for row in asked.fetchall():
                for column, held in zip(columns, row[len(names) :], strict=True):
                    yield table, column, row[: len(names)], held

    def put(self, table: str, column: str, row: tuple[object, ...], value: object) -> None:
        where = " AND ".join(f"{name} = ?" for name in NAMES[table])
        self.connection.execute("BEGIN IMMEDIATE")
        for change in ("update", "delete"):
            self.connection.execute(f"DROP TRIGGER tree_lines_never_{change}")
        self.connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value, *row))
        for statement in TRIGGERS:
            self.connection.execute(statement)
        self.connection.execute("COMMIT")


def test_every_cell_is_guarded(tree: BudgetTree, tmp_path: Path) -> None:
    assert tree.verify().ok, tree.verify().problems
    editor = Editor(tmp_path / "budgets.db")
    everything, passed = [*editor.cells()], []
    assert len(everything) > 300
    for table, column, row, held in everything:
        other = 1 - held if held in (0, 1) else held + 1 if isinstance(held, int) else f"{held}x"
        if column in NAMES[table] or (table, column, held) in SAYING_NOTHING:
            continue
        editor.put(table, column, row, other)
        try:
            if tree.verify().ok:
                passed.append((table, column, held))
        except Exception as error:
            passed.append((table, column, repr(error)))
        editor.put(table, column, row, held)
    editor.connection.close()
    assert passed == []
    assert tree.verify().ok, tree.verify().problems


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tree_lines SET body = 'other'",
        "DELETE FROM tree_lines",
        "UPDATE tree_nodes SET spent_epsilon = box_epsilon + 1",
        "UPDATE tree_nodes SET reserved_epsilon = box_epsilon - spent_epsilon + 1",
        "UPDATE tree_reservations SET used_epsilon = epsilon + 1",
    ],
)
def test_the_tables_themselves_refuse_it(change: str, tree: BudgetTree, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "budgets.db")
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(change)
    connection.close()
    assert tree.verify().ok
