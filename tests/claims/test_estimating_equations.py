"""Claim: weighted gradients and second moments are exact, the same in any order and on every
engine, and never move further than stated.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas
import pytest

import discreet as dp
from discreet.encoding import Encoding
from discreet.models.m_estimate import tabulated_mean, tabulated_psi
from discreet.schema import Schema
from discreet.specs.estimating.components import (
    UNIT,
    UNIT_BITS,
    LevelComponent,
    ModelColumn,
    NumberComponent,
    Response,
)
from discreet.specs.estimating.equations import WeightedGradient, WeightedGram
from discreet.specs.estimating.families import Huber, Logistic, Poisson, SmoothHuber, psi_bound
from discreet.specs.estimating.metric import WEIGHT_BITS, Metric, metric_of
from discreet.specs.estimating.model import Model, Point
from discreet.specs.estimating.tables import GRID
from discreet.specs.estimating.tabulated import KNOTS, VALUE_BITS, TabulatedResidual
from discreet.specs.queries.keys import Subset
from discreet.specs.queries.plans import Factor
from discreet.specs.registry import query_from_dict
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.extensions.estimating.kernels import (
    ModelData,
    compiled_gradient,
    estimating_sums,
    numpy_gradient,
    row_weights,
)
from discreet.trusted.extensions.estimating.loops import gradient_loop

# its two sides are unequal
SLANTED = tabulated_psi(lambda r: 0.3 + 0.5 * max(-1.0, min(1.0, r)), 2)
# the largest slope allowed
STEEP = TabulatedResidual(
    tuple(
        max(-(2 << VALUE_BITS), min(2 << VALUE_BITS, knot * (16 << VALUE_BITS) // KNOTS))
        for knot in range(-KNOTS, KNOTS + 1)
    )
)
PROBIT = tabulated_mean(lambda eta: math.erfc(-eta / math.sqrt(2)) / 2)
SOFTPLUS = tabulated_mean(lambda eta: min(20.0, math.log1p(math.exp(eta))), 6, 20.0)
TABULATED = {SLANTED: "slanted", STEEP: "steep", PROBIT: "probit", SOFTPLUS: "softplus"}
FAMILIES = [Huber(1.345), SmoothHuber(1.345), Logistic(), Poisson(20.0), *TABULATED]


def named(family):
    return TABULATED.get(family, repr(family))


RELATIONS = [
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="id", max_rows=2),
    dp.AddRemove(unit="id", max_rows=2),
]
SCHEMA = Schema(
    {
        "x": dp.Real(-4, 4),
        "d": dp.Category(["a", "b", "c"]),
        "y": dp.Real(-10, 10),
        "b": dp.Boolean(),
        "k": dp.Integer(0, 20),
    }
)


def number_component(name, **options):
    column = SCHEMA[name]
    return NumberComponent(
        Factor(name, column.encoding(16)), low=float(column.low), high=float(column.high), **options
    )


COLUMNS = (
    ModelColumn("intercept", ()),
    ModelColumn("x", (number_component("x"),)),
    ModelColumn("d[b]", (LevelComponent("d", (0, 1, 0)),)),
    ModelColumn("x:d[b]", (number_component("x"), LevelComponent("d", (0, 1, 0)))),
)


def is_yes_no(family):
    return not family.residual and getattr(family, "most", 1.0) == 1.0


def response_of(family):
    if is_yes_no(family):
        return Response(level=("b", 1))
    if not family.residual:
        return Response(Factor("k", SCHEMA["k"].encoding()))
    return Response(Factor("y", Encoding(0.0, 2**23 / 10, -(2**23), 2**23)))


def model_of(family, keys=()):
    return Model(COLUMNS, response_of(family), keys)


def point_of(family, beta):
    """β in units of 1 (mean families) or of y's half-range, as a Point."""
    if family.residual:
        return Point(
            tuple(round(value * 2 ** (23 + 6 - UNIT_BITS)) for value in beta),
            6,
            GRID / (0.1 * 2**29),
        )
    return Point(
        tuple(round(value * 2**16) for value in beta), 16 + UNIT_BITS, GRID / 2 ** (16 + UNIT_BITS)
    )


def random_metric(rng, columns=4, rows=4):
    return metric_of(
        rng.normal(size=(rows, columns)) * np.exp(rng.normal(size=(rows, 1))),
        float(rng.uniform(0.3, 3)),
    )


def extreme_rows(rng, n, columns=4):
    """Rows at the corners of the box, inside it, and zero."""
    corners = rng.choice([-UNIT, UNIT], (n, columns))
    inside = rng.integers(-UNIT, UNIT + 1, (n, columns))
    return np.where(
        rng.random((n, 1)) < 0.5, corners, inside * rng.integers(0, 2, (n, columns))
    ).astype(np.int16)


def statistic(query, matrix, response):
    data = ModelData(matrix, response)
    return np.array(
        query.assemble(estimating_sums(data, row_weights(matrix, query.metric), query.plan())),
        dtype=float,
    )


def random_response(rng, family, n):
    if family.residual:
        return rng.integers(-(2**23), 2**23 + 1, n).astype(np.int32)
    top = family.tables().top  # the largest response there can be, in its whole numbers
    return (
        rng.integers(0, 2, n) * top
        if is_yes_no(family) or rng.random() < 0.5
        else rng.integers(0, top + 1, n)
    ).astype(np.int32)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
def test_weights_never_exceed_their_bound(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        metric = random_metric(rng)
        matrix = extreme_rows(rng, 300)
        weights = row_weights(matrix, metric)
        for row, weight in zip(matrix, weights, strict=True):
            z = metric.matrix @ row.astype(object)
            square = sum(int(value) ** 2 for value in z)
            assert int(weight) ** 2 * square <= (metric.bound * (1 << WEIGHT_BITS)) ** 2
            assert int(weight) * square <= metric.bound**2 * (1 << WEIGHT_BITS)
        assert weights.min() >= 0
        real = np.minimum(
            1,
            float(metric.bound) ** 2
            / np.maximum(
                (matrix.astype(float) @ np.array(metric.rows, dtype=float).T) ** 2 @ np.ones(4), 1
            ),
        )
        # and not much below it
        np.testing.assert_allclose(weights / 2**WEIGHT_BITS, real, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=named)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_gradient_sensitivity_is_never_exceeded(family, neighbors):
    """Worst neighbours found among hundreds of extreme rows, with and without the scale part;
    the bound is nearly attained.
    """
    rng = np.random.default_rng(5)
    worst, k = 0.0, neighbors.rows
    for ride in (Fraction(0), Fraction(3, 2)):
        for _ in range(3):
            query = WeightedGradient(
                model_of(family),
                random_metric(rng),
                family,
                point_of(family, (1 if family.residual else 8) * rng.normal(size=4)),
                True,
                ride,
            )
            rows, response = extreme_rows(rng, 100), random_response(rng, family, 100)
            alone = np.array([statistic(query, rows[[i]], response[[i]]) for i in range(100)]).T
            bound = math.sqrt(float(query.sensitivity(neighbors).squared))
            if isinstance(neighbors, dp.Replace):
                moved = max(
                    k * np.linalg.norm(alone - alone[:, [i]], axis=0).max() for i in range(100)
                )
            else:
                moved = k * np.linalg.norm(alone, axis=0).max()
            assert moved <= bound
            worst = max(worst, moved / bound)
    assert worst > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("part", ["metric", "curvature", "scores"])
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_gram_sensitivity_is_never_exceeded(part, neighbors):
    rng, worst = np.random.default_rng(6), 0.0
    for family in FAMILIES:
        point = None if part == "metric" else point_of(family, 0.01 * rng.normal(size=4))
        query = WeightedGram(
            model_of(family),
            random_metric(rng),
            part,
            True,
            None if part == "metric" else family,
            point,
        )
        rows, response = extreme_rows(rng, 100), random_response(rng, family, 100)
        if part == "curvature" and family.residual:
            response[:] = 0
        q = 4
        # Frobenius norm of the whole matrix
        off = [1.0 if i == j else math.sqrt(2) for i in range(q) for j in range(i, q)]
        alone = np.array([statistic(query, rows[[i]], response[[i]]) * off for i in range(100)]).T
        bound = math.sqrt(float(query.sensitivity(neighbors).squared)) / neighbors.rows
        moved = (
            max(np.linalg.norm(alone - alone[:, [i]], axis=0).max() for i in range(100))
            if isinstance(neighbors, dp.Replace)
            else np.linalg.norm(alone, axis=0).max()
        )
        assert moved <= bound
        worst = max(worst, moved / bound)
    assert worst > 0.7


@pytest.mark.few(2)
@pytest.mark.parametrize("family", FAMILIES, ids=named)
def test_sums_are_exact_and_do_not_depend_on_order_or_blocks(family):
    """Against Python integers, row by row; shuffled and repeated rows give the same numbers."""
    rng = np.random.default_rng(7)
    matrix, response = extreme_rows(rng, 5000), random_response(rng, family, 5000)
    metric, point = random_metric(rng), point_of(family, 0.1 * rng.normal(size=4))
    order = rng.permutation(5000)
    for query in (
        WeightedGradient(model_of(family), metric, family, point, False, Fraction(3, 2)),
        WeightedGram(model_of(family), metric, "metric", False),
        WeightedGram(model_of(family), metric, "curvature", False, family, point),
        WeightedGram(model_of(family), metric, "scores", False, family, point),
    ):
        weights = row_weights(matrix, metric)
        together = estimating_sums(ModelData(matrix, response), weights, query.plan())
        shuffled = estimating_sums(
            ModelData(matrix[order], response[order]), weights[order], query.plan()
        )
        components = [
            estimating_sums(
                ModelData(matrix[i : i + 617], response[i : i + 617]),
                weights[i : i + 617],
                query.plan(),
            )
            for i in range(0, 5000, 617)
        ]
        if isinstance(query, WeightedGradient):
            assert (
                together[0].tolist()
                == shuffled[0].tolist()
                == sum(part[0] for part in components).tolist()
            )
            assert together[1] == shuffled[1] == sum(part[1] for part in components)
        else:
            assert together.tolist() == shuffled.tolist() == sum(components).tolist()
        assert query_from_dict(query.to_dict()) == query


@pytest.mark.few(2)
@pytest.mark.compiled
@pytest.mark.parametrize("family", FAMILIES, ids=named)
def test_the_compiled_pass_is_bit_identical(family):
    """The compiled loop and numpy give the same integers, extreme rows and predictors included."""
    rng = np.random.default_rng(17)
    loop = gradient_loop()
    assert loop is not None
    for n in (0, 1, 3000):
        matrix, response = extreme_rows(rng, n), random_response(rng, family, n)
        weights = row_weights(matrix, random_metric(rng))
        for size in (0.01, 1.0, 300.0):
            point = point_of(family, size * rng.normal(size=4))
            first, second = (
                numpy_gradient(ModelData(matrix, response), weights, family, point),
                compiled_gradient(loop, ModelData(matrix, response), weights, family, point),
            )
            assert first[0].tolist() == second[0].tolist()
            assert first[1] == second[1]


def test_gradients_agree_with_floating_point():
    """The statistic times its unit is Σ w ψ z of the real-valued formulas."""
    rng = np.random.default_rng(8)
    n = 2000
    x, d, y = rng.normal(0, 1, n), rng.choice(["a", "b", "c"], n), rng.normal(0, 2, n)
    data = {"x": x, "d": d, "y": y, "b": np.zeros(n, bool), "k": np.zeros(n, int)}
    engine = memory_engine_from_arrays(data, SCHEMA, dp.Replace())
    real, radius, sigma, beta = rng.normal(size=(4, 4)), 1.2, 0.1, np.array([0.05, 0.2, -0.1, 0.02])
    metric, family = metric_of(real, radius), Huber(1.345)
    matrix = np.c_[np.ones(n), np.clip(x, -4, 4) / 4, d == "b", np.clip(x, -4, 4) / 4 * (d == "b")]
    z = matrix @ real.T
    w = np.minimum(1, radius**2 / (z**2).sum(1))
    psi = -np.clip((np.clip(y, -10, 10) / 10 - matrix @ beta) / sigma, -1.345, 1.345)
    scale = float(metric.bound) / radius / UNIT  # whole numbers of the metric for 1
    query = WeightedGradient(
        Model(COLUMNS, response_of(family)),
        metric,
        family,
        point_of(family, beta),
        False,
        Fraction(3, 2),
    )
    released = np.array(query.assemble(execute(engine, query.plan())), dtype=float)
    np.testing.assert_allclose(
        released[:4] * float(query.unit) / scale, (w * psi) @ z, rtol=2e-3, atol=1.0
    )
    assert released[4] * float(query.ride_unit) == pytest.approx((psi**2).sum(), rel=2e-3)
    gram = WeightedGram(query.model, metric, "scores", False, family, query.point)
    flat = (
        np.array(gram.assemble(execute(engine, gram.plan())), dtype=float)
        * float(gram.unit)
        / scale**2
    )
    np.testing.assert_allclose(
        flat,
        ((z * (w * psi)[:, None]).T @ (z * (w * psi)[:, None]))[np.triu_indices(4)],
        rtol=5e-3,
        atol=2.0,
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("keys", [(), (Subset("d", (0, 1)),)], ids=["all", "filtered"])
@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove(unit="id", max_rows=2)], ids=str)
def test_engines_agree(neighbors, keys, tmp_path):
    rng = np.random.default_rng(9)
    n = 400
    data = {
        "x": rng.normal(0, 3, n),
        "d": rng.choice(["a", "b", "c", "other"], n),
        "y": rng.normal(0, 9, n),
        "b": rng.random(n) < 0.4,
        "k": rng.integers(-3, 30, n),
        "id": rng.integers(0, 150, n),
    }
    pandas.DataFrame(data).to_parquet(tmp_path / "rows.parquet")
    engines = [
        memory_engine_from_arrays(data, SCHEMA, neighbors),
        FileEngine(tmp_path / "rows.parquet", "parquet", SCHEMA, neighbors),
    ]
    for family in FAMILIES:
        query = WeightedGradient(
            model_of(family, keys),
            random_metric(rng),
            family,
            point_of(family, [0.1, 0.2, -0.1, 0.0]),
            bool(keys),
        )
        first, second = (query.assemble(execute(engine, query.plan())) for engine in engines)
        assert first == second
        gram = WeightedGram(query.model, query.metric, "curvature", bool(keys), family, query.point)
        assert gram.assemble(execute(engines[0], gram.plan())) == gram.assemble(
            execute(engines[1], gram.plan())
        )
    assert psi_bound(FAMILIES[0]) > 0


def test_bad_metrics_and_points_are_refused():
    for wrong in (
        lambda: Metric(((1 << 40,),), 0, 1),
        lambda: Metric(((1, 2), (3,)), 0, 1),
        lambda: Metric(((1,),), 0, 0),
        lambda: metric_of(np.array([[math.nan]]), 1.0),
        lambda: metric_of(np.array([[1.0]]), math.inf),
        lambda: Point((1 << 60,), 0, 1.0),
        lambda: Point((1,), 0, math.inf),
        lambda: WeightedGram(
            model_of(Logistic()),
            random_metric(np.random.default_rng(1), columns=3),
            "metric",
            False,
        ),
        lambda: WeightedGradient(
            model_of(Logistic()),
            random_metric(np.random.default_rng(1)),
            Logistic(),
            Point((1,) * 4, 0, 1.0),
            False,
            Fraction(2),
        ),
    ):
        with pytest.raises(dp.DiscreetError):
            wrong()
