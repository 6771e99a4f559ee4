"""The log-likelihoods of declared parameters, as whole-number scores: what one draw from a tempered
posterior chooses by (docs/theory/bayes.md).

Candidate j adds for a row with codes c, in cell k of the keys,

    ℓ_j = levels_k + Σ linear_i·c_i − (form_0 + Σ form_i·c_i)²      in units of 2**-FINE_BITS,

so that a sum over rows is a linear function of counts, sums and second moments: shares of levels,
Poisson rates, normal means and deviations, and lines are all of this kind. The score is

    ⌊Σ over rows of ℓ_j / 2**(FINE_BITS − UNIT_BITS)⌋ + offset_j,

a whole number of 2**-UNIT_BITS; offsets are public and carry the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors
from discreet.sensitivity import LInf, score_sensitivity
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.plans import Factor, SumsPlan, Term, factor_from_dict

UNIT_BITS, FINE_BITS = 10, 80
LARGEST_GRID = 1 << 12
LARGEST_CELLS, LARGEST_FACTORS = 1 << 10, 8
LARGEST_NUMBER = 1 << 200  # of a candidate's whole numbers
UNITS = 1 << (FINE_BITS - UNIT_BITS)  # fine units in one unit of a score


@plain.kept()
@dataclass(frozen=True, slots=True)
class RowLikelihood:
    """What a row adds to one candidate's log-likelihood; see the module."""

    levels: tuple[int, ...]
    linear: tuple[int, ...] = ()
    form: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        numbers = (*self.levels, *self.linear, *self.form)
        if any(type(number) is not int or abs(number) > LARGEST_NUMBER for number in numbers):
            raise _bad("a candidate's numbers are no whole numbers below 2**200")

    def bounds(self, factors: Sequence[Factor]) -> tuple[int, int]:
        """The least and the greatest that a row can add, or numbers beyond them.

        Theorem.  Every row, in any cell and with any codes, adds a number between the two.
        Proof.    The levels, the linear part and the square each lie between their own ends: a
                  linear form of codes is least and greatest where each code is at an end, and a
                  square over [u, v] is at most max(u², v²), and at least min(u², v²) unless 0 lies
                  in it.
        Checked.  tests/claims/test_likelihood_scores.py
        """
        low, high = _linear_bounds(self.linear, factors)
        least = most = 0
        if self.form:
            ends = _linear_bounds(self.form[1:], factors)
            first, last = (self.form[0] + end for end in ends)
            most = max(first * first, last * last)
            least = 0 if first <= 0 <= last else min(first * first, last * last)
        return min(self.levels) + low - most, max(self.levels) + high - least


@plain.kept()
@dataclass(frozen=True, slots=True)
class LikelihoodScores:
    """One score for each declared candidate, from sums over the rows of the cells of `keys`."""

    keys: tuple[Key, ...]
    factors: tuple[Factor, ...]
    candidates: tuple[RowLikelihood, ...]
    offsets: tuple[int, ...]
    optional: bool
    kind: ClassVar[str] = "likelihood scores"
    gives: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        cells, size = cell_count(self.keys), len(self.factors)
        if not 2 <= len(self.candidates) <= LARGEST_GRID:
            raise _bad(f"it needs 2 to {LARGEST_GRID} candidates")
        if cells > LARGEST_CELLS or size > LARGEST_FACTORS:
            raise _bad(f"more than {LARGEST_CELLS} cells or {LARGEST_FACTORS} columns")
        if any(
            type(one) is not RowLikelihood
            or len(one.levels) != cells
            or len(one.linear) not in (0, size)
            or len(one.form) not in (0, size + 1)
            for one in self.candidates
        ):
            raise _bad("a candidate has another number of cells or columns")
        if len(self.offsets) != len(self.candidates) or any(
            type(offset) is not int or abs(offset) > LARGEST_NUMBER for offset in self.offsets
        ):
            raise _bad("it needs one whole offset for every candidate")

    @property
    def size(self) -> int:
        return len(self.candidates)

    def sensitivity(self, neighbors: Neighbors) -> LInf:
        """⌈Δ/UNITS⌉, Δ the largest `score_sensitivity` of any candidate before it is rounded down;
        one way where what rows add has the same sign for all of them.

        Theorem.  No score moves by more between neighbours.
        Proof.    Let a, b be a sum over rows in score units, for neighbours, and m = ⌈|a − b|⌉.
                  a ≤ b + m gives ⌊a⌋ ≤ ⌊b⌋ + m, as m is whole; and so for b. |a − b| is at most
                  Δ/UNITS by `score_sensitivity` and `RowLikelihood.bounds`; rounding down never
                  turns a rise into a fall; offsets are the same for neighbours.
        Checked.  tests/claims/test_likelihood_scores.py
        """
        bounds = [one.bounds(self.factors) for one in self.candidates]
        each = [
            score_sensitivity(neighbors, low, high, optional=self.optional).value
            for low, high in bounds
            if low or high
        ]
        low, high = min(one for one, _ in bounds), max(other for _, other in bounds)
        most = max(each, default=Fraction(1))
        one_way = score_sensitivity(neighbors, low, high or 1, optional=True).one_way
        return LInf(Fraction(max(-(-most // UNITS), 1)), one_way)

    def terms(self) -> tuple[tuple[int, ...], ...]:
        """The products of columns whose sums are needed, as places of factors."""
        size = range(len(self.factors))
        return ((), *((i,) for i in size), *((i, k) for i in size for k in size if i <= k))

    def plan(self) -> SumsPlan:
        products: list[Term] = [tuple(self.factors[i] for i in term) for term in self.terms()]
        return SumsPlan(self.keys, tuple(products))

    def assemble(self, sums: npt.NDArray[Any]) -> list[int]:
        """The scores from the engine's sums (shape cells × terms)."""
        counts = [int(row[0]) for row in sums]
        totals = {
            term: sum(int(row[place]) for row in sums) for place, term in enumerate(self.terms())
        }
        return [
            _summed(one, counts, totals) // UNITS + offset
            for one, offset in zip(self.candidates, self.offsets, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "keys": [key.to_dict() for key in self.keys],
            "factors": [factor.to_dict() for factor in self.factors],
            "candidates": [
                [list(one.levels), list(one.linear), list(one.form)] for one in self.candidates
            ],
            "offsets": list(self.offsets),
            "optional": self.optional,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> LikelihoodScores:
        return cls(
            tuple(key_from_dict(key) for key in record["keys"]),
            tuple(factor_from_dict(factor) for factor in record["factors"]),
            tuple(RowLikelihood(*map(tuple, one)) for one in record["candidates"]),
            tuple(record["offsets"]),
            record["optional"],
        )


def _summed(one: RowLikelihood, counts: list[int], totals: dict[tuple[int, ...], int]) -> int:
    """Σ over rows of what each adds, in fine units."""
    value = sum(level * count for level, count in zip(one.levels, counts, strict=True))
    value += sum(weight * totals[i,] for i, weight in enumerate(one.linear))
    if not one.form:
        return value
    constant, weights = one.form[0], one.form[1:]
    value -= constant * constant * totals[()]
    for i, weight in enumerate(weights):
        value -= 2 * constant * weight * totals[i,] + weight * weight * totals[i, i]
        value -= sum(2 * weight * weights[k] * totals[i, k] for k in range(i + 1, len(weights)))
    return value


def _linear_bounds(weights: Sequence[int], factors: Sequence[Factor]) -> tuple[int, int]:
    """The ends of Σ weight·code over the codes' boxes."""
    ends = [
        sorted((weight * factor.encoding.low, weight * factor.encoding.high))
        for weight, factor in zip(weights, factors, strict=bool(weights))
    ]
    return sum(low for low, _ in ends), sum(high for _, high in ends)


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "LikelihoodScores",
        found,
        "its sensitivity is proven for this layout",
        "ask through dp.posterior_sample",
    )
