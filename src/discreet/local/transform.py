"""Two small algorithms: the fast Walsh–Hadamard transform, and the nearest point of the simplex."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def walsh_hadamard(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Σ_c (−1)^popcount(r & c)·counts[…, c] for every row r, along the last axis (its length a
    power of two): exact, width·log₂(width) additions.
    """
    out = counts.astype(np.int64)
    width, step = out.shape[-1], 1
    while step < width:
        pairs = out.reshape(*out.shape[:-1], width // (2 * step), 2, step)
        out = np.stack(
            [pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], axis=-2
        ).reshape(out.shape)
        step *= 2
    return out


def on_simplex(shares: Array) -> Array:
    """The nearest point (in Euclid's sense) with shares ≥ 0 that add up to 1.

    Method.    max(shares − t, 0) with the t that makes them add up.
    Reference. Held, Wolfe and Crowder (1974).
    """
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.asarray(np.maximum(shares - excess[last], 0.0))
