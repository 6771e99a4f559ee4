"""Symmetric normal noise: two laws of `sampling.draw`,
laid out on an upper triangle and what follows it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.sensitivity import L2
from discreet.specs.mechanisms.additive import GaussianNoise
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise, off_diagonal
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import Source


def draw_symmetric(
    mechanism: SymmetricGaussianNoise, size: int, source: Source
) -> npt.NDArray[np.int64]:
    """The noise of a statistic of `size` numbers, in grid steps:
    first all entries off the diagonal are drawn, then the others.

    Theorem.  Given ideal bits, entries are independent; those off the diagonal are rounded
              N(0, off_spread²), all others N(0, spread²).
    Proof.    `sampling.draw`, once for each of the two laws;
              which entries lie off the diagonal is fixed by the order.
    Checked.  tests/claims/test_symmetric_noise.py::test_draws_follow_the_two_laws
    """
    triangle = off_diagonal(mechanism.order)
    assert size >= len(triangle)
    off = np.zeros(size, dtype=bool)
    off[: len(triangle)] = triangle
    noise = np.empty(size, dtype=np.int64)
    for here, spread in ((off, mechanism.off_spread), (~off, mechanism.spread)):
        law = GaussianNoise(L2(Fraction(1)), spread, mechanism.refinement)
        noise[here] = draw(law, int(here.sum()), source)
    return noise
