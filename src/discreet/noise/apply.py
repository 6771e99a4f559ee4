"""From a mechanism and a private statistic to an answer: one sampler a mechanism, in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.mechanisms import GaussianNoise, GeometricNoise, LaplaceNoise, Mechanism, TulapNoise
from discreet.mechanisms.additive import AdditiveNoise
from discreet.noise.sampling import draw
from discreet.noise.source import Source


@dataclass(frozen=True, slots=True)
class Answer:
    """What a mechanism gave: whole numbers, and the names of keys that nobody declared, where it found some."""

    integers: tuple[int, ...]
    found: tuple[str, ...] = ()


def apply(mechanism: Mechanism, statistic: Any, source: Source) -> Answer:
    """The answer of a mechanism to a statistic of the kind that it reads, drawn with exactly the law that its theorem is about."""
    return _SAMPLERS[type(mechanism)](mechanism, statistic, source)


def _added(mechanism: AdditiveNoise, statistic: list[int], source: Source) -> Answer:
    """Statistic plus noise on the mechanism's grid."""
    noise = draw(mechanism, len(statistic), source)
    cut = 1 << mechanism.refinement
    return Answer(tuple(value * cut + int(step) for value, step in zip(statistic, noise, strict=True)))


_SAMPLERS: dict[type[Any], Callable[[Any, Any, Source], Answer]] = {
    GaussianNoise: _added, LaplaceNoise: _added, GeometricNoise: _added, TulapNoise: _added,
}
