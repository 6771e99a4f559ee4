"""From a mechanism and a private statistic to an answer; the table of samplers is loaded when the
first answer is drawn, so that a device need not have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.specs.mechanisms.mechanism import Mechanism
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
    from discreet.trusted.noise.samplers import SAMPLERS

    return SAMPLERS[type(mechanism)](mechanism, statistic, source)
