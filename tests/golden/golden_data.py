"""The small survey that the golden cases ask about: made by whole-number arithmetic alone.

It has missing cells, values outside the declared ranges, undeclared levels, open keys and
people with one to four rows. No random generator of numpy is used, whose streams may change.
"""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path
from typing import Any

import discreet as dp

ROWS = 300
SCHEMA: dict[str, Any] = {
    "income": dp.Real(0, 100, missing=50),
    "after": dp.Real(0, 120, missing=30),
    "score": dp.Real(-3, 3, missing=0, bits=32),
    "wide": dp.Real(-1e6, 1e6, missing=0),
    "age": dp.Integer(18, 90, missing=40),
    "visits": dp.Integer(0, 12, missing=6),
    "region": dp.Category(["E", "N", "S", "W"]),
    "arm": dp.Category(["a", "b", "c"], missing="c"),
    "member": dp.Boolean(missing=False),
    "town": dp.Open(),
}
RELATIONS: dict[str, Any] = {
    "replace": dp.Replace(),
    "addremove": dp.AddRemove(),
    "replace-unit": dp.Replace(unit="person", max_rows=2),
    "addremove-unit": dp.AddRemove(unit="person", max_rows=2),
}
COLUMNS = (*SCHEMA, "person")


def _bell(draw: random.Random) -> float:
    """A number that is normal enough: twelve uniform ones, without functions of the platform."""
    return sum(draw.random() for _ in range(12)) - 6


def survey(rows: int = ROWS, seed: int = 5) -> dict[str, list[Any]]:
    """Columns as lists of cells; None is a missing one."""
    draw, table = random.Random(seed), {name: [] for name in COLUMNS}
    person, left = 0, 0
    for place in range(rows):
        if not left:
            person, left = person + 1, 1 + draw.randrange(4)
        left -= 1
        z, w = _bell(draw), _bell(draw)
        arm = "abc"[draw.randrange(3)]
        income = round(50 + 12 * z + (4 if arm == "b" else 0), 3)
        row = {
            "income": income,
            "after": round(0.7 * income + 20 + 5 * w, 2),
            "score": round(0.6 * z + 0.7 * _bell(draw), 6),
            "wide": round(1000 + 40 * z * (1 + 3 * abs(w)), 2),
            "age": 18 + draw.randrange(73),
            "visits": min(15, int(max(0.0, 3 + 1.5 * z + w))),
            "region": "EENNNSSSW"[draw.randrange(9)],
            "arm": arm,
            "member": draw.random() < (0.55 if z > 0 else 0.25),
            "town": f"town {int(9 * draw.random() * draw.random())}",
            "person": person,
        }
        if place % 17 == 3:
            row["income"] = None
        if place % 23 == 5:
            row["income"] = 150.5 if place % 2 else -20.25
        if place % 41 == 7:
            row["wide"] = 1e9
        if place % 31 == 9:
            row["age"] = None
        if place % 37 == 11:
            row["age"] = 7
        if place % 29 == 13:
            row["region"] = "Q"
        if place % 43 == 15:
            row["arm"] = None
        if place % 47 == 17:
            row["member"] = None
        if place % 53 == 19:
            row["town"] = None
        for name, cell in row.items():
            table[name].append(cell)
    return table


def arrays(table: dict[str, list[Any]]) -> dict[str, Any]:
    """The columns for `dp.from_arrays`: floats with NaN, and lists."""
    import numpy as np

    number = ("income", "after", "score", "wide", "age")
    return {
        name: np.array([math.nan if cell is None else cell for cell in cells], dtype=float)
        if name in number
        else list(cells)
        for name, cells in table.items()
    }


def frame(table: dict[str, list[Any]]) -> Any:
    """A polars frame."""
    import polars

    return polars.DataFrame(table, strict=False)


def write_parquet(table: dict[str, list[Any]], path: Path) -> None:
    """One Parquet file, in several row groups."""
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(table), path, row_group_size=64)


def write_csv(table: dict[str, list[Any]], path: Path) -> None:
    """One CSV file; a missing cell is empty."""
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


class Sources:
    """The survey as data sets of every engine, under every relation; files are written once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.table = folder, survey()
        self._made: dict[tuple[str, str], Any] = {}
        write_parquet(self.table, folder / "survey.parquet")
        write_csv(self.table, folder / "survey.csv")

    def data(self, engine: str = "arrays", relation: str = "replace") -> Any:
        """A data set; `engine` is arrays, frame, parquet or csv."""
        if (engine, relation) not in self._made:
            self._made[engine, relation] = self._declared(engine, RELATIONS[relation])
        return self._made[engine, relation]

    def _declared(self, engine: str, neighbors: Any) -> Any:
        if engine == "arrays":
            return dp.from_arrays(arrays(self.table), schema=SCHEMA, neighbors=neighbors)
        if engine == "frame":
            return dp.from_frame(frame(self.table), schema=SCHEMA, neighbors=neighbors)
        if engine == "parquet":
            path = self.folder / "survey.parquet"
            return dp.read_parquet(path, schema=SCHEMA, neighbors=neighbors)
        path = self.folder / "survey.csv"
        return dp.read_csv(path, schema=SCHEMA, neighbors=neighbors)
