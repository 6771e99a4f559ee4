"""Many files as one data set: folders and patterns, and small files read together."""

from __future__ import annotations

import functools
import glob
import os
from collections.abc import Iterator, Sequence
from typing import Any

from discreet.errors import data
from discreet.trusted.engines.arrow_cells import joined
from discreet.trusted.engines.batches import Batch, Task

SIDE_BY_SIDE = 16  # small files that one task reads at most


def listed_files(given: Sequence[str], kind: str) -> Iterator[str]:
    """The paths of files: those that are named, those of a folder and of the folders in it that end
    as the format does, in the order of their names, and those that a pattern finds.

    A path at which there is a file is that file, whatever marks are in its name. In folders, names
    that begin with a dot or an underscore are left out, as those who write many files expect.
    """
    for path in given:
        if os.path.isdir(path):
            found = sorted(_below(path, f".{kind}"))
        elif glob.has_magic(path) and not os.path.isfile(path):
            found = sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
        else:
            found = [path]
        if not found:
            raise data.no_file(os.path.basename(path))
        yield from found


def _below(folder: str, ending: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith((".", "_")):
                continue
            if entry.is_dir():
                yield from _below(entry.path, ending)
            elif entry.name.endswith(ending):
                yield entry.path


def small_together(
    files: Sequence[Any], types: dict[str, Any], names: Sequence[str], rows: int
) -> Iterator[Task]:
    """The tasks of all files, of which several in a row are done as one, so that a batch is not
    smaller than it must be.
    """
    held: list[Task] = []
    for file in files:
        for task in file.tasks(names, rows):
            held.append(task)
            if len(held) == SIDE_BY_SIDE:
                yield functools.partial(_batches, held, types, names, rows)
                held = []
    if held:
        yield functools.partial(_batches, held, types, names, rows)


def _batches(
    tasks: Sequence[Task], types: dict[str, Any], names: Sequence[str], rows: int
) -> Iterator[Batch]:
    held: list[Batch] = []
    count = 0
    for task in tasks:
        for batch in task():
            if held and count + batch[1] > rows:
                yield _as_one(held, types)
                held, count = [], 0
            held.append(batch)
            count += batch[1]
    if held:
        yield _as_one(held, types)


def _as_one(batches: Sequence[Batch], types: dict[str, Any]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    columns = {
        name: joined([held[name] for held, _ in batches], types[name]) for name in batches[0][0]
    }
    return columns, sum(rows for _, rows in batches)
