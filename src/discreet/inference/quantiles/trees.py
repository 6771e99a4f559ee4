"""Noisy counts on a regular tree made consistent by least squares,
with the exact error of every prefix count.

*Method*: nodes are y = count + noise, all of one variance. Upwards, z = a·y + (1 − a)·Σ z(children)
is the best estimate from a node's own subtree (a = V, its variance, in units of the noise
variance); downwards, x(child) = z(child) + (x(parent) − Σ z(siblings))/b. With x(root) = n where
n is public and Σ z(children of the root) elsewhere, x is the generalised least squares estimate:
unbiased, consistent, and of least variance among linear unbiased ones. *Validity*: exact, for any
noise of equal variances (docs/theory/trees.md).
*Reference*: Hay, Rastogi, Miklau, Suciu (2010); Honaker (2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.inference.results.laws import Array


@dataclass(frozen=True, slots=True)
class TreeShape:
    """A regular tree: `branching` children a node, `levels` levels below the root."""

    branching: int
    levels: int
    # of a leaf's own number; below 1 where the levels underneath have been summed up in it
    leaf_variance: float = 1.0

    @property
    def leaves(self) -> int:
        return int(self.branching**self.levels)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Nodes of each level, the root's children first."""
        return tuple(self.branching**level for level in range(1, self.levels + 1))

    def cut(self, most: int) -> TreeShape:
        """The upper levels of this tree, at most `most` leaves (or one level),
        as estimates from below have summed it up.
        """
        levels = self.levels
        while levels > 1 and self.branching**levels > most:
            levels -= 1
        return TreeShape(self.branching, levels, self.variances()[levels - 1])

    def variances(self) -> tuple[float, ...]:
        """V of each level: the variance of z, in units of the noise variance."""
        values = [self.leaf_variance]
        for _ in range(self.levels - 1):
            values.append(1 / (1 + 1 / (self.branching * values[-1])))
        return tuple(values[::-1])


def least_squares(shape: TreeShape, noisy: Any, *, total: float | None) -> Array:
    """Consistent leaf counts of shape (…, leaves) from noisy node counts of shape (…, nodes);
    `total` is the number of rows where it is public.
    """
    b = shape.branching
    levels = np.split(np.asarray(noisy, dtype=float), np.cumsum(shape.sizes)[:-1], axis=-1)
    subtree, sums = [levels[-1]], []
    for own, weight in zip(levels[-2::-1], shape.variances()[-2::-1], strict=True):
        below = _by_parent(subtree[-1], b).sum(axis=-1)
        sums.append(below)
        subtree.append(weight * own + (1 - weight) * below)
    top = subtree[-1].sum(axis=-1, keepdims=True)
    sums.append(top)
    parent = top if total is None else np.full_like(top, float(total))
    for here, below in zip(subtree[::-1], sums[::-1], strict=True):
        parent = (_by_parent(here, b) + ((parent - below) / b)[..., None]).reshape(here.shape)
    return np.asarray(parent)


def _by_parent(level: Array, branching: int) -> Array:
    return level.reshape(*level.shape[:-1], -1, branching)


def prefix_counts(leaves: Array) -> Array:
    """Counts before each boundary 0 … leaves, of shape (…, leaves + 1)."""
    return np.concatenate([np.zeros((*leaves.shape[:-1], 1)), np.cumsum(leaves, axis=-1)], axis=-1)


def prefix_weights(
    shape: TreeShape, boundaries: Any, share: Any = None, *, depth: int | None = None
) -> tuple[Array, Array]:
    """(Σ w², Σ w⁴) of the error Σ w·noise of x(prefix) − share·x(root); without `share` the total
    is known, and x(root) has no error.

    `depth` says that all boundaries are ends of nodes of that level,
    below which nothing need be looked at.

    Theorem (docs/theory/trees.md).  Below the path from the root to the boundary whole subtrees
    enter with one coefficient. At each level, with a the place of the path among its siblings,
    f the part of its leaves before the boundary, F = (a + f)/b and c what is carried from its
    parent: the a siblings before it have coefficient 1 − F + c, those after it c − F, itself
    f − F + c, of which V goes to its own noise and the rest is carried down; a subtree's noise has
    Σ w² = V and Σ w⁴ = Q.
    """
    b, t = shape.branching, np.asarray(boundaries, dtype=np.int64)
    fourths = [1.0]
    for weight in shape.variances()[-2::-1]:
        fourths.append(weight**4 + (1 - weight) ** 4 * b * fourths[-1])
    carried: Any = np.zeros(t.shape) if share is None else t / shape.leaves - share
    second, fourth = (
        np.zeros(np.broadcast(t, carried).shape),
        np.zeros(np.broadcast(t, carried).shape),
    )
    last = shape.levels if depth is None else depth
    for level, variance, heavy in zip(
        range(1, last + 1), shape.variances(), fourths[::-1], strict=False
    ):
        leaves = b ** (shape.levels - level)  # of one node of this level
        end = t == shape.leaves  # of the last leaf: all before it, and it
        place, part = np.where(end, b - 1, t // leaves % b), np.where(end, 1.0, t % leaves / leaves)
        after = carried - (place + part) / b
        before2, after2, path2 = (1 + after) ** 2, after**2, (part + after) ** 2
        own, own_heavy = (variance, heavy) if level == last else (variance**2, variance**4)
        second += variance * (place * before2 + (b - 1 - place) * after2) + own * path2
        fourth += heavy * (place * before2**2 + (b - 1 - place) * after2**2) + own_heavy * path2**2
        carried = (part + after) * (1 - variance)
    return second, fourth
