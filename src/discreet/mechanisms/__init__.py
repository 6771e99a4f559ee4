"""Frozen descriptions of what is done to a statistic; the sampler and the accountant read the same object."""

from typing import Any

from discreet.mechanisms.additive import ADDITIVE, AdditiveNoise, GaussianNoise, GeometricNoise, LaplaceNoise, TulapNoise
from discreet.mechanisms.mechanism import Mechanism

PROVEN_MECHANISMS: tuple[type[Mechanism], ...] = (*ADDITIVE,)  # each has a sampler and a theorem; subclasses do not
_KINDS: dict[str, type[Mechanism]] = {kind.kind: kind for kind in PROVEN_MECHANISMS}


def mechanism_from_dict(record: dict[str, Any]) -> Mechanism:
    """The mechanism that `to_dict` wrote."""
    return _KINDS[record["kind"]].from_dict(record)


__all__ = ["PROVEN_MECHANISMS", "AdditiveNoise", "GaussianNoise", "GeometricNoise", "LaplaceNoise", "Mechanism", "TulapNoise", "mechanism_from_dict"]
