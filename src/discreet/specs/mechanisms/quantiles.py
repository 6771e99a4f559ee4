"""One quantile of a histogram of values, by mechanisms that look at the data before they choose the
noise.

    QuantileChoice      a cell of the grid, with probability falling in its distance, counted in
                        rows, from the quantile (reference.md B6, B10)
    SmoothNoise         the quantile plus noise in proportion to its smooth sensitivity (B7, B8)
    ProposeTestRelease  the quantile plus Laplace noise for a proposed sensitivity, or nothing if
                        the data cannot be shown to be stable (B9)

The quantile q = a/b of n values is the order statistic of index m = ⌈a·n/b⌉, at least 1 where there
is a value: the least value v with #{x ≤ v} ≥ q·n. For q = ½ this is the lower median m = ⌊(n+1)/2⌋.
Values are cells of the grid, counted from 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import fraction_text, is_float, stored_fraction
from discreet.sensitivity import L1, Rows, Sensitivity, sensitivity_from_dict
from discreet.specs.mechanisms.additive import GeometricNoise, LaplaceNoise

LARGEST_DENOMINATOR = 10**6  # of a quantile: b·(number of rows) stays far below 2**63
SMOOTH_REFINEMENT = 10  # answers are whole 1024ths of a grid cell
# the sampler's smooth sensitivity lies within exp(±this) of the true one
SMOOTH_SLACK = Fraction(1, 1 << 40)
SMALLEST_BETA, LARGEST_BETA = Fraction(1, 1 << 40), Fraction(1 << 10)
LARGEST_MULTIPLIER = Fraction(1 << 40)

RULES = ("exponential", "inverse")
CHARGES = {
    "gaussian": ("approx",),
    "laplace": ("approx",),
    "cauchy": ("pure",),
    "student": ("pure",),
    "lln": ("gdp", "zcdp"),
}
CAUCHY_POWERS = (2, 4)
LARGEST_DEGREES = 9


def order_index(a: int, b: int, rows: int) -> int:
    """m = ⌈a·n/b⌉, at least 1 where there is a value; 0 where there is none."""
    return min(rows, max(1, -(-a * rows // b)))


def _quantile(what: str, sensitivity: Sensitivity, a: int, b: int, *, replaced: bool) -> None:
    if (
        any(isinstance(number, bool) or not isinstance(number, int) for number in (a, b))
        or not 0 <= a <= b <= LARGEST_DENOMINATOR
        or math.gcd(a, b) != 1
    ):
        raise _bad(
            what,
            "its quantile is no fraction in lowest terms between 0 and 1 with a denominator up to "
            f"{LARGEST_DENOMINATOR}",
        )
    if not isinstance(sensitivity, Rows):
        raise _bad(what, "it needs the number of values that may change")
    if replaced and sensitivity != Rows(1, "replaced"):
        raise _bad(
            what, "it has a proof for one replaced value alone (row-level Replace without a filter)"
        )


def _bad(what: str, found: str) -> InvalidParameter:
    return InvalidParameter(
        what,
        found,
        "the sampler and the accountant both read this object",
        "build it with discreet.estimators.classical_quantiles",
    )


def _positive(what: str, name: str, value: object) -> None:
    if not isinstance(value, Fraction) or value <= 0:
        raise _bad(what, f"its {name} is not a positive Fraction")


@plain.kept()
@dataclass(frozen=True, slots=True)
class QuantileChoice:
    """A cell c of the grid with P(c) ∝ exp(−rate·loss(c)); the answer is (c,).

    With L values before the cell, E in it and n in all, loss(c) is, by `rule`,

        exponential   max(0, b·L − a·n, a·n − b·(L + E)), whole numbers:
                      how far, in 1/b rows, the cell is from being a quantile
        inverse       max(0, L − (m−1), m − (L + E)): the least number of values to replace so that
                      the cell is the quantile

    Equal values are no trouble: a cell that holds the quantile has loss 0 whatever it holds.
    """

    sensitivity: Rows
    a: int
    b: int
    rate: Fraction
    rule: str
    kind: ClassVar[str] = "quantile choice"
    reads: ClassVar[str] = "histogram"

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise _bad("QuantileChoice", "its rule is neither exponential nor inverse")
        _quantile(
            "QuantileChoice", self.sensitivity, self.a, self.b, replaced=self.rule == "inverse"
        )
        _positive("QuantileChoice", "rate", self.rate)

    @property
    def largest_change(self) -> int:
        """How far one loss can move between neighbours.

        Theorem.  k·b if k values are replaced or changed, k·max(a, b−a) if they come or go
                  (rule exponential); 1 (rule inverse).
        Proof.    g(t) = b·#{≤t} − a·n = (b−a)·#{≤t} − a·#{>t} moves by at most
                  `Rows.weighted(b−a, a)` for every t, whether n is public or not, and
                  loss(c) = max(0, g(c−1), −g(c)): a maximum of three numbers moves no further than
                  the one that moves most. Inverse: a replaced value moves L and L + E by at most
                  1 and leaves n, so m, alone.
        Checked.  tests/claims/test_quantile_mechanisms.py::test_rank_losses_move_no_further
        """
        return (
            self.sensitivity.weighted(self.b - self.a, self.a) if self.rule == "exponential" else 1
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "a": self.a,
            "b": self.b,
            "rate": fraction_text(self.rate),
            "rule": self.rule,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        return cls(
            _rows(record), record["a"], record["b"], stored_fraction(record["rate"]), record["rule"]
        )


@plain.kept()
@dataclass(frozen=True, slots=True)
class SmoothNoise:
    """x_(m) + multiplier·S·Z, rounded to 1024ths of a cell;
    the answer is (steps,), a whole number of 1024ths.

    S is the β-smooth sensitivity of x_(m) (reference.md B8), Z has the law

        gaussian   standard normal
        laplace    density e^−|z| / 2
        cauchy     density ∝ 1/(1 + |z|^shape), shape 2 or 4
        student    t with `shape` degrees of freedom, 1 … 9
        lln        X·e^(shape·Y), X Laplace, Y normal

    `charged` says which theorem prices it: pure (cauchy, student), approx (gaussian, laplace;
    `shape` is the ε at which (ε, δ) is said), gdp or zcdp (lln). The value may lie outside the
    declared range: what to do with that is post-processing.
    """

    sensitivity: Rows
    a: int
    b: int
    law: str
    shape: Fraction
    charged: str
    beta: Fraction
    multiplier: Fraction
    kind: ClassVar[str] = "smooth noise"
    reads: ClassVar[str] = "histogram"
    refinement: ClassVar[int] = SMOOTH_REFINEMENT

    def __post_init__(self) -> None:
        _quantile("SmoothNoise", self.sensitivity, self.a, self.b, replaced=True)
        if self.law not in CHARGES or self.charged not in CHARGES[self.law]:
            raise _bad(
                "SmoothNoise", "its law has no theorem of the kind that it is to be charged by"
            )
        for name in ("shape", "beta", "multiplier"):
            _positive("SmoothNoise", name, getattr(self, name))
        if self.law == "cauchy" and self.shape not in CAUCHY_POWERS:
            raise _bad("SmoothNoise", "a Cauchy-type density falls with the power 2 or 4")
        if self.law == "student" and (self.shape.denominator != 1 or self.shape > LARGEST_DEGREES):
            raise _bad("SmoothNoise", f"Student's t has 1 to {LARGEST_DEGREES} degrees of freedom")
        if not SMALLEST_BETA <= self.beta <= LARGEST_BETA:
            raise _bad("SmoothNoise", "its beta lies outside 2**-40 … 2**10")
        if self.multiplier > LARGEST_MULTIPLIER or self.shape > LARGEST_MULTIPLIER:
            raise _bad("SmoothNoise", "its noise would be 2**40 times the sensitivity")

    def to_dict(self) -> dict[str, Any]:
        numbers = {
            name: fraction_text(getattr(self, name)) for name in ("shape", "beta", "multiplier")
        }
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "a": self.a,
            "b": self.b,
            "law": self.law,
            "charged": self.charged,
            **numbers,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        numbers = [stored_fraction(record[name]) for name in ("shape", "beta", "multiplier")]
        return cls(
            _rows(record),
            record["a"],
            record["b"],
            record["law"],
            numbers[0],
            record["charged"],
            *numbers[1:],
        )


@plain.kept()
@dataclass(frozen=True, slots=True)
class ProposeTestRelease:
    """(1, value) if the data are stable, else (0, 0), which stands for ⊥;
    the value counts 2**−refinement of a cell.

    γ is the least number of values to replace before one more could move x_(m) by more than `eta`
    cells (reference.md B9). The data pass if γ + G ≥ threshold, G two-sided geometric,
    P(G = k) ∝ exp(−|k|/test_spread); then the value is x_(m) plus Laplace noise of scale `spread`
    cells. With eta = 0 the value is x_(m) itself (spread 0): right for discrete data, where a
    stable quantile need not be blurred.
    """

    sensitivity: Rows
    a: int
    b: int
    eta: int
    test_spread: Fraction
    threshold: int
    spread: Fraction
    refinement: int
    kind: ClassVar[str] = "propose test release"
    reads: ClassVar[str] = "histogram"

    def __post_init__(self) -> None:
        _quantile("ProposeTestRelease", self.sensitivity, self.a, self.b, replaced=True)
        for name, least in (("eta", 0), ("threshold", 1)):
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, int)
                or not least <= value < 1 << 62
            ):
                raise _bad("ProposeTestRelease", f"its {name} is no whole number from {least} on")
        _positive("ProposeTestRelease", "test_spread", self.test_spread)
        if not is_float(self.test_spread):
            raise _bad("ProposeTestRelease", "its test_spread is no float64")
        if self.eta == 0 and (self.spread != 0 or self.refinement != 0):
            raise _bad(
                "ProposeTestRelease", "a proposal of 0 goes without noise (spread 0, refinement 0)"
            )
        if self.eta:
            self.noise()

    def test(self) -> GeometricNoise:
        """The noise of the test, on a distance of sensitivity 1."""
        return GeometricNoise(L1(Fraction(1)), self.test_spread, 0)

    def noise(self) -> LaplaceNoise:
        """The noise of the release, on a quantile that moves by at most eta cells."""
        return LaplaceNoise(L1(Fraction(self.eta)), self.spread, self.refinement)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "a": self.a,
            "b": self.b,
            "eta": self.eta,
            "test_spread": fraction_text(self.test_spread),
            "threshold": self.threshold,
            "spread": fraction_text(self.spread),
            "refinement": self.refinement,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        return cls(
            _rows(record),
            record["a"],
            record["b"],
            record["eta"],
            stored_fraction(record["test_spread"]),
            record["threshold"],
            stored_fraction(record["spread"]),
            record["refinement"],
        )


def _rows(record: dict[str, Any]) -> Rows:
    rows = sensitivity_from_dict(record["sensitivity"])
    assert isinstance(rows, Rows)
    return rows
