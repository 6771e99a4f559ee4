"""A question is tried on rows that anybody could make up before it is paid for.

Theorem.  Whether a question is refused here is public: it depends on the question, the schema and
          the relation, and on nothing else.
Proof.    The rows are made from the declared columns alone.
Checked.  tests/claims/test_rows_say_nothing.py

What fails on made-up rows would fail after the debit where such rows are and answer where none
are: the failure would be a release without noise. A caller's own function on parts is not run; the
question about its outputs is tried on made-up ones.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import Any

import numpy as np

from discreet import plain
from discreet.errors.questions import mismatched
from discreet.neighbors import Neighbors, Replace
from discreet.schema import Boolean, Category, Column, Open, Schema
from discreet.seclusion import Failed, aside
from discreet.specs.aggregation.part_outputs import PartOutputs
from discreet.specs.queries.keys import Key, may_leave_out
from discreet.specs.queries.parts import PartRejections
from discreet.specs.queries.query import Query
from discreet.specs.reads import misread
from discreet.trusted.engines.cells import Cells
from discreet.trusted.engines.columns import cells_of
from discreet.trusted.engines.engine import needed_columns
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.memory import MemoryEngine

MADE_UP_ROWS = (0, 1, 4)  # none, one, and one of each of `_column`
MOST_TRIED = 1 << 10  # queries that are remembered


class Rehearsal:
    """Tries queries of one schema and relation, each once, whatever the point and the metric are
    that it is taken at: their own checks hold for every row (specs/estimating/model.py, metric.py).
    """

    def __init__(self, schema: Schema, neighbors: Neighbors, carries: Any = None) -> None:
        self._schema, self._neighbors = schema, neighbors
        self._carries = carries  # refuses what the engine cannot carry out; None: nothing
        self._tried: set[Any] = set()  # keys of queries
        self._engines: dict[int, MemoryEngine] = {}  # with this many rows

    def require(self, query: Query) -> None:
        """Refuses a query that misreads a column, says that every row counts where its keys can
        leave rows out, or fails on made-up rows: its failure on real ones would tell of them.
        """
        found = self._refusal(query)
        if found is not None:
            raise mismatched(found)
        if self._carries is not None:
            self._carries(query.plan())

    def _refusal(self, query: Query) -> str | None:
        """Why a query is not run on rows so declared; None where it is."""
        key = _key(query)
        if key in self._tried:
            return None
        found = misread(query, self._schema)
        if found is None and not query.optional and self._leaves_out(query):
            found = "its query says that every row counts, and its keys can leave rows out"
        if found is None and isinstance(aside(lambda: self._tries(query)), Failed):
            found = "its query fails on rows that its schema allows"
        if found is None:
            if len(self._tried) >= MOST_TRIED:
                self._tried.clear()
                self._engines.clear()
            self._tried.add(key)
        return found

    def _leaves_out(self, query: Query) -> bool:
        return any(may_leave_out(key, self._schema) for key in query.keys)

    def _tries(self, query: Query) -> None:
        if type(query) is PartOutputs:
            return Rehearsal(query.outputs, Replace()).require(query.about)
        for rows in () if type(query) is PartRejections else MADE_UP_ROWS:
            self._run(query, rows)

    def _run(self, query: Query, rows: int) -> None:
        answer = execute(self._made_up(rows), query.plan())
        if query.gives == "rows":  # a reader of rows, whose number may be another
            answer.gradient(np.arange(rows), np.zeros(query.size))
        else:
            query.assemble(answer)

    def _made_up(self, rows: int) -> MemoryEngine:
        """Rows that are read once, whatever is asked of them."""
        if rows not in self._engines:
            self._engines[rows] = made_up(self._schema, self._neighbors, rows)
        return self._engines[rows]


def made_up(schema: Schema, neighbors: Neighbors, rows: int = 0) -> MemoryEngine:
    """So many rows made from the schema, at most as many as `_column` has."""
    columns = {
        name: functools.cache(
            functools.partial(_cells, schema[name] if name in schema else Open(), rows)
        )
        for name in needed_columns(schema, neighbors)
    }
    return _AllCount(columns, schema, neighbors, rows=rows, source="made up")


class _AllCount(MemoryEngine):
    """Made-up rows, each in the first cell, wherever its keys put it."""

    def cell_index(self, keys: tuple[Key, ...]) -> Any:
        return super().cell_index(keys) * 0


def _key(query: Query) -> Any:
    """A query without its point and its metric, as values that nobody can change; as text where it
    holds a function, which is not written.
    """
    names = [field.name for field in dataclasses.fields(query)]  # type: ignore[arg-type]
    try:
        parts = [getattr(query, name) for name in names if name not in ("point", "metric")]
        return type(query), *map(plain.exact_key, parts)
    except TypeError:
        return json.dumps({**query.to_dict(), "point": None, "metric": None})


def _cells(column: Column, rows: int) -> Cells:
    return cells_of(_column(column)[:rows])


def _column(column: Column) -> Any:
    """The least, the greatest, a middling and a missing value."""
    if isinstance(column, Open):
        return ["a", "b", "a", None]
    if isinstance(column, Boolean):
        return [False, True, True, None]
    if isinstance(column, Category):
        return [column.levels[0], column.levels[-1], column.levels[0], None]
    return np.array([column.low, column.high, column.low / 2 + column.high / 2, np.nan])
