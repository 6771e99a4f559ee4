"""What a mechanism costs in a ledger's box (ε_p, μ², δ₀) or (ρ, δ₀),
and the box that a budget opens.

A box is fixed when it is opened. Each coordinate is additive; whatever is charged within it,
adaptively, the total is (ε_p + ε′, δ₀ + δ_μ(ε′))-DP for every ε′ ≥ 0, or ρ-zCDP but for δ₀
(docs/theory/ledger.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from discreet import plain
from discreet.accounting.gaussian import gdp_epsilon, mu_for_approx, mu_for_pure
from discreet.accounting.guarantees import GDP, ApproxDP, Guarantee, PureDP, spend_mu_squared
from discreet.accounting.renyi.conversions import bounded_range_rho, pure_rho
from discreet.accounting.renyi.rdp import ZCDP
from discreet.errors import prices
from discreet.exact import decimal_text, float_up, rational, root_up, sqrt_up
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.trusted.losses.loss import Loss
from discreet.trusted.losses.losses import loss_of


@plain.kept()
@dataclass(frozen=True, slots=True)
class Price:
    """An exact amount in the coordinates of a box;
    only a zCDP box has ρ, and it has neither ε nor μ².
    """

    epsilon: Fraction = Fraction(0)
    mu_squared: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def __add__(self, other: Price) -> Price:
        return Price(
            self.epsilon + other.epsilon,
            self.mu_squared + other.mu_squared,
            self.delta + other.delta,
            self.rho + other.rho,
        )

    def __str__(self) -> str:
        named = (("ε", self.epsilon), ("μ²", self.mu_squared), ("δ₀", self.delta), ("ρ", self.rho))
        return (
            ", ".join(f"{name} = {decimal_text(amount)}" for name, amount in named if amount)
            or "nothing"
        )


def guarantee_of(mechanism: Mechanism) -> Guarantee:
    """The guarantee of one mechanism, from its loss (trusted/losses/losses.py).

    Theorem.  Losses compose: Gaussian ones to μ = √Σμ², pure ones and those of bounded range to
              ε = Σε, a mixture of both to the μ of all of them; an event of probability δ outside
              which one holds adds δ to the (ε, δ) of the rest. A Gaussian loss with δ is said as
              (ε, 2δ) with δ_μ(ε) = δ. Rounding to a grid that the statistic lies on keeps all of
              them.
    Checked.  tests/claims/test_mechanism_guarantees.py
    """
    loss = loss_of(mechanism)
    if loss.rho:
        if loss.delta:
            raise prices.known_by_zcdp_but_for_delta()
        return ZCDP(float_up(_rho(loss)))
    if loss.epsilon is not None:
        epsilon = float_up(loss.epsilon)
        return ApproxDP(epsilon, float_up(loss.delta)) if loss.delta else PureDP(epsilon)
    if not loss.delta:
        return GDP(root_up(_mu_squared(loss)))
    epsilon = gdp_epsilon(sqrt_up(_mu_squared(loss)), loss.delta)
    return ApproxDP(epsilon, float_up(2 * loss.delta))


def mu_for_bounded_range(epsilon: Fraction) -> float:
    """The least μ such that every mechanism of bounded range ε is μ-GDP, rounded up:
    the μ of a pure ε/2.

    Theorem.  If all log-ratios of M(D) to M(D′) lie in an interval of length ε, then M is μ-GDP
              with μ = −2Φ⁻¹(1/(1+e^(ε/2))).
    Proof.    The most distinguishable such pair has two outcomes, of probabilities p and q under
              D and D′ with logit p − logit q = ε (Dong et al. 2020, Thm 1). Its trade-off curve is
              the chord through (q, 1−p) of a convex curve, so G_μ lies below it iff
              Φ⁻¹(p) − Φ⁻¹(q) ≤ μ (as for mu_for_pure). With x = Φ⁻¹(p),
              d logit/dx = φ(x)/(Φ(x)Φ(−x)), which rises with |x|; so a stretch of ε in logits is
              longest in x about 0: p = 1−q = 1/(1+e^(−ε/2)).
    Checked.
    tests/claims/test_mechanism_guarantees.py::test_bounded_range_curves_lie_above_their_gaussian
    """
    return mu_for_pure(epsilon / 2)


def price_of(mechanisms: Iterable[Mechanism], *, box: Price) -> Price:
    """The exact price of releasing all of them, in a given box.

    A pure mechanism, or one of bounded range, is charged to ε_p where the box opened one, else at
    its μ (`mu_for_pure`, `mu_for_bounded_range`), rounded up. In a zCDP box Gaussian noise is
    charged ρ = μ²/2 exactly, a pure mechanism ρ = ε·tanh(ε/2), rounded up, and one of bounded range
    ε²/8. What is known by its zCDP alone is charged in a zCDP box alone. δ is charged to δ₀
    everywhere.
    """
    return sum((_price(loss_of(mechanism), box) for mechanism in mechanisms), Price())


def _price(loss: Loss, box: Price) -> Price:
    if box.rho > 0:
        return Price(rho=_rho(loss), delta=loss.delta)
    if loss.rho:
        raise prices.known_by_zcdp_alone()
    if box.epsilon > 0:
        return Price(
            sum((*loss.pure, *loss.bounded_range), Fraction(0)), loss.mu_squared, loss.delta
        )
    return Price(mu_squared=_mu_squared(loss), delta=loss.delta)


def spend_box(spend: Guarantee, delta: Fraction = Fraction(0)) -> Price:
    """What a spend allows, as a box: ε for a pure spend, ρ for zCDP, else μ²; and δ₀ = `delta`,
    which an (ε, δ) spend sets aside from its δ.
    """
    if isinstance(spend, PureDP):
        return Price(epsilon=rational(spend.epsilon, "epsilon"), delta=delta)
    if isinstance(spend, ZCDP):
        return Price(rho=spend.exact, delta=delta)
    if isinstance(spend, ApproxDP) and delta:
        whole = rational(spend.delta, "delta")
        if not delta < whole:
            raise prices.bad_spend_delta(decimal_text(whole))
        return Price(
            mu_squared=Fraction(mu_for_approx(rational(spend.epsilon, "epsilon"), whole - delta))
            ** 2,
            delta=delta,
        )
    return Price(mu_squared=spend_mu_squared(spend), delta=delta)


def within_spend(mechanism: Mechanism, spend: Guarantee, delta: Fraction = Fraction(0)) -> bool:
    """Whether one mechanism costs no more than `spend` with δ₀ = `delta`, compared exactly;
    a pure spend needs a pure mechanism.
    """
    return loss_fits(loss_of(mechanism), spend_box(spend, delta))


def loss_fits(loss: Loss, box: Price) -> bool:
    """Whether a loss costs no more than a box holds, in every coordinate."""
    price = _price(loss, box)
    return (
        price.epsilon <= box.epsilon
        and price.mu_squared <= box.mu_squared
        and price.rho <= box.rho
        and price.delta <= box.delta
    )


@plain.door
def price_of_spend(spend: Guarantee, *, box: Price, delta: Fraction = Fraction(0)) -> Price:
    """What may be set aside for a procedure that will spend `spend` in all, in a given box."""
    asked = spend_box(spend, delta)
    if box.rho > 0:
        return Price(
            rho=Fraction(pure_rho(spend.epsilon))
            if isinstance(spend, PureDP)
            else asked.rho or asked.mu_squared / 2,
            delta=delta,
        )
    if isinstance(spend, PureDP) and box.epsilon > 0:
        return asked
    return Price(mu_squared=asked.mu_squared or spend_mu_squared(spend), delta=delta)


@plain.door
def open_box(budget: Guarantee, *, pure: float | None = None, delta0: float | None = None) -> Price:
    """The fixed box of a budget.

    PureDP(ε) opens (ε, 0, 0). GDP(μ) opens (0, μ², 0). ApproxDP(ε, δ) opens ε_p = `pure`
    (default 0), δ₀ = `delta0` (default δ/10) and the μ with δ_μ(ε − ε_p) = δ − δ₀, rounded down.
    ZCDP(ρ) opens ρ and δ₀ = `delta0` (default 0), and then promises (ε, δ₀ + δ) wherever ρ-zCDP
    promises (ε, δ).
    """
    if isinstance(budget, ApproxDP):
        epsilon, delta = rational(budget.epsilon, "epsilon"), rational(budget.delta, "delta")
        first = rational(pure, "pure") if pure is not None else Fraction(0)
        second = rational(delta0, "delta0") if delta0 is not None else delta / 10
        if not 0 <= first < epsilon:
            raise prices.bad_pure(decimal_text(epsilon))
        if not 0 <= second < delta:
            raise prices.bad_failure(decimal_text(delta))
        mu = Fraction(mu_for_approx(epsilon - first, delta - second))
        return Price(first, mu**2, second)
    if isinstance(budget, ZCDP) and pure is None:
        extra = rational(delta0, "delta0") if delta0 is not None else Fraction(0)
        if not 0 <= extra < 1:
            raise prices.bad_added_failure(decimal_text(extra))
        return Price(rho=budget.exact, delta=extra)
    if pure is not None or delta0 is not None:
        raise prices.nothing_to_split(str(budget))
    if isinstance(budget, GDP):
        return Price(mu_squared=rational(budget.mu, "mu") ** 2)
    if isinstance(budget, PureDP):
        return Price(epsilon=rational(budget.epsilon, "epsilon"))
    raise prices.not_counted_in(type(budget).__name__)


def _mu_squared(loss: Loss) -> Fraction:
    """The μ² of a loss in which nothing is known by its zCDP alone."""
    pure = (Fraction(mu_for_pure(epsilon)) ** 2 for epsilon in loss.pure)
    bounded = (Fraction(mu_for_bounded_range(epsilon)) ** 2 for epsilon in loss.bounded_range)
    return sum((*pure, *bounded), loss.mu_squared)


def _rho(loss: Loss) -> Fraction:
    """The ρ of a loss: μ²/2 exactly, ε·tanh(ε/2) rounded up for each pure ε, ε²/8 for each of
    bounded range (reference.md B6, D1, D5).
    """
    pure = (Fraction(pure_rho(epsilon)) for epsilon in loss.pure)
    bounded = (bounded_range_rho(epsilon) for epsilon in loss.bounded_range)
    return sum((*pure, *bounded), loss.mu_squared / 2 + loss.rho)
