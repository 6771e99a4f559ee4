"""Declared columns: what is public about them,
and the total rule for every value that does not fit.

No exception, warning or row count may depend on what a cell holds,
so each kind of column has a fixed rule:

| what the cell holds | Real, Integer | Boolean | Category |
|-----------------------------------|----------------------------------------|----------------------
| None, NaN, a missing value   | ``missing`` (default: the midpoint) | ``missing``
(False)  | ``missing``, or no level | | below or above the range, ±inf | the nearest
bound | ``missing``   | ``missing``, or no level | | text | read as a decimal number, else
``missing`` | true/false/1/0, else ``missing`` | compared as text | | a wrong type
(date, list, …) | ``missing``   | ``missing`` | ``missing``, or no level | | a level that was not
declared   | – | – | ``missing``, or no level | | an integer beyond 64 bits | the nearest
bound | ``missing`` | ``missing``, or no level | | −0.0, subnormal | 0 (encoded like any
number) | False | equal to 0   |

Rows are never dropped. A Category row with no level stays in the data and falls in no cell.
An `Open` column, whose values nobody lists, has its own table of which cells have a key; a row
without one falls in no cell. Numbers are encoded as fixed-point integers (`Encoding`):
code = clip(⌊(x − center)·per_unit + ½⌋, low, high), one float subtraction, one multiplication, one
addition and one floor, which every engine computes alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn

from discreet import plain
from discreet.errors import InvalidParameter, UndeclaredColumn, shown
from discreet.exact import fraction_text, rational

LARGEST_EXACT_FLOAT = 2**53
# fourth powers of values, times the noise, are floats well within their range
LARGEST_BOUND, SMALLEST_WIDTH = 1e60, 1e-60
LARGEST_LEVELS = 1 << 20
LARGEST_LEVEL_BITS = 128
LONGEST_KEY = 200  # characters of an Open column's text
MOST_KEY_DIGITS = 38  # of an Open column's whole number
# the decimal grammar of text cells, on every engine
NUMBER_PATTERN = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
TRUE_TEXT, FALSE_TEXT = ("true", "1"), ("false", "0")
_NUMBER = re.compile(NUMBER_PATTERN)
_UNDECLARED: Any = None
_BOUNDS_WHY = "bounds set the noise and are never read from the data"


@plain.kept()
@dataclass(frozen=True, slots=True)
class Encoding:
    """The fixed-point grid of a number column:
    value = center + code / per_unit, low ≤ code ≤ high (low = −high).
    """

    center: float
    per_unit: float
    low: int
    high: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", plain.number(self.center, "an encoding"))
        object.__setattr__(self, "per_unit", plain.number(self.per_unit, "an encoding"))
        if type(self.low) is not int or type(self.high) is not int:
            raise InvalidParameter(
                "an encoding",
                "its bounds are no whole numbers",
                "codes are counted, and sensitivities are exact",
                "take it from a declared column",
            )
        if not (
            math.isfinite(self.center)
            and 0 < self.per_unit < math.inf
            and self.low < self.high
            and max(-self.low, self.high) <= _codes(32)
            # of every declared value: no step of encoding it overflows, in whichever pass
            and math.isfinite((LARGEST_BOUND + abs(self.center)) * self.per_unit)
            and math.isfinite(abs(self.center) + _codes(32) / self.per_unit)
        ):
            raise InvalidParameter(
                "an encoding",
                "it is no finite grid of 32-bit codes",
                "a code outside its bounds would break the sensitivity",
                "take it from a declared column",
            )

    @property
    def step(self) -> Fraction:
        """What one code is worth, exactly."""
        return 1 / Fraction(self.per_unit)

    @property
    def is_exact(self) -> bool:
        """Whether every admissible value is a grid point (whole-number columns)."""
        return self.per_unit == 2.0

    def value(self, code: int) -> Fraction:
        return Fraction(self.center) + code * self.step


@plain.kept()
@dataclass(frozen=True, slots=True)
class Real:
    """A real column on the declared range [low, high], encoded with 16 bits (or 32 where asked)."""

    low: float = _UNDECLARED
    high: float = _UNDECLARED
    missing: float | None = None
    bits: int = 16
    kind: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        low, high = _bounds("Real", self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        _bits(self.bits)
        width = high - low
        if width < SMALLEST_WIDTH or max(abs(low), abs(high)) > LARGEST_BOUND:
            raise InvalidParameter(
                "Real bounds",
                "their range overflows the grid",
                "values are encoded as fixed-point integers on it",
                "rescale the column to a range of ordinary size",
            )
        if width / (2 * _codes(self.bits)) < 4 * math.ulp(max(abs(low), abs(high))):
            raise InvalidParameter(
                "Real bounds",
                "the floats between them are coarser than the column's grid",
                "values could not be told apart",
                "subtract a public offset from the column first",
            )
        object.__setattr__(self, "missing", _missing(self.missing, low, high, (low / 2 + high / 2)))

    def encoding(self, bits: int | None = None) -> Encoding:
        """The column's own grid, or a coarser one of `bits` bits."""
        codes = _codes(min(bits or self.bits, self.bits))
        return Encoding(
            self.low / 2 + self.high / 2, codes / ((self.high - self.low) / 2), -codes, codes
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "low": self.low,
            "high": self.high,
            "missing": self.missing,
            "bits": self.bits,
        }


@plain.kept()
@dataclass(frozen=True, slots=True)
class Integer:
    """A whole-number column on the declared range [low, high];
    exact, every whole number is a grid point.
    """

    low: int = _UNDECLARED
    high: int = _UNDECLARED
    missing: float | None = None
    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        low, high = _bounds("Integer", self.low, self.high)
        if low != int(low) or high != int(high):
            raise InvalidParameter(
                "Integer bounds",
                "they are not whole numbers",
                _BOUNDS_WHY,
                "use whole numbers, or declare the column as Real",
            )
        if high - low > _codes(32) or max(abs(low), abs(high)) > LARGEST_EXACT_FLOAT / 2:
            raise InvalidParameter(
                "Integer bounds",
                "their range overflows the 32-bit grid",
                "values are encoded as fixed-point integers on it",
                "declare the column as Real, or narrow the range",
            )
        object.__setattr__(self, "low", int(low))
        object.__setattr__(self, "high", int(high))
        object.__setattr__(
            self, "missing", _missing(self.missing, low, high, float((int(low) + int(high)) // 2))
        )

    def encoding(self, bits: int | None = None) -> Encoding:
        """Half-unit codes about the midpoint, so that the range is symmetric;
        a coarser grid if `bits` asks for one.
        """
        width, center = self.high - self.low, (self.low + self.high) / 2
        if bits is not None and width > _codes(bits):
            return Encoding(center, _codes(bits) / (width / 2), -_codes(bits), _codes(bits))
        return Encoding(center, 2.0, -width, width)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "low": self.low, "high": self.high, "missing": self.missing}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Boolean:
    """A yes/no column; True counts as 1. A value that is neither becomes `missing`."""

    missing: bool = False
    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        if not isinstance(self.missing, bool):
            raise InvalidParameter(
                "Boolean(missing=)",
                "neither True nor False",
                "every cell must become one of the two",
                "pass missing=False or missing=True",
            )

    def encoding(self, bits: int | None = None) -> Encoding:
        return Encoding(0.5, 2.0, -1, 1)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "missing": self.missing}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Category:
    """A column of declared levels (text, whole numbers or booleans).

    Text cells are compared as text, number cells by value with the levels that read as numbers.
    A cell that matches no level becomes `missing` if one was named (it must be a declared level),
    else it has no level.
    """

    levels: Sequence[str | int | bool]
    missing: str | int | bool | None = None
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        if isinstance(self.levels, str) or not hasattr(self.levels, "__iter__"):
            raise _bad_levels("they are not a list")
        levels = tuple(plain.members(self.levels, "Category levels"))
        if not 1 <= len(levels) <= LARGEST_LEVELS:
            raise _bad_levels(f"there must be 1 to {LARGEST_LEVELS} of them")
        if not all(isinstance(level, (str, int)) for level in levels):
            raise _bad_levels("each must be text, a whole number or a boolean")
        if any(
            isinstance(level, int) and level.bit_length() > LARGEST_LEVEL_BITS for level in levels
        ):
            raise _bad_levels(f"a whole number has more than {LARGEST_LEVEL_BITS} bits")
        if len({level_text(level) for level in levels}) != len(levels):
            raise _bad_levels("two of them are the same")
        object.__setattr__(self, "levels", levels)
        if self.missing is not None and not self._has(self.missing):
            raise InvalidParameter(
                "Category(missing=)",
                "it is not one of the declared levels",
                "every cell must become a declared level or none",
                "name a declared level, or leave it out",
            )

    def __eq__(self, other: object) -> bool:
        """Levels are the same only if their types are: 1 and True are read from other cells."""
        return type(other) is Category and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((self.levels, self.missing))

    def _identity(self) -> tuple[object, ...]:
        return (self.levels, tuple(map(type, self.levels)), self.missing, type(self.missing))

    def index(self, level: object) -> int:
        """The code of a declared level."""
        level = plain.value(level, "level")
        for code, known in enumerate(self.levels if self._has(level) else ()):
            if level_text(known) == level_text(level):  # type: ignore[arg-type]
                return code
        raise InvalidParameter(
            f"level {shown(level)}",
            f"not declared ({len(self.levels)} levels are)",
            "only declared levels have cells",
            "add it to the column's levels",
        )

    def _has(self, level: object) -> bool:
        if not isinstance(level, (str, int)) or (
            isinstance(level, int) and int.bit_length(level) > LARGEST_LEVEL_BITS
        ):
            return False
        return level_text(level) in {level_text(known) for known in self.levels}

    @property
    def missing_code(self) -> int:
        return -1 if self.missing is None else self.index(self.missing)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "levels": list(self.levels), "missing": self.missing}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Open:
    """A column whose values nobody lists: a table can be grouped by it (``by=``), at a price in δ,
    and nothing else.

    | what the cell holds | its
    key |
    |---------------------------------------------|-------------------------------------------------
    | text of 1 to 200 characters   | the text, character by character (no trimming, no normal
    form)  | | a whole number of up to 38 digits   | its decimal text: 3 and "3" are one key | | a
    float that is whole and below 2**53   | the same: 3.0 has the key "3", −0.0 the key "0" | | a
    whole decimal number of up to 38 digits   | the same   | | a boolean | "true" or "false" | | a
    UUID   | its usual text   | | a missing value, empty or longer text, text that is not Unicode,
    any other number, a date, a list, bytes | none |

    A character is a Unicode code point. Two spellings that look alike (é as one code point or as
    two) are two keys.
    """

    kind: ClassVar[str] = "open"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


Column = Real | Integer | Boolean | Category | Open
Number = Real | Integer | Boolean
_KINDS: dict[str, type[Column]] = {
    kind.kind: kind for kind in (Real, Integer, Boolean, Category, Open)
}


class Schema(Mapping[str, Column]):
    """The declared columns by name; immutable:
    names and columns are rebuilt, and nothing can be assigned.
    """

    __slots__ = ("_columns",)
    _columns: Mapping[str, Column]

    def __init__(self, columns: Mapping[str, Column]) -> None:
        columns = columns._columns if type(columns) is Schema else columns
        columns = plain.value(columns, "schema=")
        if type(columns) is not dict or not columns:
            raise InvalidParameter(
                "schema=",
                "not a mapping from column names to declarations",
                _BOUNDS_WHY,
                "pass for example {'age': dp.Integer(18, 90)}",
            )
        for name, column in columns.items():
            if not isinstance(name, str) or not name:
                raise InvalidParameter(
                    "schema=",
                    "a column name is not text",
                    "columns are found by name",
                    "use the column names of the data",
                )
            if not plain.among(type(column), _KINDS.values()):
                raise InvalidParameter(
                    f"schema[{name!r}]",
                    f"a {plain.kind_name(column)} is not a declaration",
                    _BOUNDS_WHY,
                    "use dp.Real(low, high), dp.Integer(low, high), dp.Category(levels), "
                    "dp.Boolean() or, for keys that nobody lists, dp.Open()",
                )
        object.__setattr__(self, "_columns", MappingProxyType(columns))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a schema is declared once")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a schema is declared once")

    def __reduce__(self) -> tuple[Any, ...]:
        return Schema, (dict(self._columns),)

    def __getitem__(self, name: str) -> Column:
        if not plain.derives(type(name), str) or str.__str__(name) not in self._columns:
            raise UndeclaredColumn(name, self._columns)
        return self._columns[str.__str__(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return plain.derives(type(name), str) and str.__str__(name) in self._columns

    def __repr__(self) -> str:
        return f"Schema({dict(self._columns)!r})"

    def to_dict(self) -> dict[str, Any]:
        return {name: column.to_dict() for name, column in self._columns.items()}


def column_from_dict(record: dict[str, Any]) -> Column:
    fields = dict(record)
    kind = _KINDS[fields.pop("kind")]
    if "levels" in fields:
        fields["levels"] = tuple(fields["levels"])
    return kind(**fields)


def level_text(level: str | int | bool) -> str:
    """How a level is written where cells are text."""
    if isinstance(level, bool):
        return "true" if level else "false"
    return str(level)


def level_number(level: str | int | bool) -> float | None:
    """The number a level stands for where cells are numbers, if it reads as one below 2**53
    (beyond, floats merge whole numbers).
    """
    if isinstance(level, str):
        number = text_number(level)
        return number if number is not None and abs(number) < LARGEST_EXACT_FLOAT else None
    return float(level) if abs(int(level)) < LARGEST_EXACT_FLOAT else None


def text_number(text: str) -> float | None:
    """A text cell read as a decimal number (surrounding blanks allowed), else None."""
    stripped = text.strip(" ")
    return float(stripped) if _NUMBER.fullmatch(stripped) else None


def _codes(bits: int) -> int:
    return (1 << (bits - 1)) - 1


def _bits(bits: object) -> None:
    if type(bits) is not int or bits not in (16, 32):
        raise InvalidParameter(
            "bits=",
            "neither 16 nor 32",
            "columns are encoded as int16 or int32",
            "pass bits=16 (default) or bits=32 for a finer grid",
        )


def _bounds(what: str, low: object, high: object) -> tuple[float, float]:
    asked = f"{what} bounds"
    if low is None or high is None:
        raise InvalidParameter(
            asked,
            "they were not given",
            _BOUNDS_WHY,
            f"declare the smallest and largest admissible value, for example dp.{what}(0, 100)",
        )
    bounds = (rational(low, asked), rational(high, asked))
    if bounds[0] >= bounds[1]:
        raise InvalidParameter(
            asked,
            f"low={fraction_text(bounds[0])} is not below high={fraction_text(bounds[1])}",
            _BOUNDS_WHY,
            "give the smallest admissible value first",
        )
    try:
        low_float, high_float = float(bounds[0]), float(bounds[1])
    except OverflowError:
        low_float = high_float = math.inf
    if not low_float < high_float:
        raise InvalidParameter(
            asked,
            "their range overflows the grid",
            _BOUNDS_WHY,
            "rescale the column to a range of ordinary size",
        )
    return low_float, high_float


def _missing(value: object, low: float, high: float, default: float) -> float:
    if value is None:
        return default
    number = float(rational(value, "missing="))
    if not low <= number <= high:
        raise InvalidParameter(
            "missing=",
            "outside the declared range",
            "it stands for values that cannot be used and is bounded like them",
            "choose a value between the bounds",
        )
    return number


def _bad_levels(found: str) -> InvalidParameter:
    return InvalidParameter(
        "Category levels",
        found,
        "levels are declared, never learnt from the data",
        "pass a list such as ['N', 'S', 'E', 'W']",
    )
