"""Many ask at once, over connections of their own: no box is overspent, and no debit is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from threading import Barrier

from discreet.accounting.guarantees import PureDP
from discreet.errors import BudgetExceeded
from discreet.neighbors import AddRemove
from discreet.trusted.ledger.units import Amounts
from discreet.trusted.losses.pricing import Price
from discreet.trusted.tree.tree import BudgetTree

TENTH = Price(epsilon=Fraction(1, 10))
PEOPLE, EACH = 6, 4


def test_seats_that_share_a_box_never_overspend_it(lasting: str) -> None:
    """24 questions of a tenth for 1, below one study: 10 are paid, whoever asks first."""
    tree = BudgetTree.open(lasting)
    root = tree.root("survey", PureDP(2), neighbors=AddRemove(), key="survey")
    study = tree.carve(root.id, "study", PureDP(1), key="study")
    seats = [tree.pool(study.id, f"{n}", PureDP(1), key=f"{n}").id for n in range(PEOPLE)]
    together = Barrier(PEOPLE)

    def asks(seat: str) -> int:
        node, paid = BudgetTree.open(lasting).node(seat), 0
        together.wait()
        for number in range(EACH):
            request = {"query": number, "neighbors": AddRemove().to_dict()}
            try:
                paid += node.debit(key=f"{number}", request=request, price=TENTH).fresh
            except BudgetExceeded:
                continue
        return paid

    with ThreadPoolExecutor(PEOPLE) as pool:
        assert sum(pool.map(asks, seats)) == 10
    assert study.spent() == Amounts(epsilon=10**12)
    assert tree.verify().ok, tree.verify().problems


def test_one_key_asked_by_many_is_paid_once(lasting: str) -> None:
    tree = BudgetTree.open(lasting)
    root = tree.root("survey", PureDP(2), neighbors=AddRemove(), key="survey")
    together = Barrier(PEOPLE)

    def asks(number: int) -> bool:
        node = BudgetTree.open(lasting).node(root.id)
        together.wait()
        request = {"query": "one", "neighbors": AddRemove().to_dict()}
        return bool(node.debit(key="one", request=request, price=TENTH).fresh)

    with ThreadPoolExecutor(PEOPLE) as pool:
        assert sum(pool.map(asks, range(PEOPLE))) == 1
    assert root.spent() == Amounts(epsilon=10**11)


def test_one_root_is_made_by_many(lasting: str) -> None:
    together = Barrier(PEOPLE)

    def makes(number: int) -> str:
        tree = BudgetTree.open(lasting)
        together.wait()
        return tree.root("survey", PureDP(2), neighbors=AddRemove(), key="survey").id

    BudgetTree.open(lasting)
    with ThreadPoolExecutor(PEOPLE) as pool:
        assert len({*pool.map(makes, range(PEOPLE))}) == 1
