"""Private regressions as scikit-learn estimators, with spending made explicit.

    model = PrivateLinearRegression(spend=dp.GDP(1), neighbors=dp.Replace(), bounds=(-4, 4), target_bounds=(0, 100))
    model.fit(X, y)                       # debits the spend
    model.fit(session, "y ~ x + z")       # or on an open session of declared data, out of its budget
    model.predict(X); model.coef_; model.result_.summary()

Bounds, classes and the neighbour relation are parameters: nothing about them is read from data, and a value outside its bounds counts as the nearest
bound. Each `fit(X, y)` is a new release at the full spend: cross-validation and grid searches spend once a fit. Give `ledger=` (a file) and `budget=`
to keep one account over all of them; without, every fit opens an account of its own in memory. There is no random state: noise is secret.
`score` reads data too, so it is refused until `score_spend=` says what it may cost.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dp
from discreet.errors import InvalidParameter, MissingExtra

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import DataConversionWarning
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtra("scikit-learn", "sklearn", "discreet.sklearn") from None

__all__ = ["PrivateHuberRegressor", "PrivateLinearRegression", "PrivateLogisticRegression"]

TARGET = "target"


class _PrivateRegression(BaseEstimator):  # type: ignore[misc]
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
        columns, schema = self._declared(table, _vector(y, len(table)))
        names = [name for name in columns if name != TARGET]
        formula = f"{TARGET} ~ " + " + ".join(names) + ("" if self.fit_intercept else " - 1")
        return self._fitted(self._opened(columns, schema, self.spend), formula)

    def _fitted(self, session: dp.Session, formula: str) -> Any:
        self.result_ = self._regression(session, formula)
        names, values = list(self.result_.names), self.result_.params
        self.intercept_ = float(values[names.index("intercept")]) if "intercept" in names else 0.0
        self.coef_ = np.array([value for name, value in zip(names, values, strict=True) if name != "intercept"])
        self.n_features_in_ = len(self.coef_)
        return self

    def _regression(self, session: dp.Session, formula: str) -> Any:
        raise NotImplementedError

    def _declared(self, table: Any, target: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Columns and their declaration, from parameters and shapes alone."""
        width = table.shape[1]
        if width < 1:
            raise ValueError(f"Found array with 0 feature(s) (shape={table.shape}) while a minimum of 1 is required.")
        if self.neighbors is None:
            raise dp.NeighborsMissing()
        if self.neighbors.unit is not None:
            raise InvalidParameter("neighbors=", "it protects units of several rows", "an array has no column that says whose a row is", "declare the data with dp.from_frame and pass fit(session, formula)")
        if self.neighbors.row_count_is_public and len(table) == 0:
            raise ValueError(f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is required.")
        ends = _ends(self.bounds, "bounds=", width, getattr(self, "feature_names_in_", None))
        columns: dict[str, Any] = {f"x{place}": table[:, place] for place in range(width)}
        schema: dict[str, Any] = {f"x{place}": dp.Real(*pair) for place, pair in enumerate(ends)}
        column, declared = self._target(target)
        return columns | {TARGET: column}, schema | {TARGET: declared}

    def _target(self, target: Any) -> tuple[Any, Any]:
        raise NotImplementedError

    def _opened(self, columns: dict[str, Any], schema: dict[str, Any], spend: Any) -> dp.Session:
        if spend is None:
            raise InvalidParameter("spend=", "no spend was given", "every fit says what it costs", "pass for example spend=dp.GDP(1)")
        data = dp.from_arrays(columns, schema=schema, neighbors=self.neighbors)
        if self.ledger is None:
            return data.open(budget=spend if self.budget is None else self.budget)
        return data.open(ledger=self.ledger, budget=None if Path(self.ledger).exists() else self.budget)

    def _table(self, X: Any, *, reset: bool) -> Any:  # noqa: N803
        """X as a two-dimensional array, refused for its shape or type alone, whatever its cells hold."""
        if hasattr(X, "toarray"):
            raise TypeError("Sparse data was passed, but dense data is required: use X.toarray().")
        table = np.asarray(X)
        if np.iscomplexobj(table):
            raise ValueError("Complex data not supported.")
        if table.ndim != 2:
            raise ValueError(f"Expected 2D array, got {table.ndim}D array instead. Reshape your data using array.reshape(-1, 1) or array.reshape(1, -1).")
        validate_data(self, X, skip_check_array=True, reset=reset)  # names and number of columns
        return table

    def _numbers(self, X: Any) -> np.ndarray[Any, Any]:  # noqa: N803
        check_is_fitted(self, "coef_")
        return np.asarray(self._table(X, reset=False).astype(np.float64))

    def _predictor(self, X: Any) -> np.ndarray[Any, Any]:  # noqa: N803
        """The linear predictor; X has one column for each coefficient but the intercept."""
        return np.asarray(self._numbers(X) @ self.coef_ + self.intercept_)

    def _scoring(self) -> Any:
        if self.score_spend is None:
            raise InvalidParameter("score", "no score_spend was given", "a score is computed from data, so it must be released with noise and paid for", "pass score_spend=dp.GDP(0.1), or judge the fit by result_.summary()")
        return self.score_spend

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True  # cells that are no numbers count as the middle of their bounds: an error would tell of them
        return tags


class _PrivateRegressor(RegressorMixin, _PrivateRegression):  # type: ignore[misc]
    """Regressions of a number with declared bounds."""

    target_bounds: Any

    def _target(self, target: Any) -> tuple[Any, Any]:
        return target, dp.Real(*_ends(self.target_bounds, "target_bounds=", 1, None)[0])

    def predict(self, X: Any) -> np.ndarray[Any, Any]:  # noqa: N803
        """The mean response for the rows of X."""
        return self._predictor(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """A private R² of predictions on (X, y): half of `score_spend` for the mean squared error, half for the variance of y.

        Refused unless `score_spend` was given. Predictions are clipped to the target's bounds, so that errors are bounded.
        """
        spend = self._scoring()
        if sample_weight is not None:
            raise InvalidParameter("sample_weight=", "weights were given", "a private score has one bound for every row", "leave it out")
        low, high = _ends(self.target_bounds, "target_bounds=", 1, None)[0]
        table = self._table(X, reset=False)
        target = _vector(y, len(table))
        columns, schema = self._declared(table, target)
        errors = np.clip(_clamped(target, low, high) - np.clip(self._predictor(_bounded(table, schema)), low, high), low - high, high - low) ** 2
        session = self._opened({"error": errors, TARGET: columns[TARGET]}, {"error": dp.Real(0, (high - low) ** 2), TARGET: schema[TARGET]}, spend)
        half = _half(spend)
        self.score_results_ = (dp.mean(session, "error", spend=half), dp.variance(session, TARGET, spend=half))
        squares, spread = (result.estimate for result in self.score_results_)
        return 1 - max(squares, 0.0) / max(spread, 1e-300)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class PrivateLinearRegression(_PrivateRegressor):
    """dp.ols as a scikit-learn regressor; `method` is "clipped" or "moments"."""

    def __init__(
        self, spend: Any = None, *, neighbors: Any = None, bounds: Any = None, target_bounds: Any = None, fit_intercept: bool = True,
        budget: Any = None, ledger: str | Path | None = None, score_spend: Any = None, method: str = "clipped",
    ) -> None:
        self.spend, self.neighbors, self.bounds, self.target_bounds, self.fit_intercept = spend, neighbors, bounds, target_bounds, fit_intercept
        self.budget, self.ledger, self.score_spend, self.method = budget, ledger, score_spend, method

    def _regression(self, session: dp.Session, formula: str) -> Any:
        return dp.ols(session, formula, spend=self.spend, method=self.method)


class PrivateHuberRegressor(_PrivateRegressor):
    """dp.robust as a scikit-learn regressor; `c` is Huber's constant (chosen by the noise index unless given)."""

    def __init__(
        self, spend: Any = None, *, neighbors: Any = None, bounds: Any = None, target_bounds: Any = None, fit_intercept: bool = True,
        budget: Any = None, ledger: str | Path | None = None, score_spend: Any = None, c: float | None = None,
    ) -> None:
        self.spend, self.neighbors, self.bounds, self.target_bounds, self.fit_intercept = spend, neighbors, bounds, target_bounds, fit_intercept
        self.budget, self.ledger, self.score_spend, self.c = budget, ledger, score_spend, c

    def _regression(self, session: dp.Session, formula: str) -> Any:
        return dp.robust(session, formula, spend=self.spend, c=self.c)


class PrivateLogisticRegression(ClassifierMixin, _PrivateRegression):  # type: ignore[misc]
    """dp.logistic as a scikit-learn classifier of two declared classes; a label that is neither counts as the first."""

    def __init__(
        self, spend: Any = None, *, neighbors: Any = None, bounds: Any = None, classes: Any = (0, 1), fit_intercept: bool = True,
        budget: Any = None, ledger: str | Path | None = None, score_spend: Any = None,
    ) -> None:
        self.spend, self.neighbors, self.bounds, self.classes, self.fit_intercept = spend, neighbors, bounds, classes, fit_intercept
        self.budget, self.ledger, self.score_spend = budget, ledger, score_spend

    def _regression(self, session: dp.Session, formula: str) -> Any:
        self.classes_ = self._classes()
        return dp.logistic(session, formula, spend=self.spend)

    def _classes(self) -> np.ndarray[Any, Any]:
        labels = np.asarray(self.classes)
        if labels.shape != (2,) or labels[0] == labels[1]:
            raise InvalidParameter("classes=", "not two different labels", "classes are declared, never read from the data", "pass for example classes=(0, 1)")
        return labels

    def _target(self, target: Any) -> tuple[Any, Any]:
        return np.asarray(target == self._classes()[1], dtype=bool) if target.dtype != object else np.array([value == self._classes()[1] for value in target], dtype=bool), dp.Boolean()

    def decision_function(self, X: Any) -> np.ndarray[Any, Any]:  # noqa: N803
        """The log odds of the second class."""
        return self._predictor(X)

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:  # noqa: N803
        """Probabilities of both classes."""
        second = 1 / (1 + np.exp(-np.clip(self._predictor(X), -700, 700)))
        return np.stack([1 - second, second], axis=1)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:  # noqa: N803
        """The more probable class."""
        second = (self.decision_function(X) > 0).astype(int)
        return np.asarray(self.classes_[second])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """A private accuracy on (X, y), released at `score_spend`; refused unless that was given."""
        spend = self._scoring()
        if sample_weight is not None:
            raise InvalidParameter("sample_weight=", "weights were given", "a private score has one bound for every row", "leave it out")
        table = self._table(X, reset=False)
        columns, schema = self._declared(table, _vector(y, len(table)))
        right = (self._predictor(_bounded(table, schema)) > 0) == columns[TARGET]
        session = self._opened({"right": right}, {"right": dp.Boolean()}, spend)
        self.score_results_ = (dp.proportion(session, "right", spend=spend),)
        return float(min(max(self.score_results_[0].estimate, 0.0), 1.0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags


def _ends(bounds: Any, name: str, width: int, names: Any) -> list[tuple[float, float]]:
    """(low, high) of every column: one pair for all, a pair of arrays, or a mapping from names to pairs."""
    if bounds is None:
        raise InvalidParameter(name, "no bounds were given", "bounds set the noise, and they are never read from the data", f"pass {name}(low, high), from public knowledge")
    try:
        if isinstance(bounds, Mapping):
            pairs = [tuple(bounds[label]) for label in names]
        else:
            low, high = bounds
            pairs = list(zip(np.broadcast_to(low, width).tolist(), np.broadcast_to(high, width).tolist(), strict=True))
        ends = [(float(low), float(high)) for low, high in pairs]
    except (TypeError, ValueError, LookupError):
        ends = []
    if len(ends) != width or not all(math.isfinite(low) and math.isfinite(high) and low < high for low, high in ends):
        raise InvalidParameter(name, f"not a pair (low, high) for each of {width} columns", "bounds set the noise", f"pass {name}(low, high), two arrays of {width} numbers, or a mapping from column names to pairs")
    return ends


def _vector(y: Any, rows: int) -> Any:
    """y as one column, refused for its shape or type alone."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    target = np.asarray(y)
    if np.iscomplexobj(target):
        raise ValueError("Complex data not supported.")
    if target.ndim == 2 and target.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=3)
        target = target.ravel()
    if target.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {target.shape} instead.")
    if len(target) != rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[rows, len(target)]}")
    return target


def _clamped(values: Any, low: float, high: float) -> np.ndarray[Any, Any]:
    """Numbers within their bounds; what is no number is the middle."""
    numbers = np.array([_number(value) for value in values.tolist()]) if values.dtype == object else values.astype(np.float64) if values.dtype.kind in "iufb" else np.full(len(values), np.nan)
    return np.asarray(np.clip(np.where(np.isnan(numbers), (low + high) / 2, numbers), low, high))


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _bounded(table: Any, schema: dict[str, Any]) -> np.ndarray[Any, Any]:
    """X within its bounds, as the fit read it."""
    return np.stack([_clamped(table[:, place], schema[f"x{place}"].low, schema[f"x{place}"].high) for place in range(table.shape[1])], axis=1)


def _half(spend: Any) -> Any:
    """Half of a spend, in its own currency."""
    if isinstance(spend, dp.GDP):
        return dp.GDP(spend.mu * math.sqrt(0.5) * (1 - 1e-9))
    if isinstance(spend, dp.ZCDP):
        return dp.ZCDP(spend.rho / 2 * (1 - 1e-9))
    if isinstance(spend, dp.PureDP):
        return dp.PureDP(spend.epsilon / 2 * (1 - 1e-9))
    raise InvalidParameter("score_spend=", "it cannot be halved", "a score of a regression is made of two releases", "spend dp.GDP(mu), dp.ZCDP(rho) or dp.PureDP(epsilon)")
