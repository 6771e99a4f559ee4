"""An estimating function as integer arrays, on one grid of its argument."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

PSI_BITS = 13
PSI = 1 << PSI_BITS
GRID = 1 << 10  # table entries a unit of η or of a standardised residual
GAIN_BITS = 16
Table = npt.NDArray[np.int32]
Gains = npt.NDArray[np.int64]


def fixed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers in memory that nobody can make writable: the bytes of an immutable object.

    Tables are built once and shared by whoever asks for them; rows are read by them.
    """
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)


NO_GAIN: Gains = fixed(np.zeros(1, dtype=np.int64))  # of families without one


@dataclass(frozen=True, slots=True)
class Tables:
    """A family as arrays; a residual family has empty `mean` and `shift`."""

    reach: int  # indices run from −reach to reach
    psi: Table
    slope: Table
    mean: Table
    shift: Table
    clip: int
    unit: float  # how many whole numbers of the response one unit of y is (mean families)
    top: int = 0  # the largest response, in those whole numbers
    # what residuals are multiplied by, in units of 2**-GAIN_BITS
    gain: Gains = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        for name in ("psi", "slope", "mean", "shift", "gain"):
            object.__setattr__(self, name, fixed(getattr(self, name)))


def clipped_rest(tables: Tables, response: Any, place: Any) -> npt.NDArray[np.int64]:
    """clip(⌊(y − m)·g⌋, ±C) in units of ψ, for whole-number responses from 0 to `top` and table
    places.
    """
    rest = ((response - tables.mean[place]) * tables.gain[place]) >> GAIN_BITS
    return np.asarray(np.clip(rest, -tables.clip, tables.clip))
