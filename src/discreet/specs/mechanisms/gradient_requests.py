"""What the server of a local gradient descent asks in one round (reference.md L4):
public, and the same for every device.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from discreet import plain
from discreet.errors import InvalidParameter

FORMAT, VERSION = "discreet-gradient-report", 1
LOSSES = ("logistic", "huber")
CLIP_UNITS = 1 << 24  # the clip norm is this many whole numbers
LARGEST_ROUNDS = 10_000


@plain.kept()
@dataclass(frozen=True, slots=True)
class GradientRequest:
    """What the server asks in one round: the loss, where its gradient is taken,
    and the norm B that gradients are clipped to.

    logistic   (s(xᵀθ) − y)x, y is 0 or 1
    huber      −clip(y − xᵀθ, ±c)x, y and c in units of the residuals' scale
    """

    round: int
    theta: tuple[float, ...]
    loss: str = "logistic"
    clip: float = 1.0
    c: float = 1.345

    def __post_init__(self) -> None:
        if (
            type(self.theta) is not tuple
            or not self.theta
            or type(self.loss) is not str
            or self.loss not in LOSSES
        ):
            raise bad_request("its coefficients or its loss are not known")
        numbers = (*self.theta, self.clip, self.c)
        if type(self.round) is not int or not 1 <= self.round <= LARGEST_ROUNDS:
            raise bad_request("its round is not known")
        if (
            not all(
                type(value) in (int, float) and abs(value) <= sys.float_info.max
                for value in numbers
            )
            or self.clip <= 0
            or self.c <= 0
        ):
            raise bad_request("its numbers are not finite, or its clip norm is not positive")

    def to_dict(self) -> dict[str, Any]:
        return {
            "round": self.round,
            "theta": list(self.theta),
            "loss": self.loss,
            "clip": self.clip,
            "c": self.c,
        }


def bad_request(found: str) -> InvalidParameter:
    return InvalidParameter(
        "a gradient request",
        found,
        "a device answers only what it can bound",
        "send GradientRequest(round, theta, loss, clip)",
    )
