"""What is no place of a tree, or no tree of this version, is refused and changes nothing."""

from __future__ import annotations

import os
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.accounting.guarantees import PureDP
from discreet.errors import DiscreetError
from discreet.neighbors import AddRemove
from discreet.trusted.losses.pricing import Price
from discreet.trusted.tree.tree import BudgetTree


@pytest.mark.parametrize("place", ["", ":memory:", "file:a.db", "a\0b", "folder", "gone/a.db"])
def test_a_place_that_is_no_file_is_refused(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(DiscreetError):
        BudgetTree.open(place)
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


def test_a_file_of_something_else_is_refused_and_stays(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("no database at all, but longer than the header of one would be" * 20)
    before = file.read_bytes()
    with pytest.raises(DiscreetError):
        BudgetTree.open(file)
    assert file.read_bytes() == before


def test_tables_of_a_later_version_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "budgets.db"
    BudgetTree.open(file)
    connection = sqlite3.connect(file)
    connection.execute("INSERT INTO tree_migrations VALUES (2)")
    connection.commit()
    connection.close()
    with pytest.raises(DiscreetError, match="migration 2"):
        BudgetTree.open(file)


def test_a_tree_in_memory_does_not_go_on_in_a_fork() -> None:
    """The child's copy could spend the same budget again; what to do is said, before any lock that
    a thread may hold that the child does not have.
    """
    tree = BudgetTree.open(None)
    root = tree.root("survey", PureDP(1), neighbors=AddRemove(), key="survey")
    request = {"query": "one", "neighbors": AddRemove().to_dict()}
    child = os.fork()
    if child == 0:
        code = 1
        try:
            root.debit(key="one", request=request, price=Price(epsilon=Fraction(1, 10)))
        except DiscreetError as error:
            code = 0 if "open the ledger with a path" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert root.debit(key="one", request=request, price=Price(epsilon=Fraction(1, 10))).fresh
