"""Public estimators."""

from discreet.estimators.basic import count, histogram, mean, proportion, sum, table, variance
from discreet.estimators.forecast import Assumptions, Preview, preview

__all__ = ["Assumptions", "Preview", "count", "histogram", "mean", "preview", "proportion", "sum", "table", "variance"]
