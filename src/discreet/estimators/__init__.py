"""Public estimators."""

from discreet.estimators.basic import count, histogram, mean, proportion, sum, table, variance
from discreet.estimators.distributions import density, ecdf
from discreet.estimators.matrices import correlation, covariance
from discreet.estimators.quantiles import median, quantile, quantiles
from discreet.estimators.scale import iqr, mad
from discreet.estimators.selection import Watch, above_threshold, mode, select, top, watch
from discreet.estimators.unbounded import location, truncated_mean, unbounded_mean

__all__ = ["Watch", "above_threshold", "correlation", "count", "covariance", "density", "ecdf", "histogram", "iqr", "location", "mad", "mean", "median", "mode", "proportion", "quantile", "quantiles", "select", "sum", "table", "top", "truncated_mean", "unbounded_mean", "variance", "watch"]
