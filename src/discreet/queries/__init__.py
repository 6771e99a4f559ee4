"""Statistics with their sensitivity theorems, and the plans that engines carry out."""

from discreet.queries.keys import Between, Bins, Key, Levels, Split, Subset, cell_count, may_leave_out
from discreet.queries.moments import DESIGNS, Design, Moments, mean_design, total_design, variance_design
from discreet.queries.plans import Factor, GramPlan, SumsPlan, Term
from discreet.queries.sums import PROVEN_QUERIES, GramMatrix, Query, Sum, number_factor, query_from_dict

__all__ = [
    "Between", "Bins", "DESIGNS", "Design", "Factor", "GramMatrix", "GramPlan", "Key", "Levels", "Moments", "PROVEN_QUERIES", "Query", "Split", "Subset", "Sum", "SumsPlan", "Term",
    "cell_count", "may_leave_out", "mean_design", "number_factor", "query_from_dict", "total_design", "variance_design",
]
