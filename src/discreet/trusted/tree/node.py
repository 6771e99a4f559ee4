"""A node of a budget tree as a ledger: what a session is paid from.

Theorem.  Whatever is asked below a carved node, by whomever, in whatever order: everything that is
          released there has the node's promise; with its siblings, that of their parent.
Proof.    docs/theory/budget-tree.md. One transaction debits every box from the asker's up to the
          nearest carved node, or none; each box is charged what the mechanism costs in its own
          coordinates; a carved box was set aside above when it was opened.
Checked.  tests/trusted/tree/test_tree_conformance.py
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee, guarantee_from_dict
from discreet.errors import ledger as ledger_refusals
from discreet.errors import tree as refusals
from discreet.trusted.ledger.core import Ledger, protected
from discreet.trusted.ledger.entries import Entry, bound_request, checked_answer, checked_key
from discreet.trusted.ledger.requests import Debit, Reservation
from discreet.trusted.ledger.stores import Balance, Holding
from discreet.trusted.ledger.units import NOTHING, Amounts, charge
from discreet.trusted.ledger.verification import Verification
from discreet.trusted.losses.pricing import Price, price_of_spend
from discreet.trusted.tree.places import Places
from discreet.trusted.tree.prices import asked_mechanism, carried_over, price_in, without_pure
from discreet.trusted.tree.records import Aside, Line, Meter, draft_line, fresh
from discreet.trusted.tree.verification import verify_chain
from discreet.trusted.tree.work import Work, first, read_as, select

MOST_PAID = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One box of a path, as its asker may see it; `kind` is root, carved or pooled."""

    node: str
    name: str
    kind: str
    budget: Guarantee
    box: Price
    left: Amounts
    spent: Amounts
    reserved: Amounts
    head: str
    entries: int
    frozen: bool
    closed: bool


class Node(Ledger):
    """A node of a budget tree, which serves wherever a ledger does; `BudgetTree.node` gives it."""

    def __init__(
        self, places: Places, meter: Meter, path: tuple[str, ...], above: tuple[str, ...] = ()
    ) -> None:
        self._places, self._path, self._above = places, path, above
        self.id, self.name, self.kind, self.parent = meter.id, meter.name, meter.kind, meter.parent
        self._store: Any = _Seen(places, meter.id, meter.chain)
        self._making = threading.local()
        self._paid: set[str] = set()  # keys that are known to be debited
        self._box = meter.box
        told = json.loads(meter.promise)
        self._budget = guarantee_from_dict(told["budget"])
        self._protects, self._secure = str(told["neighbors"]), bool(told["secure"])

    @property
    def chain(self) -> str:
        """The nearest carved node: the one in whose chain this one's lines are written."""
        return self._path[0]

    def boxes(self) -> list[Box]:
        """The boxes that a question is debited in: its own first, then upwards, the nearest carved
        one last.
        """
        with self._places.database.read() as work:
            meters = read_as(Meter, work.ask(work.path(self._path))[0])
        return [box_of(meter) for meter in reversed(self._whole(meters))]

    def holds(self, key: str) -> bool:
        """Whether a request was debited under this key."""
        return self._lines(checked_key(key))[0] is not None

    def how_many(self, price: Price | Guarantee) -> int:
        """How many more requests of this price, in this node's coordinates, or of a spend, fit in
        every box of the path.
        """
        boxes, own = self.boxes(), self.box
        given: Any = price
        if plain.derives(type(given), Price):
            costs = [carried_over(given, one.box) for one in boxes]
        else:
            costs = [price_of_spend(given, box=one.box) for one in boxes]
        assert boxes[0].box == own
        return min(charge(cost).times_in(one.left) for cost, one in zip(costs, boxes, strict=True))

    def verify(self) -> Verification:
        """Replay the chain that this node writes in: is it intact, and does it add up?"""
        with self._places.database.read() as work:
            return verify_chain(work, self.chain)

    def __str__(self) -> str:
        balance = self._balance()
        return statement.state(f"node {self.name!r}", self._budget, balance)

    def _repr_html_(self) -> str:
        return statement.state_html(f"node {self.name!r}", self._budget, self._balance())

    def __repr__(self) -> str:
        return f"<Node: {self.kind} {self.name!r}, budget ({self._budget})>"

    # ── what changes it ───────────────────────────────────────────────────────────────────────────

    def debit(
        self,
        *,
        key: str,
        request: Mapping[str, Any],
        price: Price,
        reservation: str | None = None,
        secure: bool = True,
    ) -> Debit:
        """Pay for a request in every box of the path, durably, before its data is read; or find it
        paid already. `price` is what it costs in this node's own box.

        Theorem.  After it returns, each box of the path is charged exactly once under `key`, and no
                  box has more spent and set aside than it holds, whatever crashed or was retried.
        Proof.    One transaction has locked every meter of the path before it reads one; it checks
                  all of them before it changes one, and a known key changes nothing.
        Checked.  tests/trusted/tree/test_tree_conformance.py
        """
        key, secure = checked_key(key), plain.truth(secure, "secure=")
        reservation = None if reservation is None else checked_key(reservation, "reservation")
        (record, body), own = bound_request(request, secure=secure), charge(price)
        self._require_same_promise(record, secure)
        mechanism = asked_mechanism(record)
        known, answer = self._lines(key) if key in self._paid else (None, None)
        if known is not None:  # it needs no lock: lines never change
            return self._again(known, answer, body, own)
        with self._locked(("debit", key), ("answer", key), reservation=reservation) as held:
            known, answer = held.lines
            if known is not None:
                return self._again(known, answer, body, own)
            held.require_open()
            charges = {}
            for meter, aside in reversed([*zip(held.path, held.asides, strict=True)]):
                room = held.room(meter, aside, reservation)
                box = meter.box.exact()
                if reservation is not None and not (aside and aside.amounts.epsilon):
                    box = without_pure(box)
                cost = own if meter.id == self.id else charge(price_in(box, price, mechanism))
                if not cost.fits(room):
                    raise _over(cost, meter, aside)
                charges[meter.id] = cost
            for meter, aside in zip(held.path, held.asides, strict=True):
                paid = charges[meter.id]
                now = held.work.change(meter.id, spent=meter.spent + paid)
                if aside is not None:
                    held.work.change(meter.id, reserved=now.reserved - paid)
                    held.work.put(aside, replace(aside, used=aside.used + paid))
            line = held.append("debit", key, charges, body=body, reservation=reservation or "")
        return _debit(line.seen_by(self.id), None, fresh=True)

    def store(self, key: str, make_answer: Callable[[], str]) -> str:
        """The stored answer of a paid request; if there is none yet, `make_answer` draws one, and
        it is stored.

        The draw holds the lock of its request alone, so that of two finishers only one draws, and
        other questions go on; the meters are locked for the line that keeps the answer.
        """
        key = checked_key(key)
        with self._changing_tree() as work:
            found = work.ask(
                work.locked_line(self.id, "debit", key), work.line_at(self.id, "answer", key)
            )
            paid, known = (first(read_as(Line, rows)) for rows in found)
            if known is not None:
                self._answered(known)
                return known.body
            if paid is None:
                raise ledger_refusals.no_debit(key)
            answer = checked_answer(make_answer())
            held = self._taken(work, ())
            held.require_not_stopped()
            line = held.append("answer", key, body=answer)
        self._answered(line)
        return answer

    def reserve(self, price: Price | Sequence[Price], *, key: str | None = None) -> Reservation:
        """Set budget aside in every box of the path, for the steps of one procedure."""
        name = checked_key(key if key is not None else fresh())
        read = plain.value(price, "price")
        steps = read if type(read) is list or type(read) is tuple else [read]
        steps = steps or [Price()]

        def priced(box: Price) -> list[Price]:
            return list(steps) if box == self.box else [carried_over(one, box) for one in steps]

        return self._reserve(priced, name)

    def reserve_spend(
        self, spend: Guarantee, delta: Fraction, *, key: str | None = None
    ) -> Reservation:
        """Set a spend aside in every box of the path, in the coordinates of each."""
        name = checked_key(key if key is not None else fresh())
        return self._reserve(lambda box: [price_of_spend(spend, box=box, delta=delta)], name)

    def _reserve(self, priced: Callable[[Price], list[Price]], name: str) -> Reservation:
        with self._locked(reservation=name) as held:
            amounts = {
                meter.id: sum((charge(step) for step in priced(meter.box.exact())), NOTHING)
                for meter in held.path
            }
            known = held.asides[-1]
            if known is not None:
                if known.amounts != amounts[self.id]:
                    raise ledger_refusals.other_reservation(name)
                return Reservation(self, name)
            held.require_open()
            for meter in held.path:
                if not amounts[meter.id].fits(meter.free):
                    raise statement.over_budget(amounts[meter.id], meter.balance)
            for meter in held.path:
                aside = amounts[meter.id]
                held.work.change(meter.id, reserved=meter.reserved + aside)
                held.work.add(Aside(node=meter.id, owner=self.id, key=name, amounts=aside))
            held.append("reserve", name, amounts)
        return Reservation(self, name)

    def close_reservation(self, reservation: str) -> Amounts:
        """Hand back, in every box, what a reservation did not debit; says how much that was in this
        node's own. Closing twice changes nothing.
        """
        name = checked_key(reservation, "reservation")
        with self._locked(reservation=name) as held:
            if held.asides[-1] is None:
                raise ledger_refusals.no_reservation(name)
            left = {aside.node: aside.left for aside in held.asides if aside is not None}
            if held.asides[-1].is_open:
                for meter, aside in zip(held.path, held.asides, strict=True):
                    assert aside is not None
                    held.work.change(meter.id, reserved=meter.reserved - aside.left)
                    held.work.put(aside, replace(aside, is_open=0))
                held.append("close", name, left)
        return plain.twin(left[self.id])

    # ── how ───────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        seen = self._places.seen(self.chain)  # before the picture is taken
        with self._store.read() as view:
            self._places.require_known(self.chain, view.at(seen[0]), seen)
            yield view

    def _lines(self, key: str) -> tuple[Line | None, Line | None]:
        """The debit under a key and its answer, without a lock."""
        seen = self._places.seen(self.chain)
        asked = [Work.line_at(self.id, kind, key) for kind in ("debit", "answer")]
        found = self._places.database.ask(Work.numbered(self.chain, seen[0]), *asked)
        line, debit, answer = (first(read_as(Line, rows)) for rows in found)
        self._places.require_known(self.chain, line, seen)
        if debit is not None:
            self._paid = {*self._paid, key} if len(self._paid) < MOST_PAID else {key}
        return debit, answer

    def _again(self, known: Line, answer: Line | None, body: str, own: Amounts) -> Debit:
        """A debit that was made before, if it was for the same."""
        if known.body != body or not own.fits(known.paid_by(self.id)):
            raise ledger_refusals.other_request(known.key)
        self._answered(answer)
        return _debit(known.seen_by(self.id), answer, fresh=False)

    def _whole(self, path: list[Meter]) -> list[Meter]:
        """The meters of the path, all of them: this object may be older than the database."""
        if len(path) != len(self._path):
            raise refusals.rolled_back(self._places.database.name)
        return path

    def _answered(self, answer: Line | None) -> None:
        """Note the place of an answer outside the database, before it leaves."""
        if answer is not None:
            self._places.pin(answer, self._above)

    def _require_same_promise(self, record: Mapping[str, Any], secure: bool) -> None:
        asked = protected(record)
        if asked != self._protects:
            raise refusals.not_that_relation(asked, self._protects)
        if secure != self._secure:
            raise refusals.not_that_noise()

    @contextmanager
    def _changing_tree(self) -> Iterator[Work]:
        """One transaction; a second one inside it would wait for itself."""
        if getattr(self._making, "busy", False):
            raise ledger_refusals.inside_answer()
        self._making.busy = True
        try:
            with self._places.changing() as work:
                yield work
        finally:
            self._making.busy = False

    @contextmanager
    def _locked(self, *wanted: tuple[str, str], reservation: str | None = None) -> Iterator[_Held]:
        with self._changing_tree() as work:
            yield self._taken(work, wanted, reservation)

    def _taken(
        self, work: Work, wanted: tuple[tuple[str, str], ...], reservation: str | None = None
    ) -> _Held:
        """The path, locked, and what is wanted to know under the locks, asked in one go."""
        seen = self._places.seen(self.chain)
        statements = [
            work.path(self._path),
            work.numbered(self.chain, seen[0]),
            *(work.line_at(self.id, kind, key) for kind, key in wanted),
        ]
        if reservation is not None:
            asked = select(Aside, "WHERE owner = ? AND key = ?", self.id, reservation)
            statements.append(asked)
        found = work.ask(*statements)
        path = self._whole(work.take(found[0]))
        self._places.require_known(self.chain, first(read_as(Line, found[1])), seen)
        lines = [first(read_as(Line, rows)) for rows in found[2 : 2 + len(wanted)]]
        asides: dict[str, Aside] = {}
        if reservation is not None:
            asides = {aside.node: aside for aside in read_as(Aside, found[-1])}
        return _Held(work, path, lines, [asides.get(meter.id) for meter in path])


class _Held:
    """A locked path: its meters from the carved one down, with what is set aside in each."""

    def __init__(
        self,
        work: Work,
        path: list[Meter],
        lines: list[Line | None],
        asides: list[Aside | None],
    ) -> None:
        self.work, self.path, self.lines, self.asides = work, path, lines, asides

    def require_not_stopped(self) -> None:
        if any(meter.stopped for meter in self.path):
            raise refusals.frozen()

    def require_open(self) -> None:
        self.require_not_stopped()
        if any(meter.closed for meter in self.path):
            raise refusals.closed()

    def room(self, meter: Meter, aside: Aside | None, reservation: str | None) -> Amounts:
        """What a debit may take out of a box."""
        if reservation is None:
            return meter.free
        if aside is None:
            raise ledger_refusals.no_reservation(reservation)
        return aside.left

    def append(
        self,
        kind: str,
        key: str,
        charges: dict[str, Amounts] | None = None,
        *,
        body: str = "",
        reservation: str = "",
    ) -> Line:
        line = draft_line(self.path[-1], kind, key, charges, body=body, reservation=reservation)
        return self.work.append(line)


class _Seen:
    """What a node's own account shows: its lines, its balance and its reservations, read alone."""

    def __init__(self, places: Places, node: str, chain: str) -> None:
        self._places, self._node, self._chain = places, node, chain
        self.name, self.persistent = places.database.name, places.database.persistent

    @contextmanager
    def read(self) -> Iterator[_SeenView]:
        with self._places.database.read() as work:
            yield _SeenView(work, self._node, self._chain)


class _SeenView:
    def __init__(self, work: Work, node: str, chain: str) -> None:
        self._work, self._node, self._chain = work, node, chain

    def balance(self) -> Balance:
        own, chain = (self._work.meter(one) for one in (self._node, self._chain))
        assert own is not None
        assert chain is not None
        return replace(own.balance, entries=chain.entries, head=chain.head)

    def find(self, kind: str, key: str) -> Entry | None:
        line = self._work.line(self._node, kind, key)
        return None if line is None else line.seen_by(self._node)

    def at(self, number: int) -> Line | None:
        return first(read_as(Line, self._work.ask(Work.numbered(self._chain, number))[0]))

    def entries(self) -> list[Entry]:
        lines = self._work.all(Line, "WHERE node = ? ORDER BY number", self._node)
        return [line.seen_by(self._node) for line in lines]

    def holding(self, key: str) -> Holding | None:
        asides = self._work.all(
            Aside, "WHERE node = ? AND owner = ? AND key = ?", self._node, self._node, key
        )
        return first([_holding(aside) for aside in asides])

    def holdings(self) -> list[Holding]:
        asides = self._work.all(
            Aside, "WHERE node = ? AND owner = ? ORDER BY key", self._node, self._node
        )
        return [_holding(aside) for aside in asides]


def _holding(aside: Aside) -> Holding:
    return Holding(
        key=aside.key, amounts=aside.amounts, used=aside.used, is_open=bool(aside.is_open)
    )


def _debit(entry: Entry, answer: Line | None, *, fresh: bool) -> Debit:
    return Debit(
        key=entry.key,
        number=entry.number,
        hash=entry.hash,
        amounts=plain.twin(entry.amounts),
        answer=answer.body if answer else None,
        fresh=fresh,
    )


def _over(cost: Amounts, meter: Meter, aside: Aside | None) -> Exception:
    if aside is None:
        return statement.over_budget(cost, meter.balance)
    return statement.over_reservation(cost, _holding(aside))


def box_of(meter: Meter) -> Box:
    """A meter as it is shown."""
    return Box(
        node=meter.id,
        name=meter.name,
        kind=meter.kind,
        budget=guarantee_from_dict(json.loads(meter.promise)["budget"]),
        box=meter.box.exact(),
        left=NOTHING if meter.closed else plain.twin(meter.free),
        spent=plain.twin(meter.spent),
        reserved=plain.twin(meter.reserved),
        head=meter.head if meter.owns_chain else "",
        entries=meter.entries if meter.owns_chain else 0,
        frozen=bool(meter.stopped),
        closed=bool(meter.closed),
    )


def require_node(ledger: object) -> Node:
    """A node of a tree, by its exact type; what else is handed in as a ledger is refused."""
    if type(ledger) is not Node:
        raise plain.not_exact(ledger, "ledger=")
    return ledger
