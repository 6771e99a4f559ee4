"""A source that changes between two passes is noticed, whatever reads it: before the debit where it
is seen from outside, else in the pass that reads it; and data sets over one path share nothing.
"""

from __future__ import annotations

import os
import sqlite3
import threading

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import ReleaseFailed, SourceChanged
from discreet.testing import seeded_session

SCHEMA = {"x": dp.Real(0, 100), "g": dp.Integer(0, 9)}
ROWS = 60


def table(rows=ROWS, seed=1, high=100.0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "x": rng.uniform(0, high, rows),
            "g": rng.integers(0, 10, rows),
            "id": np.arange(rows) // 3,
        }
    )


def write(path, given):
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(given, path)
    else:
        pq.write_table(given, path)


class Files:
    """One file, or several below a folder, in a format."""

    def __init__(self, folder, ending, given):
        self.paths = [folder / f"{name}.{ending}" for name in ("a", "b")]
        for place, path in enumerate(self.paths):
            write(path, table(seed=place))
        read = {"csv": dp.read_csv, "parquet": dp.read_parquet}[ending]
        where = {"file": self.paths[0], "folder": folder, "glob": f"{folder}/?.{ending}"}[given]
        self.open = lambda **more: read(where, schema=SCHEMA, **more)

    def replace(self):
        other = self.paths[0].with_name(".other" + self.paths[0].suffix)
        write(other, table(seed=9))
        os.replace(other, self.paths[0])

    def append(self):
        write(self.paths[0], table(ROWS + 1, seed=0))

    def touch(self):
        facts = os.stat(self.paths[0])
        os.utime(self.paths[0], ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))


class Stream:
    """A program that gives other rows in its next pass."""

    def __init__(self, folder, *_):
        self.rows = table()
        self.open = lambda **more: dp.from_batches(
            lambda columns: self.rows.select(columns).to_reader(), schema=SCHEMA, **more
        )

    def replace(self):
        self.rows = table(seed=9)

    def append(self):
        self.rows = pa.concat_tables([self.rows, self.rows.slice(0, 1)])


class Base(Stream):
    """A table of SQLite."""

    def __init__(self, folder, *_):
        self.path, uri = folder / "rows.db", f"sqlite:///{folder}/rows.db"
        self.insert(table(), "CREATE TABLE rows (x REAL, g INTEGER, id INTEGER)")
        self.open = lambda **more: dp.from_database(uri, "rows", schema=SCHEMA, **more)

    def insert(self, rows, before):
        with sqlite3.connect(self.path) as base:
            base.execute(before)
            held = zip(*rows.to_pydict().values(), strict=True)
            base.executemany("INSERT INTO rows VALUES (?, ?, ?)", held)

    def replace(self):
        self.insert(table(seed=9), "DELETE FROM rows")

    def append(self):
        self.insert(table(1), "SELECT 1")


KINDS = {
    f"{ending} {given}": (Files, ending, given)
    for ending in ("parquet", "csv")
    for given in ("file", "folder", "glob")
} | {"stream": (Stream,), "database": (Base,)}
RELATIONS = (dp.Replace(), dp.Replace(unit="id", max_rows=2))


def source_of(kind, folder):
    made, *given = KINDS[kind]
    return made(folder, *given)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", ["replace", "append", "touch"])
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_a_source_that_changes_between_passes_is_noticed(kind, change, neighbors, tmp_path):
    source = source_of(kind, tmp_path)
    if not hasattr(source, change):
        assert change == "touch"  # nothing but rows is seen of streams and databases
        return
    session = seeded_session(source.open(neighbors=neighbors), dp.GDP(9), seed=1)
    dp.mean(session, "x", spend=dp.GDP(1))
    spent = session.ledger.spent()
    getattr(source, change)()
    if isinstance(source, Files):
        with pytest.raises(SourceChanged):
            dp.mean(session, "g", spend=dp.GDP(1))
        assert session.ledger.spent() == spent
    elif neighbors.unit is None:
        with pytest.raises(ReleaseFailed):
            dp.mean(session, "x", spend=dp.GDP(1))
        assert session.ledger.spent() != spent
    else:  # rows that count were kept: nothing is read again
        source_before = source_of(kind, _folder(tmp_path))
        again = seeded_session(source_before.open(neighbors=neighbors), dp.GDP(9), seed=1)
        dp.mean(again, "x", spend=dp.GDP(1))
        kept, fresh = (dp.mean(one, "x", spend=dp.GDP(1)) for one in (session, again))
        assert kept.release.integers == fresh.release.integers


def _folder(path):
    (path / "before").mkdir()
    return path / "before"


def test_data_sets_over_one_path_share_nothing(tmp_path):
    """Other ranges, other units and other limits, in threads side by side: each releases what it
    does alone.
    """
    rows = table(600)
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=100)

    def opened(place):
        data = dp.read_parquet(
            tmp_path / "rows.parquet",
            schema={"x": dp.Real(0, 100 - 10 * place), "g": dp.Integer(0, 9)},
            neighbors=dp.AddRemove(unit="id", max_rows=1 + place),
            memory_limit="80MB",
            cache=tmp_path if place % 2 else "temporary",
        )
        return seeded_session(data, dp.GDP(50), seed=place)

    def asked(session):
        one = [dp.mean(session, "x", spend=dp.GDP(1)).release for _ in range(2)]
        return [
            release.integers
            for release in [*one, *dp.ols(session, "x ~ g", spend=dp.GDP(1)).releases]
        ]

    alone, found = [asked(opened(place)) for place in range(2)], {}
    sessions = [opened(place) for place in range(2)]
    threads = [
        threading.Thread(target=lambda place=place: found.update({place: asked(sessions[place])}))
        for place in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[place] for place in range(2)] == alone
    assert os.listdir(tmp_path) == ["rows.parquet"]
