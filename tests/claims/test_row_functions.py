"""Functions of one row: what may keep nothing is run, what may keep something is refused by what it
is made of, and a control shows what would happen if it were not.
"""

from __future__ import annotations

import math
import random
from math import sqrt

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.specs.holdout import surprises
from discreet.specs.holdout.pure_functions import pure_copy, texts_of
from discreet.specs.holdout.surprises import RowFunction, Surprise
from discreet.testing import seeded_session
from discreet.trusted.aggregation.holdout import row_functions
from discreet.trusted.engines.execution import execute

SCHEMA = {
    "a": dp.Real(0, 10),
    "n": dp.Integer(0, 5, missing=1),
    "c": dp.Category(["u", "v"]),
    "b": dp.Boolean(),
}
WEIGHTS, LIMIT, SEEN, COUNT, PATTERN = (0.5, 0.25), 3, [], 0, "%s"
MATRIX = np.array([0.5, 0.5])


def nested(row):
    def square(x):
        return x * x

    total = 0.0
    for weight, name in zip(WEIGHTS, ("a", "n"), strict=True):
        total += weight * square(row[name])
    return total / 100


def with_a_list(row):
    kept = []
    for step in range(3):
        kept.append(row["a"] * step)
    kept[0] = 1
    return max(kept) / 30


ALLOWED = {
    "arithmetic": (lambda row: row["a"] * row["n"] / 50, lambda a, n, c, b: a * n / 50),
    "a level": (lambda row: row["c"] == "u", lambda a, n, c, b: c == "u"),
    "math": (lambda row: math.exp(-row["a"]), lambda a, n, c, b: math.exp(-a)),
    "a function of math": (lambda row: sqrt(row["a"]) / 4, lambda a, n, c, b: sqrt(a) / 4),
    "one of several": (lambda row: row["n"] in {2, 3}, lambda a, n, c, b: n in (2, 3)),
    "names outside": (lambda row: row["a"] > LIMIT, lambda a, n, c, b: a > LIMIT),
    "a branch": (
        lambda row: 1 if row["b"] and row["n"] >= 2 else 0,
        lambda a, n, c, b: bool(b) and n >= 2,
    ),
    "a function inside": (nested, lambda a, n, c, b: (0.5 * a * a + 0.25 * n * n) / 100),
    "a list of its own": (with_a_list, lambda a, n, c, b: max(1, a, 2 * a) / 30),
    "a comprehension": (
        lambda row: sum(row["a"] + step for step in range(3)) / 40,
        lambda a, n, c, b: (3 * a + 3) / 40,
    ),
}


def counter():
    count = 0

    def counted(row):
        nonlocal count
        count += 1
        return count / 10

    return counted


def seen_before(row):
    SEEN.append(row["a"])
    return len(SEEN) / 10


def global_count(row):
    global COUNT
    COUNT += 1
    return COUNT / 10


def own_attribute(row):
    own_attribute.count = getattr(own_attribute, "count", 0) + 1
    return own_attribute.count / 10


def grown_default(row, kept=[]):  # noqa: B006
    kept.append(row["a"])
    return len(kept) / 10


def tried(row):
    try:
        return row["a"]
    except Exception:
        return 0


def imported(row):
    import os

    return os.getpid() % 2


def row_and_default(row, scale=2.0):
    return row["a"] / scale


class Callable:
    """A function with a memory."""

    def __call__(self, row):
        return 0.5


REFUSED = {
    "a shared list": (seen_before, "SEEN is a list"),
    "a counter around it": (counter(), "variable around it"),
    "a global counter": (global_count, "STORE_GLOBAL"),
    "an attribute of its own": (own_attribute, "STORE_ATTR"),
    "a default that grows": (grown_default, "take one row"),
    "two arguments": (row_and_default, "take one row"),
    "a vectorised function": (lambda row: np.mean(row["a"]), ".mean"),
    "a matrix": (lambda row: MATRIX[0] * row["a"], "MATRIX is a ndarray"),
    "chance": (lambda row: random.random(), "random"),
    "a print": (lambda row: print(row) or 1, "print"),
    "a file": (lambda row: len(open("seen")), "open"),  # noqa: SIM115
    "an address": (lambda row: id(row) % 2, "id"),
    "a hash": (lambda row: hash(row["c"]) % 2, "hash"),
    "an address in text": (lambda row: len(PATTERN % (abs,)), "%"),
    "an f-string": (lambda row: len(f"{row}"), "FORMAT"),
    "a set": (lambda row: len({row["a"], 1}), "BUILD_SET"),
    "what is caught": (tried, "not among those that keep nothing"),
    "an import": (imported, "IMPORT_NAME"),
    "a frame": (lambda row: (x for x in [1]).gi_frame, "gi_frame"),
    "globals": (lambda row: globals(), "globals"),
    "an evaluation": (lambda row: eval("1"), "eval"),
    "a class": (Callable(), "Callable"),
    "a built-in": (abs, "builtin_function"),
    "no function": (3, "int"),
    "bytes": (lambda row: len(b"%s"), "bytes"),
    "a helper outside": (lambda row: nested(row), "nested is a function"),
}


def summed(function, rows, relation=None, bits=20):
    """The steps that a function gives in all, by the engine."""
    columns = dict(zip(SCHEMA, zip(*rows, strict=True), strict=True))
    arrays = {
        "a": np.array([math.nan if v is None else v for v in columns["a"]], dtype=float),
        "n": np.array([math.nan if v is None else v for v in columns["n"]], dtype=float),
        "c": np.array(columns["c"], dtype=object),
        "b": np.array(columns["b"], dtype=object),
    }
    data = dp.from_arrays(arrays, schema=SCHEMA, neighbors=relation or dp.AddRemove())
    query = Surprise(RowFunction(tuple(SCHEMA), "f", bits, function), 0, 0, 1 << bits)
    return execute(data._engine, query.plan())


ROWS = [(3.0, 2, "u", True), (10.0, 0, "v", False), (0.25, 5, "u", False), (7.5, 3, "v", True)]


@pytest.mark.parametrize("name", ALLOWED)
def test_what_keeps_nothing_is_run_row_by_row(name) -> None:
    function, meant = ALLOWED[name]
    each = [math.floor(min(max(meant(*row), 0), 1) * 2**20) for row in ROWS]
    assert summed(function, ROWS) == (sum(each), len(ROWS))
    assert [summed(function, [row])[0] for row in ROWS] == each
    assert summed(function, ROWS[::-1]) == summed(function, ROWS)


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_keep_something_is_refused(name) -> None:
    function, found = REFUSED[name]
    with pytest.raises(InvalidParameter, match="a function of one row") as refused:
        RowFunction(("a",), "f", 20, function)
    assert found in str(refused.value)
    assert "Why it matters" in str(refused.value)


@pytest.mark.parametrize("name", ["a shared list", "a counter around it", "a global counter"])
def test_a_function_with_a_memory_is_caught(name, monkeypatch) -> None:
    """The control: without the check one row moves a sum by more than its own steps."""
    monkeypatch.setattr(surprises, "pure_copy", lambda function: function)
    monkeypatch.setattr(row_functions, "pure_copy", lambda function: function)
    SEEN.clear()
    global COUNT
    COUNT = 0
    function = counter() if name == "a counter around it" else REFUSED[name][0]
    with_row, _ = summed(function, ROWS)
    SEEN.clear()
    COUNT = 0
    function = counter() if name == "a counter around it" else REFUSED[name][0]
    without, _ = summed(function, ROWS[1:])
    moved = with_row - without
    assert moved == pytest.approx((10 - 6) / 10 * 2**20, abs=4)
    # the value of the row that left was a tenth: the rest is what it changed of the others
    assert moved > 3.9 * 2**20 / 10


def test_a_vectorised_function_would_mix_rows() -> None:
    """The control: called on whole columns, a function makes one row move all others."""
    columns = np.array([row[0] for row in ROWS])
    share = lambda column: np.clip(column / column.max(), 0, 1)
    moved = share(columns).sum() - share(columns[[0, 2, 3]]).sum()
    assert abs(moved - share(columns)[1]) > 0.1
    with pytest.raises(InvalidParameter):
        pure_copy(share)


OUTCOMES = {
    "fails": (lambda row: 1 / 0, 0),
    "an unknown column": (lambda row: row["z"], 0),
    "text": (lambda row: row["c"], 0),
    "nothing": (lambda row: None, 0),
    "not a number": (lambda row: math.inf - math.inf, 0),
    "a complex number": (lambda row: (row["n"] - 2) ** 0.5, 0),
    "a list": (lambda row: [1], 0),
    "infinite": (lambda row: math.inf, 1),
    "a huge whole number": (lambda row: 10**400, 1),
    "negative": (lambda row: -5.5, 0),
    "True": (lambda row: True, 1),
    "no value": (lambda row: row["a"] + 1, 0),
    "an endless recursion": (lambda row: (lambda f: f(f))(lambda f: f(f)), 0),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_every_outcome_is_a_number_of_steps(name, capsys) -> None:
    function, share = OUTCOMES[name]
    odd = [(None, None, "?", None)]
    assert summed(function, odd) == (share * 2**20, 1)
    assert capsys.readouterr() == ("", "")


def test_a_row_holds_plain_values() -> None:
    kinds = {
        "a": lambda row: row["a"] is None,
        "n": lambda row: row["n"] == 1 and row["n"].bit_length() == 1,
        "c": lambda row: row["c"] is None,
        "b": lambda row: row["b"] is None,
    }
    for function in kinds.values():
        assert summed(function, [(None, None, "?", None)]) == (2**20, 1)
    assert summed(lambda row: row["b"] is True and row["c"] == "v", ROWS)[0] == 2**20


def test_what_runs_is_a_copy_of_what_was_checked() -> None:
    """A function that is exchanged after its check is checked again, and refused."""

    def function(row):
        return row["a"] / 10

    part = RowFunction(("a",), "f", 20, function)
    function.__code__ = seen_before.__code__
    data = dp.from_arrays({"a": [1.0]}, schema={"a": SCHEMA["a"]}, neighbors=dp.AddRemove())
    with pytest.raises(InvalidParameter):
        execute(data._engine, part.plan())
    copy = pure_copy(lambda row: abs(row["a"]))
    assert set(copy.__globals__) == {"__builtins__"}
    assert "print" not in copy.__globals__["__builtins__"]


def test_text_by_which_text_is_formatted_is_no_level() -> None:
    schema = {"c": dp.Category(["%s", "v"])}
    data = dp.from_arrays({"c": ["v"]}, schema=schema, neighbors=dp.AddRemove())
    session = seeded_session(data, dp.GDP(10), 1)
    holdout = dp.holdout(session, threshold=0.1, answers=1, spend=dp.GDP(1))
    with pytest.raises(InvalidParameter, match="another kind"):
        holdout.mean(lambda row: len(row["c"] % (abs,)), training=0.5)


def test_the_columns_of_a_function_are_those_that_it_names() -> None:
    assert texts_of(lambda row: row["a"] * max(row["b"] for step in (1, 2))) == {"a", "b"}
    assert texts_of(abs) == frozenset()
