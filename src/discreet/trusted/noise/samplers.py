"""How each mechanism draws: one sampler a mechanism, in one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.specs.mechanisms.additive import (
    AdditiveNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
)
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.in_turn import AboutCentre, InTurn
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.trusted.extensions.data_dependent.draw import (
    add_smooth_noise,
    choose_cell,
    propose_test_release,
)
from discreet.trusted.extensions.open_keys.draw import shown_keys
from discreet.trusted.extensions.sgd.draw import descend
from discreet.trusted.noise.apply import Answer, apply
from discreet.trusted.noise.cut_tulap import draw_cut
from discreet.trusted.noise.folded import folded
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.search import search
from discreet.trusted.noise.selection import SELECTORS
from discreet.trusted.noise.source import Source
from discreet.trusted.noise.symmetric import draw_symmetric


def _added(mechanism: AdditiveNoise, statistic: list[int], source: Source) -> Answer:
    """Statistic plus noise on the mechanism's grid."""
    noise = draw(mechanism, len(statistic), source)
    cut = 1 << mechanism.refinement
    return Answer(
        tuple(value * cut + int(step) for value, step in zip(statistic, noise, strict=True))
    )


def _added_within_reach(mechanism: CutTulapNoise, statistic: list[int], source: Source) -> Answer:
    """Statistic plus noise that is cut at both ends."""
    noise = draw_cut(mechanism, len(statistic), source)
    return Answer(
        tuple(
            (value << mechanism.refinement) + step
            for value, step in zip(statistic, noise, strict=True)
        )
    )


def _added_symmetrically(
    mechanism: SymmetricGaussianNoise, statistic: list[int], source: Source
) -> Answer:
    """Statistic plus symmetric matrix noise."""
    noise = draw_symmetric(mechanism, len(statistic), source)
    cut = 1 << mechanism.refinement
    return Answer(
        tuple(value * cut + int(step) for value, step in zip(statistic, noise, strict=True))
    )


def _selected(mechanism: Mechanism, statistic: list[int], source: Source) -> Answer:
    """Indices of chosen candidates, or ones and zeros."""
    return Answer(SELECTORS[type(mechanism)](mechanism, statistic, source))


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


SAMPLERS: dict[type[Any], Callable[[Any, Any, Source], Answer]] = {
    ThresholdedCounts: lambda mechanism, counts, source: Answer(
        *shown_keys(mechanism, counts, source)
    ),
    QuantileChoice: lambda mechanism, histogram, source: Answer(
        choose_cell(mechanism, histogram, source)
    ),
    SmoothNoise: lambda mechanism, histogram, source: Answer(
        add_smooth_noise(mechanism, histogram, source)
    ),
    ProposeTestRelease: lambda mechanism, histogram, source: Answer(
        propose_test_release(mechanism, histogram, source)
    ),
    GaussianNoise: _added,
    LaplaceNoise: _added,
    GeometricNoise: _added,
    TulapNoise: _added,
    CutTulapNoise: _added_within_reach,
    **dict.fromkeys(SELECTORS, _selected),
    SymmetricGaussianNoise: _added_symmetrically,
    CountSearch: lambda mechanism, histogram, source: Answer(search(mechanism, histogram, source)),
    InTurn: _in_turn,
    AboutCentre: _about_centre,
    NoisySGD: lambda mechanism, rows, source: Answer(descend(mechanism, rows, source)),
}
