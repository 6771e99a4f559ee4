"""Frozen descriptions of what is done to a statistic; sampler and accountant read the same object.

Additive noise is named here; all others in their own modules, so that a device that sends reports
loads little. `discreet.specs.registry` has the table of all.
"""

from discreet.specs.mechanisms.additive import (
    AdditiveNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
)
from discreet.specs.mechanisms.mechanism import Mechanism, fits_in_size

__all__ = [
    "AdditiveNoise",
    "GaussianNoise",
    "GeometricNoise",
    "LaplaceNoise",
    "Mechanism",
    "TulapNoise",
    "fits_in_size",
]
