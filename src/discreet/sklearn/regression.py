"""What the estimators share: declared data, one fit through the public functions, coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import discreet as dp
from discreet.asking.sessions import is_session
from discreet.sklearn.base import Columns, PrivateEstimator
from discreet.sklearn.cells import Floats, numbers_of
from discreet.sklearn.declared import TARGET
from discreet.sklearn.tables import Table, vector


class PrivateRegression(PrivateEstimator):
    """What the three share: declared data, one fit through the public functions, coefficients."""

    fit_intercept: bool
    score_spend: Any

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803
        """Fits on arrays (X, y), or on an open session X with a formula y; debits `spend`."""
        if is_session(X):
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

    def _declared(self, table: Table, target: Any) -> tuple[Columns, Columns]:
        """Columns and their declaration, the target's included."""
        columns, schema = self._features(table)
        column, declared = self._target(target)
        return columns | {TARGET: column}, schema | {TARGET: declared}

    def _target(self, target: Any) -> tuple[Any, Any]:
        raise NotImplementedError

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
