"""What the estimators share: declared data, one fit through the public functions, coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.sklearn.cells import Floats, numbers_of
from discreet.sklearn.declared import declared_width, ends_of
from discreet.sklearn.tables import Table, columns_of, is_list, vector

TARGET = "target"


class PrivateRegression(BaseEstimator):  # type: ignore[misc]
    """What the three share: declared data, one fit through the public functions, coefficients."""

    spend: Any
    neighbors: Any
    bounds: Any
    fit_intercept: bool
    budget: Any
    ledger: str | Path | None
    score_spend: Any

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803
        """Fits on arrays (X, y), or on an open session X with a formula y; debits `spend`."""
        if isinstance(X, dp.Session):
            return self._fitted(X, y)
        table = self._table(X, reset=True)
        columns, schema = self._declared(table, vector(y, table.rows))
        names = [name for name in columns if name != TARGET]
        formula = f"{TARGET} ~ " + " + ".join(names) + ("" if self.fit_intercept else " - 1")
        return self._fitted(self._opened(columns, schema, self.spend), formula)

    def _fitted(self, session: dp.Session, formula: str) -> Any:
        self.result_ = self._regression(session, formula)
        names, values = list(self.result_.names), self.result_.params
        self.intercept_ = float(values[names.index("intercept")]) if "intercept" in names else 0.0
        self.coef_ = np.array(
            [value for name, value in zip(names, values, strict=True) if name != "intercept"]
        )
        self.n_features_in_ = len(self.coef_)
        return self

    def _regression(self, session: dp.Session, formula: str) -> Any:
        raise NotImplementedError

    def _declared(self, table: Table, target: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Columns and their declaration, from parameters and shapes alone."""
        width = table.shape[1]
        if width < 1:
            raise ValueError(
                f"Found array with 0 feature(s) (shape={table.shape}) while a minimum of 1 is "
                "required."
            )
        if self.neighbors is None:
            raise dp.NeighborsMissing()
        if self.neighbors.unit is not None:
            raise InvalidParameter(
                "neighbors=",
                "it protects units of several rows",
                "an array has no column that says whose a row is",
                "declare the data with dp.from_frame and pass fit(session, formula)",
            )
        if self.neighbors.row_count_is_public and table.rows == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is "
                "required."
            )
        ends = ends_of(self.bounds, "bounds=", width, getattr(self, "feature_names_in_", None))
        columns: dict[str, Any] = {f"x{place}": one for place, one in enumerate(table.columns)}
        schema: dict[str, Any] = {f"x{place}": dp.Real(*pair) for place, pair in enumerate(ends)}
        column, declared = self._target(target)
        return columns | {TARGET: column}, schema | {TARGET: declared}

    def _target(self, target: Any) -> tuple[Any, Any]:
        raise NotImplementedError

    def _opened(self, columns: dict[str, Any], schema: dict[str, Any], spend: Any) -> dp.Session:
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
        return data.open(
            ledger=self.ledger, budget=None if Path(self.ledger).exists() else self.budget
        )

    def _table(self, X: Any, *, reset: bool) -> Table:  # noqa: N803
        """X as columns, refused for its shape or type alone, whatever its cells hold."""
        if hasattr(X, "toarray"):
            raise TypeError("Sparse data was passed, but dense data is required: use X.toarray().")
        columns, rows = columns_of(X, declared_width(self.bounds))
        shown = np.empty((0, len(columns))) if is_list(X) else X  # not a list's first row
        validate_data(self, shown, skip_check_array=True, reset=reset)  # names, number of columns
        return Table(columns, rows)

    def _predictor(self, X: Any) -> Floats:  # noqa: N803
        """The linear predictor; X has one column for each coefficient but the intercept."""
        check_is_fitted(self, "coef_")
        return self._sum([numbers_of(column) for column in self._table(X, reset=False).columns])

    def _sum(self, columns: Sequence[Floats]) -> Floats:
        """Σ coefficient·column, then the intercept, in the order of the columns.

        Theorem.  Equal rows have the same predictor, bit for bit, in every table.
        Proof.    Each step is one correctly rounded operation an element, so an element of the
                  result is a function of its own row. A matrix product is not: its last bits
                  depend on the place of a row in a block.
        Checked.
            tests/claims/test_rows_alone.py::test_equal_rows_have_one_predictor_wherever_they_stand
        """
        with np.errstate(all="ignore"):
            total = np.zeros(len(columns[0]) if columns else 0)
            for coefficient, column in zip(self.coef_, columns, strict=True):
                total += column * coefficient
            total += self.intercept_
        return total

    def _scoring(self) -> Any:
        if self.score_spend is None:
            raise InvalidParameter(
                "score",
                "no score_spend was given",
                "a score is computed from data, so it must be released with noise and paid for",
                "pass score_spend=dp.GDP(0.1), or judge the fit by result_.summary()",
            )
        return self.score_spend

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        # cells that are no numbers count as the middle of their bounds: an error would tell of them
        tags.input_tags.allow_nan = True
        return tags
