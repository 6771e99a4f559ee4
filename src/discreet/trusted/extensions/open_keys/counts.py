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
from discreet.trusted.extensions.open_keys.labels import is_key
from discreet.trusted.later import later

# of a batch of which keys are counted: the fewer batches, the fewer times a key is met
KEYED_ROWS = 1 << 20
KEY_BYTES = 256  # of a key beside its text, at most, as it is counted
ROW_BYTES = 256  # of a row of a batch of which all keys are different, of what a thread may hold
_RUN_OF = later("discreet.trusted.scale.key_runs", "run_of")
_STORED_KEYS = later("discreet.trusted.scale.key_runs", "StoredKeys")


def key_counts_of(engine: Engine, plan: OpenPlan) -> Any:
    """The rows of each key; of many keys on disk."""
    most = None if engine.scale is None else engine.scale.held
    listed = plan.plain and not isinstance(engine, MemoryEngine)  # whose labels are kept
    states = engine.fold(
        plan.columns,
        lambda: KeySums(engine.scale),
        lambda sums, _, batch: (
            sums.add_texts(batch, plan) if listed else sums.add(batch_counts(batch, plan))
        ),
        batch_rows=KEYED_ROWS if most is None else min(KEYED_ROWS, max(1, most // ROW_BYTES)),
    )
    return KeySums.joined(states)


class KeySums:
    """Counts of keys added up, batch after batch, on disk where they are many; those of one batch
    alone stay as they are.
    """

    def __init__(self, limits: Any = None) -> None:
        self._limits, self._bytes = limits, 0
        self._only: KeyCounts | None = None
        self._counts: dict[str, int] = {}
        self._runs: list[Any] = []
        # texts that the last batches list, in the order of the first, and how many rows hold each
        self._texts: list[str | None] = []
        self._held = np.zeros(0, dtype=np.int64)

    def add_texts(self, batch: MemoryEngine, plan: OpenPlan) -> None:
        """Adds the rows of a batch; texts that several batches in turn list alike are looked at
        once.
        """
        with batch.lock:
            cells = batch.cells(plan.open[0])
            if cells.kind != "text" or batch.kept_rows() is not None:
                self.add(batch_counts(batch, plan))
                return
            labels, texts = cells.values.labelled()
            if plan.keys:
                labels = np.where(batch.cell_index(plan.keys) < 0, -1, labels)
        labels = labels if labels.min(initial=0) >= 0 else labels[labels >= 0]
        if texts != self._texts:
            self._look()
            self._texts, self._held = texts, np.zeros(len(texts), dtype=np.int64)
        self._held += np.bincount(labels, minlength=len(texts))

    def _look(self) -> None:
        """Adds the counts of texts that are keys."""
        counts, texts, self._texts = self._held.tolist(), self._texts, []
        found = zip(texts, counts, strict=True)
        self._merge((text, count) for text, count in found if count and is_key(text))

    def add(self, found: KeyCounts) -> None:
        """Adds the counts of a batch."""
        if self._only is None and not self._counts and not self._runs:
            self._only = found
        else:
            self._merge(zip(found.names, found.counts.tolist(), strict=True))

    def _merge(self, counts: Iterable[tuple[Any, int]]) -> None:
        if self._only is not None:
            only, self._only = self._only, None
            self._merge(zip(only.names, only.counts.tolist(), strict=True))
        known = self._counts
        for name, count in counts:
            if name in known:
                known[name] += count
            else:
                known[name] = count
                self._bytes += len(name) + KEY_BYTES
        if self._limits is not None and self._bytes > self._limits.held:
            self._put()

    def _put(self) -> None:
        if self._only is not None:
            self._merge([])
        if self._counts:
            self._runs.append(_RUN_OF(self._counts, self._limits.folder))
        self._counts, self._bytes = {}, 0

    @staticmethod
    def joined(states: Sequence[KeySums]) -> Any:
        """All counts, in the order of the keys."""
        whole, *others = states
        for state in states:
            state._look()
        if any(state._runs for state in states):
            for state in states:
                state._put()
            return _STORED_KEYS([run for state in states for run in state._runs])
        for state in others:
            if state._only is not None:
                whole.add(state._only)
            else:
                whole._merge(state._counts.items())
        if whole._runs:
            return KeySums.joined([whole])
        if whole._only is not None:
            return whole._only
        counts = np.array(list(whole._counts.values()), dtype=np.int64)
        return key_counts(list(whole._counts), counts)


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
