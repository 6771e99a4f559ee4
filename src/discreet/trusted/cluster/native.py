"""Counts and sums of numbers, truth values and levels by Spark's own expressions, without Python.

Theorem.  Where `native` gives a query, its whole numbers are those of `engines/memory.py`.
Proof.    A cell of a number type, cast to double, is the float that numpy makes of it (exact, or
          rounded to nearest). Nothing and NaN are told apart from all else before any comparison,
          since Spark takes NaN for the greatest number; then each step is one comparison or one
          rounded operation of IEEE 754, as in `kernels.clamp_and_encode`, and a floor whose value
          fits in 32 bits. Levels are compared byte by byte, and only where no level reads as a
          number or a truth value, so that no other spelling means one. Products are below 2**47
          and are added in pieces of 22 bits, so that no sum of `MOST_ROWS` rows leaves 64 bits:
          ANSI mode, which raises where that happens, changes nothing. Nothing is filtered: rows of
          no cell are a group of their own, so that no statistic of a file decides a comparison;
          and every query has sums of xxhash64, which no other database is handed by Spark.
          All else (decimals, times, text as numbers, keys, many levels) is answered in Python.
Checked.  tests/trusted/cluster/test_spark.py, tests/trusted/cluster/test_native.py
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from discreet.schema import Boolean, Category, Date, Integer, Real, Schema
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.keys import Between, Bins, Held, Key, Levels, Split, Subset
from discreet.specs.queries.plans import Factor, SumsPlan, Term, term_bounds
from discreet.trusted.values import levels_of

NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")
TEXT = "string"  # compared byte by byte: a text with another collation has another name
WIDTH = 22  # bits of what is added
MOST_ROWS = 1 << (62 - WIDTH)
MOST_BRANCHES = 64  # levels or edges that are compared one after another
MOST_TERMS = 12
WORD_PIECES = (0, WIDTH, 2 * WIDTH)  # where the pieces of a hash of 64 bits begin


class _InPythonError(Exception):
    """A question that is not answered here."""


class Query:
    """A plan as columns, in stages of which each reads those before, and what to add of them."""

    def __init__(self, schema: Schema, places: Mapping[str, str], types: Mapping[str, str]) -> None:
        self._schema, self._places, self._types = schema, places, types
        self._named: list[dict[str, str]] = [{}, {}, {}, {}]
        self.pieces: list[tuple[str, int, int]] = []  # of term `number`: column, number, shift

    def stages(self) -> list[list[str]]:
        """The expressions of each stage."""
        return [[f"{text} AS {name}" for text, name in stage.items()] for stage in self._named]

    def _as(self, stage: int, expression: str) -> str:
        named = self._named[stage]
        return named.setdefault(expression, f"{'abcd'[stage]}{len(named)}")

    def _number(self, name: str) -> str:
        """A cell as a double; NULL where there is none."""
        if self._types[self._places[name]] not in (*NUMBERS, "boolean"):
            raise _InPythonError
        return self._as(0, f"CAST({self._places[name]} AS DOUBLE)")

    def _level(self, name: str) -> str:
        """The code of a cell's level, NULL for none."""
        column, place = self._schema[name], self._places[name]
        if isinstance(column, Boolean):
            number = self._number(name)
            otherwise = -1 if column.missing is None else int(column.missing)
            codes = {f"{number} = 1.0D": 1, f"{number} = 0.0D": 0}
        elif isinstance(column, Category):
            codes, otherwise = self._category(column, place, self._types[place])
        else:
            raise _InPythonError
        if len(codes) > MOST_BRANCHES:
            raise _InPythonError
        branches = [(one, f"{code}L") for one, code in codes.items()]
        return self._as(1, _case(branches, _code(otherwise)))

    def _category(self, column: Category, place: str, kind: str) -> tuple[dict[str, int], int]:
        levels = levels_of(column)
        if kind == "boolean":
            sides = ((place, "true"), (f"NOT {place}", "false"))
            found = {side: levels.truths[word] for side, word in sides if word in levels.truths}
        elif kind in NUMBERS:
            number = self._as(0, f"CAST({place} AS DOUBLE)")
            found = {f"{number} = {_double(one)}": code for one, code in levels.numbers.items()}
        elif kind == TEXT and not levels.numbers and not levels.truths:
            cell = self._as(0, f"CAST({place} AS BINARY)")
            found = {f"{cell} = {_bytes(text)}": code for text, code in levels.texts.items()}
        else:
            raise _InPythonError
        return found, levels.otherwise

    def _value(self, name: str) -> str:
        """A cell's number, clamped; NULL where it has no value."""
        column = self._schema[name]
        if isinstance(column, Boolean):
            return self._as(2, f"CAST({self._level(name)} AS DOUBLE)")
        if isinstance(column, Date) or not isinstance(column, (Real, Integer)):
            raise _InPythonError
        number, low, high = self._number(name), _double(column.low), _double(column.high)
        none = "NULL" if column.missing is None else _double(column.missing)
        sides = [(f"{number} IS NULL OR isnan({number})", f"CAST({none} AS DOUBLE)")]
        sides += [(f"{number} < {low}", low), (f"{number} > {high}", high)]
        return self._as(2, _case(sides, number))

    def _factor(self, factor: Factor) -> str:
        """A cell's code on a grid."""
        grid, column = factor.encoding, self._schema[factor.column]
        assert isinstance(column, (Real, Integer, Boolean))
        filled = f"COALESCE({self._value(factor.column)}, {_double(column.fill)})"
        steps = f"({filled} - {_double(grid.center)}) * {_double(grid.per_unit)} + 0.5D"
        return self._as(3, f"LEAST(GREATEST(FLOOR({steps}), {_whole(grid.low)}), {grid.high}L)")

    def _key(self, key: Key) -> str:
        """The place of a row, NULL for none."""
        if isinstance(key, Levels):
            code = self._level(key.column)
            return f"CASE WHEN {code} < {key.size}L THEN {code} END"
        if isinstance(key, (Subset, Split)):
            code = f"COALESCE({self._level(key.column)}, -1L)"
            among = f"{code} IN ({', '.join(map(_whole, key.codes))})" if key.codes else "false"
            return _case([(among, "0L")], "1L" if isinstance(key, Split) else "NULL")
        if isinstance(key, Held):
            column = self._schema[key.column]
            of = self._level if isinstance(column, (Category, Boolean)) else self._value
            return f"CASE WHEN {of(key.column)} IS NOT NULL THEN 0L END"
        if not isinstance(key, (Between, Bins)):
            raise _InPythonError
        value = self._value(key.column)
        if isinstance(key, Between):
            inside = f"{value} >= {_double(key.low)} AND {value} <= {_double(key.high)}"
            return _case([(inside, "0L")], "NULL")
        if len(key.edges) > MOST_BRANCHES:
            raise _InPythonError
        sides = [(f"{value} < {_double(key.edges[0])}", "CAST(NULL AS BIGINT)")]
        sides += [(f"{value} < {_double(e)}", f"{j}L") for j, e in enumerate(key.edges[1:-1])]
        return _case([*sides, (f"{value} <= {_double(key.edges[-1])}", f"{key.size - 1}L")], "NULL")

    def cell(self, keys: tuple[Key, ...], *, absent: int | None = None) -> str:
        """The cell of a row, NULL for none; `absent` is that of rows without a value in a key."""
        cell = "0L"
        for key in keys:
            place = f"({self._key(key)})"
            cell = f"({cell} + {place})" if key.size == 1 else f"({cell} * {key.size}L + {place})"
        if absent is None:
            return cell
        held = " + ".join(f"({self._key(Held(key.column))})" for key in keys)
        return _case([(f"({held or '0L'}) IS NULL", f"{absent}L")], cell)

    def place(self, factor: Factor, stride: int) -> str:
        """The cell of a row by its code."""
        return f"shiftright({self._factor(factor)} - {_whole(factor.encoding.low)}, {stride - 1})"

    def add(self, number: int, term: Term) -> list[str]:
        """The pieces of a product of codes, as columns of the last stage."""
        bits = max(map(abs, term_bounds(term))).bit_length()
        product = " * ".join(self._factor(factor) for factor in term) or "1L"
        shifts = range(0, bits, WIDTH - 1)
        found = []
        for shift in shifts:
            piece = f"shiftright({product}, {shift})" if shift else f"({product})"
            if shift != shifts[-1]:
                piece = f"({piece} & {(1 << (WIDTH - 1)) - 1}L)"
            found.append(f"{piece} AS t{len(self.pieces)}")
            self.pieces.append((f"t{len(self.pieces)}", number, shift))
        return found


def _case(branches: Iterable[tuple[str, str]], otherwise: str) -> str:
    told = " ".join(f"WHEN {when} THEN {then}" for when, then in branches)
    return f"CASE {told} ELSE {otherwise} END" if told else otherwise


def _double(number: float) -> str:
    return f"({float(number)!r}D)"


def _whole(number: int) -> str:
    return f"({number}L)"


def _code(code: int) -> str:
    return "CAST(NULL AS BIGINT)" if code < 0 else f"{code}L"


def _bytes(text: str) -> str:
    try:
        return f"X'{text.encode().hex()}'"
    except UnicodeEncodeError:  # half a surrogate pair: no cell has it
        raise _InPythonError from None


# ── sums that tell a change ───────────────────────────────────────────────────────────────────────


def hashes(key: bytes, places: list[str]) -> list[str]:
    """Columns whose sums modulo 2**64 tell whether a frame has other rows than before: a keyed
    hash of the row, if it has several cells, and of each cell. Spark hashes no NULL, so a row says
    where it has one.
    """
    word = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") >> 2
    row = ", ".join(f"{place}, isnull({place})" for place in places)
    found = [f"xxhash64({word}L, {row})"] if len(places) > 1 else []
    found += [f"xxhash64({word}L, {place})" for place in places]
    return [f"{text} AS h{number}" for number, text in enumerate(found)]


def _word_pieces(number: int) -> list[str]:
    mask = (1 << WIDTH) - 1
    return [
        f"(shiftrightunsigned(h{number}, {shift}) & {mask}L) AS w{number}_{shift}"
        for shift in WORD_PIECES
    ]


# ── answers ───────────────────────────────────────────────────────────────────────────────────────


def native(plan: Any, reading: Any, types: Mapping[str, str]) -> Any:
    """What Spark is asked for a plan (None: the number of rows) over a frame whose columns have
    these types; None: it is answered in Python.
    """
    query = Query(reading.schema, dict(zip(reading.names, reading.places(), strict=True)), types)
    given = SumsPlan((), ((),)) if plan is None else plan
    try:
        if isinstance(given, HistogramPlan):
            width, terms = 1, query.add(0, ())
            place = query.place(given.factor, given.stride)
            cell = f"({query.cell(given.keys)} + {place})"
        elif isinstance(given, SumsPlan) and len(given.terms) <= MOST_TERMS:
            width = len(given.terms)
            terms = [
                one for number, term in enumerate(given.terms) for one in query.add(number, term)
            ]
            absent = given.cells - 1 if given.absent else None
            cell = query.cell(given.keys, absent=absent)
        else:
            return None
    except _InPythonError:
        return None
    words = range(reading.summed - 1)
    last = [f"{cell} AS cell", "1L AS one", *terms]
    last += [piece for number in words for piece in _word_pieces(number)]
    stages = [["*", *stage] for stage in query.stages() if stage]
    return lambda frame: _asked(frame, [*stages, last], query.pieces, width, words)


def _asked(
    frame: Any,
    stages: list[list[str]],
    pieces: list[tuple[str, int, int]],
    width: int,
    words: range,
) -> tuple[dict[int, int], list[int]]:
    """Totals by place, and the sums that tell a change."""
    for stage in stages:
        frame = frame.selectExpr(*stage)
    split = [(f"w{number}_{shift}", number, shift) for number in words for shift in WORD_PIECES]
    asked = dict.fromkeys(["one", *(name for name, *_ in pieces + split)], "sum")
    totals: dict[int, int] = {}
    told = [0] * (1 + len(words))
    for row in frame.groupBy("cell").agg(asked).collect():
        told[0] += row["sum(one)"]
        for name, number, shift in split:
            told[1 + number] += row[f"sum({name})"] << shift
        if row["cell"] is not None:
            for name, number, shift in pieces:
                place = row["cell"] * width + number
                totals[place] = totals.get(place, 0) + (row[f"sum({name})"] << shift)
    if told[0] > MOST_ROWS:
        raise ValueError("more rows than sums of 64 bits are exact for")
    return totals, told
