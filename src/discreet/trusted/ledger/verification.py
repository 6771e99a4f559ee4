"""Checking a ledger against its own history.

`verify` replays the entries from the first to the last and compares the outcome with the stored
balance. It says of each entry that its hash is right, that it follows the one before, and that it
was allowed then.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from fractions import Fraction

from discreet.accounting.guarantees import Guarantee, guarantee_from_dict
from discreet.errors import DiscreetError
from discreet.trusted.ledger.entries import FIRST_PREVIOUS, KINDS, Entry
from discreet.trusted.ledger.stores import Balance, Holding, View
from discreet.trusted.ledger.units import capacity
from discreet.trusted.losses.pricing import open_box


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The outcome of checking a ledger: `ok`, or the list of what is wrong."""

    entries: int
    head: str
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        state = "intact" if self.ok else "NOT intact:\n  " + "\n  ".join(self.problems)
        return f"{self.entries} entries, head {self.head}: {state}"


@dataclass(slots=True)
class _Replay:
    """The ledger as its entries say it should be."""

    balance: Balance
    requests: set[str] = field(default_factory=set)
    answers: set[str] = field(default_factory=set)
    holdings: dict[str, Holding] = field(default_factory=dict)

    def take(self, entry: Entry) -> str | None:
        """Apply one entry; what is wrong with it, if anything."""
        rule = {
            "debit": self._debit,
            "answer": self._answer,
            "reserve": self._reserve,
            "close": self._close,
        }.get(entry.kind)
        problem = rule(entry) if rule else f"a second {entry.kind!r} entry"
        self.balance = replace(self.balance, entries=self.balance.entries + 1, head=entry.hash)
        return problem

    def _debit(self, entry: Entry) -> str | None:
        if entry.key in self.requests:
            return "its key was debited before"
        self.requests.add(entry.key)
        room = self.balance.free
        if entry.reservation:
            holding = self.holdings.get(entry.reservation)
            if holding is None:
                return "its reservation does not exist"
            room = holding.left
            self.holdings[entry.reservation] = replace(holding, used=holding.used + entry.amounts)
            self.balance = replace(self.balance, reserved=self.balance.reserved - entry.amounts)
        self.balance = replace(self.balance, spent=self.balance.spent + entry.amounts)
        return (
            None if entry.amounts and entry.amounts.fits(room) else "it did not fit what was left"
        )

    def _answer(self, entry: Entry) -> str | None:
        if entry.key not in self.requests or entry.amounts:
            return "no earlier debit paid for this answer"
        if entry.key in self.answers:
            return "its key has an earlier answer"
        self.answers.add(entry.key)
        return None

    def _reserve(self, entry: Entry) -> str | None:
        if entry.key in self.holdings:
            return "its key was reserved before"
        room = self.balance.free
        self.holdings[entry.key] = Holding(key=entry.key, amounts=entry.amounts)
        self.balance = replace(self.balance, reserved=self.balance.reserved + entry.amounts)
        return None if entry.amounts.fits(room) else "it did not fit what was left"

    def _close(self, entry: Entry) -> str | None:
        holding = self.holdings.get(entry.key)
        if holding is None or not holding.is_open or holding.left != entry.amounts:
            return "it returns what was not set aside"
        self.holdings[entry.key] = replace(holding, is_open=False)
        self.balance = replace(self.balance, reserved=self.balance.reserved - entry.amounts)
        return None


def verify(view: View) -> Verification:
    """Everything that is wrong with the ledger in `view`."""
    damage = view.damage()
    if damage:  # the container is broken: its content cannot be trusted to be readable
        return Verification(entries=0, head="", problems=tuple(damage))
    entries, balance = view.entries(), view.balance()
    problems = _chain_problems(entries) or _history_problems(entries, balance, view.holdings())
    return Verification(entries=len(entries), head=balance.head, problems=tuple(problems))


def _chain_problems(entries: list[Entry]) -> list[str]:
    previous, problems = FIRST_PREVIOUS, []
    if not entries:
        return ["there is no first entry"]
    for number, entry in enumerate(entries):
        if entry.number != number or entry.previous != previous:
            problems.append(f"entry {entry.number}: it does not follow the entry before it")
        if not _well_formed(entry) or entry.digest() != entry.hash:
            problems.append(f"entry {entry.number}: its content does not match its hash")
        previous = entry.hash
    return problems


def _well_formed(entry: Entry) -> bool:
    texts = (
        entry.kind,
        entry.key,
        entry.reservation,
        entry.body,
        entry.timestamp,
        entry.previous,
        entry.hash,
    )
    amounts = entry.amounts.as_tuple()
    return (
        all(type(text) is str for text in texts)
        and all(type(amount) is int and amount >= 0 for amount in amounts)
        and entry.kind in KINDS
    )


def _history_problems(entries: list[Entry], balance: Balance, holdings: list[Holding]) -> list[str]:
    first, box = entries[0], entries[0].amounts
    problems = [f"entry 0: {problem}" for problem in box_problems(first)]
    replay = _Replay(Balance(box=box, entries=1, head=first.hash))
    for entry in entries[1:]:
        problem = replay.take(entry)
        if problem:
            problems.append(f"entry {entry.number}: {problem}")
    if replay.balance != balance:
        problems.append("the balance is not what the entries add up to")
    if not (balance.spent + balance.reserved).fits(balance.box):
        problems.append("more was spent or set aside than the box holds")
    if replay.holdings != {holding.key: holding for holding in holdings}:
        problems.append("the reservations are not what the entries say")
    return problems


def opened_with(first: Entry) -> Guarantee:
    """The budget that a ledger's first entry names."""
    return guarantee_from_dict(json.loads(first.body)["budget"])


def box_problems(first: Entry) -> list[str]:
    """Whether the first entry's box keeps the promise of its budget."""
    if first.kind != "open":
        return ["it is not an opening"]
    try:
        budget, box = opened_with(first), first.amounts.exact()
        splits: dict[str, dict[str, Fraction]] = {
            "approx": {"pure": box.epsilon, "delta0": box.delta},
            "zcdp": {"delta0": box.delta},
        }
        allowed = capacity(
            open_box(budget, **splits.get(budget.kind, {})),  # type: ignore[arg-type]
        )
    except (DiscreetError, LookupError, TypeError, ValueError):
        return ["its budget cannot be read"]
    return (
        []
        if first.amounts.fits(allowed)
        else [f"its box {first.amounts} is larger than {budget} allows"]
    )
