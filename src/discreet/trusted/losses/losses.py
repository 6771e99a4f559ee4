"""From a mechanism to its Loss: one theorem a mechanism, in one table.

The theorems of extensions are loaded when such a mechanism is priced, and not before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.errors import prices
from discreet.specs.holdout.thresholdout import Thresholdout
from discreet.specs.mechanisms.additive import (
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
)
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.friendly import FriendlyMean
from discreet.specs.mechanisms.in_turn import AboutCentre, InTurn
from discreet.specs.mechanisms.local import LOCAL
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.minimiser import PerturbedMinimiser
from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.specs.mechanisms.procedures import BestOf, StatedGuarantee
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
from discreet.trusted.later import later
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
        raise prices.no_theorem(type(mechanism).__name__)
    return theorem(mechanism)


def _in_turn(mechanism: InTurn) -> Loss:
    return sum(map(loss_of, mechanism.stages), Loss())


def _about_centre(mechanism: AboutCentre) -> Loss:
    """Folding at a released centre keeps how neighbours differ: trusted/noise/search.py."""
    return loss_of(mechanism.centre) + loss_of(mechanism.distances)


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
    ThresholdedCounts: later("discreet.trusted.extensions.open_keys.loss", "thresholded_loss"),
    QuantileChoice: later(
        "discreet.trusted.extensions.data_dependent.loss", "quantile_choice_loss"
    ),
    SmoothNoise: later("discreet.trusted.extensions.data_dependent.loss", "smooth_loss"),
    ProposeTestRelease: later(
        "discreet.trusted.extensions.data_dependent.loss", "propose_test_release_loss"
    ),
    NoisySGD: later("discreet.trusted.extensions.sgd.loss", "descent_loss"),
    PerturbedMinimiser: later("discreet.trusted.learning.minimiser.loss", "minimiser_loss"),
    FriendlyMean: later("discreet.trusted.aggregation.friends.loss", "friendly_loss"),
    BestOf: later("discreet.trusted.learning.procedures.loss", "best_of_loss"),
    StatedGuarantee: later("discreet.trusted.learning.procedures.loss", "stated_loss"),
    Thresholdout: later("discreet.trusted.aggregation.holdout.loss", "thresholdout_loss"),
    **dict.fromkeys(LOCAL, later("discreet.trusted.extensions.local.loss", "report_loss")),
}
