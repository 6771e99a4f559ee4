"""Counts of undeclared keys with noise, cut at a threshold."""

from __future__ import annotations

import numpy as np

from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.specs.statistics import KeyCounts
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import Source

_WIDE_REFINEMENT = 20  # up to it, counts below 2**42 are cut into steps within 64 bits


def shown_keys(
    mechanism: ThresholdedCounts, counts: KeyCounts, source: Source
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The noisy counts (in grid steps) that reach the threshold, and their keys,
    in the order of the keys.

    Theorem.  Every key that is present gets its own noise of the mechanism's law; which ones are
              shown, and what is shown of them, depends on nothing else.
    Proof.    `draw` gives independent noise; the order of `counts` is that of the names, so the
              order of what is shown says nothing more.
    Checked.  tests/claims/test_open_keys.py::test_the_sampler_follows_the_law
    """
    cut, steps, names = 1 << mechanism.noise.refinement, [], []
    for piece in counts.pieces():
        noise = draw(mechanism.noise, len(piece.counts), source)
        exact = (
            piece.counts
            if mechanism.noise.refinement <= _WIDE_REFINEMENT
            else piece.counts.astype(object)
        )
        noisy = exact * cut + noise
        shown = np.flatnonzero(noisy >= mechanism.threshold).tolist()
        steps += [int(noisy[place]) for place in shown]
        names += [piece.names[place] for place in shown]
    return tuple(steps), tuple(names)
