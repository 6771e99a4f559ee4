"""Parquet and CSV files: the engine over batches, with files as their source (scale/files.py)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from discreet.errors import data
from discreet.neighbors import Neighbors
from discreet.schema import Schema
from discreet.trusted.engines.batches import BatchEngine, arrow_cells
from discreet.trusted.later import later

FORMATS = ("parquet", "csv")
_SOURCE = later("discreet.trusted.scale.files", "FileSource")


class FileEngine(BatchEngine):
    """Plans over one or more Parquet or CSV files with the same columns."""

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        format: str,
        schema: Schema,
        neighbors: Neighbors,
        *,
        dialect: Any = None,
        scale: Any = None,
    ) -> None:
        arrow_cells()
        listed = [paths] if isinstance(paths, (str, os.PathLike)) else paths
        if (
            not isinstance(listed, Sequence)
            or not listed
            or not all(isinstance(path, (str, os.PathLike)) for path in listed)
        ):
            raise data.not_paths()
        if format not in FORMATS:
            raise data.unknown_format(format)
        given = tuple(os.path.abspath(os.fspath(path)) for path in listed)
        source = _SOURCE(given, format, schema, neighbors, dialect)
        super().__init__(source, schema, neighbors, scale)
