"""Parquet, read by Arrow: row groups in batches, by the types of the file and without its statistics.

Nothing that the file says about its cells (least and greatest values, counts of nulls, dictionaries, bloom filters, sort order) decides what is
read: no filter is ever handed down, every row of every row group is decoded, and cells are looked at afterwards, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow.parquet as parquet

from discreet.engines.arrow_cells import reading_of

Batch = tuple[dict[str, Any], int]  # Arrow arrays by column name, and the number of rows
Task = Callable[[], Iterator[Batch]]

TASK_ROWS = 1 << 19  # rows of the row groups that one task reads, or those of one row group


class ParquetSource:
    """One Parquet file: its columns' types, and its rows in batches."""

    def __init__(self, path: str) -> None:
        with parquet.ParquetFile(path) as file:
            self._path, self._metadata = path, file.metadata
            fields = file.schema_arrow
        self.columns: list[str] = list(fields.names)
        self.types: dict[str, Any] = dict(zip(fields.names, fields.types, strict=True))
        self._groups = [self._metadata.row_group(place).num_rows for place in range(self._metadata.num_row_groups)]
        self.size = sum(self._groups)

    def tasks(self, names: Sequence[str], rows: int) -> Iterator[Task]:
        """What can be done side by side: each task gives batches of at most `rows` rows of some columns."""
        read = [name for name in names if reading_of(self.types[name]) != "nothing"]
        for groups in self._tasks():
            yield lambda groups=groups: self._batches(read, groups, rows)

    def _tasks(self) -> Iterator[list[int]]:
        groups: list[int] = []
        held = 0
        for place, rows in enumerate(self._groups):
            if groups and held + rows > TASK_ROWS:
                yield groups
                groups, held = [], 0
            groups.append(place)
            held += rows
        if groups:
            yield groups

    def _batches(self, names: list[str], groups: list[int], rows: int) -> Iterator[Batch]:
        if not names:
            left = sum(self._groups[place] for place in groups)
            while left > 0:
                yield {}, min(rows, left)
                left -= rows
            return
        texts = [name for name in names if reading_of(self.types[name]) == "text"]
        with parquet.ParquetFile(self._path, metadata=self._metadata, read_dictionary=texts, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=rows, row_groups=groups, columns=names, use_threads=False):
                yield {name: batch.column(name) for name in names}, batch.num_rows
