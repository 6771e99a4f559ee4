"""`PLD`: a composition of mechanisms, kept as a list of dominating pairs and evaluated when a
question is asked.

The question decides the tilt, the window and the lattice, so that ε at δ = 10⁻¹⁵ is as accurate as
at 10⁻⁵. Both orders of the neighbours are answered together: every result is the worse of the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from discreet.accounting.gaussian import delta_bounds as gaussian_delta_bounds
from discreet.accounting.gaussian import gdp_delta, gdp_epsilon, tradeoff_gdp
from discreet.accounting.loss_distributions.discretisation import discretisation
from discreet.accounting.loss_distributions.lattice import Side, place
from discreet.accounting.loss_distributions.laws import UNIT, Law, kind_of, law_of
from discreet.accounting.loss_distributions.pairs import Direction, Factor, Gaussian
from discreet.accounting.loss_distributions.spectrum import Composed, compose
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.tradeoff.curve import TradeOff, tradeoff_of
from discreet.errors import InvalidParameter
from discreet.exact import decimal_text, float_up, rational, sqrt_up

ACCURACY = 1e-4  # relative, of ε, aimed at by the choice of the lattice
LARGEST_TIMES = 10**12
# how much more finely the lower bound is computed:
# its constant is larger, and it is asked for rarely
_FINER = 256.0
_COARSER = 100.0  # how much less accurately the order that is not the worse one is looked at first
_CLEAR = 0.9
_LARGEST_RISE = 12.0  # of the tilt over one lattice step: what was moved up by rounding stays small
_LARGEST_PIECE = 25  # μ² of one Gaussian factor on a lattice; more is split into equal pieces
_DELTA_WHY = (
    "delta is a probability of failure; at 0 only pure guarantees exist, at 1 nothing is private"
)


@dataclass(frozen=True, slots=True)
class PLD(PrivacyProfile):
    """A privacy loss distribution: `factors` are (dominating pair, how many times).

    Theorem.  `delta_at(ε)` is never below the δ(ε) of the composition,
              and `epsilon_at(δ)` never below its ε.
    Proof.    docs/theory/pld.md: dominating pairs compose; connecting the dots dominates;
              truncation, wrapping and rounding are bounded and added.
    Checked.  tests/accounting/test_pld.py, tests/accounting/test_pld_exact.py

    Example.
            steps = dp.plan(epsilon=2, delta=1e-5, steps=100, sampling_rate=0.01)
            losses = steps.pld
            print(losses.epsilon_at(1e-5), losses.epsilon_bounds(1e-6))
    See also. `dp.compose`, `dp.plan`; docs/theory/pld.md.
    """

    factors: tuple[tuple[Factor, int], ...]
    kind: ClassVar[str] = "pld"

    def __post_init__(self) -> None:
        if not self.factors:
            raise InvalidParameter(
                "a composition",
                "it is empty",
                "nothing was released, so there is no loss to account for",
                "compose at least one mechanism",
            )
        merged: dict[Factor, int] = {}
        for factor, times in self.factors:
            merged[factor] = merged.get(factor, 0) + checked_times(times)
        if sum(merged.values()) > LARGEST_TIMES:
            raise InvalidParameter(
                "a composition",
                f"it has more than {LARGEST_TIMES:.0e} steps",
                "rounding errors grow with the number of steps",
                "compose fewer steps",
            )
        object.__setattr__(self, "factors", tuple(merged.items()))

    @property
    def steps(self) -> int:
        """How many mechanisms are composed."""
        return sum(times for _, times in self.factors)

    def compose(self, *others: PLD) -> PLD:
        """Everything together, adaptively."""
        return PLD(tuple(pair for part in (self, *others) for pair in part.factors))

    def self_compose(self, times: int) -> PLD:
        """`times` independent, possibly adaptive, uses."""
        count = checked_times(times)
        return PLD(tuple((factor, count * each) for factor, each in self.factors))

    def delta_at(self, epsilon: float, *, accuracy: float = ACCURACY) -> float:
        """The least δ(ε) that is certain, rounded up: the worse of both orders."""
        asked = _checked_epsilon(epsilon)
        mu = self._gaussian_mu(up=True)
        if mu is not None:
            return gdp_delta(mu, rational(asked, "epsilon"))
        worst = 0.0
        for laws in self._orders():
            if (
                worst
                and _evaluate(laws, "above", _COARSER * accuracy, epsilon=asked).delta(asked)
                <= worst
            ):
                continue
            worst = max(worst, _evaluate(laws, "above", accuracy, epsilon=asked).delta(asked))
        return worst

    def epsilon_at(self, delta: float, *, accuracy: float = ACCURACY) -> float:
        """The least ε that is certain at δ, rounded up: the worse of both orders; infinity where
        δ is below the chance of outright failure.
        """
        asked = _checked_delta(delta)
        mu = self._gaussian_mu(up=True)
        if mu is not None:
            return gdp_epsilon(mu, rational(asked, "delta"))
        worst = 0.0
        for number, laws in enumerate(self._orders()):
            if (
                number
                and math.isfinite(worst)
                and discretisation(laws, delta=asked, accuracy=accuracy).epsilon < _CLEAR * worst
            ):
                rough = _evaluate(laws, "above", _COARSER * accuracy, delta=asked)
                if rough.delta(worst) <= asked:
                    continue
            worst = max(worst, _evaluate(laws, "above", accuracy, delta=asked).epsilon(asked))
        return worst

    def delta_bounds(self, epsilon: float, *, accuracy: float = ACCURACY) -> tuple[float, float]:
        """(lower, upper) bounds of δ(ε) of the composed dominating pairs:
        how much the numerics can have cost.
        """
        asked = _checked_epsilon(epsilon)
        mu = self._gaussian_mu(up=False)
        if mu is not None:
            return float(
                max(Fraction(0), gaussian_delta_bounds(mu, rational(asked, "epsilon"))[0])
            ), self.delta_at(asked)
        low = max(
            _evaluate(laws, "below", accuracy / _FINER, epsilon=asked).delta(asked)
            for laws in self._orders()
        )
        return low, self.delta_at(asked, accuracy=accuracy)

    def epsilon_bounds(self, delta: float, *, accuracy: float = ACCURACY) -> tuple[float, float]:
        """(lower, upper) bounds of ε(δ) of the composed dominating pairs."""
        asked = _checked_delta(delta)
        mu = self._gaussian_mu(up=False)
        if mu is not None:
            return gdp_epsilon(mu, rational(asked, "delta")) * (1 - 1e-14), self.epsilon_at(asked)
        low = max(
            _evaluate(laws, "below", accuracy / _FINER, delta=asked).epsilon(asked)
            for laws in self._orders()
        )
        return low, self.epsilon_at(asked, accuracy=accuracy)

    def tradeoff(self, alpha: float, *, accuracy: float = ACCURACY) -> float:
        """The least probability of missing a person at false-alarm rate α, rounded down,
        for both orders.

        f(α) = sup_ε 1 − δ(ε) − e^ε·α over real ε (reference.md A5, A6):
        every ε gives a lower bound.
        """
        rate = rational(alpha, "alpha")
        if not 0 <= rate <= 1:
            raise InvalidParameter(
                "alpha",
                "it is not in [0, 1]",
                "it is a probability of false alarm",
                "pass a number from 0 to 1",
            )
        mu = self._gaussian_mu(up=True)
        if mu is not None:
            return tradeoff_gdp(float_up(mu), float(alpha))
        least = 1.0
        for laws in self._orders():
            composed = _evaluate(laws, "above", accuracy, delta=0.5)
            least = min(least, _tradeoff(composed, float(rate)))
        return least

    def covers(self, other: PrivacyProfile) -> bool:
        """Whether everything that satisfies `other` satisfies what is certified here (the certified
        trade-off curve).
        """
        return tradeoff_of(self, points=97).covers(other)

    def group(self, size: int) -> TradeOff:
        """The guarantee for groups of `size`, as a trade-off function (reference.md A3)."""
        return tradeoff_of(self, points=97).group(size)

    def _gaussian_mu(self, *, up: bool) -> Fraction | None:
        """√Σμ² where every factor is Gaussian (exact composition, reference.md C4),
        rounded up or down.
        """
        if not all(isinstance(factor, Gaussian) for factor, _ in self.factors):
            return None
        total = sum(
            (
                times * rational(factor.mu, "mu") ** 2
                for factor, times in self.factors
                if isinstance(factor, Gaussian)
            ),
            Fraction(0),
        )
        root = sqrt_up(total)
        return root if up else root * (1 - Fraction(1, 1 << 50))

    def _orders(self) -> Iterator[list[Law]]:
        groups: dict[object, list[tuple[Factor, int]]] = {}
        squares = Fraction(0)
        for factor, times in self.factors:
            if isinstance(factor, Gaussian):
                squares += times * rational(factor.mu, "mu") ** 2
            else:
                groups.setdefault((kind_of(factor), times == 1), []).append((factor, times))
        if squares:
            pieces = max(1, math.ceil(squares / _LARGEST_PIECE))
            groups["gaussian"] = [(Gaussian(float_up(sqrt_up(squares / pieces))), pieces)]
        directions: tuple[Direction, ...] = (
            ("remove",)
            if all(factor.symmetric for factor, _ in self.factors)
            else ("remove", "add")
        )
        for direction in directions:
            yield [
                law_of([factor for factor, _ in group], [times for _, times in group], direction)
                for group in groups.values()
            ]

    def __str__(self) -> str:
        return f"PLD of {self.steps} steps, {len(self.factors)} different"


def compose_all(parts: Iterable[tuple[PLD, int]]) -> PLD:
    """One PLD of many, each (PLD, how many times)."""
    return PLD(
        tuple(
            (factor, each * checked_times(times))
            for part, times in parts
            for factor, each in part.factors
        )
    )


def _evaluate(
    laws: list[Law],
    side: Side,
    accuracy: float,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
) -> Composed:
    if delta is not None and delta >= 0.5:
        chosen = discretisation(laws, delta=0.5, accuracy=accuracy)
        tilt = 0.0
    else:
        chosen = discretisation(laws, delta=delta, epsilon=epsilon, accuracy=accuracy)
        tilt = chosen.tilt
    step = chosen.step
    while True:
        parts = [
            place(law, step, chosen.tail, side, grading)
            for law, grading in zip(laws, chosen.gradings, strict=True)
        ]
        try:
            return compose(
                parts, tilt=min(tilt, _LARGEST_RISE / step), spread=chosen.spread, side=side
            )
        except OverflowError:
            step *= 2


def _tradeoff(composed: Composed, alpha: float) -> float:
    growth, delta = composed.curve()
    slack = (
        (composed.error + 4 * UNIT) * composed.mass.size
        + composed.outside
        + composed.infinite
        + composed.cumulant_error
        + 16 * UNIT
    )
    scale = math.exp(composed.cumulant)
    found = float(np.max(1 - scale * delta - growth * alpha)) - slack
    return max(0.0, min(found, 1 - alpha))


def checked_times(times: object) -> int:
    if isinstance(times, bool) or not isinstance(times, int) or not 1 <= times <= LARGEST_TIMES:
        raise InvalidParameter(
            "times",
            f"it is not a whole number from 1 to {LARGEST_TIMES:.0e}",
            "it counts how often a mechanism is used",
            "pass for example 1000",
        )
    return times


def _checked_epsilon(value: object) -> float:
    number = rational(value, "epsilon")
    if not 0 <= number <= 10**9:
        raise InvalidParameter(
            "epsilon",
            f"{decimal_text(number)} is outside 0 … 1e9",
            "it bounds the loss from above",
            "ask at an epsilon of 0 or more",
        )
    return float(number)


def _checked_delta(value: object) -> float:
    number = rational(value, "delta")
    if not Fraction(1, 10**40) <= number < 1:
        raise InvalidParameter(
            "delta",
            f"{decimal_text(number)} is outside 1e-40 … 1",
            _DELTA_WHY,
            "use a delta far below one over the number of people, for example 1e-6",
        )
    return float(number)
