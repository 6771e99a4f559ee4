"""Two tables that come with the library, so that an example runs wherever it is pasted.

Nobody is in them: `tools/make_bundled_data.py` made both from a seed, and its formulas are the
truth that an analysis can be compared with.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from importlib import resources
from typing import TYPE_CHECKING, Any

from discreet import plain
from discreet.neighbors import AddRemove, Neighbors, Replace
from discreet.schema import Boolean, Category, Integer, Real, Schema

if TYPE_CHECKING:
    from discreet.trusted.session import Session


@dataclass(frozen=True, slots=True)
class BundledTable:
    """A table to try things on, with what is to be declared of it.

    columns      lists by name; a missing cell is None
    schema       a declaration that fits: public bounds and levels
    neighbors    what to protect

    Example.
            census = dp.load_census()
            print(census.schema, census.neighbors)
            session = census.open(budget=dp.GDP(1))
    See also. `dp.load_census`, `dp.load_visits`.
    """

    name: str
    columns: dict[str, list[Any]] = field(repr=False)
    schema: Schema
    neighbors: Neighbors
    description: str

    @property
    def frame(self) -> Any:
        """A pandas table where pandas is installed, else the columns: both go into
        `dp.from_frame`.
        """
        if importlib.util.find_spec("pandas") is None:
            return self.columns
        import pandas

        frame = pandas.DataFrame(self.columns)
        if "date" in self.columns:
            frame["date"] = pandas.to_datetime(frame["date"])
        return frame

    def open(self, **asked: Any) -> Session:
        """A session on the table as it is declared: ``dp.load_census().open(budget=dp.GDP(1))``;
        what is asked is as for `Dataset.open`.
        """
        from discreet.trusted.datasets import from_frame

        data = from_frame(self.frame, name=self.name, schema=self.schema, neighbors=self.neighbors)
        return data.open(**asked)

    def __str__(self) -> str:
        return f"{self.name}: {self.description}"


@plain.called
def load_census() -> BundledTable:
    """8000 made-up people: yearly income, age, sex, education, region, weekly hours; some incomes
    and hours are missing.

    Example.
            print(dp.load_census())
            print(dp.load_census().frame.head())
    See also. `dp.load_visits`, `dp.BundledTable`.
    """
    return BundledTable(
        "census",
        _read("census", {"income": int, "age": int, "hours": int}),
        Schema(
            {
                "income": Real(0, 200_000),
                "age": Integer(18, 90),
                "sex": Category(["female", "male"]),
                "education": Category(["school", "vocational", "degree"]),
                "region": Category(["E", "N", "S", "W"]),
                "hours": Integer(0, 80),
            }
        ),
        Replace(),
        "8000 made-up people with income (a year), age, sex, education, region and hours (a week); "
        "one row a person, some cells missing",
    )


_VISITS: dict[str, Callable[[str], Any]] = {
    "person": int,
    "date": date.fromisoformat,
    "urgent": "yes".__eq__,
    "hours": float,
}


@plain.called
def load_visits() -> BundledTable:
    """Visits of 2600 made-up patients to a hospital in 2024: person, date, ward, whether it was
    urgent, hours of stay; several rows a person.

    Example.
            print(dp.load_visits())
            print(dp.load_visits().frame.head())
    See also. `dp.load_census`, `dp.AddRemove`.
    """
    return BundledTable(
        "visits",
        _read("visits", _VISITS),
        Schema(
            {
                "ward": Category(["children", "emergency", "maternity", "medicine", "surgery"]),
                "urgent": Boolean(),
                "hours": Real(0, 240),
            }
        ),
        AddRemove(unit="person", max_rows=4),
        "visits of 2600 made-up patients to a hospital in 2024: person, date, ward, urgent and "
        "hours of stay; one to nine rows a person, some cells missing",
    )


def _read(name: str, kinds: dict[str, Callable[[str], Any]]) -> dict[str, list[Any]]:
    packed = resources.files("discreet.bundled").joinpath(f"{name}.csv.gz").read_bytes()
    rows = csv.reader(io.StringIO(gzip.decompress(packed).decode("utf-8")))
    names = next(rows)
    cells = zip(*rows, strict=True)
    return {
        column: [kinds.get(column, str)(cell) if cell else None for cell in one]
        for column, one in zip(names, cells, strict=True)
    }
