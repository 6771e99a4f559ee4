"""The rules of `schema.py` as DuckDB expressions: read, clamp, encode, find the cell. Names and texts are always quoted.

Each expression computes the same float operations, in the same order, as `kernels` and `cells` do in memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from discreet.queries import Between, Bins, Factor, Key, Levels, Split, Term
from discreet.schema import FALSE_TEXT, LONGEST_KEY, MOST_KEY_DIGITS, NUMBER_PATTERN, TRUE_TEXT, Boolean, Category, Column, Integer, Real
from discreet.values import levels_of

Source = Literal["float", "integer", "wide", "decimal", "boolean", "text", "uuid", "nothing"]
_SOURCES: dict[str, Source] = {
    "FLOAT": "float", "DOUBLE": "float", "BOOLEAN": "boolean", "VARCHAR": "text", "JSON": "text", "UUID": "uuid",
    "TINYINT": "integer", "SMALLINT": "integer", "INTEGER": "integer", "BIGINT": "integer",
    "UTINYINT": "integer", "USMALLINT": "integer", "UINTEGER": "integer", "UBIGINT": "integer",
    "HUGEINT": "wide", "UHUGEINT": "wide", "BIGNUM": "wide",
}


def source_kind(type_name: str) -> Source:
    """How cells of a DuckDB type are read; a type that holds neither numbers nor text reads as missing."""
    if type_name.endswith("]"):
        return "nothing"
    if type_name.startswith("DECIMAL("):
        return "decimal"
    return "text" if type_name.startswith("ENUM(") else _SOURCES.get(type_name, "nothing")


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """A text literal; NUL, which ends a statement, is spelled with chr."""
    return "(" + " || chr(0) || ".join("'" + part.replace("'", "''") + "'" for part in text.split("\0")) + ")"


def float_literal(number: float) -> str:
    return f"CAST('{float(number)!r}' AS DOUBLE)"


def number_sql(cell: str, source: Source) -> str:
    """A cell as a DOUBLE; NULL or NaN where it is missing or not a number."""
    if source == "boolean":
        return f"CASE WHEN {cell} THEN 1e0 WHEN NOT {cell} THEN 0e0 END"
    if source == "text":
        trimmed = f"trim(CAST({cell} AS VARCHAR), ' ')"
        return f"CASE WHEN regexp_full_match({trimmed}, '{NUMBER_PATTERN}') THEN TRY_CAST({trimmed} AS DOUBLE) END"
    if source in ("wide", "decimal"):  # through text, which rounds once
        return f"TRY_CAST(CAST({cell} AS VARCHAR) AS DOUBLE)"
    return f"CAST({cell} AS DOUBLE)" if source in ("float", "integer") else "CAST(NULL AS DOUBLE)"


def clamp_sql(number: str, column: Real | Integer) -> str:
    """`kernels.clamp`: NaN is the greatest DOUBLE here, so it is told apart from what lies above the range."""
    low, high = float_literal(column.low), float_literal(column.high)
    return (f"CASE WHEN {number} >= {low} AND {number} <= {high} THEN {number} WHEN {number} > {high} AND NOT isnan({number}) THEN {high}"
            f" WHEN {number} < {low} THEN {low} ELSE {float_literal(column.missing or 0.0)} END")


def boolean_sql(cell: str, source: Source, column: Boolean) -> str:
    """`cells.boolean_codes`: 0 or 1."""
    otherwise = int(column.missing)
    if source == "boolean":
        yes, no = cell, f"NOT {cell}"
    elif source == "text":
        word = f"lower(trim(CAST({cell} AS VARCHAR), ' '))"
        yes, no = (f"{word} IN ({', '.join(map(text_literal, words))})" for words in (TRUE_TEXT, FALSE_TEXT))
    else:
        number = number_sql(cell, source)
        yes, no = f"{number} = 1e0", f"{number} = 0e0"
    return f"CASE WHEN {yes} THEN 1 WHEN {no} THEN 0 ELSE {otherwise} END"


def category_sql(cell: str, source: Source, column: Category) -> str:
    """`cells.category_codes`, NULL where there is no level; `level_types` are looked up."""
    if source == "text":
        code = f"enum_code(TRY_CAST(CAST({cell} AS VARCHAR) AS {identifier(cell + ' text')}))"
    elif source == "boolean":
        codes = {level if isinstance(level, str) else str(level).lower(): code for code, level in enumerate(column.levels)}
        code = f"CASE WHEN {cell} THEN {codes.get('true', 'NULL')} WHEN NOT {cell} THEN {codes.get('false', 'NULL')} END"
    else:
        code = _number_level_sql(number_sql(cell, source), column, cell)
    missing = column.missing_code
    return f"CAST({code} AS INTEGER)" if missing < 0 else f"coalesce(CAST({code} AS INTEGER), {missing})"


def open_sql(cell: str, source: Source) -> str:
    """`cells.open_labels`: the text of an Open column's key, NULL where there is none."""
    text = f"CAST({cell} AS VARCHAR)"
    if source == "text":
        return f"CASE WHEN length({text}) BETWEEN 1 AND {LONGEST_KEY} THEN {text} END"
    if source == "boolean":
        return f"CASE WHEN {cell} THEN 'true' WHEN NOT {cell} THEN 'false' END"
    if source == "wide":
        return f"CASE WHEN length(ltrim({text}, '-')) <= {MOST_KEY_DIGITS} THEN {text} END"
    if source == "decimal":
        return f"CASE WHEN regexp_full_match({text}, '-?[0-9]+([.]0*)?') THEN split_part({text}, '.', 1) END"
    if source == "float":
        number = f"CAST({cell} AS DOUBLE)"
        return f"CASE WHEN abs({number}) < {float_literal(2.0**53)} AND {number} = floor({number}) THEN CAST(CAST({number} AS BIGINT) AS VARCHAR) END"
    return text if source in ("integer", "uuid") else "CAST(NULL AS VARCHAR)"


def _number_level_sql(number: str, column: Category, cell: str) -> str:
    known = levels_of(column).numbers
    if not known:
        return "NULL"
    if _consecutive(known):
        first, last = min(known), max(known)
        return f"CASE WHEN {number} >= {float_literal(first)} AND {number} <= {float_literal(last)} AND {number} = floor({number}) THEN {number} - {float_literal(first)} END"
    place = f"enum_code(TRY_CAST(CAST({number} + 0e0 AS VARCHAR) AS {identifier(cell + ' number')}))"
    return f"list_extract({list(known.values())}, {place} + 1)"


def _consecutive(known: Mapping[float, int]) -> bool:
    """Whether the levels are the whole numbers first, first + 1, …, so that a code is a difference."""
    first = next(iter(known), 0.0)
    return first == math.floor(first) and all(value == first + code for value, code in known.items())


def level_types(column: Category, source: Source, cell: str) -> list[tuple[str, list[str] | list[float]]]:
    """The statements, with their parameter, that define the ENUM types `category_sql` looks levels up in."""
    if source == "text":
        texts = [level if isinstance(level, str) else str(level).lower() for level in column.levels]
        return _enum_type(cell + " text", "VARCHAR", texts)
    if source in ("boolean", "uuid", "nothing"):
        return []
    known = levels_of(column).numbers
    return [] if _consecutive(known) else _enum_type(cell + " number", "DOUBLE", list(known))


def _enum_type(name: str, kind: str, values: list[str] | list[float]) -> list[tuple[str, list[str] | list[float]]]:
    if not values:
        return []
    table = identifier(name + " values")
    return [
        (f"CREATE TEMP TABLE {table} AS SELECT unnest(CAST(? AS {kind}[])) AS level, generate_subscripts(CAST(? AS {kind}[]), 1) AS place", values),
        (f"CREATE TYPE {identifier(name)} AS ENUM (SELECT CAST(level AS VARCHAR) FROM {table} ORDER BY place)", []),
    ]


def code_sql(value: str, factor: Factor, column: Column) -> str:
    """`kernels.encode` of a clamped value; the clip is left out where no clamped value could need it."""
    grid = factor.encoding
    code = f"floor(({value} - {float_literal(grid.center)}) * {float_literal(grid.per_unit)} + 0.5e0)"
    low, high = (0.0, 1.0) if isinstance(column, Boolean) else (float(column.low), float(column.high)) if isinstance(column, (Real, Integer)) else (-math.inf, math.inf)
    ends = [(bound - grid.center) * grid.per_unit + 0.5 for bound in (low, high)]
    if not (grid.low <= ends[0] and ends[1] < grid.high + 1):  # the code rises with the value, so its ends bound it
        code = f"greatest(least({code}, {float_literal(grid.high)}), {float_literal(grid.low)})"
    return f"CAST({code} AS {'SMALLINT' if factor.largest < 1 << 15 else 'INTEGER'})"


def term_sql(term: Term, names: Mapping[Factor, str]) -> str:
    """The exact sum of a product of codes: BIGINT products (below 2**47) in a 128-bit sum."""
    if not term:
        return "count(*)"
    first, *others = (names[factor] for factor in term)
    return f"sum({first})" if not others else f"sum(CAST({first} AS BIGINT) * {' * '.join(others)})"


def key_sql(key: Key, column: str) -> str:
    """A key's cell, NULL for no cell; `column` names the clamped value (Bins, Between) or the level's code."""
    if isinstance(key, Bins):
        inside = f"{column} >= {float_literal(key.edges[0])} AND {column} <= {float_literal(key.edges[-1])}"
        return f"CASE WHEN {inside} THEN {_search_sql(column, key.edges, 0, key.size)} END"
    if isinstance(key, Between):
        return f"CASE WHEN {column} >= {float_literal(key.low)} AND {column} <= {float_literal(key.high)} THEN 0 END"
    if isinstance(key, Levels):
        return f"CASE WHEN {column} < {key.size} THEN {column} END"
    codes = ", ".join(str(int(code)) for code in key.codes)
    if isinstance(key, Split):
        return f"CASE WHEN {column} IN ({codes or 'NULL'}) THEN 0 ELSE 1 END"
    return f"CASE WHEN {column} IN ({codes}) THEN 0 END" if codes else "CAST(NULL AS INTEGER)"


def _search_sql(column: str, edges: Sequence[float], first: int, end: int) -> str:
    """Binary search among the edges, as nested conditions."""
    if end - first == 1:
        return str(first)
    middle = (first + end) // 2
    return f"CASE WHEN {column} < {float_literal(edges[middle])} THEN {_search_sql(column, edges, first, middle)} ELSE {_search_sql(column, edges, middle, end)} END"


def unit_sql(cell: str, source: Source) -> tuple[str, str]:
    """A unit's id as it is compared (missing: NULL), and its seed text (`cells.seed_text`)."""
    if source == "float":
        known = f"CASE WHEN NOT isnan({cell}) THEN CAST({cell} AS DOUBLE) + 0e0 END"
        text = f"CASE WHEN isnan({cell}) THEN '' WHEN abs({cell}) < 9223372036854775808e0 THEN CAST(CAST(floor({cell}) AS BIGINT) AS VARCHAR) ELSE 'large' END"
        return known, f"coalesce({text}, '')"
    text = f"floor({cell})" if source == "decimal" else cell
    return cell, f"coalesce(CAST({text} AS VARCHAR), '')"
