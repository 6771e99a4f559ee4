"""The public rules of Algorithm A: noise index, weights, clipping and shares of the budget, from public numbers alone (regression.md §1).

Shares are exact fractions of μ² that sum to 1 at most. Constants that differ from the prototype's, and why, are in docs/theory/regression.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.neighbors import Neighbors, Replace

ROUNDS = 4
GROWTH = (Fraction(17, 100), Fraction(33, 100), Fraction(50, 100))  # of the gradients' share
COUNT_SHARE = Fraction(1, 100)
MEAN_SHARE = Fraction(1, 100)
SCORES_SHARE = Fraction(4, 100)
BURN_IN = (Fraction(4, 100), Fraction(4, 100))
FIRST_CURVATURE = Fraction(2, 5)
GRAIN = 10_000  # shares are whole numbers of this part


@dataclass(frozen=True, slots=True)
class Rules:
    """What Algorithm A does at a given noise index."""

    noise_index: float
    kappa: int
    radius: float
    metric_radius: float
    shares: tuple[tuple[str, Fraction], ...]

    def share(self, step: str) -> Fraction:
        return dict(self.shares)[step]

    def steps(self, kind: str) -> list[str]:
        """The names of the steps of a kind, such as "gradient", in order."""
        return [name for name, _ in self.shares if name.rsplit(" ", 1)[0] == kind]


def noise_index(columns: int, rows: float, mu: float, neighbors: Neighbors) -> float:
    """ν = 2(q+√q)√q/(nμ), q = p+1: the noise radius of a fully funded whitened second moment (R² = q+√q) under Replace.

    Under AddRemove the noise is √2 smaller; a unit of k rows makes it k times as large.
    """
    q = columns + 1
    one = 2.0 if isinstance(neighbors, Replace) else math.sqrt(2)
    return one * neighbors.rows * (q + math.sqrt(q)) * math.sqrt(q) / (max(rows, 1.0) * mu)


def tuning(index: float) -> float:
    """Huber's c: 1.345 (95 % efficient), or 1 where noise dominates."""
    return 1.345 if index < 0.1 else 1.0


def rules_for(columns: int, index: float, *, residual: bool, counts: bool, private_rows: bool) -> Rules:
    """The rules at noise index ν for a model of p columns."""
    kappa = 1 if index >= 0.05 or not residual else 2 if index >= 0.01 else 3
    width = columns + 1 if residual else columns
    metric = _share(2.5 * index, 0.10, 0.35)
    curvature = _share(index, 0.05, 0.12) if residual else _share(1.5 * index, 0.07, 0.12)
    newton = () if residual else (6,) if index >= 0.01 else (4, 4) if index >= 0.001 else (3, 3, 3)
    parts: list[tuple[str, Fraction]] = [("count 1", COUNT_SHARE)] if private_rows else []
    parts += [("mean 1", MEAN_SHARE)] if counts else []
    parts += [(f"metric {place + 1}", metric / ROUNDS) for place in range(ROUNDS)]
    parts += [(f"burn-in {place + 1}", share) for place, share in enumerate(BURN_IN)]
    parts += [("curvature 1", curvature * FIRST_CURVATURE)]
    parts += [(f"newton {place + 1}", Fraction(share, 100)) for place, share in enumerate(newton)]
    rest = 1 - sum(share for _, share in parts) - curvature * (1 - FIRST_CURVATURE) - SCORES_SHARE
    parts += [(f"gradient {place + 1}", rest * growth) for place, growth in enumerate(GROWTH)]
    parts += [("curvature 2", curvature * (1 - FIRST_CURVATURE)), ("scores 1", SCORES_SHARE)]
    return Rules(index, kappa, math.sqrt(columns + kappa * math.sqrt(columns)), math.sqrt(width + kappa * math.sqrt(width)), tuple(parts))


def _share(value: float, low: float, high: float) -> Fraction:
    return Fraction(round(min(max(value, low), high) * GRAIN), GRAIN)
