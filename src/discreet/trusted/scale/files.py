"""Parquet and CSV files as a source of batches.

A file is what it was when it was declared, or it is refused: its size, its times, its place on the
disk, its header or footer and its first and last bytes (by a keyed digest that nobody sees) are
looked at before and after every pass, and so is which files a folder or a pattern finds. A file
that cannot be read (a broken footer or page) gives one fixed error without contents.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from discreet.errors import DataShapeRefused, data
from discreet.neighbors import Neighbors
from discreet.schema import Schema
from discreet.trusted.engines.arrow_cells import type_name
from discreet.trusted.engines.batches import Task
from discreet.trusted.engines.engine import needed_columns, require_columns
from discreet.trusted.scale.listing import SIDE_BY_SIDE, listed_files, small_together
from discreet.trusted.scale.parquet_files import ParquetSource
from discreet.trusted.scale.progress import About

CSV_BLOCK = 1 << 23  # bytes of a CSV file that one task reads
READ_ENDS = 1 << 16  # bytes at the beginning and the end of a file that are looked at again


class OneFile(Protocol):
    """One file: the names of its columns, their Arrow types, and its rows in batches."""

    columns: list[str]
    types: dict[str, Any]

    def tasks(self, names: Sequence[str], rows: int) -> Iterator[Task]:
        """What can be done side by side: each task gives batches of some columns."""
        ...


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is remembered of a file, to notice that it changed; the key of its digest is forgotten
    with the engine, and neither is shown.
    """

    facts: tuple[int, ...]
    digest: bytes


class FileSource:
    """One or more Parquet or CSV files with the same columns."""

    def __init__(
        self,
        given: Sequence[str],
        kind: str,
        schema: Schema,
        neighbors: Neighbors,
        dialect: Any,
    ) -> None:
        self.kind, self._dialect, self._given = kind, dialect, given
        self._schema, self._neighbors = schema, neighbors
        self._key = secrets.token_bytes(32)
        self._paths = self._found()
        for path in self._paths:
            if not os.path.isfile(path):
                raise data.no_file(os.path.basename(path))
        self._files, self._seen = self._opened()
        found = {fingerprint.facts[3:] for fingerprint in self._seen}  # places on the disk
        if len(found) != len(self._seen):
            raise data.file_twice()
        self.columns, self.types = self._files[0].columns, self._files[0].types
        self.size = sum(fingerprint.facts[0] for fingerprint in self._seen)
        self._check_types()

    @contextlib.contextmanager
    def reading(self, names: Sequence[str], rows: int) -> Iterator[Iterator[Task]]:
        """One pass; a file that is cut short raises by itself."""
        tasks = (
            self._files[0].tasks(names, rows)
            if len(self._files) == 1
            else small_together(self._files, self.types, names, rows)
        )
        # CSV is cut as it is read
        yield iter(list(tasks)) if self.kind == "parquet" else About(tasks, self._blocks())

    def _blocks(self) -> int:
        """About how many tasks there are."""
        blocks = sum(-(-fingerprint.facts[0] // CSV_BLOCK) for fingerprint in self._seen)
        return blocks if len(self._files) == 1 else -(-blocks // SIDE_BY_SIDE)

    def unchanged(self) -> bool:
        """Whether the same files are found, each as it was declared."""
        try:
            return (
                self._found() == self._paths
                and tuple(map(self._fingerprint, self._paths)) == self._seen
            )
        except (OSError, DataShapeRefused):
            return False

    def describe(self) -> dict[str, Any]:
        """Public facts only."""
        return {
            "kind": self.kind,
            "source": [os.path.basename(path) for path in self._given],
            "columns": sorted(set(self.columns)),
        } | ({"dialect": self._dialect.to_dict()} if self._dialect and self._dialect.name() else {})

    def data_id(self) -> str:
        """Format, dialect and absolute paths, or the folder or pattern that finds them."""
        written = self._dialect.name() if self._dialect else ""
        return f"{self.kind}{written}:" + "|".join(self._given)

    def _found(self) -> tuple[str, ...]:
        """The files that are named; a folder or a pattern is looked up again."""
        with contextlib.suppress(OSError):  # nobody may list a folder, or one leads to itself
            return tuple(listed_files(self._given, self.kind))
        raise data.unreadable(self.kind)

    def _opened(self) -> tuple[tuple[OneFile, ...], tuple[Fingerprint, ...]]:
        """The files, and what is remembered of each:
        taken before it is opened and compared after.
        """
        with contextlib.suppress(Exception):  # raised below: its own text may quote the data
            seen = tuple(map(self._fingerprint, self._paths))
            files = tuple(map(self._file, self._paths))
            if tuple(map(self._fingerprint, self._paths)) == seen:
                return files, seen
        raise data.unreadable(self.kind)

    def _file(self, path: str) -> OneFile:
        if self.kind == "csv":
            from discreet.trusted.extensions.csv_files import CsvSource

            return CsvSource(path, self._dialect, self._schema, self._neighbors.unit)
        return ParquetSource(path)

    def _fingerprint(self, path: str) -> Fingerprint:
        with open(path, "rb", buffering=0) as file:
            facts = os.fstat(file.fileno())
            digest = hashlib.blake2b(file.read(READ_ENDS), key=self._key)
            if facts.st_size > READ_ENDS:
                file.seek(facts.st_size - READ_ENDS)
                digest.update(file.read(READ_ENDS))
        return Fingerprint(
            (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_dev),
            digest.digest(),
        )

    def _check_types(self) -> None:
        """The needed columns have the same types in all files; files that are alike in all columns
        are looked at once.
        """
        alike = {(tuple(self.columns), tuple(self.types.values()))}
        needed = needed_columns(self._schema, self._neighbors)
        for file in self._files[1:]:
            layout = (tuple(file.columns), tuple(file.types.values()))
            if layout in alike:
                continue
            require_columns(
                self._schema, self._neighbors, file.columns, header_line=self.kind == "csv"
            )
            for name in needed:
                kinds = {type_name(types[name]) for types in (self.types, file.types)}
                if name in self.types and len(kinds) > 1:
                    raise data.types_differ(name)
            alike.add(layout)
