"""The public rules of Algorithm A: noise index, weights, clipping and shares of the budget, from
public numbers alone (regression.md §1).

Shares are exact fractions of μ² that sum to 1 at most. Where the constants come from:
regression.md §6.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from discreet.neighbors import Neighbors, Replace
from discreet.trusted.release import Step

# of the metric; the second below that noise index, where each finds all there is to a factor of 50
ROUNDS, CALM_ROUNDS, CALM_METRIC = 4, 3, 0.001
GROWTH = (Fraction(17, 100), Fraction(33, 100), Fraction(50, 100))  # of the gradients' share
COUNT_SHARE = Fraction(1, 100)
MEAN_SHARE = Fraction(1, 100)
SCORES_SHARE = (0.04, 0.12)  # the least and the largest
CALM = 0.005  # noise index below which weights fade, and the scores get their largest share
LEVEL_NOISE = 0.25  # of the scores' mean eigenvalue, which their share aims at
BURN_IN = (Fraction(4, 100), Fraction(4, 100))
FIRST_CURVATURE = Fraction(2, 5)
FUNDED = 0.6  # of μ², about what the three gradients get
# privacy variance over sampling variance that lighter weights may cost;
# residual families, mean families
LEVERAGE_NOISE = {True: 0.04, False: 0.10}
LEAST_SQUARES_NOISE, LEAST_SQUARES_CUTS = 0.16, (4.0, 5.0, 6.0)
# of R², in units of p + √p: beyond the first, only a quarter of that noise is worth it;
# beyond the second, grids would coarsen
AMPLE_RADIUS, LARGEST_RADIUS = 16.0, 64.0
SCORES_NOISE = 0.02  # R²B²/(E[ψ²]·nμ) at which the noise of the scores' matrix is about 8 % of it
# R² a column at which every row has its whole weight before anything is known; rounds whose weights
# are all 1 share one pass over the data
WHOLE = 1.1
METRIC_ROWS = 300.0  # nμ for each unit of the metric's R² beyond its least
GRAIN = 10_000  # shares are whole numbers of this part


@dataclass(frozen=True, slots=True)
class Tuning:
    """What Algorithm A does at a given noise index."""

    noise_index: float
    kappa: int
    radius: float
    metric_radius: float
    first_radius: float
    shares: tuple[tuple[Step, Fraction], ...]

    def share(self, step: Step) -> Fraction:
        return dict(self.shares)[step]

    def steps(self, name: str) -> list[Step]:
        """The steps of a name, such as "gradient", in order."""
        return [step for step, _ in self.shares if step.name == name]


def noise_index(columns: int, rows: float, mu: float, neighbors: Neighbors) -> float:
    """ν = 2(q+√q)√q/(nμ), q = p+1: the noise radius of a fully funded whitened second moment
    (R² = q+√q) under Replace.

    Under AddRemove the noise is √2 smaller; a unit of k rows makes it k times as large.
    """
    q = columns + 1
    one = 2.0 if isinstance(neighbors, Replace) else math.sqrt(2)
    return one * neighbors.rows * (q + math.sqrt(q)) * math.sqrt(q) / (max(rows, 1.0) * mu)


def tuning(index: float) -> float:
    """Huber's c: 1.345 (95 % efficient), or 1 where noise dominates."""
    return 1.345 if index < 0.1 else 1.0


def gradient_room(rows: float, mu: float, neighbors: Neighbors) -> float:
    """R²B²/E[ψ²] at which the noise of the funded gradients has the variance of sampling:
    nμ²·FUNDED/(4k²), k rows a unit; four times that under AddRemove.
    """
    one = 4 if isinstance(neighbors, Replace) else 1
    return max(rows, 1.0) * mu**2 * FUNDED / (one * neighbors.rows**2)


def least_squares_cut(columns: int, room: float) -> float:
    """Where clipped least squares clips residuals: 4 scales, and up to 6 where noise is small
    beside sampling, so that large samples give least squares itself.
    """
    least = columns + 3 * math.sqrt(columns)
    return max(
        c
        for c in LEAST_SQUARES_CUTS
        if c == LEAST_SQUARES_CUTS[0] or c**2 * least <= 0.625 * LEAST_SQUARES_NOISE * room
    )


@dataclass(frozen=True, slots=True)
class Room:
    """How light weights may be: the largest R² that gradients and scores (`leverage`) and the
    metric's rounds (`metric`) can pay for.

    `scores` is the noise of the scores' matrix for R² = 1 and all of μ²,
    relative to its mean eigenvalue.
    """

    leverage: float = 0.0
    metric: float = 0.0
    scores: float = 0.0


NO_ROOM = Room()


def room_for(
    rows: float, mu: float, neighbors: Neighbors, score_share: float, allowed: float
) -> Room:
    """The room at a typical E[ψ²]/B² (`score_share`): gradient noise adds at most `allowed` of the
    sampling variance, and the scores stay readable.
    """
    strength = max(rows, 1.0) * mu / neighbors.rows
    leverage = score_share * min(
        allowed * gradient_room(rows, mu, neighbors), SCORES_NOISE * strength
    )
    return Room(
        leverage,
        strength / METRIC_ROWS,
        # those of units have k² times the noise of rows', beside a level that may be a row's
        math.sqrt(2) * neighbors.rows / (score_share * strength) if score_share else 0.0,
    )


def tuning_for(
    columns: int,
    index: float,
    *,
    residual: bool,
    counts: bool,
    private_rows: bool,
    room: Room = NO_ROOM,
) -> Tuning:
    """The rules at noise index ν for a model of p columns.

    R² = p + κ√p weights outlying rows down, which small samples need; where noise leaves room, R²
    grows with nμ², so that weights, and with them what the weighted estimate differs by from the
    unweighted one, vanish in large samples (docs/theory/regression.md, *Weights that fade*).
    """
    kappa = 1 if index >= 0.05 or not residual else 2 if index >= 0.01 else 3
    width = columns + 1 if residual else columns
    radius = _radius(columns, kappa, room)
    metric_radius = max(width + kappa * math.sqrt(width), min(radius, room.metric))
    first_radius = 1.0 if index >= CALM_METRIC else math.sqrt(WHOLE * width)
    before = [(Step("count"), COUNT_SHARE)] if private_rows else []
    before += [(Step("mean"), MEAN_SHARE)] if counts else []
    scores = _scores_share(columns, index, radius, room)
    return Tuning(
        index,
        kappa,
        math.sqrt(radius),
        math.sqrt(metric_radius),
        first_radius,
        (
            *before,
            *_shares(index, residual, 1 - sum((share for _, share in before), Fraction(0)), scores),
        ),
    )


def _radius(columns: int, kappa: int, room: Room) -> float:
    """R² of the weights: p + κ√p, and more where the noise leaves room."""
    unit = columns + math.sqrt(columns)
    return max(
        columns + kappa * math.sqrt(columns),
        min(room.leverage, AMPLE_RADIUS * unit),
        min(room.leverage / 4, LARGEST_RADIUS * unit),
    )


def _scores_share(columns: int, index: float, radius: float, room: Room) -> Fraction:
    """What the scores' matrix gets: enough to be read, all it may get where noise is small."""
    needed = radius * room.scores / (LEVEL_NOISE * math.sqrt(columns))
    return _share(needed**2 if index >= CALM else 1.0, *SCORES_SHARE)


def _shares(
    index: float, residual: bool, whole: Fraction, scores: Fraction
) -> list[tuple[Step, Fraction]]:
    """The shares of the steps from the metric on, which sum to `whole`: the gradients get what the
    others leave.
    """
    metric = _share(2.5 * index, 0.10, 0.35)
    curvature = _share(index, 0.05, 0.12) if residual else _share(1.5 * index, 0.07, 0.12)
    newton = () if residual else (6,) if index >= 0.01 else (4, 4) if index >= 0.001 else (3, 3, 3)
    rounds = ROUNDS if index >= CALM_METRIC else CALM_ROUNDS
    shares = [
        *_numbered("metric", [metric / rounds] * rounds),
        *_numbered("burn-in", BURN_IN),
        (Step("curvature"), curvature * FIRST_CURVATURE),
        *_numbered("newton", [Fraction(share, 100) for share in newton]),
    ]
    last = [(Step("curvature", 2), curvature * (1 - FIRST_CURVATURE)), (Step("scores"), scores)]
    rest = whole - sum(share for _, share in (*shares, *last))
    return [*shares, *_numbered("gradient", [rest * growth for growth in GROWTH]), *last]


def _numbered(name: str, shares: Iterable[Fraction]) -> list[tuple[Step, Fraction]]:
    return [(Step(name, number), share) for number, share in enumerate(shares, 1)]


def _share(value: float, low: float, high: float) -> Fraction:
    return Fraction(round(min(max(value, low), high) * GRAIN), GRAIN)
