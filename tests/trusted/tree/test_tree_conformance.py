"""One suite, run by every store: what a budget tree does, whatever it is kept in."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from discreet.accounting.guarantees import PureDP
from discreet.errors import BudgetExceeded, LedgerRefused, NodeFrozen
from discreet.neighbors import AddRemove
from discreet.trusted.ledger.units import Amounts
from discreet.trusted.losses.pricing import Price
from discreet.trusted.tree.node import Node
from discreet.trusted.tree.tree import BudgetTree

Open = Callable[[], BudgetTree]
RELATION = AddRemove().to_dict()
TENTH = Price(epsilon=Fraction(1, 10))


def pay(node: Node, key: str, price: Price = TENTH, **options: Any) -> Any:
    request = {"query": key, "neighbors": RELATION}
    return node.debit(key=key, request=request, price=price, **options)


def pure_root(tree: BudgetTree, epsilon: float = 1) -> Node:
    return tree.root("survey", PureDP(epsilon), neighbors=AddRemove(), key="survey")


def test_carved_children_run_out_exactly_and_so_does_their_parent(open_tree: Open) -> None:
    tree = open_tree()
    root = pure_root(tree)
    seats = [tree.carve(root.id, f"seat {n}", PureDP(0.4), key=f"{n}") for n in range(2)]
    with pytest.raises(BudgetExceeded, match=r"dp\.PureDP\(0\.2\)"):
        tree.carve(root.id, "seat 2", PureDP(0.3), key="2")
    for seat in seats:
        for number in range(4):
            assert pay(seat, f"request {number}").fresh
        with pytest.raises(BudgetExceeded, match="nothing of it is left"):
            pay(seat, "request 4")
    for number in range(2):
        pay(root, f"request {number}")
    with pytest.raises(BudgetExceeded):
        pay(root, "request 2", Price(epsilon=Fraction(1, 10**12)))
    assert tree.verify().ok, tree.verify().problems


def test_what_was_paid_is_found_again_with_a_lock_and_without(open_tree: Open) -> None:
    node = pure_root(open_tree())
    assert pay(node, "k").fresh
    for looked in (False, True):  # after a look, a known line is read without a lock
        assert not looked or node.holds("k")
        again = pay(node, "k")
        assert (again.fresh, again.answer) == (False, None)
        with pytest.raises(LedgerRefused):
            node.debit(key="k", request={"query": "other", "neighbors": RELATION}, price=TENTH)
        with pytest.raises(LedgerRefused):
            pay(node, "k", Price(epsilon=Fraction(2, 10)))
    node.store("k", lambda: "answer")
    assert pay(node, "k").answer == "answer"
    assert [entry.kind for entry in node.entries()] == ["open", "debit", "answer"]


def test_pooled_children_share_their_parents_money(open_tree: Open) -> None:
    tree = open_tree()
    root = pure_root(tree)
    one, two = (tree.pool(root.id, f"seat {n}", PureDP(0.8), key=f"{n}") for n in range(2))
    for number in range(8):
        pay(one, f"request {number}")
    with pytest.raises(BudgetExceeded):
        pay(one, "request 8")
    for number in range(2):
        pay(two, f"request {number}")
    with pytest.raises(BudgetExceeded):
        pay(two, "request 2")
    assert two.remaining() == Amounts(epsilon=6 * 10**11)
    assert [box.left for box in two.boxes()] == [Amounts(epsilon=6 * 10**11), Amounts()]
    assert tree.verify().ok, tree.verify().problems


def test_closing_gives_back_what_was_never_debited(open_tree: Open) -> None:
    tree = open_tree()
    root = pure_root(tree)
    seat = tree.carve(root.id, "seat", PureDP(0.5), key="0")
    pay(seat, "asked")
    seat.reserve(TENTH, key="aside")
    assert tree.close(seat.id) == Amounts(epsilon=4 * 10**11)
    assert not tree.close(seat.id)
    assert root.remaining() == Amounts(epsilon=9 * 10**11)
    assert root.spent() == Amounts(epsilon=10**11)
    with pytest.raises(LedgerRefused, match="closed"):
        pay(seat, "another")
    assert seat.store("asked", lambda: "late answer") == "late answer"
    assert tree.verify().ok, tree.verify().problems


def test_a_frozen_node_debits_and_draws_nothing(open_tree: Open) -> None:
    tree = open_tree()
    root = pure_root(tree)
    seat = tree.carve(root.id, "seat", PureDP(0.5), key="0")
    pay(seat, "asked")
    pay(seat, "answered")
    seat.store("answered", lambda: "answer")
    tree.freeze(root.id, "the source has changed")
    for refused in (
        lambda: pay(seat, "another"),
        lambda: seat.store("asked", lambda: "drawn"),
        lambda: seat.reserve(TENTH),
        lambda: tree.close(seat.id),
        lambda: tree.carve(root.id, "late", PureDP(0.1), key="late"),
    ):
        with pytest.raises(NodeFrozen):
            refused()
    assert pay(seat, "answered").answer == "answer"
    tree.unfreeze(root.id, "it is the same")
    assert pay(seat, "another").fresh
    assert tree.verify().ok, tree.verify().problems
