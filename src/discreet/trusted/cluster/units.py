"""Units whose rows are spread over tasks: which of them count, as `bounding` chooses them.

Theorem.  Rows are put together by what they hold, with the number of their copies; each task keeps
          at most max_rows of a unit, by the hash of unit, content and number of copy; then of each
          unit the least max_rows of what was kept. These rows hold what those hold that `kept_rows`
          keeps of all rows at once, and no task meets a unit whole before its rows are few.
Proof.    All copies of a unit's content come to one task, since their hash before copies sends
          them there; so their number n, and the set of hashes of copies 0 … n − 1, are those of all
          rows. The least k of a union are among the least k of its parts. Ties go by the content,
          as there, and rows that tie in it are equal in everything that is read.
Checked.  tests/trusted/cluster/test_cluster_engine.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.trusted.engines.bounding import (
    Content,
    chained,
    final_hash,
    hash_step,
    ranks,
    unit_seed,
)
from discreet.trusted.engines.memory import MemoryEngine
from discreet.trusted.extensions.cell_states import cell_states

Integers = npt.NDArray[np.int64]
COPIES = 1 << 20  # that are hashed at a time


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows of units, put together by what they hold: the first row of each group, its unit's label
    and seed, what it holds, its hash before copies, and how many copies there are.
    """

    rows: Integers
    units: Integers
    seeds: Integers
    ordered: list[npt.NDArray[Any]]
    values: Integers
    counts: Integers


def groups_of(batch: MemoryEngine, states: Sequence[str], times: Any = None) -> Groups:
    """The groups of some rows; `states` are columns of which it also counts what a cell holds, and
    `times` says for how many rows each stands.
    """
    labels, texts = batch.units()
    contents = [batch.content(name) for name in sorted(batch.schema)]
    for name in states:
        found = cell_states(batch, name)
        contents.append(Content(found, found.astype(np.int64) + 1))
    owned = np.flatnonzero(labels >= 0)
    units = labels[owned]
    seeds = np.array([unit_seed(text) for text in texts], dtype=np.int64)[units]
    ordered = [content.ordered[owned] for content in contents]
    values = chained(seeds, [content.hashed[owned] for content in contents])
    order = np.lexsort((*ordered, units))
    new = np.ones(len(order), dtype=bool)
    new[1:] = False
    for column in (units, *ordered):
        new[1:] |= column[order[1:]] != column[order[:-1]]
    begins = np.flatnonzero(new)
    each = np.ones(len(owned), dtype=np.int64) if times is None else times[owned]
    counts = np.add.reduceat(each[order], begins) if len(order) else each
    first = order[begins]
    return Groups(
        owned[first],
        units[first],
        seeds[first],
        [column[first] for column in ordered],
        values[first],
        counts,
    )


def least_copies(groups: Groups, most: int) -> tuple[Integers, Integers]:
    """The groups and the hashes of copies, at most `most` of a unit: those that come first."""
    found = [_least(group, value, most) for group, value in _hashed(groups)]
    group = np.concatenate([np.zeros(0, dtype=np.int64), *(one for one, _ in found)])
    value = np.concatenate([np.zeros(0, dtype=np.int64), *(one for _, one in found)])
    ordered = [column[group] for column in groups.ordered]
    kept = ranks(groups.units[group], value, ordered, among_copies=False) < most
    return group[kept], value[kept]


def _hashed(groups: Groups) -> Iterator[tuple[Integers, Integers]]:
    """(group, hash) of every copy, a few at a time."""
    spans = -(-groups.counts // COPIES)  # of at most COPIES copies each
    group = np.repeat(np.arange(len(spans)), spans)
    before = np.repeat(np.cumsum(spans) - spans, spans)
    start = (np.arange(len(group)) - before) * COPIES
    sizes = np.minimum(groups.counts[group] - start, COPIES)
    ends = np.cumsum(sizes)
    place = 0
    while place < len(group):
        done = int(ends[place - 1]) if place else 0
        stop = max(place + 1, int(np.searchsorted(ends, done + COPIES, side="right")))
        size = sizes[place:stop]
        here = np.repeat(group[place:stop], size)
        number = np.arange(len(here)) - np.repeat(np.cumsum(size) - size, size)
        number += np.repeat(start[place:stop], size)
        yield here, final_hash(hash_step(groups.values[here], number))
        place = stop


def _least(group: Integers, value: Integers, most: int) -> tuple[Integers, Integers]:
    """Of each group those with the least hashes."""
    kept = ranks(group, value, [], among_copies=False) < most
    return group[kept], value[kept]


def least_rows(batch: MemoryEngine, states: Sequence[str], values: Integers) -> Integers:
    """The rows that count, unit after unit, of rows with the hashes of their copies."""
    labels, _ = batch.units()
    contents = [batch.content(name).ordered for name in sorted(batch.schema)]
    contents += [cell_states(batch, name) for name in states]
    kept = np.flatnonzero(
        ranks(labels, values, contents, among_copies=False) < batch.neighbors.rows
    )
    return kept[np.argsort(labels[kept], kind="stable")]
