"""The file engine against memory, memory against a plain reading, neighbours on files;
and mutants that must be noticed.

`benchmarks/engine_fuzz.py` runs the same for hours.
"""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest

import engine_fuzz as fuzz
from discreet.specs.hidden_runs import HiddenRuns
from discreet.specs.registry import PROVEN_QUERIES
from discreet.trusted.engines import arrow_cells, batches, kernels
from discreet.trusted.extensions import csv_files
from discreet.trusted.scale import parquet_files

# of each relation: the mutant that is noticed least often, text, needs about 12 tables
TABLES = 12
# a mutant moves a statistic too far in the first or second table
MOVED_TABLES = 4


@functools.cache
def questions(neighbors):
    queries, failed = fuzz.questions(neighbors)
    assert not failed
    return tuple(queries)


@pytest.fixture(params=fuzz.RELATIONS, ids=str)
def relation(request):
    return request.param, questions(request.param)


@pytest.mark.slow
def test_every_kind_of_query_is_asked():
    kinds = {type(query) for neighbors in fuzz.RELATIONS for query in questions(neighbors)}
    # hidden runs hand the rows on; what they ask of them is among the others
    assert kinds == set(PROVEN_QUERIES) - {HiddenRuns}


@pytest.mark.slow
def test_files_memory_and_the_plain_reading_agree(relation, tmp_path):
    neighbors, queries = relation
    choose = random.Random(f"compare {neighbors}")
    done, wrong = 0, []
    for _ in range(TABLES):
        number, found = fuzz.compare(choose, str(tmp_path / "data.parquet"), neighbors, queries)
        done, wrong = done + number, wrong + found
    assert not wrong, wrong[:3]
    assert done > 100 * TABLES


@pytest.mark.slow
def test_no_neighbour_moves_a_statistic_of_a_file_too_far(relation, tmp_path):
    neighbors, queries = relation
    choose = random.Random(f"neighbours {neighbors}")
    done, worst = 0, 0.0
    for _ in range(MOVED_TABLES):
        number, moved, wrong = fuzz.neighbours(
            choose, str(tmp_path / "data.parquet"), neighbors, queries
        )
        assert not wrong, wrong[:3]
        done, worst = done + number, max(worst, moved)
    assert done > 20 * MOVED_TABLES
    assert 0.9 < worst <= 1  # the bound is met, so that half of it would be exceeded


# ── mutants ───────────────────────────────────────────────────────────────────────────────────────


def by_the_statistics(monkeypatch):
    """What an optimiser did: where some value lies above the range, a comparison is decided by
    least and greatest values, and NaN is above too.
    """
    read = arrow_cells.cells_from_arrow

    def mutant(column):
        cells = read(column)
        if (
            cells.kind != "number"
            or cells.values.dtype.kind != "f"
            or not (cells.values > 100).any()
        ):
            return cells
        return type(cells)(
            "number",
            np.where(np.isnan(cells.values), np.inf, cells.values),
            cells.missing,
            cells.length,
        )

    monkeypatch.setattr(arrow_cells, "cells_from_arrow", mutant)


def without_a_clip(monkeypatch):
    def mutant(numbers, column, grid):
        with np.errstate(all="ignore"):
            return np.clip(
                np.nan_to_num(np.floor((numbers - grid.center) * grid.per_unit + 0.5)),
                -(2**30),
                2**30,
            ).astype(np.int32)

    monkeypatch.setattr(kernels, "clamp_and_encode", mutant)


def without_the_last_row(monkeypatch):
    part = batches.BatchEngine._batch
    monkeypatch.setattr(
        batches.BatchEngine,
        "_batch",
        lambda self, columns, rows: (
            part(
                self, {name: array.slice(0, rows - 1) for name, array in columns.items()}, rows - 1
            )
            if rows > 5
            else part(self, columns, rows)
        ),
    )


def one_unreadable_cell_spoils_a_batch(monkeypatch):
    numbers = arrow_cells.ArrowTexts.numbers
    monkeypatch.setattr(
        arrow_cells.ArrowTexts,
        "numbers",
        lambda self: (
            np.full(len(found), np.nan) if np.isnan(found := numbers(self)).any() else found
        ),
    )


def ids_of_a_batch(monkeypatch):
    """Units are bounded batch by batch, not together."""
    monkeypatch.setattr(
        batches.BatchEngine,
        "_unit_batches",
        lambda self, unit, names, tasks, folder: self._row_batches(tasks),
    )


def skipped_row_groups(monkeypatch):
    """A row group whose greatest value is below the middle of the range is left out."""
    read = parquet_files.ParquetSource._batches

    def mutant(self, names, groups, rows):
        for columns, count in read(self, names, groups, rows):
            floats = [array for array in columns.values() if str(array.type) == "double"]
            if (
                not floats
                or not count
                or np.nanmax(
                    [*(np.nanmax(np.asarray(array, dtype=float), initial=-1) for array in floats)]
                )
                > 40
            ):
                yield columns, count

    monkeypatch.setattr(parquet_files.ParquetSource, "_batches", mutant)


COMPARED = {
    "statistics": by_the_statistics,
    "clip": without_a_clip,
    "last row": without_the_last_row,
    "text": one_unreadable_cell_spoils_a_batch,
    "units": ids_of_a_batch,
    "pruning": skipped_row_groups,
}
MOVED = {
    "statistics": by_the_statistics,
    "clip": without_a_clip,
    "units": ids_of_a_batch,
    "pruning": skipped_row_groups,
}


def memory_is_right(monkeypatch):
    """The oracle of a mutant reads as it should: arrays, cell by cell."""
    frame = fuzz.memory_engine_from_frame
    assert frame is not None
    monkeypatch.setattr(
        fuzz,
        "memory_engine_from_frame",
        lambda table, schema, neighbors: (
            fuzz.memory_engine_from_arrays(
                {
                    name: [fuzz.plain_cell(cell) for cell in table.column(name).to_pylist()]
                    for name in table.column_names
                },
                schema,
                neighbors,
            )
            if hasattr(table, "column_names")
            else frame(table, schema, neighbors)
        ),
    )


def noticed(found):
    """Whether a comparison finds something; one that fails does."""
    try:
        return bool(found())
    except Exception:
        return True


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARED)
def test_a_mutant_differs_from_the_oracle(name, tmp_path, monkeypatch):
    if name != "clip":  # its oracle is the plain reading
        memory_is_right(monkeypatch)
    neighbors = fuzz.RELATIONS[3 if name == "units" else 1]
    queries = questions(neighbors)
    COMPARED[name](monkeypatch)
    choose = random.Random(3)  # within four tables each
    assert any(
        noticed(lambda: fuzz.compare(choose, str(tmp_path / "data.parquet"), neighbors, queries)[1])
        for _ in range(40)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", MOVED)
def test_a_mutant_moves_further_than_its_sensitivity(name, tmp_path, monkeypatch):
    neighbors = fuzz.RELATIONS[3 if name == "units" else 1]
    queries = questions(neighbors)
    MOVED[name](monkeypatch)
    choose = random.Random(3)  # in the first table each
    assert any(
        noticed(
            lambda: fuzz.neighbours(choose, str(tmp_path / "data.parquet"), neighbors, queries)[2]
        )
        for _ in range(60)
    )


def test_csv_without_its_rule_for_quotes_is_noticed(tmp_path, monkeypatch):
    """A mutant of the CSV reader: every quote opens."""
    from csv_reference import reference_table
    from test_csv_files import random_content, read_table

    monkeypatch.setattr(
        csv_files,
        "_stretches_in_turn",
        lambda block, quotes, separates: csv_files.Quoted(
            quotes[0::2],
            np.append(quotes[1::2], len(block))[: len(quotes[0::2])],
            np.ones(len(quotes[0::2]), dtype=bool),
        ),
    )
    choose = random.Random(3)
    path, different = tmp_path / "data.csv", 0
    for _ in range(200):
        content = random_content(choose, 40)
        path.write_bytes(content)
        try:
            different += read_table(path, 1 << 20) != reference_table(content)
        except ValueError:
            different += 1
    assert different
