"""Noise for T steps of an iterative procedure: the scenarios of the lectures, with the
corrections of reference.md E5–E6 (E7: `renyi.mechanisms.sampled_gaussian_rdp`).
"""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting.gaussian import mu_for_approx
from discreet.accounting.parameters import Number, failure_probability, positive, whole_number
from discreet.accounting.sampling import FixedSizeSampling, matched_rate
from discreet.accounting.subsampling import base_epsilon
from discreet.enclosure import enclose, lower_float
from discreet.exact import float_up, sqrt_up
from discreet.neighbors import Neighbors


def laplace_scale_for_steps(
    *,
    sensitivity: Number,
    sampling: FixedSizeSampling,
    neighbors: Neighbors,
    epsilon: Number,
    steps: int,
) -> float:
    """The Laplace scale for T noisy means over samples of m rows, ε-DP in all:
    B/(m ln(1 + (e^{ε/T}−1)n/m)), rounded up (reference.md E5).

    `sensitivity` B is the ℓ₁ distance between two clipped rows, twice the clip norm; the mean
    divides by m, so it moves by B/m.

    Theorem.  Each step is ε/T-DP under Replace by amplification; ε adds.
    Checked.  tests/accounting/test_subsampling.py::test_scenario_1
    """
    rate, each = (
        matched_rate(sampling, neighbors),
        positive(epsilon, "epsilon") / whole_number(steps, "steps"),
    )
    return float_up(
        positive(sensitivity, "sensitivity") / sampling.size / Fraction(base_epsilon(each, rate))
    )


def gaussian_sigma_for_zcdp(*, sensitivity: Number, rho: Number, steps: int = 1) -> float:
    """σ for T Gaussian answers that are ρ-zCDP in all: Δ√(T/(2ρ)), rounded up (reference.md E6);
    Δ is the ℓ₂ sensitivity of one answer.
    """
    return float(
        sqrt_up(
            positive(sensitivity, "sensitivity") ** 2
            * whole_number(steps, "steps")
            / (2 * positive(rho, "rho"))
        )
    )


def gaussian_sigma_for_approx(
    *, sensitivity: Number, epsilon: Number, delta: Number, steps: int = 1
) -> float:
    """σ for T Gaussian answers that are (ε, δ)-DP in all: Δ√T/μ with δ_μ(ε) = δ, rounded up;
    no smaller σ will do (reference.md B5, C4).
    """
    mu = Fraction(mu_for_approx(positive(epsilon, "epsilon"), failure_probability(delta)))
    return float(
        sqrt_up(positive(sensitivity, "sensitivity") ** 2 * whole_number(steps, "steps") / mu**2)
    )


def largest_rate_for_pure(*, epsilon: Number, target: Number) -> float:
    """The greatest sampling rate at which an ε-DP step becomes `target`-DP:
    (e^target − 1)/(e^ε − 1), at most 1, rounded down (reference.md E1).
    """
    e, t = positive(epsilon, "epsilon"), positive(target, "target")
    return 1.0 if t >= e else lower_float(enclose(lambda ball: ball(t).expm1() / ball(e).expm1()))
