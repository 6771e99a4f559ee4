"""What every engine gives: exact integers for a plan,
and the counts that the neighbour relation makes public.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from discreet.errors import DataShapeRefused
from discreet.neighbors import Neighbors
from discreet.schema import Schema
from discreet.specs.estimating.model import EstimatingPlan
from discreet.specs.estimating.residuals import ResidualPlan
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.open_keys import OpenPlan
from discreet.specs.queries.parts import PartsPlan
from discreet.specs.queries.plans import GramPlan, SumsPlan
from discreet.specs.queries.scores import ScoresPlan
from discreet.specs.statistics import Histogram, KeyCounts

ObjectIntegers = npt.NDArray[np.object_]


@runtime_checkable
class Engine(Protocol):
    """Carries out plans over one data source.

    Results are arrays of Python integers (dtype object), equal on every engine, whatever the order
    of rows. Making an engine reads names, types and lengths, never a cell; `sums`, `gram`,
    `histogram`, `keys` and `public_count` read cells. None of them raises or warns because of what
    a cell holds.
    """

    schema: Schema
    neighbors: Neighbors

    def sums(self, plan: SumsPlan) -> ObjectIntegers:
        """Σ of each term over the rows of each cell, shape (cells, terms)."""
        ...

    def gram(self, plan: GramPlan) -> ObjectIntegers:
        """Σ of all pairwise products of the factors, shape (factors, factors)."""
        ...

    def histogram(self, plan: HistogramPlan) -> Histogram:
        """How many rows hold each value of a factor's grid."""
        ...

    def keys(self, plan: OpenPlan) -> KeyCounts:
        """How many rows hold each key that nobody declared."""
        ...

    def estimating(self, plan: EstimatingPlan | ResidualPlan) -> Any:
        """The sums of an estimating equation, or counts of residuals."""
        ...

    def parts(self, plan: PartsPlan) -> int:
        """In how many random parts of the rows a caller's test rejects."""
        ...

    def public_count(self) -> int | None:
        """Rows under row-level Replace, distinct units under Replace(unit=),
        None under AddRemove.
        """
        ...

    def unchanged(self) -> bool:
        """Whether the source is still the one that was declared;
        a question to another one is refused.
        """
        ...

    def describe(self) -> dict[str, Any]:
        """Public facts only: the kind of source, its name and the names of its columns."""
        ...

    def data_id(self) -> str:
        """What identifies the source in the ledger:
        a place or a random token, never a hash of the contents.

        A hash of private contents would be a release without noise:
        whoever can guess the data could confirm the guess.
        """
        ...


def execute(engine: Engine, plan: Any) -> Any:
    """What an engine gives for a plan."""
    if isinstance(plan, (EstimatingPlan, ResidualPlan)):
        return engine.estimating(plan)
    if isinstance(plan, HistogramPlan):
        return engine.histogram(plan)
    if isinstance(plan, PartsPlan):
        return engine.parts(plan)
    if isinstance(plan, OpenPlan):
        return engine.keys(plan)
    if isinstance(plan, ScoresPlan):
        return [engine.sums(part) for part in plan.plans]
    return engine.gram(plan) if isinstance(plan, GramPlan) else engine.sums(plan)


def needed_columns(schema: Schema, neighbors: Neighbors) -> tuple[str, ...]:
    """The columns an engine needs: all declared ones and the one that identifies a unit."""
    return tuple(dict.fromkeys([*schema, *([neighbors.unit] if neighbors.unit else [])]))


def require_columns(
    schema: Schema, neighbors: Neighbors, available: Sequence[str], *, header_line: bool = False
) -> None:
    """Refuses a source that lacks a needed column, or has one twice; decided from names alone.

    Names that are the first line of a text file are not shown:
    without a header they would be a person's row.
    """
    for name in needed_columns(schema, neighbors):
        found = list(available).count(name)
        if found != 1:
            raise DataShapeRefused(
                f"column {name!r}",
                ("it is not in the data" if not found else "the data have it more than once")
                + ("" if header_line else f" (columns: {name_list(available)})"),
                "every declared column, and the unit's, must be found by its name",
                "correct the name in the schema or in unit=, or rename the column of the data"
                + ("; the first line must be the header" if header_line else ""),
            )


def refuse_unit(name: str, found: str) -> DataShapeRefused:
    return DataShapeRefused(
        f"unit={name!r}",
        f"its cells are of type {found}",
        "units are told apart by text or numbers; anything else would make all rows one unit",
        "turn the column into text or whole numbers",
    )


def name_list(names: Iterable[str], most: int = 40) -> str:
    """Names for an error text, cut where they are too many."""
    shown = list(names)
    return ", ".join(map(str, shown[:most])) + (
        f", … ({len(shown)} in all)" if len(shown) > most else ""
    )
