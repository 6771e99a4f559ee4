"""Tables that an engine must read as memory does: every type that has a reading, and odd cells."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.schema import (
    Boolean,
    Category,
    Column,
    Date,
    Datetime,
    Integer,
    Open,
    Real,
)
from discreet.testing.seeded import SeededSource

CANARY = "canary of a cell"  # no error, description or name may hold it
UNIT = "unit id"


@dataclass(frozen=True)
class OddTable:
    """A table, how its columns are declared, and what is asked of them by kind."""

    name: str
    table: pa.Table
    schema: dict[str, Column]

    def of(self, kind: type[Column] | tuple[type[Column], ...]) -> list[str]:
        """The columns declared so."""
        return [name for name, column in self.schema.items() if isinstance(column, kind)]


def odd_tables(rows: int = 40) -> Iterator[OddTable]:
    """All of them, the larger ones with about so many rows."""
    yield OddTable("numbers", _with_units(_numbers()), _number_schema())
    yield OddTable("numbers, no rows", _with_units(_numbers()).slice(0, 0), _number_schema())
    yield OddTable("numbers, one row", _with_units(_numbers()).slice(5, 1), _number_schema())
    words: dict[str, Column] = {
        "level": Category(["a", "é", "3", ""]),
        "key": Open(),
        "flag": Boolean(),
        "listed": Category(["a", "b"]),
    }
    yield OddTable("texts", _with_units(_texts()), words)
    span: Any = ("2020-01-01", "2024-12-31")
    times = {"day": Date(*span), "at": Datetime(*span), "zoned": Datetime(*span)}
    yield OddTable("times", _with_units(_times()), dict(times))
    yield OddTable("only nulls", _with_units(_nulls()), {"x": Real(0, 1), "c": Category(["a"])})
    names = "a\"b'; drop", "select", "naïve ü", "a.b"
    odd = {name: pa.array([1.0, 2.0, None]) for name in names}
    yield OddTable("odd names", _with_units(pa.table(odd)), {name: Real(0, 3) for name in names})
    yield _regression(rows)
    yield _one_giant_unit(rows)


def _with_units(table: pa.Table) -> pa.Table:
    """Two rows a unit, text that is odd as an id, and one row without a unit."""
    ids = [f"{CANARY} {place // 2}" for place in range(len(table))]
    return table.append_column(UNIT, pa.array([None, *ids[1:]] if ids else ids, pa.string()))


def _numbers() -> pa.Table:
    wide = [0.1, -0.0, None, math.nan, math.inf, -math.inf, 1e300, 5e-324, 2.5, 2.0**53 + 2]
    whole = [0, 1, -1, None, 127, -128, 5, 6, 7, 8]
    n = len(wide)
    return pa.table(
        {
            "double": pa.array(wide, pa.float64()),
            "single": pa.array([1e38 if value == 1e300 else value for value in wide], pa.float32()),
            "tiny": pa.array(whole, pa.int8()),
            "large": pa.array([*whole[:-2], 2**62, -(2**63)], pa.int64()),
            "unsigned": pa.array(
                [abs(v) if v else v for v in whole[:-1]] + [2**64 - 1], pa.uint64()
            ),
            "exact": pa.array([None, *map(Decimal, range(n - 1))], pa.decimal128(20, 3)),
            "flag": pa.array([True, False, None] * 3 + [True]),
            "numbers in text": pa.array(
                ["1", " 2.5 ", "", None, "abc", "1e3", "-inf", "nan", "9" * 40, "0x10"]
            ),
        }
    )


def _number_schema() -> dict[str, Column]:
    kinds = dict.fromkeys(_numbers().column_names, Real(-3, 100))
    return {**kinds, "tiny": Integer(-10, 10), "flag": Boolean()}


def _texts() -> pa.Table:
    broken = pa.array([b"a", b"\xff\xfe", None, b"\xc3\xa9", b"", b"3", b"3.0", b"x" * 5000])
    return pa.table(
        {
            "level": pa.Array.from_buffers(pa.string(), len(broken), broken.buffers()),
            "key": pa.array([CANARY, "k", "k", None, "", "ключ", "k" * 4000, "k\0k"]),
            "flag": pa.array(["true", "FALSE", "1", None, "no", "", "yes", "0"]),
            "listed": pa.array(["a", "b", None, "z", "a", "a", "b", "b"]).dictionary_encode(),
        }
    )


def _times() -> pa.Table:
    days = [datetime.date(2020, 1, 1), datetime.date(1900, 1, 1), None, datetime.date(2024, 2, 29)]
    instants = [datetime.datetime(2020, 1, 1, 12, 30, 1, 5), None, datetime.datetime(2999, 1, 1)]
    instants.append(datetime.datetime(2024, 2, 29))
    return pa.table(
        {
            "day": pa.array(days, pa.date32()),
            "at": pa.array(instants, pa.timestamp("us")),
            "zoned": pa.array(instants, pa.timestamp("us", "Europe/Brussels")),
        }
    )


def _nulls() -> pa.Table:
    return pa.table({"x": pa.nulls(5, pa.float64()), "c": pa.nulls(5, pa.string())})


def _draws(seed: str, rows: int, most: int) -> Any:
    """Whole numbers below `most`, the same every time."""
    return (SeededSource(seed).uint64(rows) % np.uint64(most)).astype(np.int64)


def _regression(rows: int) -> OddTable:
    x, z, noise = (_draws(name, rows, 1000) / 200 - 2.5 for name in "xzy")
    columns: dict[str, Any] = {
        "x": np.where(_draws("missing", rows, 20) == 0, np.nan, x),
        "z": z,
        "y": 1 + x - z + noise,
        "b": _draws("b", rows, 2) == 1,
        "g": np.array(["s", "m", "l", "other"])[_draws("g", rows, 4)],
    }
    schema: dict[str, Column] = {
        **dict.fromkeys(("x", "z"), Real(-3, 3)),
        "y": Real(-9, 9),
        "b": Boolean(),
        "g": Category(["s", "m", "l"]),
    }
    return OddTable("a model", _with_units(pa.table(columns)), schema)


def _one_giant_unit(rows: int) -> OddTable:
    """Nearly all rows are one unit's; which of them count is a function of them alone."""
    ids = ["giant"] * (rows - rows // 8) + [f"small {place}" for place in range(rows // 8)]
    columns: dict[str, Any] = {
        "x": _draws("of the giant", rows, 20) / 4,
        "g": np.array(["s", "m"])[_draws("levels", rows, 2)],
        UNIT: np.array(ids)[np.argsort(_draws("order", rows, 1 << 40))],
    }
    schema: dict[str, Column] = {"x": Real(0, 5), "g": Category(["s", "m"])}
    return OddTable("one giant unit", pa.table(columns), schema)
