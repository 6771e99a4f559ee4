"""From a mechanism to its Loss: one theorem a mechanism, in one table.

The theorems of extensions are loaded when such a mechanism is priced, and not before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.errors import NoTheorem
from discreet.specs.mechanisms.additive import (
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
from discreet.specs.mechanisms.procedures import PROCEDURES
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.mechanisms.selection import (
    AboveThreshold,
    ExponentialChoice,
    NoisyMax,
    PermuteAndFlip,
    TopChoices,
)
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.trusted.losses.loss import Loss
from discreet.trusted.losses.theorems import (
    above_threshold_loss,
    cut_tulap_loss,
    exponential_choice_loss,
    gaussian_loss,
    noisy_max_loss,
    permute_and_flip_loss,
    pure_loss,
    search_loss,
    symmetric_loss,
    top_choices_loss,
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


def _in_turn(mechanism: InTurn) -> Loss:
    return sum(map(loss_of, mechanism.stages), Loss())


def _about_centre(mechanism: AboutCentre) -> Loss:
    """Folding at a released centre keeps how neighbours differ: trusted/noise/search.py."""
    return loss_of(mechanism.centre) + loss_of(mechanism.distances)


def _thresholded(mechanism: ThresholdedCounts) -> Loss:
    from discreet.trusted.extensions.open_keys.loss import thresholded_loss

    return thresholded_loss(mechanism)


def _by_data(mechanism: Any) -> Loss:
    """Of a quantile, by a mechanism whose noise depends on the data."""
    from discreet.trusted.extensions.data_dependent.loss import LOSSES

    return LOSSES[type(mechanism)](mechanism)


def _descent(mechanism: NoisySGD) -> Loss:
    from discreet.trusted.extensions.sgd.loss import descent_loss

    return descent_loss(mechanism)


def _procedure(mechanism: Any) -> Loss:
    """Of a whole procedure, by what is known of it: hidden runs, or a stated guarantee."""
    from discreet.trusted.extensions.procedures.loss import LOSSES

    return LOSSES[type(mechanism)](mechanism)


def _report(mechanism: Any) -> Loss:
    """One report of one record."""
    from discreet.trusted.extensions.local.loss import report_loss

    return report_loss(mechanism)


_THEOREMS: dict[type[Any], Callable[[Any], Loss]] = {
    GaussianNoise: gaussian_loss,
    LaplaceNoise: pure_loss,
    GeometricNoise: pure_loss,
    TulapNoise: pure_loss,
    CutTulapNoise: cut_tulap_loss,
    SymmetricGaussianNoise: symmetric_loss,
    CountSearch: search_loss,
    ExponentialChoice: exponential_choice_loss,
    PermuteAndFlip: permute_and_flip_loss,
    NoisyMax: noisy_max_loss,
    TopChoices: top_choices_loss,
    AboveThreshold: above_threshold_loss,
    InTurn: _in_turn,
    AboutCentre: _about_centre,
    ThresholdedCounts: _thresholded,
    QuantileChoice: _by_data,
    SmoothNoise: _by_data,
    ProposeTestRelease: _by_data,
    NoisySGD: _descent,
    **dict.fromkeys(PROCEDURES, _procedure),
    **dict.fromkeys(LOCAL, _report),
}
