"""The draw of a friendly mean: a noisy weight, and a mean with noise in proportion to its inverse.

The weighted mean is a fraction of whole numbers. It is rounded to steps that are far finer than its
noise, in whole numbers, and noise is added in the same steps. Where no row has weight, 0 stands for
the mean: that a mean follows is told by the noisy weight, and by nothing else.

Theorem.  Outside an event whose probability is at most δ under both neighbours, the answer is
          √(μ₁² + μ₂²)-GDP, μ₁ that of the weight's noise and μ₂² = `mu_squared`; an answer of
          several centres does not depend on the order in which they were labelled.
Proof.    docs/theory/aggregation.md, Theorem 5: whether a mean follows, and its noise, are
          functions of the noisy weight alone. Centres are sorted after their noise was added, which
          is alike for all of them, so that the answer's law is the same for every common labelling.
Checked.  tests/claims/test_friendly.py
"""

from __future__ import annotations

from discreet.specs.aggregation.friends import FriendlyCore
from discreet.specs.mechanisms.friendly import FriendlyMean
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import Source


def friendly_mean(mechanism: FriendlyMean, core: FriendlyCore, source: Source) -> tuple[int, ...]:
    """(noisy weight,), or (noisy weight, *mean in its steps)."""
    noisy = core.weight + int(draw(mechanism.weight_noise(), 1, source)[0])
    noise = mechanism.mean_noise(noisy)
    if noise is None:
        return (noisy,)
    bits, whole = mechanism.step_bits(noisy), max(core.total, 1)
    drawn = draw(noise, mechanism.sensitivity.size, source)
    noisy_mean = [
        ((value << bits + 1) + whole) // (2 * whole) + int(extra)
        for value, extra in zip(core.sums, drawn, strict=True)
    ]
    width = len(noisy_mean) // mechanism.sensitivity.centres
    centres = sorted(
        noisy_mean[start : start + width] for start in range(0, len(noisy_mean), width)
    )
    return (noisy, *(value for centre in centres for value in centre))
