"""The result classes of the basic estimators, by the estimator's name."""

from __future__ import annotations

from discreet.inference.counts.open_keys import OpenTableResult
from discreet.inference.counts.results import (
    CountResult,
    HistogramResult,
    ProportionResult,
    TableResult,
)
from discreet.inference.means.matrices import CorrelationResult, CovarianceResult
from discreet.inference.means.results import MeanResult, SumResult, VarianceResult
from discreet.inference.means.unbounded import TruncatedMeanResult
from discreet.inference.quantiles.cdf import EcdfResult
from discreet.inference.quantiles.densities import DensityResult
from discreet.inference.quantiles.quantiles import MedianResult, QuantileResult, QuantilesResult
from discreet.inference.quantiles.scale import IQRResult, MADResult, NormalMADResult
from discreet.inference.results.results import Result

RESULTS: dict[str, type[Result]] = {
    "count": CountResult,
    "sum": SumResult,
    "mean": MeanResult,
    "variance": VarianceResult,
    "proportion": ProportionResult,
    "histogram": HistogramResult,
    "table": TableResult,
    "ecdf": EcdfResult,
    "density": DensityResult,
    "open table": OpenTableResult,
    "covariance": CovarianceResult,
    "correlation": CorrelationResult,
    "iqr": IQRResult,
    "mad": MADResult,
    "normal mad": NormalMADResult,
    "truncated mean": TruncatedMeanResult,
    "median": MedianResult,
    "quantile": QuantileResult,
    "quantiles": QuantilesResult,
}
