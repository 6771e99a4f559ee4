"""Cases 20–35: whatever cells hold, every estimator answers,
and the outcome is of the same class as for clean data.
"""

from __future__ import annotations

import datetime
import decimal
import functools
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from reliability_cases import (
    CLEAN,
    ESTIMATORS,
    RELATIONS,
    SCHEMA,
    SOURCES,
    SPENDS,
    TABLES,
    UTC,
    arrow_array,
    assert_presentable,
    dataset,
    sound,
)

import discreet as dp
from discreet.testing import seeded_session

CLEAN_TYPES = {
    "x": pa.float64(),
    "k": pa.int64(),
    "b": pa.bool_(),
    "c": pa.string(),
    "id": pa.int64(),
}


@functools.cache
def clean_result(relation: str, spend: str, estimator: str) -> Any:
    amount, budget = SPENDS[spend]
    data = dp.from_arrays(CLEAN, schema=SCHEMA, neighbors=RELATIONS[relation])
    return ESTIMATORS[estimator](data.open(budget=budget), amount)


# releases whose results were looked at: a result is a function of its release alone
CHECKED: set[Any] = set()


def ask(make: Any, relation: str, kind: str, names: Any, *, look: bool = True) -> int:
    """Ask some estimators under one relation, with one kind of noise;
    every answer must be sound.
    """
    amount, budget = SPENDS[kind]
    data, ledger = make(RELATIONS[relation]), dp.Ledger.open(budget)
    for name in names:
        # the same noise for a question whatever else was asked
        session = seeded_session(data, ledger, name)
        result = ESTIMATORS[name](session, amount)
        seen = relation, kind, name, result.release.public_count, result.release.integers
        assert len(result.release.integers) == len(
            clean_result(relation, kind, name).release.integers
        )
        if look and seen not in CHECKED:
            CHECKED.add(seen)
            place = len(CHECKED)
            sound(
                result,
                like=clean_result(relation, kind, name),
                target=("population", "data")[place % 2],
            )
            if place % 20 == 0:
                assert_presentable(result)
    assert ledger.verify().ok
    return len(names)


def ask_everything(make: Any, turn: int) -> int:
    """Every estimator, under every relation, with every kind of noise;
    the results of a quarter are looked at, by turns.
    """
    ways = [(relation, kind) for relation in RELATIONS for kind in SPENDS]
    return sum(
        ask(make, relation, kind, list(ESTIMATORS), look=(place + place // 4 + turn) % 4 == 0)
        for place, (relation, kind) in enumerate(ways)
    )


def ask_each_once(make: Any, turn: int) -> int:
    """Every estimator, under relations and with noise that change from one to the next: what a
    source makes of cells is decided before either is known.
    """
    names, kinds = list(ESTIMATORS), list(SPENDS)
    return sum(
        ask(make, relation, kinds[(place + turn // 4) % 2], names[(place + turn) % 4 :: 4])
        for place, relation in enumerate(RELATIONS)
    )


IN_MEMORY = [source for source in SOURCES if source not in ("parquet", "csv")]


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_every_estimator_is_total(table, tmp_path):
    """One table from every source, from one of them with everything; nothing may fail, warn,
    hang or come out in another shape than for clean data.
    """
    columns, types = TABLES[table]
    turn = list(TABLES).index(table)
    whole = IN_MEMORY[turn % len(IN_MEMORY)]
    for place, source in enumerate(SOURCES):
        make = functools.partial(dataset, source, columns, types, folder=tmp_path)
        if source == whole:
            assert ask_everything(make, turn) == len(RELATIONS) * len(SPENDS) * len(ESTIMATORS)
        else:
            assert ask_each_once(make, turn + place) == len(ESTIMATORS)


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
def test_every_result_prints_and_travels(relation):
    empty = dp.from_arrays(
        {name: [] for name in [*SCHEMA, "id"]}, schema=SCHEMA, neighbors=RELATIONS[relation]
    )
    amount, budget = SPENDS["pure"]
    session = empty.open(budget=budget)
    for name, question in ESTIMATORS.items():
        assert_presentable(question(session, amount))
        assert_presentable(clean_result(relation, "gdp", name))


def test_case_29_an_empty_group_has_a_cell_like_any_other():
    for relation, neighbors in RELATIONS.items():
        data = dp.from_arrays({**CLEAN, "c": ["N"] * 24}, schema=SCHEMA, neighbors=neighbors)
        session = data.open(budget=dp.GDP(10))
        result = dp.table(session, "x", by="c", spend=dp.GDP(1))
        assert [label for (label,) in result.labels] == ["N", "é", "0", "a\0b"], relation
        sound(result, like=result)
        subset = dp.mean(session, "x", where={"c": "0"}, spend=dp.GDP(1))
        sound(subset, like=subset)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["objects", "pandas", "polars", "arrow", "parquet", "csv"])
def test_case_32_one_unit_with_many_rows_moves_no_sum_by_more_than_its_share(source, tmp_path):
    """10⁵ rows of one unit: two count, so a count without noise is 2 more than without the unit."""
    rows = 100_000
    columns = {
        "x": [9.0] * rows + CLEAN["x"],
        "k": [7] * rows + CLEAN["k"],
        "b": [True] * rows + CLEAN["b"],
        "c": ["N"] * rows + CLEAN["c"],
        "id": [99] * rows + CLEAN["id"],
    }
    counted = []
    for cells, folder in ((columns, tmp_path / "with"), (CLEAN, tmp_path / "without")):
        folder.mkdir()
        session = seeded_session(
            dataset(source, cells, CLEAN_TYPES, RELATIONS["units"], folder), dp.PureDP(1000), 1
        )
        counted.append(dp.count(session, spend=dp.PureDP(1)).release.integers[0])
    assert counted[0] - counted[1] == 2
    ask(
        functools.partial(dataset, source, columns, CLEAN_TYPES, folder=tmp_path / "with"),
        "units",
        "pure",
        ["mean", "table", "table of means"],
    )


def releases(data: Any, names: Any, seed: int = 5) -> list[tuple[int, ...]]:
    amount, budget = SPENDS["pure"]
    session = seeded_session(data, budget, seed)
    return [ESTIMATORS[name](session, amount).release.integers for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("source", SOURCES)
def test_case_33_order_of_rows_and_columns_changes_no_bit(source, relation, tmp_path):
    """With the same noise whole releases are equal, so the statistics are bit-identical;
    another seed gives another release.
    """
    generator = np.random.default_rng(3)
    rows = 400
    columns: dict[str, list[Any]] = {
        "x": [
            *generator.normal(0, 8, rows - 6).tolist(),
            float("nan"),
            float("inf"),
            1e308,
            5e-324,
            -0.0,
            None,
        ],
        "k": generator.integers(-5, 15, rows).tolist(),
        "b": [None if v > 0.8 else bool(v > 0.4) for v in generator.random(rows)],
        "c": [["N", "é", "Q", "0", None][v] for v in generator.integers(0, 5, rows)],
        "id": generator.integers(0, 60, rows).tolist(),
    }
    order = generator.permutation(rows)
    permuted = {name: [columns[name][place] for place in order] for name in reversed(columns)}
    made = []
    for cells, folder in ((columns, tmp_path / "as it is"), (permuted, tmp_path / "permuted")):
        folder.mkdir()
        made.append(dataset(source, cells, CLEAN_TYPES, RELATIONS[relation], folder))
    names = (
        ["table of means", "table", "variance"]
        if source in ("parquet", "csv")
        else list(ESTIMATORS)
    )
    assert releases(made[0], names) == releases(made[1], names)
    assert releases(made[0], names[:1]) != releases(made[0], names[:1], seed=6)


def arrow_column(cells: Any, kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(cells, kind)])


def pandas_arrow(cells: Any, kind: pa.DataType) -> Any:
    return pd.Series(pd.array(pa.array(cells, kind), dtype=pd.ArrowDtype(kind)))


def dictionary(cells: Any, kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(cells, kind).dictionary_encode()])


def not_utf8() -> pa.Array:
    return pa.Array.from_buffers(pa.string(), 2, pa.array([b"N", b"\xff"]).buffers())


DECIMAL = decimal.Decimal("1.5")
COLUMNS: dict[str, Any] = {
    "numpy masked": lambda: np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
    "numpy all masked": lambda: np.ma.masked_all(3),
    "numpy masked objects": lambda: np.ma.array([1, "N"], mask=[1, 0], dtype=object),
    "numpy masked records": lambda: np.ma.array(
        [(1, 2.0), (3, 4.0)], dtype=[("a", int), ("b", float)], mask=[(True, False), (False, False)]
    ),
    "numpy masked dates": lambda: np.ma.array(
        np.array(["2020", "NaT"], dtype="M8[D]"), mask=[1, 0]
    ),
    "numpy records": lambda: np.array([(1, 2)], dtype=[("a", int), ("b", int)]),
    "numpy recarray": lambda: np.rec.array([(1, 2.0)]),
    "numpy void": lambda: np.array([b"ab"], dtype="V2"),
    "numpy complex": lambda: np.array([1j]),
    "numpy bytes": lambda: np.array([b"1"]),
    "numpy text": lambda: np.array(["1", "N"]),
    "numpy variable text": lambda: np.array(["N", "Q"], dtype=np.dtypes.StringDType()),
    "numpy duration": lambda: np.array([1], dtype="m8[s]"),
    "numpy long double": lambda: np.array([np.longdouble("1e4000"), 1]),
    "numpy half": lambda: np.array([np.inf, 1], dtype="f2"),
    "numpy big-endian": lambda: np.array([1, 2], dtype=">i4"),
    "numpy not contiguous": lambda: np.arange(10.0)[::-3],
    "numpy read-only": lambda: np.broadcast_to(np.float64(1), 4),
    "pandas categorical": lambda: pd.Series(pd.Categorical(["N", None, "Q"])),
    "pandas categorical numbers": lambda: pd.Series(pd.Categorical([1, 2, None])),
    "pandas categorical dates": lambda: pd.Series(
        pd.Categorical(pd.to_datetime(["2020-01-01", None]))
    ),
    "pandas intervals": lambda: pd.Series(pd.interval_range(0, 2)),
    "pandas cut": lambda: pd.Series(pd.cut([1, 2], 2)),
    "pandas periods": lambda: pd.Series(pd.period_range("2020", periods=2)),
    "pandas sparse": lambda: pd.Series(pd.arrays.SparseArray([0.0, np.nan, 1])),
    "pandas complex": lambda: pd.Series([1j, 2]),
    "pandas time zone": lambda: pd.Series([datetime.datetime(2020, 1, 1, tzinfo=UTC), None]),
    "pandas durations": lambda: pd.Series([datetime.timedelta(1)]),
    "pandas Int64": lambda: pd.Series([1, None], dtype="Int64"),
    "pandas UInt8": lambda: pd.Series([1, None], dtype="UInt8"),
    "pandas boolean": lambda: pd.Series([True, None], dtype="boolean"),
    "pandas Float32": lambda: pd.Series([1.0, None], dtype="Float32"),
    "pandas string": lambda: pd.Series(["N", None], dtype="string"),
    "pandas arrow decimals": lambda: pd.Series(
        [DECIMAL, None], dtype=pd.ArrowDtype(pa.decimal128(10, 2))
    ),
    "pandas arrow lists": lambda: pd.Series(
        [[1], [2, 3]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))
    ),
    "pandas arrow times": lambda: pd.Series(
        [1, None], dtype=pd.ArrowDtype(pa.timestamp("ns", "UTC"))
    ),
    "pandas arrow dictionary": lambda: pd.Series(
        ["N", None], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    ),
    "pandas repeated index": lambda: pd.Series([1.0, 2.0], index=[0, 0]),
    "polars categorical": lambda: pl.Series(["N", None, "Q"], dtype=pl.Categorical),
    "polars enum": lambda: pl.Series(["N", None], dtype=pl.Enum(["N", "S"])),
    "polars null": lambda: pl.Series([None, None]),
    "polars objects": lambda: pl.Series([object(), 1, "N"], dtype=pl.Object),
    "polars decimal": lambda: pl.Series([DECIMAL, None]),
    "polars int128": lambda: pl.Series([10**30, None], dtype=pl.Int128),
    "polars lists": lambda: pl.Series([[1], None]),
    "polars arrays": lambda: pl.Series([[1, 2]], dtype=pl.Array(pl.Int64, 2)),
    "polars structs": lambda: pl.Series([{"a": 1}, None]),
    "polars binary": lambda: pl.Series([b"1", None]),
    "polars uint64": lambda: pl.Series([2**64 - 1, None], dtype=pl.UInt64),
    "arrow null": lambda: arrow_column([None, None], pa.null()),
    "arrow no chunks": lambda: pa.chunked_array([], pa.float64()),
    "arrow large text": lambda: arrow_column(["N", None], pa.large_string()),
    "arrow text view": lambda: arrow_column(["N", None], pa.string_view()),
    "arrow not utf-8": lambda: pa.chunked_array([not_utf8()]),
    "arrow dictionary": lambda: dictionary(["N", None, "Q"], pa.string()),
    "arrow dictionary not utf-8": lambda: pa.chunked_array(
        [pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), not_utf8())]
    ),
    "arrow dictionary of numbers": lambda: dictionary([1, 2, None], pa.int64()),
    "arrow dictionary of dates Python has not": lambda: dictionary([0, 2**31 - 1], pa.date32()),
    "arrow dictionary of durations Python has not": lambda: dictionary(
        [1, 2**62], pa.duration("s")
    ),
    "arrow dictionary of an unknown zone": lambda: dictionary(
        [1, None], pa.timestamp("ns", "Nowhere/City")
    ),
    "arrow dictionary of nanoseconds": lambda: dictionary([1001], pa.time64("ns")),
    "arrow runs of times Python has not": lambda: pa.chunked_array(
        [
            pa.RunEndEncodedArray.from_arrays(
                pa.array([1], pa.int32()), pa.array([2**62], pa.timestamp("s"))
            )
        ]
    ),
    "arrow union": lambda: pa.chunked_array(
        [
            pa.UnionArray.from_dense(
                pa.array([0, 1], pa.int8()),
                pa.array([0, 0], pa.int32()),
                [pa.array([2**62], pa.timestamp("s")), pa.array(["N"])],
            )
        ]
    ),
    "arrow decimal256": lambda: arrow_column([decimal.Decimal(10) ** 60], pa.decimal256(76, 2)),
    "arrow half": lambda: arrow_column([np.float16(1)], pa.float16()),
    "arrow map": lambda: arrow_column([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "arrow dates Python has not": lambda: arrow_column([2**31 - 1], pa.date32()),
    "pandas arrow dates Python has not": lambda: pandas_arrow([2**31 - 1, 0], pa.date32()),
    "pandas arrow moments Python has not": lambda: pandas_arrow([2**60, 0], pa.date64()),
    "arrow unknown zone": lambda: arrow_column([1], pa.timestamp("ns", "Nowhere/City")),
    "arrow months and days": lambda: arrow_column(
        [(1, 2**30, 2**62)], pa.month_day_nano_interval()
    ),
    "arrow fixed binary": lambda: arrow_column([b"1"], pa.binary(1)),
    "arrow uuid": lambda: pa.chunked_array(
        [pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16], pa.binary(16)))]
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COLUMNS)
def test_case_35_columns_of_every_dtype_are_read(name):
    column = COLUMNS[name]()

    def make(neighbors: Any) -> Any:
        return dp.from_arrays(
            {**dict.fromkeys(SCHEMA, column), "id": [1] * len(column)},
            schema=SCHEMA,
            neighbors=neighbors,
        )

    assert ask_each_once(make, list(COLUMNS).index(name)) == len(ESTIMATORS)


def test_case_35_declared_text_is_found_under_every_text_dtype():
    """A dtype that is read as missing throughout would pass the tests above;
    levels must be found where the cells are text.
    """
    for name in (
        "numpy text",
        "numpy variable text",
        "pandas categorical",
        "pandas string",
        "pandas arrow dictionary",
        "polars categorical",
        "polars enum",
        "arrow large text",
        "arrow text view",
        "arrow dictionary",
        "arrow not utf-8",
        "arrow dictionary not utf-8",
    ):
        column = COLUMNS[name]()
        data = dp.from_arrays({"c": column}, schema={"c": SCHEMA["c"]}, neighbors=dp.AddRemove())
        without = dp.from_arrays(
            {"c": ["Q"] * len(column)}, schema={"c": SCHEMA["c"]}, neighbors=dp.AddRemove()
        )
        found, none = (
            dp.histogram(
                seeded_session(one, dp.PureDP(1), 1), "c", spend=dp.PureDP(1)
            ).release.integers
            for one in (data, without)
        )
        assert [a - b for a, b in zip(found, none, strict=True)] == [1, 0, 0, 0], name


SHAPES: dict[str, Any] = {
    "a 2-D array": lambda: dp.from_arrays(
        {"x": np.eye(2)}, schema={"x": SCHEMA["x"]}, neighbors=dp.Replace()
    ),
    "a generator": lambda: dp.from_arrays(
        {"x": (v for v in [1.0])}, schema={"x": SCHEMA["x"]}, neighbors=dp.Replace()
    ),
    "a set": lambda: dp.from_arrays(
        {"x": {1.0}}, schema={"x": SCHEMA["x"]}, neighbors=dp.Replace()
    ),
    "a text": lambda: dp.from_arrays(
        {"x": "1234"}, schema={"x": SCHEMA["x"]}, neighbors=dp.Replace()
    ),
    "a number": lambda: dp.from_arrays(
        {"x": 1.0}, schema={"x": SCHEMA["x"]}, neighbors=dp.Replace()
    ),
    "different lengths": lambda: dp.from_arrays(
        {"x": [1.0], "b": [True, False]},
        schema={"x": SCHEMA["x"], "b": SCHEMA["b"]},
        neighbors=dp.Replace(),
    ),
    "an absent column": lambda: dp.from_arrays(
        {"y": [1.0]}, schema={"x": SCHEMA["x"]}, neighbors=dp.Replace()
    ),
    "an absent unit": lambda: dp.from_arrays(
        {"x": [1.0]}, schema={"x": SCHEMA["x"]}, neighbors=dp.AddRemove(unit="id", max_rows=1)
    ),
    "a unit of dates": lambda: dp.from_frame(
        pl.DataFrame({"x": [1.0], "id": [datetime.date(2020, 1, 1)]}),
        schema={"x": SCHEMA["x"]},
        neighbors=dp.AddRemove(unit="id", max_rows=1),
    ),
    "a repeated column name": lambda: dp.from_frame(
        pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]),
        schema={"x": SCHEMA["x"]},
        neighbors=dp.Replace(),
    ),
    "a repeated arrow column": lambda: dp.from_frame(
        pa.table([arrow_array([1.0], pa.float64())] * 2, names=["x", "x"]),
        schema={"x": SCHEMA["x"]},
        neighbors=dp.Replace(),
    ),
    "a lazy frame that fails": lambda: dp.from_frame(
        pl.LazyFrame({"x": ["planted-4417"]}).select(pl.col("x").cast(pl.Float64)),
        schema={"x": SCHEMA["x"]},
        neighbors=dp.Replace(),
    ),
    "a list of rows": lambda: dp.from_frame(
        [{"x": 1.0}], schema={"x": SCHEMA["x"]}, neighbors=dp.Replace()
    ),
    "no file": lambda: dp.read_csv(
        "there-is-none.csv", schema={"x": SCHEMA["x"]}, neighbors=dp.Replace()
    ),
    "not a path": lambda: dp.read_parquet(5, schema={"x": SCHEMA["x"]}, neighbors=dp.Replace()),
    "no path": lambda: dp.read_parquet([], schema={"x": SCHEMA["x"]}, neighbors=dp.Replace()),
}


@pytest.mark.parametrize("name", SHAPES)
def test_case_26_a_shape_that_is_no_table_is_refused_from_its_outside(name):
    with pytest.raises(dp.DiscreetError) as caught:
        SHAPES[name]()
    assert all((caught.value.asked, caught.value.found, caught.value.why, caught.value.remedy))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nothing", b""),
        ("only a blank line", b"\n"),
        ("not utf-8", b"\xff\xfe\0\0"),
        ("one long header", b"y" * 300_000),
        ("repeated names", b"x,x\n1,2\n"),
        ("utf-16", "x\n1\n".encode("utf-16")),
    ],
)
def test_case_24_a_csv_without_its_column_is_refused(name, text, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(text)
    with pytest.raises(dp.DataShapeRefused):
        dp.read_csv(path, schema={"x": SCHEMA["x"]}, neighbors=dp.Replace())


def test_case_44_a_csv_without_a_header_does_not_show_its_first_row(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("73195731,planted-4417\n2,3\n")
    with pytest.raises(dp.DataShapeRefused) as caught:
        dp.read_csv(path, schema={"x": SCHEMA["x"]}, neighbors=dp.Replace())
    assert "73195731" not in str(caught.value)
    assert "planted" not in str(caught.value)
    assert "header" in caught.value.remedy


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n\n\n",
        b"1",
        b"1,2,3,4,5,6,7,8,9\n",
        b'"1',
        b'1"2"3\n',
        b"\0\n",
        b"1\0,true\n",
        b"\xff\xfe,\xff\n",
        b"1\r2\r3\r",
        b"1\r\n2\n3\r4",
        b",,,,\n",
        b'"a""b",","\n',
        b"x,k,b,c,id\n",
        b"#comment\n1\n",
        b"1;2;3\n",
        b"'1','2'\n",
        b'\\N,\\,\\"\n',
        b"\xef\xbb\xbf1,2\n",
        b"1,2,true,N,3\n" * 5000 + b'"' + b"z" * 100_000,
    ],
    ids=range(20),
)
def test_case_24_whatever_follows_a_csv_header_is_read(body, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"x,k,b,c,id\n" + body)
    assert ask_each_once(
        lambda neighbors: dp.read_csv(path, schema=SCHEMA, neighbors=neighbors), len(body)
    ) == len(ESTIMATORS)
