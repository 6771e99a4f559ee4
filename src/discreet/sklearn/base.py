"""What every private estimator shares: X as declared columns, a session that its spend opens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import validate_data

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.sklearn.declared import declared_width, ends_of, formula_names
from discreet.sklearn.learning import check_surroundings
from discreet.sklearn.tables import Table, columns_of, is_list

Columns = dict[str, Any]


def filled(low: float, high: float) -> dp.Real:
    """A number whose cells all count: what is no number is the middle, as in a prediction."""
    return dp.Real(low, high, missing=low / 2 + high / 2)


class CheckedPipeline(Pipeline):  # type: ignore[misc]
    """A pipeline that warns of its own steps, so that no step has to."""


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fit is a release: bounds and relation are declared, the spend explicit.

    `ledger` is a file, a `dp.Ledger`, or None for an account of its own in memory.
    """

    spend: Any
    neighbors: Any
    bounds: Any
    budget: Any
    ledger: Any
    score_spend: Any
    learns_privately = True

    def _scoring(self, sample_weight: Any) -> Any:
        """What a score may spend; refused where nothing was given, or weights were."""
        if self.score_spend is None:
            raise InvalidParameter(
                "score",
                "no score_spend was given",
                "a score is computed from data, so it must be released with noise and paid for",
                "pass score_spend=dp.GDP(0.1), or judge the fit by result_.summary()",
            )
        if sample_weight is not None:
            raise InvalidParameter(
                "sample_weight=",
                "weights were given",
                "a private score has one bound for every row",
                "leave it out",
            )
        return self.score_spend

    def _features(self, table: Table, *, fill: bool = True) -> tuple[Columns, Columns]:
        """The columns of X and their declaration, from parameters and shapes alone; what is no
        number counts as the middle of its bounds, or is left out.
        """
        width = table.shape[1]
        if width < 1:
            raise ValueError(
                f"Found array with 0 feature(s) (shape={table.shape}) while a minimum of 1 is "
                "required."
            )
        if not isinstance(self.neighbors, (dp.Replace, dp.AddRemove)):
            raise dp.NeighborsMissing()
        if self.neighbors.unit is not None:
            raise InvalidParameter(
                "neighbors=",
                "it protects units of several rows",
                "an array has no column that says whose a row is",
                "declare the data with dp.from_frame and ask of a session",
            )
        if self.neighbors.row_count_is_public and table.rows == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is "
                "required."
            )
        ends = ends_of(self.bounds, "bounds=", width, getattr(self, "feature_names_in_", None))
        names = formula_names(width, getattr(self, "feature_names_in_", None))
        kind = filled if fill else dp.Real
        schema = {name: kind(*pair) for name, pair in zip(names, ends, strict=True)}
        return dict(zip(names, table.columns, strict=True)), schema

    def _opened(self, columns: Columns, schema: Columns, spend: Any) -> dp.Session:
        if spend is None:
            raise InvalidParameter(
                "spend=",
                "no spend was given",
                "every fit says what it costs",
                "pass for example spend=dp.GDP(1)",
            )
        # one name for all: a fit has no key of its own, so that none is ever replayed
        data = dp.from_arrays(columns, schema=schema, neighbors=self.neighbors, name="X, y")
        if self.ledger is None:
            return data.open(budget=spend if self.budget is None else self.budget)
        if isinstance(self.ledger, dp.Ledger):
            return data.open(ledger=self.ledger)
        return data.open(
            ledger=self.ledger, budget=None if Path(self.ledger).exists() else self.budget
        )

    def _table(self, X: Any, *, reset: bool) -> Table:  # noqa: N803
        """X as columns, refused for its shape or type alone, whatever its cells hold."""
        if reset:
            check_surroundings(CheckedPipeline)
        if hasattr(X, "toarray"):
            raise TypeError("Sparse data was passed, but dense data is required: use X.toarray().")
        columns, rows = columns_of(X, declared_width(self.bounds))
        shown = np.empty((0, len(columns))) if is_list(X) else X  # not a list's first row
        validate_data(self, shown, skip_check_array=True, reset=reset)  # names, number of columns
        return Table(columns, rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        # a cell that is no number has its rule: an error would tell of it
        tags.input_tags.allow_nan = True
        return tags
