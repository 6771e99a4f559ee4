"""From released integers to the numbers that inference reads: what kind of specification a release
has, the law of its noise, and the transcript of a search.

Works on any array of integers of shape (coordinates, …),
so that simulations can decode thousands at once.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidParameter
from discreet.inference.results.laws import Array, Noise
from discreet.search.policy import Count
from discreet.specs.mechanisms.additive import AdditiveNoise, GaussianNoise
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.queries.keys import Held
from discreet.trusted.release import Release

Spec = TypeVar("Spec")


def as_kind(spec: object, kind: type[Spec]) -> Spec:
    """A query, mechanism or policy of a release, known to be of one kind."""
    if isinstance(spec, kind):
        return spec
    raise wrong_kind(spec, kind.__name__)


def wrong_kind(spec: object, wanted: str) -> InvalidParameter:
    """The refusal of a release whose specification is not what its result reads."""
    return InvalidParameter(
        "a release",
        f"it has a {type(spec).__name__} where its result reads a {wanted}",
        "numbers of another statistic or noise would be read wrongly",
        "pass what to_json() of a result wrote, unchanged",
    )


def additive(mechanism: Mechanism) -> AdditiveNoise | CutTulapNoise:
    """A mechanism that adds independent noise to every coordinate."""
    if isinstance(mechanism, (AdditiveNoise, CutTulapNoise)):
        return mechanism
    raise wrong_kind(mechanism, "AdditiveNoise")


def noise_of(mechanism: Mechanism, unit: float) -> Noise:
    """The law of one coordinate's noise when one integer of the statistic stands for `unit`."""
    variance = additive(mechanism).variance * unit**2
    return Noise(variance, 0.0 if isinstance(mechanism, GaussianNoise) else (variance / 2) ** 2)


def to_float(mechanism: Mechanism, integers: npt.NDArray[Any], unit: float) -> Array:
    """Released grid steps as numbers: steps · step · unit."""
    return np.asarray(integers, dtype=float) * (float(additive(mechanism).step) * unit)


def search_answers(search: CountSearch, integers: tuple[int, ...]) -> tuple[Count, ...]:
    """The noisy counts of a search, in the order in which they were asked, from its transcript
    (place, share, steps)*: the very numbers that its policy was told.
    """
    return tuple(
        Count(place, share, steps / (1 << search.noise(share).refinement), search.deviation(share))
        for place, share, steps in zip(*(integers[start::3] for start in range(3)), strict=True)
    )


def all_rows(release: Release) -> int | None:
    """The number of rows that a release is about: of all, where that is public and none is filtered
    out or left out for a cell without a value.
    """
    left_out = release.description.where or any(isinstance(key, Held) for key in release.query.keys)
    return None if left_out else release.public_rows


def at_most(count: Array, noise: Noise, rows: int) -> tuple[Array, Noise]:
    """A noisy count of some of a public number of rows, and its noise: where it is beyond that
    number, the number itself, without noise.

    Method.   The count that is most likely, N ≤ n, and the law of the others given it.
    Validity. Exact where all rows count; where nearly all do, coverage of what is computed with it
              falls by less than 0.001 (docs/theory/missing.md).
    """
    beyond = count >= rows
    kept = np.where(beyond, 0.0, 1.0)
    return np.minimum(count, float(rows)), Noise(noise.variance * kept, noise.fourth * kept)
