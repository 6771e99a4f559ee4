"""One suite, run by every store: what a ledger does, whatever it is kept in."""

from __future__ import annotations

import copy
import math
import pickle
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from discreet.accounting.calibration.additive import gaussian_noise, laplace_noise
from discreet.accounting.guarantees import GDP, ApproxDP, PureDP
from discreet.accounting.renyi.conversions import pure_rho, zcdp_epsilon
from discreet.accounting.renyi.rdp import ZCDP
from discreet.errors import BudgetExceeded, InvalidParameter, LedgerRefused
from discreet.sensitivity import L1, L2
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.ledger.units import Amounts
from discreet.trusted.losses.pricing import Price, price_of

Open = Callable[..., Ledger]
TENTH = Price(epsilon=Fraction(1, 10))


def pay(ledger: Ledger, key: str, price: Price = TENTH, **options: Any) -> Any:
    return ledger.debit(key=key, request={"query": key}, price=price, **options)


def test_ten_tenths_make_exactly_one_and_the_eleventh_is_refused(open_ledger: Open) -> None:
    ledger = open_ledger(PureDP(1))
    for number in range(10):
        assert ledger.how_many(TENTH) == 10 - number
        assert pay(ledger, f"request {number}").fresh
    assert ledger.spent() == Amounts(epsilon=10**12)
    assert not ledger.remaining()
    head = ledger.head
    with pytest.raises(BudgetExceeded, match="nothing of it is left"):
        pay(ledger, "request 10")
    assert ledger.head == head
    assert ledger.verify().ok


def test_gaussian_prices_add_in_mu_squared(open_ledger: Open) -> None:
    ledger = open_ledger(GDP(1))
    for number in range(4):
        pay(ledger, f"request {number}", Price(mu_squared=Fraction(1, 4)))
    assert ledger.how_many(Price(mu_squared=Fraction(1, 10**12))) == 0
    with pytest.raises(BudgetExceeded):
        pay(ledger, "one more", Price(mu_squared=Fraction(1, 10**30)))


def test_each_coordinate_is_a_limit_of_its_own(open_ledger: Open) -> None:
    ledger = open_ledger(ApproxDP(1, 1e-6), pure=0.5)
    assert ledger.box.epsilon == Fraction(1, 2)
    assert ledger.box.delta == Fraction(1, 10**7)
    pay(ledger, "pure", Price(epsilon=Fraction(1, 2)))
    pay(ledger, "failure", Price(delta=Fraction(1, 10**7)))
    pay(ledger, "gaussian", Price(mu_squared=ledger.remaining().exact().mu_squared))
    assert not ledger.remaining()
    for price in (
        Price(epsilon=Fraction(1, 10**9)),
        Price(delta=Fraction(1, 10**17)),
        Price(mu_squared=Fraction(1, 10**12)),
    ):
        with pytest.raises(BudgetExceeded):
            pay(ledger, "more", price)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("budget", "price", "says"),
    [
        (GDP(1), Price(epsilon=Fraction(1, 10)), "no pure ε"),
        (GDP(1), Price(mu_squared=Fraction(1, 10), delta=Fraction(1, 10**9)), "no δ₀"),
        (PureDP(1), Price(mu_squared=Fraction(1, 10)), "no Gaussian part"),
        (GDP(1), Price(rho=Fraction(1, 10)), "no ρ"),
        (ZCDP(1), Price(mu_squared=Fraction(1, 10)), "counts in ρ"),
        (ZCDP(1), Price(epsilon=Fraction(1, 10)), "counts in ρ"),
        (ZCDP(1), Price(rho=Fraction(1, 10), delta=Fraction(1, 10**9)), "no δ₀"),
    ],
)
def test_a_coordinate_that_was_not_opened_is_refused_with_its_own_text(
    open_ledger: Open, budget: Any, price: Price, says: str
) -> None:
    ledger = open_ledger(budget)
    before = ledger.entries()
    with pytest.raises(BudgetExceeded, match=says) as caught:
        pay(ledger, "request", price)
    assert "never re-split" in caught.value.remedy
    assert ledger.entries() == before


def test_a_refusal_says_the_largest_spend_that_fits_and_it_does_fit(open_ledger: Open) -> None:
    ledger = open_ledger(GDP(1))
    pay(ledger, "first", Price(mu_squared=Fraction(7, 10)))
    with pytest.raises(BudgetExceeded) as caught:
        pay(ledger, "second", Price(mu_squared=Fraction(7, 10)))
    assert "μ² = 0.7" in caught.value.found
    assert "μ² = 0.3" in caught.value.found
    mu = Fraction(caught.value.remedy.split("dp.GDP(")[1].split(")")[0])
    assert Fraction(999, 1000) * Fraction(3, 10) < mu**2 <= Fraction(3, 10)
    assert pay(ledger, "second", Price(mu_squared=mu**2)).fresh


def test_a_zcdp_box_counts_rho(open_ledger: Open) -> None:
    ledger = open_ledger(ZCDP(0.5))
    gaussian, pure = (
        gaussian_noise(L2(Fraction(3)), Fraction(1, 5)),
        laplace_noise(L1(Fraction(1)), Fraction(1, 2)),
    )
    assert price_of([gaussian], box=ledger.box) == Price(rho=3 / gaussian.spread**2 / 2)
    assert price_of([pure], box=ledger.box) == Price(rho=Fraction(pure_rho(0.5)))
    pay(ledger, "gaussian", price_of([gaussian], box=ledger.box))
    pay(ledger, "pure", price_of([pure], box=ledger.box))
    assert ledger.spent().exact().rho == pytest.approx(0.1 + 0.5 * math.tanh(0.25), abs=2e-12)
    assert ledger.spent().exact().rho >= Fraction(1, 10) - Fraction(1, 10**12) + Fraction(
        pure_rho(0.5)
    )
    with pytest.raises(BudgetExceeded) as caught:
        pay(ledger, "too much", Price(rho=Fraction(1, 2)))
    fits = Fraction(caught.value.remedy.split("dp.ZCDP(")[1].split(")")[0])
    assert 0.999 * float(ledger.remaining().exact().rho) < fits <= ledger.remaining().exact().rho
    assert pay(ledger, "fits", Price(rho=fits)).fresh
    assert ledger.guarantee() == "(ρ = 0.5 (zero-concentrated DP))"
    assert "ρ 0.5 of 0.5" in str(ledger)
    assert ledger.spent_guarantee(1e-6).epsilon == pytest.approx(zcdp_epsilon(0.5, 1e-6), rel=1e-5)
    assert ledger.verify().ok


def test_a_hundred_rho_spends_fill_their_box(open_ledger: Open) -> None:
    ledger = open_ledger(ZCDP(0.5))
    price = price_of([gaussian_noise(L2(Fraction(7)), 2 * Fraction(1, 200))], box=ledger.box)
    assert ledger.how_many(price) == 100


def test_a_zcdp_box_with_a_failure_probability(open_ledger: Open) -> None:
    ledger = open_ledger(ZCDP(0.5), delta0=1e-7)
    assert ledger.box == Price(rho=Fraction(1, 2), delta=Fraction(1, 10**7))
    assert ledger.budget == ZCDP(0.5)
    assert "δ₀ = 1e-07: (ε, δ₀ + δ)-DP" in ledger.guarantee()
    pay(ledger, "may fail", Price(rho=Fraction(1, 2), delta=Fraction(1, 10**7)))
    assert ledger.spent_guarantee(1.1e-6).epsilon == pytest.approx(
        zcdp_epsilon(0.5, 1e-6), rel=1e-9
    )
    with pytest.raises(InvalidParameter, match="larger delta"):
        ledger.spent_guarantee(1e-7)
    assert ledger.verify().ok
    if ledger.persistent:
        for other in ({}, {"delta0": 2e-7}):
            with pytest.raises(LedgerRefused, match=r"never re-split|another kind, name or budget"):
                open_ledger(ZCDP(0.5), **other)
        assert open_ledger(ZCDP(0.5), delta0=1e-7).spent() == ledger.spent()


@pytest.mark.parametrize(
    "split", [{"pure": 0.1}, {"delta0": 1}, {"delta0": -1e-9}, {"delta0": float("nan")}]
)
def test_a_zcdp_box_has_no_other_split(open_ledger: Open, split: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter):
        open_ledger(ZCDP(0.5), **split)


def test_a_known_key_returns_its_answer_and_costs_nothing(open_ledger: Open) -> None:
    ledger = open_ledger()
    first = pay(ledger, "asked")
    assert (first.fresh, first.answer, first.number) == (True, None, ledger.entries()[-1].number)
    unfinished = pay(ledger, "asked")
    assert (unfinished.fresh, unfinished.answer, unfinished.hash) == (False, None, first.hash)
    assert ledger.store("asked", lambda: '{"value":3}') == '{"value":3}'
    assert ledger.store("asked", lambda: pytest.fail("a second draw")) == '{"value":3}'
    assert pay(ledger, "asked").answer == '{"value":3}'
    assert ledger.spent().exact() == TENTH


def test_a_known_key_is_refused_for_another_request_or_a_higher_price(open_ledger: Open) -> None:
    ledger = open_ledger()
    pay(ledger, "asked")
    ledger.store("asked", lambda: "answer")
    head = ledger.head
    with pytest.raises(LedgerRefused, match="new key"):
        ledger.debit(key="asked", request={"query": "another"}, price=TENTH)
    with pytest.raises(LedgerRefused, match="cost less"):
        pay(ledger, "asked", Price(epsilon=Fraction(2, 10)))
    assert ledger.head == head


def test_the_order_in_which_a_request_is_written_does_not_matter(open_ledger: Open) -> None:
    ledger = open_ledger()
    ledger.debit(key="asked", request={"a": [1, 2.5], "b": {"x": "é", "y": None}}, price=TENTH)
    assert not ledger.debit(
        key="asked", request={"b": {"y": None, "x": "é"}, "a": [1, 2.5]}, price=TENTH
    ).fresh
    request = ledger.entries()[-1].request
    assert (request["a"], request["b"]) == ([1, 2.5], {"x": "é", "y": None})


def test_an_answer_needs_a_debit(open_ledger: Open) -> None:
    ledger = open_ledger()
    before = ledger.entries()
    with pytest.raises(LedgerRefused, match="nothing was debited"):
        ledger.store("asked", lambda: pytest.fail("drawn without a debit"))
    assert ledger.entries() == before


@pytest.mark.few(2)
@pytest.mark.parametrize("answer", [None, b"bytes", "nul \0 byte", "\ud800"])
def test_an_answer_is_text(open_ledger: Open, answer: Any) -> None:
    ledger = open_ledger()
    pay(ledger, "asked")
    with pytest.raises(InvalidParameter):
        ledger.store("asked", lambda: answer)
    assert ledger.store("asked", lambda: "α\n\u2028 text") == "α\n\u2028 text"
    assert pay(ledger, "asked").answer == "α\n\u2028 text"
    assert ledger.verify().ok


def test_a_failed_draw_keeps_the_debit_and_stores_nothing(open_ledger: Open) -> None:
    ledger = open_ledger()
    ledger.debit(key="asked", request={}, price=TENTH)
    head = ledger.head
    with pytest.raises(ZeroDivisionError):
        ledger.store("asked", lambda: str(1 // 0))
    assert ledger.head == head
    assert ledger.spent().exact() == TENTH
    assert ledger.store("asked", lambda: "drawn") == "drawn"


def test_of_two_finishers_the_first_stored_answer_wins(open_ledger: Open) -> None:
    ledger = open_ledger()
    pay(ledger, "asked")
    drawn: list[int] = []
    answers: list[str] = []
    gate = threading.Barrier(8)

    def finish(number: int) -> None:
        def make_answer() -> str:
            drawn.append(number)
            time.sleep(0.02)
            return f"drawn by {number}"

        gate.wait()
        answers.append(ledger.store("asked", make_answer))

    threads = [threading.Thread(target=finish, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [f"drawn by {drawn[0]}"] * 8
    assert len(drawn) == 1


def test_threads_never_overspend(open_ledger: Open) -> None:
    ledger, won = open_ledger(), []
    gate = threading.Barrier(16)

    def spend(number: int) -> None:
        gate.wait()
        for step in range(3):
            try:
                won.append(pay(ledger, f"{number}/{step}").fresh)
            except BudgetExceeded:
                continue

    threads = [threading.Thread(target=spend, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 10
    assert ledger.verify().ok


@pytest.mark.slow
def test_threads_read_while_others_write(open_ledger: Open) -> None:
    ledger, failures = open_ledger(PureDP(1000)), []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                assert ledger.spent().fits(ledger.spent())
                assert ledger.verify().ok
            except Exception as error:
                failures.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(40):
        pay(ledger, f"request {number}")
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_the_ledger_cannot_be_changed_while_an_answer_is_made(open_ledger: Open) -> None:
    ledger = open_ledger()
    pay(ledger, "asked")
    for action in (
        lambda: pay(ledger, "inner").key,
        lambda: ledger.store("asked", str),
        lambda: ledger.reserve(TENTH).id,
    ):
        with pytest.raises(LedgerRefused, match="one transaction"):
            ledger.store("asked", action)
    assert ledger.store("asked", lambda: str(ledger.spent())) == "ε = 0.1"


def test_a_reservation_sets_budget_aside_and_returns_what_no_step_used(open_ledger: Open) -> None:
    ledger = open_ledger()
    with ledger.reserve(Price(epsilon=Fraction(8, 10)), key="procedure") as reservation:
        assert ledger.remaining().exact() == Price(epsilon=Fraction(2, 10))
        assert ledger.how_many(TENTH) == 2
        assert ledger.open_reservations() == ["procedure"]
        with pytest.raises(BudgetExceeded, match="close_reservation"):
            pay(ledger, "other", Price(epsilon=Fraction(3, 10)))
        for step in range(3):
            reservation.debit(key=f"step {step}", request={"query": f"step {step}"}, price=TENTH)
        assert reservation.remaining().exact() == Price(epsilon=Fraction(5, 10))
    assert ledger.spent().exact() == Price(epsilon=Fraction(3, 10))
    assert ledger.remaining().exact() == Price(epsilon=Fraction(7, 10))
    assert not reservation.close()
    assert not reservation.remaining()
    assert not reservation.debit(key="step 0", request={"query": "step 0"}, price=TENTH).fresh
    with pytest.raises(BudgetExceeded, match="closed"):
        reservation.debit(key="step 9", request={}, price=TENTH)
    kinds = [entry.kind for entry in ledger.entries()]
    assert kinds[-5:] == ["reserve", "debit", "debit", "debit", "close"]
    assert ledger.verify().ok


def test_a_reservation_closes_when_its_owner_fails(open_ledger: Open) -> None:
    ledger = open_ledger()

    def fail() -> None:
        with ledger.reserve(Price(epsilon=Fraction(1, 2))) as reservation:
            reservation.debit(key="step", request={}, price=TENTH)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert ledger.spent().exact() == TENTH
    assert not ledger.reserved()


def test_a_reservation_is_a_limit_for_its_steps(open_ledger: Open) -> None:
    ledger = open_ledger()
    reservation = ledger.reserve(Price(epsilon=Fraction(15, 100)))
    reservation.debit(key="one", request={}, price=TENTH)
    with pytest.raises(BudgetExceeded, match=r"dp\.PureDP\(0\.05\)"):
        reservation.debit(key="two", request={}, price=TENTH)
    assert ledger.close_reservation(reservation.id).exact() == Price(epsilon=Fraction(5, 100))


def test_steps_that_are_rounded_up_fit_a_reservation_of_the_steps(open_ledger: Open) -> None:
    ledger = open_ledger(GDP(1))
    third = Price(mu_squared=Fraction(1, 30))
    with ledger.reserve([third] * 3) as reservation:
        for step in range(3):
            reservation.debit(key=f"step {step}", request={}, price=third)
        assert not reservation.remaining()


def test_the_same_key_gives_the_same_reservation(open_ledger: Open) -> None:
    ledger = open_ledger()
    first = ledger.reserve(TENTH, key="procedure")
    assert ledger.reserve(TENTH, key="procedure").id == first.id == "procedure"
    assert ledger.reserved().exact() == TENTH
    with pytest.raises(LedgerRefused, match="another size"):
        ledger.reserve(Price(epsilon=Fraction(1, 5)), key="procedure")
    with pytest.raises(LedgerRefused, match="none of that name"):
        pay(ledger, "asked", reservation="unknown")
    with pytest.raises(LedgerRefused, match="none of that name"):
        ledger.close_reservation("unknown")
    with pytest.raises(BudgetExceeded):
        ledger.reserve(Price(epsilon=Fraction(95, 100)))
    with pytest.raises(InvalidParameter):
        ledger.reserve([])


def test_a_ledger_cannot_be_pickled_or_copied(open_ledger: Open) -> None:
    ledger = open_ledger()
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(LedgerRefused, match="two copies"):
            attempt(ledger)
        with pytest.raises(LedgerRefused, match="two copies"):
            attempt({"ledger": [ledger]}) if attempt is not copy.copy else attempt(ledger)
    with pytest.raises(LedgerRefused, match="two copies"):
        pickle.dumps(ledger.reserve(TENTH))


@pytest.mark.parametrize(
    "price",
    [
        Price(),
        Price(epsilon=Fraction(-1, 10)),
        Price(epsilon=Fraction(1, 10), mu_squared=Fraction(-1)),
        "0.1",
        None,
        Price(epsilon=float("nan")),
    ],
)
def test_a_price_is_positive(open_ledger: Open, price: Any) -> None:
    ledger = open_ledger()
    before = ledger.entries()
    with pytest.raises(InvalidParameter):
        ledger.debit(key="asked", request={}, price=price)
    assert ledger.entries() == before


@pytest.mark.few(2)
@pytest.mark.parametrize("key", ["", "two\nlines", "\ud800", "x" * 513, None, 7])
def test_a_key_is_short_printable_text(open_ledger: Open, key: Any) -> None:
    ledger = open_ledger()
    with pytest.raises(InvalidParameter):
        ledger.debit(key=key, request={}, price=TENTH)
    with pytest.raises(InvalidParameter):
        ledger.store(key, str)


@pytest.mark.parametrize(
    "request_", [None, "count", {"x": float("nan")}, {"x": object()}, {1: 2, "a": 3}]
)
def test_a_request_is_json(open_ledger: Open, request_: Any) -> None:
    with pytest.raises(InvalidParameter):
        open_ledger().debit(key="asked", request=request_, price=TENTH)


def test_entries_tell_the_story(open_ledger: Open) -> None:
    ledger = open_ledger()
    pay(ledger, "asked")
    ledger.store("asked", lambda: "answer")
    debited, answered = ledger.entries()[-2:]
    assert answered.number == debited.number + 1
    assert (answered.previous, ledger.head) == (debited.hash, answered.hash)
    assert debited.request["query"] == "asked"
    assert debited.amounts.exact() == TENTH
    assert (answered.answer, answered.request, debited.answer) == ("answer", None, None)
    assert datetime.fromisoformat(debited.timestamp).utcoffset() == timedelta(0)
    assert "0.1 of 1" in str(ledger)
    assert ledger.guarantee() == "(ε = 1)"
    assert ledger.budget == PureDP(1)
    assert "intact" in str(ledger.verify())


def test_what_was_spent_reads_as_epsilon_and_delta(open_ledger: Open) -> None:
    ledger = open_ledger(ApproxDP(1, 1e-6), pure=0.5)
    assert ledger.spent_guarantee(1e-6) is None
    pay(ledger, "pure")
    assert ledger.spent_guarantee(1e-6) == ApproxDP(0.1, 1e-6)
    pay(ledger, "failure", Price(delta=Fraction(1, 10**8)))
    pay(ledger, "gaussian", Price(mu_squared=ledger.remaining().exact().mu_squared))
    spent = ledger.spent_guarantee(9.1e-7)
    assert spent is not None
    assert 0.599 < spent.epsilon <= 0.6
    with pytest.raises(InvalidParameter, match="larger delta"):
        ledger.spent_guarantee(1e-8)


def test_the_last_unit_fits_and_one_more_does_not(open_ledger: Open) -> None:
    unit = Fraction(1, 10**12)
    ledger = open_ledger(PureDP(1))
    with pytest.raises(BudgetExceeded):
        pay(ledger, "one unit too many", Price(epsilon=1 + unit))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(Price(epsilon=1 + unit), key="set aside")
    pay(ledger, "all but one", Price(epsilon=1 - unit))
    with pytest.raises(BudgetExceeded):
        pay(ledger, "two", Price(epsilon=2 * unit))
    pay(ledger, "the last one", Price(epsilon=unit))
    assert not ledger.remaining()
