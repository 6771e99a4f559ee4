"""Claim: weights and weighted second moments are the same whole numbers whatever the blocks and the threads."""

from __future__ import annotations

import numpy as np
import pytest

from discreet import model_kernels as kernels
from discreet.queries.families import Huber, Logistic
from discreet.queries.model import EstimatingPlan, Model, metric_of
from discreet.queries.pieces import UNIT, ModelColumn

ROWS, WIDTH = 6000, 7


def setting(family):
    rng = np.random.default_rng(4)
    matrix = rng.choice([-UNIT, UNIT, 0, 77], (ROWS, WIDTH)).astype(np.int16)
    response = (rng.integers(-(2**23), 2**23, ROWS) if family.residual else rng.integers(0, 2, ROWS) << 13).astype(np.int32)
    from discreet.models.points import point_at

    model = Model(tuple(ModelColumn(f"c{place}", ()) for place in range(WIDTH)), None)
    metric = metric_of(rng.normal(size=(WIDTH, WIDTH)), 2.0)
    return kernels.ModelData(matrix, response), model, metric, point_at(rng.normal(size=WIDTH) * 0.2, 0.3, family)


@pytest.mark.parametrize("family", [Huber(1.345), Logistic()], ids=repr)
@pytest.mark.parametrize("part", ["metric", "curvature", "scores"])
def test_blocks_and_threads_do_not_matter(family, part, monkeypatch):
    data, model, metric, point = setting(family)
    plan = EstimatingPlan(model, metric, part, None if part == "metric" else family, None if part == "metric" else point)
    answers = []
    for one_thread, few, lot in ((1 << 18, 8, 256), (1, 1, 3), (WIDTH * WIDTH * 999, 10**9, 1), (1 << 40, 2, 256)):
        monkeypatch.setattr(kernels, "ONE_THREAD", one_thread)
        monkeypatch.setattr(kernels, "FEW_BLOCKS", few)
        monkeypatch.setattr(kernels, "LOT", lot)
        weights = kernels.row_weights(data.matrix, metric)
        answers.append((weights.tolist(), kernels.gram_sums(data, weights, plan).tolist()))
    assert all(answer == answers[0] for answer in answers)
    order = np.random.default_rng(5).permutation(ROWS)
    shuffled = kernels.ModelData(data.matrix[order], data.response[order])
    assert kernels.gram_sums(shuffled, kernels.row_weights(shuffled.matrix, metric), plan).tolist() == answers[0][1]


def test_blocks_keep_sums_exact_for_any_width():
    """At most 2**12 rows of second moments and 2**14 of weights, whatever the width."""
    for products in (1, 4, 121, 2500, 40_000):
        assert kernels.LEAST_ROWS <= kernels.block_rows(products, kernels.GRAM_ROWS) <= kernels.GRAM_ROWS
        assert kernels.LEAST_ROWS <= kernels.block_rows(products, kernels.GRADIENT_ROWS) <= kernels.GRADIENT_ROWS


def test_a_broken_numba_does_not_break_a_release(monkeypatch):
    """A module that numba needs is shadowed by another of the same name, say: numpy takes over, with the same numbers."""
    def broken(name):
        raise AttributeError("module 'coverage' has no attribute 'types'")

    kernels.gradient_loop.cache_clear()
    monkeypatch.setattr(kernels.importlib, "import_module", broken)
    try:
        assert kernels.gradient_loop() is None
    finally:
        kernels.gradient_loop.cache_clear()
