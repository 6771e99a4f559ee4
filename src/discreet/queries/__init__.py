"""Statistics with their sensitivity theorems, and the plans that engines carry out."""

from discreet.queries.keys import Between, Bins, Key, Levels, Split, Subset, cell_count, may_leave_out
from discreet.queries.moments import DESIGNS, Design, Moments, mean_design, total_design, variance_design
from discreet.queries.plans import Factor, GramPlan, SumsPlan, Term
from discreet.queries.query import PROVEN_QUERIES, Query, query_from_dict
from discreet.queries.sums import GramMatrix, Sum, number_factor
from discreet.queries.tallies import GridCounts, TallyPlan

__all__ = [
    "Between", "Bins", "DESIGNS", "Design", "Factor", "GramMatrix", "GramPlan", "GridCounts", "Key", "Levels", "Moments", "PROVEN_QUERIES", "Query", "Split", "Subset", "Sum", "SumsPlan", "TallyPlan", "Term",
    "cell_count", "may_leave_out", "mean_design", "number_factor", "query_from_dict", "total_design", "variance_design",
]
