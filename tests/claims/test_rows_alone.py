"""Claim: what a row becomes in the scikit-learn estimators depends on that row alone, whatever the
cells and rows beside it hold.
"""

from __future__ import annotations

import datetime
import math
import warnings
from decimal import Decimal

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import discreet as dp
from discreet.sklearn import PrivateLinearRegression, PrivateLogisticRegression
from discreet.sklearn.cells import equal_to, numbers_of
from discreet.sklearn.tables import columns_of
from discreet.testing import SeededSource
from discreet.trusted import datasets
from discreet.trusted.engines import cells, columns

ROWS = 60


@pytest.fixture(autouse=True)
def _the_same_noise(monkeypatch):
    monkeypatch.setattr(datasets, "secure_source", lambda: SeededSource("the same"))


def rows_and_targets():
    rng = np.random.default_rng(5)
    X = np.round(rng.uniform(-3, 3, (ROWS, 2)), 3)
    return X.tolist(), np.round(1 + X @ [2.0, -1.0], 3).tolist(), (X[:, 0] > 0).astype(int).tolist()


def linear(**changes):
    return PrivateLinearRegression(
        **(
            {
                "spend": dp.GDP(1000),
                "neighbors": dp.Replace(),
                "bounds": (-3, 3),
                "target_bounds": (-8, 10),
                "score_spend": dp.GDP(1000),
            }
            | changes
        )
    )


def logistic(**changes):
    return PrivateLogisticRegression(
        **(
            {
                "spend": dp.GDP(1000),
                "neighbors": dp.Replace(),
                "bounds": (-3, 3),
                "score_spend": dp.GDP(1000),
            }
            | changes
        )
    )


def coefficients(model, X, y):
    fitted = model.fit(X, y)
    return [fitted.intercept_, *fitted.coef_]


class Hostile:
    """A cell that fails whatever is asked of it."""

    def __eq__(self, other):
        raise RuntimeError("a cell")

    __hash__ = None

    def __float__(self):
        raise RuntimeError("a cell")

    def __array__(self, *args, **options):
        raise RuntimeError("a cell")

    def __len__(self):
        raise RuntimeError("a cell")


class Several:
    """A cell that is equal to an array of answers."""

    __hash__ = None

    def __eq__(self, other):
        return np.array([True, True])


ODD = [
    "x",
    b"x",
    1j,
    [1, 2],
    [],
    {},
    None,
    (),
    Hostile(),
    Several(),
    np.array([1, 2]),
    math.nan,
    math.inf,
    10**400,
    Decimal("sNaN"),
    datetime.date(2020, 1, 1),
    np.datetime64("NaT"),
    True,
    "1.5",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "odd",
    ODD,
    ids=lambda odd: (
        f"{type(odd).__name__} {str(odd)[:9]}"
        if not isinstance(odd, (Hostile, Several))
        else type(odd).__name__
    ),
)
def test_one_odd_cell_changes_one_row(odd):
    """With next to no noise, a fit with one odd cell is the fit with the number that it is read as,
    and no other row is read otherwise.
    """
    X, y, labels = rows_and_targets()
    number = numbers_of([odd])[0]
    read = 0.0 if math.isnan(number) else number
    spoilt, plain = [list(row) for row in X], [list(row) for row in X]
    spoilt[7][1], plain[7][1] = odd, read
    assert coefficients(linear(), spoilt, y) == pytest.approx(
        coefficients(linear(), plain, y), abs=1e-9
    )
    one, other = list(y), list(y)
    one[3] = odd
    other[3] = 1.0 if math.isnan(number) else number  # the middle of the target's bounds
    if not (isinstance(odd, list) and len(odd) == 1):
        assert coefficients(linear(), X, one) == pytest.approx(
            coefficients(linear(), X, other), abs=1e-9
        )
    one, other = list(labels), list(labels)
    one[3], other[3] = odd, int(type(odd) is bool)
    assert coefficients(logistic(), X, one) == pytest.approx(
        coefficients(logistic(), X, other), abs=1e-9
    )


def test_one_text_among_booleans_changes_one_label():
    X, _, labels = rows_and_targets()
    one = [bool(label) for label in labels]
    one[0] = "text"
    other = [0, *labels[1:]]
    assert coefficients(logistic(), X, one) == pytest.approx(
        coefficients(logistic(), X, other), abs=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [
        [],
        [1.0],
        [1.0, 2.0, 3.0],
        "ab",
        b"ab",
        5.0,
        None,
        {},
        {1.0, 2.0},
        Hostile(),
        np.array([1.0]),
        np.ones((2, 2)),
        [[1.0], [2.0]],
        iter([1.0, 2.0]),
    ],
    ids=lambda row: type(row).__name__,
)
def test_a_row_of_another_length_is_short_or_cut_and_never_refused(row):
    X, y, _ = rows_and_targets()
    ragged, plain = [*X], [*X]
    ragged[0] = row  # the first row is a person's row too
    known = (
        [1.0, 2.0]
        if isinstance(row, list) and len(row) == 3
        else [1.0, 0.0]
        if isinstance(row, (list, np.ndarray)) and np.shape(row) == (1,)
        else [0.0, 0.0]
    )
    plain[0] = known
    for bounds in ((-3, 3), ([-3, -3], [3, 3])):
        model = linear(bounds=bounds)
        assert coefficients(model, ragged, y) == pytest.approx(
            coefficients(linear(bounds=bounds), plain, y), abs=1e-9
        )
        assert model.score(ragged, y) == pytest.approx(model.score(plain, y), abs=1e-6)
        assert model.predict(ragged).shape == (ROWS,)


def test_declared_columns_or_most_rows_say_how_wide_a_list_is():
    X, y, _ = rows_and_targets()
    assert linear(bounds=([-3], [3])).fit(X, y).n_features_in_ == 1
    assert linear(bounds=([-3] * 3, 3)).fit(X, y).n_features_in_ == 3
    assert linear().fit([[1.0], *X[1:]], y).n_features_in_ == 2
    for shape in ([], [1.0, 2.0], ["ab", "cd"], 5.0, "text", iter(X)):
        with pytest.raises(ValueError, match=r"2D|sample"):
            linear().fit(shape, y[:2])
    with pytest.raises(ValueError, match="features"):
        linear().fit(X, y).predict([[1.0], [2.0]])


def test_labels_are_compared_one_by_one():
    odd = [*ODD, "yes", np.str_("yes"), "no"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = equal_to(odd, np.str_("yes"))
    assert found.tolist() == [False] * len(ODD) + [True, True, False]
    assert equal_to(np.array([0, 1, 2]), np.int64(1)).tolist() == [False, True, False]
    assert equal_to([True, 1.0, 1, 0, Decimal(1)], np.int64(1)).tolist() == [
        True,
        True,
        True,
        False,
        True,
    ]
    assert equal_to(np.array(["a", "b"]), np.int64(1)).tolist() == [False, False]
    assert equal_to(np.ma.array([1, 1], mask=[False, True]), np.int64(1)).tolist() == [
        True,
        False,
    ]
    assert equal_to(pandas.Series(["a", None, "b"]), np.str_("b")).tolist() == [
        False,
        False,
        True,
    ]
    assert equal_to(polars.Series([1, None, 0]), np.int64(1)).tolist() == [
        True,
        False,
        False,
    ]


TABLES = {
    "numbers": {"a": [1.5, -2.0, 3.0], "b": [1, 2, 3]},
    "missing": {"a": [1.5, None, 3.0], "b": [1, None, 3]},
    "booleans": {"a": [True, None, False], "b": [0.5, 0.25, 1.0]},
    "texts": {"a": ["1.5", "x", None], "b": ["2", " 3", ""]},
    "dates": {"a": [datetime.date(2020, 1, 1)] * 3, "b": [1.0, 2.0, 3.0]},
}


@pytest.mark.parametrize("name", TABLES)
def test_columns_of_frames_are_read_as_the_fit_reads_them(name):
    given = TABLES[name]
    frames = [
        pandas.DataFrame(given),
        polars.DataFrame(given),
        pyarrow.table(given),
        pandas.DataFrame(given).convert_dtypes(),
    ]
    for frame in frames:
        for column, series in zip(
            columns_of(frame, None)[0],
            columns.nw.from_native(frame, eager_only=True).iter_columns(),
            strict=True,
        ):
            np.testing.assert_array_equal(
                numbers_of(column), cells.numbers(columns.cells_from_series(series))
            )


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1, 2], [3, 4]], dtype=np.uint8),
        np.array([[1.5, np.nan], [np.inf, 4]]),
        np.array([[True, False], [True, True]]),
        np.array([["1.5", "x"], ["2", ""]]),
        np.array([["1.5", None], [{}, 2]], dtype=object),
        np.array([[b"1", b"2"], [b"3", b"4"]]),
        np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 0]]),
        np.array([["2020-01-01"] * 2] * 2, dtype="datetime64[D]"),
        np.array([[1e5000, 1], [2, 3]], dtype=np.longdouble),
    ],
    ids=lambda array: str(array.dtype),
)
def test_columns_of_arrays_keep_their_type_and_are_read_as_the_fit_reads_them(array):
    for column in columns_of(array, None)[0]:
        np.testing.assert_array_equal(
            numbers_of(column), cells.numbers(columns.cells_from_array(column))
        )


def test_lists_are_read_as_the_fit_reads_them():
    np.testing.assert_array_equal(numbers_of(ODD), cells.numbers(columns.cells_from_sequence(ODD)))


# ── scores ────────────────────────────────────────────────────────────────────────────────────


def fitted(width, seed):
    rng = np.random.default_rng(seed)
    model = logistic()
    model.coef_, model.intercept_, model.n_features_in_ = (
        rng.normal(size=width),
        float(rng.normal()),
        width,
    )
    model.classes_ = np.array([0, 1])
    return model, rng


@pytest.mark.parametrize("width", [1, 2, 3, 7, 20])
def test_equal_rows_have_one_predictor_wherever_they_stand(width):
    """A matrix product gives equal rows other last bits by their place in a block."""
    model, rng = fitted(width, width)
    row, found = rng.uniform(-3, 3, width), set()
    for rows in (1, 2, 3, 5, 8, 17, 64, 333, 1000):
        table = rng.uniform(-3, 3, (rows, width))
        for place in {0, 1, rows // 2, rows - 1} & set(range(rows)):
            table[place] = row
            for given in (table, np.asfortranarray(table), table[::-1][::-1]):
                found.add(float(model.decision_function(given)[place]))
    assert len(found) == 1


@pytest.mark.slow
@pytest.mark.parametrize("width", [3, 7, 20])
def test_neighbouring_tables_move_the_number_of_right_predictions_by_at_most_one(
    width, monkeypatch
):
    """Many rows that lie on the boundary to the last bit: whether each is right must not depend on
    how many there are.
    """
    model, rng = fitted(width, 100 + width)
    counted = []

    def opened(self, columns, schema, spend):
        counted.append(int(np.count_nonzero(columns["right"])))
        raise StopIteration

    monkeypatch.setattr(type(model), "_opened", opened)
    for _ in range(40):
        row = rng.uniform(-3, 3, width)
        exact = sum(
            float(value) * float(coefficient)
            for value, coefficient in zip(row, model.coef_, strict=True)
        )
        model.intercept_ = -float(np.dot(row, model.coef_)) if rng.random() < 0.5 else -exact
        counted.clear()
        for rows in range(1, 40):
            with pytest.raises(StopIteration):
                model.score(np.tile(row, (rows, 1)), np.ones(rows, dtype=int))
        steps = np.diff([0, *counted])
        assert ((steps == 0) | (steps == 1)).all()
        assert len(set(steps.tolist())) == 1  # every one of the equal rows is right, or none is


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["pandas", "nullable", "arrow", "polars", "pyarrow"])
def test_one_text_that_is_not_utf8_is_one_missing_cell(backend, tmp_path):
    """Such a cell in a column of text made predict, score and the fit of labels raise,
    with its bytes in the error.
    """
    X, _, y = rows_and_targets()
    for spoiled in ("1.5", b"\xff"):
        texts = [str(row[0]).encode() for row in X]
        texts[3] = spoiled if isinstance(spoiled, bytes) else spoiled.encode()
        buffers = pyarrow.array(texts).buffers()
        column = pyarrow.Array.from_buffers(pyarrow.string(), len(texts), buffers)
        table = pyarrow.table({"a": column, "b": [row[1] for row in X]})
        try:
            frame = {
                "pandas": lambda table=table: table.to_pandas(),
                "nullable": lambda table=table: table.to_pandas(
                    types_mapper={pyarrow.string(): pandas.StringDtype("pyarrow")}.get
                ),
                "arrow": lambda table=table: table.to_pandas(types_mapper=pandas.ArrowDtype),
                "polars": lambda table=table: polars.from_arrow(table),
                "pyarrow": lambda table=table: table,
            }[backend]()
        except Exception:  # the library itself refuses to hold the text
            continue
        fitted = logistic().fit(frame, y)
        assert np.isnan(fitted.decision_function(frame)[3]) == (spoiled == b"\xff")
        assert np.isfinite(np.delete(fitted.decision_function(frame), 3)).all()
        assert np.isfinite(fitted.score(frame, y))
        labels = table.column("a") if backend == "pyarrow" else frame["a"]
        assert np.isfinite(
            coefficients(logistic(classes=("1.5", "2")), [row[1:] for row in X], labels)
        ).all()


@pytest.mark.parametrize("empty", [0, 29, 30, 31, ROWS])
def test_declared_bounds_say_the_width_however_many_rows_are_empty(empty):
    X, y, _ = rows_and_targets()
    rows = [[] if place < empty else row for place, row in enumerate(X)]
    assert len(coefficients(linear(bounds=([-3, -3], [3, 3])), rows, y)) == 3
