"""Columns to mean 0 and standard deviation 1, by moments that were released."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

import discreet as dp
from discreet.inference.means.results import column_grid, mean_statistics
from discreet.sklearn.base import PrivateEstimator
from discreet.sklearn.cells import Floats, numbers_of

SMALLEST_SCALE = 1e-3  # of a declared range; noise may leave less, or less than nothing


class PrivateStandardScaler(
    OneToOneFeatureMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    PrivateEstimator,
):
    """Scales each column by a mean and a standard deviation that `fit` releases at `spend`.

    Method.    One release of joint moments a column (count, sum and sum of squares, as `dp.mean`
               has them), at equal shares of the spend; `mean_` within the declared bounds, `scale_`
               from a thousandth to a half of their range.
    Validity.  `transform` reads each row for itself, with these released numbers; what is fitted on
               its rows afterwards pays for itself, and both prices add up (one `ledger=` counts
               them). `scaled_bounds_` are the declared bounds after scaling.

    A value beyond its bounds counts as the nearest one; what is no number is left out of the
    moments and stays missing (NaN).
    """

    def __init__(
        self,
        spend: Any = None,
        *,
        neighbors: Any = None,
        bounds: Any = None,
        with_mean: bool = True,
        with_std: bool = True,
        budget: Any = None,
        ledger: Any = None,
    ) -> None:
        self.spend, self.neighbors, self.bounds = spend, neighbors, bounds
        self.with_mean, self.with_std, self.budget, self.ledger = (
            with_mean,
            with_std,
            budget,
            ledger,
        )

    def fit(self, X: Any, y: Any = None) -> Any:  # noqa: N803
        """Releases means and standard deviations of the columns of X; debits `spend`."""
        table = self._table(X, reset=True)
        columns, schema = self._features(table, fill=False)
        session = self._opened(columns, schema, self.spend)
        shares = self.spend.split(len(columns))
        self.results_ = tuple(
            dp.mean(session, name, spend=share) for name, share in zip(columns, shares, strict=True)
        )
        self._ends = np.array([(column.low, column.high) for column in schema.values()])
        means = [result.estimate for result in self.results_]
        self.mean_ = np.array(means) if self.with_mean else np.zeros(len(columns))
        scales = [_scale(result) for result in self.results_]
        self.scale_ = np.array(scales) if self.with_std else np.ones(len(columns))
        self.scaled_bounds_ = tuple((end - self.mean_) / self.scale_ for end in self._ends.T)
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """The rows of X, scaled."""
        check_is_fitted(self, "scale_")
        columns = [numbers_of(column) for column in self._table(X, reset=False).columns]
        with np.errstate(all="ignore"):
            scaled = [
                (np.clip(column, *ends) - mean) / scale
                for column, ends, mean, scale in zip(
                    columns, self._ends, self.mean_, self.scale_, strict=True
                )
            ]
        return np.stack(scaled, axis=1)

    def inverse_transform(self, X: Any) -> Floats:  # noqa: N803
        """Scaled rows in the units of the columns."""
        check_is_fitted(self, "scale_")
        return np.asarray(np.asarray(X, dtype=float) * self.scale_ + self.mean_)


def _scale(result: Any) -> float:
    """The standard deviation of a release of moments, kept to what its range allows."""
    statistics, half = mean_statistics(result), column_grid(result).half_range
    variance = float((statistics.squares() / statistics.rows)[0])
    return half * min(max(math.sqrt(max(variance, 0.0)), 2 * SMALLEST_SCALE), 1.0)
