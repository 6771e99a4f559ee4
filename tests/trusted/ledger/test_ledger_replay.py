"""Replays: the history by other accountants, beside the box, and never instead of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

import discreet as dp
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise, laplace_noise
from discreet.accounting.gaussian import gdp_epsilon
from discreet.accounting.guarantees import GDP, ApproxDP, PureDP
from discreet.accounting.renyi.conversions import pure_rho, zcdp_epsilon
from discreet.accounting.renyi.rdp import ZCDP
from discreet.accounting.replay import ACCOUNTANTS, Replay
from discreet.errors import InvalidParameter, LedgerRefused
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.losses.pricing import Price, price_of

Open = Callable[..., Ledger]
GAUSSIAN = gaussian_noise(L2(Fraction(1)), Fraction(1, 25))
LAPLACE = laplace_noise(L1(Fraction(1)), Fraction(1, 10))
GEOMETRIC = geometric_noise(L1(Fraction(2)), Fraction(1, 5))
NAMES = pytest.mark.parametrize("name", list(ACCOUNTANTS))


def ask(ledger: Ledger, *mechanisms: AdditiveNoise) -> Ledger:
    for mechanism in mechanisms:
        ledger.debit(
            key=str(len(ledger.entries())),
            request={"mechanism": mechanism.to_dict()},
            price=price_of((mechanism,), box=ledger.box),
        )
    return ledger


def test_gaussian_history_is_the_same_by_exact_accountants(open_ledger: Open) -> None:
    ledger = ask(open_ledger(GDP(1)), *[GAUSSIAN] * 4)
    exact = gdp_epsilon(Fraction(2, 5), Fraction(1, 10**6))
    for name in ("pld", "gdp"):
        replay = ledger.replay(name, delta=1e-6)
        assert (replay.accountant, replay.debits, replay.delta) == (name, 4, 1e-6)
        assert replay.epsilon == pytest.approx(exact, rel=1e-9)
        assert replay.spent == pytest.approx(exact, rel=1e-9)
        assert replay.promised == pytest.approx(
            gdp_epsilon(Fraction(1), Fraction(1, 10**6)), rel=1e-9
        )
    for name in ("rdp", "zcdp"):
        assert ledger.replay(name, delta=1e-6).epsilon == pytest.approx(
            zcdp_epsilon(0.08, 1e-6), rel=2e-3
        )
        assert ledger.replay(name, delta=1e-6).epsilon > exact


@pytest.mark.slow
def test_mixed_history_is_tightest_by_privacy_loss(open_ledger: Open) -> None:
    ledger = ask(open_ledger(ZCDP(0.5)), *[GAUSSIAN, LAPLACE, GEOMETRIC] * 5)
    by = {name: ledger.replay(name, delta=1e-5).epsilon for name in ACCOUNTANTS}
    assert by["pld"] < by["rdp"] <= by["zcdp"] * (1 + 1e-3)
    assert by["pld"] < by["gdp"]
    total = 5 * (0.02 + pure_rho(0.1) + pure_rho(0.2))
    assert by["zcdp"] == pytest.approx(zcdp_epsilon(total, 1e-5), rel=1e-9)
    assert ledger.replay("zcdp", delta=1e-5).spent == pytest.approx(by["zcdp"], rel=1e-9)
    assert ledger.replay(delta=1e-5) == ledger.replay("pld", delta=1e-5)


@pytest.mark.few(2)
@NAMES
def test_a_replay_changes_nothing(open_ledger: Open, name: str) -> None:
    ledger = ask(open_ledger(GDP(1)), GAUSSIAN, LAPLACE)
    head, spent, left = ledger.head, ledger.spent(), ledger.remaining()
    ledger.replay(name, delta=1e-6)
    assert (ledger.head, ledger.spent(), ledger.remaining()) == (head, spent, left)


@NAMES
def test_an_empty_history_costs_nothing(open_ledger: Open, name: str) -> None:
    replay = open_ledger(PureDP(1)).replay(name, delta=1e-6)
    assert (replay.epsilon, replay.spent, replay.promised, replay.debits) == (0, 0, 1, 0)


def test_a_replay_prints_a_table(open_ledger: Open) -> None:
    text = str(ask(open_ledger(ApproxDP(1, 1e-6)), GAUSSIAN).replay("gdp", delta=1e-6))
    for words in (
        "history by gdp",
        "ε at δ = 1e-06",
        "promised, the whole box",
        "(ε = 1, δ = 1e-06)",
        "never gives budget back",
    ):
        assert words in text
    promised = float(text.splitlines()[3].split()[-1])
    assert promised == pytest.approx(1, rel=1e-5)


def test_an_accountant_of_ones_own(open_ledger: Open) -> None:
    ledger = ask(open_ledger(GDP(1)), GAUSSIAN, LAPLACE)

    def counting(mechanisms: Sequence[AdditiveNoise], delta: float) -> float:
        assert list(mechanisms) == [GAUSSIAN, LAPLACE]
        assert delta == 1e-6
        return 7

    replay = ledger.replay(counting, delta=1e-6)
    assert isinstance(replay, Replay)
    assert (replay.accountant, replay.epsilon) == ("counting", 7)
    bad: list[Any] = [
        lambda mechanisms, delta: math.nan,
        lambda mechanisms, delta: -1,
        lambda mechanisms, delta: "1",
        lambda mechanisms, delta: True,
        "moments",
        None,
        7,
    ]
    for accountant in bad:
        with pytest.raises(InvalidParameter, match="accountant="):
            ledger.replay(accountant, delta=1e-6)


@pytest.mark.few(2)
@pytest.mark.parametrize("delta", [0, 1, -1e-6, math.nan, "1e-6", None, True])
def test_a_bad_delta(open_ledger: Open, delta: Any) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        ask(open_ledger(GDP(1)), GAUSSIAN).replay("gdp", delta=delta)


def test_failures_that_were_charged_come_off_delta(open_ledger: Open) -> None:
    ledger = open_ledger(ZCDP(0.5), delta0=1e-7)
    ledger.debit(
        key="may fail",
        request={"mechanism": GAUSSIAN.to_dict()},
        price=price_of((GAUSSIAN,), box=ledger.box) + Price(delta=Fraction(1, 10**7)),
    )
    assert ledger.replay("zcdp", delta=1.1e-6).epsilon == pytest.approx(
        zcdp_epsilon(0.02, 1e-6), rel=1e-9
    )
    late = ledger.replay("zcdp", delta=1e-7)
    assert (late.epsilon, late.spent, late.promised) == (math.inf, math.inf, math.inf)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"mechanism": None},
        {"mechanism": "gaussian"},
        {"mechanism": {"kind": "unheard of"}},
        {"mechanism": {**GAUSSIAN.to_dict(), "spread": "-1"}},
        {"mechanism": {**GAUSSIAN.to_dict(), "spread": "1/0"}},
    ],
)
def test_a_debit_without_a_mechanism_cannot_be_priced_again(
    open_ledger: Open, request_: dict[str, Any]
) -> None:
    ledger = ask(open_ledger(GDP(1)), GAUSSIAN)
    ledger.debit(key="other", request=request_, price=Price(mu_squared=Fraction(1, 100)))
    with pytest.raises(LedgerRefused, match=r"entry [23] names no mechanism"):
        ledger.replay("gdp", delta=1e-6)


def test_sessions_store_what_a_replay_needs() -> None:
    data = dp.from_arrays(
        {"x": [1.0, 2.0, 3.0]}, schema={"x": dp.Real(0, 10)}, neighbors=dp.Replace()
    )
    session = data.open(budget=dp.ZCDP(0.5))
    for spend in (dp.ZCDP(0.005), dp.GDP(0.1), dp.PureDP(0.1), dp.ApproxDP(0.3, 1e-6)):
        dp.mean(session, "x", spend=spend)
        dp.count(session, spend=spend, where={"x": (1, 2)})
    replay = session.ledger.replay(delta=1e-6)
    assert replay.debits == 8
    assert 0 < replay.epsilon < replay.spent < replay.promised
