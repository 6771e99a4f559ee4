"""Frozen descriptions of what is done to a statistic; the sampler and the accountant read the same object.

Additive noise is loaded at once, all else (`discreet.specs.mechanisms.proven`) on first use: a device that sends reports needs little of it.
"""

from typing import TYPE_CHECKING, Any

from discreet.specs.mechanisms.additive import AdditiveNoise, GaussianNoise, GeometricNoise, LaplaceNoise, TulapNoise
from discreet.specs.mechanisms.mechanism import Mechanism, fits_in_size

if TYPE_CHECKING:
    from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
    from discreet.specs.mechanisms.open_keys import ThresholdedCounts
    from discreet.specs.mechanisms.proven import PROVEN_MECHANISMS, mechanism_from_dict
    from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise

__all__ = [
    "PROVEN_MECHANISMS", "AdditiveNoise", "CutTulapNoise", "GaussianNoise", "GeometricNoise", "LaplaceNoise", "Mechanism", "SymmetricGaussianNoise", "ThresholdedCounts", "TulapNoise",
    "fits_in_size", "mechanism_from_dict",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from discreet.specs.mechanisms import proven

    return getattr(proven, name)
