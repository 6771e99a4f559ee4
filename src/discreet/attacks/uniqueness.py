"""Uniqueness: how many people a few harmless columns single out (Sweeney 2000).

*Method.* People who share all of the columns with nobody are counted. By default the people are
made up: sex, birth date and a ZIP code of some thousand people, which single out about 87 % of the
inhabitants of the United States. A table of your own is read as it is, exactly and without noise:
what is printed about it is NOT private, and belongs in no publication.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet import plain
from discreet.attacks.publishers import (
    KAnonymous,
    Publisher,
    Raw,
    Rounded,
    Suppressed,
    publishers,
    whole,
)
from discreet.attacks.results import AttackResult, guessed
from discreet.errors import DataShapeRefused, InvalidParameter
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream

DAYS_A_YEAR = 365
OLDEST = 90
TYPICAL_ZIP = 6000  # inhabitants
SPREAD_OF_ZIPS = 0.5  # of logarithms
YOUNG_UNTIL = 60  # fewer people of each age beyond
OWN = "exact, of your own table: not private, not to be published"


@plain.called
def uniqueness(
    table: Mapping[str, Sequence[Any]] | Any = None,
    *,
    columns: Sequence[str] | None = None,
    people: int = 200_000,
    against: Sequence[Publisher] = (Raw(),),
    seed: int = 1,
) -> AttackResult:
    """The share of people whom the columns of a table single out.

    `table` is a frame or a mapping of columns, made-up people by default; of `against`, `Rounded`
    takes birth dates (every column of numbers of your own table) to spans, `Suppressed` and
    `KAnonymous` leave out rows that fewer people share.
    """
    codes = _people(whole(people, "people", 1), seed) if table is None else _own(table, columns)
    named = publishers(against)
    outcomes = []
    for publisher in named:
        alone, rows = _alone(publisher, codes)
        outcomes.append(guessed(publisher, None, None, right=[alone], coins=max(rows, 1)))
    about = (
        f"{len(next(iter(codes.values())))} people; columns {', '.join(codes)}.",
        *(() if table is None else (OWN,)),
    )
    return AttackResult("Uniqueness", "share of people singled out", None, tuple(outcomes), about)


def _people(people: int, seed: int) -> dict[str, Array]:
    """Made-up inhabitants, ZIP code by ZIP code."""
    stream = Stream(f"uniqueness/{seed}")
    zips = max(1, people // TYPICAL_ZIP)
    sizes = np.exp(SPREAD_OF_ZIPS * ndtri(stream.uniforms((zips,), "sizes")))
    ends = np.cumsum(sizes) / sizes.sum()
    place = np.searchsorted(ends, stream.uniforms((people,), "place"))
    old = stream.uniforms((people,), "age") * (YOUNG_UNTIL + (OLDEST - YOUNG_UNTIL) / 2)
    # beyond 60 ages thin out linearly
    beyond = np.maximum(0.0, old - YOUNG_UNTIL) / ((OLDEST - YOUNG_UNTIL) / 2)
    age = np.minimum(old, YOUNG_UNTIL) + (OLDEST - YOUNG_UNTIL) * (1 - np.sqrt(1 - beyond))
    return {
        "sex": (stream.uniforms((people,), "sex") < 0.5).astype(np.int64),
        "birth date": np.floor(age * DAYS_A_YEAR).astype(np.int64),
        "ZIP": place.astype(np.int64),
    }


def _own(table: Any, columns: Sequence[str] | None) -> dict[str, Array]:
    """A table's columns as codes; cells are compared as they are written."""
    if not isinstance(table, Mapping) and not hasattr(table, "columns"):
        raise DataShapeRefused(
            "uniqueness",
            f"a {type(table).__name__} is no table",
            "people are compared by their columns",
            "pass a frame, or a mapping of columns of one length",
        )
    asked = [columns] if isinstance(columns, str) else columns
    names = [str(name) for name in (asked or list(table))]
    missing = [name for name in names if name not in list(table)]
    if missing:
        raise DataShapeRefused(
            "uniqueness",
            f"the table has no column {', '.join(map(repr, missing))}",
            "people are compared by their columns",
            f"name some of {', '.join(map(str, list(table)))}",
        )
    found = {name: _codes(list(table[name])) for name in names}
    if not found or len({len(codes) for codes in found.values()}) != 1:
        raise DataShapeRefused(
            "uniqueness",
            "there are no columns, or they are of different lengths",
            "each row is one person",
            "pass a frame, or a mapping of columns of one length",
        )
    return found


def _codes(cells: list[Any]) -> Array:
    if all(isinstance(cell, (int, np.integer)) for cell in cells):
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    return np.asarray(np.unique([str(cell) for cell in cells], return_inverse=True)[1])


def _alone(publisher: Publisher, codes: dict[str, Array]) -> tuple[int, int]:
    """How many are singled out, and how many there are."""
    if not isinstance(publisher, (Raw, Rounded, Suppressed, KAnonymous)):
        raise InvalidParameter(
            "against=",
            f"{publisher} publishes no rows",
            "whom columns single out is a question about rows",
            "pass Raw(), Rounded(365), Suppressed(5) or KAnonymous(5)",
        )
    shown = dict(codes)
    if isinstance(publisher, Rounded):
        wide = [name for name in codes if len(np.unique(codes[name])) > publisher.to]
        shown |= {name: codes[name] // publisher.to for name in wide}
    rows = np.stack(list(shown.values()), axis=1)
    _, sizes = np.unique(rows, axis=0, return_counts=True)
    least = publisher.below if isinstance(publisher, Suppressed) else 1
    least = publisher.k if isinstance(publisher, KAnonymous) else least
    return int((sizes == 1).sum()) if least <= 1 else 0, len(rows)
