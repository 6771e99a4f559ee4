"""Local privacy: what one person's device does to one value before anything leaves it.

A spec is public: it goes out with the app, and the server reads the same object. A device's *code*
is the place of its value among the declared ones (−1: none of them), or its place on the column's
fixed-point grid; the *report* is one whole number (or K bits).

    RandomizedResponse  the true level with probability e^ε/(K−1+e^ε),
                        else uniform over the K−1 others (reference.md L1, L2)
    TwoCoinResponse     heads: the truth; tails: a second coin answers. Exactly ln 3
    UnaryResponse       K bits; the own one is a fair coin, every other one is 1 with probability
                        1/(1+e^ε)  (optimised unary encoding)
    HadamardResponse    a cell of a Hadamard matrix, e^ε times likelier where the own row is +1:
                        one number, for large K
    OneBitResponse      one bit with P(1) = (1 + t(e^ε−1))/(1+e^ε),
                        t the place of the value in its range (Duchi)
    LaplaceResponse     the value on its grid plus Laplace noise
    GaussianResponse    the value on its grid plus normal noise, μ-GDP

Probabilities are kept as exact numbers (`Chance`). All but the last two draw their report in one
way: with probability `kept` it is chosen by the value, and else it is uniform over all reports,
whatever the value.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import float_up, fraction_text, rational, stored_fraction
from discreet.schema import (
    LARGEST_LEVELS,
    Boolean,
    Category,
    Integer,
    Real,
    column_from_dict,
    level_text,
)
from discreet.sensitivity import L1, L2, Rows
from discreet.specs.mechanisms.additive import (
    LARGEST_REFINEMENT,
    SMALLEST_STEPS,
    GaussianNoise,
    LaplaceNoise,
)

Listed = Category | Boolean | Integer  # columns whose values can be listed
Measured = Real | Integer | Boolean
EPSILON_RANGE = (Fraction(1, 10**9), Fraction(10**6))
MU_RANGE = (Fraction(1, 10**6), Fraction(10**3))


@dataclass(frozen=True, slots=True)
class Chance:
    """The probability (a + b·e^x)/(c + d·e^x), exactly:
    `above` is (a, b), `below` is (c, d), `exponent` is x.
    """

    above: tuple[int, int]
    below: tuple[int, int]
    exponent: Fraction

    def __float__(self) -> float:
        """The nearest floats of it, stable for every exponent."""
        (a, b), (c, d), x = self.above, self.below, float(self.exponent)
        if x < 30:
            grown = math.expm1(x)
            return ((a + b) + b * grown) / ((c + d) + d * grown)
        shrunk = math.exp(-x)
        return (a * shrunk + b) / (c * shrunk + d)


@plain.kept()
@dataclass(frozen=True, slots=True)
class LocalSpec:
    """What all specs share: the declared column, and the guarantee that its theorem turns into a
    price (trusted/extensions/local/loss.py).
    """

    column: Any
    epsilon: Fraction
    kind: ClassVar[str] = ""
    reads: ClassVar[str] = "record"

    @property
    def sensitivity(self) -> Rows:
        """One record, which may be replaced by any other: what local privacy protects."""
        return Rows(1, "replaced")

    @property
    def id(self) -> str:
        """A short name of exactly this spec, in every report."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "column": self.column.to_dict(),
            "epsilon": fraction_text(self.epsilon),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Any:
        return cls(column_from_dict(record["column"]), stored_fraction(record["epsilon"]))


@plain.kept()
@dataclass(frozen=True, slots=True)
class _Choice(LocalSpec):
    """A spec for columns whose values can be listed."""

    def __post_init__(self) -> None:
        _need(self.column, (Category, Boolean, Integer), type(self).__name__)
        object.__setattr__(self, "epsilon", _within(self.epsilon, "epsilon", EPSILON_RANGE))
        if self.size > LARGEST_LEVELS:
            raise InvalidParameter(
                f"{type(self).__name__}(column)",
                f"it has more than {LARGEST_LEVELS} values",
                "the server keeps a count of each",
                "declare coarser values",
            )

    @property
    def size(self) -> int:
        """K, the number of declared values."""
        return (
            len(self.column.levels)
            if isinstance(self.column, Category)
            else 2
            if isinstance(self.column, Boolean)
            else self.column.high - self.column.low + 1
        )

    @property
    def labels(self) -> list[str]:
        """The declared values as text, in the order of their codes."""
        if isinstance(self.column, Category):
            return [level_text(level) for level in self.column.levels]
        return (
            ["false", "true"]
            if isinstance(self.column, Boolean)
            else [str(value) for value in range(self.column.low, self.column.high + 1)]
        )

    def _chance(self, above: tuple[int, int], below: tuple[int, int]) -> Chance:
        return Chance(above, below, self.epsilon)


@plain.kept()
@dataclass(frozen=True, slots=True)
class RandomizedResponse(_Choice):
    """K-ary randomised response; the report is the place of a level, 0 … K−1.

    K = 1 reports 0 always, and says nothing.

    A value that is no declared level, where the column names no `missing` level,
    gives a uniform report.

    Theorem.  ε-DP for one record (reference.md L2).
    Proof.    Every report has probability p, q or, without a level, 1/K,
              and p/q = e^ε with q ≤ 1/K ≤ p.
    Checked.  tests/claims/test_local_reports.py::test_every_report_law_has_its_epsilon
    """

    kind: ClassVar[str] = "randomised response"

    @property
    def kept(self) -> Chance:
        """(e^ε−1)/(K−1+e^ε): the level is kept; else the report is uniform over all K."""
        return self._chance((-1, 1), (self.size - 1, 1))

    @property
    def own(self) -> Chance:
        """p, the probability of reporting the true level."""
        return self._chance((0, 1), (self.size - 1, 1))

    @property
    def other(self) -> Chance:
        """q, the probability of reporting a given other level."""
        return self._chance((1, 0), (self.size - 1, 1))

    def law(self, code: int) -> list[Chance]:
        """The probability of every report."""
        if code < 0:
            return [self._chance((1, 0), (self.size, 0))] * self.size
        return [self.own if report == code else self.other for report in range(self.size)]


@plain.kept()
@dataclass(frozen=True, slots=True)
class TwoCoinResponse(_Choice):
    """The survey with two coins: heads, answer truly; tails, answer by a second toss.

    The report is 0 or 1.

    Theorem.  ε-DP for one record with ε = ln 3 exactly (reference.md L1).
    Proof.    Reports agree with the truth with probability ½ + ½·½ = ¾ and disagree with ¼;
              without a level both have ½.
    Checked.  tests/claims/test_local_reports.py::test_every_report_law_has_its_epsilon
    """

    epsilon: Fraction = Fraction(0)  # not a parameter: the coins decide
    kind: ClassVar[str] = "two coins"

    def __post_init__(self) -> None:
        _need(self.column, (Category, Boolean, Integer), "TwoCoinResponse")
        if self.size != 2 or self.epsilon != 0:
            raise InvalidParameter(
                "TwoCoinResponse",
                "its column does not have two values, or an epsilon was given",
                "two fair coins make one survey: two answers at ln 3",
                "use RandomizedResponse(column, epsilon) for others",
            )

    @property
    def kept(self) -> Chance:
        return self._chance((1, 0), (2, 0))

    @property
    def own(self) -> Chance:
        return self._chance((3, 0), (4, 0))

    @property
    def other(self) -> Chance:
        return self._chance((1, 0), (4, 0))

    def law(self, code: int) -> list[Chance]:
        """The probability of every report."""
        return (
            [self._chance((1, 0), (2, 0))] * 2
            if code < 0
            else [self.own if report == code else self.other for report in range(2)]
        )


@plain.kept()
@dataclass(frozen=True, slots=True)
class UnaryResponse(_Choice):
    """Optimised unary encoding: the report is K bits, one a level.

    A value without a level has no own bit.

    Theorem.  ε-DP for one record.
    Proof.    Two levels differ in two bits. At the worst report their ratios are ½/q and (1−q)/½
              with q = 1/(1+e^ε), together (1−q)/q = e^ε. Without a level one bit differs, and both
              its ratios, ½/q = (1+e^ε)/2 and 2(1−q), are at most e^ε.
    Checked.  tests/claims/test_local_reports.py::test_every_report_law_has_its_epsilon
    """

    kind: ClassVar[str] = "unary"

    @property
    def own(self) -> Chance:
        return self._chance((1, 0), (2, 0))

    @property
    def other(self) -> Chance:
        return self._chance((1, 0), (1, 1))

    def bit_law(self, code: int) -> list[Chance]:
        """The probability that each bit is 1; the bits are independent."""
        return [self.own if bit == code else self.other for bit in range(self.size)]


@plain.kept()
@dataclass(frozen=True, slots=True)
class HadamardResponse(_Choice):
    """Hadamard response: outputs form `blocks` rows of `width` cells; level x owns one block and
    one row of the Hadamard matrix of order `width`.

    Outputs of the own block where that row is +1 (there are s = width/2) are e^ε times likelier
    than all others. More blocks pay where ε is large; `blocks` (a power of two) is chosen for the
    least variance at equal shares unless it is given; it is part of the spec.

    Theorem.  ε-DP for one record.
    Proof.    Every output has probability e^ε/D or 1/D, D = s·e^ε + blocks·width − s, whatever the
              level; without a level 1/(blocks·width), which lies between them.
    Checked.  tests/claims/test_local_reports.py::test_every_report_law_has_its_epsilon
    """

    blocks: int = 0
    kind: ClassVar[str] = "hadamard"

    def __post_init__(self) -> None:
        _Choice.__post_init__(self)
        if self.blocks == 0:
            object.__setattr__(
                self,
                "blocks",
                min(
                    (1 << power for power in range(self.size.bit_length())),
                    key=lambda blocks: _hadamard_variance(self.size, blocks, float(self.epsilon)),
                ),
            )
        blocks = self.blocks
        if (
            isinstance(blocks, bool)
            or not isinstance(blocks, int)
            or blocks < 1
            or blocks & (blocks - 1)
            or blocks > 2 * LARGEST_LEVELS
        ):
            raise InvalidParameter(
                "HadamardResponse(blocks=)",
                "it is no power of two",
                "blocks and rows are found by their binary digits",
                "leave it out",
            )

    @property
    def width(self) -> int:
        """Cells of a block: the least power of two with room for its share of the levels;
        row 0 of the matrix is left out.
        """
        return 1 << (-(-self.size // self.blocks)).bit_length()

    @property
    def outputs(self) -> int:
        return self.blocks * self.width

    @property
    def kept(self) -> Chance:
        """s(e^ε−1)/D: the output is uniform over the own cells; else it is uniform over all."""
        half = self.width // 2
        return self._chance((-half, half), (self.outputs - half, half))

    def place(self, code: int) -> tuple[int, int]:
        """(block, row) of a level."""
        block, row = divmod(code, self.width - 1)
        return block, row + 1

    def law(self, code: int) -> list[Chance]:
        """The probability of every report."""
        half = self.width // 2
        if code < 0:
            return [self._chance((1, 0), (self.outputs, 0))] * self.outputs
        below, (block, row) = (self.outputs - half, half), self.place(code)
        owns = [
            y // self.width == block and ((y % self.width) & row).bit_count() % 2 == 0
            for y in range(self.outputs)
        ]
        return [self._chance((0, 1) if own else (1, 0), below) for own in owns]

    def to_dict(self) -> dict[str, Any]:
        return LocalSpec.to_dict(self) | {"blocks": self.blocks}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> HadamardResponse:
        return cls(
            column_from_dict(record["column"]), stored_fraction(record["epsilon"]), record["blocks"]
        )


@plain.kept()
@dataclass(frozen=True, slots=True)
class OneBitResponse(LocalSpec):
    """One bit whose mean is linear in the value: first the value is rounded at random to an end of
    its range, then randomised response.

    Theorem.  ε-DP for one record.
    Proof.    Binary randomised response is ε-DP for every input, hence for a random one. The two
              steps give P(1) = (1 + t(e^ε−1))/(1+e^ε).
    Checked.  tests/claims/test_local_reports.py::test_every_report_law_has_its_epsilon
    """

    kind: ClassVar[str] = "one bit"

    def __post_init__(self) -> None:
        _need(self.column, (Real, Integer, Boolean), "OneBitResponse")
        object.__setattr__(self, "epsilon", _within(self.epsilon, "epsilon", EPSILON_RANGE))

    @property
    def kept(self) -> Chance:
        return Chance((-1, 1), (1, 1), self.epsilon)

    @property
    def own(self) -> Chance:
        return Chance((0, 1), (1, 1), self.epsilon)

    @property
    def other(self) -> Chance:
        return Chance((1, 0), (1, 1), self.epsilon)

    def law(self, code: int) -> list[Chance]:
        """The probabilities of 0 and 1 for a code of the column's grid."""
        grid = self.column.encoding()
        whole, up = grid.high - grid.low, code - grid.low
        return [
            Chance((up, whole - up), (whole, whole), self.epsilon),
            Chance((whole - up, up), (whole, whole), self.epsilon),
        ]


@plain.kept()
@dataclass(frozen=True, slots=True)
class LaplaceResponse(LocalSpec):
    """The value on the column's grid plus Laplace noise;
    the report is a whole number of noise steps.

    Theorem.  ε-DP for one record (reference.md B2): one value moves the code by at most its range.
    Checked.  tests/claims/test_local_reports.py::test_noise_specs_are_calibrated_to_the_whole_range
    """

    kind: ClassVar[str] = "laplace report"

    def __post_init__(self) -> None:
        _need(self.column, (Real, Integer, Boolean), "LaplaceResponse")
        object.__setattr__(self, "epsilon", _within(self.epsilon, "epsilon", EPSILON_RANGE))
        _ = self.noise

    @property
    def noise(self) -> LaplaceNoise:
        whole = _whole(self.column)
        scale = Fraction(float_up(whole / self.epsilon))
        return LaplaceNoise(L1(whole), scale, _refinement(scale))


@plain.kept()
@dataclass(frozen=True, slots=True)
class GaussianResponse(LocalSpec):
    """The value on the column's grid plus normal noise; the report is a whole number of noise
    steps. `mu` is its GDP parameter.

    Theorem.  μ-GDP for one record (reference.md B5): one value moves the code by at most its range.
    Checked.  tests/claims/test_local_reports.py::test_noise_specs_are_calibrated_to_the_whole_range
    """

    epsilon: Fraction = Fraction(0)  # a normal report has none
    mu: Fraction = Fraction(0)
    kind: ClassVar[str] = "gaussian report"

    def __post_init__(self) -> None:
        _need(self.column, (Real, Integer, Boolean), "GaussianResponse")
        if self.epsilon != 0:
            raise InvalidParameter(
                "GaussianResponse(epsilon=)",
                "normal noise has no epsilon",
                "its guarantee is Gaussian",
                "pass mu=",
            )
        object.__setattr__(self, "mu", _within(self.mu, "mu", MU_RANGE))
        _ = self.noise

    @property
    def noise(self) -> GaussianNoise:
        whole = _whole(self.column)
        sigma = Fraction(float_up(whole / self.mu))
        return GaussianNoise(L2(whole**2), sigma, _refinement(sigma))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "column": self.column.to_dict(), "mu": fraction_text(self.mu)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> GaussianResponse:
        return cls(column_from_dict(record["column"]), mu=stored_fraction(record["mu"]))


# each has a sampler and a theorem
LOCAL: tuple[type[LocalSpec], ...] = (
    RandomizedResponse,
    TwoCoinResponse,
    UnaryResponse,
    HadamardResponse,
    OneBitResponse,
    LaplaceResponse,
    GaussianResponse,
)
_KINDS: dict[str, type[LocalSpec]] = {kind.kind: kind for kind in LOCAL}


def spec_from_dict(record: dict[str, Any]) -> Any:
    """The spec that `to_dict` wrote."""
    return _KINDS[record["kind"]].from_dict(record)


def checked_spec(spec: object) -> Any:
    """A new spec like this one, if it is one of those that have a theorem (not a subclass)."""
    if not plain.among(type(spec), LOCAL):
        raise InvalidParameter(
            "a spec",
            f"a {plain.kind_name(spec)} is not a local mechanism",
            "only what is proven may leave a device",
            f"use one of {', '.join(kind.__name__ for kind in LOCAL)}",
        )
    return plain.rebuilt(spec)


def _need(column: object, kinds: tuple[type, ...], what: str) -> None:
    if not plain.among(type(column), kinds):
        raise InvalidParameter(
            f"{what}(column)",
            f"a {plain.kind_name(column)} is not declared as "
            f"{', '.join(kind.__name__ for kind in kinds)}",
            "the possible values must be public: they set the noise",
            "declare the column, for example Boolean() or Real(0, 10)",
        )


def _within(value: object, name: str, bounds: tuple[Fraction, Fraction]) -> Fraction:
    number = rational(value, name)
    if not bounds[0] <= number <= bounds[1]:
        raise InvalidParameter(
            name,
            f"it is outside {float(bounds[0]):g} … {float(bounds[1]):g}",
            "noise is computed from it; beyond this range there is no noise or no answer",
            f"typical values of {name} in local privacy are between 0.5 and 5",
        )
    return number


def _hadamard_variance(size: int, blocks: int, epsilon: float) -> float:
    """n times the variance of a rare level's share, the others' shares equal:
    P(own block)/kept².
    """
    room = -(-size // blocks)
    width = 1 << room.bit_length()
    half, shrunk = width / 2, math.exp(-epsilon)  # all weights are divided by e^ε
    gain, total = half * -math.expm1(-epsilon), half + (blocks * width - half) * shrunk
    return (width * shrunk + gain * min(1.0, (width - 1) / size)) * total / gain**2


def _whole(column: Any) -> Fraction:
    grid = column.encoding()
    return Fraction(grid.high - grid.low)


def _refinement(spread: Fraction) -> int:
    """The least refinement whose grid is at most a 1024th of the spread."""
    cut = 0
    while spread * (1 << cut) < SMALLEST_STEPS and cut < LARGEST_REFINEMENT:
        cut += 1
    return cut
