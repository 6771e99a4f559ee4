"""Counts, means, covariances and what their standard errors need,
of several columns in one joint statistic.

With c = codes/h ∈ [−1, 1]^p (one h for all columns) a row contributes a symmetric matrix of order
p + 1 and further numbers:

    M₀₀ = C        M₀ⱼ = A·cⱼ   Mⱼⱼ = B·(1−cⱼ²)   Mⱼₖ = B·cⱼcₖ   count, means, second moments
    K·cⱼ(1−cⱼ²)    K·cⱼ²(1−cⱼ²)   for each column   third and fourth moments
    K·cⱼ(1−cₖ²)    K·cⱼcₖ(1−cⱼ²)                               for each ordered pair
    K·(1−cⱼ²)(1−cₖ²)                                           for each pair

All further numbers vanish where every |c| = 1, which is where the matrix is farthest from another:
they are free. Weights are integers and everything is multiplied by h⁴, so the statistic is an exact
integer vector.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors, Replace
from discreet.sensitivity import Frobenius
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.plans import Factor, SumsPlan, Term, factor_from_dict

MEAN_WEIGHT, PAIR_WEIGHT, FOURTH_WEIGHT = 3, 4, 4  # A, B, K; the proofs need K ≤ B and 2A² ≥ B²
# C: no count; free under Replace; a compromise under AddRemove
COUNT_WEIGHTS = {"public": 0, "replace": 7, "add": 3}
LARGEST_COLUMNS = 50


def row_bound(columns: int, count: int) -> Fraction:
    """sup ‖ψ(c)‖² = C² + 2A²p + B²p(p−1), in squared units of c.

    Theorem.  For all c ∈ [−1, 1]^p the squared Frobenius norm of a row's contribution is at most
              this, with equality where all |cⱼ| = 1.
    Proof.    docs/theory/covariance.md. With e = 1 − cⱼ², f = 1 − cₖ²: the further numbers of a
              pair have squares of sum at most K²(e + f − ef), which is half of what the pair's
              B²·2cⱼ²cₖ² loses against 2B²; those of a column, K²e²(1−e)(2−e) ≤ K²e(1−e), and its
              diagonal entry B²e² add up to at most B²e ≤ 2A²e, which 2A²cⱼ² loses.
    Checked.  tests/claims/test_covariance_sensitivity.py
    """
    p = columns
    return Fraction(count**2 + 2 * MEAN_WEIGHT**2 * p + PAIR_WEIGHT**2 * p * (p - 1))


def replacement_bound(columns: int) -> Fraction:
    """A bound on sup ‖ψ(c) − ψ(d)‖² = 2(Bp + A²/B)², in squared units of c; with K = 0 it is
    reference.md G5's √2·‖v‖² for v = (A/√B, √B·c).

    Theorem.  For all c, d ∈ [−1, 1]^p the squared Frobenius norm of the difference of two rows'
              contributions is at most this.
    Proof.    docs/theory/covariance.md. The matrix part is Σ over both rows of 2A²‖c‖² + B²‖c‖⁴,
              less 4A²t + 2B²t², t = c·d, which is at least −2A⁴/B². A further number x differs by
              (x−x′)² ≤ 2x² + 2x′², so a pair's differ by at most 2K²(e + f − ef) for each row,
              which is what the pair's part of B²‖c‖⁴ loses, and a column's by
              2K²e(1−e) ≤ (2A² + B²)e, which its part loses.
    Checked.  tests/claims/test_covariance_sensitivity.py
    """
    return 2 * (PAIR_WEIGHT * columns + Fraction(MEAN_WEIGHT**2, PAIR_WEIGHT)) ** 2


@plain.kept()
@dataclass(frozen=True, slots=True)
class PairMoments:
    """Sums of the features above over the rows of one cell (`keys` are filters), as integers."""

    keys: tuple[Key, ...]
    factors: tuple[Factor, ...]
    count: int
    optional: bool
    kind: ClassVar[str] = "pair moments"
    gives: ClassVar[str] = "matrix"

    def __post_init__(self) -> None:
        if not 1 <= len(self.factors) <= LARGEST_COLUMNS or len(
            {factor.column for factor in self.factors}
        ) != len(self.factors):
            raise _bad(f"it needs 1 to {LARGEST_COLUMNS} different columns")
        if (
            len({(factor.encoding.low, factor.encoding.high) for factor in self.factors}) != 1
            or self.factors[0].encoding.low != -self.height
        ):
            raise _bad("its columns must have the same symmetric codes")
        if self.count not in COUNT_WEIGHTS.values():
            raise _bad("its count has none of the proven weights")
        if cell_count(self.keys) != 1:
            raise _bad("it reads the rows of one cell")

    @property
    def columns(self) -> int:
        return len(self.factors)

    @property
    def height(self) -> int:
        """h, the largest code."""
        return self.factors[0].encoding.high

    @property
    def order(self) -> int:
        return self.columns + 1

    @property
    def size(self) -> int:
        p = self.columns
        return (p + 1) * (p + 2) // 2 + 2 * p + 5 * p * (p - 1) // 2

    def sensitivity(self, neighbors: Neighbors) -> Frobenius:
        """`row_bound` or `replacement_bound` times h⁴, for all rows of one unit.

        Theorem.  AddRemove: a row comes or goes. Row-level Replace, every row counted: one
                  contribution becomes another. Replace with a filter or by units: either of both.
                  The k changes of a unit add up by the triangle inequality.
        Checked.  tests/claims/test_covariance_sensitivity.py
        """
        one, other = row_bound(self.columns, self.count), replacement_bound(self.columns)
        if not isinstance(neighbors, Replace):
            bound = one
        else:
            bound = max(one, other) if self.optional or neighbors.unit is not None else other
        return Frobenius(self.order, bound * (neighbors.rows * self.height**4) ** 2)

    def terms(self) -> tuple[tuple[int, ...], ...]:
        """The products of columns whose sums are needed, each as sorted places of its factors."""
        places = range(self.columns)
        wanted: set[tuple[int, ...]] = {
            (),
            *((j,) * power for j in places for power in (1, 2, 3, 4)),
        }
        for j, k in itertools.permutations(places, 2):
            wanted.update(
                tuple(sorted(term)) for term in ((j, k), (j, k, k), (j, j, j, k), (j, j, k, k))
            )
        return tuple(sorted(wanted, key=lambda term: (len(term), term)))

    def plan(self) -> SumsPlan:
        products: list[Term] = [tuple(self.factors[j] for j in term) for term in self.terms()]
        return SumsPlan(self.keys, tuple(products))

    def assemble(self, sums: npt.NDArray[Any]) -> list[int]:
        """The integer statistic from the engine's sums of products (shape 1 × terms)."""
        return self.arrange(
            {term: int(value) for term, value in zip(self.terms(), sums[0], strict=True)}
        )

    def arrange(self, sums: dict[tuple[int, ...], Any]) -> list[Any]:
        """The statistic from sums by product; works on whole arrays of sums too,
        one entry a data set.
        """
        h, n = self.height, sums[()]

        def total(*places: int) -> Any:
            return sums[tuple(sorted(places))]

        values = [
            self.count * h**4 * n,
            *(MEAN_WEIGHT * h**3 * total(j) for j in range(self.columns)),
        ]
        for j in range(self.columns):
            values.append(PAIR_WEIGHT * h**2 * (h**2 * n - total(j, j)))
            values += [PAIR_WEIGHT * h**2 * total(j, k) for k in range(j + 1, self.columns)]
        for j in range(self.columns):
            values += [
                FOURTH_WEIGHT * h * (h**2 * total(j) - total(j, j, j)),
                FOURTH_WEIGHT * (h**2 * total(j, j) - total(j, j, j, j)),
            ]
        for j, k in itertools.permutations(range(self.columns), 2):
            values += [
                FOURTH_WEIGHT * h * (h**2 * total(j) - total(j, k, k)),
                FOURTH_WEIGHT * (h**2 * total(j, k) - total(j, j, j, k)),
            ]
        for j, k in itertools.combinations(range(self.columns), 2):
            values.append(
                FOURTH_WEIGHT * (h**4 * n - h**2 * (total(j, j) + total(k, k)) + total(j, j, k, k))
            )
        return values

    def unit_values(self) -> tuple[float, ...]:
        """What one integer unit of each number is worth, as a sum of c-features;
        0 for a count that is not asked.
        """
        p, unit = self.columns, 1.0 / self.height**4
        matrix = [unit / self.count if self.count else 0.0, *[unit / MEAN_WEIGHT] * p] + [
            unit / PAIR_WEIGHT
        ] * (p * (p + 1) // 2)
        return tuple(matrix + [unit / FOURTH_WEIGHT] * (self.size - len(matrix)))

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "keys": [key.to_dict() for key in self.keys],
            "factors": [factor.to_dict() for factor in self.factors],
            "count": self.count,
            "optional": self.optional,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> PairMoments:
        return cls(
            tuple(key_from_dict(key) for key in record["keys"]),
            tuple(factor_from_dict(factor) for factor in record["factors"]),
            record["count"],
            record["optional"],
        )


def count_weight(neighbors: Neighbors, *, optional: bool) -> int:
    """C for a relation: no count where the number of rows is public,
    else the weight that is free or cheap there.
    """
    if neighbors.row_count_is_public and not optional:
        return COUNT_WEIGHTS["public"]
    return COUNT_WEIGHTS["replace" if isinstance(neighbors, Replace) else "add"]


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "PairMoments",
        found,
        "its sensitivity is proven for this layout",
        "ask through dp.covariance or dp.correlation",
    )
