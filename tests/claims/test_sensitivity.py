"""Sensitivity rules against brute force over every neighbour of small domains."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.neighbors import AddRemove, Replace
from discreet.sensitivity import gram_sensitivity, sum_sensitivity


def one_row(low, high, cells, optional):
    """Every contribution of one row: a value in one cell, or nothing."""
    rows = [
        tuple(value if cell == place else 0 for place in range(cells))
        for cell in range(cells)
        for value in range(low, high + 1)
    ]
    return rows + ([(0,) * cells] if optional else [])


def unit_sums(rows, most, cells):
    """Every sum of 0 … most rows of one unit."""
    sums = {(0,) * cells}
    for count in range(1, most + 1):
        sums |= {
            tuple(map(sum, zip(*chosen, strict=True)))
            for chosen in itertools.combinations_with_replacement(rows, count)
        }
    return sums


def brute_force(neighbors, low, high, cells, optional):
    rows = one_row(low, high, cells, optional)
    if neighbors.unit is None:
        before = set(rows)
        pairs = (
            itertools.product(before, before)
            if isinstance(neighbors, Replace)
            else ((row, (0,) * cells) for row in before)
        )
    else:
        sums = unit_sums(rows, neighbors.max_rows, cells)
        pairs = (
            itertools.product(sums, sums)
            if isinstance(neighbors, Replace)
            else ((one, (0,) * cells) for one in sums)
        )
    changes = [np.subtract(a, b) for a, b in pairs]
    return max(int(np.abs(change).sum()) for change in changes), max(
        int((change**2).sum()) for change in changes
    )


RELATIONS = [
    Replace(),
    AddRemove(),
    Replace(unit="id", max_rows=2),
    AddRemove(unit="id", max_rows=2),
    Replace(unit="id", max_rows=1),
    AddRemove(unit="id", max_rows=3),
]


@pytest.mark.few(12)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize(("low", "high"), [(-2, 2), (0, 3), (1, 3), (-3, -1), (-1, 3), (1, 1)])
@pytest.mark.parametrize(("cells", "optional"), [(1, False), (1, True), (2, False), (3, True)])
def test_sum_sensitivity_is_never_exceeded_and_is_attained(neighbors, low, high, cells, optional):
    if neighbors == Replace() and low == high and cells == 1 and not optional:
        return  # a constant, which is no query: asserted below
    l1, l2 = sum_sensitivity(neighbors, low, high, cells=cells, optional=optional)
    worst_l1, worst_l2_squared = brute_force(neighbors, low, high, cells, optional)
    assert (l1.value, l2.squared) == (worst_l1, worst_l2_squared)


def test_the_number_of_rows_under_replace_is_not_a_query():
    with pytest.raises(ValueError, match="positive"):
        sum_sensitivity(Replace(), 1, 1, cells=1, optional=False)


def test_design_formulas_for_units():
    """Design §3: sums k·max(|lo|, |hi|, hi−lo); histograms ℓ₁ 2k, ℓ₂ √2·k; AddRemove k and k."""
    for k in (1, 3):
        replace, add = Replace(unit="id", max_rows=k), AddRemove(unit="id", max_rows=k)
        assert sum_sensitivity(replace, 18, 90, cells=1, optional=False)[0].value == k * 90
        assert sum_sensitivity(replace, -5, 7, cells=1, optional=False)[0].value == k * 12
        l1, l2 = sum_sensitivity(replace, 1, 1, cells=10, optional=False)
        assert (l1.value, l2.squared) == (2 * k, 2 * k * k)
        l1, l2 = sum_sensitivity(add, 1, 1, cells=10, optional=False)
        assert (l1.value, l2.squared) == (k, k * k)


@given(st.integers(1, 4), st.data(), st.sampled_from(RELATIONS))
def test_gram_sensitivity_is_never_exceeded(columns, data, neighbors):
    vectors = st.lists(st.integers(-9, 9), min_size=columns, max_size=columns)
    rows = (
        data.draw(st.lists(vectors, min_size=0, max_size=neighbors.rows)),
        data.draw(st.lists(vectors, min_size=0, max_size=neighbors.rows)),
    )
    before, after = (
        sum((np.outer(row, row) for row in group), np.zeros((columns, columns), dtype=int))
        for group in rows
    )
    if not isinstance(neighbors, Replace):
        after = np.zeros_like(before)
    change = (before - after)[np.triu_indices(columns)]
    bound = gram_sensitivity(neighbors, 81 * columns)
    assert Fraction(int((change**2).sum())) <= bound.squared


def test_gram_sensitivity_under_replace_is_attained_by_orthogonal_rows():
    # upper triangle of diag(9, 0) − diag(0, 9) for rows (3, 0) and (0, 3)
    change = np.array([9, 0, -9])
    assert Fraction(int((change**2).sum())) == gram_sensitivity(Replace(), 9).squared
