"""Composition of guarantees, from simplest to exact,
and the change of neighbour relation (reference.md A2, C1–C3).

    compose    whatever is exact for the kinds of guarantee it is given
    basic      ε and δ add
    advanced   ε grows like the square root of the number of releases, for a slack δ′
    optimal    the exact curve δ(ε) of releases of which nothing but (ε_i, δ_i) is known:
               no accountant can say less

All of them hold when each release is chosen after seeing the ones before, from parameters fixed in
advance; `adaptive_filter_epsilon` holds when the parameters too are chosen on the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

from discreet import plain
from discreet.accounting.guarantees import GDP, ApproxDP, Guarantee, PureDP, mu_squared
from discreet.accounting.parameters import (
    Number,
    failure_probability,
    not_negative,
    positive,
    probability,
    whole_number,
)
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.randomized_losses import Losses, losses_of
from discreet.accounting.renyi.rdp import RDP, ZCDP, compose_renyi, rdp_of, zcdp_of
from discreet.enclosure import enclose, lower_float, upper_float
from discreet.errors import InvalidParameter, NoTheorem
from discreet.exact import decimal_text, float_up, rational, sqrt_up

LARGEST_TIMES = 10**10


@plain.door
def compose(*guarantees: Any) -> Any:
    """The guarantee of releasing everything together, adaptively (reference.md C1, C4), rounded up.

    Pure guarantees add ε; Gaussian ones add μ²; pure and Gaussian ones add μ² with the pure one's
    μ; once zCDP is in, all add ρ (ε·tanh(ε/2), μ²/2), and once RDP is in, all add at its orders
    (C7); once an (ε, δ) guarantee is in, only pure and (ε, δ) ones can join it here (ε and δ add).
    A loss distribution turns pure, (ε, δ) and Gaussian guarantees into its own kind;
    a trade-off function takes every kind.

    Example.
            print(dp.compose(dp.GDP(0.3), dp.GDP(0.4)))
            print(dp.compose(dp.PureDP(0.3), dp.PureDP(0.4)))
    See also. `dp.Ledger`, `dp.PLD`; docs/accounting.md.
    """
    if any(getattr(one, "kind", None) in ("pld", "tradeoff") for one in guarantees):
        return _compose_curves(guarantees)
    if not guarantees or not all(isinstance(one, Guarantee) for one in guarantees):
        raise InvalidParameter(
            "compose",
            "it needs at least one guarantee",
            "an empty release has no price",
            "pass the guarantees of what was released",
        )
    if len(guarantees) == 1:
        return guarantees[0]
    if all(isinstance(one, (PureDP, ApproxDP)) for one in guarantees):
        return basic(*guarantees)
    if any(isinstance(one, ApproxDP) for one in guarantees):
        raise NoTheorem(
            "composing GDP, zCDP or RDP with an (ε, δ) guarantee",
            "no single (ε, δ), μ or ρ follows",
            "each of them is a whole curve of (ε, δ) pairs, and an (ε, δ) mechanism may fail "
            "outright",
            "choose a delta and compose ApproxDP(part.epsilon_at(delta), delta)",
        )
    if any(isinstance(one, (ZCDP, RDP)) for one in guarantees):
        return _compose_renyi(guarantees)
    return GDP(float_up(sqrt_up(sum(map(mu_squared, guarantees), Fraction(0)))))


def _compose_curves(guarantees: tuple[Any, ...]) -> Any:
    """At least one is a PLD or a TradeOff, which are loaded where they are used."""
    from discreet.accounting.loss_distributions.curve import PLD
    from discreet.accounting.tradeoff.curve import TradeOff

    trade_off = next((one for one in guarantees if isinstance(one, TradeOff)), None)
    if trade_off is not None:
        rest = list(guarantees)
        rest.remove(trade_off)
        return trade_off.compose(*rest) if rest else trade_off
    plds = [one if isinstance(one, PLD) else _dominating_pld(one) for one in guarantees]
    return plds[0].compose(*plds[1:])


def _dominating_pld(guarantee: Guarantee) -> Any:
    from discreet.accounting.loss_distributions.build import approx_pld, gaussian_pld

    if isinstance(guarantee, (ZCDP, RDP)):
        raise NoTheorem(
            f"composing a loss distribution with {guarantee}",
            "a bound on Rényi divergences has no dominating pair here",
            "it does not fix a loss distribution",
            "compose the mechanisms themselves, or read both at one delta and add",
        )
    if isinstance(guarantee, GDP):
        return gaussian_pld(guarantee.mu)
    return approx_pld(guarantee.epsilon, getattr(guarantee, "delta", 0.0))


def _compose_renyi(guarantees: tuple[Guarantee, ...]) -> Guarantee:
    """None has a δ, at least one is zCDP or RDP: by ρ, or at the orders of the RDP ones."""
    orders = sorted({order for one in guarantees if isinstance(one, RDP) for order in one.orders})
    if not orders:
        return compose_renyi(*map(zcdp_of, guarantees))

    def renyi(one: Guarantee) -> ZCDP | RDP:
        if isinstance(one, RDP):
            return one
        return rdp_of(one, orders) if isinstance(one, PureDP) else zcdp_of(one)

    return compose_renyi(*map(renyi, guarantees))


def basic(*parts: PureDP | ApproxDP, times: int = 1) -> PureDP | ApproxDP:
    """The guarantee of releasing `times` rounds of all parts:
    (Σε_i, Σδ_i), rounded up (reference.md C1).
    """
    count = whole_number(times, "times")
    epsilon, delta = Fraction(0), Fraction(0)
    for part in _checked_parts(parts):
        epsilon, delta = epsilon + count * _epsilon(part), delta + count * _delta(part)
    return ApproxDP(float_up(epsilon), float_up(delta)) if delta else PureDP(float_up(epsilon))


def advanced(guarantee: PureDP | ApproxDP, *, times: int, slack: Number) -> ApproxDP:
    """k releases at (ε, δ) with slack δ′: (min{kε, kε·tanh(ε/2) + ε√(2k ln(1/δ′))}, kδ + δ′),
    rounded up (reference.md C2).

    Theorem.  Kairouz–Oh–Viswanath 2015, Theorem 3.4 (its closed form).
    Proof.    The worst releases are randomised responses, whose losses are ±ε with mean
              ε·tanh(ε/2): Hoeffding's inequality bounds P(Σ loss > ε′) by δ′ (and what fails with
              probability δ adds kδ).
    Checked.  tests/accounting/test_composition.py::test_advanced_is_above_the_exact_curve
    """
    (part,), k, d = (
        _checked_parts((guarantee,)),
        whole_number(times, "times"),
        failure_probability(slack, "slack"),
    )
    e = _epsilon(part)
    root = upper_float(
        enclose(
            lambda ball: (
                k * ball(e) * (ball(e) / 2).tanh() + ball(e) * (-2 * k * ball(d).log()).sqrt()
            )
        )
    )
    return ApproxDP(min(float_up(k * e), root), float_up(k * _delta(part) + d))


def advanced_dwork_rothblum_vadhan(
    guarantee: PureDP | ApproxDP, *, times: int, slack: Number
) -> ApproxDP:
    """The older form (√(2k ln(1/δ′))·ε + kε(e^ε−1), kδ + δ′), rounded up; never better than
    `advanced` (reference.md C2, C3).
    """
    (part,), k, d = (
        _checked_parts((guarantee,)),
        whole_number(times, "times"),
        failure_probability(slack, "slack"),
    )
    e = _epsilon(part)
    root = upper_float(
        enclose(
            lambda ball: ball(e) * (-2 * k * ball(d).log()).sqrt() + k * ball(e) * ball(e).expm1()
        )
    )
    return ApproxDP(root, float_up(k * _delta(part) + d))


@dataclass(frozen=True, slots=True)
class OptimalComposition(PrivacyProfile):
    """The exact δ(ε) curve of composed (ε_i, δ_i)-DP releases; made by `optimal`.

    Theorem.  With S = Π(1−δ_i) and ℓ the summed losses of randomised responses with odds e^{ε_i},
              δ(ε) = 1 − S + S·(P(ℓ>ε) − e^ε P′(ℓ>ε)), attained (Kairouz–Oh–Viswanath 2015;
              Murtagh–Vadhan 2016).
    Proof.    f_(ε,δ) = f_(0,δ) ⊗ f_(ε,0), and f_(ε,0) is the trade-off curve of randomised
              response; trade-off curves compose by ⊗ (Dong–Roth–Su 2022, Theorem 3.2);
              Neyman–Pearson.
    Checked.  tests/accounting/test_composition.py::test_optimal_is_the_enumeration
    """

    epsilons: tuple[tuple[Fraction, int], ...]
    deltas: tuple[tuple[Fraction, int], ...]

    @property
    def losses(self) -> Losses:
        return losses_of(self.epsilons)

    def _survival(self, ball: Any) -> Any:
        product = ball(1)
        for delta, times in self.deltas:
            product *= ball(1 - delta) ** times
        return product

    def delta_at(self, epsilon: float) -> float:
        """The least δ that holds at ε, rounded up."""
        return min(1.0, upper_float(self._delta_bounds(not_negative(epsilon, "epsilon"))))

    def _delta_bounds(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        losses = self.losses
        index = losses.first_above(epsilon)
        if index is None and not self.deltas:
            return Fraction(0), Fraction(0)

        def formula(ball: Any) -> Any:
            survival = self._survival(ball)
            if index is None:
                return 1 - survival
            high, low = losses.tails(ball, index)
            return 1 - survival + survival * (high - ball(epsilon).exp() * low)

        return enclose(formula)

    def epsilon_at(self, delta: float) -> float:
        """The least ε that holds at δ, rounded up;
        infinity below the δ that composition alone costs.

        Between two neighbouring values of the loss the curve is A − e^ε B, which is solved;
        the values themselves are bisected.
        """
        target = probability(delta, "delta")
        if target == 1:
            raise InvalidParameter(
                "delta",
                "it is 1",
                "at 1 nothing is private",
                "use a delta far below one over the number of people",
            )
        losses = self.losses
        if self._delta_bounds(Fraction(0))[1] <= target:
            return 0.0
        low, high = -1, losses.count - 1
        if self._delta_bounds(losses.value(high))[1] > target:
            return math.inf
        while high - low > 1:
            middle = (low + high) // 2
            if self._delta_bounds(losses.value(middle))[1] <= target:
                high = middle
            else:
                low = middle
        ceiling = float_up(losses.value(high))

        def formula(ball: Any) -> Any:
            above, below = losses.tails(ball, high)
            rest = (ball(target) - 1) / self._survival(ball) + 1
            return ((above - rest) / below).log()

        return min(ceiling, max(0.0, upper_float(enclose(formula))))

    def tradeoff(self, alpha: float) -> float:
        """The least probability of missing a person at false-alarm rate α, rounded down:
        the Neyman–Pearson curve itself.

        The curve is the upper envelope of the lines of slope −e^s, s a value of the loss,
        so any s gives a true bound.
        """
        rate = probability(alpha, "alpha")
        if rate == 1:
            return 0.0
        lines = [
            self._line(s, rate)
            for s in self.losses.near(min(1.0, float(rate) / max(1e-300, self._survival_float())))
        ]
        return max(0.0, *lines)

    def _survival_float(self) -> float:
        return math.exp(sum(times * math.log1p(-float(delta)) for delta, times in self.deltas))

    def _line(self, s: Fraction, alpha: Fraction) -> float:
        delta = Fraction(min(1.0, upper_float(self._delta_bounds(abs(s)))))
        if s >= 0:
            return (
                lower_float(enclose(lambda ball: ball(1 - delta) - ball(s).exp() * ball(alpha)))
                if s < 1000 or alpha == 0
                else 0.0
            )
        return lower_float(enclose(lambda ball: ball(s).exp() * ball(1 - delta - alpha)))

    def __str__(self) -> str:
        parts = ", ".join(
            f"{times} × ε = {decimal_text(epsilon)}" for epsilon, times in self.epsilons
        )
        return f"optimal composition of {parts}"


def optimal(*parts: PureDP | ApproxDP, times: int = 1) -> OptimalComposition:
    """The exact composition of `times` rounds of all parts (reference.md C2, C3).

    Equal ε may be repeated up to 10¹⁰ times. Different ε are convolved, which is possible while the
    summed losses take at most `randomized_losses.MOST_VALUES` values; the general problem is
    #P-hard (Murtagh–Vadhan 2016).
    """
    count = whole_number(times, "times", most=LARGEST_TIMES)
    epsilons: dict[Fraction, int] = {}
    deltas: dict[Fraction, int] = {}
    for part in _checked_parts(parts):
        epsilons[_epsilon(part)] = epsilons.get(_epsilon(part), 0) + count
        if _delta(part):
            deltas[_delta(part)] = deltas.get(_delta(part), 0) + count
    curve = OptimalComposition(tuple(sorted(epsilons.items())), tuple(sorted(deltas.items())))
    losses_of(curve.epsilons)  # refuses here, not at the first question, what cannot be enumerated
    return curve


def adaptive_filter_epsilon(epsilons: Iterable[Number], delta: Number) -> float:
    """ε of pure releases whose ε_i, and their number, are themselves chosen on the way:
    √(2 ln(1/δ)·Σε_i²) + ½Σε_i², rounded up.

    Theorem.  If a fully adaptive analyst is stopped before this exceeds ε, the whole is (ε, δ)-DP
              (Whitehouse et al. 2023, Theorem 1 [cited]).
    Proof.    (Idea.) ε_i-DP is ½ε_i²-zCDP (`pure_rho` is at most that); a stopped sum of at most
              ρ is ρ-zCDP (Feldman–Zrnic 2021); reference.md D2.
    Checked.  tests/accounting/test_composition.py::test_filter_reference_value
    """
    total, d = (
        sum((not_negative(epsilon, "epsilon") ** 2 for epsilon in epsilons), Fraction(0)),
        failure_probability(delta),
    )
    if total == 0:
        return 0.0
    return upper_float(
        enclose(lambda ball: (-2 * ball(d).log() * ball(total)).sqrt() + ball(total) / 2)
    )


_Kind = TypeVar("_Kind", PureDP, ApproxDP, GDP, ZCDP, RDP)


def to_replace(guarantee: _Kind) -> _Kind:
    """From AddRemove to Replace: pure 2ε, (2ε, (1+e^ε)δ), GDP 2μ, zCDP 4ρ,
    RDP by its triangle inequality (reference.md A2).

    Theorem.  Replacing a row is removing one and adding one: a group of two.
    Checked.  tests/accounting/test_composition.py::test_add_remove_to_replace
    """
    if type(guarantee) not in (PureDP, ApproxDP, GDP, ZCDP, RDP):
        raise NoTheorem(
            "to_replace",
            f"a {type(guarantee).__name__} is not a guarantee that is known for groups of two",
            "replacing a row is removing one and adding one",
            "pass PureDP, ApproxDP, GDP, ZCDP or RDP",
        )
    return guarantee.group(2)


def to_add_remove(guarantee: object) -> NoReturn:
    """From Replace to AddRemove: refused, whatever the guarantee (reference.md A2)."""
    raise NoTheorem(
        f"a guarantee under AddRemove from {type(guarantee).__name__} under Replace",
        "none follows: the mechanism that prints the number of rows has ε = 0 under Replace, "
        "where that number never changes, and no privacy at all under AddRemove",
        "a guarantee under Replace says nothing about data sets of another size",
        "compute the sensitivity under AddRemove and calibrate the noise to it",
    )


def _checked_parts(parts: tuple[PureDP | ApproxDP, ...]) -> tuple[PureDP | ApproxDP, ...]:
    if not parts or not all(type(part) in (PureDP, ApproxDP) for part in parts):
        raise InvalidParameter(
            "composition",
            "it needs at least one PureDP or ApproxDP guarantee and nothing else",
            "these theorems are about (ε, δ)",
            "compose GDP, ZCDP and RDP parts by their own rules, which are better",
        )
    return parts


def _epsilon(part: PureDP | ApproxDP) -> Fraction:
    return positive(part.epsilon, "epsilon")


def _delta(part: PureDP | ApproxDP) -> Fraction:
    return rational(part.delta, "delta") if isinstance(part, ApproxDP) else Fraction(0)
