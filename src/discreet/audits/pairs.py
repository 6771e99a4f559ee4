"""A pair of tables that a caller calls neighbours: counted under the declared relation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from discreet.audits.cases import SCHEMA, UNIT, Pair, Row, worst_pair
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors, Replace

Table = tuple[tuple[Any, ...], ...]  # rows of cells, columns in the order of their names


def checked_pair(pair: object, neighbors: Neighbors) -> Pair:
    """Two tables that differ in one row as the relation says; columns that are left out are those
    of the made-up rows.

    Rows are given as one row a unit: with units of several rows, each is repeated.
    """
    if type(pair) is not tuple or len(pair) != 2:
        raise _refused("it is not two tables")
    first, second = (_rows(table) for table in pair)
    gone, come = _difference(first, second), _difference(second, first)
    replaced = isinstance(neighbors, Replace)
    if replaced and len(gone) == len(come) == 1:
        others = _without(first, gone[0])
        return Pair(tuple(others), gone[0], come[0])
    if not replaced and sorted([len(gone), len(come)]) == [0, 1]:
        longer, row = (first, gone[0]) if gone else (second, come[0])
        return Pair(tuple(_without(longer, row)), row, row)
    raise _refused(
        f"{len(gone)} rows are only in the first and {len(come)} only in the second: {neighbors}"
    )


def _rows(table: object) -> list[Row]:
    """Rows of a table of columns, made complete by a made-up row."""
    if not isinstance(table, Mapping) or not table:
        raise _refused("a table is columns by name")
    unknown = [name for name in table if name not in SCHEMA or name == UNIT]
    if unknown:
        raise _refused(f"{unknown[0]!r} is no column of the made-up rows ({', '.join(SCHEMA)})")
    try:
        columns = {name: list(values) for name, values in table.items()}
    except TypeError:
        raise _refused("a column is no list of cells") from None
    if len({len(values) for values in columns.values()}) != 1:
        raise _refused("its columns differ in length")
    usual = worst_pair().others[0]
    return [
        usual | dict(zip(columns, cells, strict=True))
        for cells in zip(*columns.values(), strict=True)
    ]


def _difference(first: list[Row], second: list[Row]) -> list[Row]:
    """The rows of the first that the second does not have, counted."""
    left, found = Counter(map(_told, second)), []
    for row in first:
        if left[_told(row)]:
            left[_told(row)] -= 1
        else:
            found.append(row)
    return found


def _without(rows: list[Row], row: Row) -> list[Row]:
    place = next(number for number, one in enumerate(rows) if _told(one) == _told(row))
    return [*rows[:place], *rows[place + 1 :]]


def _told(row: Row) -> str:
    """A row as a text, so that cells of any kind can be counted."""
    return repr(sorted(row.items()))


def _refused(found: str) -> InvalidParameter:
    return InvalidParameter(
        "pair=",
        found,
        "a claim is about neighbours: data sets that differ in one row, or in one unit's rows",
        "pass two tables of equally many rows of which one differs, or (AddRemove) of which one is "
        "not there",
    )
