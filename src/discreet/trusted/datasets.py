"""Ways to declare data: files (Arrow), frames (narwhals) and arrays.

Only names, types and lengths are looked at here; no cell is read before a debit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet import plain
from discreet.neighbors import Neighbors, require_neighbors
from discreet.schema import Column, Schema
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays, memory_engine_from_frame
from discreet.trusted.session import Dataset

Paths = str | Path | Sequence[str | Path]


def read_parquet(
    path: Paths, *, schema: Mapping[str, Column], neighbors: Neighbors | None = None
) -> Dataset:
    """A data set in one or several Parquet files; it is read in batches and never loaded whole."""
    return _read(path, "parquet", schema, neighbors)


def read_csv(
    path: Paths, *, schema: Mapping[str, Column], neighbors: Neighbors | None = None
) -> Dataset:
    """A data set in one or several CSV files with a header;
    every cell is read as text first, so no cell can fail.
    """
    return _read(path, "csv", schema, neighbors)


def from_frame(
    frame: Any, *, schema: Mapping[str, Column], neighbors: Neighbors | None = None
) -> Dataset:
    """A data set in a pandas, polars or Arrow table."""
    declared, relation = Schema(schema), require_neighbors(neighbors)
    return Dataset(memory_engine_from_frame(frame, declared, relation), declared, relation)


def from_arrays(
    arrays: Mapping[str, Any], *, schema: Mapping[str, Column], neighbors: Neighbors | None = None
) -> Dataset:
    """A data set in a mapping from column names to arrays or lists of one length."""
    declared, relation = Schema(schema), require_neighbors(neighbors)
    return Dataset(memory_engine_from_arrays(arrays, declared, relation), declared, relation)


def _paths(path: Paths) -> str | list[str]:
    """One path or several as plain text, each asked for once."""
    if plain.derives(type(path), str) or not hasattr(type(path), "__iter__"):
        return plain.path(path, "path")
    return [plain.path(one, "path") for one in plain.members(path, "path")]  # type: ignore[arg-type]


def _read(
    path: Paths, kind: str, schema: Mapping[str, Column], neighbors: Neighbors | None
) -> Dataset:
    declared, relation = Schema(schema), require_neighbors(neighbors)
    return Dataset(FileEngine(_paths(path), kind, declared, relation), declared, relation)
