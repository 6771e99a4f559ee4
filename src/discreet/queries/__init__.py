"""Statistics with their sensitivity theorems, and the plans that engines carry out."""

from discreet.queries.keys import Between, Bins, Key, Levels, Subset, cell_count
from discreet.queries.plans import Factor, GramPlan, SumsPlan, Term
from discreet.queries.sums import GramMatrix, Query, Sum, query_from_dict

__all__ = [
    "Between", "Bins", "Factor", "GramMatrix", "GramPlan", "Key", "Levels", "Query", "Subset", "Sum", "SumsPlan", "Term",
    "cell_count", "query_from_dict",
]
