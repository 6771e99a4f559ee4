"""CSV: every sequence of bytes is a table, the same for blocks of every size,
and no byte makes a question fail.
"""

from __future__ import annotations

import csv
import io
import random

import numpy as np
import pytest
from csv_reference import reference_table

from discreet.neighbors import AddRemove, Replace
from discreet.schema import Category, Integer, Open, Schema
from discreet.specs.queries.keys import Levels
from discreet.specs.queries.open_keys import OpenPlan
from discreet.specs.queries.plans import SumsPlan
from discreet.specs.queries.sums import number_factor
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.extensions import csv_files

PIECES = [
    b'"',
    b'""',
    b",",
    b"\n",
    b"\r\n",
    b"\r",
    b"a",
    b"1",
    b" ",
    "é".encode(),
    b"\xff",
    b"\xc3",
    b"\xa9",
    b"\x00",
    b"x",
    b"\xef\xbb\xbf",
    b"12",
    b"-3",
    b"'",
]


def read_table(path, block):
    """(header, rows) as `csv_files` reads them."""
    found = list(csv_files.records_of(str(path), block))
    if not found:
        return [], []
    header = csv_files.fields_of(found[0], 0)
    rows = []
    for number, records in enumerate(found):
        part = csv_files.without_first(records) if number == 0 else records
        columns = [part.column(place).to_pylist() for place in range(len(header))]
        rows += [list(row) for row in zip(*columns, strict=True)]
    return header, rows


def random_content(choose, length):
    return b"".join(choose.choice(PIECES) for _ in range(length))


@pytest.mark.slow
def test_random_bytes_are_read_as_the_naive_rule_reads_them(tmp_path):
    choose = random.Random(5)
    path = tmp_path / "data.csv"
    for trial in range(1500):
        content = random_content(choose, choose.randrange(60))
        path.write_bytes(content)
        expected = reference_table(content)
        for block in (
            (1, 2, 3, 7, 1 << 20) if trial % 10 == 0 else (choose.randrange(1, 9), 1 << 20)
        ):
            assert read_table(path, block) == expected, (content, block)


@pytest.mark.slow
def test_what_the_csv_module_writes_and_reads_is_read_alike(tmp_path):
    choose = random.Random(8)
    path = tmp_path / "data.csv"
    for _ in range(200):
        rows = [
            [
                "".join(choose.choice('ab",\n\ré 1') for _ in range(choose.randrange(5)))
                for _ in range(3)
            ]
            for _ in range(6)
        ]
        target = io.StringIO()
        csv.writer(target, quoting=choose.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])).writerows(
            [["p", "q", "r"], *rows]
        )
        path.write_bytes(target.getvalue().encode())
        theirs = list(csv.reader(io.StringIO(target.getvalue(), newline="")))
        assert theirs[1:] == rows
        assert read_table(path, 16) == (
            theirs[0],
            [[cell or None for cell in row] for row in theirs[1:]],
        )


SCHEMA = Schema({"n": Integer(0, 10, missing=5), "b": Category(["x", "y", "é"]), "k": Open()})
PLANS = (
    SumsPlan((), ((), (number_factor(SCHEMA, "n", "a sum"),))),
    SumsPlan((Levels("b", 3),), ((),)),
)


def answers(engine):
    counts = execute(engine, OpenPlan(("k",), ()))
    return (
        [engine.sums(plan).tolist() for plan in PLANS],
        list(counts.names),
        counts.counts.tolist(),
        engine.public_count(),
    )


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "cell",
    [
        b'""\xc3\xa9',
        b'"a"\xc3\xa9',
        b"\r\xc3\xa9",
        b'"',
        b'""',
        b'"\xff',
        b"\xef\xbb\xbf",
        b'"x""',
        b"\x00",
        b'"a" b',
        b"z" * 20_000,
    ],
)
def test_no_cell_makes_a_question_fail_and_the_reading_is_the_one_in_memory(cell, tmp_path):
    """The first three made DuckDB's reader fail."""
    path = tmp_path / "data.csv"
    path.write_bytes(
        b"n,b,k\r\n1,x,p\r\n2,"
        + cell
        + b",q\r\n"
        + cell
        + b",y,p\r\n3,x,"
        + cell
        + b"\r\n4,y,q\r\n"
    )
    header, rows = reference_table(path.read_bytes())
    columns = {name: [row[place] for row in rows] for place, name in enumerate(header)}
    for neighbors in (Replace(), AddRemove(), Replace(unit="k", max_rows=1)):
        assert answers(FileEngine(path, "csv", SCHEMA, neighbors)) == answers(
            memory_engine_from_arrays(columns, SCHEMA, neighbors)
        ), neighbors


@pytest.mark.slow
def test_fuzzed_files_answer_every_question_as_memory_does(tmp_path):
    choose = random.Random(11)
    path = tmp_path / "data.csv"
    for _ in range(150):
        path.write_bytes(
            b"n,b,k\r\n"
            + b"".join(
                random_content(choose, choose.randrange(8)) + choose.choice([b",", b"\n", b"\r\n"])
                for _ in range(12)
            )
        )
        header, rows = reference_table(path.read_bytes())
        columns = {name: [row[place] for row in rows] for place, name in enumerate(header)}
        for neighbors in (Replace(), Replace(unit="k", max_rows=2)):
            assert answers(FileEngine(path, "csv", SCHEMA, neighbors)) == answers(
                memory_engine_from_arrays(columns, SCHEMA, neighbors)
            ), path.read_bytes()


def test_a_file_of_many_blocks_is_read_once_through(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "BLOCK", 1 << 10)
    rng = np.random.default_rng(2)
    rows = [
        (
            str(rng.integers(-5, 15)),
            rng.choice(["x", "y", "z", '"q', "é"]),
            f"key {rng.integers(9)}",
        )
        for _ in range(3000)
    ]
    with open(tmp_path / "data.csv", "w", newline="", encoding="utf-8") as target:
        csv.writer(target).writerows([("n", "b", "k"), *rows])
    columns = {name: [row[place] for row in rows] for place, name in enumerate("nbk")}
    assert answers(FileEngine(tmp_path / "data.csv", "csv", SCHEMA, Replace())) == answers(
        memory_engine_from_arrays(columns, SCHEMA, Replace())
    )
