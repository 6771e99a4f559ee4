"""One value, or an array of them, read by the total rules of `schema.py`: whatever it holds, it
gives a code and never an error.

    number_of                         a value as a number, NaN where it is none
    boolean_of, booleans_of, Levels   0 or 1; the code of a level

Devices (`trusted/extensions/local/values.py`) and the engine in memory (`trusted/engines/cells.py`)
read by these same functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.schema import (
    FALSE_TEXT,
    TRUE_TEXT,
    Category,
    level_number,
    level_text,
    text_number,
)

Codes = NDArray[np.int64]


def number_of(value: Any) -> float:
    """A value as a float: numbers as they are (too large: ±inf), text by the decimal grammar,
    anything else NaN.

    The value's own methods are not asked, and whatever they raise is caught:
    no value makes reading fail.
    """
    kind = type(value)
    if kind is float:
        return float(value)
    try:
        if issubclass(kind, str):
            parsed = text_number(str.__str__(value))
            return math.nan if parsed is None else parsed
        if issubclass(kind, (bool, np.bool_)):
            return 1.0 if value else 0.0
        whole = whole_of(value)
        if whole is not None:
            return _whole_float(whole)
        if issubclass(kind, float):
            return float.__float__(value)
        if issubclass(kind, np.floating):
            with np.errstate(all="ignore"):
                return float(np.generic.astype(value, np.float64))
        if issubclass(kind, Decimal):
            return math.nan if Decimal.is_nan(value) else Decimal.__float__(value)
    except Exception:  # decided by this value alone
        return math.nan
    return math.nan


def whole_of(value: Any) -> int | None:
    """A value that is a whole number, as an int; None for anything else (a span of time is none,
    though numpy calls it an integer).
    """
    kind = type(value)
    if issubclass(kind, int):
        return int.__index__(value)
    if issubclass(kind, np.integer) and not issubclass(kind, np.timedelta64):
        return int(np.generic.item(value))
    return None


def _whole_float(whole: int) -> float:
    try:
        return float(whole)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf


def boolean_of(value: Any, otherwise: int) -> int:
    """0 or 1 for one value of a Boolean column, `otherwise` where it is neither."""
    if issubclass(type(value), str):
        text = _word(str.__str__(value))
        if text in TRUE_TEXT or text in FALSE_TEXT:
            return int(text in TRUE_TEXT)
    number = number_of(value)
    return 1 if number == 1.0 else 0 if number == 0.0 else otherwise


def _word(text: str) -> str:
    return text.strip(" ").lower()


def booleans_of(numbers: NDArray[np.float64], otherwise: int) -> Codes:
    """`boolean_of` of numbers."""
    return np.where(numbers == 1.0, 1, np.where(numbers == 0.0, 0, otherwise)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Levels:
    """How values of a Category column find their level: by text, by value, by truth, or not."""

    texts: dict[str, int]
    numbers: dict[float, int]
    truths: dict[str, int]  # "true" and "false"
    otherwise: int
    # the least and greatest of levels that are whole numbers in a row
    consecutive: tuple[float, float] | None = None

    def __call__(self, value: Any) -> int:
        """The code of one value's level."""
        if issubclass(type(value), str):
            return self.of_text(str.__str__(value))
        if issubclass(type(value), (bool, np.bool_)):
            return self.truths.get("true" if value else "false", self.otherwise)
        return self.numbers.get(number_of(value), self.otherwise)

    def of_text(self, text: str | None) -> int:
        """The same for text: as it stands, else as a number, else as a word of truth."""
        if text is None or text in self.texts:
            return self.otherwise if text is None else self.texts[text]
        number = text_number(text) if self.numbers else None
        if number is not None:
            return self.numbers.get(number, self.otherwise)
        return self.truths.get(_word(text), self.otherwise)

    def of_numbers(self, values: NDArray[np.float64]) -> Codes:
        """The same for numbers, at array speed."""
        if not self.numbers:
            return np.full(len(values), self.otherwise, dtype=np.int64)
        if self.consecutive:
            first, last = self.consecutive
            with np.errstate(all="ignore"):
                inside = (values >= first) & (values <= last) & (values == np.floor(values))
                return np.where(inside, values - first, self.otherwise).astype(np.int64)
        known = np.array(sorted(self.numbers))
        codes = np.array([self.numbers[number] for number in known], dtype=np.int64)
        place = np.minimum(np.searchsorted(known, values), len(known) - 1)
        return np.where(known[place] == values, codes[place], self.otherwise)

    def of_booleans(self, values: NDArray[np.bool_]) -> Codes:
        """The same for booleans."""
        return np.where(
            values,
            self.truths.get("true", self.otherwise),
            self.truths.get("false", self.otherwise),
        ).astype(np.int64)


def levels_of(column: Category) -> Levels:
    """The levels of a column; of several with one value, or one truth, the plainest counts."""
    levels = (*column.levels, column.missing)
    return _levels_of(levels, tuple(map(type, levels)))


@lru_cache(maxsize=16)
def _levels_of(declared: tuple[Any, ...], kinds: tuple[type, ...]) -> Levels:
    """`declared` ends with the level of missing cells, or None; `kinds` tells levels that are equal
    numbers of other types apart.
    """
    levels, missing = declared[:-1], declared[-1]
    numbers: dict[float, int] = {}
    truths: dict[str, int] = {}
    for code, level in sorted(enumerate(levels), key=_plainest):
        number = level_number(level)
        if number is not None:
            numbers.setdefault(number + 0.0, code)
        if _word(level_text(level)) in ("true", "false"):
            truths.setdefault(_word(level_text(level)), code)
    first = next((number for number, code in numbers.items() if code == 0), 0.5)
    in_a_row = first == math.floor(first) and all(
        value == first + code for value, code in numbers.items()
    )
    texts = {level_text(level): code for code, level in enumerate(levels)}
    return Levels(
        texts,
        numbers,
        truths,
        -1 if missing is None else texts[level_text(missing)],
        (first, first + len(numbers) - 1) if in_a_row else None,
    )


def _plainest(coded: tuple[int, str | int | bool]) -> tuple[bool, bool, bool, int]:
    """Numbers before texts, True and False after other numbers, usual texts before others."""
    code, level = coded
    text, number = isinstance(level, str), level_number(level)
    usual = number is not None and level_text(level) == f"{number:.0f}"
    return text, type(level) is bool, not usual, code
