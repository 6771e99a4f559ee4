"""Mechanisms with too little noise, drawn by the samplers that release: positive controls, at least
one for each mechanism. The claim is what the mechanism promises with all of its noise.

Mechanisms that read rows themselves are stood for by their formula as some texts print it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.search.policies import Bisection
from discreet.sensitivity import L1, L2, Frobenius, LInf, Rows
from discreet.specs.holdout.thresholdout import Thresholdout
from discreet.specs.mechanisms.additive import (
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
)
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.friendly import FriendlyMean
from discreet.specs.mechanisms.in_turn import AboutCentre, InTurn
from discreet.specs.mechanisms.minimiser import PerturbedMinimiser
from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.specs.mechanisms.procedures import BestOf, StatedGuarantee
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.mechanisms.selection import (
    AboveThreshold,
    ExponentialChoice,
    NoisyMax,
    PermuteAndFlip,
    TopChoices,
)
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.specs.statistics import Histogram, KeyCounts, histogram_of_counts
from discreet.testing.faults import (
    Fault,
    every_run_shown,
    exact_surprise,
    printed_filter,
    printed_gradient,
    printed_minimiser,
    printed_output,
    stated_too_small,
)
from discreet.testing.seeded import SeededSource
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.noise.samplers import apply

ONE, HALF = Fraction(1), Fraction(1, 2)
LEVELS, CELLS = 50, 16
BLOCK, USUAL, MANY = 2048, 10_000, 40_000
NINE_TENTHS, FOUR_FIFTHS = Fraction(9, 10), Fraction(4, 5)
SCORES = LInf(ONE, one_way=False)
ONE_VALUE = Rows(1, "replaced")
POLICY = Bisection(2)


def weakened(name: str, nominal: Any, weak: Any, pair: tuple[Any, Any]) -> Fault:
    """What a mechanism with too little noise gives, beside what is promised with all of it."""
    source = SeededSource(f"weakened/{name}")

    def run(statistic: Any) -> dict[str, float]:
        answer = apply(weak, statistic, source)
        grid = 1 << getattr(weak, "refinement", 0)
        found = {f"value {at}": one / grid for at, one in enumerate(answer.integers[:16])}
        listed = {f"is {one}": 1.0 for one in answer.integers[:1] if abs(one) < LEVELS}
        return found | listed | {f"shows {key}": 1.0 for key in answer.found}

    return Fault(name, run, pair, guarantee_of(nominal), USUAL)


def too_little_noise(name: str, nominal: Any, share: Fraction) -> Fault:
    """Noise on numbers, of a share of its spread."""
    weak = replace(nominal, spread=Fraction(float(nominal.spread * share)))
    return _of_numbers(f"{name} × {float(share):g}", nominal, weak, share)


def _of_numbers(name: str, nominal: Any, weak: Any, share: Fraction) -> Fault:
    runs = MANY if share == NINE_TENTHS else USUAL
    return Fault(name, in_blocks(weak, name), ([0], [1]), guarantee_of(nominal), runs)


def in_blocks(weak: Any, name: str) -> Callable[[Any], float]:
    """One number plus noise, drawn many at a time: coordinates are independent."""
    source = SeededSource(f"weakened/{name}")
    kept: dict[int, list[int]] = {}

    def run(statistic: list[int]) -> float:
        value = statistic[0]
        if not kept.get(value):
            kept[value] = [*apply(weak, [value] * BLOCK, source).integers]
        return kept[value].pop() / float(1 << weak.refinement)

    return run


def _additive(kind: type[Any], share: Fraction) -> Callable[[], Fault]:
    steps = 32 if kind is TulapNoise else 0 if kind is GeometricNoise else 12
    sensitivity = L2(ONE) if kind is GaussianNoise else L1(ONE)
    nominal = kind(sensitivity, HALF, steps)
    return lambda: too_little_noise(kind.__name__, nominal, share)


def _cut(share: Fraction) -> Fault:
    nominal, weak = (
        CutTulapNoise(TulapNoise(L1(ONE), Fraction(float(HALF * part)), 32), 8 << 32)
        for part in (ONE, share)
    )
    return _of_numbers(f"CutTulapNoise × {float(share):g}", nominal, weak, share)


def _symmetric(share: Fraction) -> Fault:
    order = Frobenius(2, Fraction(2))
    nominal, weak = (
        SymmetricGaussianNoise(
            order, Fraction(float(share * part)), Fraction(float(part * share * 3 / 4)), 14
        )
        for part, share in ((ONE, HALF), (share, HALF))
    )
    name = f"SymmetricGaussianNoise × {float(share):g}"
    return weakened(name, nominal, weak, ([1, 0, 0], [0, 0, 1]))


def _choice(kind: type[Any]) -> Fault:
    """One of many candidates, the factor of 2 left out (reference.md B6)."""
    nominal, weak = (kind(SCORES, rate) for rate in (ONE, Fraction(2)))
    return weakened(f"{kind.__name__}, rate × 2", nominal, weak, _scores())


def _scores() -> tuple[list[int], list[int]]:
    """One candidate's score rises, all others fall."""
    return [0] + [1] * (LEVELS - 1), [1] + [0] * (LEVELS - 1)


def _noisy_max() -> Fault:
    nominal, weak = (NoisyMax(SCORES, spread) for spread in (ONE, HALF / 2))
    return weakened("NoisyMax × 0.25", nominal, weak, _scores())


def _top() -> Fault:
    nominal, weak = (TopChoices(SCORES, rate, 1, "exponential") for rate in (ONE, Fraction(2)))
    return weakened("TopChoices, rate × 2", nominal, weak, _scores())


def _threshold() -> Fault:
    """No noise of the threshold (reference.md J2): many answers for the price of one."""
    how = AboveThreshold(LInf(ONE, one_way=True), 0, 1, Fraction(4), Fraction(8), renewed=False)
    weak = replace(how, threshold_spread=Fraction(1, 64), query_spread=Fraction(1, 2))
    return weakened("AboveThreshold, its threshold bare", how, weak, ([-2] * 8, [-1] * 8))


def _middle(low: int, high: int) -> Histogram:
    """So many values in the first cell and in the last."""
    return histogram_of_counts(np.array([low, *[0] * (CELLS - 2), high], dtype=np.int64))


VALUES = (_middle(11, 10), _middle(10, 11))


def _quantile() -> Fault:
    nominal, weak = (
        QuantileChoice(ONE_VALUE, 1, 2, rate, "exponential") for rate in (HALF / 4, Fraction(2))
    )
    return weakened("QuantileChoice, rate × 16", nominal, weak, VALUES)


def _smooth() -> Fault:
    """A tenth of the multiplier: Cauchy noise that follows the median from end to end."""
    nominal, weak = (
        SmoothNoise(ONE_VALUE, 1, 2, "cauchy", Fraction(2), "pure", Fraction(1, 6), multiplier)
        for multiplier in (Fraction(6), Fraction(1, 8))
    )
    return weakened("SmoothNoise, multiplier / 48", nominal, weak, VALUES)


def _proposed() -> Fault:
    """A threshold that every data set passes, and hardly any noise (reference.md B9)."""
    nominal = ProposeTestRelease(ONE_VALUE, 1, 2, 1, ONE, 14, ONE, 12)
    weak = replace(nominal, threshold=1, spread=Fraction(1, 2))
    return weakened("ProposeTestRelease, no threshold", nominal, weak, VALUES)


def _search(units: int = 4) -> tuple[CountSearch, CountSearch]:
    return tuple(  # type: ignore[return-value]
        CountSearch(ONE_VALUE, 1, 1, "gaussian", budget, units, POLICY)
        for budget in (ONE, Fraction(6))
    )


def _searched(kind: str) -> Fault:
    nominal, weak = _search()
    if kind == "CountSearch":
        return weakened("CountSearch, budget × 6", nominal, weak, VALUES)
    if kind == "InTurn":
        return weakened("InTurn, budget × 6", InTurn((nominal,)), InTurn((weak,)), VALUES)
    centre = QuantileChoice(ONE_VALUE, 1, 2, HALF / 4, "exponential")
    strong = replace(centre, rate=Fraction(4))
    return weakened(
        "AboutCentre, rate × 32",
        AboutCentre(centre, InTurn((nominal,))),
        AboutCentre(strong, InTurn((weak,))),
        VALUES,
    )


def _keys() -> Fault:
    """A threshold that a person's own key reaches now and then."""
    noise = GeometricNoise(L1(Fraction(2)), ONE, 0)
    nominal, weak = (ThresholdedCounts(ONE_VALUE, noise, least) for least in (20, 2))
    pair = tuple(
        KeyCounts(names, np.array([5, 1], dtype=np.int64)) for names in (("a", "b"), ("a", "c"))
    )
    return weakened("ThresholdedCounts, threshold 2", nominal, weak, (pair[0], pair[1]))


WEAKENED: dict[type[Any], tuple[Callable[[], Fault], ...]] = {
    **{
        kind: (_additive(kind, NINE_TENTHS), _additive(kind, FOUR_FIFTHS))
        for kind in (GaussianNoise, LaplaceNoise, GeometricNoise, TulapNoise)
    },
    CutTulapNoise: (lambda: _cut(NINE_TENTHS), lambda: _cut(FOUR_FIFTHS)),
    SymmetricGaussianNoise: (lambda: _symmetric(NINE_TENTHS), lambda: _symmetric(FOUR_FIFTHS)),
    ThresholdedCounts: (_keys,),
    QuantileChoice: (_quantile,),
    SmoothNoise: (_smooth,),
    ProposeTestRelease: (_proposed,),
    ExponentialChoice: (lambda: _choice(ExponentialChoice),),
    PermuteAndFlip: (lambda: _choice(PermuteAndFlip),),
    NoisyMax: (_noisy_max,),
    TopChoices: (_top,),
    AboveThreshold: (_threshold,),
    CountSearch: (lambda: _searched("CountSearch"),),
    InTurn: (lambda: _searched("InTurn"),),
    AboutCentre: (lambda: _searched("AboutCentre"),),
    NoisySGD: (printed_gradient,),
    PerturbedMinimiser: (printed_minimiser, printed_output),
    FriendlyMean: (printed_filter,),
    BestOf: (every_run_shown,),
    StatedGuarantee: (stated_too_small,),
    Thresholdout: (exact_surprise,),
}
