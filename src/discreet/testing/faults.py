"""Broken procedures: positive controls that an audit must catch, ways in which real ones broke.

They are functions of one value (or of a session), and their claims are false. Nothing here protects
anyone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet.accounting.guarantees import GDP, ApproxDP, PureDP
from discreet.accounting.profile import PrivacyProfile
from discreet.inference.simulation.streams import Stream

GRID = 1 << 20
RUNS = {0.9: 40_000, 0.8: 10_000}  # that refute so much less noise


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken function of one value, two neighbouring values, what is falsely claimed, and how
    many runs refute it.
    """

    name: str
    run: Callable[[Any], Any]
    pair: tuple[Any, Any]
    claim: PrivacyProfile
    runs: int = 4_000  # that refute the claim


def _uniforms(seed: str, count: int = 1) -> Callable[[], Any]:
    """Fresh uniform numbers at every call, the same ones for the same seed."""
    place = iter(range(1 << 40))
    block: list[Any] = []

    def draw() -> Any:
        if not block:
            block.extend(
                Stream(f"faults/{seed}").uniforms((4096, count), f"block {next(place)}")[::-1]
            )
        return block.pop()

    return draw


def _laplace(uniform: float) -> float:
    centred = uniform - 0.5
    return -math.copysign(math.log1p(-2 * abs(centred)), centred)


def _gridded(value: float) -> float:
    """On a grid that the statistic lies on, where low bits tell nothing."""
    return round(value * GRID) / GRID


def too_little_laplace(share: float, seed: str = "laplace") -> Fault:
    """Laplace noise of a share of the scale that ε = 1 asks for."""
    draw = _uniforms(seed)
    return Fault(
        f"Laplace noise × {share}",
        lambda value: value + _gridded(share * _laplace(float(draw()[0]))),
        (0.0, 1.0),
        PureDP(1),
        RUNS[share],
    )


def too_little_gaussian(share: float, seed: str = "gaussian") -> Fault:
    """Gaussian noise of a share of the standard deviation that μ = 2 asks for."""
    draw = _uniforms(seed)
    return Fault(
        f"Gaussian noise × {share}",
        lambda value: value + _gridded(share * float(ndtri(draw()[0])) / 2),
        (0.0, 1.0),
        GDP(2),
        RUNS[share],
    )


def other_relation() -> Fault:
    """A histogram of which one row is exchanged, with noise for one that is added."""
    draw = _uniforms("relation", 2)
    return Fault(
        "sensitivity of the other relation",
        lambda counts: np.array(counts) + [_gridded(_laplace(float(u))) for u in draw()],
        ((1.0, 0.0), (0.0, 1.0)),
        PureDP(1),
    )


def unclipped() -> Fault:
    """A sum whose noise is for values of at most 1, of values that are not clipped."""
    draw = _uniforms("unclipped")
    return Fault(
        "clipping dropped",
        lambda value: value + _gridded(_laplace(float(draw()[0]))),
        (0.0, 2.5),
        PureDP(1),
    )


def float_noise() -> Fault:
    """Laplace noise in floats: its low bits tell which number it was added to."""
    draw = _uniforms("floats")
    return Fault(
        "noise in floats", lambda value: value + _laplace(float(draw()[0])), (0.0, 1.0), PureDP(1)
    )


def one_noise_twice() -> Fault:
    """Two statistics with one draw of noise: their difference is exact."""
    draw = _uniforms("twice")

    def run(values: tuple[float, float]) -> Any:
        noise = 4.0 * _laplace(float(draw()[0]))
        return {"difference": round(values[0] + noise - (values[1] + noise), 6)}

    return Fault("one noise for two answers", run, ((1.0, 0.0), (0.0, 0.0)), PureDP(1))


def private_branch() -> Fault:
    """Fails for a large value: that it failed is seen."""
    draw = _uniforms("branch")

    def run(value: float) -> float:
        if value > 0.5:
            raise ValueError("too large")
        return value + _laplace(float(draw()[0]))

    return Fault("a private branch", run, (0.0, 1.0), PureDP(1))


def shown_count() -> Fault:
    """An answer as long as the private number of rows."""
    draw = _uniforms("count")
    return Fault(
        "the private count shown",
        lambda rows: np.full(rows, _laplace(float(draw()[0]))),
        (7, 8),
        PureDP(1),
    )


def printed_randomised_response(levels: int = 4) -> Fault:
    """Randomised response as printed: a lie is drawn among all levels (reference.md L2), so that
    the truth is told more often than ε allows.
    """
    draw, epsilon = _uniforms("response", 2), 1.0
    kept = math.exp(epsilon) / (levels - 1 + math.exp(epsilon))

    def run(level: int) -> dict[str, float]:
        tell, other = draw()
        answer = level if tell < kept else int(levels * other)
        return {f"answer {answer}": 1.0}

    return Fault("randomised response as printed", run, (0, 1), PureDP(epsilon))


def printed_smooth_noise() -> Fault:
    """Gaussian noise of 2/ε smooth sensitivities, as printed, where 5√(2 ln(2/δ))/ε is needed
    (reference.md B7): δ is thousands of times what is claimed.
    """
    draw = _uniforms("smooth")
    return Fault(
        "smooth sensitivity as printed",
        lambda value: value + _gridded(2 * float(ndtri(draw()[0]))),
        (0.0, 1.0),
        ApproxDP(1, 1e-6),
        150_000,
    )


def printed_median() -> Fault:
    """Propose, test, release with the distance measured from the data's own median (reference.md
    B9): one row moves that distance by half of all rows.
    """
    draw, rows, eta, epsilon, delta = _uniforms("median", 2), 201, 1.0, 1.0, 1e-6
    middle = (rows - 1) // 2

    def run(values: tuple[float, ...]) -> float:
        ordered = sorted(values)
        distance = next(
            far
            for far in range(1, rows)
            if far > middle
            or ordered[middle + far] - ordered[middle] > eta
            or ordered[middle] - ordered[middle - far] > eta
        )
        test, blur = (_gridded(_laplace(float(one))) for one in draw())
        if distance + test / epsilon <= 1 + math.log(2 / delta) / epsilon:
            return -1e3  # nothing is released
        return ordered[middle] + eta * blur / epsilon

    far = (*[0.0] * 101, 0.5, *[1.01] * 99)
    near = (*[0.0] * 100, 0.5, *[1.01] * 100)
    return Fault("a stable median as printed", run, (far, near), ApproxDP(2, delta))


def printed_gradient() -> Fault:
    """A clipped gradient whose sensitivity is divided by all rows, not by the batch
    (reference.md E7).
    """
    draw, batch, rows = _uniforms("gradient"), 10, 40
    return Fault(
        "sensitivity of a batch as printed",
        lambda value: value / batch + float(ndtri(draw()[0])) * 2 / rows,
        (-1.0, 1.0),
        GDP(1),
    )


def printed_output() -> Fault:
    """A minimiser with Laplace noise in each coordinate, for its ℓ₂ sensitivity (reference.md
    I1).
    """
    draw, columns = _uniforms("output", 4), 4
    moved = 1 / math.sqrt(columns)

    def run(value: float) -> dict[str, float]:
        noisy = [value * moved + _gridded(_laplace(float(one))) for one in draw()]
        score = math.fsum(abs(one) - abs(one - moved) for one in noisy)
        return {"likelihood ratio": score}

    return Fault("output perturbation as printed", run, (0.0, 1.0), PureDP(1), 20_000)


def printed_minimiser(rows: int = 5, penalty: float = 0.01) -> Fault:
    """A logistic fit with Laplace noise of 1/ε in its objective, without the correction for the
    Jacobian (reference.md I2): a row that bends the objective puts the minimum near 0 four times
    as often as one that does not, where e^0.5 is claimed.
    """
    draw, epsilon = _uniforms("objective"), 0.5
    places = np.linspace(-400, 400, 400_001)
    tables = {  # the noise that puts the minimum at each place, by the one row that is not 0
        row: rows * penalty * places - row / (1 + np.exp(row * places)) for row in (0.0, 1.0)
    }

    def run(row: float) -> dict[str, float]:
        drawn = _laplace(float(draw()[0])) / epsilon
        found = _gridded(float(np.interp(drawn, tables[row], places)))
        return {"minimum": found, "near 0": float(abs(found) < 2)}

    return Fault("objective perturbation as printed", run, (0.0, 1.0), PureDP(epsilon), 10_000)


def printed_filter(rows: int = 50) -> Fault:
    """The weights of a friendly core that jump from ½ to 1 (reference.md K3), their sum with noise
    for a sensitivity of 3.
    """
    draw = _uniforms("filter")

    def run(values: tuple[float, ...]) -> float:
        friends = [sum(abs(one - other) <= 1 for other in values) for one in values]
        weights = [1.0 if n >= rows else max(0.0, (n - rows / 2) / rows) for n in friends]
        return sum(weights) + _gridded(3 * _laplace(float(draw()[0])))

    return Fault(
        "weights of a core as printed",
        run,
        ((0.0,) * rows, (0.0,) * (rows - 1) + (9.0,)),
        PureDP(1),
    )


def printed_laplace() -> Fault:
    """Laplace noise by log(1 − |W|), as printed: it ends at ln 2 (reference.md M4)."""
    draw = _uniforms("sampler")

    def noise() -> float:
        centred = float(draw()[0]) - 0.5
        return _gridded(-math.copysign(math.log1p(-abs(centred)), centred))

    return Fault(
        "a Laplace sampler as printed", lambda value: value + noise(), (0.0, 1.0), PureDP(1)
    )


def not_debited() -> Fault:
    """Four answers of which one is debited."""
    draw = _uniforms("unpaid", 4)
    return Fault(
        "a release that is not debited",
        lambda value: value + np.array([_gridded(_laplace(float(one))) for one in draw()]),
        (0.0, 1.0),
        PureDP(1),
    )


def every_run_shown() -> Fault:
    """The best of eight runs for the price of one, and the others shown beside it."""
    draw = _uniforms("runs", 8)

    def run(value: float) -> Any:
        scores = sorted(value + _gridded(_laplace(float(one))) for one in draw())
        return np.array(scores)

    return Fault("the best of runs that are all shown", run, (0.0, 1.0), PureDP(1))


def exact_surprise() -> Fault:
    """A holdout that answers a surprise exactly, its threshold being noisy (reference.md J2)."""
    draw = _uniforms("surprise", 2)

    def run(held_out: float) -> float:
        threshold, question = (_gridded(_laplace(float(one))) for one in draw())
        surprised = abs(held_out - 2.0) + 4 * question > 1 + 2 * threshold
        return held_out if surprised else 2.0

    return Fault("a surprise that is answered exactly", run, (0.0, 1.0), PureDP(1))


def stated_too_small() -> Fault:
    """A procedure that states half of what it spends."""
    draw = _uniforms("stated")
    return Fault(
        "half of it is stated",
        lambda value: value + _gridded(_laplace(float(draw()[0])) / 2),
        (0.0, 1.0),
        PureDP(1),
    )


FAULTS: tuple[Callable[[], Fault], ...] = (
    lambda: too_little_laplace(0.9),
    lambda: too_little_laplace(0.8),
    lambda: too_little_gaussian(0.9),
    lambda: too_little_gaussian(0.8),
    other_relation,
    unclipped,
    float_noise,
    one_noise_twice,
    private_branch,
    shown_count,
    printed_randomised_response,
    printed_smooth_noise,
    printed_gradient,
    printed_median,
    printed_output,
    printed_minimiser,
    printed_filter,
    printed_laplace,
    not_debited,
    every_run_shown,
    exact_surprise,
    stated_too_small,
)
