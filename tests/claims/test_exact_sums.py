"""Claims of exact arithmetic: sums do not depend on order,
and no neighbour moves them by more than claimed.

Each claim has a positive control: the usual float computation on the same data breaks it.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.encoding import Encoding
from discreet.errors import InvalidParameter
from discreet.neighbors import AddRemove, Replace
from discreet.schema import Category, Integer, Real, Schema
from discreet.specs.queries.keys import Bins, Levels
from discreet.specs.queries.plans import GramPlan, SumsPlan
from discreet.specs.queries.sums import Sum, number_factor
from discreet.trusted.engines import kernels
from discreet.trusted.engines.memory import memory_engine_from_arrays

LOW, HIGH = float(2**52 - 1), float(2**52)


# -- order and batch size --------------------------------------------------------------------------


def wide_data(rows=100_000, columns=20):
    generator = np.random.Generator(np.random.PCG64(5))
    return {f"x{place:02d}": generator.normal(50, 40, rows) for place in range(columns)}


def test_sums_and_gram_do_not_depend_on_the_order_of_rows():
    data = wide_data()
    schema = Schema({name: Real(0, 100) for name in data})
    order = np.random.Generator(np.random.PCG64(6)).permutation(100_000)
    shuffled = {name: cells[order] for name, cells in data.items()}
    factors = tuple(number_factor(schema, name, "a sum") for name in schema)
    engines = [
        memory_engine_from_arrays(columns, schema, Replace()) for columns in (data, shuffled)
    ]
    first, second = (engine.gram(GramPlan(factors)) for engine in engines)
    assert first.shape == (20, 20)
    assert np.array_equal(first, second)
    plan = SumsPlan(
        (Bins("x00", tuple(float(edge) for edge in range(0, 101, 5))),),
        tuple((factor,) for factor in factors),
    )
    first, second = (engine.sums(plan) for engine in engines)
    assert np.array_equal(first, second)
    naive = [np.stack(list(columns.values())) for columns in (data, shuffled)]  # positive control
    assert not np.array_equal(naive[0] @ naive[0].T, naive[1] @ naive[1].T)
    assert any(naive[0][row].sum() != naive[1][row].sum() for row in range(20))


@pytest.mark.slow
def test_gram_does_not_depend_on_the_batch_size():
    codes = tuple(
        np.random.Generator(np.random.PCG64(place))
        .integers(-32767, 32768, 100_000)
        .astype(np.int16)
        for place in range(20)
    )
    answers = [kernels.gram([codes], 20, rows, 30) for rows in (65_536, 4096, 1000, 77)]
    matrix = np.stack(codes).astype(np.int64)
    assert all(np.array_equal(answer, matrix @ matrix.T) for answer in answers)


def test_the_self_test_accepts_exact_products_and_rejects_short_ones(monkeypatch):
    assert kernels.blas_is_exact()
    kernels.blas_is_exact.cache_clear()
    monkeypatch.setattr(
        kernels,
        "_blas_product",
        lambda rows: (rows.astype(np.float32) @ rows.astype(np.float32).T).astype(np.int64),
    )
    try:
        assert not kernels.blas_is_exact()
        codes = tuple(np.full(5000, 32767 - place, dtype=np.int16) for place in range(3))
        assert kernels.gram([codes], 3, 1024, 30)[0, 0] == 5000 * 32767**2
    finally:
        kernels.blas_is_exact.cache_clear()


def cell_sums(cells, size, terms, scatter):
    """Σ of each term, (factors, bits), by cell; the rows come in two batches."""
    sums = kernels.CellSums(size, [bits for _, bits in terms], scatter)
    half = len(cells) // 3
    for part in (slice(half), slice(half, None)):
        sums.add(cells[part], [tuple(factor[part] for factor in factors) for factors, _ in terms])
    return sums.total()


@pytest.mark.compiled
@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 47),
    st.integers(1, 9),
    st.lists(st.tuples(st.integers(-1, 8), st.integers(-1, 1), st.integers(0, 3)), max_size=60),
)
def test_the_two_kernels_and_python_agree(bits, size, rows):
    cells = np.array([min(cell, size - 1) for cell, _, _ in rows], dtype=np.int32)
    terms = np.array(
        [sign * max((1 << bits) - 1 - below, 0) for _, sign, below in rows], dtype=np.int64
    )
    expected = [
        sum(int(term) for cell, term in zip(cells, terms, strict=True) if cell == wanted)
        for wanted in range(size)
    ]
    for scatter in (kernels.scatter_numpy, kernels.numba_scatter()):
        assert scatter is not None
        answer = cell_sums(cells, size, [((), 1), ((terms,), bits)], scatter)
        assert answer[:, 1].tolist() == expected
        assert answer[:, 0].tolist() == [int((cells == wanted).sum()) for wanted in range(size)]


@pytest.mark.compiled
def test_codes_are_the_same_compiled_and_not():
    """Every kind of float, at the edges of steps, on wide and narrow grids."""
    rng = np.random.default_rng(4)
    for column in (
        Real(-3, 7, missing=2),
        Real(0, 1e-3, bits=32, missing=0.0),
        Integer(18, 90, missing=54),
        Integer(-(2**30), 2**30 - 1, missing=-1),
        Real(-1e60, 1e60, missing=0),
    ):
        whole = column.encoding()
        # as a search finds it: most values lie beyond its ends
        found = Encoding(whole.center, whole.per_unit, whole.low // 8, whole.high // 8)
        for grid in (whole, column.encoding(16), found):
            edges = (
                grid.center + (rng.integers(grid.low, grid.high + 1, 2000) + 0.5) / grid.per_unit
            )
            odd = [
                np.nan,
                np.inf,
                -np.inf,
                0.0,
                -0.0,
                5e-324,
                1e308,
                -1e308,
                float(column.low),
                float(column.high),
            ]
            values = np.concatenate(
                [
                    odd,
                    edges,
                    np.nextafter(edges, np.inf),
                    np.nextafter(edges, -np.inf),
                    rng.normal(size=2000) * 10.0 ** rng.integers(-9, 9, 2000),
                ]
            )
            out = np.empty(len(values), dtype=kernels.code_dtype(grid))
            loop = kernels.numba_encode()
            assert loop is not None
            loop(
                values,
                (
                    float(column.low),
                    float(column.high),
                    float(column.missing),
                    float(grid.center),
                    float(grid.per_unit),
                    float(grid.low),
                    float(grid.high),
                ),
                out,
            )
            assert np.array_equal(out, kernels.encode(kernels.clamp(values, column), grid))


def test_totals_leave_int64_before_they_overflow(monkeypatch):
    terms = np.full(3000, 2**47 - 1, dtype=np.int64)
    cells = np.zeros(3000, dtype=np.int32)
    monkeypatch.setattr(kernels, "SUM_ROWS", 100)
    monkeypatch.setattr(kernels, "ACCUMULATOR_LIMIT", 1 << 40)
    settled = cell_sums(cells, 1, [((terms,), 47)], kernels.scatter_numpy)[0, 0]
    assert settled == 3000 * (2**47 - 1)
    many = kernels.Totals((1,))
    for _ in range(5000):
        many.reserve((1 << 39) - 1)[0] += (1 << 39) - 1
    assert many.total()[0] == 5000 * ((1 << 39) - 1)
    assert many.settled is not None


# -- neighbours ------------------------------------------------------------------------------------


def test_no_float_neighbour_moves_the_sum_by_more_than_claimed():
    """Case 37: a range next to 2**52, where a float sum of neighbours differs by 1024 times the
    range.
    """
    schema = Schema({"x": Integer(int(LOW), int(HIGH))})
    query = Sum((), (number_factor(schema, "x", "a sum"),), optional=False)
    claimed = query.sensitivity(Replace())[0].value
    worst, worst_float = Fraction(0), 0.0
    for rows, (before, after) in itertools.product(
        (1, 2, 1025, 4097), itertools.permutations([LOW, HIGH, math.inf, -math.inf, math.nan], 2)
    ):
        for rest in ((LOW,), (HIGH,), (LOW, HIGH), (HIGH, LOW)):
            data = [
                np.array([cell, *itertools.islice(itertools.cycle(rest), rows - 1)])
                for cell in (before, after)
            ]
            first, second = (
                memory_engine_from_arrays({"x": cells}, schema, Replace()).sums(query.plan())[0, 0]
                for cells in data
            )
            worst = max(worst, abs(first - second) / claimed)
            clamped = [
                np.clip(np.nan_to_num(cells, nan=LOW, posinf=HIGH, neginf=LOW), LOW, HIGH)
                for cells in data
            ]
            # positive control: the usual running sum
            running = [float(np.add.accumulate(cells)[-1]) for cells in clamped]
            worst_float = max(worst_float, abs(running[0] - running[1]))
    assert worst == 1  # attained, never exceeded
    assert worst_float >= 1024


def test_ranges_beyond_the_exact_grid_are_refused_before_any_data():
    for declare in (
        lambda: Integer(2**52, 2**52 + 1),
        lambda: Real(2**52, 2**52 + 1),
        lambda: Real(2**60, 2**60 + 2**12),
    ):
        with pytest.raises(InvalidParameter):
            declare()


def test_scaled_reals_attain_and_never_exceed_the_claim():
    schema = Schema({"x": Real(0, 0.1)})
    factor = number_factor(schema, "x", "a sum")
    for term in ((factor,), (factor, factor)):
        query = Sum((), term, optional=False)
        claimed = query.sensitivity(Replace())[0].value
        rest = [0.1 * share for share in np.linspace(0, 1, 1000)]
        ends = [-1.0, 0.0, 0.05, 0.1, 7.0, math.nan, math.nextafter(0.1, 0), 5e-324]
        totals = [
            memory_engine_from_arrays({"x": [end, *rest]}, schema, Replace()).sums(query.plan())[
                0, 0
            ]
            for end in ends
        ]
        assert max(totals) - min(totals) == claimed


UNIT_SCHEMA = Schema({"x": Real(-1, 3), "g": Category(["a", "b", "c"])})
UNIT_X = number_factor(UNIT_SCHEMA, "x", "a sum")
UNIT_QUERIES = [
    Sum((), (), optional=False),
    Sum((), (UNIT_X,), optional=False),
    Sum((Levels("g", 3),), (), optional=True),
    Sum((Levels("g", 3),), (UNIT_X,), optional=True),
    Sum((Bins("x", (-1.0, 0.0, 1.0, 3.0)),), (UNIT_X, UNIT_X), optional=False),
]
cells = st.tuples(
    st.sampled_from([-5.0, -1.0, 0.0, 0.999, 1.0, 3.0, math.nan, math.inf]),
    st.sampled_from(["a", "b", "c", "zzz", None]),
)
own_rows = st.lists(cells, max_size=8)


def totals_of(rows, neighbors, query):
    columns = {
        "x": [row[1] for row in rows],
        "g": [row[2] for row in rows],
        "id": [row[0] for row in rows],
    }
    return memory_engine_from_arrays(columns, UNIT_SCHEMA, neighbors).sums(query.plan())[:, 0]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    own_rows,
    own_rows,
    st.lists(st.tuples(st.sampled_from(["u1", "u2", None]), cells), max_size=10),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_one_unit_never_moves_a_sum_by_more_than_claimed(before, after, others, max_rows, shuffle):
    others = [(unit, *cell) for unit, cell in others]
    for relation, replaced in ((Replace, after), (AddRemove, [])):
        neighbors = relation(unit="id", max_rows=max_rows)
        for query in UNIT_QUERIES:
            data = [[*others, *(("mine", *cell) for cell in own)] for own in (before, replaced)]
            shuffle.shuffle(data[1])  # the order of rows is no information
            difference = totals_of(data[0], neighbors, query) - totals_of(data[1], neighbors, query)
            l1, l2, _ = query.sensitivity(neighbors)
            assert sum(abs(entry) for entry in difference) <= l1.value
            assert sum(entry * entry for entry in difference) <= l2.squared


@pytest.mark.parametrize("relation", [Replace, AddRemove])
def test_a_unit_with_very_many_rows_attains_the_claim(relation):
    """One unit with 100 000 rows at a bound;
    without bounding (control) it would move the count by 100 000.
    """
    neighbors = relation(unit="id", max_rows=3)
    others = [(f"u{row % 50}", random.Random(row).uniform(-1, 3), "a") for row in range(100)]
    for query in UNIT_QUERIES[:2]:
        first, second = (
            totals_of(others + [("mine", 3.0, "b")] * count, neighbors, query)
            for count in (0, 100_000)
        )
        assert (
            abs(second[0] - first[0])
            == query.sensitivity(AddRemove(unit="id", max_rows=3))[0].value
        )
    unbounded = AddRemove()
    first, second = (
        totals_of(others + [("mine", 3.0, "b")] * count, unbounded, UNIT_QUERIES[0])
        for count in (0, 100_000)
    )
    assert second[0] - first[0] == 100_000
