"""Random histories of a tree against a naive model: whole tenths of ε, a few dictionaries."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from discreet.accounting.guarantees import PureDP
from discreet.errors import BudgetExceeded, LedgerRefused
from discreet.neighbors import AddRemove
from discreet.trusted.losses.pricing import Price
from discreet.trusted.tree.tree import BudgetTree

RELATION = AddRemove().to_dict()
WHOLE = 12  # tenths in the root's box
PICK = st.integers(0, 1 << 20)
TENTHS = st.integers(1, 5)
ASIDE = st.sampled_from(["a", "b"])


@dataclass
class Seat:
    """A node as the model sees it; what it set aside is in its reservations."""

    id: str
    carved: bool
    above: Seat | None
    box: int
    spent: int = 0
    set_aside: int = 0  # for carved children
    frozen: bool = False
    closed: bool = False

    def path(self) -> list[Seat]:
        """The boxes that are debited: its own, up to the nearest carved one."""
        return [self] if self.carved or self.above is None else [self, *self.above.path()]

    def line(self) -> list[Seat]:
        """Itself and all above it."""
        return [self] if self.above is None else [self, *self.above.line()]

    @property
    def stopped(self) -> bool:
        return any(one.frozen for one in self.line())


class TreeHistory(RuleBasedStateMachine):
    """Histories of a tree in memory."""

    where: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.tree = BudgetTree.open(self.where)
        root = self.tree.root("survey", PureDP(WHOLE / 10), neighbors=AddRemove(), key="survey")
        self.seats = [Seat(root.id, True, None, WHOLE)]
        self.debits: dict[tuple[str, str], tuple[int, str]] = {}
        # what a node set aside under a name: how much, how much is used, whether it is open
        self.asides: dict[tuple[str, str], list[Any]] = {}
        self.made = 0

    def seat(self, pick: int) -> Seat:
        return self.seats[pick % len(self.seats)]

    def below(self, seat: Seat) -> list[Seat]:
        return [one for one in self.seats if seat in one.line()]

    def free(self, seat: Seat) -> int:
        held = sum(
            whole - used
            for (owner, _), (whole, used, is_open) in self.asides.items()
            if is_open and seat in next(one for one in self.seats if one.id == owner).path()
        )
        return seat.box - seat.spent - seat.set_aside - held

    def room(self, seat: Seat) -> int:
        return min(self.free(one) for one in seat.path())

    def expect(self, allowed: bool, action: Any) -> Any:
        try:
            outcome = action()
        except (BudgetExceeded, LedgerRefused):
            assert not allowed
            return None
        assert allowed
        return outcome

    @rule(pick=PICK, box=TENTHS, carved=st.booleans())
    def open(self, pick: int, box: int, carved: bool) -> None:
        above, key = self.seat(pick), str(self.made)
        self.made += 1
        allowed = not above.stopped and not above.closed
        if carved:
            allowed = allowed and above.carved and box <= self.free(above)
        make = self.tree.carve if carved else self.tree.pool
        node = self.expect(allowed, lambda: make(above.id, "seat", PureDP(box / 10), key=key))
        if node is not None:
            self.seats.append(Seat(node.id, carved, above, box))
            above.set_aside += box if carved else 0
            assert make(above.id, "seat", PureDP(box / 10), key=key).id == node.id

    @rule(pick=PICK, key=st.sampled_from("xyz"), query=st.sampled_from("qr"), cost=TENTHS)
    def debit(self, pick: int, key: str, query: str, cost: int) -> None:
        seat = self.seat(pick)
        known = self.debits.get((seat.id, key))
        if known is not None:
            allowed = known[1] == query and cost <= known[0]
        else:
            allowed = not seat.stopped and not seat.closed and cost <= self.room(seat)
        request = {"query": query, "neighbors": RELATION}
        price = Price(epsilon=Fraction(cost, 10))
        node = self.tree.node(seat.id)
        paid = self.expect(allowed, lambda: node.debit(key=key, request=request, price=price))
        if paid is not None:
            assert paid.fresh == (known is None)
        if paid is not None and known is None:
            self.debits[seat.id, key] = cost, query
            for one in seat.path():
                one.spent += cost

    @rule(pick=PICK, name=ASIDE, cost=TENTHS)
    def reserve(self, pick: int, name: str, cost: int) -> None:
        seat = self.seat(pick)
        known = self.asides.get((seat.id, name))
        allowed = (
            known[0] == cost
            if known is not None
            else not seat.stopped and not seat.closed and cost <= self.room(seat)
        )
        node, price = self.tree.node(seat.id), Price(epsilon=Fraction(cost, 10))
        if self.expect(allowed, lambda: node.reserve(price, key=name)) is not None:
            self.asides.setdefault((seat.id, name), [cost, 0, True])

    @rule(pick=PICK, name=ASIDE, cost=TENTHS)
    def step(self, pick: int, name: str, cost: int) -> None:
        seat, key = self.seat(pick), f"step {self.made}"
        self.made += 1
        held = self.asides.get((seat.id, name))
        allowed = (
            held is not None
            and held[2]
            and cost <= held[0] - held[1]
            and not seat.stopped
            and not seat.closed
        )
        request = {"query": key, "neighbors": RELATION}
        price = Price(epsilon=Fraction(cost, 10))
        node = self.tree.node(seat.id)
        paid = self.expect(
            allowed,
            lambda: node.debit(key=key, request=request, price=price, reservation=name),
        )
        if paid is not None and held is not None:
            held[1] += cost
            for one in seat.path():
                one.spent += cost

    @rule(pick=PICK, name=ASIDE)
    def close_aside(self, pick: int, name: str) -> None:
        seat = self.seat(pick)
        held = self.asides.get((seat.id, name))
        node = self.tree.node(seat.id)
        left = self.expect(held is not None, lambda: node.close_reservation(name))
        if held is not None and left is not None:
            assert left.exact().epsilon == Fraction(held[0] - held[1], 10) * held[2]
            held[2] = False

    @rule(pick=PICK)
    def close(self, pick: int) -> None:
        seat = self.seat(pick)
        if seat.above is None:
            return
        nodes = self.below(seat)
        allowed = seat.closed or not any(one.stopped for one in nodes)
        left = self.expect(allowed, lambda: self.tree.close(seat.id))
        if left is None or seat.closed:
            return
        for one in sorted(nodes, key=lambda one: -len(one.line())):
            if one.closed:
                continue
            for (owner, _), held in self.asides.items():
                held[2] = held[2] and owner != one.id
            one.closed = True
            if one.carved and one.above is not None:
                one.above.set_aside -= one.box
                one.above.spent += one.spent
        whole = seat.box - seat.spent if seat.carved else 0
        assert left.exact().epsilon == Fraction(whole, 10)

    @rule(pick=PICK, frozen=st.booleans())
    def freeze(self, pick: int, frozen: bool) -> None:
        seat = self.seat(pick)
        (self.tree.freeze if frozen else self.tree.unfreeze)(seat.id, "as it was told")
        seat.frozen = frozen

    @invariant()
    def the_tree_is_as_the_model_says(self) -> None:
        for seat in self.seats:
            node = self.tree.node(seat.id)
            assert node.spent().exact().epsilon == Fraction(seat.spent, 10)
            own = node.boxes()[0]
            assert own.frozen == seat.stopped
            assert own.closed == seat.closed
            if not seat.closed:
                assert own.left.exact().epsilon == Fraction(self.free(seat), 10)

    @invariant()
    def no_box_holds_more_than_it_was_given(self) -> None:
        assert all(self.free(seat) >= 0 for seat in self.seats)

    def teardown(self) -> None:
        report = self.tree.verify()
        assert report.ok, report.problems
        self.tree.close_connections()


class FileHistory(TreeHistory):
    """The same of a tree in a file."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.where = Path(self.folder.name) / "budgets.db"
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


def assert_as_modelled(kind: type[TreeHistory], histories: int) -> None:
    run_state_machine_as_test(
        kind,
        settings=settings(
            max_examples=histories,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_random_histories_are_as_the_model_says() -> None:
    assert_as_modelled(TreeHistory, 25)


@pytest.mark.slow
def test_many_random_histories_are_as_the_model_says() -> None:
    assert_as_modelled(TreeHistory, 150)


@pytest.mark.slow
def test_random_histories_of_a_file_are_as_the_model_says() -> None:
    assert_as_modelled(FileHistory, 10)
