"""One record an estimator: what `discreet` exports, `dp.preview` forecasts, `dp.from_json` reads
and `dp.power` plans.

A record names places, such as "estimators.basic:mean", and `resolve` is the one function that
imports them, on first use: the table itself imports nothing. A new estimator is its files and one
record.
"""

from __future__ import annotations

import importlib
import types
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    """A public estimator.

    function   of a session, as users call it
    question   of public facts, as it is asked, or several that are asked one by one; "" for a
               procedure whose later questions depend on earlier answers
    results    the classes of its results, by what their JSON is known by: the estimator that a
               release names, or a format of `FORMATS`
    forecast   (session, question, assume, level), or without a question
               (session, *asked, spend=, assume=, level=, **options)
    plan       of a test: its plan from spend, alternative, alpha and what is assumed
    effect     of a test: the assumption whose least value dp.smallest_effect finds
    """

    function: str
    question: str = ""
    results: dict[str, str] = field(default_factory=dict, hash=False)
    forecast: str = "asking.expected:expected_preview"
    plan: str = ""
    effect: str = ""

    @property
    def name(self) -> str:
        """The public name: ``dp.mean``."""
        return self.function.partition(":")[2]


_FITS = {
    "discreet-fit": "inference.regression.fit:RegressionResult",
    "discreet-lecture-fit": "inference.regression.classical:ClassicalResult",
    "discreet-point-fit": "inference.regression.point_fit:PointFit",
}
_MOMENTS_FIT = {"discreet-moments-fit": "inference.regression.moments_fit:MomentsResult"}
_MINIMISER_FIT = {"discreet-minimiser-fit": "inference.minimisers.results:PerturbedResult"}

RECORDS = (
    Record(
        "estimators.basic:count",
        "estimators.questions:count_question",
        {"count": "inference.counts.results:CountResult"},
    ),
    Record(
        "estimators.basic:sum",
        "estimators.questions:sum_question",
        {"sum": "inference.means.results:SumResult"},
    ),
    Record(
        "estimators.basic:mean",
        "estimators.questions:mean_question",
        {"mean": "inference.means.results:MeanResult"},
    ),
    Record(
        "estimators.basic:variance",
        "estimators.questions:variance_question",
        {"variance": "inference.means.results:VarianceResult"},
    ),
    Record(
        "estimators.standard_deviation:std",
        "estimators.standard_deviation:std_question",
        {"standard deviation": "inference.means.standard_deviations:StdResult"},
    ),
    Record(
        "estimators.basic:proportion",
        "estimators.questions:proportion_question",
        {"proportion": "inference.counts.results:ProportionResult"},
    ),
    Record(
        "estimators.basic:histogram",
        "estimators.questions:histogram_question",
        {"histogram": "inference.counts.results:HistogramResult"},
    ),
    Record(
        "estimators.basic:table",
        "estimators.questions:table_question",
        {
            "table": "inference.counts.results:TableResult",
            "open table": "inference.counts.open_keys:OpenTableResult",
        },
    ),
    Record(
        "estimators.missing:missing",
        "estimators.missing:missing_question",
        {"missing": "inference.counts.missing:MissingResult"},
    ),
    Record(
        "estimators.describe:describe",
        results={"describe": "inference.means.described:DescribeResult"},
        forecast="estimators.forecasts.described:describe_preview",
    ),
    Record(
        "estimators.distributions:ecdf",
        "estimators.distributions:ecdf_question",
        {"ecdf": "inference.quantiles.cdf:EcdfResult"},
    ),
    Record(
        "estimators.distributions:density",
        "estimators.distributions:density_question",
        {"density": "inference.quantiles.densities:DensityResult"},
    ),
    Record(
        "estimators.matrices:covariance",
        "estimators.matrices:covariance_question",
        {"covariance": "inference.means.matrices:CovarianceResult"},
    ),
    Record(
        "estimators.matrices:correlation",
        "estimators.matrices:correlation_question",
        {"correlation": "inference.means.matrices:CorrelationResult"},
    ),
    Record(
        "estimators.quantiles:median",
        "estimators.quantiles:median_question",
        {
            "median": "inference.quantiles.quantiles:MedianResult",
            "median by cells": "inference.quantiles.cell_quantiles:CellMediansResult",
        },
        "estimators.forecasts.quantile:quantile_preview",
    ),
    Record(
        "estimators.quantiles:quantile",
        "estimators.quantiles:quantile_question",
        {
            "quantile": "inference.quantiles.quantiles:QuantileResult",
            "quantile by cells": "inference.quantiles.cell_quantiles:CellQuantilesResult",
        },
        "estimators.forecasts.quantile:quantile_preview",
    ),
    Record(
        "estimators.quantiles:quantiles",
        "estimators.quantiles:quantiles_question",
        {"quantiles": "inference.quantiles.quantiles:QuantilesResult"},
        "estimators.forecasts.quantile:quantile_preview",
    ),
    Record(
        "estimators.scale:iqr",
        "estimators.scale:iqr_question",
        {"iqr": "inference.quantiles.scale:IQRResult"},
        "estimators.forecasts.scale:scale_preview",
    ),
    Record(
        "estimators.scale:mad",
        "estimators.scale:mad_question",
        {
            "mad": "inference.quantiles.scale:MADResult",
            "normal mad": "inference.quantiles.scale:NormalMADResult",
        },
        "estimators.forecasts.scale:scale_preview",
    ),
    Record(
        "estimators.unbounded:truncated_mean",
        "estimators.unbounded:truncated_mean_question",
        {"truncated mean": "inference.means.unbounded:TruncatedMeanResult"},
    ),
    Record(
        "estimators.unbounded:unbounded_mean",
        "estimators.forecasts.unbounded:unbounded_mean_question",
        {"unbounded mean": "inference.means.unbounded:UnboundedMeanResult"},
        "estimators.forecasts.unbounded:unbounded_preview",
    ),
    Record(
        "estimators.unbounded:location",
        "estimators.forecasts.unbounded:location_question",
        {"location": "inference.means.unbounded:LocationResult"},
        "estimators.forecasts.unbounded:unbounded_preview",
    ),
    Record(
        "estimators.trimmed:trimmed_mean",
        "estimators.trimmed:trimmed_mean_question",
        {"trimmed mean": "inference.means.trimmed:TrimmedMeanResult"},
        "estimators.forecasts.trimmed:trimmed_preview",
    ),
    Record(
        "estimators.selection:select",
        "estimators.selection_questions:select_asked",
        {"select": "inference.counts.selection:ChoiceResult"},
        "estimators.forecasts.selection:selection_preview",
    ),
    Record(
        "estimators.selection:mode",
        "estimators.selection_questions:mode_asked",
        {"mode": "inference.counts.selection:ChoiceResult"},
        "estimators.forecasts.selection:selection_preview",
    ),
    Record(
        "estimators.selection:top",
        "estimators.selection_questions:top_asked",
        {"top": "inference.counts.selection:TopResult"},
        "estimators.forecasts.selection:selection_preview",
    ),
    Record(
        "estimators.selection:above_threshold",
        "estimators.selection_questions:above_threshold_question",
        {"above_threshold": "inference.counts.selection:ThresholdResult"},
        "estimators.forecasts.selection:selection_preview",
    ),
    Record(
        "estimators.selection:watch",
        "estimators.selection_questions:watch_question",
        {},
        "estimators.forecasts.selection:selection_preview",
    ),
    Record(
        "models.holdout.opened:holdout",
        "models.holdout.questions:holdout_question",
        {"discreet-holdout": "inference.holdout.answers:HoldoutHistory"},
        "models.holdout.forecast:holdout_preview",
    ),
    Record(
        "estimators.hypotheses.proportions:proportion_test",
        "estimators.hypotheses.proportions:proportion_test_question",
        {"discreet-test": "inference.results.hypothesis:HypothesisTest"},
        plan="estimators.hypotheses.proportions:proportion_plan",
        effect="share",
    ),
    Record(
        "estimators.hypotheses.comparisons:compare",
        "estimators.hypotheses.comparisons:compare_question",
        {"comparison": "inference.tables.comparisons:ComparisonResult"},
        plan="estimators.hypotheses.plans:compare_plan",
        effect="share",
    ),
    Record(
        "estimators.hypotheses.comparisons:independence_test",
        "estimators.hypotheses.comparisons:independence_question",
        {"independence": "inference.tables.table_tests:IndependenceResult"},
        plan="estimators.hypotheses.plans:independence_plan",
    ),
    Record(
        "estimators.hypotheses.comparisons:rank_test",
        "estimators.hypotheses.comparisons:rank_question",
        {"ranks": "inference.tables.table_tests:RankResult"},
        plan="estimators.hypotheses.plans:rank_plan",
    ),
    Record(
        "estimators.hypotheses.comparisons:goodness_of_fit",
        "estimators.hypotheses.comparisons:fit_question",
        {"goodness of fit": "inference.tables.table_tests:FitResult"},
        plan="estimators.hypotheses.plans:fit_plan",
    ),
    Record(
        "estimators.hypotheses.mean_comparisons:compare_means",
        "estimators.hypotheses.mean_comparisons:compare_means_question",
        {"means": "inference.means.mean_tests:MeansResult"},
        plan="estimators.hypotheses.plans:means_plan",
        effect="difference",
    ),
    Record(
        "estimators.hypotheses.mean_comparisons:mean_test",
        "estimators.hypotheses.mean_comparisons:mean_test_question",
        {"mean test": "inference.means.mean_tests:MeanTestResult"},
        plan="estimators.hypotheses.plans:mean_plan",
        effect="difference",
    ),
    Record(
        "estimators.hypotheses.mean_comparisons:paired_test",
        "estimators.hypotheses.mean_comparisons:paired_question",
        {"paired test": "inference.means.mean_tests:PairedResult"},
        plan="estimators.hypotheses.plans:paired_plan",
        effect="difference",
    ),
    Record(
        "estimators.hypotheses.part_tests:subsample_test",
        "estimators.hypotheses.part_tests:subsample_question",
        {"parts": "inference.counts.part_tests:PartsResult"},
        "estimators.hypotheses.part_tests:subsample_preview",
        plan="estimators.hypotheses.plans:parts_plan",
        effect="effect",
    ),
    Record(
        "estimators.aggregation.subsample:subsample",
        results={
            **dict.fromkeys(
                (
                    "subsample median",
                    "subsample mean",
                    "subsample two sizes",
                    "subsample share",
                    "subsample shares",
                ),
                "inference.aggregation.subsample:SubsampleResult",
            ),
            "subsample vote": "inference.aggregation.subsample:VoteResult",
        },
        forecast="estimators.aggregation.forecasts:subsample_preview",
    ),
    Record(
        "estimators.aggregation.friendly:friendly_mean",
        results={
            "friendly mean": "inference.aggregation.friendly:FriendlyMeanResult",
            "friendly centre": "inference.aggregation.friendly:FriendlyMeanResult",
        },
        forecast="estimators.aggregation.forecasts:friendly_preview",
    ),
    Record(
        "estimators.aggregation.clusters:friendly_clusters",
        "estimators.aggregation.clusters:friendly_clusters_question",
        {"friendly clusters": "inference.aggregation.friendly:FriendlyClustersResult"},
        "estimators.aggregation.forecasts:clusters_preview",
    ),
    Record(
        "models.regression:ols",
        results=_FITS | _MOMENTS_FIT,
        forecast="models.forecasts.preview:ols_preview",
    ),
    Record(
        "models.regression:robust",
        results=_FITS,
        forecast="models.forecasts.preview:robust_preview",
    ),
    Record(
        "models.regression:logistic",
        results=_FITS | _MINIMISER_FIT,
        forecast="models.forecasts.preview:logistic_preview",
    ),
    Record(
        "models.regression:poisson",
        results=_FITS,
        forecast="models.forecasts.preview:poisson_preview",
    ),
    Record(
        "models.m_estimate:m_estimate",
        results=_FITS,
        forecast="models.forecasts.preview:m_estimate_preview",
    ),
    Record(
        "models.minimisers.erm:erm",
        results=_MINIMISER_FIT,
        forecast="models.forecasts.preview:erm_preview",
    ),
    Record(
        "models.learners.network:network",
        results={"discreet-network": "inference.networks.results:NetworkResult"},
        forecast="models.learners.network:network_preview",
    ),
    Record(
        "models.learners.accuracy:accuracy",
        "models.learners.accuracy:accuracy_question",
        {"accuracy": "inference.counts.results:AccuracyResult"},
    ),
    Record(
        "models.residuals:residuals",
        results={"residuals": "inference.counts.results:ResidualsResult"},
        # it reads the fit, which no question holds
        forecast="models.forecasts.preview:residuals_preview",
    ),
    Record(
        "estimators.bayes.posterior:posterior",
        results={"discreet-posterior": "inference.posteriors.results:PosteriorResult"},
        forecast="estimators.bayes.previews:posterior_preview",
    ),
    Record(
        "estimators.bayes.posterior_sample:posterior_sample",
        results={"discreet-posterior-sample": "inference.posteriors.samples:PosteriorSampleResult"},
        forecast="estimators.bayes.previews:sample_preview",
    ),
    Record(
        "models.trials.tune:tune",
        results={"discreet-best": "inference.regression.best:BestResult"},
        forecast="models.trials.tune:tune_preview",
    ),
    Record(
        "estimators.mwem.mwem:mwem",
        results={"discreet-mwem": "inference.mwem.results:Mwem"},
        forecast="estimators.mwem.forecast:mwem_preview",
    ),
    Record(
        "estimators.synthesis.synthesize:synthesize",
        results={"discreet-synthesis": "inference.synthesis.results:Synthesis"},
        forecast="estimators.synthesis.forecast:synthesis_preview",
    ),
)

# what reads a text of each format
FORMATS = {
    "discreet-release": "asking.reading:of_one_release",
    "discreet-procedure": "asking.reading:of_several_releases",
    "discreet-test": "asking.reading:of_a_test",
    "discreet-local": "local.questions:result_from_json",
    "discreet-fit": "inference.regression.fit:regression_from_json",
    "discreet-lecture-fit": "inference.regression.classical:classical_from_json",
    "discreet-moments-fit": "inference.regression.moments_fit:moments_from_json",
    "discreet-minimiser-fit": "inference.minimisers.results:perturbed_from_json",
    "discreet-point-fit": "inference.regression.point_fit:point_fit_from_json",
    "discreet-best": "models.trials.tune:best_from_json",
    "discreet-holdout": "inference.holdout.answers:history_from_json",
    "discreet-posterior": "inference.posteriors.results:posterior_from_json",
    "discreet-posterior-sample": "inference.posteriors.samples:sample_from_json",
    "discreet-network": "inference.networks.results:network_from_json",
    "discreet-mwem": "inference.mwem.results:mwem_from_json",
    "discreet-synthesis": "inference.synthesis.results:synthesis_from_json",
}

_BY_NAME = {record.name: record for record in RECORDS}
_CLASSES = {known: place for record in RECORDS for known, place in record.results.items()}


def resolve(place: str) -> Any:
    """The thing at a place, "module:name" below discreet; its module is imported on first use."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"discreet.{module}"), name)


def record_of(function: object) -> Record | None:
    """The record of a public estimator, given the function itself; None for anything else."""
    if type(function) is not types.FunctionType:
        return None
    record = _BY_NAME.get(function.__name__)
    return record if record is not None and resolve(record.function) is function else None


def result_class(known: str) -> Any:
    """The class of the results that are known by an estimator's name or a format; None where no
    record has it.
    """
    return resolve(_CLASSES[known]) if known in _CLASSES else None
