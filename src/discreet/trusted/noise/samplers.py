"""From a mechanism and a private statistic to an answer: one sampler a mechanism, in one table.

Samplers of extensions are loaded when such a mechanism is first applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.minimiser import PerturbedMinimiser
from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.specs.mechanisms.procedures import BestOf
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.mechanisms.selection import SELECTION
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.specs.statistics import Histogram
from discreet.trusted.later import later
from discreet.trusted.noise.additive import add_noise
from discreet.trusted.noise.search import folded, search
from discreet.trusted.noise.source import Source


@dataclass(frozen=True, slots=True)
class Answer:
    """What a mechanism gave: whole numbers, and the names of keys that nobody declared,
    where it found some.
    """

    integers: tuple[int, ...]
    found: tuple[str, ...] = ()


def apply(mechanism: Mechanism, statistic: Any, source: Source) -> Answer:
    """The answer of a mechanism to a statistic of the kind that it reads, drawn with exactly the
    law that its theorem is about.
    """
    return SAMPLERS[type(mechanism)](mechanism, statistic, source)


def _added(mechanism: Any, statistic: list[int], source: Source) -> Answer:
    """Statistic plus noise on the mechanism's grid."""
    return Answer(add_noise(mechanism, statistic, source))


def _in_turn(mechanism: InTurn, statistic: Any, source: Source) -> Answer:
    """Every part on the same statistic; a search sees what the parts before it answered."""
    integers: list[int] = []
    for part in mechanism.stages:
        given = (
            search(part, statistic, source, known=tuple(integers))
            if isinstance(part, CountSearch)
            else apply(part, statistic, source).integers
        )
        integers += (len(given), *given)
    return Answer(tuple(integers))


def _about_centre(mechanism: AboutCentre, statistic: Any, source: Source) -> Answer:
    """The centre from the histogram, all else from the histogram folded there."""
    centre = apply(mechanism.centre, statistic, source).integers
    return Answer(
        (
            len(centre),
            *centre,
            *_in_turn(mechanism.distances, folded(statistic, centre[0]), source).integers,
        )
    )


def _searched(mechanism: CountSearch, histogram: Histogram, source: Source) -> Answer:
    return Answer(search(mechanism, histogram, source))


# ── extensions ────────────────────────────────────────────────────────────────────────────────────


def _whole(drawn: Callable[..., tuple[int, ...]]) -> Callable[[Any, Any, Source], Answer]:
    """The sampler of an extension that gives whole numbers."""
    return lambda mechanism, statistic, source: Answer(drawn(mechanism, statistic, source))


def _named(drawn: Callable[..., Any]) -> Callable[[Any, Any, Source], Answer]:
    """The sampler of an extension that gives whole numbers and texts."""
    return lambda mechanism, statistic, source: Answer(*drawn(mechanism, statistic, source))


_BY_DATA = _whole(later("discreet.trusted.extensions.data_dependent.draw", "quantile"))
SAMPLERS: dict[type[Any], Callable[[Any, Any, Source], Answer]] = {
    GaussianNoise: _added,
    LaplaceNoise: _added,
    GeometricNoise: _added,
    TulapNoise: _added,
    CutTulapNoise: _added,
    SymmetricGaussianNoise: _added,
    **dict.fromkeys(SELECTION, _whole(later("discreet.trusted.extensions.selection", "select"))),
    CountSearch: _searched,
    InTurn: _in_turn,
    AboutCentre: _about_centre,
    ThresholdedCounts: _named(later("discreet.trusted.extensions.open_keys.draw", "shown_keys")),
    QuantileChoice: _BY_DATA,
    SmoothNoise: _BY_DATA,
    ProposeTestRelease: _BY_DATA,
    NoisySGD: _whole(later("discreet.trusted.extensions.sgd.draw", "descend")),
    PerturbedMinimiser: _whole(later("discreet.trusted.learning.minimiser.draw", "minimised")),
    FriendlyMean: _whole(later("discreet.trusted.aggregation.friends.draw", "friendly_mean")),
    Thresholdout: _whole(later("discreet.trusted.aggregation.holdout.threshold", "thresholdout")),
    BestOf: _named(later("discreet.trusted.learning.procedures.draw", "best_run")),
}
