"""Statistics with their sensitivity theorems, and the plans that engines carry out."""

from discreet.specs.queries.histograms import GridCounts, HistogramPlan
from discreet.specs.queries.keys import Between, Bins, Key, Levels, Split, Subset, cell_count, may_leave_out
from discreet.specs.queries.moments import DESIGNS, Design, Moments, mean_design, total_design, variance_design
from discreet.specs.queries.open_keys import OpenCounts, OpenPlan
from discreet.specs.queries.pairs import PairMoments, count_weight
from discreet.specs.queries.plans import Factor, GramPlan, SumsPlan, Term
from discreet.specs.queries.query import Query
from discreet.specs.queries.scores import CandidateScores, Scored, ScoresPlan
from discreet.specs.queries.sums import GramMatrix, Sum, number_factor
from discreet.specs.queries.trees import TreeCounts, tree_over

__all__ = [
    "Between", "Bins", "CandidateScores", "DESIGNS", "Design", "Factor", "GramMatrix", "GramPlan", "GridCounts", "Key", "Levels", "Moments", "OpenCounts", "OpenPlan", "PairMoments", "Query", "Scored", "ScoresPlan", "Split", "Subset", "Sum", "SumsPlan", "HistogramPlan", "Term", "TreeCounts",
    "cell_count", "count_weight", "may_leave_out", "mean_design", "number_factor", "total_design", "tree_over", "variance_design",
]
