"""Junction trees: overlapping sets of columns that hold every measured table, joined so that what
two of them share lies on the path between them.

A clique is a sorted tuple of column numbers; a table over it has one axis a column, in that order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Clique = tuple[int, ...]


def cell_count(sizes: Sequence[int], clique: Iterable[int]) -> int:
    """The number of cells of a table over some columns."""
    return math.prod(sizes[column] for column in clique)


@dataclass(frozen=True, slots=True)
class Tree:
    """`nodes` and, for each but the first, the `edges` (parent, child), parents first."""

    sizes: tuple[int, ...]
    nodes: tuple[Clique, ...]
    edges: tuple[tuple[int, int], ...]

    @property
    def cells(self) -> int:
        """The cells of all nodes: what the model's tables take."""
        return sum(cell_count(self.sizes, node) for node in self.nodes)

    def shared(self, edge: tuple[int, int]) -> Clique:
        """The columns that both ends of an edge hold."""
        first, second = (self.nodes[place] for place in edge)
        return tuple(column for column in first if column in second)

    def home(self, clique: Iterable[int]) -> int | None:
        """The smallest node that holds all of some columns; None where no node does."""
        wanted = set(clique)
        holding = [place for place, node in enumerate(self.nodes) if wanted <= set(node)]
        return min(
            holding, key=lambda place: cell_count(self.sizes, self.nodes[place]), default=None
        )


def junction_tree(sizes: Sequence[int], cliques: Iterable[Clique]) -> Tree:
    """A tree whose nodes hold every clique: columns are put out in the order of least fill, ties by
    the cells of what is made; nodes are joined by their largest shared parts.
    """
    nodes = _eliminated(sizes, cliques)
    joined, edges = [0], []
    while len(joined) < len(nodes):
        edge = max(
            (
                (first, second)
                for first in joined
                for second in range(len(nodes))
                if second not in joined
            ),
            key=lambda edge: (
                len(set(nodes[edge[0]]) & set(nodes[edge[1]])),
                -cell_count(sizes, nodes[edge[1]]),
                -edge[1],
            ),
        )
        edges.append(edge)
        joined.append(edge[1])
    return Tree(tuple(sizes), tuple(nodes), tuple(edges))


def tree_cells(sizes: Sequence[int], cliques: Iterable[Clique]) -> int:
    """The cells of all nodes of the junction tree."""
    return sum(cell_count(sizes, node) for node in _eliminated(sizes, cliques))


def _eliminated(sizes: Sequence[int], cliques: Iterable[Clique]) -> list[Clique]:
    """The maximal sets of columns that elimination by least fill puts together; neighbours are kept
    as bits of whole numbers.
    """
    near = [0] * len(sizes)
    for clique in cliques:
        for first, second in itertools.permutations(clique, 2):
            near[first] |= 1 << second
    left = set(range(len(sizes)))
    found: list[int] = []
    while left:
        column = min(left, key=lambda one: (*_cost(sizes, near, one), one))
        together = near[column] | 1 << column
        for other in _columns(near[column]):
            near[other] = (near[other] | near[column]) & ~(1 << column | 1 << other)
        left.remove(column)
        if not any(together & ~earlier == 0 for earlier in found):
            found.append(together)
    return [tuple(_columns(bits)) for bits in found]


def _cost(sizes: Sequence[int], near: list[int], column: int) -> tuple[int, int]:
    """(pairs of neighbours that are not joined yet, cells of the column with its neighbours)."""
    columns = _columns(near[column])
    missing = sum((near[column] & ~near[other]).bit_count() - 1 for other in columns)
    return missing // 2, cell_count(sizes, (*columns, column))


def _columns(bits: int) -> list[int]:
    """The numbers whose bits are set, in order."""
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found
