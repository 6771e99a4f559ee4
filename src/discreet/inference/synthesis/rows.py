"""Rows drawn from a model: node after node of its tree, new columns given those that are known.

*Rounded* rows follow the model as closely as whole rows can: in every node each cell gets its
expected number of rows rounded down, and what is left is drawn systematically; rows that share what
is known are shuffled, so that nothing but the model joins columns. *Drawn* rows are independent.
A number is uniform in its bin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream
from discreet.inference.synthesis.domain import Cut, Domain
from discreet.inference.synthesis.model import Model
from discreet.inference.synthesis.trees import Clique, cell_count
from discreet.schema import Boolean, Category, Date, Integer

Codes = npt.NDArray[np.int64]


def drawn_codes(model: Model, rows: int, stream: Stream, *, rounded: bool) -> Codes:
    """Cell numbers of `rows` rows, shape (rows, columns)."""
    tree = model.tree
    codes = np.full((rows, len(tree.sizes)), -1, dtype=np.int64)
    for turn, place in enumerate((0, *(edge[1] for edge in tree.edges))):
        node = tree.nodes[place]
        known = tree.shared(tree.edges[turn - 1]) if turn else ()
        new = tuple(column for column in node if column not in known)
        given = _cells_of(codes, known, tree.sizes)
        law = _conditional(model.beliefs[place], node, known, new, tree.sizes)
        draw = _rounded if rounded else _independent
        cells = draw(law, given, stream, f"node {turn}")
        shape = [tree.sizes[column] for column in new]
        for column, one in zip(new, np.unravel_index(cells, shape), strict=True):
            codes[:, column] = one
    return codes


def _cells_of(codes: Codes, columns: Clique, sizes: tuple[int, ...]) -> Codes:
    """The number of each row's cell over some columns."""
    found = np.zeros(len(codes), dtype=np.int64)
    for column in columns:
        found = found * sizes[column] + codes[:, column]
    return found


def _conditional(
    belief: Array, node: Clique, known: Clique, new: Clique, sizes: tuple[int, ...]
) -> Array:
    """Probabilities of the new columns' cells given the known ones', shape (known, new)."""
    order = [node.index(column) for column in (*known, *new)]
    table = np.transpose(belief, order).reshape(cell_count(sizes, known), -1)
    whole = table.sum(axis=1, keepdims=True)
    even = np.full_like(table, 1 / table.shape[1])
    return np.asarray(np.divide(table, whole, out=even, where=whole > 0))


def _independent(law: Array, given: Codes, stream: Stream, part: str) -> Codes:
    """A cell for each row by the inverse of its law's distribution function."""
    upto = np.cumsum(law, axis=1)
    upto[:, -1] = 1.0
    groups = np.arange(len(law))[:, None]
    uniform = stream.uniforms((len(given),), part)
    found = np.searchsorted((np.minimum(upto, 1.0) + groups).ravel(), given + uniform)
    return np.asarray(np.clip(found - given * law.shape[1], 0, law.shape[1] - 1), dtype=np.int64)


def _rounded(law: Array, given: Codes, stream: Stream, part: str) -> Codes:
    """A cell for each row, cells as often as expected up to less than one row."""
    rows = np.bincount(given, minlength=len(law))
    expected = rows[:, None] * law
    counts = np.floor(expected)
    left = np.rint(rows - counts.sum(axis=1))
    upto = np.cumsum(expected - counts, axis=1)
    upto[:, -1] = left
    upto = np.minimum(upto, left[:, None])
    start = stream.uniforms((len(law), 1), f"{part}/start")
    reached = np.ceil(upto - start)
    counts += np.diff(reached, axis=1, prepend=0.0)
    cells = np.tile(np.arange(law.shape[1]), len(law))
    listed = np.repeat(cells, counts.astype(np.int64).ravel())
    found = np.empty(len(given), dtype=np.int64)
    found[np.lexsort((stream.uniforms((len(given),), f"{part}/order"), given))] = listed
    return found


def columns_of(domain: Domain, codes: Codes, stream: Stream) -> dict[str, list[Any]]:
    """Columns as the data had them: levels, True and False, numbers in their bins, dates as text,
    None for "no value".
    """
    return {
        cut.name: _values(cut, codes[:, place], stream) for place, cut in enumerate(domain.cuts)
    }


def _values(cut: Cut, codes: Codes, stream: Stream) -> list[Any]:
    held = codes < len(cut.labels)
    listed: list[Any]
    if isinstance(cut.column, Category):
        levels = [*cut.column.levels, None]
        return [levels[code] for code in codes.tolist()]
    if isinstance(cut.column, Boolean):
        return [(False, True, None)[code] for code in codes.tolist()]
    ends = np.array([cut.ends(place) for place in range(len(cut.labels))] + [(0.0, 0.0)])
    low, high = ends[np.minimum(codes, len(cut.labels))].T
    uniform = stream.uniforms((len(codes),), f"numbers of {cut.name}")
    if isinstance(cut.column, Integer):
        whole = np.minimum(np.floor(low + uniform * (high - low + 1)), high)
        listed = [int(number) for number in whole.tolist()]
        if isinstance(cut.column, Date):
            listed = [cut.column.text(number) for number in listed]
    else:
        listed = (low + uniform * (high - low)).tolist()
    return [one if has else None for one, has in zip(listed, held.tolist(), strict=True)]
