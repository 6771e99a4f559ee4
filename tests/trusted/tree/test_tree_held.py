"""Connections that are held between operations: never those of another file, or of a parent."""

from __future__ import annotations

import contextlib
import os
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

import discreet as dp
from discreet.errors import NodeFrozen
from discreet.neighbors import AddRemove
from discreet.trusted.ledger.held import MOST_IDLE
from discreet.trusted.losses.pricing import Price
from discreet.trusted.tree.node import Node
from discreet.trusted.tree.tree import BudgetTree

REQUEST = {"query": "count", "neighbors": AddRemove().to_dict()}
PRICE = Price(mu_squared=Fraction(1, 100))


def held(path: Path) -> tuple[BudgetTree, Node]:
    tree = BudgetTree.open(path, held=True)
    return tree, tree.root("survey", dp.GDP(1), neighbors=AddRemove(), key="survey")


def pay(node: Node, key: str) -> None:
    node.debit(key=key, request=REQUEST, price=PRICE)


def keys(path: Path, node: Node) -> set[str]:
    """The debits that a new reader finds."""
    found = BudgetTree.open(path).node(node.id).entries()
    return {one.key for one in found if one.kind == "debit"}


def test_a_file_that_was_put_in_the_place_is_the_one_that_is_used(tmp_path: Path) -> None:
    path = tmp_path / "budgets.db"
    tree, node = held(path)
    tree.close_connections()
    shutil.copyfile(path, tmp_path / "other.db")
    pay(node, "before")
    for end in ("", "-wal", "-shm"):
        os.unlink(f"{path}{end}")
    shutil.copyfile(tmp_path / "other.db", path)
    with pytest.raises(NodeFrozen):
        pay(node, "after")  # the older copy does not know what this process has seen
    other = BudgetTree.open(path, held=True).node(node.id)
    pay(other, "in the new file")
    assert keys(path, node) == {"in the new file"}


def test_a_log_that_was_taken_away_is_noticed(tmp_path: Path) -> None:
    """Otherwise debits would go on in a log that nobody else can find."""
    path = tmp_path / "budgets.db"
    _, node = held(path)
    pay(node, "before")
    os.unlink(f"{path}-wal")
    for _ in range(2):
        with pytest.raises(NodeFrozen):
            pay(node, "after")


def test_a_child_begins_with_connections_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "budgets.db"
    tree, node = held(path)
    pay(node, "parent")
    idle = tree._places.database._file._idle  # type: ignore[attr-defined]
    assert [connection.process for _, connection in idle] == [os.getpid()]
    child = os.fork()
    if child == 0:
        try:
            pay(node, "child")
            assert [connection.process for _, connection in idle] == [os.getpid()]
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    pay(node, "parent again")
    assert keys(path, node) == {"parent", "child", "parent again"}
    tree.close_connections()
    assert not idle


def test_few_are_held_at_a_time(tmp_path: Path) -> None:
    """However many used a file at once."""
    path = tmp_path / "budgets.db"
    tree, node = held(path)
    with contextlib.ExitStack() as stack:
        for _ in range(MOST_IDLE + 3):
            stack.enter_context(tree._places.database.read())
    assert len(tree._places.database._file._idle) == MOST_IDLE  # type: ignore[attr-defined]
    pay(node, "afterwards")
    assert keys(path, node) == {"afterwards"}
