"""A chain that was written anew, with hashes that are right, is told by what its lines say."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from test_tree_edited import TRIGGERS, tree_of_every_kind

from discreet.trusted.ledger.units import NOTHING, Amounts
from discreet.trusted.tree.records import Line, columns, record_of, row
from discreet.trusted.tree.tree import BudgetTree

Lines = list[Line]


def rewritten(file: Path, chain: str, change: Callable[[Lines], Lines]) -> None:
    """The lines of a chain in a file put in the place of others, each sealed again."""
    connection = sqlite3.connect(file, isolation_level=None)
    names = ", ".join(columns(Line))
    asked = f"SELECT {names} FROM tree_lines WHERE chain = ? ORDER BY number"
    told = change([record_of(Line, cells) for cells in connection.execute(asked, (chain,))])
    for name in ("update", "delete"):
        connection.execute(f"DROP TRIGGER tree_lines_never_{name}")
    connection.execute("DELETE FROM tree_lines WHERE chain = ?", (chain,))
    previous = "0" * 64
    for number, line in enumerate(told):
        sealed = line.after(number, previous)
        marks = ", ".join("?" * len(columns(Line)))
        connection.execute(f"INSERT INTO tree_lines ({names}) VALUES ({marks})", row(sealed))
        previous = sealed.hash
    connection.execute(
        "UPDATE tree_nodes SET entries = ?, head = ? WHERE id = ?", (len(told), previous, chain)
    )
    for statement in TRIGGERS:
        connection.execute(statement)
    connection.close()


def with_changed(kind: str, **changes: object) -> Callable[[Lines], Lines]:
    """The first line of a kind, changed."""

    def change(lines: Lines) -> Lines:
        place = next(number for number, line in enumerate(lines) if line.kind == kind)
        return [*lines[:place], replace(lines[place], **changes), *lines[place + 1 :]]

    return change


def without(kind: str) -> Callable[[Lines], Lines]:
    return lambda lines: [line for line in lines if line.kind != kind]


def twice(of: str, **changes: object) -> Callable[[Lines], Lines]:
    """One more of a kind, of another name where the table wants one."""

    def change(lines: Lines) -> Lines:
        return [*lines, replace(next(one for one in lines if one.kind == of), **changes)]

    return change


MUCH = Amounts(epsilon=10**13)
STUDY = {
    "a debit beyond the box": (twice("debit", key="more", amounts=MUCH), "did not fit"),
    "a debit of nothing": (with_changed("debit", amounts=NOTHING), "did not fit"),
    "a debit of nobody": (with_changed("debit", node="nobody"), "not in this chain"),
    "a step of no reservation": (with_changed("debit", reservation="none"), "does not exist"),
    "an answer that cost": (with_changed("answer", amounts=MUCH), "no earlier debit"),
    "an answer to nothing": (with_changed("answer", key="another"), "no earlier debit"),
    "no debits": (without("debit"), "no earlier debit"),
    "a reservation beyond the box": (with_changed("reserve", amounts=MUCH), "did not fit"),
    "no reservation": (without("reserve"), "does not exist"),
    "a note that cost": (twice("pool", kind="note", key="", amounts=MUCH), "costs nothing"),
    "no pooled box": (without("pool"), "not in this chain"),
    "two openings": (twice("open", key="again"), "a second opening"),
    "no opening": (without("open"), "no opening"),
}
ROOT = {
    "a carved box beyond the box": (with_changed("carve", amounts=MUCH), "did not fit"),
    "no carved box": (without("carve"), "not set aside"),
    "more comes back": (with_changed("return", amounts=MUCH), "not set aside"),
    "a box of a lost debit": (twice("carve", kind="lost", amounts=MUCH), "did not fit"),
}


def told_of(folder: Path, name: str, change: Callable[[Lines], Lines]) -> str:
    tree = tree_of_every_kind(folder)
    [root] = tree.roots()
    boxes = {"root": root.node} | {box.name: box.node for box in tree.children(root.node)}
    chain = boxes[name]
    rewritten(folder / "budgets.db", chain, change)
    report = BudgetTree.open(folder / "budgets.db").verify()
    assert not report.ok
    return "; ".join(report.chains[chain].problems)


@pytest.mark.parametrize("case", STUDY)
def test_a_study_that_was_rewritten_is_told(case: str, tmp_path: Path) -> None:
    change, said = STUDY[case]
    assert said in told_of(tmp_path, "study", change)


@pytest.mark.parametrize("case", ROOT)
def test_a_root_that_was_rewritten_is_told(case: str, tmp_path: Path) -> None:
    change, said = ROOT[case]
    assert said in told_of(tmp_path, "root", change)


def test_a_chain_that_was_sealed_again_unchanged_is_right(tmp_path: Path) -> None:
    tree = tree_of_every_kind(tmp_path)
    rewritten(tmp_path / "budgets.db", tree.roots()[0].node, lambda lines: lines)
    report = BudgetTree.open(tmp_path / "budgets.db").verify()
    assert report.ok, report.problems
