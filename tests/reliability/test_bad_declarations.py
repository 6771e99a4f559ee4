"""Columns that are declared wrongly: refused before anything is read."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from reliability_cases import ESTIMATORS, SCHEMA, sound
from test_bad_parameters import (
    INFINITY,
    NAN,
    PLANTED,
    Watched,
    assert_declaration_refused,
    kind_of,
)

import discreet as dp


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1, 0),
        (0, 0),
        (0.0, -0.0),
        (5, -5),
        (1e300, -1e300),
        (10**5000, 10**4999),
        (Fraction(1, 3), Fraction(1, 3)),
    ],
    ids=kind_of,
)
def test_case_08_bounds_reversed_or_equal(low, high):
    for kind in (dp.Real, dp.Integer):
        assert_declaration_refused(lambda kind=kind: kind(low, high))


def test_case_08_a_missing_value_outside_its_bounds():
    for value in (-1, 11, NAN, INFINITY, "5", True, 10**400, 10**5000):
        for kind in (dp.Real, dp.Integer):
            assert_declaration_refused(lambda kind=kind, value=value: kind(0, 10, missing=value))
    assert_declaration_refused(lambda: dp.Category(["a"], missing="b"))
    assert_declaration_refused(lambda: dp.Boolean(missing=0))


@pytest.mark.parametrize(
    "bound",
    [NAN, INFINITY, -INFINITY, Decimal("nan"), np.float64("inf"), "0", True, 1j, [0]],
    ids=kind_of,
)
def test_case_09_bounds_that_are_no_finite_numbers(bound):
    for kind in (dp.Real, dp.Integer):
        assert_declaration_refused(lambda kind=kind: kind(bound, 1))
        assert_declaration_refused(lambda kind=kind: kind(0, bound))


def test_case_10_bounds_missing():
    for declare in (
        lambda: dp.Real(),
        lambda: dp.Real(0),
        lambda: dp.Real(high=1),
        lambda: dp.Real(None, None),
        lambda: dp.Integer(),
        lambda: dp.Integer(low=3),
        lambda: dp.Integer(None, 5),
    ):
        assert "never read from the data" in assert_declaration_refused(declare).why


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        [],
        ["x"],
        "x",
        {"x": None},
        {"x": (0, 1)},
        {"x": float},
        {"x": dp.Real},
        {"": dp.Boolean()},
        {5: dp.Boolean()},
    ],
)
def test_case_10_a_schema_that_declares_nothing(schema):
    columns = {name: Watched(cells) for name, cells in PLANTED.items()}
    assert_declaration_refused(
        lambda: dp.from_arrays(columns, schema=schema, neighbors=dp.Replace())
    )
    assert not any(column.reads for column in columns.values())


@pytest.mark.parametrize(
    "declare",
    [
        lambda: dp.Real(-1.7e308, 1.7e308),
        lambda: dp.Real(0, 10**400),
        lambda: dp.Real(0, 5e-324),
        lambda: dp.Real(0, 1e-61),
        lambda: dp.Real(0, 1e61),
        lambda: dp.Real(1e200, 1.1e200),
        lambda: dp.Integer(0, 2**40),
        lambda: dp.Integer(-(2**60), -(2**60) + 1),
        lambda: dp.Integer(0, 10**400),
        lambda: dp.Integer(0.5, 3),
    ],
)
def test_case_11_bounds_that_overflow_the_grid(declare):
    assert_declaration_refused(declare)


def too_small_a_spend(session: Any, ask: Any, spend: Any) -> bool:
    """Whether the noise would outgrow its grid, which is refused before the debit."""
    try:
        dp.preview(session, ask, "y", spend=spend, assume=dp.Assumptions(rows=3))
    except dp.InvalidParameter as error:
        return "so small" in error.found
    return False


@pytest.mark.slow
@pytest.mark.parametrize(
    "column",
    [
        dp.Real(-1e60, 1e60),
        dp.Real(0, 1e-60),
        dp.Real(9.9e59, 1e60),
        dp.Real(-1e-60, 1e60, bits=32),
        dp.Integer(0, 2**31 - 1),
        dp.Integer(2**51, 2**51 + 1),
        dp.Integer(-1, 0),
    ],
    ids=kind_of,
)
def test_case_11_bounds_at_the_edge_of_the_grid_work(column):
    """What is accepted never fails after the debit, from the least spend to a great one."""
    for neighbors in (dp.Replace(), dp.AddRemove(unit="id", max_rows=1 << 20)):
        data = dp.from_arrays(
            {"y": [column.low, column.high, None], "id": [1, 2, 3]},
            schema={"y": column},
            neighbors=neighbors,
        )
        for spend, budget in (
            (dp.PureDP(0.01), dp.PureDP(1000)),
            (dp.PureDP(100), dp.PureDP(1000)),
            (dp.GDP(0.01), dp.GDP(1000)),
            (dp.GDP(100), dp.GDP(1000)),
        ):
            session = data.open(budget=budget)
            for ask in (dp.mean, dp.sum, dp.variance):
                if too_small_a_spend(session, ask, spend):
                    assert spend in (dp.PureDP(0.01), dp.GDP(0.01)) or neighbors.rows > 1
                    continue
                result = ask(session, "y", spend=spend)
                sound(result, like=result)
                sound(result, like=result, target="data")
                assert str(result.summary())
            assert session.ledger.verify().ok


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [300, 700, 720, 1000, 1399, 1401, 1e4, 1e6], ids=kind_of)
def test_case_11_a_great_spend_is_answered(epsilon):
    """Noise may be so small that it rounds to nothing; the result is still finite."""
    data = dp.from_arrays(PLANTED, schema=SCHEMA, neighbors=dp.AddRemove())
    session = data.open(budget=dp.PureDP(1e6))
    for ask in ESTIMATORS.values():
        if session.ledger.remaining().exact().epsilon >= epsilon:
            result = ask(session, dp.PureDP(epsilon))
            sound(result, like=result)
            assert str(result.summary())


@pytest.mark.parametrize(
    "declare",
    [
        lambda: dp.Real(1e16, 1e16 + 4),
        lambda: dp.Real(1e9, 1e9 + 1e-3),
        lambda: dp.Real(1e9, 1e9 + 1, bits=32),
        lambda: dp.Real(1, 1 + 2**-40),
    ],
)
def test_case_12_a_grid_coarser_than_the_bounds(declare):
    assert "floats" in assert_declaration_refused(declare).found


@pytest.mark.parametrize("bits", [0, 8, 64, 16.0, True, "16", None, 10**5000], ids=kind_of)
def test_case_12_a_grid_that_is_not_offered(bits):
    assert_declaration_refused(lambda: dp.Real(0, 1, bits=bits))
