"""Files: no record changes how others are read, nothing raises because of a cell,
and errors quote no data.
"""

from __future__ import annotations

import itertools
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import DataShapeRefused, InvalidParameter, MissingExtra
from discreet.neighbors import AddRemove, Replace
from discreet.schema import Category, Integer, Schema
from discreet.specs.queries.keys import Levels
from discreet.specs.queries.plans import SumsPlan
from discreet.specs.queries.sums import number_factor
from discreet.trusted.engines import batches as batches_module
from discreet.trusted.engines.files import FileEngine

SCHEMA = Schema({"a": Integer(0, 10, missing=5), "b": Category(["x", "y", "é", "�"])})
FACTOR = number_factor(SCHEMA, "a", "a sum")
PLAN = SumsPlan((), ((), (FACTOR,)))
BY_LEVEL = SumsPlan((Levels("b", 4),), ((),))


def csv_engine(folder, content, schema=SCHEMA, neighbors=None):
    path = folder / "data.csv"
    path.write_bytes(content)
    return FileEngine(path, "csv", schema, neighbors or Replace())


def values(engine):
    """(rows, sum of the values of a) and the counts by level."""
    count, total = engine.sums(PLAN)[0]
    return (
        count,
        int(count * 5 + total * FACTOR.encoding.step),
        engine.sums(BY_LEVEL)[:, 0].tolist(),
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1,x\n2,y\n", (2, 3, [1, 1, 0, 0])),
        (
            b"a,b\n1,x,extra,more\n2,y\n",
            (2, 3, [1, 1, 0, 0]),
        ),  # too many fields: the rest is ignored
        (b"a,b\n1\n2,y\n", (2, 3, [0, 1, 0, 0])),  # too few: missing
        (b"a,b\n,x\n2,\n", (2, 7, [1, 0, 0, 0])),  # empty: missing
        (b"a,b\n1,\xff\n2,y\n", (2, 3, [0, 1, 0, 1])),  # not UTF-8: U+FFFD, which is a level here
        (b"a,b\n1,\xc3\xa9\n2,\xc3\n", (2, 3, [0, 0, 1, 1])),
        (
            b'a,b\n1,x\n2,"y\n3,x\n',
            (2, 3, [1, 0, 0, 0]),
        ),  # a quote never closed: the rest is one field
        (b'a,b\n1,"x"\n2,"y\ny"\n3,x\n', (3, 6, [2, 0, 0, 0])),  # a line break inside quotes
        (b'a,b\n1,x"\n2,y\n', (2, 3, [0, 1, 0, 0])),
        (b"a,b\n1,x\x00\n2,y\n", (2, 3, [0, 1, 0, 0])),
        (b"a,b\r\n1,x\r\n2,y\r\n", (2, 3, [1, 1, 0, 0])),
        (b"\xef\xbb\xbfa,b\n1,x\n", (1, 1, [1, 0, 0, 0])),
        (b"a,b\n1,x\n\n2,y", (2, 3, [1, 1, 0, 0])),  # a blank line is no row
        (b"a,b\n", (0, 0, [0, 0, 0, 0])),
        (b"a,b", (0, 0, [0, 0, 0, 0])),
        # longer than the reader's usual limit
        (b"a,b\n1," + b"z" * 5_000_000 + b"\n2,y\n", (2, 3, [0, 1, 0, 0])),
        (b"a,b\nabc,x\n99999999999999999999999,y\n", (2, 15, [1, 1, 0, 0])),
        (b'b,"a"\nx,1\n', (1, 1, [1, 0, 0, 0])),
        (b"# note,a,b\n0,1,x\n", (1, 1, [1, 0, 0, 0])),
    ],
)
def test_csv_is_read_by_a_total_rule(content, expected, tmp_path):
    engine = csv_engine(tmp_path, content)
    assert values(engine) == expected
    assert engine.public_count() == expected[0]


@pytest.mark.slow
def test_an_unclosed_quote_in_a_large_file_does_not_raise(tmp_path):
    content = b"a,b\n1,x\n" + b'2,"y\n' + b"3,x\n" * 2_000_000
    assert values(csv_engine(tmp_path, content))[:2] == (2, 3)


def test_refusals_name_columns_and_never_cells(tmp_path):
    # without a header the first line is somebody's row
    for content in (b"a,c\nsecret,1\n", b"secret,1\n1,2\n"):
        with pytest.raises(DataShapeRefused, match=r"it is not in the data") as refusal:
            csv_engine(tmp_path, content)
        assert "secret" not in str(refusal.value)
    with pytest.raises(DataShapeRefused, match="more than once"):
        csv_engine(tmp_path, b"a,b,a\n1,x,2\n")
    with pytest.raises(DataShapeRefused, match="'person'"):
        csv_engine(tmp_path, b"a,b\n1,x\n", neighbors=AddRemove(unit="person", max_rows=1))
    with pytest.raises(DataShapeRefused, match="no such file"):
        FileEngine(tmp_path / "absent.csv", "csv", SCHEMA, Replace())
    with pytest.raises(InvalidParameter, match="format"):
        FileEngine(tmp_path / "data.csv", "excel", SCHEMA, Replace())
    with pytest.raises(InvalidParameter, match="neither a path nor"):
        FileEngine([], "csv", SCHEMA, Replace())
    with pytest.raises(InvalidParameter, match="Unicode"):
        csv_engine(tmp_path, b"a,b\n1,x\n", Schema({"b": Category(["\ud800"])}))


def test_a_broken_file_gives_one_error_without_contents(tmp_path):
    path = tmp_path / "broken.parquet"
    path.write_bytes(b"PAR1 the secret 42 PAR1")
    with pytest.raises(DataShapeRefused) as caught:
        FileEngine(path, "parquet", SCHEMA, Replace())
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_a_unit_column_of_dates_is_refused_from_its_type(tmp_path):
    pq.write_table(
        pa.table({"a": [1], "b": ["x"], "day": pa.array([3], pa.date32())}), tmp_path / "d.parquet"
    )
    with pytest.raises(DataShapeRefused, match="date32"):
        FileEngine(tmp_path / "d.parquet", "parquet", SCHEMA, AddRemove(unit="day", max_rows=1))


def test_columns_of_other_types_are_missing(tmp_path):
    days = pa.array([3, None], pa.date32())
    lists = pa.array([[1], [2, 3]])
    pq.write_table(pa.table({"a": days, "b": lists}), tmp_path / "d.parquet")
    assert values(FileEngine(tmp_path / "d.parquet", "parquet", SCHEMA, Replace())) == (
        2,
        10,
        [0, 0, 0, 0],
    )


def test_several_files_are_one_data_set_whatever_the_order_of_columns(tmp_path):
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "one.parquet")
    pq.write_table(pa.table({"b": ["é"], "c": [1.5], "a": [3]}), tmp_path / "two [1]*?.parquet")
    both = [tmp_path / "one.parquet", tmp_path / "two [1]*?.parquet"]
    engine = FileEngine(both, "parquet", SCHEMA, Replace())
    assert values(engine) == (3, 6, [1, 1, 1, 0])
    assert engine.public_count() == 3
    pq.write_table(pa.table({"a": [1.5], "b": ["x"]}), tmp_path / "three.parquet")
    with pytest.raises(DataShapeRefused, match="differs between files"):
        FileEngine([both[0], tmp_path / "three.parquet"], "parquet", SCHEMA, Replace())


def test_names_and_levels_are_quoted(tmp_path):
    nasty = "a\"b'; drop table x; --"
    schema = Schema({nasty: Category([nasty, "nul\0inside", "%s", "$1", "?", "\\"])})
    pq.write_table(
        pa.table({nasty: [nasty, "nul\0inside", "%s", "$1", "?", "\\", "nul"]}),
        tmp_path / f"it's {nasty[:3]}.parquet".replace("/", ""),
    )
    engine = FileEngine(tmp_path / f"it's {nasty[:3]}.parquet", "parquet", schema, Replace())
    assert engine.sums(SumsPlan((Levels(nasty, 6),), ((),)))[:, 0].tolist() == [1] * 6


def test_one_engine_serves_many_threads(tmp_path):
    engine = csv_engine(tmp_path, b"a,b\n" + b"1,x\n" * 1000)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(values(engine))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [(1000, 1000, [1000, 0, 0, 0])] * 8


def test_without_arrow_the_error_says_what_to_install(monkeypatch, tmp_path):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(batches_module.importlib, "import_module", absent)
    with pytest.raises(MissingExtra, match=r"discreet\[files\]"):
        csv_engine(tmp_path, b"a,b\n1,x\n")


def test_names_that_differ_in_case_or_look_like_ours_do_not_clash(tmp_path):
    names = ["h", "unit", "n0", "v0", "s0", "cell", "f0", "occurrence", "place", "A", "a"]
    schema = Schema(
        {name: Integer(0, 100) for name in names}
        | {"L": Category(["x", "y"]), "l": Category(["y", "x"])}
    )
    (tmp_path / "data.csv").write_text(
        ",".join([*names, "L", "l", "id"])
        + "\n"
        + "".join(
            ",".join([*(str(row + place) for place in range(len(names))), "x", "x", f"u{row % 3}"])
            + "\n"
            for row in range(9)
        )
    )
    plan = SumsPlan((), tuple((number_factor(schema, name, "a sum"),) for name in names))
    for neighbors, per_unit in (
        (Replace(), 3),
        (Replace(unit="id", max_rows=3), 3),
        (Replace(unit="id", max_rows=2), 2),
    ):
        engine = FileEngine(tmp_path / "data.csv", "csv", schema, neighbors)
        answer = engine.sums(plan)[0]
        rows = 3 * per_unit
        assert [int(after - before) for before, after in itertools.pairwise(answer)] == [
            2 * rows
        ] * (len(names) - 1)
        assert engine.sums(SumsPlan((Levels("L", 2), Levels("l", 2)), ((),)))[:, 0].tolist() == [
            0,
            rows,
            0,
            0,
        ]


def test_parquet_text_that_is_not_utf8_is_a_missing_cell(tmp_path):
    broken = pa.Array.from_buffers(pa.string(), 3, pa.array([b"x", b"\xff", b"y"]).buffers())
    pq.write_table(
        pa.table({"a": [1, 2, 3], "b": broken, "id": ["u", "u", "v"]}), tmp_path / "data.parquet"
    )
    engine = FileEngine(tmp_path / "data.parquet", "parquet", SCHEMA, Replace())
    assert values(engine) == (3, 6, [1, 1, 0, 0])
    assert engine.public_count() == 3
    by_unit = FileEngine(
        tmp_path / "data.parquet", "parquet", SCHEMA, Replace(unit="id", max_rows=1)
    )
    assert by_unit.sums(PLAN)[0, 0] == by_unit.public_count() == 2


@pytest.mark.parametrize("cell", [b"x", b"\xff", b"\xed\xa0\x80", b"x\x00", b"1e999"], ids=repr)
def test_one_bad_cell_changes_neither_batches_nor_other_cells(cell, tmp_path, monkeypatch):
    """What one cell holds: the same batches are read, none of them twice, and never all rows."""
    rows, met = 500, []
    texts = pa.array([b"x", b"y"] * (rows // 2 - 1) + [cell, b"y"])
    text = pa.Array.from_buffers(pa.string(), rows, texts.buffers())
    monkeypatch.setattr(batches_module, "BATCH_ROWS", 90)
    pq.write_table(
        pa.table({"a": [*range(rows)], "b": text}), tmp_path / "data.parquet", row_group_size=60
    )
    engine = FileEngine(tmp_path / "data.parquet", "parquet", SCHEMA, Replace())
    monkeypatch.setattr(engine, "whole", lambda: pytest.fail("all rows were read at once"))
    states = engine.fold(
        ("a", "b"),
        lambda: met,
        lambda found, number, batch: found.append(
            (number, batch.rows, batch.level_codes("b").tolist())
        ),
    )
    assert states == [met]
    found = sorted(met)
    assert [count for _, count, _ in found] == [60] * 7 + [80]
    codes = [code for _, _, some in found for code in some]
    assert codes[:-2] + codes[-1:] == [0, 1] * (rows // 2 - 1) + [1]
    assert codes[-2] == (0 if cell == b"x" else -1)
