"""How many rows hold each key that nobody declared, over any engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.specs.queries.open_keys import OpenPlan
from discreet.specs.statistics import KeyCounts, key_counts
from discreet.trusted.engines.engine import Engine
from discreet.trusted.engines.memory import MemoryEngine

# of a batch of which keys are counted: the fewer batches, the fewer times a key is met
KEYED_ROWS = 1 << 20


def key_counts_of(engine: Engine, plan: OpenPlan) -> KeyCounts:
    """The rows of each key."""
    states = engine.fold(
        plan.columns,
        KeySums,
        lambda sums, _, batch: sums.add(batch_counts(batch, plan)),
        batch_rows=KEYED_ROWS,
    )
    whole = states[0]
    for state in states[1:]:
        whole.join(state)
    return whole.total()


class KeySums:
    """Counts of keys added up, batch after batch; those of one batch alone stay as they are."""

    def __init__(self) -> None:
        self._only: KeyCounts | None = None
        self._counts: dict[str, int] = {}

    def add(self, found: KeyCounts) -> None:
        """Adds the counts of a batch."""
        if self._only is None and not self._counts:
            self._only = found
        else:
            self._merge(zip(found.names, found.counts.tolist(), strict=True))

    def join(self, other: KeySums) -> None:
        """Adds the counts of other batches."""
        if other._only is not None:
            self.add(other._only)
        else:
            self._merge(other._counts.items())

    def _merge(self, counts: Iterable[tuple[str, int]]) -> None:
        if self._only is not None:
            only, self._only = self._only, None
            self._counts = dict(zip(only.names, only.counts.tolist(), strict=True))
        for name, count in counts:
            self._counts[name] = self._counts.get(name, 0) + count

    def total(self) -> KeyCounts:
        """All counts, in the order of the keys."""
        if self._only is not None:
            return self._only
        return key_counts(list(self._counts), np.array(list(self._counts.values()), dtype=np.int64))


def batch_counts(rows: MemoryEngine, plan: OpenPlan) -> KeyCounts:
    """The counts of rows in memory."""
    with rows.lock:
        opened = [rows.open_labels(name) for name in plan.open]
        columns = [(labels, len(texts)) for labels, texts in opened]
        if plan.keys:
            cells = rows.cell_index(plan.keys)
            if plan.cells > 1:
                columns.append((cells, plan.cells))
            else:
                columns[0] = (np.where(cells < 0, np.int64(-1), columns[0][0]), columns[0][1])
    texts = [texts for _, texts in opened]
    groups, counts = grouped(columns)
    if plan.plain:
        return key_counts(texts[0], counts)
    cells_held = groups[len(texts)].tolist() if plan.cells > 1 else [0] * len(counts)
    held = [[words[label] for label in group] for words, group in zip(texts, groups, strict=False)]
    return key_counts(
        [plan.name(words, cell) for *words, cell in zip(*held, cells_held, strict=True)], counts
    )


def grouped(
    columns: Sequence[tuple[npt.NDArray[Any], int]],
) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.int64]]:
    """The combinations of several label columns that rows hold, as one array of labels a column,
    and how many rows hold each.

    A column is its labels and their number; a row with a label −1 is in no combination.
    """
    labels, size = columns[0]
    groups, held = labels.astype(np.int64, copy=False), [np.arange(size, dtype=np.int64)]
    for labels, size in columns[1:]:
        # fewer than 2**31 groups and labels each
        pairs = np.where((groups < 0) | (labels < 0), np.int64(-1), groups * size + labels)
        found, groups = np.unique(pairs, return_inverse=True)
        if found.size and found[0] < 0:
            found, groups = found[1:], groups - 1
        held = [one[found // size] for one in held] + [found % size]
    grouped_rows = groups[groups >= 0] if groups.size and groups.min() < 0 else groups
    return held, np.bincount(grouped_rows, minlength=len(held[0])).astype(np.int64)
