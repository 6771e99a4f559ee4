"""Claim: a model's cells, weights and second moments are the same whole numbers whatever the
blocks, the threads and the code that sums them.
"""

from __future__ import annotations

import math
import random
import tracemalloc

import numpy as np
import pytest

import discreet as dp
from discreet.asking.formula import design_of
from discreet.models.points import point_at
from discreet.specs.estimating.components import UNIT, ModelColumn, model_matrix
from discreet.specs.estimating.equations import WeightedGradient, WeightedGram
from discreet.specs.estimating.families import Huber, Logistic, Poisson
from discreet.specs.estimating.metric import LARGEST_COLUMNS, WEIGHT_BITS, metric_of, whole_product
from discreet.specs.estimating.model import EstimatingPlan, Model
from discreet.trusted import compiled
from discreet.trusted.engines import kernels as core
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.extensions.estimating import kernels as kernels
from discreet.trusted.extensions.estimating import loops as loops
from discreet.trusted.extensions.estimating import rows as models
from discreet.trusted.extensions.estimating.reading import model_codes

ROWS, WIDTH = 6000, 7
BLOCKS = (
    {},
    {"ONE_THREAD": 1},
    {"CHUNK_ROWS": 999, "LOT": 1, "PANEL": 2},
    {"CACHED_CELLS": 1, "PANEL": 3},
    {"MOST_THREADS": 1, "CACHED_CELLS": 1 << 30},
    {"LOOP_TILE_ROWS": 5, "GRAM_ROWS": 77},
)


def setting(family, rows=ROWS, width=WIDTH):
    rng = np.random.default_rng(4)
    matrix = rng.choice([-UNIT, UNIT, 0, 77], (rows, width)).astype(np.int16)
    response = (
        rng.integers(-(2**23), 2**23, rows) if family.residual else rng.integers(0, 2, rows) << 13
    ).astype(np.int32)
    model = Model(tuple(ModelColumn(f"c{place}", ()) for place in range(width)), None)
    metric = metric_of(rng.normal(size=(width, width)), 2.0 * np.sqrt(width))
    return (
        kernels.ModelData(matrix, response),
        model,
        metric,
        point_at(rng.normal(size=width) * 0.2, 0.3, family),
    )


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("family", [Huber(1.345), Logistic(), Poisson(20.0)], ids=repr)
@pytest.mark.parametrize("part", ["metric", "curvature", "scores", "gradient"])
def test_blocks_and_threads_do_not_matter(family, part, monkeypatch):
    data, model, metric, point = setting(family)
    plan = EstimatingPlan(
        model,
        metric,
        part,
        None if part == "metric" else family,
        None if part == "metric" else point,
    )
    answers = []
    for compiled_from in (10**9, 1):  # numpy alone, then the compiled passes
        for changes in BLOCKS:
            with monkeypatch.context() as patch:
                for name, value in ({"COMPILED_ROWS": compiled_from} | changes).items():
                    patch.setattr(core if name == "MOST_THREADS" else kernels, name, value)
                weights = kernels.row_weights(data.matrix, metric)
                sums = kernels.estimating_sums(data, weights, plan)
            answers.append(
                (
                    weights.tolist(),
                    [sums[0].tolist(), sums[1]] if part == "gradient" else sums.tolist(),
                )
            )
    assert all(answer == answers[0] for answer in answers)
    order = np.random.default_rng(5).permutation(ROWS)
    shuffled = kernels.ModelData(data.matrix[order], data.response[order])
    again = kernels.estimating_sums(shuffled, kernels.row_weights(shuffled.matrix, metric), plan)
    assert ([again[0].tolist(), again[1]] if part == "gradient" else again.tolist()) == answers[0][
        1
    ]


@pytest.mark.few(2)
@pytest.mark.compiled
@pytest.mark.parametrize(
    ("rows", "width"), [(0, 3), (1, 1), (2, 60), (700, 70), (300, LARGEST_COLUMNS)]
)
@pytest.mark.parametrize("compiled_from", [10**9, 0])
def test_second_moments_and_weights_are_their_definitions(rows, width, compiled_from, monkeypatch):
    """Against Python integers, for few rows and for widths of several panels."""
    monkeypatch.setattr(kernels, "COMPILED_ROWS", compiled_from)
    family = Huber(1.345)
    data, model, metric, _ = setting(family, rows, width)
    weights = kernels.row_weights(data.matrix, metric)
    whole = data.matrix.astype(object)
    for row in range(0, rows, 97):
        norm = sum(
            (-(-abs(int(value)) // (1 << metric.shift))) ** 2
            for value in metric.matrix @ whole[row]
        )
        exact = (
            (1 << WEIGHT_BITS)
            if norm <= metric.radius_squared
            else (metric.radius_squared << WEIGHT_BITS) // norm
        )
        assert exact - 1 <= weights[row] <= exact
    sums = kernels.gram_sums(data, weights, EstimatingPlan(model, metric, "metric", None, None))
    wide = data.matrix.astype(np.int64)
    assert (sums == (wide * (weights >> 3).astype(np.int64)[:, None]).T @ wide).all()


def test_blocks_keep_sums_exact_for_any_width():
    """At most 2**12 rows of second moments and 2**14 of weights and gradients, and products that
    BLAS does not share out, whatever the width.
    """
    for columns in (1, 2, 7, 51, 64, LARGEST_COLUMNS):
        for products, most in (
            (min(columns, kernels.PANEL), kernels.GRAM_ROWS),
            (min(columns, 2 * kernels.PANEL), kernels.GRADIENT_ROWS),
            (1, kernels.GRADIENT_ROWS),
        ):
            tiles = kernels.tiles_of(columns, products, most)
            assert 1 <= tiles.size <= most
            assert tiles.shape[1] * columns * products <= kernels.ONE_THREAD
            assert tiles.shape[1] * columns <= kernels.ONE_THREAD_VECTOR


def test_rows_that_are_surely_inside_need_no_product(monkeypatch):
    """The short cut for rows near 0 gives the weights that their z gives,
    whatever the metric and its radius.
    """
    rng = np.random.default_rng(6)
    matrix = (
        (rng.normal(size=(4000, 5)) * rng.choice([0.01, 0.1, 0.5], (4000, 1)) * UNIT)
        .clip(-UNIT, UNIT)
        .astype(np.int16)
    )
    spared = 0
    for scale in (1e-3, 0.3, 1.0, 30.0):
        metric = metric_of(rng.normal(size=(5, 5)) * np.array([1, scale, 1, 1, scale]), 2.0)
        sure = kernels._sure_length(
            np.ldexp(np.array(metric.rows, dtype=float), -metric.shift).T, metric.radius_squared
        )
        spared += int((np.square(matrix.astype(float)).sum(axis=1) <= sure).sum())
        quick = kernels.row_weights(matrix, metric)
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "_sure_length", lambda scaled, radius: -1.0)
            assert (kernels.row_weights(matrix, metric) == quick).all()
    assert spared > 4000


@pytest.mark.compiled
def test_weights_at_the_edge_of_a_step_are_alike_compiled_and_not():
    """Quotients R²/‖z‖² a rounding away from a step of the weights: a compiler that moved the
    division past a product would give the next one.
    """
    rng, edges = np.random.default_rng(9), 0
    for _ in range(4000):
        step, norm = int(rng.integers(2, 1 << WEIGHT_BITS)), int(rng.integers(2**48, 2**49))
        radius_squared = step * norm // (1 << WEIGHT_BITS) + 1
        roots, rest = [], norm
        while rest:
            roots.append(math.isqrt(rest))
            rest -= roots[-1] ** 2
        found = [
            int(
                kernels.weights_of(np.array([roots], dtype=float), 1, float(radius_squared), loop)[
                    0
                ]
            )
            for loop in (None, loops.norm_loop())
        ]
        assert found[0] == found[1]
        assert found[0] * norm <= radius_squared << WEIGHT_BITS
        # what the moved division gives
        edges += found[0] != math.floor(
            radius_squared * (kernels.LOWERED * kernels.TOP_WEIGHT) / norm
        )
    assert edges > 10


def test_the_short_cut_holds_in_the_worst_direction():
    """Rows along the metric's longest axis, of the greatest length that is spared, are inside."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        width = int(rng.integers(1, 9))
        metric = metric_of(
            rng.normal(size=(width, width)) * 10.0 ** rng.uniform(-2, 2), float(rng.uniform(0.5, 4))
        )
        scaled = np.ldexp(np.array(metric.rows, dtype=float), -metric.shift)
        length = kernels._sure_length(scaled.T, metric.radius_squared)
        if length > 0:
            worst = np.linalg.svd(scaled)[2][0] * np.sqrt(length)
            assert np.square(np.ceil(np.abs(scaled @ worst))).sum() <= metric.radius_squared


DATA_ROWS = 5000


def columns_of(kind):
    rng = np.random.default_rng(8)
    table = {
        "x": rng.normal(0, 2, DATA_ROWS),
        "w": rng.normal(0, 2, DATA_ROWS).astype(np.float32),
        "k": rng.integers(-5, 40, DATA_ROWS),
        "d": rng.choice(["a", "b", "c", "?"], DATA_ROWS),
    }
    table["x"][::7], table["x"][1::7], table["x"][2::7] = np.nan, np.inf, -np.inf
    table["y"], table["id"] = rng.random(DATA_ROWS) < 0.4, rng.integers(0, 3000, DATA_ROWS)
    if kind == "strided":
        table["x"] = np.stack([table["x"], table["x"]], axis=1)[:, 0]
    if kind == "read-only":
        table["x"].setflags(write=False)
    if kind == "masked":
        table["k"] = np.ma.array(table["k"], mask=rng.random(DATA_ROWS) < 0.1)
    return table


@pytest.mark.few(3)
@pytest.mark.compiled
@pytest.mark.parametrize(
    "neighbors", [dp.Replace(), dp.AddRemove(unit="id", max_rows=2)], ids=["rows", "units"]
)
@pytest.mark.parametrize("kind", ["strided", "read-only", "masked"])
@pytest.mark.parametrize("where", [None, {"d": ["a", "b"]}], ids=["all", "filtered"])
def test_columns_are_encoded_alike_in_blocks_and_compiled(neighbors, kind, where, monkeypatch):
    from discreet.specs.queries.keys import Subset

    schema = {
        "x": dp.Real(-4, 4),
        "w": dp.Real(-3, 5),
        "k": dp.Integer(0, 30),
        "d": dp.Category(["a", "b", "c"]),
        "y": dp.Boolean(),
    }
    keys = () if where is None else (Subset("d", (0, 1)),)
    engine = memory_engine_from_arrays(columns_of(kind), schema, neighbors)
    drafted = design_of("y ~ x + w + k + d + x:k + square(w)", schema).model()
    model = Model(drafted.columns, drafted.response, keys)
    codes, _, rows = model_codes(engine, model)
    plain = model_matrix(
        model.columns, {component: code[:] for component, code in codes.items()}, rows
    )
    assert sum(isinstance(code, models.Unread) for code in codes.values()) >= 3
    for compiled_from, block in ((10**9, 1 << 12), (1, 1 << 12), (1, 333), (10**9, 333)):
        monkeypatch.setattr(kernels, "COMPILED_ROWS", compiled_from)
        monkeypatch.setattr(models, "ENCODED_ROWS", block)
        assert (models.encoded_matrix(model.columns, codes, rows) == plain).all()


@pytest.mark.slow
def test_memory_is_two_bytes_a_cell_and_blocks():
    """Encoding a model's columns and summing its equations holds 2 bytes a cell, 16 a row,
    and blocks of a fixed size.
    """
    rows, width = 60_000, 40
    rng = np.random.default_rng(9)
    given = rng.uniform(-1, 1, (rows, width))
    names = [f"x{place}" for place in range(width)]
    schema = {name: dp.Real(-1, 1) for name in names} | {"y": dp.Boolean()}
    engine = memory_engine_from_arrays(
        {name: given[:, place] for place, name in enumerate(names)} | {"y": given[:, 0] > 0},
        schema,
        dp.Replace(),
    )
    model = design_of("y ~ " + " + ".join(names), schema).model()
    family, metric = Logistic(), metric_of(rng.normal(size=(width + 1, width + 1)), 5.0)
    plans = [
        EstimatingPlan(
            model,
            metric,
            part,
            None if part == "metric" else family,
            None if part == "metric" else point_at(np.zeros(width + 1), 1.0, family),
        )
        for part in ("metric", "gradient", "curvature", "scores")
    ]
    small = memory_engine_from_arrays(
        {name: given[:50, place] for place, name in enumerate(names)} | {"y": given[:50, 0] > 0},
        schema,
        dp.Replace(),
    )
    for plan in plans:  # tables are built before memory is counted
        execute(small, plan)
    tracemalloc.start()
    for plan in plans:
        execute(engine, plan)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    threads, block = core.MOST_THREADS, 8 * kernels.CACHED_CELLS
    assert peak <= 2 * rows * (width + 1) + 24 * rows + threads * 4 * block
    assert peak < 8 * rows * width  # less than what was given


def test_whole_products_are_exact():
    draw = random.Random(1)
    for bits in (1, 19, 20, 21, 63, 100, 400):
        for shape in ((1, 1, 1), (3, 4, 2), (9, LARGEST_COLUMNS, 3)):
            left = np.array(
                [
                    [
                        draw.choice((-(2**bits), 2**bits - 1, draw.randint(-(2**bits), 2**bits)))
                        for _ in range(shape[1])
                    ]
                    for _ in range(shape[0])
                ],
                dtype=object,
            )
            right = np.array(
                [
                    [
                        draw.choice((-(2**70), 2**70, 0, -1, draw.randint(-(2**66), 2**66)))
                        for _ in range(shape[2])
                    ]
                    for _ in range(shape[1])
                ],
                dtype=object,
            )
            product = whole_product(left, right)
            assert (product == left @ right).all()
            assert all(type(entry) is int for entry in product.flat)


def test_second_moments_with_all_weights_1_are_summed_once_and_right():
    rng = np.random.default_rng(10)
    schema = {"x": dp.Real(-1, 1), "y": dp.Boolean()}
    engine = memory_engine_from_arrays(
        {"x": rng.uniform(-1, 1, 500), "y": rng.random(500) < 0.5}, schema, dp.Replace()
    )
    model = design_of("y ~ x", schema).model()
    wide, narrow = metric_of(np.eye(2), 50.0), metric_of(np.eye(2), 1.0)
    first, second, third = (
        execute(engine, WeightedGram(model, metric, "metric", False).plan())
        for metric in (wide, metric_of(2 * np.eye(2), 50.0), narrow)
    )
    assert (first == second).all()
    assert first is not second
    assert (third < first)[np.eye(2) > 0].all()


def test_what_is_kept_of_one_model_is_not_used_for_another():
    """Matrix, weights, response and second moments go with their model: one engine that is asked
    about many gives what a fresh one gives, in any order.
    """
    rng = np.random.default_rng(11)
    schema = {"x": dp.Real(-1, 1), "z": dp.Real(-1, 1), "y": dp.Boolean(), "b": dp.Boolean()}
    cells = {name: rng.uniform(-1, 1, 300) for name in "xz"} | {
        name: rng.random(300) < 0.3 for name in "yb"
    }
    kept, family = memory_engine_from_arrays(cells, schema, dp.Replace()), Logistic()
    point = point_at(np.array([0.2, -0.5]), 1.0, family)
    plans = []
    for formula in ("y ~ x", "y ~ z", "b ~ z"):
        model = design_of(formula, schema).model()
        for metric in (metric_of(np.eye(2), 1.0), metric_of(np.eye(2), 50.0)):
            plans += [
                WeightedGradient(model, metric, family, point, False).plan(),
                WeightedGram(model, metric, "metric", False).plan(),
            ]
    order = [*range(len(plans)), *rng.permutation(len(plans)).tolist()]
    for place in order:
        fresh = memory_engine_from_arrays(cells, schema, dp.Replace())
        assert str(execute(kept, plans[place])) == str(execute(fresh, plans[place]))


def test_a_broken_numba_does_not_break_a_release(monkeypatch):
    """A module that numba needs is shadowed by another of the same name, say:
    numpy takes over, with the same numbers.
    """

    def broken(name):
        raise AttributeError("module 'coverage' has no attribute 'types'")

    passes = (
        loops.gradient_loop,
        loops.norm_loop,
        loops.place_loop,
        loops.gram_loop,
        loops.encode_loop,
    )
    for one in passes:
        one.cache_clear()
    monkeypatch.setattr(compiled.importlib, "import_module", broken)
    try:
        assert all(one() is None for one in passes)
    finally:
        for one in passes:
            one.cache_clear()
