"""Older copies, replaced files and removed lines are noticed, and what was forgotten is spent."""

from __future__ import annotations

import json
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.accounting.guarantees import PureDP
from discreet.errors import BudgetExceeded, InvalidParameter, LedgerRefused, NodeFrozen
from discreet.neighbors import AddRemove
from discreet.trusted.ledger.units import Amounts
from discreet.trusted.losses.pricing import Price
from discreet.trusted.tree import schema
from discreet.trusted.tree.node import Node
from discreet.trusted.tree.pins import Pins
from discreet.trusted.tree.receipts import Seal, is_signed
from discreet.trusted.tree.tree import BudgetTree

TENTH = Price(epsilon=Fraction(1, 10))
RELATION = AddRemove().to_dict()


def ask(node: Node, key: str, answer: str = "answer") -> Any:
    request = {"query": key, "neighbors": RELATION}
    debit = node.debit(key=key, request=request, price=TENTH)
    return debit, debit.answer or node.store(key, lambda: answer)


class Service:
    """A tree file with its pins and key beside it, which can be copied and put back."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file, self.pins = folder, folder / "budgets.db", folder / "pins"
        self.seal = Seal.open(folder / "key")

    def open(self) -> BudgetTree:
        return BudgetTree.open(self.file, pins=self.pins)

    def copy(self, to: str) -> None:
        source, copy = sqlite3.connect(self.file), sqlite3.connect(self.folder / to)
        source.backup(copy)
        source.close()
        copy.close()

    def put_back(self, copy: str) -> None:
        for end in ("", "-wal", "-shm"):
            Path(f"{self.file}{end}").unlink(missing_ok=True)
        shutil.copyfile(self.folder / copy, self.file)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)


def two_surveys(tree: BudgetTree) -> tuple[Node, Node]:
    """Seats below two roots of one tree."""
    seats = []
    for name in ("survey", "register"):
        root = tree.root(name, PureDP(1), neighbors=AddRemove(), key=name)
        seats.append(tree.carve(root.id, "anna", PureDP(0.5), key="anna"))
    return seats[0], seats[1]


def test_a_restored_copy_is_noticed_at_start_and_the_other_data_go_on(service: Service) -> None:
    tree = service.open()
    seat, other = two_surveys(tree)
    ask(seat, "before")
    ask(other, "before")
    service.copy("older")
    ask(seat, "after")
    service.put_back("older")
    again = service.open()
    assert not again.verify().ok
    assert again.freeze_forgotten() == {seat.id: seat.parent}
    with pytest.raises(NodeFrozen):
        ask(again.node(seat.id), "another")
    assert ask(again.node(other.id), "another")[0].fresh
    assert again.node(other.id).verify().ok


def test_an_answer_drawn_after_a_copy_is_not_drawn_again(service: Service) -> None:
    tree = service.open()
    seat, _ = two_surveys(tree)
    seat.debit(key="paid", request={"query": "paid", "neighbors": RELATION}, price=TENTH)
    service.copy("older")
    seat.store("paid", lambda: "first draw")
    service.put_back("older")
    again = service.open()
    with pytest.raises(NodeFrozen):
        again.node(seat.id).store("paid", lambda: "second draw")
    [burnt] = again.recover()
    assert burnt.unanswered == 1
    answer = again.node(seat.id).store("paid", lambda: "second draw")
    assert json.loads(answer)["failed"] is True
    assert again.verify().ok, again.verify().problems


def test_a_file_replaced_while_in_use_is_noticed_at_the_next_question(service: Service) -> None:
    tree = BudgetTree.open(service.file)  # also without pins: by what this process has seen
    seat, other = two_surveys(tree)
    service.copy("older")
    ask(seat, "after")
    service.put_back("older")
    with pytest.raises(NodeFrozen, match="does not know"):
        ask(seat, "another")
    with pytest.raises(NodeFrozen, match="does not know"):
        seat.remaining()
    assert ask(other, "another")[0].fresh


@pytest.mark.parametrize("removed", ["answer", "debit"])
def test_removed_lines_are_noticed(service: Service, removed: str) -> None:
    seat, _ = two_surveys(service.open())
    ask(seat, "asked")
    connection = sqlite3.connect(service.file)
    for name in ("tree_lines_never_update", "tree_lines_never_delete"):
        connection.execute(f"DROP TRIGGER {name}")
    kinds = ("answer",) if removed == "answer" else ("answer", "debit")
    for kind in kinds:
        connection.execute("DELETE FROM tree_lines WHERE kind = ?", (kind,))
    last = connection.execute(
        "SELECT number, hash FROM tree_lines WHERE chain = ? ORDER BY number DESC", (seat.id,)
    ).fetchone()
    spent = 10**11 if removed == "answer" else 0
    connection.execute(
        "UPDATE tree_nodes SET entries = ?, head = ?, spent_epsilon = ? WHERE id = ?",
        (last[0] + 1, last[1], spent, seat.id),
    )
    for statement in schema.SQLITE[0][-2:]:  # whoever can do this can put them back too
        connection.execute(statement)
    connection.commit()
    connection.close()
    again = service.open()
    assert again.freeze_forgotten() == {seat.id: seat.parent}
    with pytest.raises(NodeFrozen):
        ask(again.node(seat.id), "asked", "second draw")
    assert any("noted elsewhere" in told for told in again.verify().chains[seat.id].problems)
    assert not again.verify().ok


def test_recovery_spends_what_was_forgotten_and_all_below_it(service: Service) -> None:
    tree = service.open()
    root = tree.root("survey", PureDP(1), neighbors=AddRemove(), key="survey")
    study = tree.carve(root.id, "study", PureDP(0.6), key="study")
    seat = tree.carve(study.id, "anna", PureDP(0.2), key="anna")
    other = tree.carve(root.id, "other", PureDP(0.2), key="other")
    service.copy("older")
    tree.close(seat.id)  # gives back, and what came back is spent by the study itself
    for number in range(6):
        ask(study, f"{number}")
    service.put_back("older")
    again = service.open()
    again.freeze_forgotten()
    burnt = again.recover()
    assert {one.node for one in burnt} == {study.id, seat.id}
    for node in (study, seat):
        with pytest.raises(BudgetExceeded):
            ask(again.node(node.id), "more")
    assert ask(again.node(other.id), "more")[0].fresh
    assert ask(again.node(root.id), "more")[0].fresh
    assert again.verify().ok, again.verify().problems
    assert service.open().verify().ok
    assert service.open().freeze_forgotten() == {}


def test_a_node_that_was_forgotten_whole_burns_the_one_above_it(service: Service) -> None:
    tree = service.open()
    root = tree.root("survey", PureDP(1), neighbors=AddRemove(), key="survey")
    service.copy("older")
    seat = tree.carve(root.id, "anna", PureDP(0.5), key="anna")
    ask(seat, "asked")
    service.put_back("older")
    again = service.open()
    assert again.freeze_forgotten() == {root.id: root.id}
    [burnt] = again.recover()
    assert (burnt.node, burnt.amounts) == (root.id, Amounts(epsilon=10**12))
    assert again.freeze_forgotten() == {}
    assert again.verify().ok, again.verify().problems


def test_a_root_that_was_forgotten_is_not_made_anew(service: Service) -> None:
    tree = service.open()
    service.copy("older")
    seat, _ = two_surveys(tree)
    ask(seat, "asked")
    service.put_back("older")
    again = service.open()
    assert again.freeze_forgotten() == {"": ""}
    with pytest.raises(LedgerRefused, match="do not register"):
        again.recover()


def test_reservations_of_a_burnt_node_set_nothing_aside(service: Service) -> None:
    tree = service.open()
    root = tree.root("survey", PureDP(1), neighbors=AddRemove(), key="survey")
    pooled = tree.pool(root.id, "ben", PureDP(0.5), key="ben")
    held = pooled.reserve(TENTH, key="aside")
    service.copy("older")
    ask(pooled, "asked")
    service.put_back("older")
    again = service.open()
    again.recover()
    node = again.node(pooled.id)
    with pytest.raises(BudgetExceeded):
        node.debit(key="step", request={"neighbors": RELATION}, price=TENTH, reservation=held.id)
    assert not again.node(root.id).remaining()
    assert again.verify().ok, again.verify().problems


def test_a_receipt_that_is_not_known_freezes_its_root(service: Service) -> None:
    tree = BudgetTree.open(service.file)
    seat, other = two_surveys(tree)
    service.copy("older")
    debit, _ = ask(seat, "after")
    receipt = service.seal.receipt(seat.chain, debit.number, debit.hash)
    assert tree.check_receipt(service.seal, receipt)
    assert tree.check_receipt(service.seal, json.loads(json.dumps(receipt)))
    service.put_back("older")
    again = BudgetTree.open(service.file)
    ask(again.node(other.id), "another")
    with pytest.raises(NodeFrozen):
        again.check_receipt(Seal.open(service.folder / "key"), receipt)
    with pytest.raises(NodeFrozen):
        ask(again.node(seat.id), "another")
    assert ask(again.node(other.id), "one more")[0].fresh
    [burnt] = again.recover([(receipt["node"], receipt["number"], receipt["hash"])])
    assert burnt.node == seat.id


@pytest.mark.parametrize(
    "change",
    [
        {"number": 2},
        {"hash": "0" * 64},
        {"node": "0" * 32},
        {"signature": "AAAA"},
        {"signature": 7},
        {"number": True},
        {"number": -1},
        {"hash": "x"},
        {"more": 1},
    ],
)
def test_a_made_up_receipt_freezes_nothing(service: Service, change: dict[str, Any]) -> None:
    tree = BudgetTree.open(service.file)
    seat, _ = two_surveys(tree)
    debit, _ = ask(seat, "asked")
    receipt = service.seal.receipt(seat.chain, debit.number, debit.hash) | change
    assert not is_signed(receipt)
    assert not tree.check_receipt(service.seal, receipt)
    other_key = Seal.open(service.folder / "other key").receipt(seat.chain, 99, "0" * 64)
    assert is_signed(other_key)
    assert not tree.check_receipt(service.seal, other_key)
    assert not tree.check_receipt(service.seal, "text")
    assert ask(seat, "another")[0].fresh


def test_a_key_file_is_its_owners_and_holds_a_key(service: Service) -> None:
    assert (service.folder / "key").stat().st_mode & 0o777 == 0o600
    assert Seal.open(service.folder / "key").key == service.seal.key
    (service.folder / "bad").write_text("no key")
    with pytest.raises(InvalidParameter, match="holds no key"):
        Seal.open(service.folder / "bad")


def test_a_pin_that_was_cut_short_is_passed_over(service: Service) -> None:
    seat, _ = two_surveys(service.open())
    ask(seat, "asked")
    with service.pins.open("a") as file:
        file.write('{"chain": "abc", "pla')
    tree = service.open()
    assert tree.freeze_forgotten() == {}
    ask(tree.node(seat.id), "another")
    assert Pins(service.pins).pinned() == {seat.id: (4, tree.node(seat.id).head)}


def test_pins_are_written_anew_where_nobody_has_them_open(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.trusted.tree.pins.MOST_SPARE", 3)
    pins = Pins(service.pins)
    for number in range(10):
        pins.pin("a" * 32, ("b" * 32,), number, f"{number:064d}")
    other = Pins(service.pins)  # the first is still open: nothing is taken from under it
    assert len(service.pins.read_text().splitlines()) == 10
    other.close()
    pins.close()
    last = Pins(service.pins)
    assert len(service.pins.read_text().splitlines()) == 1
    assert last.pinned() == {"a" * 32: (9, f"{9:064d}")}
    assert last.above("a" * 32) == ("b" * 32,)
    last.pin("a" * 32, (), 10, "1" * 64)
    assert Pins(service.pins).pinned() == {"a" * 32: (10, "1" * 64)}
