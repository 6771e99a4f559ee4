"""Connections that are held between operations: never those of another file, or of a parent."""

from __future__ import annotations

import os
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

import discreet as dp
from discreet.errors import NodeFrozen
from discreet.neighbors import AddRemove
from discreet.trusted.losses.pricing import Price
from discreet.trusted.tree import sqlite
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
    assert any(one[0] == path.resolve() for one in sqlite._idle)
    child = os.fork()
    if child == 0:
        try:
            assert not sqlite._idle
            pay(node, "child")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    pay(node, "parent again")
    assert keys(path, node) == {"parent", "child", "parent again"}
    tree.close_connections()
    assert not any(one[0] == path.resolve() for one in sqlite._idle)


def test_few_are_held_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "MOST_IDLE", 2)
    monkeypatch.setattr(sqlite, "_idle", [])  # without those of other tests
    nodes = [held(tmp_path / f"{number}.db")[1] for number in range(4)]
    for key in "ab":
        for node in nodes:
            pay(node, key)
    assert len(sqlite._idle) <= 2
    assert [keys(tmp_path / f"{n}.db", node) for n, node in enumerate(nodes)] == [{"a", "b"}] * 4
