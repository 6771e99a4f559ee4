"""Parquet, read by Arrow: row groups in batches,
by the types of the file and without its statistics.

Nothing that the file says about its cells (least and greatest values, counts of nulls,
dictionaries, bloom filters, sort order) decides what is read: no filter is ever handed down, every
row of every row group is decoded, and cells are looked at afterwards, one by one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow.parquet as parquet

from discreet.trusted.engines.arrow_cells import reading_of

Batch = tuple[dict[str, Any], int]  # Arrow arrays by column name, and the number of rows
Task = Callable[[], Iterator[Batch]]

LISTED_ENCODINGS = {"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"}
WHOLE = 2  # times a batch's rows: row groups up to this size are read at once
BUFFER = 1 << 18  # bytes of a column that are read from the file at a time
TASK_ROWS = 1 << 19  # rows of the row groups that one task reads, or those of one row group


class ParquetSource:
    """One Parquet file: its columns' types, and its rows in batches."""

    def __init__(self, path: str) -> None:
        with parquet.ParquetFile(path) as file:
            self._path, self._metadata = path, file.metadata
            fields = file.schema_arrow
        self.columns: list[str] = list(fields.names)
        self.types: dict[str, Any] = dict(zip(fields.names, fields.types, strict=True))
        self._groups = [
            self._metadata.row_group(place).num_rows
            for place in range(self._metadata.num_row_groups)
        ]
        self._listed: dict[str, bool] = {}  # by column, found out when it is first read

    def _is_listed(self, name: str) -> bool:
        """Whether a column is text that may be read as places in a dictionary,
        which is quicker and gives the same cells.

        Arrow cannot do so for all encodings, and a writer may choose an encoding by the cells.
        """
        if reading_of(self.types[name]) != "text":
            return False
        leaves = self._metadata.schema
        places = [place for place in range(len(leaves)) if leaves.column(place).path == name]
        chunks = (
            self._metadata.row_group(group).column(place)
            for place in places
            for group in range(len(self._groups))
        )
        return all(set(chunk.encodings) <= LISTED_ENCODINGS for chunk in chunks)

    def tasks(self, names: Sequence[str], rows: int) -> Iterator[Task]:
        """What can be done side by side: each task gives batches of at most `rows` rows of some
        columns.
        """
        read = [name for name in names if reading_of(self.types[name]) != "nothing"]
        self._listed |= {name: self._is_listed(name) for name in read if name not in self._listed}
        for groups in self._few(list(range(len(self._groups))), TASK_ROWS):
            yield functools.partial(self._batches, read, groups, rows)

    def _batches(self, names: list[str], groups: list[int], rows: int) -> Iterator[Batch]:
        if not names:
            left = sum(self._groups[place] for place in groups)
            while left > 0:
                yield {}, min(rows, left)
                left -= rows
            return
        texts = [name for name in names if self._listed[name]]
        with parquet.ParquetFile(
            self._path,
            metadata=self._metadata,
            read_dictionary=texts,
            pre_buffer=False,
            buffer_size=BUFFER,
        ) as file:
            for few in self._few(groups, rows):
                # read at once: batches would be cut at pages
                if sum(self._groups[place] for place in few) <= WHOLE * rows:
                    table = file.read_row_groups(few, columns=names, use_threads=False)
                    yield {name: table.column(name) for name in names}, table.num_rows
                    continue
                for batch in file.iter_batches(
                    batch_size=rows, row_groups=few, columns=names, use_threads=False
                ):
                    yield {name: batch.column(name) for name in names}, batch.num_rows

    def _few(self, groups: list[int], rows: int) -> Iterator[list[int]]:
        """Row groups one by one, small ones together up to about `rows` rows."""
        few: list[int] = []
        held = 0
        for place in groups:
            if few and held + self._groups[place] > rows:
                yield few
                few, held = [], 0
            few.append(place)
            held += self._groups[place]
        if few:
            yield few
