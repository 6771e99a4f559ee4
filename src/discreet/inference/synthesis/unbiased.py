"""What noisy tables say without a model: the unbiased linear estimate of least variance of any sum
over the cells of measured tables.

A sum is Σ_T Σ_c x_T(c)·f_T(c), T sets of columns that lie in measured tables, f_T functions of
their cells (k of them at a time). C_s centres a table over every axis of s.

Theorem.  For each set s of columns let ȳ_s be the mean of all measured tables that hold s, summed
          down to s, by inverse variances 1/(σ_r²·|r∖s|); v_s is its variance in a cell. Then

              x̂_T = Σ_{s ⊆ T} C_s ȳ_s / |T∖s|

          is unbiased for x_T, no linear unbiased estimate varies less, and sums over several T have
          noise of covariance Σ_s v_s·G_s·G_sᵀ, G_s = Σ_T C_s(mean of f_T over T∖s). Where the
          number of rows is public it stands for ȳ_∅, and v_∅ = 0.
Proof.    docs/theory/synthesis.md.
Checked.  tests/inference/synthesis/test_unbiased.py::test_no_linear_estimate_varies_less
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.inference.results.laws import Array
from discreet.inference.synthesis.model import Noisy, summed
from discreet.inference.synthesis.trees import Clique, cell_count

Functions = Mapping[Clique, Array]  # of a table's cells: arrays of shape (k, *shape)


@dataclass(frozen=True)
class NoisyTables:
    """Measured tables by their columns, and the number of rows where it is public."""

    sizes: tuple[int, ...]
    measured: Mapping[Clique, Noisy]
    public_rows: int | None

    @cached_property
    def rows(self) -> float:
        """The number of rows, public or as the tables say; at least 1."""
        if self.public_rows is not None:
            return float(max(self.public_rows, 1))
        return max(float(self.mean(())[0]), 1.0)

    def supports(self, columns: Clique) -> bool:
        """Whether some measured table holds all these columns."""
        return any(set(columns) <= set(table) for table in self.measured)

    @cached_property
    def _kept(self) -> dict[Clique, tuple[Array, float]]:
        return {}

    def mean(self, columns: Clique) -> tuple[Array, float]:
        """(ȳ_s, v_s): the best mean of all tables that hold these columns, and its variance in each
        cell, before centring.
        """
        if not columns and self.public_rows is not None:
            return np.array(float(self.public_rows)), 0.0
        if columns not in self._kept:
            total, weight = np.zeros([self.sizes[j] for j in columns]), 0.0
            for table, noisy in self.measured.items():
                if set(columns) <= set(table):
                    over = cell_count(self.sizes, table) / cell_count(self.sizes, columns)
                    one = 1 / (noisy.sigma**2 * over)
                    total = total + one * summed(noisy.values, table, columns)
                    weight += one
            self._kept[columns] = total / weight, 1 / weight
        return self._kept[columns]

    def table(self, columns: Clique) -> Array:
        """x̂_T over sorted columns; cells may be negative."""
        whole = np.zeros([self.sizes[j] for j in columns])
        for part in subsets(columns):
            shape = [self.sizes[j] if j in part else 1 for j in columns]
            spread = cell_count(self.sizes, columns) / cell_count(self.sizes, part)
            centre = centred(self.mean(part)[0], range(len(part)))
            whole = whole + centre.reshape(shape) / spread
        return whole

    def cell_variance(self, columns: Clique, share: Array | float = 0.0) -> Array:
        """The noise variance of each cell of x̂_T less `share` of the number of rows: for one cell
        ‖C_s(mean of its indicator)‖² = Π_{j∈s}(1 − 1/|j|)/|T∖s|², alike for all cells.
        """
        found = np.zeros(np.shape(share))
        for part in subsets(columns):
            spread = cell_count(self.sizes, columns) / cell_count(self.sizes, part)
            if part:
                within = math.prod(1 - 1 / self.sizes[j] for j in part)
                found = found + self.mean(part)[1] * within / spread**2
            else:
                found = found + self.mean(part)[1] * (1 / spread - np.asarray(share)) ** 2
        return found

    def sums(self, functions: Functions) -> tuple[Array, Array]:
        """(estimates, noise covariance) of k sums over cells of one table or several."""
        weights = gathered(functions, self.sizes)
        k = len(next(iter(functions.values())))
        found, covariance = np.zeros(k), np.zeros((k, k))
        for part, weight in weights.items():
            mean, variance = self.mean(part)
            flat = weight.reshape(k, -1)
            found = found + flat @ mean.ravel()
            covariance = covariance + variance * (flat @ flat.T)
        return found, covariance


def gathered(functions: Functions, sizes: tuple[int, ...]) -> dict[Clique, Array]:
    """G_s for every set s of columns that some table of the functions holds."""
    weights: dict[Clique, Array] = {}
    for columns, function in functions.items():
        for part in subsets(columns):
            gone = tuple(1 + place for place, j in enumerate(columns) if j not in part)
            mean = function.mean(axis=gone) if gone else function
            weight = centred(mean, range(1, 1 + len(part)))
            weights[part] = weights[part] + weight if part in weights else weight
    return weights


def centred(table: Array, axes: range) -> Array:
    """A table less its means over each of some axes."""
    for axis in axes:
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def subsets(columns: Clique) -> Iterator[Clique]:
    """All sets of some columns, the empty one first."""
    for size in range(len(columns) + 1):
        yield from itertools.combinations(columns, size)


def merged(tables: list[tuple[Clique, Noisy]]) -> dict[Clique, Noisy]:
    """Tables that were measured several times as one, by inverse variances."""
    found: dict[Clique, Noisy] = {}
    for columns, noisy in tables:
        if columns in found:
            first, second = found[columns].sigma ** -2, noisy.sigma**-2
            values = (first * found[columns].values + second * noisy.values) / (first + second)
            noisy = Noisy(values, (first + second) ** -0.5)
        found[columns] = noisy
    return found
