"""What the reliability tests share: the questions that are asked, bad cells, sources that hold
them, and what a sound outcome is.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dp

SCHEMA = {
    "x": dp.Real(-10, 10),
    "k": dp.Integer(0, 7),
    "b": dp.Boolean(),
    "c": dp.Category(["N", "é", "0", "a\0b"]),
}
RELATIONS = {
    "replace": dp.Replace(),
    "add_remove": dp.AddRemove(),
    "units": dp.AddRemove(unit="id", max_rows=2),
    "replaced units": dp.Replace(unit="id", max_rows=2),
}
SPENDS = {"pure": (dp.PureDP(0.5), dp.PureDP(1000)), "gdp": (dp.GDP(0.5), dp.GDP(100))}
SOURCES = ("lists", "objects", "pandas", "polars", "arrow", "parquet", "csv")

Ask = Callable[[Any, Any], Any]
ESTIMATORS: dict[str, Ask] = {
    "count": lambda session, spend: dp.count(session, spend=spend, where={"b": True, "x": (-5, 5)}),
    "sum": lambda session, spend: dp.sum(session, "k", spend=spend),
    "mean": lambda session, spend: dp.mean(session, "x", spend=spend),
    "variance": lambda session, spend: dp.variance(session, "x", spend=spend),
    "proportion": lambda session, spend: dp.proportion(
        session, "c", level="N", spend=spend, where={"b": [True, False]}
    ),
    "histogram": lambda session, spend: dp.histogram(session, "x", bins=5, spend=spend),
    "histogram of levels": lambda session, spend: dp.histogram(session, "c", spend=spend),
    "table": lambda session, spend: dp.table(session, by=["c", "b"], spend=spend),
    "table of means": lambda session, spend: dp.table(
        session, "k", by={"x": [-10, 0, 10], "c": None}, spend=spend
    ),
}

UTC, DAY = datetime.UTC, datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=UTC)
D = decimal.Decimal


@dataclass(frozen=True)
class Cells:
    """Cells for every value column, and the Arrow type they have there (None: the text of each
    cell).
    """

    values: Sequence[Any]
    arrow: pa.DataType | None = None


CLEAN: dict[str, list[Any]] = {
    "x": [-3.5, 0.25, 9.0, 1.0] * 6,
    "k": [0, 7, 3, 1] * 6,
    "b": [True, False, True, True] * 6,
    "c": ["N", "é", "0", "N"] * 6,
    "id": [1, 2, 3, 4, 5, 6] * 4,
}
BAD: dict[str, Cells] = {
    "case_20_one_nan": Cells([1.0, float("nan"), 2.0], pa.float64()),
    "case_20_all_nan": Cells([float("nan")] * 5, pa.float64()),
    "case_21_one_infinity": Cells([1.0, float("inf"), 2.0, float("-inf")], pa.float64()),
    "case_21_all_infinite": Cells([float("inf")] * 4, pa.float64()),
    "case_21_all_minus_infinite": Cells([float("-inf")] * 4, pa.float64()),
    "case_22_huge_subnormal_negative_zero": Cells(
        [1.7e308, -1.7e308, 5e-324, -5e-324, -0.0, 1e16, 2.0**53 + 2], pa.float64()
    ),
    "case_23_some_missing": Cells([1.0, None, 3.0], pa.float64()),
    "case_23_all_missing": Cells([None] * 4, pa.float64()),
    "case_23_missing_without_a_type": Cells([None] * 4, pa.null()),
    "case_23_missing_text": Cells([None, "", " ", "NA", "null", "None", "nan", "N"], pa.string()),
    "case_24_text": Cells(
        [
            "abc",
            "1e999",
            "-1e999",
            " 3 ",
            "0x10",
            "1_000",
            "1,5",
            "١٢",
            "TRUE",
            "+.5e-3",
            "1e",
            "--1",
            "∞",
        ],
        pa.string(),
    ),
    "case_24_long_text": Cells(["9" * 100_000, "x" * 100_000, "1" + "0" * 5000], pa.string()),
    "case_24_nul_and_control_text": Cells(
        [
            "a\0b",
            "\0",
            "N\0",
            "\x1b[31m",
            "\r",
            "a\nb",
            '"',
            "'",
            "N'; DROP TABLE s0; --",
            "\ufeffN",
            "\u2028",
        ],
        pa.string(),
    ),
    "case_24_mixed_objects": Cells(
        [
            1,
            "N",
            None,
            b"N",
            [1],
            {"N": 1},
            MOMENT,
            D("NaN"),
            D("sNaN"),
            10**30,
            float("nan"),
            pd.NA,
            pd.NaT,
            1j,
            object,
            np.float32(3),
            np.datetime64("NaT"),
            ...,
        ]
    ),
    "case_25_beyond_64_bits": Cells(
        [10**30, -(10**30), 2**64, 10**38 - 1, 7], pa.decimal128(38, 0)
    ),
    "case_25_beyond_float": Cells([10**400, -(10**400), 10**5000, 1]),
    "case_25_unsigned": Cells([2**64 - 1, 0, 2**63], pa.uint64()),
    "case_26_lists": Cells([[1], [2, 3], [], None], pa.list_(pa.int64())),
    "case_26_ragged_nested": Cells([[[1], [2, 3]], [[]], None], pa.list_(pa.list_(pa.int64()))),
    "case_26_records": Cells([{"a": 1}, {"a": None}, None], pa.struct([("a", pa.int64())])),
    "case_26_maps": Cells([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    "case_27_empty": Cells([], pa.float64()),
    "case_27_empty_without_a_type": Cells([], pa.null()),
    "case_27_empty_text": Cells([], pa.string()),
    "case_28_one_row": Cells([1.0], pa.float64()),
    "case_28_one_missing_row": Cells([None], pa.float64()),
    "case_30_all_equal": Cells([3.0] * 50, pa.float64()),
    "case_30_all_at_a_bound": Cells([10.0] * 50, pa.float64()),
    "case_31_unseen_category": Cells(
        ["Q", "n", "N ", " N", "É", "e\u0301", "N", "00"], pa.string()
    ),
    "case_31_unseen_dictionary": Cells(
        ["Q", "N", None, "é"], pa.dictionary(pa.int8(), pa.string())
    ),
    "case_34_time_zones": Cells(
        [MOMENT, None, MOMENT.replace(year=1600)], pa.timestamp("us", "America/New_York")
    ),
    "case_34_unicode": Cells(
        ["é", "e\u0301", "👩‍👩‍👧", "نعم", "ｎ", "𝟙", "ǅ", "\u202e N"], pa.string()
    ),
    "case_35_dates": Cells(
        [DAY, None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)], pa.date32()
    ),
    "case_35_times": Cells([datetime.time(1, 2), None], pa.time64("us")),
    "case_35_durations": Cells([datetime.timedelta(days=1), None], pa.duration("us")),
    "case_35_bytes": Cells([b"1", b"N", b"\xff\0", None], pa.binary()),
    "case_35_decimals": Cells([D("1.5"), D("-99999.25"), None], pa.decimal128(20, 4)),
    "case_35_yes_no": Cells([True, False, None], pa.bool_()),
    "case_35_whole_numbers": Cells([-(2**63), 2**63 - 1, 0, 1, None], pa.int64()),
    "case_35_small_floats": Cells([1.5, None, 65504.0], pa.float32()),
}


def tables() -> dict[str, tuple[dict[str, list[Any]], dict[str, pa.DataType | None]]]:
    """Every bad table: its columns and their Arrow types."""
    made: dict[str, tuple[dict[str, list[Any]], dict[str, pa.DataType | None]]] = {}
    for name, cells in BAD.items():
        values = list(cells.values)
        made[name] = (
            {
                **dict.fromkeys(SCHEMA, values),
                "id": [1, 2, 1, 1][: len(values)] + [3] * (len(values) - 4),
            },
            {**dict.fromkeys(SCHEMA, cells.arrow), "id": pa.int64()},
        )
    clean_types = {"x": pa.float64(), "k": pa.int64(), "b": pa.bool_(), "c": pa.string()}
    ids: dict[str, Cells] = {
        "case_32_duplicate_ids": Cells([7] * 24, pa.int64()),
        "case_32_ids_all_missing": Cells([None] * 24, pa.int64()),
        "case_32_float_ids": Cells(
            [float("nan"), -0.0, 0.0, 1e300, float("inf"), 2.0**64] * 4, pa.float64()
        ),
        "case_32_mixed_ids": Cells(
            [1, "1", 1.5, None, D("1"), 10**40, b"1", True, float("nan"), "é", [1], MOMENT] * 2
        ),
        "case_34_unicode_ids": Cells(["é", "e\u0301", "", "\0", "👩‍👩‍👧", None] * 4, pa.string()),
    }
    for name, cells in ids.items():
        made[name] = {**CLEAN, "id": list(cells.values)}, {**clean_types, "id": cells.arrow}
    return made


TABLES = tables()


def dataset(
    source: str,
    columns: Mapping[str, Sequence[Any]],
    types: Mapping[str, pa.DataType | None],
    neighbors: Any,
    folder: Path,
) -> Any:
    """The table as a declared data set that comes from `source`;
    building it may not fail or warn.
    """
    options = {"schema": SCHEMA, "neighbors": neighbors}
    if source == "lists":
        return dp.from_arrays({name: list(cells) for name, cells in columns.items()}, **options)
    if source == "objects":
        return dp.from_arrays(
            {name: object_array(cells) for name, cells in columns.items()}, **options
        )
    if source == "pandas":
        frame = pd.DataFrame(
            {
                name: pd.Series(
                    list(cells), dtype=None if types[name] is not None and len(cells) else object
                )
                for name, cells in columns.items()
            }
        )
        return dp.from_frame(frame, **options)
    if source == "csv":
        path = folder / "data.csv"
        if not path.exists():
            with open(path, "w", newline="", encoding="utf-8") as target:
                csv.writer(target).writerows(
                    [
                        list(columns),
                        *zip(*(map(cell_text, cells) for cells in columns.values()), strict=True),
                    ]
                )
        return dp.read_csv(path, **options)
    if source == "polars":
        return dp.from_frame(
            pl.DataFrame(
                [polars_series(name, cells, types[name]) for name, cells in columns.items()]
            ),
            **options,
        )
    table = pa.table({name: arrow_array(cells, types[name]) for name, cells in columns.items()})
    if source == "arrow":
        return dp.from_frame(table, **options)
    path = folder / "data.parquet"
    if not path.exists():
        pq.write_table(table, path)
    return dp.read_parquet(path, **options)


def object_array(cells: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        array[place] = cell
    return array


def arrow_array(cells: Sequence[Any], kind: pa.DataType | None) -> pa.Array:
    return (
        pa.array([None if cell is None else cell_text(cell) for cell in cells], pa.string())
        if kind is None
        else pa.array(list(cells), kind)
    )


def polars_series(name: str, cells: Sequence[Any], kind: pa.DataType | None) -> pl.Series:
    return (
        pl.Series(name, list(cells), dtype=pl.Object)
        if kind is None
        else pl.Series(name, pl.from_arrow(arrow_array(cells, kind)))
    )


def cell_text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, int) and abs(cell) > 10**1000:
        return "1" + "0" * 5000
    return str(cell)


def sound(result: Any, *, like: Any, target: str = "population") -> None:
    """A finite, well-formed result of the same class and shape as `like`."""
    assert type(result) is type(like)
    assert result.labels == like.labels
    assert len(result.release.integers) == len(like.release.integers)
    for quantity in result.quantities(0.95, target=target):
        parts = (
            quantity.estimate,
            quantity.low,
            quantity.high,
            quantity.std_error,
            quantity.noise_share,
        )
        for part in parts:
            assert np.isfinite(part).all(), (target, quantity)
            assert part.shape == (len(like.labels),)
        assert (quantity.low <= quantity.high).all(), (target, quantity)
        assert (quantity.std_error >= 0).all()


def assert_presentable(result: Any) -> None:
    """It prints, and comes back equal from JSON and from a pickle."""
    summary = result.summary()
    assert result.title in str(summary)
    assert "<table" in summary._repr_html_()
    assert len(result.records()) >= len(result.labels)
    assert dp.from_json(result.to_json()) == result
    assert pickle.loads(pickle.dumps(result)) == result
