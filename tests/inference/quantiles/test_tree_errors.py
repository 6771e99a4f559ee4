"""Least squares on trees against numpy, and the closed forms of its errors against explicit
covariance matrices.
"""

from __future__ import annotations

import numpy as np
import pytest

from discreet.inference.quantiles.trees import (
    TreeShape,
    least_squares,
    prefix_counts,
    prefix_weights,
)
from discreet.specs.queries.trees import mean_prefix_variance

SHAPES = [
    TreeShape(2, 1),
    TreeShape(2, 4),
    TreeShape(3, 3),
    TreeShape(4, 2),
    TreeShape(5, 2),
    TreeShape(7, 1),
]
EVERY = pytest.mark.parametrize("shape", SHAPES, ids=str)


def incidence(shape: TreeShape) -> np.ndarray:
    """Nodes × leaves: which leaves a node counts."""
    return np.concatenate(
        [np.kron(np.eye(size), np.ones(shape.leaves // size)) for size in shape.sizes]
    )


def linear(shape: TreeShape, total: float | None) -> np.ndarray:
    """The estimator as a matrix, leaves × nodes."""
    return least_squares(shape, np.eye(sum(shape.sizes)), total=total).T


def prefixes(shape: TreeShape) -> np.ndarray:
    return np.tril(np.ones((shape.leaves + 1, shape.leaves)), -1)


@EVERY
def test_least_squares_is_numpys(shape: TreeShape) -> None:
    noisy = np.random.default_rng(1).normal(10, 5, sum(shape.sizes))
    nodes = incidence(shape)
    np.testing.assert_allclose(
        least_squares(shape, noisy, total=None),
        np.linalg.lstsq(nodes, noisy, rcond=None)[0],
        atol=1e-11,
    )
    ones = np.ones((1, shape.leaves))
    bordered = np.block([[nodes.T @ nodes, ones.T], [ones, np.zeros((1, 1))]])
    known = np.linalg.solve(bordered, np.concatenate([nodes.T @ noisy, [37.0]]))[: shape.leaves]
    estimated = least_squares(shape, noisy, total=37.0)
    np.testing.assert_allclose(estimated, known, atol=1e-11)
    assert estimated.sum() == pytest.approx(37.0)


@EVERY
@pytest.mark.parametrize("public", [True, False])
def test_exact_counts_come_back_unchanged(shape: TreeShape, public: bool) -> None:
    leaves = np.random.default_rng(2).integers(0, 50, shape.leaves).astype(float)
    np.testing.assert_allclose(
        least_squares(shape, incidence(shape) @ leaves, total=leaves.sum() if public else None),
        leaves,
        atol=1e-11,
    )


def test_many_vectors_at_once_are_one_at_a_time() -> None:
    shape = TreeShape(3, 3)
    noisy = np.random.default_rng(3).normal(size=(5, 2, sum(shape.sizes)))
    together = least_squares(shape, noisy, total=None)
    assert together.shape == (5, 2, 27)
    np.testing.assert_allclose(together[3, 1], least_squares(shape, noisy[3, 1], total=None))
    np.testing.assert_allclose(prefix_counts(together)[..., -1], together.sum(axis=-1))


@EVERY
def test_prefix_errors_are_those_of_the_covariance_matrix(shape: TreeShape) -> None:
    boundaries = np.arange(shape.leaves + 1)
    weights = prefixes(shape) @ linear(shape, 0.0)
    second, fourth = prefix_weights(shape, boundaries)
    np.testing.assert_allclose(second, np.diag(weights @ weights.T), atol=1e-12)
    np.testing.assert_allclose(fourth, (weights**4).sum(axis=1), atol=1e-12)
    assert mean_prefix_variance(shape.branching, shape.levels) == pytest.approx(second[:-1].mean())


@EVERY
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_prefix_errors_with_an_estimated_total(shape: TreeShape, share: float) -> None:
    estimator = linear(shape, None)
    weights = prefixes(shape) @ estimator - share * estimator.sum(axis=0)
    second, fourth = prefix_weights(shape, np.arange(shape.leaves + 1), share)
    np.testing.assert_allclose(second, (weights**2).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(fourth, (weights**4).sum(axis=1), atol=1e-12)


@EVERY
def test_coarse_boundaries_need_only_their_own_levels(shape: TreeShape) -> None:
    for depth in range(1, shape.levels + 1):
        boundaries = np.arange(0, shape.leaves, shape.leaves // shape.branching**depth)
        for share in (None, 0.4):
            np.testing.assert_allclose(
                prefix_weights(shape, boundaries, share, depth=depth),
                prefix_weights(shape, boundaries, share),
                atol=1e-12,
            )


def test_a_cut_tree_has_the_same_errors_at_its_own_boundaries() -> None:
    shape = TreeShape(3, 4)
    cut = shape.cut(10)
    assert (cut.branching, cut.levels) == (3, 2)
    assert shape.cut(1).levels == 1
    scale = np.sqrt(np.concatenate([np.ones(3), np.full(9, cut.leaf_variance)]))
    weights = prefixes(cut) @ linear(cut, 0.0) * scale
    np.testing.assert_allclose(
        (weights**2).sum(axis=1), prefix_weights(shape, np.arange(10) * 9)[0], atol=1e-12
    )
