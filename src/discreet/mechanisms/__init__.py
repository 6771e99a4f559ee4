"""Frozen descriptions of what is done to a statistic; the sampler and the accountant read the same object."""

from discreet.mechanisms.additive import (
    PROVEN_MECHANISMS,
    AdditiveNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
    mechanism_from_dict,
)

__all__ = ["PROVEN_MECHANISMS", "AdditiveNoise", "GaussianNoise", "GeometricNoise", "LaplaceNoise", "TulapNoise", "mechanism_from_dict"]
