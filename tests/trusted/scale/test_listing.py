"""Many files as one data set: found by name, of one schema, and noticed where any changes."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import DataShapeRefused, SourceChanged
from discreet.neighbors import Replace
from discreet.schema import Integer, Schema
from discreet.specs.queries.plans import SumsPlan
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.scale import files as source_module

SCHEMA = Schema({"a": Integer(0, 1000, missing=0)})
ROWS = SumsPlan((), ((),))


def write(path, first, rows=3):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"a": list(range(first, first + rows)), "b": ["x"] * rows}), path)


@pytest.fixture
def folder(tmp_path):
    for place, name in enumerate(["one.parquet", "b/two.parquet", "b/c/three.parquet"]):
        write(tmp_path / "data" / name, 10 * place)
    for name in ("_SUCCESS.parquet", ".hidden.parquet", "_tmp/four.parquet", "notes.txt"):
        write(tmp_path / "data" / name, 500)
    return tmp_path / "data"


def rows(paths, format="parquet"):
    return FileEngine(paths, format, SCHEMA, Replace()).public_count()


def test_folders_and_patterns_find_files(folder):
    assert rows(folder) == 9
    assert rows(str(folder) + "/") == 9
    # a pattern finds what it says, names with an underscore too
    assert rows(f"{folder}/*.parquet") == 6
    assert rows(f"{folder}/**/*.parquet") == 9 + 6
    assert rows(f"{folder}/b/t?o.parquet") == 3
    assert rows([f"{folder}/b", folder / "one.parquet"]) == 9
    for nothing in (f"{folder}/*.csv", folder / "absent", folder / "b" / "x*.parquet"):
        with pytest.raises(DataShapeRefused, match="no such file"):
            rows(nothing)
    with pytest.raises(DataShapeRefused, match="no such file"):
        rows(folder, "csv")


def test_a_file_is_itself_whatever_marks_its_name_has(tmp_path):
    write(tmp_path / "a[1]*.parquet", 0)
    write(tmp_path / "a1x.parquet", 0, rows=5)
    assert rows(tmp_path / "a[1]*.parquet") == 3


def test_a_file_that_is_named_twice_is_refused(folder):
    """Its rows would count twice, and one person with them."""
    one = folder / "one.parquet"
    for given in ([one, one], [folder, one], [f"{folder}/*.parquet", f"{folder}/o*.parquet"]):
        with pytest.raises(DataShapeRefused, match="there twice"):
            rows(given)
    for link in (os.symlink, os.link):
        other = folder / f"{link.__name__}.parquet"
        link(one, other)
        with pytest.raises(DataShapeRefused, match="there twice"):
            rows(folder)
        other.unlink()
    assert rows([folder / "b", one]) == 9
    os.symlink(folder, folder / "b" / "again")
    with pytest.raises(DataShapeRefused, match="could not be read"):
        rows(folder)


CHANGES = {
    "added": lambda folder: write(folder / "b" / "new.parquet", 7),
    "removed": lambda folder: (folder / "b" / "two.parquet").unlink(),
    "changed": lambda folder: write(folder / "b" / "c" / "three.parquet", 0, rows=4),
    "touched": lambda folder: os.utime(folder / "one.parquet", ns=(1, 1)),
    "renamed": lambda folder: (folder / "one.parquet").rename(folder / "other.parquet"),
    "gone": lambda folder: [path.unlink() for path in folder.rglob("*.parquet")],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("pattern", ["", "/**/*.parquet"])
def test_files_that_change_come_or_go_are_noticed(change, pattern, folder):
    data = dp.read_parquet(f"{folder}{pattern}", schema=SCHEMA, neighbors=Replace())
    session = data.open(budget=dp.GDP(1))
    spent = session.ledger.spent()
    CHANGES[change](folder)
    with pytest.raises(SourceChanged):
        dp.mean(session, "a", spend=dp.GDP(0.1))
    assert session.ledger.spent() == spent


def test_all_files_have_the_types_of_the_first(folder):
    pq.write_table(pa.table({"a": [1.5]}), folder / "z.parquet")
    with pytest.raises(DataShapeRefused, match="differs between files"):
        rows(folder)
    pq.write_table(pa.table({"c": [1]}), folder / "z.parquet")
    with pytest.raises(DataShapeRefused, match="'a'"):
        rows(folder)
    # another order of columns, one more, and another layout of text are the same types
    listed = pa.array(["x"]).dictionary_encode()
    pq.write_table(pa.table({"c": [1.5], "b": listed, "a": [1]}), folder / "z.parquet")
    assert rows(folder) == 10


def test_many_small_files_are_looked_at_once_and_read_together(tmp_path, monkeypatch):
    for place in range(60):
        write(tmp_path / f"{place:02}.parquet", place)
    looked_at = []
    monkeypatch.setattr(
        source_module,
        "require_columns",
        lambda *given, **named: looked_at.append(given),
    )
    engine = FileEngine(tmp_path, "parquet", SCHEMA, Replace())
    assert looked_at == []
    sizes = []
    engine.fold(("a",), lambda: sizes, lambda found, _, batch: found.append(batch.rows))
    assert sum(sizes) == 180
    assert len(sizes) <= 4


def test_a_data_set_of_a_folder_is_named_by_the_folder(folder):
    engine = FileEngine(folder, "parquet", SCHEMA, Replace())
    assert engine.data_id() == f"parquet:{folder}"
    assert engine.describe()["source"] == ["data"]
    assert engine.sums(ROWS).tolist() == [[9]]
