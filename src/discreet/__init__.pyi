# written by tests/architecture/public_stub.py from the records of the estimators
from discreet.accounting.composition import compose
from discreet.accounting.explain import explain
from discreet.accounting.guarantees import GDP, ApproxDP, PureDP
from discreet.accounting.loss_distributions.curve import PLD
from discreet.accounting.plan import plan, rows_needed
from discreet.accounting.renyi.rdp import RDP, ZCDP
from discreet.accounting.tradeoff.curve import TradeOff
from discreet.asking.declarations import declare, write_declaration
from discreet.asking.preview import Assumptions, preview
from discreet.asking.reading import from_json
from discreet.asking.release_plans import ReleasePlan, read_plan
from discreet.asking.sources import read
from discreet.audits.audit import audit
from discreet.bundled.tables import BundledTable, load_census, load_visits
from discreet.errors import (
    BudgetExceeded,
    DataShapeRefused,
    DiscreetError,
    InsecureNoise,
    InvalidParameter,
    LedgerRefused,
    MissingExtra,
    NeighborsMissing,
    NotAnswered,
    NoTheorem,
    ReleaseFailed,
    ServiceRefused,
    SourceChanged,
    UndeclaredColumn,
    UnknownName,
    WrongColumnKind,
)
from discreet.estimators.aggregation.clusters import friendly_clusters
from discreet.estimators.aggregation.friendly import friendly_mean
from discreet.estimators.aggregation.subsample import subsample
from discreet.estimators.basic import count, histogram, mean, proportion, sum, table, variance
from discreet.estimators.bayes.posterior import posterior
from discreet.estimators.bayes.posterior_sample import posterior_sample
from discreet.estimators.describe import describe
from discreet.estimators.distributions import density, ecdf
from discreet.estimators.hypotheses.comparisons import (
    compare,
    goodness_of_fit,
    independence_test,
    rank_test,
)
from discreet.estimators.hypotheses.mean_comparisons import compare_means, mean_test, paired_test
from discreet.estimators.hypotheses.part_tests import subsample_test
from discreet.estimators.hypotheses.power import power, sample_size, smallest_effect, spend_needed
from discreet.estimators.hypotheses.proportions import proportion_test
from discreet.estimators.matrices import correlation, covariance
from discreet.estimators.missing import missing
from discreet.estimators.mwem.mwem import mwem
from discreet.estimators.quantiles import median, quantile, quantiles
from discreet.estimators.scale import iqr, mad
from discreet.estimators.selection import Watch, above_threshold, mode, select, top, watch
from discreet.estimators.standard_deviation import std
from discreet.estimators.synthesis.synthesize import synthesize
from discreet.estimators.trimmed import trimmed_mean
from discreet.estimators.unbounded import location, truncated_mean, unbounded_mean
from discreet.inference.counts.selection import SelectionResult
from discreet.inference.posteriors.families import (
    BetaBinomial,
    DirichletMultinomial,
    GammaPoisson,
    LinearModel,
    NormalModel,
)
from discreet.inference.results.results import Result
from discreet.models.holdout.opened import holdout
from discreet.models.learners.accuracy import accuracy
from discreet.models.learners.network import network
from discreet.models.m_estimate import m_estimate
from discreet.models.minimisers.erm import erm
from discreet.models.regression import logistic, ols, poisson, robust
from discreet.models.residuals import residuals
from discreet.models.solvers import SGD, GradientDescent, MayNotConverge, Newton
from discreet.models.trials.tune import trial, tune
from discreet.neighbors import AddRemove, Replace
from discreet.remote.connection import connect
from discreet.schema import Boolean, Category, Date, Datetime, Integer, Open, Real, Schema
from discreet.trusted.cluster.spark import from_spark
from discreet.trusted.datasets import Dataset, from_arrays, from_frame, read_csv, read_parquet
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.release import Release
from discreet.trusted.scale.sources import from_batches, from_database
from discreet.trusted.session import Session

__version__: str
__all__ = [
    "AddRemove",
    "ApproxDP",
    "Assumptions",
    "BetaBinomial",
    "Boolean",
    "BudgetExceeded",
    "BundledTable",
    "Category",
    "DataShapeRefused",
    "Dataset",
    "Date",
    "Datetime",
    "DirichletMultinomial",
    "DiscreetError",
    "GDP",
    "GammaPoisson",
    "GradientDescent",
    "InsecureNoise",
    "Integer",
    "InvalidParameter",
    "Ledger",
    "LedgerRefused",
    "LinearModel",
    "MayNotConverge",
    "MissingExtra",
    "NeighborsMissing",
    "Newton",
    "NoTheorem",
    "NormalModel",
    "NotAnswered",
    "Open",
    "PLD",
    "PureDP",
    "RDP",
    "Real",
    "Release",
    "ReleaseFailed",
    "ReleasePlan",
    "Replace",
    "Result",
    "SGD",
    "Schema",
    "SelectionResult",
    "ServiceRefused",
    "Session",
    "SourceChanged",
    "TradeOff",
    "UndeclaredColumn",
    "UnknownName",
    "Watch",
    "WrongColumnKind",
    "ZCDP",
    "above_threshold",
    "accuracy",
    "audit",
    "compare",
    "compare_means",
    "compose",
    "connect",
    "correlation",
    "count",
    "covariance",
    "declare",
    "density",
    "describe",
    "ecdf",
    "erm",
    "explain",
    "friendly_clusters",
    "friendly_mean",
    "from_arrays",
    "from_batches",
    "from_database",
    "from_frame",
    "from_json",
    "from_spark",
    "goodness_of_fit",
    "histogram",
    "holdout",
    "independence_test",
    "iqr",
    "load_census",
    "load_visits",
    "location",
    "logistic",
    "m_estimate",
    "mad",
    "mean",
    "mean_test",
    "median",
    "missing",
    "mode",
    "mwem",
    "network",
    "ols",
    "paired_test",
    "plan",
    "poisson",
    "posterior",
    "posterior_sample",
    "power",
    "preview",
    "proportion",
    "proportion_test",
    "quantile",
    "quantiles",
    "rank_test",
    "read",
    "read_csv",
    "read_parquet",
    "read_plan",
    "residuals",
    "robust",
    "rows_needed",
    "sample_size",
    "select",
    "smallest_effect",
    "spend_needed",
    "std",
    "subsample",
    "subsample_test",
    "sum",
    "synthesize",
    "table",
    "top",
    "trial",
    "trimmed_mean",
    "truncated_mean",
    "tune",
    "unbounded_mean",
    "variance",
    "watch",
    "write_declaration",
]
