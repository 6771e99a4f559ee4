"""Local privacy: what one person's device computes from that person's record, with noise,
before anything leaves it.

`LocalGradients` answers the rounds of an interactive noisy gradient descent (reference.md L4):
a clipped gradient of one record plus noise that this device draws for itself. The server
(discreet.local.descent) sees the noisy whole numbers alone.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NoReturn

from discreet import plain
from discreet.errors import devices
from discreet.exact import rational, sqrt_up
from discreet.sensitivity import L2
from discreet.specs.mechanisms.additive import GaussianNoise
from discreet.specs.mechanisms.gradient_requests import (
    CLIP_UNITS,
    FORMAT,
    LARGEST_ROUNDS,
    VERSION,
    GradientRequest,
    bad_request,
)
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import SecureSource, Source, secure_source


class LocalGradients:
    """One person's answers to a descent of `rounds` rounds, μ-GDP for that person's record in all.

    Theorem.  All reports together are μ-GDP for any two records, whatever the server asks and
              however it adapts (reference.md L4).
    Proof.    A report is q + noise, q of whole numbers with ‖q‖ ≤ CLIP_UNITS for every record
              (checked in integers), so two records differ by at most 2·CLIP_UNITS and noise of
              σ = 2·CLIP_UNITS·√rounds/μ, rounded up, makes a report μ/√rounds-GDP; at most `rounds`
              reports are given, each round once, and μ² adds up adaptively (C4). The noise is drawn
              here: no other device shares it.
    Checked.  tests/claims/test_local_descent.py
    """

    __slots__ = ("_answered", "_lock", "_noise", "_process", "_rounds", "_source")

    def __init__(self, mu: float, rounds: int, *, source: Source | None = None) -> None:
        budget, rounds = rational(mu, "mu"), plain.value(rounds, "rounds")
        if type(rounds) is not int or not 1 <= rounds <= LARGEST_ROUNDS:
            raise devices.bad_rounds(LARGEST_ROUNDS)
        if not Fraction(1, 10**5) <= budget <= 1000:
            raise devices.bad_mu()
        self._noise, self._rounds, self._answered = local_noise(budget, rounds), rounds, set[int]()
        self._source, self._lock, self._process = (
            secure_source() if source is None else source,
            threading.Lock(),
            os.getpid(),
        )

    @property
    def mechanism(self) -> GaussianNoise:
        """The noise of one report: a copy, which is not what is drawn from."""
        return plain.rebuilt(self._noise)

    def report(self, x: Sequence[float], y: float, request: GradientRequest) -> dict[str, Any]:
        """The noisy clipped gradient of one record, ready for JSON; each round is answered once."""
        request = plain.exactly(request, GradientRequest, "a gradient request")
        columns, outcome = _record(x, y)
        if len(columns) != len(request.theta):
            raise bad_request(
                f"it has {len(request.theta)} coefficients, and the record {len(columns)} columns"
            )
        if self._process != os.getpid():
            raise devices.forked()
        with self._lock:
            if request.round > self._rounds or request.round in self._answered:
                raise devices.answered(request.round, self._rounds)
            self._answered.add(request.round)
        exact = clipped_gradient(columns, outcome, request)
        noise = draw(self._noise, len(exact), self._source)
        integers = [value + int(step) for value, step in zip(exact, noise, strict=True)]
        return {
            "format": FORMAT,
            "version": VERSION,
            "round": request.round,
            "clip": request.clip,
            "integers": [str(value) for value in integers],
            "spread": str(self._noise.spread),
            "secure": type(self._source) is SecureSource,
        }

    def __reduce__(self) -> NoReturn:
        raise devices.copied()


def _record(x: object, y: object) -> tuple[list[float], float]:
    """The record's columns and its outcome, read once; how many columns there are is public."""
    try:
        cells = list(x)  # type: ignore[call-overload]
    except Exception:
        raise bad_request("the record is no list of numbers") from None
    return [_number(cell) for cell in cells], _number(y)


def _number(cell: object) -> float:
    """A cell as a float; nan where it is no number,
    so that a record of any kind is answered alike.
    """
    try:
        return float(plain.value(cell, "a record"))
    except Exception:
        return math.nan


def local_noise(mu: Fraction, rounds: int) -> GaussianNoise:
    """The noise of one report."""
    sensitivity = L2(Fraction(2 * CLIP_UNITS) ** 2)
    return GaussianNoise(sensitivity, sqrt_up(sensitivity.squared * rounds / mu**2), 0)


def clipped_gradient(x: Sequence[float], y: float, request: GradientRequest) -> list[int]:
    """The gradient in whole numbers of clip/CLIP_UNITS, of norm at most CLIP_UNITS; 0 for a record
    that is not of finite numbers.
    """
    try:
        values, outcome = [float(value) for value in x], float(y)
        eta = math.fsum(a * b for a, b in zip(values, request.theta, strict=True))
        if request.loss == "logistic":
            slope = 0.5 * (1 + math.tanh(eta / 2)) - min(max(outcome, 0.0), 1.0)
        else:
            slope = -min(max(outcome - eta, -request.c), request.c)
        gradient = [slope * value for value in values]
        length = math.hypot(*gradient)
        scale = CLIP_UNITS / max(length, request.clip)
        whole = [int(value * scale) for value in gradient]  # toward zero
    except (TypeError, ValueError, OverflowError):
        return [0] * len(request.theta)
    # floats may be off in the last place
    while sum(value * value for value in whole) > CLIP_UNITS**2:
        whole = [int(value * (1 - 2.0**-40)) if abs(value) < 1 << 40 else 0 for value in whole]
        whole = [value - (value > 0) + (value < 0) for value in whole]
    return whole
