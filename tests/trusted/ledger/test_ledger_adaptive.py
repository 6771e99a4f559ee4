"""A fully adaptive user can never exceed the budget:
boxes of every kind against users who look before they ask.

First through sessions: whatever they ask after whatever they saw, the exact sum of all prices stays
within the box. Then on strategies small enough to enumerate: every answer a user may see and every
reaction to it, decided by real ledgers, gives the exact laws of the whole history on two
neighbours, and their δ(ε) and Rényi divergences are within the promise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

import discreet as dp
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.renyi.conversions import zcdp_delta
from discreet.errors import BudgetExceeded
from discreet.sensitivity import L1, L2
from discreet.specs.registry import mechanism_from_dict
from discreet.testing import seeded_session
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.losses.pricing import Price, open_box, price_of
from discreet.trusted.losses.theorems import gaussian_mu_squared, pure_epsilon

Array = NDArray[np.float64]
BOXES: dict[str, tuple[Any, dict[str, float]]] = {
    "pure": (dp.PureDP(1.5), {}),
    "GDP": (dp.GDP(1.2), {}),
    "approx": (dp.ApproxDP(2, 0.05), {}),
    "split approx": (dp.ApproxDP(2, 0.05), {"pure": 0.7, "delta0": 0.02}),
    "zCDP": (dp.ZCDP(0.6), {}),
    "zCDP with δ₀": (dp.ZCDP(0.6), {"delta0": 0.02}),
}
COORDINATES = ("epsilon", "mu_squared", "delta", "rho")
kinds = pytest.mark.parametrize("kind", BOXES)


def within(one: Price, whole: Price) -> bool:
    return all(getattr(one, name) <= getattr(whole, name) for name in COORDINATES)


# -- through sessions ------------------------------------------------------------------------------


def next_spend(rng: random.Random, answer: float) -> Any:
    """A user's reaction: greedy after a high answer, modest after a low one, in any currency."""
    size = rng.choice([0.02, 0.1, 0.3, 0.9]) * (2 if answer > 50 else 0.5)
    return rng.choice(
        [dp.GDP(size), dp.PureDP(size), dp.ZCDP(size**2 / 2), dp.ApproxDP(size, 1e-4)]
    )


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("seed", range(6))
def test_no_user_spends_more_than_the_box(kind: str, seed: int) -> None:
    budget, split = BOXES[kind]
    ledger, rng = Ledger.open(budget, **split), random.Random(seed)
    data = dp.from_arrays(
        {"x": [10.0, 60, 90, 40]}, schema={"x": dp.Real(0, 100)}, neighbors=dp.Replace()
    )
    session, box = seeded_session(data, ledger, seed), open_box(budget, **split)
    answer, refused, keys = 50.0, 0, list[tuple[str, Any]]()
    for number in range(40):
        spend, act = next_spend(rng, answer), rng.random()
        try:
            if act < 0.1 and keys:
                key, again = rng.choice(keys)  # a retry costs nothing
                before = ledger.spent()
                dp.mean(session, "x", spend=again, key=key)
                assert ledger.spent() == before
            elif act < 0.2:
                ledger.debit(
                    key=f"failure {number}",
                    request={"neighbors": dp.Replace().to_dict()},
                    price=Price(delta=Fraction(rng.choice([1, 5, 50]), 1000)),
                    secure=False,
                )
            elif act < 0.3:
                with session.reserve(spend):
                    assert within((ledger.spent() + ledger.reserved()).exact(), box)
            else:
                keys.append((f"key {number}", spend))
                answer = float(dp.mean(session, "x", spend=spend, key=f"key {number}").estimate)
        except BudgetExceeded:
            refused += 1
            keys = [pair for pair in keys if pair[0] != f"key {number}"]
        assert within((ledger.spent() + ledger.reserved()).exact(), box)
    exact = Price()
    for entry in ledger.entries():
        if entry.request and "mechanism" in entry.request:
            exact += price_of((mechanism_from_dict(entry.request["mechanism"]),), box=box)
        elif entry.kind == "debit":
            exact += entry.amounts.exact()
    assert within(exact, ledger.spent().exact())
    assert within(ledger.spent().exact(), box)
    assert refused
    assert keys
    assert ledger.verify().ok


# -- exact laws of enumerated strategies -----------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One mechanism: its price in the box, and its output law on either neighbour."""

    price: Price
    laws: tuple[Array, Array]


Strategy = Callable[[tuple[int, ...], float, Price, Price], list[Step]]


def response(epsilon: float, box: Price) -> Step:
    """Randomised response, the worst ε-DP mechanism."""
    mechanism = geometric_noise(L1(Fraction(1)), Fraction(epsilon))
    keep = 1 / (1 + np.exp(-float(pure_epsilon(mechanism))))
    return Step(
        price_of((mechanism,), box=box), (np.array([keep, 1 - keep]), np.array([1 - keep, keep]))
    )


def gaussian(mu_squared: float, box: Price) -> Step:
    """A Gaussian release, looked at in four cells of its privacy loss."""
    mechanism = gaussian_noise(L2(Fraction(1)), Fraction(mu_squared))
    mu = float(gaussian_mu_squared(mechanism)) ** 0.5
    cuts = np.array([-np.inf, -0.7, 0.0, 0.7, np.inf])
    return Step(
        price_of((mechanism,), box=box),
        (np.diff(ndtr(cuts - mu / 2)), np.diff(ndtr(cuts + mu / 2))),
    )


def failure(delta: float) -> Step:
    return Step(
        Price(delta=Fraction(delta)),
        (np.array([delta, 0, 1 - delta]), np.array([0, delta, 1 - delta])),
    )


def offers(share: float, room: Price, box: Price) -> list[Step]:
    """What takes about `share` of what is left in each coordinate;
    more than all of it where the share is above 1.
    """
    pure, squared, delta, rho = (share * float(getattr(room, name)) for name in COORDINATES)
    found = (
        [gaussian(squared, box), response((squared / 1.6) ** 0.5, box)] if squared > 1e-6 else []
    )
    found += [gaussian(2 * rho, box), response((2 * rho) ** 0.5, box)] if rho > 1e-6 else []
    found += [response(pure, box)] if pure > 1e-6 else []
    return found + ([failure(delta)] if delta > 1e-9 else [])


def erratic(seed: int) -> Strategy:
    """Any reaction to any history, often for more than is left."""

    def choose(history: tuple[int, ...], loss: float, room: Price, box: Price) -> list[Step]:
        rng = random.Random(f"{seed} {history}")
        found = [
            step
            for share in (rng.choice([1.5, 1.0, 0.999, 0.6]), rng.choice([0.5, 0.3, 0.1]))
            for step in offers(share, room, box)
        ]
        rng.shuffle(found)
        return found

    return choose


def chasing(history: tuple[int, ...], loss: float, room: Price, box: Price) -> list[Step]:
    """The user of the re-splitting example: noise where the loss is already high,
    an outright failure where it is not.
    """
    found = offers(0.999 if len(history) > 2 else 0.45, room, box)
    return found if loss > 0 else found[::-1]


def histories(kind: str, choose: Strategy, depth: int) -> tuple[Array, Array]:
    """The exact laws of everything a strategy gets out of a ledger, on the two neighbours."""
    budget, split = BOXES[kind]

    def visit(
        history: tuple[int, ...], prices: tuple[Price, ...], p: float, q: float
    ) -> Iterator[tuple[float, float]]:
        ledger = Ledger.open(budget, **split)
        for number, price in enumerate(prices):
            ledger.debit(key=str(number), request={}, price=price)
        assert within(ledger.spent().exact(), open_box(budget, **split))
        loss = float(np.log(p) - np.log(q)) if p and q else np.copysign(np.inf, p - q)
        options = (
            choose(history, loss, ledger.remaining().exact(), ledger.box)
            if len(history) < depth
            else []
        )
        for step in options:
            try:
                ledger.debit(key="next", request={}, price=step.price)
            except BudgetExceeded:
                continue
            for output, (one, two) in enumerate(zip(*step.laws, strict=True)):
                if p * one or q * two:
                    yield from visit(
                        (*history, output), (*prices, step.price), p * float(one), q * float(two)
                    )
            return
        yield p, q

    first, second = (np.array(side) for side in zip(*visit((), (), 1.0, 1.0), strict=True))
    assert first.sum() == pytest.approx(1, rel=1e-12)
    assert second.sum() == pytest.approx(1, rel=1e-12)
    return first, second


def gaussian_delta(mu: float, epsilon: float) -> float:
    return (
        float(ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon) * ndtr(-epsilon / mu - mu / 2))
        if mu
        else 0.0
    )


def renyi(first: Array, second: Array, order: float) -> float:
    return float(logsumexp(order * np.log(first) + (1 - order) * np.log(second)) / (order - 1))


def assert_promise_kept(kind: str, first: Array, second: Array) -> None:
    budget, split = BOXES[kind]
    box = open_box(budget, **split)
    pure, mu, delta0 = float(box.epsilon), float(box.mu_squared) ** 0.5, float(box.delta)
    for p, q in ((first, second), (second, first)):
        for epsilon in (0.0, 0.1, 0.3, 0.7, 1.0, 1.3, 2.0, 3.0):
            true = float(np.sum(np.maximum(0.0, p - np.exp(pure + epsilon) * q)))
            assert (
                true
                <= delta0
                + (zcdp_delta(box.rho, epsilon) if box.rho else gaussian_delta(mu, epsilon))
                + 1e-12
            )
        if isinstance(budget, dp.ApproxDP):
            assert np.sum(np.maximum(0.0, p - np.exp(budget.epsilon) * q)) <= budget.delta + 1e-12
        if box.rho and not box.delta:
            for order in (1.001, 1.2, 2.0, 5.0, 20.0, 100.0):
                assert renyi(p, q, order) <= float(box.rho) * order * (1 + 1e-9)


@pytest.mark.slow
@kinds
@pytest.mark.parametrize("seed", range(8))
def test_every_erratic_strategy_keeps_the_promise(kind: str, seed: int) -> None:
    assert_promise_kept(kind, *histories(kind, erratic(seed), 4))


@pytest.mark.slow
@kinds
def test_chasing_the_loss_gains_nothing(kind: str) -> None:
    assert_promise_kept(kind, *histories(kind, chasing, 5))


def test_a_pure_box_can_be_used_up() -> None:
    """The enumeration is not vacuous: the worst history loses all of ε."""
    first, second = histories(
        "pure",
        lambda history, loss, room, box: (
            offers(0.3 if loss > 0 else 0.7, room, box)
            if len(history) < 4
            else offers(1.0, room, box)
        ),
        5,
    )
    assert 1.4999 < float(np.max(np.log(first / second))) <= 1.5 + 1e-12


@pytest.mark.slow
def test_an_adaptive_tree_of_responses_reaches_rho() -> None:
    """The price of randomised response is its divergence at order 1,
    so an adaptive tree that spends ρ has D → ρ there.
    """

    def choose(history: tuple[int, ...], loss: float, room: Price, box: Price) -> list[Step]:
        return (
            [
                response(0.8 if loss > 0 else 0.4, box),
                response(0.4, box),
                response((2 * float(room.rho)) ** 0.5, box),
            ]
            if room.rho > Fraction(1, 10**6)
            else []
        )

    first, second = histories("zCDP", choose, 12)
    assert len(first) > 50
    for p, q in ((first, second), (second, first)):
        orders = np.array([1.0001, 1.5, 2, 4, 16, 64, 512])
        divergences = np.array([renyi(p, q, order) for order in orders])
        assert (divergences <= 0.6 * orders * (1 + 1e-9)).all()
        assert divergences[0] > 0.6 * 0.999
