"""What the parameters declare: bounds, the number of columns, and half of a spend."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import discreet as dp
from discreet.errors import InvalidParameter


def ends_of(bounds: Any, name: str, width: int, names: Any) -> list[tuple[float, float]]:
    """(low, high) of every column: one pair for all, a pair of arrays,
    or a mapping from names to pairs.
    """
    if bounds is None:
        raise InvalidParameter(
            name,
            "no bounds were given",
            "bounds set the noise, and they are never read from the data",
            f"pass {name}(low, high), from public knowledge",
        )
    try:
        if isinstance(bounds, Mapping):
            pairs = [tuple(bounds[label]) for label in names]
        else:
            low, high = bounds
            pairs = list(
                zip(
                    np.broadcast_to(low, width).tolist(),
                    np.broadcast_to(high, width).tolist(),
                    strict=True,
                )
            )
        ends = [(float(low), float(high)) for low, high in pairs]
    except (TypeError, ValueError, LookupError):
        ends = []
    if len(ends) != width or not all(
        math.isfinite(low) and math.isfinite(high) and low < high for low, high in ends
    ):
        raise InvalidParameter(
            name,
            f"not a pair (low, high) for each of {width} columns",
            "bounds set the noise",
            f"pass {name}(low, high), two arrays of {width} numbers, or a mapping from column "
            "names to pairs",
        )
    return ends


def declared_width(bounds: Any) -> int | None:
    """How many columns the bounds declare; None where they do not (one pair for all, or names)."""
    if isinstance(bounds, Mapping):
        return None
    try:
        low, high = bounds
        shape = np.broadcast_shapes(np.shape(low), np.shape(high))
    except (TypeError, ValueError):
        return None
    return shape[0] if len(shape) == 1 else None


def half_of(spend: Any) -> Any:
    """Half of a spend, in its own currency."""
    if isinstance(spend, dp.GDP):
        return dp.GDP(spend.mu * math.sqrt(0.5) * (1 - 1e-9))
    if isinstance(spend, dp.ZCDP):
        return dp.ZCDP(spend.rho / 2 * (1 - 1e-9))
    if isinstance(spend, dp.PureDP):
        return dp.PureDP(spend.epsilon / 2 * (1 - 1e-9))
    raise InvalidParameter(
        "score_spend=",
        "it cannot be halved",
        "a score of a regression is made of two releases",
        "spend dp.GDP(mu), dp.ZCDP(rho) or dp.PureDP(epsilon)",
    )
