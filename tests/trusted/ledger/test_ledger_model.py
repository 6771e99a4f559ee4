"""Random histories against a naive model: the ledger and a few dictionaries must always agree.

The model is written with exact fractions and no units; prices are whole numbers of units,
so rounding does not matter here.
"""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from discreet.accounting.guarantees import ApproxDP
from discreet.accounting.renyi.rdp import ZCDP
from discreet.errors import BudgetExceeded, LedgerRefused
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.losses.pricing import Price

KEYS = st.sampled_from([f"key {number}" for number in range(12)])
NAMES = st.sampled_from(["reservation a", "reservation b", "reservation c"])
PRICES = st.sampled_from(
    [
        Price(epsilon=Fraction(1, 10)),
        Price(epsilon=Fraction(1, 4)),
        Price(mu_squared=Fraction(1, 100)),
        Price(mu_squared=Fraction(1, 1000)),
        Price(epsilon=Fraction(1, 20), mu_squared=Fraction(1, 200)),
        Price(delta=Fraction(3, 10**8)),
        Price(mu_squared=Fraction(1, 500), delta=Fraction(1, 10**8)),
        Price(rho=Fraction(1, 10)),
        Price(rho=Fraction(1, 200), delta=Fraction(3, 10**8)),
    ]
)
NOTHING = Price()


def minus(left: Price, right: Price) -> Price:
    return Price(
        left.epsilon - right.epsilon,
        left.mu_squared - right.mu_squared,
        left.delta - right.delta,
        left.rho - right.rho,
    )


def fits(price: Price, room: Price) -> bool:
    return (
        price.epsilon <= room.epsilon
        and price.mu_squared <= room.mu_squared
        and price.delta <= room.delta
        and price.rho <= room.rho
    )


class LedgerHistory(RuleBasedStateMachine):
    """Histories of a ledger in memory."""

    path: Path | None = None

    def __init__(self) -> None:
        super().__init__()
        self.ledger = self.opened()
        self.debits: dict[str, tuple[str, Price]] = {}
        self.answers: dict[str, str] = {}
        # what was set aside, what was used, whether it is open
        self.holdings: dict[str, list[Any]] = {}
        self.heads = [self.ledger.head]

    def opened(self) -> Ledger:
        return Ledger.open(ApproxDP(1, 1e-6), path=self.path, pure=0.5)

    def spent(self) -> Price:
        return sum((price for _, price in self.debits.values()), NOTHING)

    def aside(self) -> Price:
        return sum(
            (minus(whole, used) for whole, used, is_open in self.holdings.values() if is_open),
            NOTHING,
        )

    def free(self) -> Price:
        return minus(minus(self.ledger.box, self.spent()), self.aside())

    def expect(self, allowed: bool, action: Any) -> Any:
        """Run `action`, which must be refused exactly when it is not allowed,
        and then change nothing.
        """
        head = self.ledger.head
        try:
            outcome = action()
        except (BudgetExceeded, LedgerRefused):
            assert not allowed
            assert self.ledger.head == head
            return None
        assert allowed
        return outcome

    @rule(key=KEYS, query=st.sampled_from(["count", "mean"]), price=PRICES, name=st.none() | NAMES)
    def debit(self, key: str, query: str, price: Price, name: str | None) -> None:
        known = self.debits.get(key)
        whole, used, is_open = (
            self.holdings.get(name, [NOTHING, NOTHING, False])
            if name
            else [self.free(), NOTHING, True]
        )
        if known:
            allowed = known[0] == query and fits(price, known[1])
        else:
            allowed = is_open and fits(price, minus(whole, used))
        outcome = self.expect(
            allowed,
            lambda: self.ledger.debit(
                key=key, request={"query": query}, price=price, reservation=name
            ),
        )
        if outcome is None:
            return
        assert outcome.fresh == (known is None)
        assert outcome.answer == self.answers.get(key)
        if known is None:
            self.debits[key] = query, price
            if name:
                self.holdings[name][1] = used + price

    @rule(
        key=KEYS,
        text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
        fails=st.booleans(),
    )
    def store(self, key: str, text: str, fails: bool) -> None:
        def make_answer() -> str:
            if fails:
                raise LedgerRefused("a draw", "it failed", "the test says so", "try again")
            return text

        outcome = self.expect(
            key in self.answers or (key in self.debits and not fails),
            lambda: self.ledger.store(key, make_answer),
        )
        if outcome is not None:
            assert outcome == self.answers.setdefault(key, text)

    @rule(name=NAMES, prices=st.lists(PRICES, min_size=1, max_size=3))
    def reserve(self, name: str, prices: list[Price]) -> None:
        whole = sum(prices, NOTHING)
        known = self.holdings.get(name)
        if self.expect(
            known[0] == whole if known else fits(whole, self.free()),
            lambda: self.ledger.reserve(prices, key=name),
        ):
            self.holdings.setdefault(name, [whole, NOTHING, True])

    @rule(name=NAMES)
    def close(self, name: str) -> None:
        returned = self.expect(name in self.holdings, lambda: self.ledger.close_reservation(name))
        if returned is not None:
            whole, used, is_open = self.holdings[name]
            assert returned.exact() == (minus(whole, used) if is_open else NOTHING)
            self.holdings[name][2] = False

    @precondition(lambda self: self.path is not None)
    @rule()
    def reopen(self) -> None:
        self.ledger = Ledger.open(None, path=self.path, expected_head=self.heads[-1])

    @invariant()
    def the_ledger_agrees_with_the_model(self) -> None:
        assert self.ledger.spent().exact() == self.spent()
        assert self.ledger.reserved().exact() == self.aside()
        assert self.ledger.remaining().exact() == self.free()
        assert fits(self.spent() + self.aside(), self.ledger.box)

    @invariant()
    def the_history_verifies_and_only_grows(self) -> None:
        assert self.ledger.verify().ok
        entries = self.ledger.entries()
        debits = [entry.amounts.exact() for entry in entries if entry.kind == "debit"]
        assert sum(debits, NOTHING) == self.spent()
        hashes = [entry.hash for entry in entries]
        assert all(head in hashes for head in self.heads)
        self.heads.append(self.ledger.head)


class LedgerFileHistory(LedgerHistory):
    """The same histories on a file."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "model.ledger"
        super().__init__()

    def teardown(self) -> None:
        self.folder.cleanup()


class ZCDPLedgerHistory(LedgerHistory):
    """The same histories in a zCDP box, which refuses every price in ε or μ²."""

    def opened(self) -> Ledger:
        return Ledger.open(ZCDP(0.25), delta0=1e-7)


TestZCDPLedger = pytest.mark.slow(ZCDPLedgerHistory.TestCase)
TestZCDPLedger.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLedgerInMemory = LedgerHistory.TestCase
TestLedgerInMemory.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLedgerInFile = pytest.mark.slow(LedgerFileHistory.TestCase)
TestLedgerInFile.settings = settings(
    max_examples=15, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
