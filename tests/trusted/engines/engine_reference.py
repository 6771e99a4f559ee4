"""The rules of `schema.py` written naively, cell by cell, for comparison with every engine."""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from decimal import Decimal
from fractions import Fraction

from discreet.schema import Boolean, Category, Integer, Open
from discreet.specs.queries.keys import Between, Bins, Held, Levels, Split

PRIME, MULTIPLIER, INCREMENT = 2147483647, 1583458089, 784588716


def read_number(cell):
    """A float, or None where the cell is missing or not a number."""
    if isinstance(cell, str):
        text = cell.strip(" ").replace("\u2212", "-")
        digits = text.lstrip("+-")
        if (
            len(text) - len(digits) > 1
            or not digits
            or not (digits[0].isdigit() or digits[0] == ".")
            or "_" in text
            or not text.isascii()
        ):
            return None
        try:
            return float(text) if text[-1].isdigit() or text[-1] == "." else None
        except ValueError:
            return None
    if isinstance(cell, bool):
        return float(cell)
    if isinstance(cell, (int, float, Decimal)):
        if cell != cell:
            return None
        try:
            return float(cell)
        except OverflowError:
            return math.inf if cell > 0 else -math.inf
    return None


def clamped(cell, column):
    """The number that a cell counts as; None where it holds none and none is filled in."""
    if isinstance(column, Boolean):
        found = level_code(cell, column)
        return None if found < 0 else float(found)
    number = read_number(cell)
    if number is None:
        return None if column.missing is None else float(column.missing)
    return float(min(max(number, column.low), column.high))


def counted(cell, column):
    """The number that a cell adds to a sum: of one that holds none, the middle of the range."""
    number = clamped(cell, column)
    if number is not None:
        return number
    if isinstance(column, Boolean):
        return 0.0
    if isinstance(column, Integer):
        return float((column.low + column.high) // 2)
    return column.low / 2 + column.high / 2


def code(value, encoding):
    grid = math.floor((value - encoding.center) * encoding.per_unit + 0.5)
    return min(max(grid, encoding.low), encoding.high)


def read_truth(cell):
    """True or False for a boolean and for the words true and false, else None."""
    if isinstance(cell, bool):
        return cell
    return {"true": True, "false": False}.get(cell.strip(" ").lower() if type(cell) is str else "")


def boolean_code(cell, column):
    if isinstance(cell, str) and cell.strip(" ").lower() in ("true", "yes", "y", "t"):
        return 1
    if isinstance(cell, str) and cell.strip(" ").lower() in ("false", "no", "n", "f"):
        return 0
    number = read_number(cell)
    if number in (0.0, 1.0):
        return int(number)
    return -1 if column.missing is None else int(column.missing)


def same_number(cell, level):
    first, second = read_number(cell), read_number(level)
    return first is not None and first == second and abs(second) < 2**53


def plainness(level):
    """Which of several levels that a cell matches counts: the least."""
    if not isinstance(level, str):
        return 1 if isinstance(level, bool) else 0
    number = read_number(level)
    return 2 if number is not None and level == f"{number:.0f}" else 3


def level_code(cell, column):
    if isinstance(column, Boolean):
        return boolean_code(cell, column)
    for position, level in enumerate(column.levels):
        text = ("true" if level else "false") if isinstance(level, bool) else str(level)
        if isinstance(cell, str) and cell == text:
            return position
    if isinstance(cell, bool) or read_number(cell) is None:
        same = lambda level: read_truth(cell) is not None and read_truth(level) is read_truth(cell)
    else:
        same = lambda level: same_number(cell, level)
    found = [place for place, level in enumerate(column.levels) if same(level)]
    if found:
        return min(found, key=lambda place: (plainness(column.levels[place]), place))
    return -1 if column.missing is None else column.index(column.missing)


def key_cell(row, key, schema):
    column = schema[key.column]
    if isinstance(key, Held):
        return -1 if absent(row[key.column], column) else 0
    if isinstance(key, (Bins, Between)):
        if absent(row[key.column], column):
            return -1
        value = Fraction(clamped(row[key.column], column))
        if isinstance(key, Between):
            return 0 if Fraction(key.low) <= value <= Fraction(key.high) else -1
        for place in range(key.size):
            if Fraction(key.edges[place]) <= value < Fraction(key.edges[place + 1]):
                return place
        return key.size - 1 if value == Fraction(key.edges[-1]) else -1
    found = level_code(row[key.column], column)
    if isinstance(key, Levels):
        return found if found < key.size else -1
    return 0 if found in key.codes else (1 if isinstance(key, Split) else -1)


def absent(cell, column):
    """Whether a cell holds no value."""
    if isinstance(column, Category):
        return level_code(cell, column) < 0
    return clamped(cell, column) is None


def cell_of(row, keys, schema):
    cell = 0
    for key in keys:
        here = key_cell(row, key, schema)
        if here < 0:
            return -1
        cell = cell * key.size + here
    return cell


def reference_sums(rows, plan, schema, neighbors):
    result = [[0] * len(plan.terms) for _ in range(plan.cells)]
    for row in bounded(rows, schema, neighbors):
        cell = cell_of(row, plan.keys, schema)
        if plan.absent and any(absent(row[key.column], schema[key.column]) for key in plan.keys):
            cell = plan.cells - 1
        if cell >= 0:
            for place, term in enumerate(plan.terms):
                result[cell][place] += math.prod(
                    code(counted(row[factor.column], schema[factor.column]), factor.encoding)
                    for factor in term
                )
    return result


def reference_histogram(rows, plan, schema, neighbors):
    """{cell of the grid: rows in it}, by sorted cell."""
    found = {}
    for row in bounded(rows, schema, neighbors):
        if cell_of(row, plan.keys, schema) == 0:
            grid = plan.factor.encoding
            steps = (
                code(counted(row[plan.factor.column], schema[plan.factor.column]), grid) - grid.low
            )
            found[steps // plan.stride] = found.get(steps // plan.stride, 0) + 1
    return dict(sorted(found.items()))


def reference_gram(rows, plan, schema, neighbors):
    width = len(plan.factors)
    result = [[0] * width for _ in range(width)]
    for row in bounded(rows, schema, neighbors):
        codes = [
            code(counted(row[factor.column], schema[factor.column]), factor.encoding)
            for factor in plan.factors
        ]
        for i in range(width):
            for j in range(width):
                result[i][j] += codes[i] * codes[j]
    return result


def open_key(cell):
    """The key of a cell of an Open column, or None."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, str):
        return (
            cell
            if 0 < len(cell) <= 200
            and not any(0xD800 <= ord(character) < 0xE000 for character in cell)
            else None
        )
    if isinstance(cell, uuid.UUID):
        return str(cell)
    if not isinstance(cell, (int, float, Decimal)) or cell != cell or cell in (math.inf, -math.inf):
        return None
    exact = Fraction(cell)
    limit = 2**53 if isinstance(cell, float) else 10**38
    return str(int(exact)) if exact.denominator == 1 and abs(exact) < limit else None


def reference_keys(rows, plan, schema, neighbors):
    """Name → count, in the order of the names."""
    found = {}
    for row in bounded(rows, schema, neighbors):
        texts, cell = [open_key(row[name]) for name in plan.open], cell_of(row, plan.keys, schema)
        if cell >= 0 and None not in texts:
            parts = [*texts, *([cell] if plan.cells > 1 else [])]
            name = parts[0] if len(parts) == 1 else json.dumps(parts, ensure_ascii=False)
            found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))


def content(row, schema):
    ordered, hashed = [], []
    for name in sorted(schema):
        column = schema[name]
        if isinstance(column, Open):
            key = open_key(row[name])
            ordered.append(key or "")
            hashed.append(0 if key is None else text_hash(key) + 1)
            continue
        if isinstance(column, Category):
            ordered.append(level_code(row[name], column))
            hashed.append(ordered[-1] + 1)
        else:
            grid = column.encoding()
            value = clamped(row[name], column)
            ordered.append(math.inf if value is None else value)
            hashed.append((grid.high + 1 if value is None else code(value, grid)) - grid.low)
    return tuple(ordered), hashed


def text_hash(text):
    return int.from_bytes(hashlib.md5(text.encode()).digest()[8:], "little") % PRIME


def mix(value):
    return (value * value + value * MULTIPLIER + INCREMENT) % PRIME


def whole_text(unit):
    return "large" if abs(unit) >= 2**128 else str(math.floor(unit))


def bounded(rows, schema, neighbors):
    if neighbors.unit is None:
        return rows
    units = {}
    for row in rows:
        unit = row[neighbors.unit]
        if unit is not None and unit == unit:
            units.setdefault(unit, []).append(row)
    kept = []
    for unit, own in units.items():
        text = (
            unit
            if isinstance(unit, str)
            else ("true" if unit else "false")
            if isinstance(unit, bool)
            else whole_text(unit)
        )
        seed = text_hash(text)
        copies, order = {}, []
        for row in own:
            ordered, hashed = content(row, schema)
            value = seed
            copies[ordered] = copies.get(ordered, -1) + 1
            for part in [*hashed, copies[ordered]]:
                value = mix((value * MULTIPLIER + part) % PRIME)
            for _ in range(3):
                value = mix(value)
            order.append((value, ordered, row))
        order.sort(key=lambda entry: entry[:2])
        kept += [row for _, _, row in order[: neighbors.max_rows]]
    return kept
