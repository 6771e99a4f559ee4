"""What the parameters declare: bounds, the number of columns, and half of a spend."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

import discreet as dp
from discreet.errors import InvalidParameter

TARGET = "target"
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAKEN = (TARGET, "intercept", "log", "square", "bs", "C")

Ends = list[tuple[float, float]]


def ends_of(bounds: Any, name: str, width: int, names: Any) -> Ends:
    """(low, high) of every column: one pair for all, a pair of arrays (all lows, all highs), a list
    of pairs, or a mapping from names to pairs. Of two columns, four numbers can be read either way:
    where both readings are bounds, none is chosen.
    """
    if bounds is None:
        raise InvalidParameter(
            name,
            "no bounds were given",
            "bounds set the noise, and they are never read from the data",
            f"pass {name}(low, high), from public knowledge",
        )
    found = []
    for ends in _readings(bounds, width, names):
        if len(ends) == width and all(
            math.isfinite(low) and math.isfinite(high) and low < high for low, high in ends
        ):
            found.append(ends)
    if not found:
        raise InvalidParameter(
            name,
            f"not a pair (low, high) for each of {width} columns",
            "bounds set the noise",
            f"pass {name}(low, high), two arrays of {width} numbers, or a mapping from column "
            "names to pairs",
        )
    if any(ends != found[0] for ends in found):
        raise InvalidParameter(
            name,
            "they can be read as two pairs (low, high) and as two lows and two highs",
            "each reading declares other ranges, and neither is guessed",
            "pass a mapping from column names to pairs, with X as a frame, or declare one pair "
            f"{name}(low, high) that holds both columns",
        )
    return found[0]


def _readings(bounds: Any, width: int, names: Any) -> Iterator[Ends]:
    """What bounds can mean."""
    if isinstance(bounds, Mapping):
        with suppress(TypeError, ValueError, LookupError):
            yield _pairs(bounds[label] for label in names)
        return
    with suppress(TypeError, ValueError):
        low, high = bounds
        yield _pairs(
            zip(
                np.broadcast_to(low, width).tolist(),
                np.broadcast_to(high, width).tolist(),
                strict=True,
            )
        )
    with suppress(TypeError, ValueError):
        yield _pairs(bounds)


def _pairs(given: Iterable[Any]) -> Ends:
    return [(float(low), float(high)) for low, high in given]


def declared_width(bounds: Any) -> int | None:
    """How many columns the bounds declare; None where they do not (one pair for all, or names)."""
    if isinstance(bounds, Mapping):
        return None
    try:
        low, high = bounds
        shape = np.broadcast_shapes(np.shape(low), np.shape(high))
    except (TypeError, ValueError):
        with suppress(TypeError, ValueError):
            return len(_pairs(bounds))
        return None
    return shape[0] if len(shape) == 1 else None


def formula_names(width: int, names: Any) -> list[str]:
    """What the columns are called in a formula and in its result: their own names where all of
    them can stand in one, else x0, x1, …
    """
    plain = [] if names is None else [str(name) for name in names]
    if len(set(plain)) == width and all(
        _PLAIN_NAME.fullmatch(name) and name not in _TAKEN for name in plain
    ):
        return plain
    return [f"x{place}" for place in range(width)]


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
