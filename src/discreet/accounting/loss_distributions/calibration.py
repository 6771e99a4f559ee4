"""The least Gaussian noise for a target: few evaluations,
and the answer is certified by the last one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from discreet.accounting.loss_distributions.build import (
    fixed_size_subsampled,
    gaussian_pld,
    poisson_subsampled,
)
from discreet.accounting.loss_distributions.curve import PLD, checked_times
from discreet.accounting.loss_distributions.discretisation import discretisation
from discreet.accounting.loss_distributions.pairs import Scheme
from discreet.errors import InvalidParameter
from discreet.exact import decimal_text, rational

_SMALLEST, _LARGEST = 1 / 25, 1e8  # σ in units of the sensitivity
_CLOSE = 2e-5  # relative, of σ


def calibrate_sigma(
    epsilon: float,
    delta: float,
    *,
    steps: int,
    sampling_rate: float = 1.0,
    scheme: Scheme = "poisson",
) -> float:
    """σ/Δ of the Gaussian noise with which `steps` sampled steps are certainly (ε, δ)-DP, within
    2·10⁻⁵ of the least that is provable.

    Method.   A saddle-point estimate of δ(ε; σ) gives a first σ; secant steps in (ln σ, ln δ) on
              the certified δ follow; the σ returned has been evaluated itself.
    Checked.  tests/accounting/test_pld.py::test_calibrated_noise_meets_its_target_barely
    """
    target, failure = rational(epsilon, "epsilon"), rational(delta, "delta")
    if not 0 < target <= 10**4:
        raise InvalidParameter(
            "epsilon",
            f"{decimal_text(target)} is outside (0, 1e4]",
            "noise is computed from it",
            "typical values are between 0.1 and 10",
        )
    if not 0 < failure < 1:
        raise InvalidParameter(
            "delta",
            f"{decimal_text(failure)} is outside (0, 1)",
            "delta is a probability of failure",
            "use a delta far below one over the number of people, for example 1e-6",
        )
    times = checked_times(steps)
    if scheme not in ("poisson", "fixed"):
        raise InvalidParameter(
            "scheme",
            "it is neither 'poisson' nor 'fixed'",
            "amplification is proven for one scheme and its neighbour relation",
            "pass scheme='poisson' (add/remove) or 'fixed' (replace-one)",
        )
    sample = poisson_subsampled if scheme == "poisson" else fixed_size_subsampled
    wanted, goal = float(target), math.log(float(failure))

    def composed(log_sigma: float) -> PLD:
        return sample(gaussian_pld(math.exp(-log_sigma)), sampling_rate).self_compose(times)

    def rough(log_sigma: float) -> float:
        return (
            math.log(
                discretisation(
                    next(composed(log_sigma)._orders()), epsilon=wanted, accuracy=1e-3
                ).delta
            )
            - goal
        )

    def certain(log_sigma: float) -> float:
        found = composed(log_sigma).delta_at(wanted)
        return (math.log(found) if found > 0 else -1e4) - goal

    low, high = math.log(_SMALLEST) + 1e-9, math.log(_LARGEST)
    start = _falling_root(rough, low, high, 2e-3)
    if start - low < 0.01 and certain(low) <= 0:
        return math.exp(low)  # even the least noise that is accounted for here is enough
    return math.exp(_certified_root(certain, start, low, high))


def _falling_root(
    function: Callable[[float], float], low: float, high: float, close: float
) -> float:
    middle = min(max(0.0, low), high)
    step = 1.0
    while step > 0 and low < middle < high:  # first a bracket around σ = Δ, growing
        if function(middle) > 0:
            low, middle = middle, middle + step
        else:
            high, middle = middle, middle - step
        step *= 2
        if high - low < 4 * step:
            break
    while high - low > close:
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2


def _certified_root(
    certain: Callable[[float], float], start: float, low: float, high: float
) -> float:
    """A point where the falling function is ≤ 0, at most `_CLOSE` above one where it is > 0."""
    under, over = low, high  # under: too little noise, over: enough
    point, slope = start, -10.0
    last: tuple[float, float] | None = None
    for _ in range(60):
        value = certain(point)
        if value > 0:
            under = point
        else:
            over = point
        if over - under <= _CLOSE and over < high:
            return over
        if last is not None and point != last[0]:
            slope = min((value - last[1]) / (point - last[0]), -1e-3)
        last = (point, value)
        guess = point - value / slope
        guess += 0.4 * _CLOSE if value > 0 else -0.4 * _CLOSE
        if value <= 0 and guess > point - 0.4 * _CLOSE:
            guess = point - 0.8 * _CLOSE
        point = guess if under < guess < over else (under + over) / 2
    if over < high or certain(high) <= 0:
        return over
    raise InvalidParameter(
        "epsilon, delta",
        "no noise up to 1e8 times the sensitivity is enough",
        "the target is too strict for so many steps",
        "ask for fewer steps or a larger epsilon",
    )
