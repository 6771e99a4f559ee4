"""Private regressions as scikit-learn estimators, with spending made explicit.

    model = PrivateLinearRegression(
        spend=dp.GDP(1), neighbors=dp.Replace(), bounds=(-4, 4), target_bounds=(0, 100)
    )
    model.fit(X, y)  # debits the spend
    model.fit(session, "y ~ x + z")  # or on an open session of declared data, out of its budget
    model.predict(X)
    model.coef_
    model.result_.summary()

Bounds, classes and the neighbour relation are parameters: nothing about them is read from data, and
a value outside its bounds counts as the nearest bound. Each `fit(X, y)` is a new release at the
full spend: cross-validation and grid searches spend once a fit. Give `ledger=` (a file) and
`budget=` to keep one account over all of them; without, every fit opens an account of its own in
memory. There is no random state: noise is secret. `score` reads data too, so it is refused until
`score_spend=` says what it may cost.

A row's cells are read for themselves, by the total rules of `discreet.trusted.values`, and its
predictor is added up column by column: what one row becomes cannot depend on another
(docs/theory/rows.md). An array or a frame has a public type a column. A list of rows has none:
every cell is read by its own type, rows that are shorter than the table have missing cells, and
cells beyond it are ignored. How many columns a list has is what `bounds` declares; where one pair
is given for all of them, it is the length that most rows have (of two such lengths the smaller),
so no single row decides it.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

import discreet as dp
from discreet.errors import InvalidParameter, MissingExtra
from discreet.seclusion import Secluded
from discreet.trusted.engines.cells import numbers
from discreet.trusted.engines.columns import cells_of, python_objects

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import DataConversionWarning
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtra("scikit-learn", "sklearn", "discreet.sklearn") from None

__all__ = ["PrivateHuberRegressor", "PrivateLinearRegression", "PrivateLogisticRegression"]

TARGET = "target"
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class _Table:
    """X as columns: lists of cells, arrays or series, all of one length."""

    columns: list[Any]
    rows: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, len(self.columns)


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
        columns, schema = self._declared(table, _vector(y, table.rows))
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

    def _declared(self, table: _Table, target: Any) -> tuple[dict[str, Any], dict[str, Any]]:
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
        ends = _ends(self.bounds, "bounds=", width, getattr(self, "feature_names_in_", None))
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
        data = dp.from_arrays(columns, schema=schema, neighbors=self.neighbors)
        if self.ledger is None:
            return data.open(budget=spend if self.budget is None else self.budget)
        return data.open(
            ledger=self.ledger, budget=None if Path(self.ledger).exists() else self.budget
        )

    def _table(self, X: Any, *, reset: bool) -> _Table:  # noqa: N803
        """X as columns, refused for its shape or type alone, whatever its cells hold."""
        if hasattr(X, "toarray"):
            raise TypeError("Sparse data was passed, but dense data is required: use X.toarray().")
        columns, rows = _columns_of(X, _declared_width(self.bounds))
        shown = np.empty((0, len(columns))) if _is_list(X) else X  # not a list's first row
        validate_data(self, shown, skip_check_array=True, reset=reset)  # names, number of columns
        return _Table(columns, rows)

    def _predictor(self, X: Any) -> Floats:  # noqa: N803
        """The linear predictor; X has one column for each coefficient but the intercept."""
        check_is_fitted(self, "coef_")
        return self._sum([_numbers(column) for column in self._table(X, reset=False).columns])

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


class _PrivateRegressor(RegressorMixin, _PrivateRegression):  # type: ignore[misc]
    """Regressions of a number with declared bounds."""

    target_bounds: Any

    def _target(self, target: Any) -> tuple[Any, Any]:
        return target, dp.Real(*_ends(self.target_bounds, "target_bounds=", 1, None)[0])

    def predict(self, X: Any) -> np.ndarray[Any, Any]:  # noqa: N803
        """The mean response for the rows of X."""
        return self._predictor(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """A private R² of predictions on (X, y): half of `score_spend` for the mean squared error,
        half for the variance of y.

        Refused unless `score_spend` was given.
        Predictions are clipped to the target's bounds, so that errors are bounded.
        """
        spend = self._scoring()
        if sample_weight is not None:
            raise InvalidParameter(
                "sample_weight=",
                "weights were given",
                "a private score has one bound for every row",
                "leave it out",
            )
        low, high = _ends(self.target_bounds, "target_bounds=", 1, None)[0]
        check_is_fitted(self, "coef_")
        table = self._table(X, reset=False)
        target = _vector(y, table.rows)
        columns, schema = self._declared(table, target)
        with Secluded():
            predicted = np.clip(self._sum(_bounded(table, schema)), low, high)
            errors = _clamped(target, low, high) - predicted
            errors = np.square(np.clip(errors, low - high, high - low))
        session = self._opened(
            {"error": errors, TARGET: columns[TARGET]},
            {"error": dp.Real(0, (high - low) ** 2), TARGET: schema[TARGET]},
            spend,
        )
        half = _half(spend)
        self.score_results_ = (
            dp.mean(session, "error", spend=half),
            dp.variance(session, TARGET, spend=half),
        )
        squares, spread = (result.estimate for result in self.score_results_)
        return 1 - max(squares, 0.0) / max(spread, 1e-300)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class PrivateLinearRegression(_PrivateRegressor):
    """dp.ols as a scikit-learn regressor; `method` is "clipped" or "moments"."""

    def __init__(
        self,
        spend: Any = None,
        *,
        neighbors: Any = None,
        bounds: Any = None,
        target_bounds: Any = None,
        fit_intercept: bool = True,
        budget: Any = None,
        ledger: str | Path | None = None,
        score_spend: Any = None,
        method: str = "clipped",
    ) -> None:
        self.spend, self.neighbors, self.bounds, self.target_bounds, self.fit_intercept = (
            spend,
            neighbors,
            bounds,
            target_bounds,
            fit_intercept,
        )
        self.budget, self.ledger, self.score_spend, self.method = (
            budget,
            ledger,
            score_spend,
            method,
        )

    def _regression(self, session: dp.Session, formula: str) -> Any:
        return dp.ols(session, formula, spend=self.spend, method=self.method)


class PrivateHuberRegressor(_PrivateRegressor):
    """dp.robust as a scikit-learn regressor;
    `c` is Huber's constant (chosen by the noise index unless given).
    """

    def __init__(
        self,
        spend: Any = None,
        *,
        neighbors: Any = None,
        bounds: Any = None,
        target_bounds: Any = None,
        fit_intercept: bool = True,
        budget: Any = None,
        ledger: str | Path | None = None,
        score_spend: Any = None,
        c: float | None = None,
    ) -> None:
        self.spend, self.neighbors, self.bounds, self.target_bounds, self.fit_intercept = (
            spend,
            neighbors,
            bounds,
            target_bounds,
            fit_intercept,
        )
        self.budget, self.ledger, self.score_spend, self.c = budget, ledger, score_spend, c

    def _regression(self, session: dp.Session, formula: str) -> Any:
        return dp.robust(session, formula, spend=self.spend, c=self.c)


class PrivateLogisticRegression(ClassifierMixin, _PrivateRegression):  # type: ignore[misc]
    """dp.logistic as a scikit-learn classifier of two declared classes;
    a label that is neither counts as the first.
    """

    def __init__(
        self,
        spend: Any = None,
        *,
        neighbors: Any = None,
        bounds: Any = None,
        classes: Any = (0, 1),
        fit_intercept: bool = True,
        budget: Any = None,
        ledger: str | Path | None = None,
        score_spend: Any = None,
    ) -> None:
        self.spend, self.neighbors, self.bounds, self.classes, self.fit_intercept = (
            spend,
            neighbors,
            bounds,
            classes,
            fit_intercept,
        )
        self.budget, self.ledger, self.score_spend = budget, ledger, score_spend

    def _regression(self, session: dp.Session, formula: str) -> Any:
        self.classes_ = self._classes()
        return dp.logistic(session, formula, spend=self.spend)

    def _classes(self) -> np.ndarray[Any, Any]:
        labels = np.asarray(self.classes)
        if labels.shape != (2,) or labels[0] == labels[1]:
            raise InvalidParameter(
                "classes=",
                "not two different labels",
                "classes are declared, never read from the data",
                "pass for example classes=(0, 1)",
            )
        return labels

    def _target(self, target: Any) -> tuple[Any, Any]:
        return _equal(target, self._classes()[1]), dp.Boolean()

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
        """A private accuracy on (X, y), released at `score_spend`;
        refused unless that was given.
        """
        spend = self._scoring()
        if sample_weight is not None:
            raise InvalidParameter(
                "sample_weight=",
                "weights were given",
                "a private score has one bound for every row",
                "leave it out",
            )
        check_is_fitted(self, "coef_")
        table = self._table(X, reset=False)
        columns, schema = self._declared(table, _vector(y, table.rows))
        with Secluded():
            right = (self._sum(_bounded(table, schema)) > 0) == columns[TARGET]
        session = self._opened({"right": right}, {"right": dp.Boolean()}, spend)
        self.score_results_ = (dp.proportion(session, "right", spend=spend),)
        return float(min(max(self.score_results_[0].estimate, 0.0), 1.0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags


def _ends(bounds: Any, name: str, width: int, names: Any) -> list[tuple[float, float]]:
    """(low, high) of every column: one pair for all, a pair of arrays,
    or a mapping from names to pairs.
    """
    if bounds is None:
        raise InvalidParameter(
            name,
            "no bounds were given",
            "bounds set the noise, and they are never read from the data",
            f"pass {name}(low, high), from public knowledge",
        )
    try:
        if isinstance(bounds, Mapping):
            pairs = [tuple(bounds[label]) for label in names]
        else:
            low, high = bounds
            pairs = list(
                zip(
                    np.broadcast_to(low, width).tolist(),
                    np.broadcast_to(high, width).tolist(),
                    strict=True,
                )
            )
        ends = [(float(low), float(high)) for low, high in pairs]
    except (TypeError, ValueError, LookupError):
        ends = []
    if len(ends) != width or not all(
        math.isfinite(low) and math.isfinite(high) and low < high for low, high in ends
    ):
        raise InvalidParameter(
            name,
            f"not a pair (low, high) for each of {width} columns",
            "bounds set the noise",
            f"pass {name}(low, high), two arrays of {width} numbers, or a mapping from column "
            "names to pairs",
        )
    return ends


def _declared_width(bounds: Any) -> int | None:
    """How many columns the bounds declare; None where they do not (one pair for all, or names)."""
    if isinstance(bounds, Mapping):
        return None
    try:
        low, high = bounds
        shape = np.broadcast_shapes(np.shape(low), np.shape(high))
    except (TypeError, ValueError):
        return None
    return shape[0] if len(shape) == 1 else None


def _is_list(table: Any) -> bool:
    """Whether X or y is a list of rows or cells, which has no type and no shape of its own."""
    return (
        isinstance(table, Sequence)
        and not isinstance(table, (str, bytes, bytearray))
        and not hasattr(table, "__array__")
    )


def _columns_of(X: Any, declared: int | None) -> tuple[list[Any], int]:  # noqa: N803
    """The columns of X and its number of rows."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return [column.to_native() for column in frame.iter_columns()], len(frame)
    if _is_list(X):
        with Secluded():
            rows = [_row(row) for row in X]
        return _columns_of_rows(rows, declared), len(rows)
    table = _array(X)
    if table.ndim != 2:
        raise _not_two_dimensional(table.ndim)
    return [table[:, place] for place in range(table.shape[1])], len(table)


def _columns_of_rows(rows: Sequence[Sequence[Any]], declared: int | None) -> list[Any]:
    """Rows as columns of cells: None where a row is short; what is beyond the width is left out."""
    lengths = Counter(map(len, rows))
    usual = min(
        (length for length, count in lengths.items() if count == max(lengths.values())), default=0
    )
    if usual == 0 and declared is None:
        raise _not_two_dimensional(1)
    width = usual if declared is None else declared
    return [[row[place] if place < len(row) else None for row in rows] for place in range(width)]


def _row(row: Any) -> Sequence[Any]:
    """The cells of one row; none where it is no row. It fails for nothing that a row can be."""
    try:
        if isinstance(row, np.ndarray):
            return tuple(row.tolist()) if row.ndim == 1 else ()
        if isinstance(row, (str, bytes, bytearray, Mapping, Set)) or not hasattr(
            type(row), "__len__"
        ):
            return ()
        return tuple(row)
    except Exception:
        return ()


def _array(values: Any) -> Any:
    """An array (or what can be one) as it is, dtype and mask kept; refused by its type alone."""
    if not (hasattr(values, "__array__") or isinstance(values, (np.generic, memoryview))):
        raise ValueError(f"Expected 2D array, got a {type(values).__name__} instead.")
    array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if np.iscomplexobj(array):
        raise ValueError("Complex data not supported.")
    return array


def _not_two_dimensional(dimensions: int) -> ValueError:
    return ValueError(
        f"Expected 2D array, got {dimensions}D array instead. Reshape your data using "
        "array.reshape(-1, 1) or array.reshape(1, -1)."
    )


def _vector(y: Any, rows: int) -> Any:
    """y as one column (a list, an array or a series), refused for its shape or type alone."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    target: Any = nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(target, nw.DataFrame):
        target = list(target.iter_columns())
        if len(target) != 1:
            raise ValueError(
                f"y should be a 1d array, got an array of shape {(rows, len(target))} instead."
            )
        _warn_of_a_column()
        target = target[0]
    if isinstance(target, nw.Series):
        length, target = len(target), target.to_native()
    elif _is_list(target):
        target = [_only(cell) for cell in target]
        length = len(target)
    else:
        target = _array(target)
        if target.ndim == 2 and target.shape[1] == 1:
            _warn_of_a_column()
            target = target[:, 0]
        if target.ndim != 1:
            raise ValueError(
                f"y should be a 1d array, got an array of shape {target.shape} instead."
            )
        length = len(target)
    if length != rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[rows, length]}"
        )
    return target


def _warn_of_a_column() -> None:
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected.",
        DataConversionWarning,
        stacklevel=4,
    )


def _only(cell: Any) -> Any:
    """The one cell of a row of one, as lists of columns have them; any other cell as it is."""
    one = (
        len(cell) == 1
        if type(cell) is list or type(cell) is tuple
        else type(cell) is np.ndarray and cell.shape == (1,)
    )
    return cell[0] if one else cell


def _numbers(column: Any) -> Floats:
    """Every cell of a column as a float, NaN where it is no number: the rule of a fit.

    Checked.  tests/claims/test_rows_alone.py::test_lists_are_read_as_the_fit_reads_them
    """
    return numbers(cells_of(column))


def _equal(column: Any, label: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which cells equal a label, each compared for itself.

    What cannot be compared, or gives no single answer, is not equal.
    """
    wanted = label.item() if isinstance(label, np.generic) else label
    kinds = "U" if isinstance(wanted, str) else "iufb" if isinstance(wanted, (int, float)) else ""
    if isinstance(column, np.ndarray) and column.dtype.kind in kinds:
        with np.errstate(all="ignore"):
            same = (np.ma.getdata(column) == wanted) & ~np.ma.getmaskarray(column)
        return np.asarray(same, dtype=np.bool_)
    with Secluded():
        cells = _objects(column)
        return np.fromiter((_is(cell, wanted) for cell in cells), dtype=np.bool_, count=len(cells))


def _objects(column: Any) -> list[Any]:
    """The cells of a column as Python objects, each as a fit reads it."""
    return python_objects(cells_of(column))


def _is(cell: Any, label: Any) -> bool:
    try:
        same = cell == label
    except Exception:
        return False
    return (type(same) is bool or type(same) is np.bool_) and bool(same)


def _clamped(column: Any, low: float, high: float) -> Floats:
    """Numbers within their bounds; what is no number is the middle."""
    numbers = _numbers(column)
    return np.asarray(np.clip(np.where(np.isnan(numbers), (low + high) / 2, numbers), low, high))


def _bounded(table: _Table, schema: dict[str, Any]) -> list[Floats]:
    """The columns of X within their bounds, as the fit read them."""
    return [
        _clamped(column, schema[f"x{place}"].low, schema[f"x{place}"].high)
        for place, column in enumerate(table.columns)
    ]


def _half(spend: Any) -> Any:
    """Half of a spend, in its own currency."""
    if isinstance(spend, dp.GDP):
        return dp.GDP(spend.mu * math.sqrt(0.5) * (1 - 1e-9))
    if isinstance(spend, dp.ZCDP):
        return dp.ZCDP(spend.rho / 2 * (1 - 1e-9))
    if isinstance(spend, dp.PureDP):
        return dp.PureDP(spend.epsilon / 2 * (1 - 1e-9))
    raise InvalidParameter(
        "score_spend=",
        "it cannot be halved",
        "a score of a regression is made of two releases",
        "spend dp.GDP(mu), dp.ZCDP(rho) or dp.PureDP(epsilon)",
    )
