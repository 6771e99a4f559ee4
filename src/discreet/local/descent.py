"""The server of an interactive local gradient descent (reference.md L4): it averages noisy reports
and takes the step. It never sees a record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.inference.results.laws import Array
from discreet.specs.mechanisms.gradient_requests import CLIP_UNITS, FORMAT, VERSION, GradientRequest


@dataclass(frozen=True)
class LocalRound:
    """The mean of one round's reports and the standard deviation of its noise,
    2B√K/(μ√n) a coordinate.
    """

    gradient: Array
    noise: float
    reports: int


def mean_gradient(reports: Sequence[dict[str, Any]], request: GradientRequest) -> LocalRound:
    """The mean clipped gradient of the devices that answered a round;
    how many did is known to the server.
    """
    if not reports:
        raise InvalidParameter(
            "mean_gradient", "there are no reports", "a mean needs some", "wait for the devices"
        )
    for report in reports:
        if (
            report.get("format") != FORMAT
            or report.get("version") != VERSION
            or report.get("round") != request.round
            or report.get("clip") != request.clip
            or len(report.get("integers", ())) != len(request.theta)
        ):
            raise InvalidParameter(
                "mean_gradient",
                "a report is of another round, request or format",
                "only answers to one question have a mean",
                "collect the reports of one request",
            )
    unit, count = request.clip / CLIP_UNITS, len(reports)
    total = [
        sum(int(report["integers"][place]) for report in reports)
        for place in range(len(request.theta))
    ]
    variance = sum(float(Fraction(report["spread"])) ** 2 for report in reports)
    return LocalRound(
        np.array([float(value) for value in total]) * (unit / count),
        math.sqrt(variance) * unit / count,
        count,
    )


def next_request(
    reports: Sequence[dict[str, Any]], request: GradientRequest, *, step_size: float
) -> GradientRequest:
    """The request of the next round: θ ← θ − η·(mean gradient); a function of reports alone."""
    if (
        isinstance(step_size, bool)
        or not isinstance(step_size, (int, float))
        or not 0 < step_size < math.inf
    ):
        raise InvalidParameter(
            "step_size=",
            "it is not a positive number",
            "it is how far a round moves the coefficients",
            "use about one over the largest curvature",
        )
    mean = mean_gradient(reports, request)
    theta = np.clip(np.array(request.theta) - step_size * mean.gradient, -1e6, 1e6)
    return GradientRequest(
        request.round + 1,
        tuple(float(value) for value in theta),
        request.loss,
        request.clip,
        request.c,
    )
