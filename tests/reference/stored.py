"""A stored value, the files that hold it and the naive definition that gives it again.

The modules `gaussian`, `composition`, `renyi`, `losses`, `proportions` and `quantiles` beside this
one hold such definitions, and lists VALUES of what they make; `make_values.py` runs them all.
None of them imports discreet: they would otherwise agree with its mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mpmath import mpf, workdps

ROOT = Path(__file__).resolve().parents[2]
DIGITS = 40  # of everything that mpmath computes here


@cache
def numbers(file: str) -> frozenset[float]:
    """The numbers with a point in a file."""
    return frozenset(map(float, re.findall(r"\d+\.\d+(?:e-?\d+)?", (ROOT / file).read_text())))


@dataclass(frozen=True, slots=True)
class Stored:
    """`value` is written, digit by digit, in `files`; `again` computes it.

    `within` is the relative difference that the stored digits allow: 1e-13 where they are those of
    the exact number, more where an approximation was stored, which `why` then explains.
    """

    name: str
    value: float
    files: tuple[str, ...]
    again: Callable[[], float]
    within: float = 1e-13
    why: str = ""

    def agrees(self, found: float) -> bool:
        return abs(found - self.value) <= self.within * abs(self.value)

    def missing(self) -> list[str]:
        """The files that do not hold the number as it stands here."""
        return [file for file in self.files if abs(self.value) not in numbers(file)]


def stored(
    value: float,
    files: str,
    function: Callable[..., object],
    *arguments: object,
    within: float = 1e-13,
    why: str = "",
) -> Stored:
    """The value of function(*arguments), held in `files` (paths between blanks)."""

    def again() -> float:
        with workdps(DIGITS):
            return float(function(*arguments))  # type: ignore[arg-type]

    name = f"{function.__name__}({', '.join(map(str, arguments))})"
    return Stored(name, value, tuple(files.split()), again, within, why)


def crossing(function: Callable[[mpf], mpf], low: float, high: float, steps: int = 140) -> mpf:
    """Where a function that is positive at `low` and not at `high` changes sign, by halving."""
    below, above = mpf(low), mpf(high)
    for _ in range(steps):
        middle = (below + above) / 2
        if function(middle) > 0:
            below = middle
        else:
            above = middle
    return (below + above) / 2
