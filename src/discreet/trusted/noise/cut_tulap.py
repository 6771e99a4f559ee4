"""Cut Tulap noise, exactly: a law drawn again until it lies within its reach is that law given that
it does.
"""

from __future__ import annotations

import numpy as np

from discreet.specs.mechanisms.cut_tulap import CutTulapNoise, accepted_share
from discreet.trusted.noise.choice import bernoulli_exp, uniform_below
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import Source


def draw_cut(mechanism: CutTulapNoise, size: int, source: Source) -> list[int]:
    """`size` independent draws, in grid steps.

    Theorem.  Given ideal bits, P(k) ∝ b^|m(k)| on −reach ≤ k < reach, m(k) the whole number nearest
              to the cell [k, k+1) of step 2**-r, b = e^(−1/spread).
    Proof.    Uncut noise has these weights on all k (trusted/noise/sampling.py), and repeated draws
              until one is accepted have the conditional law. Where the reach is short against the
              spread, k is drawn uniformly and accepted with probability b^|m(k)| instead: the same
              law. How often either repeats depends on no data.
    Checked.  tests/claims/test_cut_tulap.py
    """
    kept: list[int] = []
    while len(kept) < size:
        kept += (
            _flat(mechanism, size - len(kept), source)
            if accepted_share(mechanism) < 0.5
            else _uncut(mechanism, size - len(kept), source)
        )
    return kept


def _uncut(mechanism: CutTulapNoise, size: int, source: Source) -> list[int]:
    return [
        step
        for step in draw(mechanism.noise, size, source).tolist()
        if -mechanism.reach <= step < mechanism.reach
    ]


def _flat(mechanism: CutTulapNoise, size: int, source: Source) -> list[int]:
    bits = mechanism.refinement
    steps = [uniform_below(2 * mechanism.reach, source) - mechanism.reach for _ in range(size)]
    nearest = np.array([abs((step + (1 << (bits - 1))) >> bits) for step in steps], dtype=np.int64)
    return [
        step
        for step, keep in zip(
            steps, bernoulli_exp(nearest, 1 / mechanism.spread, source), strict=True
        )
        if keep
    ]
