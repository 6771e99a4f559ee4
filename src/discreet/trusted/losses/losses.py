"""What one mechanism costs before any box: the parts that it is a composition of.

One theorem a mechanism, in one table.

A part is Gaussian (μ², exact), pure (ε), of bounded range (ε), or known by its zCDP alone (ρ);
`delta` is the probability, under both neighbours, of an event outside which the rest holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.errors import NoTheorem
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import (
    AdditiveNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
)
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.in_turn import AboutCentre, InTurn
from discreet.specs.mechanisms.local import LOCAL
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.mechanisms.selection import SELECTION
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.trusted.extensions.data_dependent.loss import (
    choice_parts,
    release_parts,
    smooth_parts,
)
from discreet.trusted.extensions.local.loss import local_parts
from discreet.trusted.extensions.open_keys.loss import failure_delta
from discreet.trusted.extensions.sgd.loss import sgd_parts
from discreet.trusted.losses.cut_tulap import cut_parts
from discreet.trusted.losses.search import joined_parts, search_parts
from discreet.trusted.losses.selection import selection_parts
from discreet.trusted.losses.symmetric import symmetric_mu_squared


@dataclass(frozen=True, slots=True)
class Loss:
    """The parts of a mechanism, composed."""

    mu_squared: Fraction = Fraction(0)
    pure: tuple[Fraction, ...] = ()
    bounded_range: tuple[Fraction, ...] = ()
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    @property
    def epsilon(self) -> Fraction | None:
        """The ε of the parts added up, where all of them have one."""
        return (
            None
            if self.mu_squared or self.rho
            else sum((*self.pure, *self.bounded_range), Fraction(0))
        )


def loss_of(mechanism: Mechanism) -> Loss:
    """The loss of one mechanism, by its theorem."""
    theorem = _THEOREMS.get(type(mechanism))
    if theorem is None:
        raise NoTheorem(
            "pricing a mechanism",
            f"a {type(mechanism).__name__} has no theorem",
            "only what is proven can be charged",
            "use a mechanism of discreet.specs.mechanisms",
        )
    return theorem(mechanism)


def gaussian_mu_squared(mechanism: AdditiveNoise) -> Fraction:
    """μ² = Δ²/σ², exactly."""
    assert isinstance(mechanism.sensitivity, L2)
    return mechanism.sensitivity.squared / mechanism.spread**2


def pure_epsilon(mechanism: AdditiveNoise) -> Fraction:
    """ε = Δ/b, exactly."""
    assert isinstance(mechanism.sensitivity, L1)
    return mechanism.sensitivity.value / mechanism.spread


def _gaussian(mechanism: GaussianNoise) -> Loss:
    """Theorem.  Gaussian noise of standard deviation σ on a statistic of ℓ₂ sensitivity Δ is
    (Δ/σ)-GDP (reference.md B5).
    """
    return Loss(mu_squared=gaussian_mu_squared(mechanism))


def _pure(mechanism: AdditiveNoise) -> Loss:
    """Theorem.  Laplace, two-sided geometric and Tulap noise of scale b on ℓ₁ sensitivity Δ is
    (Δ/b)-DP (reference.md B2, M3).
    """
    return Loss(pure=(pure_epsilon(mechanism),))


def _thresholded(mechanism: ThresholdedCounts) -> Loss:
    """Theorem.  The noise's own loss, but for δ (trusted/extensions/open_keys/loss.py)."""
    return replace(loss_of(mechanism.noise), delta=failure_delta(mechanism))


_THEOREMS: dict[type[Any], Callable[[Any], Loss]] = {
    ThresholdedCounts: _thresholded,
    QuantileChoice: lambda mechanism: Loss(**choice_parts(mechanism)),
    SmoothNoise: lambda mechanism: Loss(**smooth_parts(mechanism)),
    ProposeTestRelease: lambda mechanism: Loss(**release_parts(mechanism)),
    GaussianNoise: _gaussian,
    LaplaceNoise: _pure,
    GeometricNoise: _pure,
    TulapNoise: _pure,
    CutTulapNoise: lambda mechanism: Loss(**cut_parts(mechanism)),
    **dict.fromkeys(SELECTION, lambda mechanism: Loss(Fraction(0), *selection_parts(mechanism))),
    NoisySGD: lambda mechanism: Loss(**sgd_parts(mechanism)),
    # one report of one record
    **dict.fromkeys(LOCAL, lambda mechanism: Loss(**local_parts(mechanism))),
    SymmetricGaussianNoise: lambda mechanism: Loss(mu_squared=symmetric_mu_squared(mechanism)),
    CountSearch: lambda mechanism: Loss(**search_parts(mechanism)),
    InTurn: lambda mechanism: Loss(**joined_parts(map(loss_of, mechanism.parts))),
    # folding: trusted/noise/search.py
    AboutCentre: lambda mechanism: Loss(
        **joined_parts(map(loss_of, (mechanism.centre, mechanism.distances)))
    ),
}
