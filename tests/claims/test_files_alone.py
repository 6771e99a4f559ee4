"""Claim: on a file, one row changes what that row adds and nothing else;
       and a file that changed is another data set.

The first tests fail on an engine whose database decides comparisons by a file's statistics.
"""

from __future__ import annotations

import math
import os

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.estimators import questions
from discreet.neighbors import AddRemove, Replace
from discreet.schema import Integer, Real, Schema
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.extensions.estimating import reading
from discreet.trusted.release import PublicFacts

SCHEMA = Schema({"x": Real(0, 100), "y": Integer(0, 100)})
ROWS = 2000


def nan_table(last):
    """30 % NaN, the rest within the range but for the last row."""
    rng = np.random.default_rng(5)
    x = np.where(rng.random(ROWS) < 0.3, np.nan, rng.uniform(0, 99, ROWS))
    x[-1] = last
    return {
        "x": x,
        "y": np.arange(ROWS) % 90,
        "id": np.where(np.arange(ROWS) % 10 == 3, np.nan, np.arange(ROWS) * 1.0),
    }


def by_pyarrow(columns, path):
    pq.write_table(pa.table(columns), path)


def by_polars(columns, path):
    pl.DataFrame(columns).write_parquet(path)


ASKED = {
    "count": lambda public: questions.count_question(public, where={"x": (0, 60)}, spend=dp.GDP(1)),
    "sum": lambda public: questions.sum_question(public, "x", spend=dp.GDP(1)),
    "mean": lambda public: questions.mean_question(public, "x", spend=dp.GDP(1)),
    "mean where": lambda public: questions.mean_question(
        public, "y", where={"x": (50, 100)}, spend=dp.GDP(1)
    ),
    "variance": lambda public: questions.variance_question(public, "x", spend=dp.GDP(1)),
    "histogram": lambda public: questions.histogram_question(
        public, "x", bins=[0, 20, 50, 100], spend=dp.GDP(1)
    ),
    "table": lambda public: questions.table_question(
        public, "y", by={"x": [0, 50, 100]}, spend=dp.GDP(1)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("write", [by_pyarrow, by_polars])
@pytest.mark.parametrize("last", [101.0, -1.0, math.inf, -math.inf, 1e300])
@pytest.mark.parametrize("name", ASKED)
def test_one_row_beyond_the_range_moves_no_statistic_of_a_file_too_far(name, last, write, tmp_path):
    """A mean of a column with NaN went from 50.3 to 65.4 when one row went from 50 to 101."""
    question = ASKED[name](PublicFacts(SCHEMA, Replace(), ROWS))
    seen = []
    for value in (50.0, last):
        write(nan_table(value), tmp_path / "data.parquet")
        engine = FileEngine(tmp_path / "data.parquet", "parquet", SCHEMA, Replace())
        seen.append(question.query.assemble(execute(engine, question.query.plan())))
    moved = sum((int(second) - int(first)) ** 2 for first, second in zip(*seen, strict=True))
    assert moved <= question.mechanism.sensitivity.squared


@pytest.mark.parametrize("last", [50.0, 101.0, math.inf])
def test_an_id_that_is_nan_is_no_unit_of_a_file(last, tmp_path):
    columns = nan_table(last)
    columns["id"][-1] = last
    by_pyarrow(columns, tmp_path / "data.parquet")
    units = len({value for value in columns["id"].tolist() if value == value})
    assert (
        FileEngine(
            tmp_path / "data.parquet", "parquet", SCHEMA, Replace(unit="id", max_rows=1)
        ).public_count()
        == units
    )


# ── a file that changes ───────────────────────────────────────────────────────────────────────────


def csv(path, header="id,x,y", rows=40):
    path.write_text(header + "\n" + "".join(f"{row},{row % 50},{row % 7}\n" for row in range(rows)))


def swapped(path):
    """The same bytes but for the header: read by their old places,
    `unit=` would be another column.
    """
    stamp = path.stat()
    csv(path, header="y,x,id")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def longer(path):
    with open(path, "a") as file:
        file.write("41,3,3\n")


CHANGES = {
    "swapped": swapped,
    "longer": longer,
    "shorter": lambda path: csv(path, rows=39),
    "gone": lambda path: path.unlink(),
    "touched": lambda path: os.utime(path, ns=(1, 1)),
    "rewritten": csv,
    "replaced": lambda path: (
        csv(path.with_name("new.csv")),
        os.replace(path.with_name("new.csv"), path),
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changed_is_refused_with_one_text_before_the_debit(change, tmp_path):
    path = tmp_path / "data.csv"
    csv(path)
    for neighbors in (Replace(), AddRemove(unit="id", max_rows=1)):
        csv(path)
        data = dp.read_csv(path, schema=SCHEMA, neighbors=neighbors)
        session = data.open(budget=dp.GDP(1))
        kept = dp.mean(session, "x", spend=dp.GDP(0.1), key="kept")
        spent = session.ledger.spent()
        CHANGES[change](path)
        with pytest.raises(dp.SourceChanged) as refusal:
            dp.mean(session, "x", spend=dp.GDP(0.1))
        assert str(refusal.value) == str(dp.SourceChanged())
        assert session.ledger.spent() == spent
        assert dp.mean(session, "x", spend=dp.GDP(0.1), key="kept").release == kept.release
        if neighbors.unit_count_is_public:
            with pytest.raises(dp.SourceChanged):
                data.open(budget=dp.GDP(1))


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_file_that_changes_between_any_two_passes_of_a_fit_is_noticed(
    format, tmp_path, monkeypatch
):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"x": rng.uniform(0, 100, 300), "y": rng.integers(0, 101, 300)})
    path = tmp_path / f"data.{format}"

    def write(values):
        values.write_parquet(path) if format == "parquet" else values.write_csv(path)

    write(frame)
    read = dp.read_parquet if format == "parquet" else dp.read_csv
    session = read(path, schema=SCHEMA, neighbors=Replace()).open(budget=dp.GDP(100))
    passes = []
    sums = reading.model_sums

    def counted(engine, plan):
        if isinstance(engine, FileEngine):  # not the made-up rows of a rehearsal
            passes.append(plan)
        if len(passes) == 2:
            write(frame.with_columns(pl.col("x") + 1))
        return sums(engine, plan)

    monkeypatch.setattr(reading, "model_sums", counted)
    with pytest.raises((dp.SourceChanged, dp.ReleaseFailed)):
        dp.ols(session, "y ~ x", spend=dp.GDP(10))
    assert len(passes) == 2


def test_a_replaced_parquet_file_gives_no_mean_outside_its_range(tmp_path):
    path = tmp_path / "data.parquet"
    pl.DataFrame({"x": [50.0] * 100, "y": [1] * 100}).write_parquet(path)
    session = dp.read_parquet(path, schema=SCHEMA, neighbors=Replace()).open(budget=dp.GDP(10))
    # three times the public number of rows
    pl.DataFrame({"x": [50.0] * 300, "y": [1] * 300}).write_parquet(path)
    with pytest.raises(dp.SourceChanged):
        dp.mean(session, "x", spend=dp.GDP(5))


@pytest.mark.parametrize("format", ["parquet", "csv"])
@pytest.mark.parametrize("neighbors", [Replace(), AddRemove(unit="id", max_rows=1)], ids=str)
@pytest.mark.parametrize("change", ["touched", "longer", "replaced"])
def test_a_file_that_changes_while_it_is_read_is_not_answered_from(
    format, neighbors, change, tmp_path
):
    """All batches were read, of what is no more the file that was declared."""
    path = tmp_path / f"data.{format}"
    csv(path)
    if format == "parquet":
        pl.read_csv(path).write_parquet(path)
    met = []

    def add(_, number, batch):
        if not met:
            CHANGES[change](path)
        met.append(batch.values("x").sum())

    engine = FileEngine(path, format, SCHEMA, neighbors)
    with pytest.raises(dp.SourceChanged):
        engine.fold(("x",), lambda: None, add)
    assert met[0] == sum(row % 50 for row in range(40))
