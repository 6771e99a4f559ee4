"""The vocabulary of dominating pairs: what a mechanism can at worst look like to someone who tests
for one person.

A pair (P, Q) dominates a mechanism if its hockey-stick curve δ(ε) = sup_E P(E) − e^ε Q(E) is
nowhere below the mechanism's, for every real ε. Dominating pairs compose, adaptively too:
the product of the pairs dominates the composition (Dong, Roth, Su 2022, theorem 3.2; Zhu, Dong,
Wang 2022, theorem 10). Each factor below is one such pair, told by the law of its privacy loss
L = ln dP/dQ under P. "remove" is the order (with the person, without), "add" the other; the factors
that are equal in both orders are called symmetric.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Direction = Literal["remove", "add"]
Scheme = Literal["poisson", "fixed"]


@dataclass(frozen=True, slots=True)
class Gaussian:
    """P = N(μ, 1), Q = N(0, 1): additive Gaussian noise, μ = Δ₂/σ (reference.md A7)."""

    mu: float

    @property
    def symmetric(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Laplace:
    """P = Lap(0, 1), Q = Lap(ε, 1): additive Laplace noise, ε = Δ₁/b.

    Theorem.  A vector with ℓ₁ sensitivity Δ under independent Lap(b) noise is dominated by this
              scalar pair.
    Proof.    docs/theory/pld.md, "Laplace noise on a vector".
    Checked.
        tests/accounting/test_pld_pairs.py::test_laplace_on_a_vector_is_dominated_by_the_scalar_pair
    """

    epsilon: float

    @property
    def symmetric(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class BoundedRange:
    """The worst pair of an ε-bounded-range mechanism,
    as the exponential mechanism with weights e^(ε·u/(2Δ)) is.

    Theorem.  δ(x) = (1 − e^((x−ε)/2))² / (1 − e^(−ε)) for |x| ≤ ε dominates every ε-bounded-range
              mechanism.
    Proof.    The losses lie in some [t−ε, t]; given t, convexity makes the two ends the worst case
              with δ_t(x) = (1−e^(t−ε))(1−e^(x−t))/(1−e^(−ε)), greatest at t = (x+ε)/2
              (Dong, Durfee, Rogers 2020).
    Checked.
        tests/accounting/test_pld_pairs.py::test_bounded_range_dominates_exponential_mechanisms
    """

    epsilon: float

    @property
    def symmetric(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Atoms:
    """A discrete pair: outcome i has loss `losses[i]`,
    probability `p[i]` under P and `q[i]` under Q (both positive).

    `p_only` is P's probability of what is impossible under Q, and `q_only` the reverse. Every
    number may be off by a few units in its last place; the discretisation allows for that.
    """

    losses: tuple[float, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    p_only: float = 0.0
    q_only: float = 0.0
    symmetric: bool = False

    def reversed(self) -> Atoms:
        order = range(len(self.losses) - 1, -1, -1)
        return Atoms(
            tuple(-self.losses[i] for i in order),
            tuple(self.q[i] for i in order),
            tuple(self.p[i] for i in order),
            self.q_only,
            self.p_only,
            self.symmetric,
        )

    def spacing(self) -> float | None:
        """The step of the coarsest lattice (with an offset) that holds every loss,
        where one is found.
        """
        if len(self.losses) < 2:
            return None
        gaps = [abs(b - a) for a, b in zip(self.losses, self.losses[1:], strict=False)]
        step = min(gap for gap in gaps)
        if step <= 0 or any(
            abs(gap / step - round(gap / step)) > 1e-12 * (1 + gap / step) for gap in gaps
        ):
            return None
        return step


Base = Gaussian | Laplace | BoundedRange | Atoms


@dataclass(frozen=True, slots=True)
class Sampled:
    """The base mechanism on a secret random sample of the records.

    "poisson"  every record is kept with probability `rate`, neighbours by add/remove. Remove:
               P = (1−r)Q₀+rP₀ against Q₀; add: Q₀ against the mixture (Zhu, Dong, Wang 2022,
               theorem 11; reference.md E1, E2).
    "fixed"    a sample of fixed size, rate = m/n, without replacement, neighbours by replace-one:
               the symmetrised C_r(f₀) = min(f_r, f_r⁻¹)** with f_r = r·f₀ + (1−r)·Id (Dong, Roth,
               Su 2022, theorem 4.2; E8).

    Theorem.  For a symmetric base, C_r(f₀) has the losses of "remove" above 0,
              those of "add" below 0, and an atom at 0.
    Proof.    δ of C_r(f₀) is the greater of the two curves, and remove ≥ add exactly for ε ≥ 0:
              with x = e^ε their difference at the best event E of "add" is at least
              (1−r)(x−1)(P₀(E)−Q₀(E)) ≥ 0 (docs/theory/pld.md).
    Checked.  tests/accounting/test_pld_pairs.py::test_fixed_size_is_the_greater_of_both_orders
    """

    base: Base
    rate: float
    scheme: Scheme

    @property
    def symmetric(self) -> bool:
        return self.scheme == "fixed"


Factor = Gaussian | Laplace | BoundedRange | Atoms | Sampled


def randomized_response_atoms(epsilon: float, levels: int) -> Atoms:
    """k-ary randomised response: the truth with probability e^ε/(e^ε+k−1),
    every other level with 1/(e^ε+k−1).
    """
    total = 1 + (levels - 1) * math.exp(-epsilon)
    truth, lie = 1 / total, math.exp(-epsilon) / total
    if levels == 2:
        return Atoms((-epsilon, epsilon), (lie, truth), (truth, lie), symmetric=True)
    rest = (levels - 2) * lie
    return Atoms((-epsilon, 0.0, epsilon), (lie, rest, truth), (truth, rest, lie), symmetric=True)


def approx_atoms(epsilon: float, delta: float) -> Atoms:
    """The worst (ε, δ)-DP mechanism: it tells everything with probability δ,
    else it is randomised response (reference.md A5).
    """
    flip = (
        randomized_response_atoms(epsilon, 2)
        if epsilon > 0
        else Atoms((0.0,), (1.0,), (1.0,), symmetric=True)
    )
    keep = 1 - delta
    return Atoms(
        flip.losses,
        tuple(keep * m for m in flip.p),
        tuple(keep * m for m in flip.q),
        delta,
        delta,
        True,
    )


def geometric_atoms(step: float, shift: int) -> Atoms:
    """Two-sided geometric noise P(k) ∝ e^(−step·|k|) against its shift by a whole number
    (reference.md B2, M3).

    The loss is step·(|k−shift|−|k|): its two ends hold the tails, the values between one outcome
    each. Vectors with ℓ₁ sensitivity `shift` are dominated by this scalar pair, as for `Laplace`.
    """
    ratio = math.exp(-step)
    ends = 1 / (1 + ratio)  # P(k ≤ 0)
    inner = [-math.expm1(-step) / (1 + ratio) * math.exp(-step * k) for k in range(1, shift)]
    p = [ends, *inner, ends * math.exp(-step * shift)]
    losses = [step * (shift - 2 * k) for k in range(shift + 1)]
    return Atoms(tuple(reversed(losses)), tuple(reversed(p)), tuple(p), symmetric=True)
