"""Formulas of the literature that are not guarantees.

Nothing here can be charged, composed or opened as a budget.

Each returns an `Approximation`: a number with its caveat, deliberately no `Guarantee` and no float.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from discreet.accounting.parameters import Number, failure_probability, positive, whole_number
from discreet.accounting.sampling import FixedSizeSampling, PoissonSampling
from discreet.errors import InvalidParameter
from discreet.exact import decimal_text


@dataclass(frozen=True, slots=True)
class Approximation:
    """A number that may be on the wrong side of the truth, and why;
    `value` is for reading and plotting.
    """

    value: float
    name: str
    caveat: str

    def __str__(self) -> str:
        return (
            f"{self.name} ≈ {decimal_text(self.value)} (an approximation, no guarantee: "
            f"{self.caveat})"
        )


def classical_gaussian_sigma_approximation(
    *, epsilon: Number, delta: Number, sensitivity: Number = 1
) -> Approximation:
    """σ = Δ√(2 ln(1.25/δ))/ε: too much noise for ε < 1, too little for large ε (reference.md B4).

    Use `gaussian_sigma_for_approx`.
    """
    e, d, size = (
        float(x)
        for x in (
            positive(epsilon, "epsilon"),
            failure_probability(delta),
            positive(sensitivity, "sensitivity"),
        )
    )
    return Approximation(
        size * math.sqrt(2 * math.log(1.25 / d)) / e, "σ", "false for large ε, wasteful for ε < 1"
    )


def clt_mu_subsampled_approximation(
    *, noise_multiplier: Number, sampling: PoissonSampling | FixedSizeSampling, steps: int
) -> Approximation:
    """The limit μ of T sampled Gaussian steps (reference.md E8), which can under-report ε.

    Poisson, add/remove: γ√(T(e^{1/σ²} − 1)). Fixed size, replace-one:
    γ√(2T(e^{1/σ²}Φ(3/(2σ)) + 3Φ(−1/(2σ)) − 2)).
    """
    sigma, count = (
        float(positive(noise_multiplier, "noise multiplier")),
        whole_number(steps, "steps"),
    )
    if type(sampling) not in (PoissonSampling, FixedSizeSampling):
        raise InvalidParameter(
            "sampling",
            f"a {type(sampling).__name__} is not a sampling scheme",
            "the limit depends on it",
            "pass PoissonSampling(rate) or FixedSizeSampling(size, rows)",
        )
    precision = 1 / sigma**2 if sigma > 1e-100 else math.inf
    if precision > 700:
        spread = math.inf
    elif type(sampling) is PoissonSampling:
        spread = math.expm1(precision)
    else:
        spread = 2 * (math.exp(precision) * _normal(1.5 / sigma) + 3 * _normal(-0.5 / sigma) - 2)
    return Approximation(
        float(sampling.exact_rate) * math.sqrt(count * max(0.0, spread)),
        "μ",
        "a central limit; the true ε can be larger, use a PLD or RDP",
    )


def clt_mu_approximation(epsilons: Iterable[Number]) -> Approximation:
    """The limit μ of composed pure releases:
    2Σkl/√(Σκ₂ − Σkl²), kl = ε·tanh(ε/2), κ₂ = ε² (reference.md C6).
    """
    sizes = [float(positive(epsilon, "epsilon")) for epsilon in epsilons]
    if not sizes:
        raise InvalidParameter(
            "epsilons",
            "there are none",
            "an empty release has no limit",
            "pass one epsilon a release",
        )
    kl = [epsilon * math.tanh(epsilon / 2) for epsilon in sizes]
    # κ₂ − kl² = ε²(1 − tanh²)
    spread = math.fsum((epsilon / math.cosh(min(epsilon / 2, 350.0))) ** 2 for epsilon in sizes)
    return Approximation(
        2 * math.fsum(kl) / math.sqrt(spread) if spread > 0 else math.inf,
        "μ",
        "a central limit; use composition.optimal for the exact curve",
    )


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2
