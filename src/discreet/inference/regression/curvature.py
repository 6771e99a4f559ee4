"""Noisy curvature and score matrices made usable: shrinkage towards a multiple of the identity,
floored inverses, and their law by simulation.

After whitening, isotropy is the right target: positive-part James–Stein shrinkage removes noise,
and entries that stand out on their own are kept (regression.md §2, "Regularised inverse"; without
the entry factor a rare level's coefficient fell to a coverage of 0.68).
"""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from discreet.inference.results.laws import Array

# few where noise is below this share of the level: other draws would give all but the same errors
DRAWS, FEW_DRAWS, CALM = 200, 40, 0.02
MOST_ENTRIES = 1 << 20  # of all draws together: wide models are simulated with fewer draws


@dataclass(frozen=True)
class Shrunk:
    """A noisy symmetric matrix after shrinkage: `matrix` = level·I + factor∘(rest), with
    eigenvalues floored at `floor`.
    """

    matrix: Array
    level: float
    factor: Array
    floor: float
    noise: float

    @property
    def kept(self) -> float:
        """The mean factor: how much of the differences from the identity was kept."""
        return float(np.mean(self.factor))

    @property
    def inverse(self) -> Array:
        return np.asarray(np.linalg.inv(self.matrix))


def shrunk(released: Array, noise: float, *, largest: float, curvature: bool) -> Shrunk:
    """The regularised form of a released mean matrix with noise s (GOE); `largest` is the public
    bound of what one row adds a unit of ‖z‖².
    """
    size = len(released)
    level = float(np.trace(released)) / size
    rest = released - level * np.eye(size)
    factor = shrink_factor(rest, noise)
    if curvature:
        level = max(level, 2 * noise / math.sqrt(size), 1e-3 * largest)
    shape = level * np.eye(size) + factor * rest
    if curvature:
        floor = max(
            0.1 * level,
            0.5 * noise * _radius(size) * max(float(np.mean(factor)), 0.2),
            1e-3 * largest,
        )
    else:
        floor = max(0.1 * level, 1e-4 * largest)
    return Shrunk(floored(shape, floor), level, factor, floor, noise)


def shrink_factor(rest: Array, noise: float) -> Array:
    """max(t, 1 − (2s_ij/D_ij)²) for each entry of a matrix, or of a stack of them; t is the
    positive-part James–Stein factor of the whole matrix.
    """
    size = rest.shape[-1]
    entry_noise = noise * np.where(np.eye(size) > 0, 1.0, math.sqrt(0.5))
    # an entry of exactly 0 (one column has no other) under much noise: nothing of it is kept
    with np.errstate(over="ignore"):
        whole = np.maximum(
            0.0,
            1
            - noise**2
            * (size * (size + 1) / 2 - 1)
            / np.maximum((rest**2).sum(axis=(-2, -1), keepdims=True), 1e-300),
        )
        alone = 1 - (2 * entry_noise / np.maximum(np.abs(rest), 1e-150)) ** 2
    return np.asarray(np.maximum(whole, alone))


def floored(matrix: Array, floor: float) -> Array:
    """The matrix (or stack of them) with eigenvalues raised to `floor`.

    Method.  Where matrix − floor·I has a Cholesky root all eigenvalues stand above the floor, and
             nothing changes; only the others are decomposed, which is many times slower, the more
             so where LAPACK's threads wait for each other.
    """
    even = np.asarray((matrix + np.swapaxes(matrix, -1, -2)) / 2)
    stack = even.reshape(-1, *even.shape[-2:])
    low = [place for place, one in enumerate(stack) if not _stands_above(one, floor)]
    if low:
        values, vectors = np.linalg.eigh(stack[low])
        stack[low] = (vectors * np.maximum(values, floor)[..., None, :]) @ np.swapaxes(
            vectors, -1, -2
        )
    return stack.reshape(even.shape)


def _stands_above(matrix: Array, floor: float) -> bool:
    """Whether all eigenvalues of a symmetric matrix are above `floor` (but for rounding)."""
    try:
        np.linalg.cholesky(matrix - floor * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True


def draws_for(*found: Shrunk) -> int:
    """How many draws the law of some matrices needs."""
    return FEW_DRAWS if all(one.noise < CALM * one.level for one in found) else DRAWS


def redrawn(found: Shrunk, which: str, draws: int = DRAWS) -> Array:
    """What else the estimate could have been if it were the truth: fixed draws of the noise added
    to it, and shrunk in the same way.
    """
    size = len(found.matrix)
    released = found.matrix + found.noise * symmetric_draws(size, which)[:draws]
    level = np.trace(released, axis1=1, axis2=2)[:, None, None] / size * np.eye(size)
    rest = released - level
    return floored(level + shrink_factor(rest, found.noise) * rest, found.floor)


@functools.lru_cache(maxsize=16)
def symmetric_draws(order: int, which: str) -> Array:
    """Symmetric normal matrices (diagonal N(0, 1), off it N(0, ½)), the same on every machine:
    SHAKE-256 of their name through the normal quantile.
    """
    entries = order * (order + 1) // 2
    count = max(20, min(DRAWS, MOST_ENTRIES // entries))
    rows, columns = np.triu_indices(order)
    upper = normal_draws(f"{which}/{order}", count * entries).reshape(count, entries) * np.where(
        rows == columns, 1.0, math.sqrt(0.5)
    )
    matrices = np.zeros((count, order, order))
    matrices[:, rows, columns] = upper
    matrices[:, columns, rows] = upper
    matrices.setflags(write=False)
    return matrices


def normal_draws(name: str, count: int) -> Array:
    """`count` fixed standard normal numbers of a name."""
    words = np.frombuffer(
        hashlib.shake_256(f"discreet.inference/{name}".encode()).digest(8 * count), dtype="<u8"
    )
    return np.asarray(ndtri(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53))


def _radius(size: int) -> float:
    """The spectral radius of symmetric noise of standard deviation 1."""
    return math.sqrt(2 * size) if size > 1 else 1.0
