"""Constructors: from the numbers of a mechanism, or from its spec, to a PLD."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from discreet.accounting.loss_distributions.curve import PLD
from discreet.accounting.loss_distributions.pairs import (
    Atoms,
    BoundedRange,
    Gaussian,
    Laplace,
    Sampled,
    Scheme,
    approx_atoms,
    geometric_atoms,
    randomized_response_atoms,
)
from discreet.errors import InvalidParameter, NoTheorem
from discreet.exact import decimal_text, float_up, rational, sqrt_up
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import (
    AdditiveNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
)

_WHY = "the privacy loss is computed from it"
_LARGEST_SHIFT = 1 << 16
_LARGEST_SAMPLED_MU = 25


def _positive(value: object, name: str, least: float, most: float) -> float:
    if type(value) is float and least <= value < most:
        return math.nextafter(value, math.inf)  # not below the number however it is read
    number = rational(value, name)
    if not Fraction(least) <= number <= Fraction(most):
        raise InvalidParameter(
            name,
            f"{decimal_text(number)} is outside {least:g} … {most:g}",
            _WHY,
            f"pass {name} within that range",
        )
    return float_up(number)


def gaussian_pld(mu: float) -> PLD:
    """Gaussian noise with μ = Δ₂/σ."""
    return PLD(((Gaussian(_positive(mu, "mu", 1e-9, 1e6)), 1),))


def laplace_pld(epsilon: float) -> PLD:
    """Laplace noise with ε = Δ₁/b."""
    return PLD(((Laplace(_positive(epsilon, "epsilon", 1e-9, 500)), 1),))


def geometric_pld(epsilon: float, sensitivity: int = 1) -> PLD:
    """Two-sided geometric noise on the integers, ε-DP for a whole ℓ₁ sensitivity:
    P(k) ∝ e^(−|k|·ε/sensitivity).
    """
    total = _positive(epsilon, "epsilon", 1e-9, 500)
    if (
        isinstance(sensitivity, bool)
        or not isinstance(sensitivity, int)
        or not 1 <= sensitivity <= _LARGEST_SHIFT
    ):
        raise InvalidParameter(
            "sensitivity",
            f"it is not a whole number from 1 to {_LARGEST_SHIFT}",
            _WHY,
            "use laplace_pld, which dominates it, for larger ones",
        )
    return PLD(((geometric_atoms(total / sensitivity, sensitivity), 1),))


def randomized_response_pld(epsilon: float, levels: int = 2) -> PLD:
    """k-ary randomised response (reference.md L2)."""
    if isinstance(levels, bool) or not isinstance(levels, int) or not 2 <= levels <= 10**12:
        raise InvalidParameter(
            "levels",
            "it is not a whole number of 2 or more",
            "it counts the possible answers",
            "pass 2 for yes/no",
        )
    return PLD(((randomized_response_atoms(_positive(epsilon, "epsilon", 1e-9, 500), levels), 1),))


def exponential_pld(epsilon: float) -> PLD:
    """Any mechanism of ε-bounded range, such as the exponential mechanism with weights
    e^(ε·u/(2Δ)).
    """
    return PLD(((BoundedRange(_positive(epsilon, "epsilon", 1e-9, 500)), 1),))


def approx_pld(epsilon: float, delta: float = 0.0) -> PLD:
    """Any (ε, δ)-DP mechanism."""
    number = rational(delta, "delta")
    if not 0 <= number < 1:
        raise InvalidParameter(
            "delta", f"{decimal_text(number)} is outside [0, 1)", _WHY, "pass a probability below 1"
        )
    loss = (
        float_up(rational(epsilon, "epsilon"))
        if rational(epsilon, "epsilon") == 0
        else _positive(epsilon, "epsilon", 1e-9, 500)
    )
    return PLD(((approx_atoms(loss, float_up(number)), 1),))


def discrete_pld(p: Sequence[float], q: Sequence[float]) -> PLD:
    """An explicit pair of distributions on the same outcomes; both orders are accounted for."""
    first, second = [rational(x, "p") for x in p], [rational(x, "q") for x in q]
    if (
        len(first) != len(second)
        or not first
        or min(*first, *second) < 0
        or any(abs(sum(side, Fraction(0)) - 1) > Fraction(1, 10**12) for side in (first, second))
    ):
        raise InvalidParameter(
            "p, q",
            "they are not two distributions on the same outcomes",
            _WHY,
            "pass two sequences of probabilities that each sum to 1",
        )
    total_p, total_q = sum(first, Fraction(0)), sum(second, Fraction(0))
    both = sorted(
        (_log_ratio(a / total_p, b / total_q), float(a / total_p), float(b / total_q))
        for a, b in zip(first, second, strict=True)
        if a and b
    )
    p_only = float(
        sum((a for a, b in zip(first, second, strict=True) if not b), Fraction(0)) / total_p
    )
    q_only = float(
        sum((b for a, b in zip(first, second, strict=True) if not a), Fraction(0)) / total_q
    )
    if not both:
        raise InvalidParameter(
            "p, q",
            "no outcome is possible under both",
            "such a mechanism has no privacy at all",
            "add noise",
        )
    losses, masses_p, masses_q = (tuple(column) for column in zip(*both, strict=True))
    return PLD(((Atoms(losses, masses_p, masses_q, p_only, q_only), 1),))


def _log_ratio(a: Fraction, b: Fraction) -> float:
    ratio = a / b
    return (
        math.log1p(float(ratio - 1))
        if Fraction(1, 2) < ratio < 2
        else math.log(ratio.numerator) - math.log(ratio.denominator)
    )


def poisson_subsampled(base: PLD, sampling_rate: float) -> PLD:
    """The base mechanism on a Poisson sample, neighbours by add/remove."""
    return _sampled(base, sampling_rate, "poisson")


def fixed_size_subsampled(base: PLD, sampling_rate: float) -> PLD:
    """The base mechanism on a sample of fixed size without replacement, sampling_rate = m/n,
    neighbours by replace-one.
    """
    return _sampled(base, sampling_rate, "fixed")


def _sampled(base: PLD, sampling_rate: float, scheme: Scheme) -> PLD:
    rate = rational(sampling_rate, "sampling_rate")
    if not 0 < rate <= 1:
        raise InvalidParameter(
            "sampling_rate",
            f"{decimal_text(rate)} is outside (0, 1]",
            "it is the probability that a record is in the sample",
            "pass for example 0.01",
        )
    if base.steps != 1:
        raise NoTheorem(
            "sampling a composition",
            "the amplification theorems here are for one dominating pair",
            "each step draws its own sample",
            "sample one mechanism, then compose",
        )
    factor = base.factors[0][0]
    if isinstance(factor, Sampled):
        raise NoTheorem(
            "sampling a sampled mechanism",
            "no pair of the two schemes together is known here",
            "amplification is proven for one draw",
            "multiply the rates of two Poisson samples yourself",
        )
    if rate == 1:
        return base
    if scheme == "fixed" and not factor.symmetric:
        raise NoTheorem(
            "fixed-size sampling",
            "the base pair differs between its two orders",
            "the symmetrised C_p(f) is proven for a symmetric f",
            "use a symmetric pair, for example randomized_response_pld",
        )
    if isinstance(factor, Gaussian) and factor.mu > _LARGEST_SAMPLED_MU:
        raise InvalidParameter(
            "sigma",
            f"the noise is below 1/{_LARGEST_SAMPLED_MU} of the sensitivity",
            "a sampled record is then as good as published",
            "use more noise, or account for the base mechanism without sampling",
        )
    return PLD(((Sampled(factor, float_up(rate), scheme), 1),))


def pld_of(mechanism: AdditiveNoise) -> PLD:
    """The PLD of a mechanism spec, for the neighbours its sensitivity was derived for."""
    sensitivity = mechanism.sensitivity if isinstance(mechanism, AdditiveNoise) else None
    if isinstance(mechanism, GaussianNoise) and isinstance(sensitivity, L2):
        return gaussian_pld(float_up(sqrt_up(sensitivity.squared / mechanism.spread**2)))
    if isinstance(mechanism, LaplaceNoise) and isinstance(sensitivity, L1):
        return laplace_pld(float_up(sensitivity.value / mechanism.spread))
    if isinstance(mechanism, (GeometricNoise, TulapNoise)) and isinstance(sensitivity, L1):
        shift = math.ceil(sensitivity.value)
        epsilon = float_up(shift / mechanism.spread)
        return geometric_pld(epsilon, shift) if shift <= _LARGEST_SHIFT else laplace_pld(epsilon)
    raise NoTheorem(
        "pld_of",
        f"no dominating pair of a {type(mechanism).__name__} is known here",
        "a PLD is computed from one",
        "pass a Gaussian, Laplace, geometric or Tulap noise spec",
    )
