"""Random numbers for simulations below the privacy line: fixed functions of a public seed, so that
a result never changes between two readings.

They protect nobody and are never added to data.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from discreet.inference.results.laws import Array


def uniforms(start: int, shape: tuple[int, ...]) -> Array:
    """Numbers in (0, 1) that are a fixed function of their place:
    SplitMix64 of start, start + 1, …
    """
    state = (np.arange(start + 1, start + 1 + int(np.prod(shape)), dtype=np.uint64)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return np.asarray(((state >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53).reshape(shape)


@dataclass(frozen=True, slots=True)
class Stream:
    """Numbers in (0, 1) by place: SplitMix64 counters that start where SHA-256 of the seed says."""

    seed: int | str

    def uniforms(self, shape: tuple[int, ...], part: str = "") -> Array:
        """An array of a part's numbers; parts of other names are other numbers."""
        digest = hashlib.sha256(f"discreet.inference/{self.seed!r}/{part}".encode()).digest()
        return uniforms(int.from_bytes(digest[:8], "little") >> 2, shape)

    def betas(self, a: Array, b: Array) -> Array:
        """One Beta(a, b) variate for each pair of positive parameters:
        G₁/(G₁ + G₂), from two gamma variates.
        """
        first, second = self.gammas(a, "first"), self.gammas(b, "second")
        return np.asarray(first / (first + second))

    def gammas(self, shape: Array, part: str) -> Array:
        """One Gamma(shape) variate each.

        Method.    Marsaglia and Tsang's (2000) rejection from the cube of a normal; a shape below
                   1 is raised by 1 and the variate multiplied by U^(1/shape).
        """
        raised = np.where(shape < 1, shape + 1, shape)
        d = raised - 1 / 3
        found = d * self._cubes(d, part)
        small = np.flatnonzero(shape < 1)
        if small.size:
            found[small] *= self.uniforms((small.size,), f"{part}/raise") ** (1 / shape[small])
        return np.asarray(found)

    def _cubes(self, d: Array, part: str, attempt: int = 0) -> Array:
        """(1 + Z/√(9d))³, kept with the probability that makes d times it a gamma variate;
        what is rejected is drawn again.
        """
        normal = ndtri(self.uniforms(d.shape, f"{part}/normal/{attempt}"))
        root = 1 + normal / np.sqrt(9 * d)
        cube, square = root * root * root, normal * normal
        accept = self.uniforms(d.shape, f"{part}/accept/{attempt}")
        unsure = np.flatnonzero((accept >= 1 - 0.0331 * square * square) | (cube <= 0))
        if unsure.size:
            at, over = np.maximum(cube[unsure], 1e-300), d[unsure]
            rejected = unsure[
                (np.log(accept[unsure]) >= 0.5 * square[unsure] + over * (1 - at + np.log(at)))
                | (cube[unsure] <= 0)
            ]
            if rejected.size:
                cube[rejected] = self._cubes(d[rejected], part, attempt + 1)
        return np.asarray(cube)
