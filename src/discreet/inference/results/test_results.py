"""Which result reads which question: tests of tables, means, ranks and parts."""

from __future__ import annotations

from discreet.inference.counts.part_tests import PartsResult
from discreet.inference.means.basic import RESULTS
from discreet.inference.means.mean_tests import MeansResult, MeanTestResult, PairedResult
from discreet.inference.results.results import Result
from discreet.inference.tables.comparisons import ComparisonResult
from discreet.inference.tables.table_tests import FitResult, IndependenceResult, RankResult

TEST_RESULTS: dict[str, type[Result]] = {
    "comparison": ComparisonResult,
    "independence": IndependenceResult,
    "goodness of fit": FitResult,
    "ranks": RankResult,
    "mean test": MeanTestResult,
    "paired test": PairedResult,
    "means": MeansResult,
    "parts": PartsResult,
}
RESULTS.update(TEST_RESULTS)
