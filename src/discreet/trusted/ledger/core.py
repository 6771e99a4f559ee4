"""The ledger: a privacy filter over a fixed box (ε_p, μ², δ₀), or (ρ, δ₀) for zCDP.

Theorem.  Whatever is asked, in whatever order, each question chosen after seeing all earlier
          answers: if a request is answered only when every coordinate of all prices so far stays
          within the box, everything released together is (ε_p + ε′, δ₀ + δ_μ(ε′))-DP for every
          ε′ ≥ 0; in a zCDP box it is ρ-zCDP where δ₀ = 0, and (ε, δ₀ + δ)-DP wherever ρ-zCDP gives
          (ε, δ).
Proof.    docs/theory/ledger.md.
Checked.  tests/trusted/ledger/test_ledger_filter.py, tests/trusted/ledger/test_ledger_adaptive.py,
          tests/trusted/ledger/test_ledger_model.py, tests/trusted/ledger/test_ledger_races.py

The life of a request: ``debit`` (durable, before the data is read) → aggregate → ``store`` (draw
and store the answer in one transaction) → release. A crash anywhere wastes budget at worst. The key
makes it one request: a retry gets the stored answer, or finishes the unfinished one, and is never
charged twice.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn, get_args

from discreet import plain
from discreet.accounting import statement
from discreet.accounting.guarantees import ApproxDP, Guarantee
from discreet.accounting.replay import Accountant, Replay, replayed
from discreet.errors import ledger as refusals
from discreet.trusted.ledger import opening
from discreet.trusted.ledger.entries import Entry, bound_request, checked_answer, checked_key, draft
from discreet.trusted.ledger.requests import Debit, Reservation
from discreet.trusted.ledger.stores import Balance, Holding, Store, Transaction, View
from discreet.trusted.ledger.units import NOTHING, Amounts, charge
from discreet.trusted.ledger.verification import Verification, opened_with, verify
from discreet.trusted.losses.pricing import Price, price_of_spend


class Ledger:
    """A fixed budget, spent once; see `Ledger.open`.

    It may be shared by threads. A file may be opened by many processes; a ledger in memory refuses
    to go on after a fork. Neither can be copied or pickled: another process opens the same path.

    Price.    A question that would overfill the box is refused before anything is read.
    Example.
            ledger = dp.Ledger.open(dp.GDP(1), path="census.ledger")
            session = dp.load_census().open(ledger=ledger)
            dp.mean(session, "age", spend=dp.GDP(0.1), key="mean age")
            print(ledger)
            print(ledger.verify())
            print(ledger.how_many(dp.GDP(0.1)), "more of that price")
    See also. `dp.Session`, `dp.BudgetExceeded`; docs/theory/ledger.md.
    """

    def __init__(self, store: Store) -> None:
        if not plain.among(type(store), opening.STORES):  # one that forgets would grant everything
            raise refusals.not_a_store(plain.kind_name(store))
        self._store = store
        self._making = threading.local()
        with store.read() as view:
            first, balance = view.at(0), view.balance()
        assert first is not None
        self._budget, self._box = opened_with(first), first.amounts
        self._seen = balance.entries - 1, balance.head

    @classmethod
    @plain.called
    def open(
        cls,
        budget: Guarantee | None,
        *,
        path: str | os.PathLike[str] | None = None,
        pure: float | None = None,
        delta0: float | None = None,
        expected_head: str | None = None,
    ) -> Ledger:
        """A ledger in memory, or in the file `path`, which is made if it is new.

        budget         what is promised in all; None opens an existing file as it is
        pure, delta0   the split of an ApproxDP budget, or the δ₀ beside a ZCDP one
                       (`accounting.open_box`); fixed from then on
        expected_head  a head (`ledger.head`) noted earlier; refused if the file does not know it:
        it is an older copy
        """
        budget = None if budget is None else plain_budget(budget)
        expected_head = (
            None if expected_head is None else plain.text(expected_head, "expected_head=")
        )
        box = opening.asked_box(
            budget, pure=plain.value(pure, "pure="), delta0=plain.value(delta0, "delta0=")
        )
        if path is None:
            return cls(opening.new_memory(budget, box, expected_head))
        return cls(
            opening.new_or_existing_file(
                plain.path(path, "ledger path"), budget, box, expected_head
            )
        )

    # ── what is there ─────────────────────────────────────────────────────────────────────────────

    @property
    def budget(self) -> Guarantee:
        """What is promised for everything released under this ledger;
        a δ₀ opened beside ZCDP is in `guarantee()`.
        """
        return plain.twin(self._budget)

    @property
    def box(self) -> Price:
        """The exact capacity in each coordinate."""
        return self._box.exact()

    @property
    def persistent(self) -> bool:
        """Whether it is a file."""
        return self._store.persistent

    @property
    def head(self) -> str:
        """The hash of the last entry, which commits to the whole history;
        note it to detect a restored old file.
        """
        return self._balance().head

    def spent(self) -> Amounts:
        return plain.twin(self._balance().spent)

    def remaining(self) -> Amounts:
        """What can still be debited; open reservations are not in it."""
        return plain.twin(self._balance().free)

    def reserved(self) -> Amounts:
        """What open reservations set aside and have not debited."""
        return plain.twin(self._balance().reserved)

    @plain.called
    def how_many(self, price: Price | Guarantee) -> int:
        """How many more requests of this price, or of a spend, fit."""
        given: Any = price
        if not plain.derives(type(given), Price):
            given = price_of_spend(plain_budget(given), box=self.box)
        return charge(given).times_in(self.remaining())

    def box_in(self, reservation: str | None) -> Price:
        """The box in which a step is priced: where a reservation set no ε aside, that of μ² alone.

        Theorem.  Either price covers the step.
        Proof.    `price_of` charges a choice to ε_p or at its μ; a box bounds all μ-GDP steps
                  together by their Σμ², whatever else it opened (docs/theory/ledger.md).
        Checked.  tests/estimators/test_steps_in_split_ledgers.py
        """
        holding = None if reservation is None else self._held(reservation)
        if holding is None or holding.amounts.epsilon:
            return self.box
        return replace(self.box, epsilon=Fraction(0))

    def left_in(self, reservation: str) -> Amounts:
        """What a reservation has not debited; nothing once it is closed."""
        return plain.twin(self._held(reservation).left)

    def _held(self, reservation: str) -> Holding:
        reservation = checked_key(reservation, "reservation")
        with self._reading() as view:
            holding = view.holding(reservation)
        if holding is None:
            raise refusals.no_reservation(reservation)
        return holding

    def open_reservations(self) -> list[str]:
        """The ids of the reservations that still set budget aside."""
        with self._reading() as view:
            return [holding.key for holding in view.holdings() if holding.is_open]

    def holds(self, key: str) -> bool:
        """Whether a request was debited under this key."""
        with self._reading() as view:
            return view.find("debit", checked_key(key)) is not None

    def entries(self) -> list[Entry]:
        with self._reading() as view:
            return [plain.twin(entry) for entry in view.entries()]  # what it keeps is its own

    def verify(self) -> Verification:
        """Replay the whole history: is the chain intact, does it add up to the balance,
        was every answer paid for?
        """
        with self._reading() as view:
            return verify(view)

    def guarantee(self) -> str:
        """The promise for everything together, as text."""
        return statement.promise(self._budget, self.box)

    @plain.called
    def replay(self, accountant: str | Accountant = "pld", *, delta: float) -> Replay:
        """The history priced again, from the mechanisms of all debits:
        their total ε at `delta` by an accountant.

        accountant   "pld", "rdp", "gdp" or "zcdp", or a function of (mechanisms, delta) that
                     returns the total ε

        It describes, as if all mechanisms had been chosen before the first answer, what was spent.
        It never changes the balance, and must not be used to decide how much more to ask:
        an account that is priced again after the answers were seen is no filter, because whoever
        chooses the next question by looking collects the best of every count (docs/theory/ledger.md
        shows a true δ of twice the promise). The promise is `guarantee()`.
        """
        accountant, delta = plain.value(accountant, "accountant="), plain.value(delta, "delta=")
        with self._reading() as view:
            entries, balance = view.entries(), view.balance()
        return replayed(
            entries,
            accountant,
            delta,
            spent=balance.spent.exact(),
            box=self.box,
            promise=self.guarantee(),
        )

    @plain.called
    def spent_guarantee(self, delta: float) -> ApproxDP | None:
        """The (ε, δ) that a box of exactly the size spent so far would have promised;
        None before the first debit.

        It describes how much was used. The promise made in advance, which holds however the
        questions were chosen, is `guarantee()`.
        """
        return statement.spent_guarantee(self.spent().exact(), delta)

    def __str__(self) -> str:
        return statement.state(self._store.name, self._budget, self._balance())

    def _repr_html_(self) -> str:
        return statement.state_html(self._store.name, self._budget, self._balance())

    def __repr__(self) -> str:
        return f"<Ledger: {self._store.name}, budget ({self._budget})>"

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
        """Pay for a request, durably, before its data is read; or find it paid already.

        Theorem.  After it returns, `price` (rounded up) is charged exactly once under `key`,
                  whatever crashed or was retried, and the sum of all charges is within the box.
        Proof.    One transaction at a time checks and appends; a known key appends nothing, and is
                  accepted only for the same request at a price that its charge covers.
        Checked.  tests/trusted/ledger/test_ledger_races.py,
                  tests/trusted/ledger/test_ledger_crashes.py
        """
        key, secure = checked_key(key), plain.truth(secure, "secure=")
        reservation = None if reservation is None else checked_key(reservation, "reservation")
        (record, body), amounts = bound_request(request, secure=secure), charge(price)
        if not secure and self._store.persistent:
            raise refusals.seeded_on_file()
        with self._changing() as transaction:
            known = transaction.find("debit", key)
            if known is not None:
                if known.body != body or not amounts.fits(known.amounts):
                    raise refusals.other_request(key)
                answer = transaction.find("answer", key)
                return _paid(known, answer.body if answer else None, fresh=False)
            _same_promise(transaction.first("debit"), record)
            balance, holding = transaction.balance(), None
            if reservation is None:
                if not amounts.fits(balance.free):
                    raise statement.over_budget(amounts, balance)
            else:
                holding = _out_of(transaction, reservation, amounts)
                balance = replace(balance, reserved=balance.reserved - amounts)
            entry = self._append(
                transaction,
                draft("debit", key, amounts=amounts, body=body, reservation=reservation or ""),
                balance=replace(balance, spent=balance.spent + amounts),
                holding=holding,
            )
        return _paid(entry, None, fresh=True)

    def store(self, key: str, make_answer: Callable[[], str]) -> str:
        """The stored answer of a paid request;
        if there is none yet, `make_answer` draws one, and it is stored.

        Drawing and storing are one transaction, so of two finishers only one draws.
        If `make_answer` raises, or the process dies, nothing is stored and the debit stays; a retry
        draws anew, and the first draw was never seen.
        """
        key = checked_key(key)
        with self._changing() as transaction:
            known = transaction.find("answer", key)
            if known is not None:
                return known.body
            if transaction.find("debit", key) is None:
                raise refusals.no_debit(key)
            answer = checked_answer(make_answer())
            self._append(
                transaction, draft("answer", key, body=answer), balance=transaction.balance()
            )
        return answer

    def reserve(self, price: Price | Sequence[Price], *, key: str | None = None) -> Reservation:
        """Set budget aside for the steps of one procedure.

        A list of prices is the list of the steps: each is rounded up as its own debit will be,
        so that all fit. The same key gives the same reservation again, open or closed.
        """
        name = checked_key(key if key is not None else secrets.token_hex(16))
        read = plain.value(price, "price")
        steps = read if type(read) is list or type(read) is tuple else [read]
        amounts = sum((charge(step) for step in steps or [Price()]), NOTHING)
        with self._changing() as transaction:
            known = transaction.holding(name)
            if known is not None:
                if known.amounts != amounts:
                    raise refusals.other_reservation(name)
                return Reservation(self, name)
            balance = transaction.balance()
            if not amounts.fits(balance.free):
                raise statement.over_budget(amounts, balance)
            self._append(
                transaction,
                draft("reserve", name, amounts=amounts),
                balance=replace(balance, reserved=balance.reserved + amounts),
                holding=Holding(key=name, amounts=amounts),
            )
        return Reservation(self, name)

    def reserve_spend(
        self, spend: Guarantee, delta: Fraction, *, key: str | None = None
    ) -> Reservation:
        """Set aside what a procedure that will spend `spend`, and `delta` of δ₀, may need."""
        return self.reserve(price_of_spend(spend, box=self.box, delta=delta), key=key)

    def close_reservation(self, reservation: str) -> Amounts:
        """Hand back what a reservation did not debit; returns how much that was.

        Closing twice changes nothing.
        """
        reservation = checked_key(reservation, "reservation")
        with self._changing() as transaction:
            holding = transaction.holding(reservation)
            if holding is None:
                raise refusals.no_reservation(reservation)
            left = holding.left
            if holding.is_open:
                balance = transaction.balance()
                self._append(
                    transaction,
                    draft("close", reservation, amounts=left),
                    balance=replace(balance, reserved=balance.reserved - left),
                    holding=replace(holding, is_open=False),
                )
        return plain.twin(left)

    # ── how ───────────────────────────────────────────────────────────────────────────────────────

    def _balance(self) -> Balance:
        with self._reading() as view:
            return view.balance()

    @contextmanager
    def _reading(self) -> Iterator[View]:
        seen = self._seen  # before the picture is taken: another thread may go on meanwhile
        with self._store.read() as view:
            self._same_history(view, seen)
            yield view

    @contextmanager
    def _changing(self) -> Iterator[Transaction]:
        """One transaction; a second one inside it would wait for itself."""
        if getattr(self._making, "busy", False):
            raise refusals.inside_answer()
        self._making.busy, self._making.last = True, None
        seen = self._seen
        try:
            with self._store.write() as transaction:
                self._same_history(transaction, seen)
                yield transaction
            if self._making.last is not None:
                self._seen = self._making.last
        finally:
            self._making.busy = False

    def _append(
        self,
        transaction: Transaction,
        line: Entry,
        *,
        balance: Balance,
        holding: Holding | None = None,
    ) -> Entry:
        """Add one line to the chain, with the balance that follows from it."""
        entry = line.after(balance.entries, balance.head)
        transaction.append(
            entry, replace(balance, entries=balance.entries + 1, head=entry.hash), holding
        )
        self._making.last = entry.number, entry.hash
        return entry

    def _same_history(self, view: View, seen: tuple[int, str]) -> None:
        """Refuse if the file under this object was replaced by one that does not know what was seen
        before.
        """
        number, digest = seen
        entry = view.at(number)
        if entry is None or entry.hash != digest:
            raise refusals.replaced(self._store.name)
        balance = view.balance()
        self._seen = balance.entries - 1, balance.head

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise refusals.not_copied()


def plain_budget(budget: Guarantee) -> Guarantee:
    if not plain.among(type(budget), get_args(Guarantee)):
        raise refusals.not_a_guarantee(plain.kind_name(budget))
    return plain.rebuilt(budget)


def _paid(line: Entry, answer: str | None, *, fresh: bool) -> Debit:
    told = {name: getattr(line, name) for name in ("key", "number", "hash")}
    return Debit(**told, amounts=plain.twin(line.amounts), answer=answer, fresh=fresh)


def _same_promise(first: Entry | None, request: Mapping[str, Any]) -> None:
    """Every debit of a ledger protects the same thing (one relation, on rows or on one kind of
    unit), with noise of one kind.

    Seeded noise can be subtracted by whoever knows the seed,
    so a sum of secure and seeded debits would promise nothing.
    """
    if first is None:
        return
    before = first.request or {}
    asked, found = (protected(one) for one in (request, before))
    if asked != found:
        raise refusals.other_relation(asked, found)
    if request.get("secure", True) != before.get("secure", True):
        raise refusals.other_noise(secure=request.get("secure", True))


def protected(request: Mapping[str, Any]) -> str:
    neighbors = request.get("neighbors")
    if not isinstance(neighbors, Mapping):
        return "that are not stated"
    unit = neighbors.get("unit")
    return f"{neighbors.get('relation')}" + (
        f" of units {unit!r}" if unit is not None else " of rows"
    )


def _out_of(transaction: Transaction, reservation: str, amounts: Amounts) -> Holding:
    """The reservation after `amounts` were debited from it."""
    holding = transaction.holding(reservation)
    if holding is None:
        raise refusals.no_reservation(reservation)
    if not amounts.fits(holding.left):
        raise statement.over_reservation(amounts, holding)
    return replace(holding, used=holding.used + amounts)
