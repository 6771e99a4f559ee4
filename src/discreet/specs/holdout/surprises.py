"""What a reusable holdout looks at: how far a mean over its rows is from a claimed one.

A question has a φ between 0 and 1 for each row, in `width` steps: whether a filter keeps the row, a
column's place in its range, a product of columns, whether a fit decides the row rightly, or a
function of one row. All are brought to one public grid of `steps` steps, on which the claimed
mean t and the tolerance T are whole numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors
from discreet.sensitivity import LInf
from discreet.specs.estimating.networks import Agreement
from discreet.specs.holdout.pure_functions import pure_copy
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.plans import Factor, SumsPlan, factor_from_dict
from discreet.specs.queries.scores import CandidateGroup, ScoresPlan

STEPS = 1 << 20
LARGEST_STEPS = 1 << 30
MOST_FACTORS = 3
MOST_COLUMNS = 1 << 10  # of a function's row


@plain.kept()
@dataclass(frozen=True, slots=True)
class Kept:
    """φ = 1 where a filter keeps the row, else 0; every row where it has no keys."""

    keys: tuple[Key, ...]
    kind: ClassVar[str] = "kept"
    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if cell_count(self.keys) != 1:
            raise _bad("its filter has several cells")

    def plan(self) -> ScoresPlan:
        return ScoresPlan((SumsPlan(self.keys, ((),)), SumsPlan((), ((),))))

    def counted(self, answer: Any) -> tuple[int, int]:
        """Σφ in steps of its own, and the number of rows."""
        return int(answer[0][0, 0]), int(answer[1][0, 0])

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "keys": [key.to_dict() for key in self.keys]}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Product:
    """φ = the place of a product of columns in the range of such products.

    A column's value is (code + offset)·step, the offset rounded: at most half a step from its own
    (specs/queries/scores.py).
    """

    factors: tuple[Factor, ...]
    kind: ClassVar[str] = "product"
    keys: ClassVar[tuple[Key, ...]] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.factors) <= MOST_FACTORS or not all(
            type(factor) is Factor for factor in self.factors
        ):
            raise _bad(f"it is no product of 1 to {MOST_FACTORS} columns")
        self.plan()

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest product, in steps."""
        ends = [CandidateGroup((), factor).bounds for factor in self.factors]
        corners = [_times(corner) for corner in itertools.product(*ends)]
        return min(corners), max(corners)

    @property
    def width(self) -> int:
        low, high = self.bounds
        return high - low

    @property
    def unit(self) -> Fraction:
        """What one step of a product is worth."""
        return _fraction_times([factor.encoding.step for factor in self.factors])

    def plan(self) -> SumsPlan:
        return SumsPlan((), tuple(_subsets(self.factors)))

    def counted(self, sums: Any) -> tuple[int, int]:
        """Σ Π(code + offset) − low from the sums of all partial products, and the rows."""
        offsets = [CandidateGroup((), factor).offset for factor in self.factors]
        total = 0
        for place, chosen in enumerate(_choices(len(self.factors))):
            rest = _times(
                tuple(off for off, taken in zip(offsets, chosen, strict=True) if not taken)
            )
            total += rest * int(sums[0, place])
        rows = int(sums[0, 0])
        return total - self.bounds[0] * rows, rows

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "factors": [factor.to_dict() for factor in self.factors]}


@dataclass(frozen=True, slots=True)
class RowsPlan:
    """Call `function` on each row by itself: Σ⌊2^bits·clip(value, 0, 1)⌋, and the rows."""

    columns: tuple[str, ...]
    bits: int
    function: Callable[..., Any]


@plain.kept(functions=("function",))
@dataclass(frozen=True, slots=True)
class RowFunction:
    """φ = ⌊2^bits·clip(f(row), 0, 1)⌋ steps; 0 where f fails or gives no number.

    Theorem.  A row adds a number of steps from 0 to 2^bits that depends on that row alone.
    Proof.    What runs is a copy that keeps nothing (pure_functions.py), on plain values made for
              that row; its value is read by one total rule.
    Checked.  tests/claims/test_row_functions.py
    """

    columns: tuple[str, ...]
    name: str
    bits: int = 20
    function: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    kind: ClassVar[str] = "row function"
    keys: ClassVar[tuple[Key, ...]] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.columns) <= MOST_COLUMNS or not 1 <= self.bits <= 40:
            raise _bad(f"its row has not 1 to {MOST_COLUMNS} columns, or its grid not 1 to 40 bits")
        if self.function is not None:
            pure_copy(self.function)

    @property
    def width(self) -> int:
        return 1 << self.bits

    def plan(self) -> RowsPlan:
        if self.function is None:
            raise _bad("its function is not here: only its name is stored")
        return RowsPlan(self.columns, self.bits, self.function)

    def counted(self, sums: tuple[int, int]) -> tuple[int, int]:
        return sums

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "name": self.name,
            "bits": self.bits,
        }


@plain.kept()
@dataclass(frozen=True, slots=True)
class Right:
    """φ = 1 where a fit decides the row rightly, of all rows."""

    agreement: Agreement
    kind: ClassVar[str] = "right"
    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if type(self.agreement) is not Agreement or not self.agreement.both or self.keys:
            raise _bad("it does not count the right and the wrong ones of all rows")

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.agreement.keys

    def plan(self) -> Any:
        return self.agreement.plan()

    def counted(self, counts: Any) -> tuple[int, int]:
        right, wrong = self.agreement.assemble(counts)
        return right, right + wrong

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "agreement": self.agreement.to_dict()}


Part = Kept | Product | RowFunction | Right


@plain.kept()
@dataclass(frozen=True, slots=True)
class Surprise:
    """(|d| − T·N, d, steps·N) with d = ⌊steps·Σφ/width⌋ − t·N: how far Σφ is from N times the
    claimed mean t, beyond a tolerance of T a row, N the number of rows.

    Theorem.  One unit moves each of the three by at most steps (row-level Replace), or
              k·(steps + T) otherwise, k the rows of a unit.
    Proof.    φ lies in [0, steps] and t in [0, steps] on the grid, both ends whole, so rounding
              down moves with it: ⌊x + c⌋ lies within whole bounds of c. Row-level Replace: N stays,
              d moves by at most steps, and ||a| − |b|| ≤ |a − b|. Otherwise |d| − T·N is the
              greater of Σ(φ − t − T) and Σ(t − φ − T) up to that rounding, and the greater of two
              sums moves no further than the one that moves most. What k rows add to one of them
              before and after lies in k times an interval that holds 0, [min(low, 0), max(high,
              0)], of length at most steps + T: low ≥ −(steps + T), high ≤ steps − T, high − low =
              steps. d moves by at most k·steps alike, and steps·N by k·steps.
    Checked.  tests/claims/test_holdout.py::test_no_neighbour_moves_a_surprise_further
    """

    part: Part
    training: int
    tolerance: int
    steps: int = STEPS
    kind: ClassVar[str] = "surprise"
    gives: ClassVar[str] = "surprise"
    size: ClassVar[int] = 3
    optional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not any(type(self.part) is kind for kind in (Kept, Product, RowFunction, Right)):
            raise _bad("what it takes a mean of is none of the known kinds")
        if (
            not 1 <= self.steps <= LARGEST_STEPS
            or not 0 <= self.training <= self.steps
            or not 0 <= self.tolerance <= self.steps
        ):
            raise _bad("its claimed mean or its tolerance is not between 0 and 1 on its grid")

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.part.keys

    def sensitivity(self, neighbors: Neighbors) -> LInf:
        if neighbors.row_count_is_public:
            return LInf(Fraction(self.steps), False)
        return LInf(Fraction(neighbors.rows * (self.steps + self.tolerance)), False)

    def plan(self) -> Any:
        return self.part.plan()

    def assemble(self, answer: Any) -> list[int]:
        total, rows = self.part.counted(answer)
        beyond = self.steps * total // self.part.width - self.training * rows
        return [abs(beyond) - self.tolerance * rows, beyond, self.steps * rows]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "part": self.part.to_dict(),
            "training": self.training,
            "tolerance": self.tolerance,
            "steps": self.steps,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Surprise:
        part = _FROM[record["part"]["kind"]](record["part"])
        return cls(part, record["training"], record["tolerance"], record["steps"])


_FROM: dict[str, Callable[[dict[str, Any]], Part]] = {
    "kept": lambda record: Kept(tuple(key_from_dict(key) for key in record["keys"])),
    "product": lambda record: Product(tuple(map(factor_from_dict, record["factors"]))),
    "row function": lambda record: RowFunction(
        tuple(record["columns"]), record["name"], record["bits"]
    ),
    "right": lambda record: Right(Agreement.from_dict(record["agreement"])),
}


def stand_in(tolerance: int) -> Surprise:
    """The question that a holdout is opened with: how many rows there are. All that will be asked
    with this tolerance has its sensitivity.
    """
    return Surprise(Kept(()), 0, tolerance)


def _choices(count: int) -> list[tuple[bool, ...]]:
    """Which factors are in each partial product: none first."""
    return sorted(
        itertools.product((False, True), repeat=count), key=lambda taken: (sum(taken), taken)
    )


def _subsets(factors: tuple[Factor, ...]) -> list[tuple[Factor, ...]]:
    return [
        tuple(factor for factor, taken in zip(factors, chosen, strict=True) if taken)
        for chosen in _choices(len(factors))
    ]


def _times(numbers: tuple[int, ...]) -> int:
    product = 1
    for number in numbers:
        product *= number
    return product


def _fraction_times(numbers: list[Fraction]) -> Fraction:
    product = Fraction(1)
    for number in numbers:
        product *= number
    return product


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "a question to a holdout",
        found,
        "its noise is calibrated to means of numbers between 0 and 1, one a row",
        "ask holdout.share, holdout.mean or holdout.accuracy",
    )
