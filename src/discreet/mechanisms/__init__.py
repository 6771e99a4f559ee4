"""Frozen descriptions of what is done to a statistic; the sampler and the accountant read the same object."""

from typing import Any

from discreet.mechanisms.additive import ADDITIVE, AdditiveNoise, GaussianNoise, GeometricNoise, LaplaceNoise, TulapNoise
from discreet.mechanisms.folded import AboutCentre
from discreet.mechanisms.in_turn import InTurn
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.open_keys import ThresholdedCounts
from discreet.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.mechanisms.search import CountSearch
from discreet.mechanisms.selection import SELECTION
from discreet.mechanisms.sgd import NoisySGD
from discreet.mechanisms.symmetric import SymmetricGaussianNoise

PROVEN_MECHANISMS: tuple[type[Mechanism], ...] = (*ADDITIVE, ThresholdedCounts, QuantileChoice, SmoothNoise, ProposeTestRelease, *SELECTION, SymmetricGaussianNoise, CountSearch, InTurn, AboutCentre, NoisySGD)  # each has a sampler and a theorem; subclasses do not
_KINDS: dict[str, type[Mechanism]] = {kind.kind: kind for kind in PROVEN_MECHANISMS}


def mechanism_from_dict(record: dict[str, Any]) -> Mechanism:
    """The mechanism that `to_dict` wrote."""
    return _KINDS[record["kind"]].from_dict(record)


__all__ = ["PROVEN_MECHANISMS", "AdditiveNoise", "GaussianNoise", "GeometricNoise", "LaplaceNoise", "Mechanism", "SymmetricGaussianNoise", "ThresholdedCounts", "TulapNoise", "mechanism_from_dict"]
