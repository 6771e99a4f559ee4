"""What the quantile mechanisms cost (specs/mechanisms/quantiles.py):
one theorem a mechanism and, for smooth noise, a law.

Smooth noise. Let f + M·S·Z be released with S smooth: |f − f′| ≤ min(S, S′) and |ln(S/S′)| ≤ β
(trusted/extensions/data_dependent/order_statistics.py). From one neighbour to the other there are
two steps: *stretch* the noise from M·S to M·S′ (by e^λ, |λ| ≤ β), then *shift* it by |f − f′| ≤ S′,
that is by at most α = 1/M in units of the new noise. If the stretch is (ε₁, δ₁)-DP and the shift
(ε₂, δ₂)-DP, both together are (ε₁ + ε₂, δ₁ + e^ε₁·δ₂)-DP; trade-off curves G_μ and zCDP ½u² add up
in μ and in u (group privacy: Dong et al. 2022, Thm 2.14; Bun & Steinke 2016, Prop. 1.9).
The sampler's S lies within exp(−τ) of the true one, so β + τ and (1 + 2τ)·α stand for β and α
throughout, τ = 2**-40.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.accounting.gaussian import gdp_delta, mu_for_pure
from discreet.enclosure import enclose, upper_float
from discreet.errors import prices
from discreet.exact import sqrt_up
from discreet.specs.mechanisms.quantiles import (
    SMOOTH_SLACK,
    ProposeTestRelease,
    QuantileChoice,
    SmoothNoise,
)
from discreet.trusted.losses.loss import Loss

QUARTIC_SLOPE = Fraction(22796, 10000)  # 3^(3/4), rounded up
_SPLITS = tuple(Fraction(part, 16) for part in range(1, 16))


def quantile_choice_loss(choice: QuantileChoice) -> Loss:
    """Theorem.  P(c) ∝ exp(−rate·loss(c)) has bounded range ε = 2·rate·Δ if every loss moves by at
              most Δ (reference.md B6).

    Proof.    The log-ratio of P(c) to P′(c) is rate·(loss′(c) − loss(c)) and a constant:
              as c varies it stays in an interval of length 2·rate·Δ.
    Checked.  tests/claims/test_quantile_mechanisms.py::test_choices_stay_within_their_range
    """
    return Loss(bounded_range=(2 * choice.rate * choice.largest_change,))


def propose_test_release_loss(proposal: ProposeTestRelease) -> Loss:
    """Theorem.  Propose-test-release is pure twice, ε₁ = 1/test_spread and ε₂ = η/spread,
              but for δ = P(G ≥ threshold) = b^t/(1 + b), b = e^−ε₁.

    Proof.    If x_(m) moves by at most η, then the test is ε₁-DP, as γ moves by at most 1, and the
              release ε₂-DP. If it moves further, then γ = 0 for both
              (trusted/extensions/data_dependent/order_statistics.py::stability_distance): both pass
              with the same probability P(G ≥ t), and give ⊥ outside that event.
    Checked.  tests/claims/test_quantile_mechanisms.py::test_propose_test_release_keeps_its_promise
    """
    first = 1 / proposal.test_spread
    second = (proposal.eta / proposal.spread,) if proposal.eta else ()
    return Loss(pure=(first, *second), delta=geometric_tail(first, proposal.threshold))


@plain.remembered(256)
def geometric_tail(epsilon: Fraction, threshold: int) -> Fraction:
    """P(G ≥ t) = e^(−ε·t)/(1 + e^−ε) of two-sided geometric noise, rounded up."""
    return Fraction(
        upper_float(
            enclose(lambda ball: (-ball(epsilon * threshold)).exp() / (1 + (-ball(epsilon)).exp()))
        )
    )


def smooth_loss(noise: SmoothNoise) -> Loss:
    """The theorem of a smooth noise's law (below)."""
    return _LAWS[noise.law](
        noise, noise.beta + SMOOTH_SLACK, (1 + 2 * SMOOTH_SLACK) / noise.multiplier
    )


def cauchy_slopes(power: int) -> tuple[Fraction, Fraction]:
    """(c₁, c₂) such that noise of density ∝ 1/(1 + |z|^p) is pure with ε = c₁·β + c₂·α, p = 2 or 4.

    Theorem.  c₁ = p − 1, c₂ = (p − 1)^((p−1)/p). For p = 2 that is ε = β + α, a third of what
              reference.md B7's constants ask.
    Proof.    d/dλ ln(e^λ h(e^λ z)) = 1 − p·w/(1 + w) lies in (1 − p, 1], w = |e^λ
              z|^p. |(ln h)′| = p|z|^(p−1)/(1 + |z|^p) is greatest where |z|^p = p − 1.
    Checked.  tests/claims/test_quantile_mechanisms.py::test_smooth_laws_keep_their_promise
    """
    return (Fraction(1), Fraction(1)) if power == 2 else (Fraction(3), QUARTIC_SLOPE)


def student_slopes(degrees: int) -> tuple[Fraction, Fraction]:
    """(c₁, c₂) such that Student's noise of d ≥ 1 degrees of freedom is pure with ε = c₁·β + c₂·α.

    Theorem.  c₁ = d, c₂ = (d + 1)/(2√d), rounded up.
    Proof.    d/dλ ln(e^λ h(e^λ z)) = 1 − (d + 1)w/(d + w) lies in (−d, 1], w = (e^λ z)².
              |(ln h)′| = (d + 1)|z|/(d + z²) is greatest at |z| = √d.
    Checked.  tests/claims/test_quantile_mechanisms.py::test_smooth_laws_keep_their_promise
    """
    return Fraction(degrees), sqrt_up(Fraction((degrees + 1) ** 2, 4 * degrees))


def _cauchy(noise: SmoothNoise, beta: Fraction, alpha: Fraction) -> Loss:
    stretch, shift = cauchy_slopes(int(noise.shape))
    return Loss(pure=(stretch * beta + shift * alpha,))


def _student(noise: SmoothNoise, beta: Fraction, alpha: Fraction) -> Loss:
    stretch, shift = student_slopes(int(noise.shape))
    return Loss(pure=(stretch * beta + shift * alpha,))


def _laplace(noise: SmoothNoise, beta: Fraction, alpha: Fraction) -> Loss:
    """Theorem.  (ε, δ)-DP for every ε ≥ α + β, δ = (1 − e^−β)·exp(−(ε − α + β)/(e^β − 1));
              any ε, unlike reference.md B7's row.

    Proof.    Stretch, from Lap(1) to Lap(e^−λ), λ > 0: ln p/q = |z|(e^λ − 1) − λ > ε₁ iff
              |z| > T = (ε₁ + λ)/(e^λ − 1), and P(|z| > T) − e^ε₁·Q(|z| > T) = e^−T(1 − e^−λ), which
              rises with λ as T falls; to a wider law, ln p/q ≤ β ≤ ε₁. Shift: pure α, so δ₂ = 0.
              An (ε, δ)-DP pair is a mixture of a pure one with weight 1 − δ and of anything with
              weight δ, under both neighbours (Kairouz et al. 2015).
    Checked.  tests/claims/test_quantile_mechanisms.py::test_smooth_laws_keep_their_promise
    """
    stretch = _left(noise.shape - alpha, beta)

    def delta(ball: Any) -> Any:
        rise = ball(beta).exp() - 1
        return (1 - (-ball(beta)).exp()) * (-ball(stretch + beta) / rise).exp()

    return Loss(pure=(noise.shape,), delta=Fraction(upper_float(enclose(delta))))


def _gaussian(noise: SmoothNoise, beta: Fraction, alpha: Fraction) -> Loss:
    """Theorem.  (ε₁ + ε₂, δ₁ + e^ε₁·δ_α(ε₂))-DP for all ε₁ ≥ β and ε₂ > 0, δ₁ = 2Φ(−T),
              T² = 2(ε₁ + β)/(e^(2β) − 1).

    Proof.    Stretch, from N(0, 1) to N(0, e^(−2λ)), λ > 0: ln p/q = z²(e^(2λ) − 1)/2 − λ > ε₁ iff
              |z| > T(λ), which falls in λ; to a wider law, ln p/q ≤ β ≤ ε₁. Shift: α-GDP. Mixture
              as for Laplace. ε₁ is the best of fifteen shares of ε.
    Checked.  tests/claims/test_quantile_mechanisms.py::test_smooth_laws_keep_their_promise
    """
    epsilon = noise.shape
    _left(epsilon * _SPLITS[-1], beta)
    deltas = [
        _gaussian_delta(share * epsilon, (1 - share) * epsilon, beta, alpha)
        for share in _SPLITS
        if share * epsilon >= beta
    ]
    return Loss(pure=(epsilon,), delta=min(deltas))


@plain.remembered(1024)
def _gaussian_delta(
    stretch: Fraction, shift: Fraction, beta: Fraction, alpha: Fraction
) -> Fraction:
    moved = Fraction(gdp_delta(alpha, shift))
    formula: Callable[[Any], Any] = lambda ball: (  # noqa: E731
        ((ball(stretch + beta) / (ball(2 * beta).exp() - 1)).sqrt()).erfc()
        + ball(stretch).exp() * ball(moved)
    )
    return Fraction(upper_float(enclose(formula)))


def _lln(noise: SmoothNoise, beta: Fraction, alpha: Fraction) -> Loss:
    """Theorem.  X·e^(σY) is ½u²-zCDP with u = β/σ + α·e^(3σ²/2) (Bun & Steinke 2019), and μ-GDP
              with μ = β/σ + μ_pure(α·e^(3σ²/2)), without any δ.

    Proof.    Stretch: e^λ·X·e^(σY) is a function of Y + λ/σ and X: β/σ-GDP, ½(β/σ)²-zCDP. Shift:
              the density is E[W·e^(−|z|W)]/2, W = e^(−σY), so |(ln h)′| is the mean of W under
              weights W·e^(−|z|W), which falls with |z|: at most E W²/E W = e^(3σ²/2). So it is
              pure, hence GDP (`mu_for_pure`) and ½ε²-zCDP.
    Checked.  tests/claims/test_quantile_mechanisms.py::test_smooth_laws_keep_their_promise
    """
    shift = Fraction(
        upper_float(enclose(lambda ball: (3 * ball(noise.shape) ** 2 / 2).exp() * ball(alpha)))
    )
    if noise.charged == "zcdp":
        return Loss(rho=(beta / noise.shape + shift) ** 2 / 2)
    return Loss(mu_squared=(beta / noise.shape + Fraction(mu_for_pure(shift))) ** 2)


def _left(stretch: Fraction, beta: Fraction) -> Fraction:
    if stretch < beta:
        raise prices.too_little_left()
    return stretch


_LAWS: dict[str, Callable[[SmoothNoise, Fraction, Fraction], Loss]] = {
    "cauchy": _cauchy,
    "student": _student,
    "laplace": _laplace,
    "gaussian": _gaussian,
    "lln": _lln,
}
