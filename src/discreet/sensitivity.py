"""How far one protected unit can move a statistic, exactly.

A `Sensitivity` is an ℓ₁ value, the square of an ℓ₂ value (so that √2 never has to be rounded), the
largest change of one score, for mechanisms that read a whole histogram of values the number of
values that may change, or, for mechanisms that choose among whole runs, what one run tells.
The rules at the bottom are the only place where a neighbour relation becomes a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import fraction_text, rational, sqrt_up, stored_fraction
from discreet.neighbors import Neighbors, Replace


@plain.kept()
@dataclass(frozen=True, slots=True)
class L1:
    """ℓ₁ sensitivity, in integer units of the statistic."""

    value: Fraction

    def __post_init__(self) -> None:
        _positive(self.value)

    def to_dict(self) -> dict[str, Any]:
        return {"norm": "l1", "value": fraction_text(self.value)}


@plain.kept()
@dataclass(frozen=True, slots=True)
class L2:
    """ℓ₂ sensitivity, kept as its exact square, in squared integer units of the statistic."""

    squared: Fraction

    def __post_init__(self) -> None:
        _positive(self.squared)

    @property
    def value(self) -> Fraction:
        """The sensitivity itself, rounded up."""
        return sqrt_up(self.squared)

    def to_dict(self) -> dict[str, Any]:
        return {"norm": "l2", "squared": fraction_text(self.squared)}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Frobenius:
    """Sensitivity of a symmetric matrix of the given `order` (its upper triangle, row by row) and
    the numbers that follow it.

    `squared` bounds ‖Δ‖² = Σ diagonal² + 2·Σ off-diagonal² + Σ rest²:
    an entry off the diagonal stands in the matrix twice.
    """

    order: int
    squared: Fraction

    def __post_init__(self) -> None:
        _positive(self.squared)
        if isinstance(self.order, bool) or not isinstance(self.order, int) or self.order < 1:
            raise InvalidParameter(
                "a sensitivity",
                "the order of its matrix is no whole number ≥ 1",
                "entries on and off the diagonal have different noise",
                "derive it from the query",
            )

    def to_dict(self) -> dict[str, Any]:
        return {"norm": "frobenius", "order": self.order, "squared": fraction_text(self.squared)}


@plain.kept()
@dataclass(frozen=True, slots=True)
class LInf:
    """The largest change of one coordinate; `one_way` says that all coordinates of a neighbour move
    in the same direction.
    """

    value: Fraction
    one_way: bool

    def __post_init__(self) -> None:
        _positive(self.value)

    @property
    def span(self) -> Fraction:
        """How far apart the changes of two coordinates can lie:
        Δ where all move one way, else 2Δ.
        """
        return self.value if self.one_way else 2 * self.value

    def to_dict(self) -> dict[str, Any]:
        return {"norm": "linf", "value": fraction_text(self.value), "one_way": self.one_way}


CHANGES = ("replaced", "added or removed", "changed")


@plain.kept()
@dataclass(frozen=True, slots=True)
class Rows:
    """How the values of neighbouring data sets differ,
    for mechanisms that read a histogram of values.

    ``replaced``           at most `rows` values take other values; their number is fixed and public
    ``added or removed``   at most `rows` values come, or at most `rows` values go
    ``changed``            at most `rows` values go and at most `rows` values come
    """

    rows: int
    change: str

    def __post_init__(self) -> None:
        if (
            isinstance(self.rows, bool)
            or not isinstance(self.rows, int)
            or self.rows < 1
            or self.change not in CHANGES
        ):
            raise InvalidParameter(
                "a sensitivity",
                "it is no number of changed rows",
                "a mechanism's proof counts them",
                "derive it from the query",
            )

    def weighted(self, below: int, above: int) -> int:
        """How far below·#{values ≤ t} − above·#{values > t} can move, for whole numbers below,
        above ≥ 0 and any t.

        Theorem.  rows·max(below, above) if values come or go, rows·(below + above) otherwise,
                  for every t at once.
        Proof.    One value adds +below or −above. Coming or going adds or takes one such number;
                  a replaced or changed value takes one and adds another, and two of them differ by
                  at most below + above.
        Checked.  tests/claims/test_histograms.py::test_weighted_prefix_counts_move_no_further
        """
        return self.rows * (
            max(below, above) if self.change == "added or removed" else below + above
        )

    def to_dict(self) -> dict[str, Any]:
        return {"norm": "rows", "rows": self.rows, "change": self.change}


@plain.kept()
@dataclass(frozen=True, slots=True)
class OneRow:
    """What one row adds to a sum of vectors, for mechanisms that read a secret sample of the rows:
    ℓ₂ norm (`norm` 1: ℓ₁ norm) at most √squared.

    ``replaced``           one of a public number of `rows` takes another value
    ``added or removed``   one row comes or goes; their number is private (`rows` is None)
    """

    squared: Fraction
    change: str
    rows: int | None
    norm: int = 2

    def __post_init__(self) -> None:
        _positive(self.squared)
        known = type(self.rows) is int and self.rows >= 1
        if (self.change, known, self.rows is None) not in (
            ("replaced", True, False),
            ("added or removed", False, True),
        ) or not (type(self.norm) is int and self.norm in (1, 2)):
            raise InvalidParameter(
                "a sensitivity",
                "it does not say how sampled rows may change",
                "amplification by sampling is proven for one relation at a time",
                "derive it from the query",
            )

    @property
    def moved_squared(self) -> Fraction:
        """The squared sensitivity, in the norm, of a sum over a sample that holds the row:
        that of one vector, or of the difference of two.
        """
        return 4 * self.squared if self.change == "replaced" else self.squared

    def to_dict(self) -> dict[str, Any]:
        return {
            "norm": "one row",
            "squared": fraction_text(self.squared),
            "change": self.change,
            "rows": self.rows,
        } | ({"of": self.norm} if self.norm == 1 else {})


@plain.kept()
@dataclass(frozen=True, slots=True)
class PrivateRuns:
    """Runs of a procedure of which each is private by itself, for mechanisms that choose one:
    μ-GDP, or ε-DP (one of the two is 0).

    Both are read by their shortest decimal, as the guarantee of the run's own account is.
    """

    mu: float = 0.0
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        given = [rational(number, "a run's guarantee") for number in (self.mu, self.epsilon)]
        if min(given) != 0 or max(given) <= 0:
            raise InvalidParameter(
                "a sensitivity",
                "it states neither μ nor ε of a run, or both",
                "the price of a choice among runs is computed from one of them",
                "state one positive number",
            )

    def to_dict(self) -> dict[str, Any]:
        return {"norm": "runs", "mu": self.mu, "epsilon": self.epsilon}


@plain.kept()
@dataclass(frozen=True, slots=True)
class RowLoss:
    """How one row bends a convex objective, for mechanisms that minimise it: the row's gradient is
    at most `steepness` long, its curvature at most `curvature`, and (`one_signed`) it pulls along
    one direction, never along its opposite.

    ``replaced``           up to `rows` rows take other values
    ``added or removed``   up to `rows` rows come, or up to `rows` rows go
    """

    steepness: Fraction
    curvature: Fraction
    one_signed: bool
    rows: int
    change: str

    def __post_init__(self) -> None:
        _positive(self.steepness)
        _positive(self.curvature)
        if (
            type(self.one_signed) is not bool
            or type(self.rows) is not int
            or self.rows < 1
            or self.change not in CHANGES[:2]
        ):
            raise InvalidParameter(
                "a sensitivity",
                "it does not say how rows may change an objective",
                "a mechanism's proof counts them",
                "derive it from the query",
            )

    @property
    def moves(self) -> int:
        """How many rows come or go: a row that is replaced goes, and another comes."""
        return self.rows * (2 if self.change == "replaced" else 1)

    def to_dict(self) -> dict[str, Any]:
        return {
            "norm": "row loss",
            "steepness": fraction_text(self.steepness),
            "curvature": fraction_text(self.curvature),
            "one_signed": self.one_signed,
            "rows": self.rows,
            "change": self.change,
        }


@plain.kept()
@dataclass(frozen=True, slots=True)
class Friendly:
    """How the weighted mean of those rows moves that most others lie near (docs/theory/
    aggregation.md), for `FriendlyMean`: of one of a public number of rows replaced.

    Weights move by at most 3 in ℓ₁, and the mean of `size` numbers by at most 8·√squared over the
    larger of both total weights; √squared is how far two friends can lie apart. The numbers are
    `centres` points of equal length, whose order says nothing.
    """

    squared: Fraction
    size: int
    centres: int = 1

    def __post_init__(self) -> None:
        _positive(self.squared)
        counts = (self.size, self.centres)
        if any(type(one) is not int or one < 1 for one in counts) or self.size % self.centres:
            raise InvalidParameter(
                "a sensitivity",
                "it is of no whole number of coordinates",
                "a mechanism's proof counts them",
                "derive it from the query",
            )

    def to_dict(self) -> dict[str, Any]:
        return {
            "norm": "friendly",
            "squared": fraction_text(self.squared),
            "size": self.size,
            "centres": self.centres,
        }


Sensitivity = L1 | L2 | Frobenius | LInf | Rows | OneRow | PrivateRuns | RowLoss | Friendly


def sensitivity_from_dict(record: dict[str, Any]) -> Sensitivity:
    if record["norm"] == "l1":
        return L1(stored_fraction(record["value"]))
    if record["norm"] == "l2":
        return L2(stored_fraction(record["squared"]))
    if record["norm"] == "frobenius":
        return Frobenius(record["order"], stored_fraction(record["squared"]))
    if record["norm"] == "one row":
        return OneRow(
            stored_fraction(record["squared"]),
            record["change"],
            record["rows"],
            record.get("of", 2),
        )
    if record["norm"] == "friendly":
        return Friendly(stored_fraction(record["squared"]), record["size"], record["centres"])
    if record["norm"] == "runs":
        return PrivateRuns(record["mu"], record["epsilon"])
    if record["norm"] == "row loss":
        return RowLoss(
            stored_fraction(record["steepness"]),
            stored_fraction(record["curvature"]),
            record["one_signed"],
            record["rows"],
            record["change"],
        )
    return (
        LInf(stored_fraction(record["value"]), record["one_way"])
        if record["norm"] == "linf"
        else Rows(record["rows"], record["change"])
    )


def _positive(value: Fraction) -> None:
    if not isinstance(value, Fraction) or value <= 0:
        raise InvalidParameter(
            "a sensitivity",
            "it is not a positive Fraction",
            "noise is proportional to it",
            "derive it from the schema",
        )


def sum_sensitivity(
    neighbors: Neighbors, low: int, high: int, *, cells: int, optional: bool
) -> tuple[L1, L2]:
    """Sensitivity of sums, by disjoint cells, of per-row terms that lie in [low, high].

    `cells` is the number of cells; `optional` says that a row may fall in no cell (a filter, an
    unseen level).

    Theorem.  Let M = max(|low|, |high|), W = max(high, 0) − min(low, 0), k = the rows of one unit.
              One row exchanged moves the vector of cell sums by at most c₁ in ℓ₁ and c₂ in ℓ₂, with
              (c₁, c₂) = (high−low, high−low)   row-level Replace, one cell, every row counted
                         (W, W)                    Replace, one cell, a row may count or not
                         (max(2M, W), max(√2 M, W)) Replace, several cells
                         (M, M)                    AddRemove;
              one unit moves it by at most k·c₁ and k·c₂.
    Proof.    One row adds a term in one cell. AddRemove: one such vector, norm ≤ M. Replace, same
              cell: the difference of two terms, each in [low, high], or in {0} ∪ [low, high] ⊂ an
              interval of length W where a row may be absent; different cells: ‖(a, −b)‖ with |a|,
              |b| ≤ M. Units: pair the rows before and after arbitrarily, pad with absent rows
              (so W), and sum k row changes.
    Checked.
        tests/claims/test_sensitivity.py::test_sum_sensitivity_is_never_exceeded_and_is_attained
    """
    largest = max(abs(low), abs(high))
    width = max(high, 0) - min(low, 0)
    if isinstance(neighbors, Replace):
        if cells == 1:
            every_row_counts = not optional and neighbors.unit is None
            one = high - low if every_row_counts else width
            l1, l2_squared = one, one**2
        else:
            l1, l2_squared = max(2 * largest, width), max(2 * largest**2, width**2)
    else:
        l1, l2_squared = largest, largest**2
    k = neighbors.rows
    return L1(Fraction(k * l1)), L2(Fraction(k * k * l2_squared))


def score_sensitivity(neighbors: Neighbors, low: int, high: int, *, optional: bool) -> LInf:
    """The largest change of one of several sums of per-row terms in [low, high];
    a row may count in any number of them.

    Theorem.  Let k = the rows of one unit. Every sum moves by at most k·c, with c = max(|low|,
              |high|) under AddRemove, high − low under row-level Replace where every row counts in
              every sum, and max(high, 0) − min(low, 0) under Replace otherwise. Under AddRemove all
              sums move the same way if 0 ≤ low or high ≤ 0.
    Proof.    As for one cell in `sum_sensitivity`, for each sum on its own.
    Checked.  tests/claims/test_score_sensitivity.py::test_score_sensitivity_is_never_exceeded
    """
    if isinstance(neighbors, Replace):
        every_row_counts = not optional and neighbors.unit is None
        return LInf(
            Fraction(
                neighbors.rows * (high - low if every_row_counts else max(high, 0) - min(low, 0))
            ),
            False,
        )
    return LInf(Fraction(neighbors.rows * max(abs(low), abs(high))), low >= 0 or high <= 0)


def histogram_sensitivity(neighbors: Neighbors, *, optional: bool) -> Rows:
    """How the values of a column, or of the part of it that a filter keeps,
    differ between neighbours.

    Theorem.  AddRemove: up to k values come or go. Row-level Replace of a whole column: one value
              is replaced. Replace with a filter, or by units: up to k values go and up to k come
              (k = the rows of one unit).
    Proof.    A row is one value, or none where a filter leaves it out;
              a unit has at most k rows, before and after.
    Checked.  tests/claims/test_histograms.py::test_neighbouring_tallies_differ_as_stated
    """
    if not isinstance(neighbors, Replace):
        return Rows(neighbors.rows, "added or removed")
    return Rows(neighbors.rows, "changed" if optional or neighbors.unit is not None else "replaced")


def gram_sensitivity(neighbors: Neighbors, norm_squared: int) -> L2:
    """ℓ₂ sensitivity of the upper triangle of Σ v vᵀ where ‖v‖² ≤ norm_squared for every row
    (reference.md G5).

    Theorem.  k·B under AddRemove, k·√2·B under Replace, B = norm_squared, k = the rows of one unit.
    Proof.    ‖upper(v vᵀ)‖₂ ≤ ‖v vᵀ‖_F = ‖v‖² ≤ B;
              ‖v vᵀ − w wᵀ‖_F² = ‖v‖⁴ + ‖w‖⁴ − 2(v·w)² ≤ 2B². Sum over k rows.
    Checked.  tests/claims/test_sensitivity.py::test_gram_sensitivity_is_never_exceeded
    """
    factor = 2 if isinstance(neighbors, Replace) else 1
    return L2(Fraction(factor * (neighbors.rows * norm_squared) ** 2))
