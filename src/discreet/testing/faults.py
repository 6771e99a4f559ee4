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

from discreet.accounting.guarantees import GDP, PureDP
from discreet.accounting.profile import PrivacyProfile
from discreet.inference.simulation.streams import Stream

GRID = 1 << 20


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken function of one value, two neighbouring values, and what is falsely claimed."""

    name: str
    run: Callable[[Any], Any]
    pair: tuple[Any, Any]
    claim: PrivacyProfile


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
    )


def too_little_gaussian(share: float, seed: str = "gaussian") -> Fault:
    """Gaussian noise of a share of the standard deviation that μ = 2 asks for."""
    draw = _uniforms(seed)
    return Fault(
        f"Gaussian noise × {share}",
        lambda value: value + _gridded(share * float(ndtri(draw()[0])) / 2),
        (0.0, 1.0),
        GDP(2),
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
    """Gaussian noise with the multiplier of Laplace noise, 2/ε, read as μ = ε (reference.md B7)."""
    draw = _uniforms("smooth")
    return Fault(
        "smooth sensitivity as printed",
        lambda value: value + _gridded(float(ndtri(draw()[0])) / 2),
        (0.0, 1.0),
        GDP(1),
    )


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
)
