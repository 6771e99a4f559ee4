"""Counts of a column's grid at every level of a regular tree:
what many quantiles and whole distribution functions read.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors
from discreet.sensitivity import L1, L2, histogram_sensitivity
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.keys import Key, key_from_dict
from discreet.specs.queries.plans import Factor, factor_from_dict
from discreet.specs.statistics import Histogram

MOST_LEAVES = 1 << 16  # a column's own 16-bit grid
LARGEST_TREE = 1 << 18  # numbers in one release
LEAST_BRANCHING = 4  # two gains 3 % of the noise and makes half as many numbers again
NEARLY_LEAST = 1.05


@plain.kept()
@dataclass(frozen=True, slots=True)
class TreeCounts:
    """Counts of the nodes of a tree over a column's grid,
    level by level from the root's children down to the leaves.

    The tree has branching**levels leaves of `width` neighbouring grid cells each. The root, the
    number of rows, is left out: it is public under row-level Replace, and elsewhere the sum of its
    children says nearly as much. `optional` as for `GridCounts`.
    """

    keys: tuple[Key, ...]
    factor: Factor
    optional: bool
    branching: int
    levels: int
    kind: ClassVar[str] = "tree counts"
    gives: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        shape = (self.branching, self.levels)
        if (
            any(isinstance(number, bool) or not isinstance(number, int) for number in shape)
            or self.branching < 2
            or not 1 <= self.levels <= 18
            or self.size > LARGEST_TREE
        ):
            raise InvalidParameter(
                "a tree of counts",
                "its branching or its number of levels is no small whole number",
                f"it makes one noisy number a node, {LARGEST_TREE} at most",
                "take both from queries.trees.tree_over",
            )

    @property
    def leaves(self) -> int:
        return int(self.branching**self.levels)

    @property
    def size(self) -> int:
        return sum(self.branching**level for level in range(1, self.levels + 1))

    @property
    def cells(self) -> int:
        """The cells of the column's grid."""
        return self.plan().cells

    @property
    def width(self) -> int:
        """Grid cells in a leaf; leaves beyond the grid stay empty."""
        return -(-self.cells // self.leaves)

    def value(self, place: int | float) -> float:
        """The value of a cell of the grid; between cells for a number between two."""
        grid, plan = self.factor.encoding, self.plan()
        return grid.center + (grid.low + plan.stride * place) / grid.per_unit

    @property
    def step(self) -> float:
        """The distance of neighbouring grid values."""
        return self.plan().stride / self.factor.encoding.per_unit

    def sensitivity(self, neighbors: Neighbors) -> tuple[L1, L2]:
        """ℓ₁ and ℓ₂ sensitivity of all counts together.

        Theorem.  With h levels and k the rows of one unit: ℓ₁ = h·k and ℓ₂² = h·k² where rows come
                  or go (AddRemove), ℓ₁ = 2·h·k and ℓ₂² = 2·h·k² otherwise (Replace). Both are
                  attained where the tree has two leaves under different children of the root.
        Proof.    A row adds 1 to one node of each level. At one level a unit's rows, before and
                  after, are vectors a, b ≥ 0 with |a|₁, |b|₁ ≤ k: ‖a‖₁ ≤ k, ‖a‖₂² ≤ |a|₁² ≤ k²,
                  ‖a − b‖₁ ≤ 2k and ‖a − b‖₂² ≤ ‖a‖₂² + ‖b‖₂² ≤ 2k² since a·b ≥ 0. Levels add up. k
                  rows in one leaf, before, and k in a leaf under another child of the root, after,
                  attain all of them.
        Checked.  tests/claims/test_trees.py::test_sensitivity_is_never_exceeded_and_is_attained
        """
        moved = histogram_sensitivity(neighbors, optional=self.optional)
        sides = 1 if moved.change == "added or removed" else 2
        return L1(Fraction(sides * self.levels * moved.rows)), L2(
            Fraction(sides * self.levels * moved.rows**2)
        )

    def plan(self) -> HistogramPlan:
        return HistogramPlan(self.keys, self.factor)

    def assemble(self, histogram: Histogram) -> list[int]:
        """The counts of all nodes, exactly, the root's children first."""
        counts = np.zeros(self.leaves, dtype=np.int64)
        for places, rows in histogram.pieces():
            if self.width == 1:
                counts[places] = rows
            else:
                np.add.at(counts, places // self.width, rows)
        levels = [counts]
        for _ in range(self.levels - 1):
            levels.append(levels[-1].reshape(-1, self.branching).sum(axis=1))
        nodes: list[int] = np.concatenate(levels[::-1]).tolist()
        return nodes

    def to_dict(self) -> dict[str, Any]:
        keys = [key.to_dict() for key in self.keys]
        return {
            "kind": self.kind,
            "keys": keys,
            "factor": self.factor.to_dict(),
            "optional": self.optional,
            "branching": self.branching,
            "levels": self.levels,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> TreeCounts:
        keys = tuple(key_from_dict(key) for key in record["keys"])
        return cls(
            keys,
            factor_from_dict(record["factor"]),
            record["optional"],
            record["branching"],
            record["levels"],
        )


def tree_over(
    keys: tuple[Key, ...], factor: Factor, *, optional: bool, leaves: int, norm: int
) -> TreeCounts:
    """The tree whose prefix counts are least noisy, of those that cut the grid into at least
    `leaves` leaves (all its cells where it has fewer).

    `norm` as for `tree_shape`. Grids of more than 2**16 cells are never cut finer than that.
    """
    cells = HistogramPlan(keys, factor).cells
    # the widest with at least so many
    width = max((cells - 1) // max(min(leaves, MOST_LEAVES) - 1, 1), 1)
    while -(-cells // width) > MOST_LEAVES:
        width += 1
    return TreeCounts(keys, factor, optional, *tree_shape(-(-cells // width), norm))


def tree_shape(leaves: int, norm: int) -> tuple[int, int]:
    """(branching, levels) of the tree over at least `leaves` leaves with the least average noise
    variance of a prefix count.

    `norm` is 2 for Gaussian noise, whose variance grows with the number h of levels, and 1 for pure
    noise, where it grows with h². A public rule: it reads nothing but the two numbers. Of trees
    within 5 % of the least variance the one with fewest leaves is taken.
    """
    shapes: list[tuple[float, int, int, int]] = []
    for levels in range(1, 18):
        branching = max(_root_up(leaves, levels), 2)
        if levels > 1 and (branching < LEAST_BRANCHING or branching ** (levels - 1) >= leaves):
            break
        noise = mean_prefix_variance(branching, levels) * levels ** (1 if norm == 2 else 2)
        shapes.append((noise, branching**levels, branching, levels))
    least = min(shapes)[0]
    _, _, branching, levels = min(
        (shape for shape in shapes if shape[0] <= NEARLY_LEAST * least), key=lambda shape: shape[1]
    )
    return branching, levels


def mean_prefix_variance(branching: int, levels: int) -> float:
    """Var(prefix count), averaged over all prefixes, after least squares with a known total, for
    noise of variance 1 on every node.

    Σ over levels of V·mean(a + f² − (a + f)²/b), about V·(b − 1)/6, with V = 1 at the leaves and
    1/(1 + 1/(bV)) one level up (docs/theory/trees.md).
    """
    node, total, leaves = 1.0, 0.0, 1  # leaves of one node of the level
    for _ in range(levels):
        part, whole = _mean_square(leaves), _mean_square(branching * leaves)
        total += node * ((branching - 1) / 2 + part - branching * whole)
        node, leaves = 1 / (1 + 1 / (branching * node)), leaves * branching
    return total


def _mean_square(count: int) -> float:
    """The mean of (j/count)² over j = 0 … count − 1."""
    return (1 - 1 / count) * (2 - 1 / count) / 6


def _root_up(number: int, degree: int) -> int:
    """The least whole number whose power of `degree` is at least `number`."""
    root: int = max(round(number ** (1 / degree)) - 1, 1)
    while root**degree < number:
        root += 1
    return root
