"""From the released integers of `PairMoments` to the features of each pair of columns,
with the variance of their noise.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.inference.means.pairs import PairFeatures
from discreet.inference.results.decode import at_most
from discreet.inference.results.laws import Array, Noise
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.specs.queries.pairs import PairMoments


@dataclass(frozen=True)
class MatrixStatistics:
    """The features of p columns by name and columns: ("x", j), ("E", j), ("xy", j, k), ("T", j), …;
    and each one's noise variance.
    """

    columns: int
    sums: Mapping[tuple[Any, ...], Array]
    noise: Mapping[tuple[Any, ...], float]
    cluster: int

    def stacked(self, pairs: list[tuple[int, int]]) -> PairFeatures:
        """The features of several pairs at once, all of two columns or all of one,
        along the first axis.
        """
        found = [self.pair(j, k) for j, k in pairs]
        return PairFeatures(
            {name: np.concatenate([each.sums[name] for each in found]) for name in found[0].sums},
            found[0].noise,
            self.cluster,
        )

    def pair(self, j: int, k: int) -> PairFeatures:
        """The features of columns j and k; of column j with itself where they are the same."""
        first, second = min(j, k), max(j, k)
        names: dict[str, tuple[Any, ...]] = {"1": ("1",)}
        for column, letter in ((j, "x"), (k, "y")):
            names |= {
                letter: ("x", column),
                f"E{letter}": ("E", column),
                f"T{letter}": ("T", column),
                f"Q{letter}": ("Q", column),
            }
        if j != k:
            names |= {
                "xy": ("xy", first, second),
                "W": ("W", first, second),
                "Ux": ("U", j, k),
                "Uy": ("U", k, j),
                "Vx": ("V", j, k),
                "Vy": ("V", k, j),
            }
        return PairFeatures(
            {name: self.sums[place] for name, place in names.items()},
            {name: self.noise[place] for name, place in names.items()},
            self.cluster,
        )


def layout(columns: int) -> list[tuple[Any, ...]]:
    """The features in the order in which they are released:
    the upper triangle of the matrix, then the further numbers.
    """
    places: list[tuple[Any, ...]] = [("1",), *(("x", j) for j in range(columns))]
    for j in range(columns):
        places += [("E", j), *(("xy", j, k) for k in range(j + 1, columns))]
    for j in range(columns):
        places += [("T", j), ("Q", j)]
    for j, k in itertools.permutations(range(columns), 2):
        places += [("U", j, k), ("V", j, k)]
    return places + [("W", j, k) for j, k in itertools.combinations(range(columns), 2)]


def decode_pairs(
    query: PairMoments,
    mechanism: SymmetricGaussianNoise,
    integers: npt.NDArray[Any],
    *,
    public_rows: int | None,
    cluster: int,
) -> MatrixStatistics:
    """`integers` has shape (numbers, …), so that simulations can decode thousands of releases at
    once.
    """
    step = float(mechanism.step)
    sums, noise = {}, {}
    for place, unit, steps in zip(
        layout(query.columns), query.unit_values(), integers, strict=True
    ):
        off = place[0] in ("x", "xy")
        sums[place] = np.asarray(steps, dtype=float) * (step * unit)
        noise[place] = (mechanism.off_variance if off else mechanism.variance) * unit**2
    if public_rows is not None and not query.count:
        sums["1",] = np.full(sums["1",].shape, float(public_rows))
        noise["1",] = 0.0
    elif public_rows is not None:
        count, left = at_most(sums["1",], Noise(noise["1",]), public_rows)
        sums["1",], noise["1",] = count, left.variance
    return MatrixStatistics(query.columns, sums, noise, cluster)
