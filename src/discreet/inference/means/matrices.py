"""The results of dp.covariance and dp.correlation:
matrices with an error for every pair of columns.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from discreet.errors import InvalidParameter, shown
from discreet.inference.means.pair_decode import MatrixStatistics, decode_pairs
from discreet.inference.means.pairs import (
    correlation_estimate,
    correlation_interval,
    covariance_estimate,
    covariance_interval,
)
from discreet.inference.results.decode import as_kind
from discreet.inference.results.laws import Array
from discreet.inference.results.results import Quantity, Result
from discreet.inference.results.summary import Summary
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.specs.queries.pairs import PairMoments

SMALLEST_EIGENVALUE = 1e-6  # of a repaired covariance matrix, relative to the largest


class MatrixResult(Result):
    """What both matrices share: one estimate a pair,
    the matrix as released (`matrix`) and repaired (`positive_definite`).
    """

    __slots__ = ()
    with_diagonal: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the matrix."""
        return tuple(factor.column for factor in self._query.factors)

    @property
    def _query(self) -> PairMoments:
        return as_kind(self.release.query, PairMoments)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of columns that `params` and `confidence_interval` run through."""
        places = range(len(self.names))
        return list(
            itertools.combinations_with_replacement(places, 2)
            if self.with_diagonal
            else itertools.combinations(places, 2)
        )

    @property
    def labels(self) -> list[tuple[str, ...]]:
        return [(self.names[j], self.names[k]) for j, k in self.pairs]

    @property
    def matrix(self) -> Array:
        """The symmetric matrix of estimates as released: noise may have made it indefinite."""
        return self._symmetric(self.unprojected)

    def between(self, first: str, second: str, level: float = 0.95) -> tuple[float, float, float]:
        """(estimate, low, high) of one pair of columns."""
        places = {frozenset(label): place for place, label in enumerate(self.labels)}
        place = places.get(frozenset((first, second)))
        if place is None:
            raise InvalidParameter(
                "between",
                f"{shown(first)} and {shown(second)} are no pair of this matrix",
                "it holds the columns that were asked for",
                f"name two of {', '.join(self.names)}",
            )
        main = self._main(level)
        return float(main.estimate[place]), float(main.low[place]), float(main.high[place])

    def positive_definite(self) -> Array:
        """The matrix, repaired by raising the eigenvalues of the noisy covariance matrix
        (post-processing, free; reference.md G5).

        Method.    In units where every declared range is [−1, 1], eigenvalues below a millionth of
                   the largest one (or of the noise's standard deviation, where none stands clear
                   of it) are raised to that. With a floor of 0 this is the nearest positive
                   semidefinite matrix in the Frobenius norm. A correlation matrix is that of the
                   repaired covariance matrix.
        Validity.  Estimates and intervals are those of the matrix as released; repaired entries
                   have no interval of their own.
        """
        raise NotImplementedError

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print, one line a pair."""
        shown = Result.summary(self, level, target=target)
        return replace(
            shown,
            title=f"{self.title} of {', '.join(self.names)}",
            notes=(*shown.notes, "Values outside a declared range count as the nearest bound."),
        )

    def plot(
        self,
        level: float = 0.95,
        *,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """A heat map of the matrix as released; saved if a path is given."""
        from discreet.plots.results import plot_matrix

        return plot_matrix(self, ax=ax, title=title, path=path)

    def _symmetric(self, values: Array) -> Array:
        size = len(self.names)
        matrix = np.eye(size)
        for (j, k), value in zip(self.pairs, values, strict=True):
            matrix[j, k] = matrix[k, j] = value
        return matrix

    def _statistics(self) -> MatrixStatistics:
        release = self.release
        integers = np.array(release.integers, dtype=object)[:, None]
        return decode_pairs(
            self._query,
            as_kind(release.mechanism, SymmetricGaussianNoise),
            integers,
            public_rows=release.public_rows,
            cluster=release.neighbors.rows,
        )

    def _kinds(self, *, with_diagonal: bool) -> list[tuple[list[tuple[int, int]], str]]:
        """The pairs of two columns ("xy"), and of a column with itself ("xx") where they are
        wanted; either only if there are any.
        """
        places = range(len(self.names))
        kinds = [
            (list(itertools.combinations(places, 2)), "xy"),
            ([(j, j) for j in places] if with_diagonal else [], "xx"),
        ]
        return [(pairs, which) for pairs, which in kinds if pairs]

    def _half_ranges(self) -> Array:
        """Half the declared range of each column: the value of c = 1 less that of c = 0."""
        return np.array(
            [float(factor.encoding.high * factor.encoding.step) for factor in self._query.factors]
        )

    def _repaired(self) -> Array:
        """The covariance matrix of c, with its eigenvalues raised."""
        size = len(self.names)
        matrix = np.empty((size, size))
        noise = 0.0
        for pairs, which in self._kinds(with_diagonal=True):
            estimate = covariance_estimate(self._statistics().stacked(pairs), which)
            noise = max(noise, float(np.sqrt(np.max(estimate.privacy))))
            for (j, k), value in zip(pairs, estimate.value, strict=True):
                matrix[j, k] = matrix[k, j] = value
        values, vectors = np.linalg.eigh(matrix)
        floor = SMALLEST_EIGENVALUE * max(values[-1], noise)
        repaired = (vectors * np.maximum(values, floor)) @ vectors.T
        return np.asarray((repaired + repaired.T) / 2)


class CovarianceResult(MatrixResult):
    """Variances and covariances (n−1 form) of columns clamped to their declared ranges.

    *Validity*: independent rows with fourth moments, which are released jointly: no shape is
    assumed. Intervals are for one pair at a time.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private covariances"
    about: ClassVar[str] = (
        "Fourth moments are released jointly, so no shape is assumed. One pair at a time."
    )

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        statistics, halves = self._statistics(), self._half_ranges()
        found: dict[tuple[int, int], tuple[float, ...]] = {}
        for pairs, which in self._kinds(with_diagonal=True):
            stacked = statistics.stacked(pairs)
            estimate = covariance_estimate(stacked, which)
            low, high = covariance_interval(
                estimate, stacked.rows, level, target=target, is_variance=which == "xx"
            )
            unit = np.array([halves[j] * halves[k] for j, k in pairs])
            sampling = estimate.supported if target == "population" else 0.0 * unit
            columns = (
                estimate.value * unit,
                low * unit,
                high * unit,
                sampling * unit**2,
                estimate.privacy * unit**2,
            )
            found |= dict(zip(pairs, zip(*columns, strict=True), strict=True))
        return (
            Quantity(
                "covariance",
                *(
                    np.array(column)
                    for column in zip(*(found[pair] for pair in self.pairs), strict=True)
                ),
            ),
        )

    def positive_definite(self) -> Array:
        """The covariance matrix with its eigenvalues raised to be positive
        (see `MatrixResult.positive_definite`).
        """
        halves = self._half_ranges()
        return np.asarray(self._repaired() * np.outer(halves, halves))


class CorrelationResult(MatrixResult):
    """Pearson correlations of columns clamped to their declared ranges.

    *Validity*: independent rows with fourth moments, which are released jointly. Estimates and
    intervals stay in [−1, 1]; `unprojected` and `matrix` are as released and can pass ±1 where the
    noise is large. A constant column
    has no correlation: its variance is lost in noise, and the interval is then wide, [−1, 1] as a
    rule.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private correlations"
    about: ClassVar[str] = (
        "Fisher's z with an estimated variance for sampling, the noise on its own scale. "
        "One pair at a time."
    )
    with_diagonal: ClassVar[bool] = False

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        correlation = correlation_estimate(self._statistics().stacked(self.pairs))
        low, high = correlation_interval(correlation, level, target=target)
        estimate = correlation.estimate
        sampling = estimate.supported if target == "population" else 0.0 * estimate.value
        return (Quantity("correlation", estimate.value, low, high, sampling, estimate.privacy),)

    def positive_definite(self) -> Array:
        """The correlation matrix of the repaired covariance matrix:
        unit diagonal, entries within [−1, 1].
        """
        covariance = self._repaired()
        deviations = np.sqrt(np.diag(covariance))
        matrix = covariance / np.outer(deviations, deviations)
        np.fill_diagonal(matrix, 1.0)
        return np.asarray(np.clip(matrix, -1.0, 1.0))
