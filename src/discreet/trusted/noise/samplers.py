"""From a mechanism and a private statistic to an answer: one sampler a mechanism, in one table.

Samplers of extensions are loaded when such a mechanism is first applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.specs.mechanisms.additive import (
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
)
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.in_turn import AboutCentre, InTurn
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.specs.mechanisms.procedures import BestOf
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.mechanisms.selection import SELECTION
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.specs.statistics import Histogram, KeyCounts
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


# ── extensions ────────────────────────────────────────────────────────────────────────────────────


def _selected(mechanism: Mechanism, statistic: list[int], source: Source) -> Answer:
    """Indices of chosen candidates, or ones and zeros."""
    from discreet.trusted.extensions.selection import SELECTORS

    return Answer(SELECTORS[type(mechanism)](mechanism, statistic, source))


def _shown_keys(mechanism: ThresholdedCounts, counts: KeyCounts, source: Source) -> Answer:
    from discreet.trusted.extensions.open_keys.draw import shown_keys

    return Answer(*shown_keys(mechanism, counts, source))


def _by_data(mechanism: Mechanism, histogram: Histogram, source: Source) -> Answer:
    """A quantile, by a mechanism whose noise depends on the data."""
    from discreet.trusted.extensions.data_dependent.draw import quantile

    return Answer(quantile(mechanism, histogram, source))


def _descended(mechanism: NoisySGD, rows: Any, source: Source) -> Answer:
    from discreet.trusted.extensions.sgd.draw import descend

    return Answer(descend(mechanism, rows, source))


def _best_run(mechanism: BestOf, runs: Any, source: Source) -> Answer:
    from discreet.trusted.extensions.procedures.draw import best_run

    return Answer(*best_run(mechanism, runs, source))


SAMPLERS: dict[type[Any], Callable[[Any, Any, Source], Answer]] = {
    GaussianNoise: _added,
    LaplaceNoise: _added,
    GeometricNoise: _added,
    TulapNoise: _added,
    CutTulapNoise: _added,
    SymmetricGaussianNoise: _added,
    **dict.fromkeys(SELECTION, _selected),
    CountSearch: lambda mechanism, tally, source: Answer(search(mechanism, tally, source)),
    InTurn: _in_turn,
    AboutCentre: _about_centre,
    ThresholdedCounts: _shown_keys,
    QuantileChoice: _by_data,
    SmoothNoise: _by_data,
    ProposeTestRelease: _by_data,
    NoisySGD: _descended,
    BestOf: _best_run,
}
