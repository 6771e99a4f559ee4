"""Claim: a row of a network adds a vector of at most the clip norm, the same one whatever is beside
it; and how often a network is right moves by no more than stated.
"""

from __future__ import annotations

import copy
import itertools
import pickle
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

import discreet as dp
from discreet.accounting.calibration.additive import gaussian_noise
from discreet.models.learners.network import network_model
from discreet.schema import Schema
from discreet.specs.estimating.components import RESPONSE_BITS, UNIT, UNIT_BITS
from discreet.specs.estimating.layers import (
    ERROR_BITS,
    LARGEST_ERROR,
    LARGEST_WEIGHTS,
    Network,
    decisions,
    matrices,
    passed,
)
from discreet.specs.estimating.networks import (
    NORM_BITS,
    Agreement,
    NetworkGradients,
    NetworkPlan,
)
from discreet.specs.registry import query_from_dict
from discreet.testing.seeded import seeded_session
from discreet.trusted.engines.execution import execute
from discreet.trusted.learning.network import rows as network_rows
from discreet.trusted.learning.network.rows import NetworkRows, clip_factors
from discreet.trusted.release import Description, Question

SHAPES = [
    Network(5, (7,), "relu", "yes/no", 1, 22),
    Network(3, (6, 4), "tanh", "classes", 3, 20),
    Network(4, (5, 5, 5), "relu", "number", 1, 22),
    Network(2, (3,), "tanh", "number", 1, 24),
    Network(1, (256,), "relu", "classes", 64, 18),
]
SHAPE = pytest.mark.parametrize("shape", SHAPES, ids=lambda one: f"{one.outcome}-{one.activation}")


def weights_of(rng, shape, size):
    """Weights of a mean size, as large as are allowed where that is beyond."""
    found = rng.normal(size=shape.size) * size * 2.0**shape.weight_bits
    if rng.random() < 0.3:
        found = np.sign(found) * np.abs(found).mean()
    return np.trunc(found * min(1.0, LARGEST_WEIGHTS / max(np.abs(found).sum(), 1.0)))


def rows_of(rng, shape, count):
    corners = rng.choice([-UNIT, UNIT], (count, shape.inputs))
    inner = rng.integers(-UNIT, UNIT + 1, (count, shape.inputs))
    matrix = np.where(rng.random((count, 1)) < 0.5, corners, inner).astype(np.int16)
    if shape.outcome == "number":
        most = 1 << RESPONSE_BITS
        return matrix, rng.choice([-most, most, 0, 12345], count).astype(np.int32)
    # −1 is a row without a level
    least = -1 if shape.outcome == "classes" else 0
    return matrix, rng.integers(least, max(2, shape.outputs), count).astype(np.int32)


def reader_of(rng, shape, count, clip):
    return NetworkRows(NetworkPlan(None, shape, clip), *rows_of(rng, shape, count))


def squared(gradient):
    return sum(int(value) ** 2 for value in gradient)


@pytest.mark.few(2)
@SHAPE
def test_no_row_adds_more_than_the_clip_norm(shape):
    """Single rows by the reader itself, and 2000 rows at each of ten weights by their factors."""
    rng, closest = np.random.default_rng(3), 0.0
    for size in (0.0, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0, 1e4, 1e9):
        clip = int(rng.choice([1 << 20, 1 << 27, 1 << 30, 3 << 30, 1 << 36]))
        reader, theta = reader_of(rng, shape, 2000, clip), weights_of(rng, shape, size)
        for row in range(6):
            norm = squared(reader.gradient(np.array([row]), theta))
            assert norm <= clip**2
            closest = max(closest, norm / clip**2)
        layers = matrices(shape, theta)
        way = passed(shape, layers, reader._matrix)
        errors = network_rows._errors(shape, layers, way, reader._response)
        assert max(np.abs(error).max() for error in errors) <= LARGEST_ERROR
        assert max(np.abs(inputs).max() for inputs in way.inputs) <= 1 << (UNIT_BITS + 4)
        assert np.abs(way.sums).max() <= 2.0**52
        share, norms = clip_factors(errors, way.inputs, clip), np.zeros(2000, dtype=object)
        for error, inputs in zip(errors, way.inputs, strict=True):
            cut = np.trunc(error * share[:, None]).astype(np.int64)
            norms += (cut**2).sum(axis=1).astype(object) * (inputs.astype(np.int64) ** 2).sum(
                axis=1
            ).astype(object)
        assert max(norms) <= clip**2
        closest = max(closest, float(max(norms) / clip**2))
    assert closest > 0.9, "the bound should be nearly attained"


def test_a_factor_that_is_rounded_to_nearest_would_exceed_the_clip_norm():
    """The control: errors of many units, of which each is rounded up."""
    shape, clip, rng = (
        Network(1, (256,), "relu", "classes", 64, 22),
        1 << 20,
        np.random.default_rng(4),
    )
    reader, theta = reader_of(rng, shape, 400, clip), weights_of(rng, shape, 0.5)
    layers = matrices(shape, theta)
    way = passed(shape, layers, reader._matrix)
    errors = network_rows._errors(shape, layers, way, reader._response)
    share, norms = clip_factors(errors, way.inputs, clip), np.zeros(400)
    for error, inputs in zip(errors, way.inputs, strict=True):
        rounded = np.sign(error) * np.ceil(np.abs(error * share[:, None]))
        norms += (rounded**2).sum(axis=1) * (inputs**2).sum(axis=1)
    assert norms.max() > clip**2


@pytest.mark.few(2)
@SHAPE
def test_a_row_adds_the_same_whatever_is_beside_it(shape, monkeypatch):
    rng, count = np.random.default_rng(5), 300
    for size in (0.1, 1.0, 1e6):
        reader, theta = reader_of(rng, shape, count, 1 << 30), weights_of(rng, shape, size)
        whole = reader.gradient(np.arange(count), theta)
        alone = [reader.gradient(np.array([row]), theta) for row in range(count)]
        assert (sum(alone) == whole).all()
        assert (reader.gradient(rng.permutation(count), theta) == whole).all()
        some = rng.choice(count, 70, replace=False)
        assert (reader.gradient(some, theta) == sum(alone[row] for row in some)).all()
        for block in (1, 17, 64):
            monkeypatch.setattr(network_rows, "BLOCK_ROWS", block)
            assert (reader.gradient(np.arange(count), theta) == whole).all()
        monkeypatch.undo()
        with threadpool_limits(1):
            assert (reader.gradient(np.arange(count), theta) == whole).all()
        twice = reader.gradient(np.repeat(np.arange(count), 2), theta)
        assert (twice == 2 * whole).all()
    assert not reader.gradient(np.arange(0), theta).any()


def test_a_float_product_depends_on_the_rows_beside_it_and_a_whole_one_does_not():
    """The control: why weights and activations are whole numbers."""
    rng = np.random.default_rng(12)
    rows, layer = rng.normal(size=(300, 100)), rng.normal(size=(32, 100))
    whole_rows, whole_layer = np.rint(rows * 2**12), np.rint(layer * 2**20)

    def moved(left, right):
        together = left @ right.T
        return sum((left[row : row + 1] @ right.T != together[row]).any() for row in range(300))

    assert moved(rows, layer) > 0
    assert moved(whole_rows, whole_layer) == 0


def float_gradient(shape, theta, x, response):
    """The gradient of a row's loss in floats, by the chain rule as textbooks have it."""
    layers = [layer / 2.0**shape.weight_bits for layer in matrices(shape, theta)]
    act = {"relu": lambda z: np.maximum(z, 0), "tanh": np.tanh}[shape.activation]
    slope = {"relu": lambda z: (z > 0) * 1.0, "tanh": lambda z: 1 - np.tanh(z) ** 2}
    here, sums = [np.append(x, 1.0)], []
    for layer in layers:
        sums.append(layer @ here[-1])
        here.append(np.append(act(sums[-1]), 1.0))
    z = sums[-1]
    if shape.outcome == "number":
        error = z - response / 2.0**RESPONSE_BITS
    elif shape.outcome == "yes/no":
        error = 1 / (1 + np.exp(-z)) - response
    else:
        chances = np.exp(z - z.max())
        error = chances / chances.sum() - (np.arange(shape.outputs) == response)
    gradients = []
    for place in range(len(layers) - 1, -1, -1):
        gradients.append(np.outer(error, here[place]).ravel())
        if place:
            error = (layers[place][:, :-1].T @ error) * slope[shape.activation](sums[place - 1])
    return np.concatenate(gradients[::-1])


@SHAPE
def test_gradients_are_those_of_the_loss(shape):
    rng, clip = np.random.default_rng(6), 1 << 36
    reader, theta = reader_of(rng, shape, 30, clip), weights_of(rng, shape, 0.2)
    for row in range(30):
        x = reader._matrix[row] / UNIT
        wanted = float_gradient(shape, theta, x, reader._response[row])
        found = reader.gradient(np.array([row]), theta) / 2.0**NORM_BITS
        off, scale = np.abs(found - wanted), max(1.0, np.abs(wanted).max())
        # a unit whose sum is less than half a place from 0 may have the other slope
        assert np.quantile(off, 0.99) < 0.01 * scale
        assert np.linalg.norm(off) < 0.05 * max(1.0, np.linalg.norm(wanted))
    small = NetworkRows(NetworkPlan(None, shape, 1 << 27), reader._matrix, reader._response)
    for row in range(30):
        one, all_of_it = (each.gradient(np.array([row]), theta) for each in (small, reader))
        if np.abs(all_of_it).max() > 1 << 28:  # clipped, it points where it pointed
            cosine = (
                one
                @ all_of_it.astype(float)
                / (np.linalg.norm(one.astype(float)) * np.linalg.norm(all_of_it.astype(float)))
            )
            assert cosine > 0.99


def test_weights_and_rows_that_a_network_does_not_have_are_refused():
    reader = reader_of(np.random.default_rng(7), SHAPES[0], 4, 1 << 30)
    size = SHAPES[0].size
    with pytest.raises(IndexError):
        reader.gradient(np.array([0]), np.zeros(size + 1))
    with pytest.raises(IndexError):
        reader.gradient(np.array([-1]), np.zeros(size))
    with pytest.raises(IndexError):
        reader.gradient(np.array([4]), np.zeros(size))
    with pytest.raises(ValueError, match="exact"):
        reader.gradient(np.array([0]), np.full(size, 2.0**34))
    with pytest.raises(ValueError, match="exact"):
        reader.gradient(np.array([0]), np.full(size, np.nan))
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            attempt(reader)


# ── specifications ────────────────────────────────────────────────────────────────────────────────

SCHEMA = {
    "x": dp.Real(-1, 1, missing=0),
    "g": dp.Category(["a", "b", "c"], missing="a"),
    "b": dp.Boolean(missing=False),
    "k": dp.Category(["lo", "mid", "hi"], missing="lo"),
    "y": dp.Real(-4, 8),
}
BOTH = pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)


def query_of(formula, *, rows=None, optional=False, clip=1 << NORM_BITS):
    model, shape = network_model(Schema(SCHEMA), formula, (3,), "relu", None)
    return NetworkGradients(model, shape, clip, optional, rows)


def agreement_of(formula, rng, *, both=True):
    query = query_of(formula)
    theta = tuple(int(weight) for weight in weights_of(rng, query.network, 1.0))
    return Agreement(query.model, query.network, theta, False, both)


@pytest.mark.parametrize("formula", ["b ~ x + g", "k ~ x", "y ~ x + b"])
def test_queries_are_read_as_they_were_written(formula):
    query = query_of(formula, rows=9)
    assert query_from_dict(query.to_dict()) == query
    assert query.size == query.network.size
    one = query.sensitivity(dp.Replace())
    assert (one.squared, one.rows, one.norm) == (Fraction(query.clip) ** 2, 9, 2)
    if formula[0] != "y":
        asked = agreement_of(formula, np.random.default_rng(1))
        assert query_from_dict(asked.to_dict()) == asked


@pytest.mark.parametrize(
    "make",
    [
        lambda: Network(3, (257,), "relu", "yes/no", 1, 22),
        lambda: Network(3, (8,) * 5, "relu", "yes/no", 1, 22),
        lambda: Network(3, (0,), "relu", "yes/no", 1, 22),
        lambda: Network(3, (True,), "relu", "yes/no", 1, 22),
        lambda: Network(3, ("8",), "relu", "yes/no", 1, 22),
        lambda: Network(0, (8,), "relu", "yes/no", 1, 22),
        lambda: Network(3, (8,), "sigmoid", "yes/no", 1, 22),
        lambda: Network(3, (8,), "relu", "ranks", 1, 22),
        lambda: Network(3, (8,), "relu", "yes/no", 2, 22),
        lambda: Network(3, (8,), "relu", "classes", 1, 22),
        lambda: Network(3, (8,), "relu", "classes", 65, 22),
        lambda: Network(3, (8,), "relu", "yes/no", 1, 29),
        lambda: query_of("b ~ x", clip=1),
        lambda: query_of("b ~ x", clip=1 << 40),
        lambda: query_of("b ~ x", clip=2.0**30),
        lambda: replace(query_of("b ~ x"), network=SHAPES[0]),
        lambda: replace(query_of("y ~ x"), network=query_of("b ~ x").network),
        lambda: replace(agreement_of("b ~ x", np.random.default_rng(1)), weights=(1, 2)),
        lambda: replace(agreement_of("b ~ x", np.random.default_rng(1)), weights=(2**34,) * 10),
        lambda: agreement_of("y ~ x", np.random.default_rng(1)),
    ],
)
def test_what_does_not_fit_together_is_refused(make):
    with pytest.raises(dp.InvalidParameter):
        make()


def test_relations_without_a_theorem_are_refused_from_public_facts():
    for rows, relation in [
        (None, dp.AddRemove(unit="id", max_rows=2)),
        (9, dp.Replace(unit="id", max_rows=1)),
        (None, dp.Replace()),
        (9, dp.AddRemove()),
    ]:
        with pytest.raises(dp.NoTheorem):
            query_of("b ~ x", rows=rows).sensitivity(relation)


def data_of(columns, neighbors, tmp_path=None):
    if tmp_path is None:
        return dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors)
    pd.DataFrame(columns).to_parquet(tmp_path / "rows.parquet")
    return dp.read_parquet(tmp_path / "rows.parquet", schema=SCHEMA, neighbors=neighbors)


def columns_of(rng, n):
    return {
        "x": rng.uniform(-1, 1, n),
        "g": rng.choice(["a", "b", "c"], n),
        "b": rng.random(n) < 0.5,
        "k": rng.choice(["lo", "mid", "hi"], n),
        "y": rng.uniform(-4, 8, n),
    }


@BOTH
def test_more_classes_than_levels_are_refused_before_the_debit(neighbors):
    session = seeded_session(
        data_of(columns_of(np.random.default_rng(1), 9), neighbors), dp.GDP(1), 1
    )
    query, entries = query_of("k ~ x"), len(list(session.ledger.entries()))
    more = replace(query.network, outputs=4)
    weights = (0,) * more.size
    asked = Agreement(query.model, more, weights, False, True)
    mechanism = gaussian_noise(asked.sensitivity(neighbors)[1], Fraction(1, 4))
    question = Question(Description("accuracy", "k"), asked, mechanism, dp.GDP(0.5))
    with pytest.raises(dp.InvalidParameter, match="codes that it does not have"):
        session.release(question)
    assert len(list(session.ledger.entries())) == entries


# ── agreement ─────────────────────────────────────────────────────────────────────────────────────


def counted(query, columns, neighbors, tmp_path=None):
    engine = data_of(columns, neighbors, tmp_path)._engine
    return query.assemble(execute(engine, query.plan()))


@pytest.mark.parametrize("formula", ["b ~ x + g", "k ~ x + b"])
def test_agreement_moves_no_further_than_stated(formula):
    """All pairs of neighbours out of few rows, under both relations."""
    rng = np.random.default_rng(9)
    pool = pd.DataFrame(columns_of(rng, 4))
    sets = [
        list(one)
        for size in range(4)
        for one in itertools.combinations_with_replacement(range(4), size)
    ]
    for _ in range(3):
        query = agreement_of(formula, rng)
        bare = replace(query, both=False)
        answers = {
            tuple(one): np.array(
                counted(query, {name: pool[name][one].to_numpy() for name in pool}, dp.AddRemove())
            )
            for one in sets
        }
        furthest = {dp.AddRemove: 0, dp.Replace: 0}
        for one, two in itertools.product(answers, repeat=2):
            gap = np.abs(answers[one] - answers[two])
            common, relation = (Counter(one) & Counter(two)).total(), None
            if len(one) == len(two) and common >= len(one) - 1:
                relation = dp.Replace()
            elif abs(len(one) - len(two)) == 1 and common == min(len(one), len(two)):
                relation = dp.AddRemove()
            if relation is None:
                continue
            l1, l2 = query.sensitivity(relation)
            assert gap.sum() <= l1.value
            assert (gap**2).sum() <= l2.squared
            assert gap[0] <= bare.sensitivity(relation)[0].value
            furthest[type(relation)] = max(furthest[type(relation)], int(gap.sum()))
        if furthest[dp.Replace] == 2:
            break
    assert furthest == {dp.AddRemove: 1, dp.Replace: 2}


@BOTH
def test_agreement_is_the_same_on_every_engine_and_that_of_the_decisions(neighbors, tmp_path):
    rng = np.random.default_rng(10)
    columns = columns_of(rng, 60)
    for formula in ("b ~ x + g", "k ~ x + b"):
        query = agreement_of(formula, rng)
        memory = counted(query, columns, neighbors)
        assert memory == counted(query, columns, neighbors, tmp_path)
        assert sum(memory) == 60
        assert counted(replace(query, both=False), columns, neighbors) == memory[:1]
        layers = matrices(query.network, np.array(query.weights, dtype=float))
        right = 0
        for row in range(60):  # one row at a time
            here = {name: values[row : row + 1] for name, values in columns.items()}
            right += counted(query, here, neighbors)[0]
        assert right == memory[0]
        assert decisions(query.network, np.zeros((1, query.network.outputs)))[0] == 0
        assert len(layers) == 2


@BOTH
def test_gradients_of_all_engines_are_the_same(neighbors, tmp_path):
    rng = np.random.default_rng(11)
    columns = columns_of(rng, 50)
    for formula in ("b ~ x + g", "k ~ x", "y ~ x + b"):
        query = query_of(formula)
        readers = [
            execute(data_of(columns, neighbors, place)._engine, query.plan())
            for place in (None, tmp_path)
        ]
        theta = weights_of(rng, query.network, 0.5)
        sums = [reader.gradient(np.arange(reader.count), theta) for reader in readers]
        assert (sums[0] == sums[1]).all()
        assert sums[0].any()
        assert sums[0].dtype == np.int64
        assert UNIT_BITS + ERROR_BITS == NORM_BITS
