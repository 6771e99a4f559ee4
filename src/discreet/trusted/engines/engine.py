"""What every engine gives: exact integers for a plan,
and the counts that the neighbour relation makes public.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from discreet.errors import data
from discreet.neighbors import Neighbors
from discreet.schema import Schema
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.plans import GramPlan, SumsPlan
from discreet.specs.statistics import Histogram

if TYPE_CHECKING:
    from discreet.trusted.engines.memory import MemoryEngine

ObjectIntegers = npt.NDArray[np.object_]
State = TypeVar("State")


@runtime_checkable
class Engine(Protocol):
    """Carries out plans over one data source.

    Results are arrays of Python integers (dtype object), equal on every engine, whatever the order
    of rows. Making an engine reads names, types and lengths, never a cell; `sums`, `gram`,
    `histogram`, `fold`, `whole` and `public_count` read cells. None of them raises or warns because
    of what a cell holds. Plans of extensions are carried out over `fold` and `whole`
    (trusted/engines/execution.py).
    """

    schema: Schema
    neighbors: Neighbors
    remembered: dict[type[Any], Any]  # what is kept with the rows, by its type
    scale: Any  # how much is in memory at a time, and where the rest is (scale/limits.py), or None

    def sums(self, plan: SumsPlan) -> ObjectIntegers:
        """Σ of each term over the rows of each cell, shape (cells, terms)."""
        ...

    def gram(self, plan: GramPlan) -> ObjectIntegers:
        """Σ of all pairwise products of the factors, shape (factors, factors)."""
        ...

    def histogram(self, plan: HistogramPlan) -> Histogram:
        """How many rows hold each value of a factor's grid."""
        ...

    def fold(
        self,
        names: Sequence[str],
        start: Callable[[], State],
        add: Callable[[State, int, MemoryEngine], object],
        *,
        batch_rows: int | None = None,
        bounded: bool = True,
    ) -> list[State]:
        """add(state, number, batch) for every batch of the rows, in any order, whole units
        together; the states, of which each thread has its own. Where `bounded`, a batch may hold
        the rows that count alone; else it holds all rows, and the named columns alone.
        """
        ...

    def whole(self) -> MemoryEngine:
        """All rows in memory."""
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


def needed_columns(schema: Schema, neighbors: Neighbors) -> tuple[str, ...]:
    """The columns an engine needs: all declared ones and the one that identifies a unit."""
    return tuple(dict.fromkeys([*schema, *([neighbors.unit] if neighbors.unit else [])]))


def require_columns(
    schema: Schema, neighbors: Neighbors, available: Sequence[str], *, header_line: bool = False
) -> None:
    """Refuses a source that lacks a needed column, or has one twice; decided from names alone."""
    needed = needed_columns(schema, neighbors)
    for name in needed:
        times = list(available).count(name)
        if times != 1:
            raise data.column_not_found(
                name, times, available, header_line=header_line, needed=needed
            )
