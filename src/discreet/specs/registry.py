"""Every mechanism and every query that has a theorem, and how one is read from what it wrote.

A subclass of one of them has no theorem. What `to_dict` wrote in any version is read here with the
same meaning: kinds are never reused, keys never change, fields are only added and with a default
(docs/theory/stored.md).
"""

from __future__ import annotations

from typing import Any

from discreet.specs.aggregation.friends import ClippedSum, Friends
from discreet.specs.aggregation.part_outputs import PartOutputs
from discreet.specs.estimating.batches import SampledGradients
from discreet.specs.estimating.equations import WeightedGradient, WeightedGram
from discreet.specs.estimating.minimand import Minimand
from discreet.specs.estimating.networks import Agreement, NetworkGradients
from discreet.specs.estimating.residuals import ResidualCounts
from discreet.specs.estimating.scores import PredictionScore
from discreet.specs.hidden_runs import HiddenRuns
from discreet.specs.holdout.surprises import Surprise
from discreet.specs.holdout.thresholdout import Thresholdout
from discreet.specs.likelihoods import LikelihoodScores
from discreet.specs.mechanisms.additive import ADDITIVE
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.friendly import FriendlyMean
from discreet.specs.mechanisms.in_turn import AboutCentre, InTurn
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.minimiser import PerturbedMinimiser
from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.specs.mechanisms.procedures import PROCEDURES
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.mechanisms.selection import SELECTION
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.specs.queries.cell_states import CellStates
from discreet.specs.queries.differences import DifferenceMoments
from discreet.specs.queries.histograms import GridCounts
from discreet.specs.queries.marginals import Discrepancies, Marginals
from discreet.specs.queries.moments import Moments
from discreet.specs.queries.open_keys import OpenCounts
from discreet.specs.queries.pairs import PairMoments
from discreet.specs.queries.parts import PartRejections
from discreet.specs.queries.query import Query
from discreet.specs.queries.scores import CandidateScores
from discreet.specs.queries.shares import ShareCounts
from discreet.specs.queries.sums import GramMatrix, Sum
from discreet.specs.queries.trees import TreeCounts
from discreet.specs.queries.unit_sums import UnitShares, UnitSums

PROVEN_MECHANISMS: tuple[type[Mechanism], ...] = (
    *ADDITIVE,
    CutTulapNoise,
    ThresholdedCounts,
    QuantileChoice,
    SmoothNoise,
    ProposeTestRelease,
    *SELECTION,
    SymmetricGaussianNoise,
    CountSearch,
    InTurn,
    AboutCentre,
    NoisySGD,
    PerturbedMinimiser,
    FriendlyMean,
    *PROCEDURES,
    Thresholdout,
)
PROVEN_QUERIES: tuple[type[Query], ...] = (
    Sum,
    GramMatrix,
    Moments,
    ShareCounts,
    GridCounts,
    CandidateScores,
    OpenCounts,
    PairMoments,
    TreeCounts,
    WeightedGradient,
    WeightedGram,
    ResidualCounts,
    SampledGradients,
    Minimand,
    NetworkGradients,
    Agreement,
    DifferenceMoments,
    PartRejections,
    PartOutputs,
    Friends,
    ClippedSum,
    CellStates,
    UnitSums,
    UnitShares,
    PredictionScore,
    HiddenRuns,
    Surprise,
    Marginals,
    Discrepancies,
    LikelihoodScores,
)
_MECHANISMS: dict[str, type[Mechanism]] = {kind.kind: kind for kind in PROVEN_MECHANISMS}
_QUERIES: dict[str, type[Query]] = {kind.kind: kind for kind in PROVEN_QUERIES}


def mechanism_from_dict(record: dict[str, Any]) -> Mechanism:
    """The mechanism that `to_dict` wrote."""
    return _MECHANISMS[record["kind"]].from_dict(record)


def query_from_dict(record: dict[str, Any]) -> Query:
    """The query that `to_dict` wrote."""
    return _QUERIES[record["kind"]].from_dict(record)
