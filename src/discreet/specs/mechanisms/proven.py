"""All mechanisms that have a sampler and a theorem, and how one is read back from what it wrote."""

from __future__ import annotations

from typing import Any

from discreet.specs.mechanisms.additive import ADDITIVE
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.folded import AboutCentre
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.mechanisms.selection import SELECTION
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise

PROVEN_MECHANISMS: tuple[type[Mechanism], ...] = (  # subclasses of them have no theorem
    *ADDITIVE, CutTulapNoise, ThresholdedCounts, QuantileChoice, SmoothNoise, ProposeTestRelease, *SELECTION, SymmetricGaussianNoise, CountSearch, InTurn, AboutCentre, NoisySGD)
_KINDS: dict[str, type[Mechanism]] = {kind.kind: kind for kind in PROVEN_MECHANISMS}


def mechanism_from_dict(record: dict[str, Any]) -> Mechanism:
    """The mechanism that `to_dict` wrote."""
    return _KINDS[record["kind"]].from_dict(record)
