"""Two laws over the same outputs, and the least claim that allows both.

Theorem.   Let an output lie in cell c with probability P_c under one of two neighbours and Q_c
           under the other. No ε below max |ln(P_c/Q_c)| is true, no (ε, δ) with
           Σ max(0, P_c − e^ε·Q_c) above δ in either order, no μ below Φ⁻¹(1 − α) − Φ⁻¹(β) at any
           vertex (α, β) of their trade-off curve, and no ρ below D_a(P‖Q)/a at any a > 1. Where
           every output is a cell of its own, the first two are exactly what this pair of neighbours
           asks for, and the third is, over all vertices.
Proof.     docs/theory/audits.md.
Checked.   tests/audits/test_exact.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from discreet.accounting.guarantees import EPSILON_CEILING, GDP, MU_CEILING, ApproxDP, PureDP
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.renyi.rdp import ZCDP
from discreet.errors import NoTheorem
from discreet.inference.results.laws import Array

SEEN = 1e-12  # vertices closer to an end than this are left out: floats do not know them
ORDERS = (1.001, 1.1, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0)
MOST_CELLS = 2048
MOST_EACH = 320  # of each of two outputs that are put together
BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class Laws:
    """The probabilities of the same cells of outputs on two neighbouring data sets."""

    first: Array
    second: Array

    @property
    def ratios(self) -> Array:
        """ln(Q/P) of every cell; infinite where only one of them can be."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.second) - np.log(self.first))

    def possible(self) -> Laws:
        """Without the cells that neither law reaches."""
        held = (self.first > 0) | (self.second > 0)
        return Laws(self.first[held], self.second[held])

    def times(self, other: Laws) -> Laws:
        """Both outputs, independent of each other; cells of similar ratio are put together where
        there are too many, which only lowers what is found.
        """
        one, two = self.pooled(MOST_EACH), other.pooled(MOST_EACH)
        return Laws(
            np.outer(one.first, two.first).ravel(), np.outer(one.second, two.second).ravel()
        ).pooled()

    def pooled(self, most: int = MOST_CELLS) -> Laws:
        """At most so many cells; the ones with the most extreme ratios stay alone."""
        if len(self.first) == 1:
            return self
        laws = self.possible()
        if len(laws.first) <= most:
            return laws
        order = np.argsort(laws.ratios, kind="stable")
        # by weight in the middle, one by one at both ends
        weight = np.cumsum((laws.first + laws.second)[order])
        groups = np.floor(weight / weight[-1] * (most // 2)).astype(np.int64)
        ends = np.arange(len(order))
        alone = most // 4
        marks = np.diff(groups, prepend=-1) > 0
        marks |= (ends < alone) | (ends >= len(order) - alone)
        starts = np.flatnonzero(marks)
        return Laws(*(np.add.reduceat(side[order], starts) for side in (laws.first, laws.second)))


def least_of(claim: PrivacyProfile, laws: Laws) -> float:
    """The least ε, μ or ρ of the claim's kind that allows both laws."""
    laws = laws.possible()
    if isinstance(claim, PureDP):
        return min(float(EPSILON_CEILING), float(np.abs(laws.ratios).max(initial=0.0)))
    if isinstance(claim, ApproxDP):
        return _approximate(claim.delta, laws)
    if isinstance(claim, GDP):
        return _gaussian(laws)
    if isinstance(claim, ZCDP):
        return max(_concentrated(laws), _concentrated(Laws(laws.second, laws.first)))
    raise NoTheorem(
        f"a lower bound of {type(claim).__name__}",
        "two laws are compared by ε, (ε, δ), μ or ρ",
        "each has its own distance between laws",
        "claim dp.PureDP, dp.ApproxDP, dp.GDP or dp.ZCDP",
    )


def _gaussian(laws: Laws) -> float:
    """The largest Φ⁻¹(1 − α) − Φ⁻¹(β) over the vertices of the trade-off curve: between two of
    them it is a chord, and G_μ, being convex, lies below a chord whose ends it lies below.
    """
    if not np.isfinite(laws.ratios).all():
        return float(MU_CEILING)
    order = np.argsort(-laws.ratios, kind="stable")
    # false alarms and hits of the likeliest outputs, each as its distance from the nearer end
    alphas, hits = (_quantiles(side[order]) for side in (laws.first, laws.second))
    found = hits - alphas
    return min(float(MU_CEILING), max(0.0, float(np.nanmax(found, initial=0.0))))


def _quantiles(chances: Array) -> Array:
    """Φ⁻¹ of the running sums but the last, from whichever end is nearer; nan at the very ends."""
    below, above = np.cumsum(chances)[:-1], np.cumsum(chances[::-1])[::-1][1:]
    found = np.where(below < above, ndtri(below), -ndtri(above))
    return np.asarray(np.where(np.minimum(below, above) > SEEN, found, np.nan))


def _approximate(delta: float, laws: Laws) -> float:
    """The least ε at which both hockey-stick divergences are at most δ."""

    def above(epsilon: float) -> bool:
        grown = math.exp(epsilon)
        return any(
            float(np.maximum(0.0, one - grown * other).sum()) > delta * (1 + 1e-12)
            for one, other in ((laws.first, laws.second), (laws.second, laws.first))
        )

    low, high = 0.0, 1.0
    if not above(0.0):
        return 0.0
    while above(high):
        low, high = high, 2 * high
        if high > 600:
            return float(EPSILON_CEILING)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return low


def _concentrated(laws: Laws) -> float:
    """The largest D_a(P‖Q)/a over some orders a."""
    ratios = -laws.ratios  # ln(P/Q)
    if np.isposinf(ratios).any():
        return float(EPSILON_CEILING)
    held = laws.first > 0
    logs, kept = ratios[held], np.log(laws.first[held])
    found = 0.0
    for order in ORDERS:
        grown = kept + (order - 1) * logs
        top = float(grown.max())
        divergence = (top + math.log(float(np.exp(grown - top).sum()))) / (order - 1)
        found = max(found, divergence / order)
    return found
