"""Databases: every cell has a fixed reading, no name is carried out, no password is seen."""

from __future__ import annotations

import contextlib
import datetime
import logging
import math
import pickle
import sqlite3
from decimal import Decimal
from urllib.parse import quote

import adbc_driver_postgresql.dbapi as driver
import postgresql
import pytest

import discreet as dp
from discreet.errors import MissingExtra
from discreet.testing import seeded_session
from discreet.trusted.engines.arrow_cells import cells_from_arrow
from discreet.trusted.engines.cells import numbers
from discreet.trusted.scale import databases
from discreet.trusted.scale.databases import Table

NASTY = 'a"; DROP TABLE kept; --'
RELATIONS = (dp.Replace(), dp.AddRemove(unit="id", max_rows=2))


@pytest.fixture(scope="module")
def server():
    with postgresql.server() as uri:
        yield uri


def carried_out(uri, *statements):
    with contextlib.closing(driver.connect(uri, autocommit=True)) as base, base.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def floats(table, name):
    """The numbers of a column, as an engine reads them."""
    return numbers(cells_from_arrow(table.reader([name]).read_all().column(name))).tolist()


def read(table, name):
    return table.reader([name]).read_all().column(name).to_pylist()


def same(found, expected):
    return len(found) == len(expected) and all(
        a == b or (a != a and b != b) for a, b in zip(found, expected, strict=True)
    )


NAN, INF = math.nan, math.inf
# type, cells as SQL, as numbers (None: not numbers), as they are read
POSTGRESQL = [
    ("int2", ["-7", "NULL"], [-7, NAN]),
    ("int8", ["9007199254740993", "NULL"], [float(2**53), NAN]),
    ("float4", ["1.5", "'NaN'", "'-Infinity'", "NULL"], [1.5, NAN, -INF, NAN]),
    ("float8", ["0.1", "'NaN'", "'Infinity'", "NULL"], [0.1, NAN, INF, NAN]),
    (
        "numeric",
        ["123456789.123456789", "'NaN'", "'-Infinity'", "1e300", "NULL"],
        [123456789.123456789, NAN, -1e308, 1e300, NAN],
    ),
    ("money", ["12.34", "NULL"], [12.34, NAN]),
    ("text", ["'2.5'", "''", "'é'", "'a,b'", "NULL"], [2.5, NAN, NAN, NAN, NAN]),
]
D, T = datetime.date, datetime.datetime
TIMES = [
    (
        "date",
        ["'2024-02-29'", "'infinity'", "'-infinity'", "'0044-03-15 BC'", "'20000-01-01'", "NULL"],
        [D(2024, 2, 29), D.max, D.min, D.min, D.max, None],
    ),
    (
        "timestamp",
        ["'2024-02-29 12:00:01.5'", "'infinity'", "'4713-01-01 BC'", "'294276-12-31'", "NULL"],
        [T(2024, 2, 29, 12, 0, 1, 500000), T.max, T.min, T.max, None],
    ),
]


def made(uri, name, kind, cells):
    carried_out(
        uri,
        f"DROP TABLE IF EXISTS {name}",
        f"CREATE TABLE {name} (c {kind})",
        *(f"INSERT INTO {name} VALUES ({cell})" for cell in cells),
    )
    return Table(uri, name)


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize(("kind", "cells", "expected"), POSTGRESQL, ids=lambda x: str(x)[:12])
def test_cells_of_postgresql_have_a_fixed_reading(kind, cells, expected, server):
    assert same(floats(made(server, "one", kind, cells), "c"), expected)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "cells", "expected"), TIMES, ids=lambda x: str(x)[:12])
def test_times_of_postgresql_never_fail(kind, cells, expected, server):
    assert read(made(server, "one", kind, cells), "c") == expected


def test_times_with_a_zone_are_read_in_utc(server):
    cells = ["'2024-02-29 12:00:00+02'", "'infinity'", "'-infinity'", "'294276-12-31 +00'", "NULL"]
    found = read(made(server, "one", "timestamptz", cells), "c")
    assert [one and one.year for one in found] == [2024, 9999, 1, 9999, None]
    assert found[0].hour == 10


@pytest.mark.slow
def test_other_types_are_text_or_missing(server):
    carried_out(server, "DROP TYPE IF EXISTS mood CASCADE", "CREATE TYPE mood AS ENUM ('s', 'm')")
    for kind, cell, expected in (
        ("mood", "'s'", "s"),
        ("uuid", "'123e4567-e89b-12d3-a456-426614174000'", "123e4567-e89b-12d3-a456-426614174000"),
        ("jsonb", "'{\"a\": 1}'", '{"a": 1}'),
        ("int[]", "'{1,2}'", "{1,2}"),
        ("bytea", "'\\xff'", None),
        ("bool", "true", True),
        ("varchar(9)", "'x'", "x"),
    ):
        assert read(made(server, "one", kind, [cell, "NULL"]), "c") == [expected, None]


def test_cells_of_sqlite_have_a_fixed_reading(tmp_path, monkeypatch):
    """A cell of SQLite has a type of its own; the first batches decide nothing."""
    monkeypatch.setattr(databases, "BATCH", 1000)
    cells = [None, 1, 2**62, 0.1, 1e300, INF, -0.0, "2.5", "", "é", b"\xff\x00", "a\0b", True]
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as base, base:
        base.execute("CREATE TABLE t (c)")
        base.executemany("INSERT INTO t VALUES (?)", [(None,)] * 3000 + [(c,) for c in cells])
        base.execute("INSERT INTO t VALUES (CAST(x'FF41' AS TEXT))")
    table = Table(f"sqlite:///{tmp_path}/a.db", "t")
    expected = [NAN, 1, 2.0**62, 0.1, 1e300, 1e308, 0, 2.5, NAN, NAN, NAN, NAN, 1, NAN]
    assert same(floats(table, "c")[3000:], expected)
    texts = cells_from_arrow(table.reader(["c"]).read_all().column("c"))
    assert [*texts.values][3007:3011] == ["2.5", "", "é", None]


def rows_of(n=60):
    return [
        (float(i % 7) if i % 5 else None, "smlx"[i % 4], i % 3 == 0, Decimal(i) / 8, i // 3)
        for i in range(n)
    ]


SCHEMA = {
    "x": dp.Real(0, 7),
    "g": dp.Category(["s", "m", "l"]),
    "b": dp.Boolean(),
    "n": dp.Real(0, 10),
}


def filled(uri, base_is_sqlite, tmp_path):
    rows, name = rows_of(), '"kept"'
    if base_is_sqlite:
        with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as base, base:
            base.execute(f"CREATE TABLE {name} (x REAL, g TEXT, b, n, id INTEGER)")
            base.executemany(
                f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)",
                [(x, g, b, float(n), i) for x, g, b, n, i in rows],
            )
        return f"sqlite:///{tmp_path}/a.db"
    values = ", ".join(
        f"({'NULL' if x is None else x}, '{g}', {b}, {n}, {i})" for x, g, b, n, i in rows
    )
    carried_out(
        uri,
        f"DROP TABLE IF EXISTS {name}",
        f"CREATE TABLE {name} (x float8, g text, b boolean, n numeric, id int)",
        f"INSERT INTO {name} VALUES {values}",
    )
    return uri


def answers(session):
    return [
        dp.table(session, "x", by=["g", "b"], spend=dp.GDP(1)).release.integers,
        dp.mean(session, "n", spend=dp.GDP(1)).release.integers,
    ]


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
def test_databases_release_what_memory_does(kind, neighbors, server, tmp_path):
    columns = zip(*rows_of(), strict=True)
    frame = dict(zip(("x", "g", "b", "n", "id"), map(list, columns), strict=True))
    uri = filled(server, kind == "sqlite", tmp_path)
    found = [
        answers(seeded_session(data, dp.GDP(50), seed=6))
        for data in (
            dp.from_arrays(frame, schema=SCHEMA, neighbors=neighbors),
            dp.from_database(uri, "kept", schema=SCHEMA, neighbors=neighbors),
        )
    ]
    assert found[0] == found[1]


@pytest.mark.slow
def test_names_are_quoted_and_nothing_of_them_is_carried_out(server, tmp_path):
    carried_out(
        server,
        "DROP TABLE IF EXISTS kept",
        "CREATE TABLE kept (x int)",
        "INSERT INTO kept VALUES (1), (2)",
        'DROP TABLE IF EXISTS "a""; DROP TABLE kept; --"',
        'CREATE TABLE "a""; DROP TABLE kept; --" ("a""; DROP TABLE kept; --" int)',
        'INSERT INTO "a""; DROP TABLE kept; --" VALUES (3)',
    )
    assert floats(Table(server, NASTY), NASTY) == [3]
    assert floats(Table(server, ["public", "kept"]), "x") == [1, 2]
    for name in ("kept; DROP TABLE kept", "public.kept", "kept WHERE 1=1", 'kept"', "(SELECT 1)"):
        with pytest.raises(dp.DataShapeRefused, match="database"):
            Table(server, name)
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as base, base:
        base.execute('CREATE TABLE "a""; DROP TABLE kept; --" (x)')
    assert floats(Table(f"sqlite:///{tmp_path}/a.db", NASTY), "x") == []
    for name in ("", "a\0b", 5, [], None):
        with pytest.raises(dp.InvalidParameter):
            dp.from_database(server, name, schema={"x": dp.Real(0, 1)}, neighbors=dp.Replace())
    # SQLite reads a quoted name that is no column as text; a column that went away is not read so
    with contextlib.closing(sqlite3.connect(tmp_path / "b.db")) as base, base:
        base.execute("CREATE TABLE t (x, y)")
        base.execute("INSERT INTO t VALUES (1, 2)")
    table = Table(f"sqlite:///{tmp_path}/b.db", "t")
    with contextlib.closing(sqlite3.connect(tmp_path / "b.db")) as base, base:
        base.execute("ALTER TABLE t DROP COLUMN y")
    with pytest.raises(Exception, match="no such column"):
        table.reader(["y"])


def test_no_password_is_seen(server, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    uri = filled(server, False, tmp_path)
    schema = {"x": dp.Real(0, 7)}
    data = dp.from_database(uri, "kept", schema=schema, neighbors=dp.Replace())
    session = data.open(budget=dp.GDP(1), ledger=tmp_path / "a.ledger")
    mean = dp.mean(session, "x", spend=dp.GDP(0.5), key="mean")
    seen = [
        (tmp_path / "a.ledger").read_bytes(),
        pickle.dumps(mean),
        repr((data, session, mean, data._engine.describe(), data._engine.data_id())).encode(),
    ]
    for wrong in (
        uri.replace("tester", "nobody"),
        uri + "&connect_timeout=x",
        f"postgresql://u:{quote(postgresql.PASSWORD, safe='')}@127.0.0.1:1/x",
        f"oracle://u:{quote(postgresql.PASSWORD, safe='')}@host/x",
        f"postgresql://u:{quote(postgresql.PASSWORD, safe='')}@[::1/x",
    ):
        with pytest.raises((dp.DataShapeRefused, dp.InvalidParameter)) as refused:
            dp.from_database(wrong, "kept", schema=schema, neighbors=dp.Replace())
        assert refused.value.__context__ is None or refused.value.__suppress_context__
        seen.append(str(refused.value).encode())
    seen += [*map(str.encode, capfd.readouterr()), caplog.text.encode()]
    for text in seen:
        for secret in (postgresql.PASSWORD, quote(postgresql.PASSWORD, safe=""), "s3cret"):
            assert secret.encode() not in text


def test_rows_that_changed_between_passes_are_noticed(server, tmp_path):
    uri = filled(server, False, tmp_path)
    data = dp.from_database(uri, "kept", schema=SCHEMA, neighbors=dp.Replace())
    session = data.open(budget=dp.GDP(9))
    first = dp.mean(session, "x", spend=dp.GDP(0.5), key="first")
    carried_out(uri, "INSERT INTO kept VALUES (1, 's', true, 1, 1)")
    with pytest.raises(dp.ReleaseFailed):
        dp.mean(session, "x", spend=dp.GDP(0.5), key="second")
    carried_out(uri, "DELETE FROM kept WHERE ctid = (SELECT max(ctid) FROM kept)")
    assert dp.mean(session, "x", spend=dp.GDP(0.5), key="first").release == first.release
    dp.mean(session, "x", spend=dp.GDP(0.5), key="second")


def test_without_a_driver_the_error_says_what_to_install(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(databases.importlib, "import_module", absent)
    for uri in ("postgresql:///x", "sqlite:///x.db"):
        with pytest.raises(MissingExtra, match=r"discreet\[databases\]"):
            Table(uri, "t")
