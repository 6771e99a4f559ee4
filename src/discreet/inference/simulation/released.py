"""Released statistics in the column's own units, with the law of their noise: what simulation-based
inference starts from (`fiducial`, `bootstrap`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.errors import NoTheorem
from discreet.inference.counts.tulap import ReleasedNoise, released_noise
from discreet.inference.results.decode import additive
from discreet.inference.results.laws import Array
from discreet.inference.results.results import Result
from discreet.specs.queries.moments import Moments


@dataclass(frozen=True)
class ReleasedMoments:
    """Σx and Σ(x − center)² over all rows, x clamped to the declared range (low, high),
    each with independent noise.
    """

    values: Array
    noises: tuple[ReleasedNoise, ReleasedNoise]
    rows: int
    low: float
    high: float

    @property
    def center(self) -> float:
        """The middle of the range, about which squares are taken."""
        return (self.low + self.high) / 2

    def of(self, data: Array) -> Array:
        """The same statistics of simulated data, (draws, rows) → (draws, 2):
        clamped as the release was.
        """
        clamped = np.clip(data, self.low, self.high)
        return np.stack([clamped.sum(axis=1), ((clamped - self.center) ** 2).sum(axis=1)], axis=1)


def released_moments(result: Result) -> ReleasedMoments:
    """The two numbers that a `dp.mean` or `dp.sum` of all rows released,
    where their number is public.

    Method.   The release is a·Σc and b·Σ(1 − c²) on whole numbers, c the place of a value in its
              range, from −1 to 1; both are linear in the sums above.
    Validity. Values lie on the column's grid; simulated ones need not, as long as a grid step is
              small against the noise of a row's share.
    """
    release = result.release
    query = release.query
    if (
        not isinstance(query, Moments)
        or query.cells != 1
        or query.design.count
        or release.public_rows is None
        or len(release.integers) != 2
    ):
        raise NoTheorem(
            "released moments",
            "this is no mean or sum of all rows of a public number",
            "only there the released numbers are two sums of the data",
            "use dp.mean or dp.sum without where= under neighbors=Replace(), of a column whose "
            "missing= says what a cell without a value counts as",
        )
    grid, noise, rows = (
        query.factor.encoding,
        released_noise(release.mechanism),
        release.public_rows,
    )
    half = grid.high * float(grid.step)
    sums = [
        integer * float(additive(release.mechanism).step) * unit
        for integer, unit in zip(release.integers, query.unit_values(), strict=True)
    ]
    scales = [unit * size for unit, size in zip(query.unit_values(), (half, half**2), strict=True)]
    values = np.array([rows * grid.center + half * sums[0], half**2 * (rows - sums[1])])
    laws = tuple(
        ReleasedNoise(noise.kind, noise.spread * scale, noise.step * scale) for scale in scales
    )
    return ReleasedMoments(values, (laws[0], laws[1]), rows, grid.center - half, grid.center + half)
