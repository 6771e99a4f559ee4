"""What a mechanism costs in a ledger's box (ε_p, μ², δ₀) or (ρ, δ₀), and the box that a budget opens.

A box is fixed when it is opened. Each coordinate is additive; whatever is charged within it, adaptively,
the total is (ε_p + ε′, δ₀ + δ_μ(ε′))-DP for every ε′ ≥ 0, or ρ-zCDP but for δ₀ (docs/theory/ledger.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting.gaussian import mu_for_approx, mu_for_pure
from discreet.accounting.guarantees import GDP, ApproxDP, Guarantee, PureDP, spend_mu_squared
from discreet.accounting.renyi import ZCDP
from discreet.accounting.renyi_conversions import pure_rho
from discreet.errors import InvalidParameter, NoTheorem
from discreet.exact import decimal_text, float_up, rational, sqrt_up
from discreet.mechanisms import AdditiveNoise, GaussianNoise
from discreet.sensitivity import L1, L2

_SPLIT_WHY = "the box is fixed when the ledger is opened and never re-split: moving budget after seeing answers breaks the guarantee"


@dataclass(frozen=True, slots=True)
class Price:
    """An exact amount in the coordinates of a box; only a zCDP box has ρ, and it has neither ε nor μ²."""

    epsilon: Fraction = Fraction(0)
    mu_squared: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def __add__(self, other: Price) -> Price:
        return Price(self.epsilon + other.epsilon, self.mu_squared + other.mu_squared, self.delta + other.delta, self.rho + other.rho)

    def __str__(self) -> str:
        named = (("ε", self.epsilon), ("μ²", self.mu_squared), ("δ₀", self.delta), ("ρ", self.rho))
        return ", ".join(f"{name} = {decimal_text(amount)}" for name, amount in named if amount) or "nothing"


def guarantee_of(mechanism: AdditiveNoise) -> Guarantee:
    """The guarantee of one mechanism.

    Theorem.  Gaussian noise of standard deviation σ on a statistic of ℓ₂ sensitivity Δ is (Δ/σ)-GDP (math.md B5).
              Laplace, two-sided geometric and Tulap noise of scale b on ℓ₁ sensitivity Δ is (Δ/b)-DP (B2, M3);
              for the integer laws Δ counts integer units. Rounding to a grid that the statistic lies on keeps both.
    Checked.  tests/claims/test_mechanism_guarantees.py
    """
    if isinstance(mechanism, GaussianNoise):
        return GDP(float_up(sqrt_up(gaussian_mu_squared(mechanism))))
    return PureDP(float_up(pure_epsilon(mechanism)))


def gaussian_mu_squared(mechanism: AdditiveNoise) -> Fraction:
    """μ² = Δ²/σ², exactly."""
    assert isinstance(mechanism.sensitivity, L2)
    return mechanism.sensitivity.squared / mechanism.spread**2


def pure_epsilon(mechanism: AdditiveNoise) -> Fraction:
    """ε = Δ/b, exactly."""
    assert isinstance(mechanism.sensitivity, L1)
    return mechanism.sensitivity.value / mechanism.spread


def price_of(mechanisms: Iterable[AdditiveNoise], *, box: Price) -> Price:
    """The exact price of releasing all of them, in a given box.

    A pure mechanism is charged to ε_p where the box opened one, else at μ = −2Φ⁻¹(1/(1+e^ε)), rounded up. In a zCDP box
    Gaussian noise is charged ρ = μ²/2 exactly and a pure mechanism ρ = ε·tanh(ε/2), rounded up.
    """
    total = Price()
    for mechanism in mechanisms:
        if box.rho > 0:
            total += Price(rho=_rho(mechanism))
        elif isinstance(mechanism, GaussianNoise):
            total += Price(mu_squared=gaussian_mu_squared(mechanism))
        elif box.epsilon > 0:
            total += Price(epsilon=pure_epsilon(mechanism))
        else:
            total += Price(mu_squared=Fraction(mu_for_pure(pure_epsilon(mechanism))) ** 2)
    return total


def within_spend(mechanism: AdditiveNoise, spend: Guarantee) -> bool:
    """Whether one mechanism costs no more than `spend`, compared exactly; a pure spend needs a pure mechanism."""
    if isinstance(spend, PureDP):
        return not isinstance(mechanism, GaussianNoise) and pure_epsilon(mechanism) <= rational(spend.epsilon, "epsilon")
    if isinstance(spend, ZCDP):
        return _rho(mechanism) <= spend.exact
    return price_of((mechanism,), box=Price()).mu_squared <= spend_mu_squared(spend)


def price_of_spend(spend: Guarantee, *, box: Price) -> Price:
    """What may be set aside for a procedure that will spend `spend` in all, in a given box."""
    if box.rho > 0:
        return Price(rho=Fraction(pure_rho(spend.epsilon)) if isinstance(spend, PureDP) else spend_mu_squared(spend) / 2)
    if isinstance(spend, PureDP) and box.epsilon > 0:
        return Price(epsilon=rational(spend.epsilon, "epsilon"))
    return Price(mu_squared=spend_mu_squared(spend))


def open_box(budget: Guarantee, *, pure: float | None = None, delta0: float | None = None) -> Price:
    """The fixed box of a budget.

    PureDP(ε) opens (ε, 0, 0). GDP(μ) opens (0, μ², 0). ApproxDP(ε, δ) opens ε_p = `pure` (default 0),
    δ₀ = `delta0` (default δ/10) and the μ with δ_μ(ε − ε_p) = δ − δ₀, rounded down. ZCDP(ρ) opens ρ and
    δ₀ = `delta0` (default 0), and then promises (ε, δ₀ + δ) wherever ρ-zCDP promises (ε, δ).
    """
    if isinstance(budget, ApproxDP):
        epsilon, delta = rational(budget.epsilon, "epsilon"), rational(budget.delta, "delta")
        first = rational(pure, "pure") if pure is not None else Fraction(0)
        second = rational(delta0, "delta0") if delta0 is not None else delta / 10
        if not 0 <= first < epsilon:
            raise InvalidParameter("pure=", f"it must be at least 0 and below epsilon = {decimal_text(epsilon)}", _SPLIT_WHY, "leave it out to keep all of the budget for Gaussian noise")
        if not 0 <= second < delta:
            raise InvalidParameter("delta0=", f"it must be at least 0 and below delta = {decimal_text(delta)}", _SPLIT_WHY, "leave it out for delta / 10")
        mu = Fraction(mu_for_approx(epsilon - first, delta - second))
        return Price(first, mu**2, second)
    if isinstance(budget, ZCDP) and pure is None:
        extra = rational(delta0, "delta0") if delta0 is not None else Fraction(0)
        if not 0 <= extra < 1:
            raise InvalidParameter("delta0=", f"{decimal_text(extra)} is not at least 0 and below 1", "it is a probability of failure that is added to what ρ-zCDP promises", "leave it out for none, or use one far below one over the number of people")
        return Price(rho=budget.exact, delta=extra)
    if pure is not None or delta0 is not None:
        raise InvalidParameter("pure=, delta0=", f"a budget of {budget} has nothing to split", _SPLIT_WHY, "open the ledger with dp.ApproxDP(epsilon, delta) to split it (dp.ZCDP(rho) takes delta0= alone)")
    if isinstance(budget, GDP):
        return Price(mu_squared=rational(budget.mu, "mu") ** 2)
    if isinstance(budget, PureDP):
        return Price(epsilon=rational(budget.epsilon, "epsilon"))
    raise NoTheorem("budget=", f"a {type(budget).__name__} is not a guarantee that a ledger counts in", "a ledger promises one", "pass dp.ApproxDP(epsilon, delta), dp.GDP(mu), dp.ZCDP(rho) or dp.PureDP(epsilon)")


def _rho(mechanism: AdditiveNoise) -> Fraction:
    """The ρ of one mechanism: μ²/2 exactly, or ε·tanh(ε/2) rounded up (math.md D1, D5)."""
    return gaussian_mu_squared(mechanism) / 2 if isinstance(mechanism, GaussianNoise) else Fraction(pure_rho(pure_epsilon(mechanism)))
