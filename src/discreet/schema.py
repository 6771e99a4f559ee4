"""Declared columns: what is public about them,
and the total rule for every value that does not fit.

No exception, warning or row count may depend on what a cell holds,
so each kind of column has a fixed rule:

| what the cell holds            | Real, Integer           | Boolean      | Category           |
|--------------------------------|-------------------------|--------------|--------------------|
| None, NaN, a missing value     | ``missing``             | ``missing``  | no level           |
| a number                       | itself                  | 1 or 0       | by value           |
| below or above the range, ±inf | the nearest bound       | ``missing``  | no level           |
| text that reads as a number    | the number              | 1 or 0       | as text, else by   |
|                                |                         |              | value              |
| text of truth                  | ``missing``             | yes or no    | as text, else by   |
|                                |                         |              | truth              |
| any other text                 | ``missing``             | ``missing``  | as text            |
| a boolean                      | 1 or 0                  | itself       | by truth           |
| a wrong type (date, list, …)   | ``missing``             | ``missing``  | no level           |
| an integer beyond 64 bits      | the nearest bound       | ``missing``  | no level           |
| −0.0, subnormal                | 0, as any number        | no; neither  | equal to 0; itself |

``missing`` is what the declaration names; where it names nothing the cell has no value, and a
statistic leaves its row out (docs/theory/missing.md). A Category with ``missing`` gives that level
where the table says "no level".

One cell has one meaning, whatever holds it (Parquet, CSV, a frame, a list):

- *Text reads as a number* by one decimal grammar: digits with at most one point, an optional
  exponent, a sign (+, - or the typographic minus U+2212), spaces around it. "1", " 1", "1.0" and
  "1e0" are one number. "1,5", "1 000", "0x1", "inf" and "nan" are none.
- *Text of truth* is true/false, yes/no, y/n or t/f in any case, spaces around it; of numbers, and
  of text that reads as one, 1 is yes and 0 is no.
- *A level by text* equals the cell character by character ("01" and "1" are two levels). This comes
  first, so that a text level stays text.
- *A level by value* is a whole number, or a text that reads as a number, below 2**53, and equals
  the cell's number; True and False count as 1 and 0. Of several the whole number counts, then the
  text that is the number's usual one ("1"), then the first in order. Levels that differ in their
  spelling alone are so told apart in columns of text only.
- *A level by truth* is True or False, or the word true or false in any case; of several the one
  that is no text counts, then the first in order. Cells that are words match it in any case.

No row is dropped from the data. A Category row with no level stays and falls in no cell.
An `Open` column, whose values nobody lists, has its own table of which cells have a key; a row
without one falls in no cell. A `Date` column has whole days as its numbers. Numbers are encoded as
fixed-point integers (`Encoding`): code = clip(⌊(x − center)·per_unit + ½⌋, low, high), one float
subtraction, one multiplication, one addition and one floor, which every engine computes alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn

from discreet import dates, plain
from discreet.encoding import LARGEST_BOUND, Encoding, largest_code
from discreet.errors import InvalidParameter, UndeclaredColumn, shown
from discreet.errors.data import near_names, no_range_of_dates
from discreet.exact import fraction_text, rational

LARGEST_EXACT_FLOAT = 2**53
SMALLEST_WIDTH = 1e-60
LARGEST_LEVELS = 1 << 20
LARGEST_LEVEL_BITS = 128
LONGEST_KEY = 200  # characters of an Open column's text
MOST_KEY_DIGITS = 38  # of an Open column's whole number
# the decimal grammar of text cells, on every engine
NUMBER_PATTERN = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
MINUS = "\u2212"  # the typographic minus, read as "-"
TRUE_TEXT, FALSE_TEXT = ("true", "yes", "y", "t"), ("false", "no", "n", "f")
_NUMBER = re.compile(NUMBER_PATTERN)
_UNDECLARED: Any = None
_BOUNDS_WHY = "bounds set the noise and are never read from the data"


@plain.kept()
@dataclass(frozen=True, slots=True)
class Real:
    """A real column on the declared range [low, high], encoded with 16 bits (or 32 where asked).
    Validity. The range is public: never read it from the data.
    Example.  print(dp.Real(0, 200_000), dp.Real(0, 1, missing=0.5))
    See also. `dp.Integer`, `dp.unbounded_mean`; docs/deciding/choosing.md.
    """

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
        if width / (2 * largest_code(self.bits)) < 4 * math.ulp(max(abs(low), abs(high))):
            raise InvalidParameter(
                "Real bounds",
                "the floats between them are coarser than the column's grid",
                "values could not be told apart",
                "subtract a public offset from the column first",
            )
        object.__setattr__(self, "missing", _missing(self.missing, low, high))

    @property
    def fill(self) -> float:
        """What stands for a cell without a value where some number must."""
        return self.low / 2 + self.high / 2 if self.missing is None else self.missing

    def encoding(self, bits: int | None = None) -> Encoding:
        """The column's own grid, or a coarser one of `bits` bits."""
        codes = largest_code(min(bits or self.bits, self.bits))
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
    Example.  print(dp.Integer(18, 90))
    See also. `dp.Real`, `dp.Category`.
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
        if high - low > largest_code(32) or max(abs(low), abs(high)) > LARGEST_EXACT_FLOAT / 2:
            raise InvalidParameter(
                "Integer bounds",
                "their range overflows the 32-bit grid",
                "values are encoded as fixed-point integers on it",
                "declare the column as Real, or narrow the range",
            )
        object.__setattr__(self, "low", int(low))
        object.__setattr__(self, "high", int(high))
        object.__setattr__(self, "missing", _missing(self.missing, low, high))

    @property
    def fill(self) -> float:
        """What stands for a cell without a value where some number must."""
        return float((self.low + self.high) // 2) if self.missing is None else self.missing

    def encoding(self, bits: int | None = None) -> Encoding:
        """Half-unit codes about the midpoint, so that the range is symmetric;
        a coarser grid if `bits` asks for one.
        """
        width, center = self.high - self.low, (self.low + self.high) / 2
        if bits is not None and width > largest_code(bits):
            return Encoding(
                center, largest_code(bits) / (width / 2), -largest_code(bits), largest_code(bits)
            )
        return Encoding(center, 2.0, -width, width)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "low": self.low, "high": self.high, "missing": self.missing}


@plain.kept()
@dataclass(frozen=True, slots=True, repr=False)
class Date(Integer):
    """A column of days on the declared range, ISO text or `datetime.date`:
    ``Date("2020-01-01", "2024-12-31")``.

    A cell is read as its whole days since the first day (`low` is 0), exactly: dates and times of
    Arrow, pandas, polars, numpy and Python, and ISO 8601 text. A time with a zone or an offset is
    the instant in UTC, one without is taken as it stands (`discreet.dates`). Anything else, numbers
    included, is missing; what lies outside is the nearest bound.
    Example.  print(dp.Date("2024-01-01", "2024-12-31"))
    See also. `dp.Datetime`; docs/how-to/dates.md.
    """

    origin: str | None = None
    kind: ClassVar[str] = "date"
    seconds: ClassVar[int] = dates.DAY

    def __post_init__(self) -> None:
        if self.origin is None:
            low, high = self.moment(self.low), self.moment(self.high)
            object.__setattr__(self, "origin", dates.text_of(low, self.seconds))
            object.__setattr__(self, "low", 0)
            object.__setattr__(self, "high", (high - low) // self.seconds)
            if self.missing is not None:
                object.__setattr__(self, "missing", self.number(self.missing))
        if self.moment(self.origin) % self.seconds or self.low != 0 or self.high < 1:
            raise no_range_of_dates(type(self).__name__, "the first is not before the last")
        if self.high > largest_code(32):
            raise no_range_of_dates(type(self).__name__, "it spans more than 68 years of seconds")
        Integer.__post_init__(self)

    def moment(self, given: object) -> int:
        """Seconds since 1970 at which a declared date or time begins."""
        found = dates.seconds_of(given)
        if found is None:
            raise no_range_of_dates(type(self).__name__, f"{shown(given)} is no date")
        return found // self.seconds * self.seconds

    def number(self, given: object) -> int:
        """The whole number that stands for a date or time, which may lie outside the range."""
        return (self.moment(given) - self.moment(self.origin)) // self.seconds

    def text(self, number: float) -> str:
        """The date, or time, that a number of the column stands for, rounded down."""
        whole = min(max(math.floor(number), self.low), self.high)
        return dates.text_of(self.moment(self.origin) + whole * self.seconds, self.seconds)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text(self.low)!r}, {self.text(self.high)!r})"

    def to_dict(self) -> dict[str, Any]:
        missing = self.missing
        return {
            "kind": self.kind,
            "low": self.text(self.low),
            "high": self.text(self.high),
            "missing": None if missing is None else self.text(missing),
        }


@plain.kept()
@dataclass(frozen=True, slots=True, repr=False)
class Datetime(Date):
    """A column of moments on the declared range, to the second: ``Datetime("2024-01-01",
    "2024-12-31 23:59:59")``; read as `Date` is, as whole seconds since the first moment. The range
    spans at most 68 years.
    Example.  print(dp.Datetime("2024-01-01", "2024-12-31 23:59:59"))
    See also. `dp.Date`; docs/how-to/dates.md.
    """

    kind: ClassVar[str] = "datetime"
    seconds: ClassVar[int] = 1


@plain.kept()
@dataclass(frozen=True, slots=True)
class Boolean:
    """A yes/no column; True counts as 1. A cell that is neither has no value, or becomes `missing`
    where one was named.
    Example.  print(dp.Boolean(), dp.Boolean(missing=False))
    See also. `dp.Category`, `dp.proportion`.
    """

    missing: bool | None = None
    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        if not isinstance(self.missing, bool | None):
            raise InvalidParameter(
                "Boolean(missing=)",
                "neither True nor False",
                "every cell must become one of the two, or be left out",
                "pass missing=False or missing=True, or leave it out",
            )

    @property
    def fill(self) -> bool:
        """What stands for a cell without a value where True or False must."""
        return bool(self.missing)

    def encoding(self, bits: int | None = None) -> Encoding:
        return Encoding(0.5, 2.0, -1, 1)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "missing": self.missing}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Category:
    """A column of declared levels (text, whole numbers or booleans).

    Cells are compared as text first, then by value with the levels that read as numbers, then by
    truth with those that read as true or false (the rules stand at the head of `schema.py`).
    A cell that matches no level becomes `missing` if one was named (it must be a declared level),
    else it has no level.
    Example.  print(dp.Category(["school", "vocational", "degree"]))
    See also. `dp.Boolean`, `dp.Open`, `dp.table`.
    """

    levels: Sequence[str | int | bool]
    missing: str | int | bool | None = None
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        if isinstance(self.levels, str) or not hasattr(self.levels, "__iter__"):
            raise _bad_levels("they are not a list")
        if isinstance(self.levels, Set):
            raise _bad_levels("they are a set, which has no order, and the first level is the base")
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
        words = [level_text(known) for known in self.levels[:1000]]
        near = near_names(level[:LONGEST_KEY], words) if isinstance(level, str) else []
        raise InvalidParameter(
            f"level {shown(level)}",
            f"not declared ({len(self.levels)} levels are)",
            "only declared levels have cells",
            f"did you mean {near[0]!r}?" if near else "add it to the column's levels",
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

    | what the cell holds                      | its key                                       |
    |------------------------------------------|-----------------------------------------------|
    | text of 1 to 200 characters              | the text, character by character (no trimming |
    |                                          | and no normal form: "3" and "3.0" are two)    |
    | a whole number of up to 38 digits        | its decimal text: 3 and "3" are one key       |
    | a float that is whole and below 2**53    | the same: 3.0 has the key "3", −0.0 "0"       |
    | a whole decimal of up to 38 digits       | the same                                      |
    | a boolean                                | "true" or "false"                             |
    | a UUID                                   | its usual text                                |
    | a missing value, empty or longer text,   | none                                          |
    | text that is not Unicode, any other      |                                               |
    | number, a date, a list, bytes            |                                               |

    A character is a Unicode code point. Two spellings that look alike (é as one code point or as
    two) are two keys.
    Example.  print(dp.Schema({"city": dp.Open(), "cost": dp.Real(0, 300)}))
    See also. `dp.Category`, `dp.table`; docs/how-to/open-keys.md.
    """

    kind: ClassVar[str] = "open"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


Column = Real | Integer | Date | Datetime | Boolean | Category | Open
Number = Real | Integer | Boolean
_KINDS: dict[str, type[Column]] = {
    kind.kind: kind for kind in (Real, Integer, Date, Datetime, Boolean, Category, Open)
}


class Schema(Mapping[str, Column]):
    """The declared columns by name; immutable:
    names and columns are rebuilt, and nothing can be assigned.
    Example.  print(dp.Schema({"age": dp.Integer(18, 90), "member": dp.Boolean()}))
    See also. `dp.Real`, `dp.Integer`, `dp.Boolean`, `dp.Category`, `dp.Date`.
    """

    __slots__ = ("_columns",)
    _columns: Mapping[str, Column]

    @plain.called
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
                    "dp.Date(first, last), dp.Boolean() or, for keys that nobody lists, dp.Open()",
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

    def filled_in(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """The columns among `names` whose declaration says what a cell without a value counts as,
        each with that value.
        """
        found = []
        for name in names:
            missing = getattr(self._columns.get(name), "missing", None)
            if missing is not None:
                found.append((name, f"{missing:g}" if type(missing) is float else str(missing)))
        return tuple(found)

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
    stripped = text.strip(" ").replace(MINUS, "-")
    return float(stripped) if _NUMBER.fullmatch(stripped) else None


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
    if high is None and isinstance(low, tuple) and len(low) == 2:
        raise InvalidParameter(
            asked,
            "they are one pair",
            _BOUNDS_WHY,
            f"write them one by one: dp.{what}({shown(low[0])}, {shown(low[1])})",
        )
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


def _missing(value: object, low: float, high: float) -> float | None:
    if value is None:
        return None
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
