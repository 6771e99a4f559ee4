"""Rényi guarantees: `ZCDP(rho)` and `RDP(orders, epsilons)`,
which add when mechanisms are composed (reference.md A8, C7, D).

    ZCDP(rho)              D_α(M(x)‖M(x')) ≤ αρ   for every α > 1
    RDP(orders, epsilons)  D_α(M(x)‖M(x')) ≤ ε(α) at the orders listed

for neighbours x, x' in both orders. Every result is rounded against us.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, ClassVar

from discreet import plain
from discreet.accounting import shares
from discreet.accounting.parameters import (
    RHO_CEILING,
    RHO_FLOOR,
    not_negative,
    order_above_one,
    probability,
    whole_number,
    within,
)
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.renyi import conversions as conversions
from discreet.accounting.renyi.curves import USUAL_ORDERS
from discreet.enclosure import enclose, lower_float
from discreet.errors import InvalidParameter, NoTheorem
from discreet.exact import decimal_text, float_down, float_up, rational

LARGEST_NUMBER_OF_ORDERS = 4096


@plain.kept()
@dataclass(frozen=True, slots=True)
class ZCDP(PrivacyProfile):
    """ρ-zero-concentrated differential privacy.

    Formula.
            D_α(data ‖ neighbour) ≤ ρ·α   for every order α > 1

            D_α  Rényi divergence of the answer's two laws

    Price.    Spends add: ρ₁ + ρ₂. Gaussian noise of μ has ρ = μ²/2.
    Example.
            print(dp.ZCDP(0.05).epsilon_at(1e-6))
    See also. `dp.RDP`, `dp.GDP`.
    """

    rho: float
    kind: ClassVar[str] = "zcdp"

    def __post_init__(self) -> None:
        number = within(self.rho, "rho", RHO_FLOOR, RHO_CEILING)
        object.__setattr__(self, "rho", self.rho if type(self.rho) is float else float_up(number))

    @property
    def exact(self) -> Fraction:
        return rational(self.rho, "rho")

    def epsilon_at(self, delta: float) -> float:
        """The least ε known to follow at δ, rounded up (reference.md D2, the tight form)."""
        return conversions.zcdp_epsilon(self.exact, delta)

    def delta_at(self, epsilon: float) -> float:
        """The least δ known to follow at ε, rounded up."""
        return conversions.zcdp_delta(self.exact, epsilon)

    def tradeoff(self, alpha: float) -> float:
        """A lower bound of the probability of missing a person at false-alarm rate α."""
        rate = probability(alpha, "alpha")
        return _tradeoff(self.delta_at, self.epsilon_at(1e-18), rate)

    def zcdp_rho(self) -> Fraction:
        return self.exact

    def covers(self, other: PrivacyProfile) -> bool:
        """Whether everything that satisfies `other` is known to satisfy this too."""
        rho = rho_of(other)
        return rho is not None and rho <= self.exact

    def group(self, size: int) -> ZCDP:
        """k²ρ for groups of k (reference.md A3; Bun–Steinke 2016, Proposition 1.9)."""
        return ZCDP(float_up(self.exact * whole_number(size, "group size") ** 2))

    def _share(self, share: Fraction) -> ZCDP:
        return ZCDP(shares.greatest_float(shares.units_of(self.exact, share)))

    def repeat(self, times: int) -> ZCDP:
        """The guarantee of `times` adaptive releases of this kind: ρ adds (reference.md C7)."""
        return ZCDP(float_up(self.exact * whole_number(times, "times")))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "rho": self.rho}

    def __str__(self) -> str:
        return f"ρ = {decimal_text(self.rho)} (zero-concentrated DP)"


@plain.kept()
@dataclass(frozen=True, slots=True)
class RDP(PrivacyProfile):
    """Rényi differential privacy at finitely many orders;
    `orders` increase strictly and `epsilons` bound D_α at each.

    Price.    Composition adds at every order.
    Example.
            curve = dp.RDP(orders=(2.0, 8.0, 32.0), epsilons=(0.1, 0.4, 1.6))
            print(curve.epsilon_at(1e-6))
    See also. `dp.ZCDP`, `dp.PLD`, `dp.compose`.
    """

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]
    kind: ClassVar[str] = "rdp"

    def __post_init__(self) -> None:
        if (
            not all(isinstance(x, (tuple, list)) for x in (self.orders, self.epsilons))
            or not 1 <= len(self.orders) == len(self.epsilons) <= LARGEST_NUMBER_OF_ORDERS
        ):
            raise InvalidParameter(
                "RDP",
                "orders and epsilons are not two sequences of one length from 1 to "
                f"{LARGEST_NUMBER_OF_ORDERS}",
                "each order needs its bound",
                "pass for example RDP((2, 4, 8), (0.1, 0.2, 0.4))",
            )
        orders = [order_above_one(order) for order in self.orders]
        if any(b <= a for a, b in pairwise(orders)):
            raise InvalidParameter(
                "RDP orders",
                "they do not increase",
                "each order has one bound",
                "sort the orders and drop repeats",
            )
        object.__setattr__(self, "orders", tuple(_order_name(order) for order in self.orders))
        object.__setattr__(self, "epsilons", tuple(_epsilon_name(value) for value in self.epsilons))

    @property
    def exact(self) -> list[tuple[Fraction, Fraction]]:
        return [
            (rational(order, "order"), rational(value, "epsilons"))
            for order, value in zip(self.orders, self.epsilons, strict=True)
        ]

    def at(self, order: float | Fraction) -> float:
        """A bound of D_α at any order, rounded up; infinity above the last one.

        Theorem.  D_α increases with α, and (α−1)D_α is convex in α and 0 at α = 1 (a cumulant
                  generating function).
        """
        bound = self.exact_at(order_above_one(order))
        return math.inf if bound is None else float_up(bound)

    def exact_at(self, order: Fraction) -> Fraction | None:
        """`at`, as a Fraction; None above the last order."""
        orders, bounds = _increasing(self)
        above = bisect_left(orders, order)
        if above == len(orders):
            return None
        if above == 0 or orders[above] == order:
            return bounds[above]
        low, high = orders[above - 1], orders[above]
        share = (order - low) / (high - low)
        chord = (
            (1 - share) * (low - 1) * bounds[above - 1] + share * (high - 1) * bounds[above]
        ) / (order - 1)
        return min(chord, bounds[above])

    def renyi_bound(self, order: Fraction) -> Fraction | None:
        return self.exact_at(order)

    def epsilon_at(self, delta: float) -> float:
        """The least ε that follows at δ from one of the orders,
        rounded up (reference.md D4, the tight form).
        """
        d = float(rational(delta, "delta"))
        log_delta = math.log(d) if 0 < d < 1 else 0.0

        def epsilon(point: tuple[float, float]) -> float:
            order, value = point
            return value + math.log1p(-1 / order) - (log_delta + math.log(order)) / (order - 1)

        order, value = min(zip(self.orders, self.epsilons, strict=True), key=epsilon)
        return conversions.rdp_epsilon(order, value, delta)

    def delta_at(self, epsilon: float) -> float:
        """The least δ that follows at ε from one of the orders, rounded up."""
        asked = float(not_negative(epsilon, "epsilon"))
        order, value = min(
            zip(self.orders, self.epsilons, strict=True),
            key=lambda point: conversions.log_delta(point[0], point[1], asked),
        )
        return conversions.rdp_delta(order, value, epsilon)

    def tradeoff(self, alpha: float) -> float:
        """A lower bound of the probability of missing a person at false-alarm rate α."""
        rate = probability(alpha, "alpha")
        return _tradeoff(self.delta_at, self.epsilon_at(1e-18), rate)

    def covers(self, other: PrivacyProfile) -> bool:
        """Whether everything that satisfies `other` is known to satisfy this too,
        at every order listed here.
        """
        return all(
            bound is not None and bound <= value
            for bound, value in ((renyi_bound(other, order), value) for order, value in self.exact)
        )

    def group(self, size: int) -> RDP:
        """Groups of k people, at about 1/k of the orders.

        Theorem.  D_α(P‖Q) ≤ (α−½)/(α−1)·D_{2α}(P‖R) + D_{2α−1}(R‖Q) for every R and α > 1.
        Proof.    ∫P^α Q^{1−α} = ∫(P^α R^{½−α})(R^{α−½} Q^{1−α}); Cauchy–Schwarz gives half of
                  (2α−1)D_{2α}(P‖R) plus half of (2α−2)D_{2α−1}(R‖Q) for the logarithm; divide by
                  α−1. A group of k is two steps, of ⌊k/2⌋ and ⌈k/2⌉ people.
        Checked.  tests/accounting/test_renyi.py::test_rdp_groups_hold_for_gaussians
        """
        k = whole_number(size, "group size")
        if k == 1:
            return self
        first, second = self.group(k // 2), self.group(k - k // 2)
        points = []
        for double, value in first.exact:
            order = double / 2
            rest = second.exact_at(2 * order - 1) if order > 1 else None
            if rest is not None:
                points.append((order, (order - Fraction(1, 2)) / (order - 1) * value + rest))
        if not points:
            raise NoTheorem(
                f"RDP for groups of {k}",
                "no order is left: each doubling of the group halves the orders, and they must "
                "stay above 1",
                "Rényi divergences of one order say nothing about groups",
                "tabulate larger orders, or use ZCDP, GDP or PureDP",
            )
        return rdp_from(points)

    def repeat(self, times: int) -> RDP:
        """The guarantee of `times` adaptive releases of this kind:
        the bounds add at every order (reference.md C7).
        """
        return rdp_from(
            [(order, value * whole_number(times, "times")) for order, value in self.exact]
        )

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "orders": list(self.orders), "epsilons": list(self.epsilons)}

    def __str__(self) -> str:
        middle = len(self.orders) // 2
        return (
            f"Rényi DP at {len(self.orders)} orders from {decimal_text(self.orders[0])} to "
            f"{decimal_text(self.orders[-1])} (ε = {decimal_text(self.epsilons[middle])} at order "
            f"{decimal_text(self.orders[middle])})"
        )


def compose_renyi(*parts: ZCDP | RDP) -> ZCDP | RDP:
    """The guarantee of releasing everything together, adaptively:
    ρ adds, and so do bounds of one order (reference.md C7).

    Parts tabulated at different orders are read at the union of them by `RDP.at`.
    """
    if not parts or not all(type(part) in (ZCDP, RDP) for part in parts):
        raise InvalidParameter(
            "compose_renyi",
            "it needs at least one ZCDP or RDP guarantee and nothing else",
            "an empty release has no price",
            "convert other guarantees with rdp_of or ZCDP(...) first",
        )
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, ZCDP) for part in parts):
        return ZCDP(
            float_up(sum((part.exact for part in parts if isinstance(part, ZCDP)), Fraction(0)))
        )
    curves = [part for part in parts if isinstance(part, RDP)]
    last = min(part.exact[-1][0] for part in curves)
    orders = sorted({order for part in curves for order, _ in part.exact if order <= last})
    return rdp_from(
        [
            (order, sum((_known(renyi_bound(part, order)) for part in parts), Fraction(0)))
            for order in orders
        ]
    )


def rho_of(guarantee: PrivacyProfile) -> Fraction | None:
    """A ρ such that `guarantee` implies ρ-zCDP: ε tanh(ε/2), μ²/2 or ρ itself;
    None for (ε, δ) and for RDP, where none follows.
    """
    return guarantee.zcdp_rho() if isinstance(guarantee, PrivacyProfile) else None


def zcdp_of(guarantee: PrivacyProfile) -> ZCDP:
    """The zCDP guarantee that follows from a pure, Gaussian or zCDP one (reference.md D5);
    NoTheorem otherwise.
    """
    rho = rho_of(guarantee)
    if rho is None:
        raise NoTheorem(
            f"zCDP from {type(guarantee).__name__}",
            "an (ε, δ) mechanism may fail outright, and finitely many Rényi orders say nothing of "
            "the rest",
            "ρ-zCDP bounds the divergence at every order",
            "use ApproxDP by its own composition, or RDP at its orders",
        )
    return ZCDP(float_up(max(rho, RHO_FLOOR)))


def renyi_bound(guarantee: PrivacyProfile, order: Fraction) -> Fraction | None:
    """A bound of D_α that `guarantee` implies at one order;
    None where none is known ((ε, δ), or above an RDP's last order).
    """
    return guarantee.renyi_bound(order) if isinstance(guarantee, PrivacyProfile) else None


def rdp_of(guarantee: PrivacyProfile, orders: Sequence[Fraction | float] = USUAL_ORDERS) -> RDP:
    """The Rényi curve that follows from a pure, Gaussian, zCDP or RDP guarantee;
    NoTheorem for (ε, δ).
    """
    points = [(order, renyi_bound(guarantee, order)) for order in map(order_above_one, orders)]
    known = [(order, bound) for order, bound in points if bound is not None]
    if not known:
        raise NoTheorem(
            f"RDP from {type(guarantee).__name__}",
            "no bound is known at these orders",
            "an (ε, δ) mechanism may fail outright with probability δ, and then every Rényi "
            "divergence is infinite",
            "start from the mechanism, or compose (ε, δ) guarantees by composition.optimal",
        )
    return rdp_from(known)


def rdp_from(points: Sequence[tuple[Fraction, Fraction]]) -> RDP:
    """An RDP guarantee from exact (order, bound) pairs:
    bounds rounded up, orders that are no float moved down to one.

    Lowering an order keeps the bound true, D_α being increasing in α.
    """
    best: dict[float, Fraction] = {}
    for order, bound in points:
        name = _order_name(order)
        if name > 1:
            best[name] = min(bound, best.get(name, bound))
    return RDP(tuple(sorted(best)), tuple(float_up(best[name]) for name in sorted(best)))


@plain.remembered(256, copied=False)
def _increasing(curve: RDP) -> tuple[list[Fraction], list[Fraction]]:
    """Orders and bounds, each bound lowered to the least of the later ones,
    which hold there too.
    """
    points = curve.exact
    bounds = list(accumulate((bound for _, bound in reversed(points)), min))
    return [order for order, _ in points], bounds[::-1]


def _tradeoff(delta_at: Callable[[float], float], widest: float, alpha: Fraction) -> float:
    """sup over ε in [0, widest] of max(0, 1−δ(ε)−e^ε α, e^−ε(1−δ(ε)−α)) over a search,
    rounded down (reference.md A5).

    Theorem.  Every ε gives a true lower bound of the trade-off curve; both lines hold because both
              orders of the neighbours are covered.
    """
    if alpha in (0, 1):
        # a finite divergence leaves no event that is possible for one neighbour alone
        return float(1 - alpha)
    best = 0.0
    for side in (0, 1):
        low, high = 0.0, max(widest, 1e-12)
        for _ in range(4):  # four zooms of a grid of 17 points
            grid = [low + (high - low) * i / 16 for i in range(17)]
            values = [_lines(epsilon, delta_at(epsilon), alpha)[side] for epsilon in grid]
            top = max(range(17), key=values.__getitem__)
            best = max(best, values[top])
            low, high = grid[max(top - 1, 0)], grid[min(top + 1, 16)]
    return best


def _lines(epsilon: float, delta: float, alpha: Fraction) -> tuple[float, float]:
    # the readings at which δ(ε) was certified
    e, d = rational(epsilon, "epsilon"), rational(delta, "delta")
    if epsilon > 1000:
        return 0.0, 0.0
    steep = lower_float(enclose(lambda ball: 1 - ball(d) - ball(e).exp() * ball(alpha)))
    flat = lower_float(enclose(lambda ball: (-ball(e)).exp() * ball(1 - d - alpha)))
    return max(0.0, steep), max(0.0, flat)


def _known(bound: Fraction | None) -> Fraction:
    assert bound is not None  # orders were chosen at or below every part's last one
    return bound


def _order_name(order: object) -> float:
    """The float that reads as this order, else the next one below it:
    D_α increases, so the bound stays true.
    """
    if type(order) is float:
        return order
    number = rational(order, "order")
    return float(number) if rational(float(number), "order") == number else float_down(number)


def _epsilon_name(value: object) -> float:
    number = not_negative(value, "epsilons")
    return value if type(value) is float else float_up(number)
