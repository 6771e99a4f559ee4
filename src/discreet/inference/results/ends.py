"""Where a set of candidates ends: the ends of intervals that are the candidates a test keeps.

From the estimate, which is kept, to the end of the range candidates are first kept and then not.
The distance is halved again and again; for a few cells, where calls cost more than numbers, it is
cut in sixteen, which finds the same place in a quarter of the calls.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from discreet.inference.results.laws import Array

FEW_CELLS = 16
BITS = 4  # of the place that a cut of few cells finds


def last_kept(
    kept: Callable[[Array], npt.NDArray[np.bool_]], inner: Array, outer: Array, halvings: int
) -> tuple[Array, Array]:
    """(the last candidate that is kept, the first that is not), 2^-`halvings` of the distance from
    `inner` to `outer` apart.

    `kept` tells of candidates of shape (candidates, …) which are kept; those of `inner` are.
    `outer` stays exactly as it is where all before it are kept.
    """
    inner, outer = np.asarray(inner, dtype=float), np.asarray(outer, dtype=float)
    bits = BITS if inner.size <= FEW_CELLS else 1
    shares = np.linspace(0.0, 1.0, (1 << bits) + 1)[:-1].reshape(-1, *(1 for _ in inner.shape))
    for _ in range(-(-halvings // bits)):
        steps = np.concatenate([inner + (outer - inner) * shares, outer[None]])
        inside = kept(steps[1:-1])
        last = np.logical_and.accumulate(inside, axis=0).sum(axis=0)
        inner, outer = (
            np.take_along_axis(steps, (last + further)[None], axis=0)[0] for further in (0, 1)
        )
    return inner, outer
