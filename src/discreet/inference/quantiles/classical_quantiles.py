"""Reading the answers of the quantile mechanisms,
and forecasting them from public facts and stated assumptions.

point               the quantile in the user's units, None where the mechanism answered ⊥
rank_error_bound    how many rows a chosen cell can be from the quantile,
                    without assumptions on the data
bottom_probability  P(⊥) of propose-test-release for normal data
expected_error      E|answer − sample quantile| of any of the mechanisms for normal data
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from discreet.inference.results.decode import as_kind, wrong_kind
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.queries.histograms import GridCounts
from discreet.trusted.release import Release

Floats = npt.NDArray[np.float64]
_MODEL_CELLS = 4001
_LEVELS = (np.arange(4000) + 0.5) / 4000


def point(release: Release) -> float | None:
    """The quantile that a release of one mechanism gives, clamped to the declared range; None
    for ⊥.
    """
    query = as_kind(release.query, GridCounts)
    return point_of(release.mechanism, release.integers, query)


def point_of(mechanism: Mechanism, integers: tuple[int, ...], query: GridCounts) -> float | None:
    """The quantile that a mechanism's integers stand for.

    Method.   The cell chosen, or the noisy steps on the refined grid;
              clamping to public bounds is post-processing.
    """
    if isinstance(mechanism, QuantileChoice):
        return float(query.value(integers[0]))
    if isinstance(mechanism, SmoothNoise):
        steps = integers[0]
    elif isinstance(mechanism, ProposeTestRelease):
        passed, steps = integers
        if not passed:
            return None
    else:
        raise wrong_kind(mechanism, "QuantileChoice")
    # as whole numbers: a Cauchy draw may be beyond all floats
    inside = min(max(steps, 0), (query.size - 1) << mechanism.refinement)
    return float(query.value(inside / (1 << mechanism.refinement)))


def rank_error_bound(mechanism: QuantileChoice, cells: int, level: float) -> float:
    """With probability `level` or more the chosen cell is a quantile of the data after at most this
    many rows are counted otherwise.

    Method.   Some cell has loss 0, so P(loss > t) < cells·exp(−rate·t) (McSherry & Talwar 2007).
              Loss counts rows in units of 1/b by the exponential rule, and replaced rows by the
              inverse one.
    Validity. For all data, ties included; an answer that lies between equal values counts as their
              quantile.
    """
    loss = math.log(cells / (1 - level)) / float(mechanism.rate)
    return loss / mechanism.b if mechanism.rule == "exponential" else loss


@dataclass(frozen=True, slots=True)
class NormalValues:
    """An assumption: `rows` normal values with a standard deviation of `spread` cells, on a grid of
    `cells` cells with the mean at `center` (its middle if None).
    """

    rows: float
    spread: float
    cells: int
    center: float | None = None

    @property
    def middle(self) -> float:
        return (self.cells - 1) / 2 if self.center is None else self.center

    def value(self, share: npt.ArrayLike) -> Floats:
        """The quantile function, clamped to the grid."""
        return np.asarray(
            np.clip(
                self.middle + self.spread * special.ndtri(np.clip(share, 0.0, 1.0)),
                0.0,
                self.cells - 1.0,
            )
        )

    def share(self, value: npt.ArrayLike) -> Floats:
        """The distribution function; the ends of the grid hold what lies beyond."""
        value = np.asarray(value, dtype=np.float64)
        return np.asarray(
            np.where(
                value < 0,
                0.0,
                np.where(
                    value >= self.cells - 1, 1.0, special.ndtr((value - self.middle) / self.spread)
                ),
            )
        )


def bottom_probability(mechanism: Mechanism, model: NormalValues) -> float:
    """P(⊥) of propose-test-release.

    Method.   γ is close to the lesser of the numbers of values within η above and within η below
              the quantile, which are binomial given it and nearly independent; the test's noise is
              added exactly.
    Validity. An approximation: windows that straddle the quantile are left out, which makes it a
              little too low for flat densities.
    """
    tested = as_kind(mechanism, ProposeTestRelease)
    if tested.eta >= model.cells - 1:
        return 0.0
    rows, q = round(model.rows), tested.a / tested.b
    index = min(rows, max(1, math.ceil(q * rows)))
    center = float(model.value(min(max((index - 0.5) / max(rows, 1), 0.0), 1.0)))
    here = float(model.share(center))
    above = (float(model.share(center + tested.eta)) - here) / max(1 - here, 1e-300)
    below = (here - float(model.share(center - tested.eta))) / max(here, 1e-300)
    epsilon = 1 / float(tested.test_spread)
    most = tested.threshold + math.ceil(40 / epsilon)
    counts = np.arange(min(rows, most) + 1)
    survive = stats.binom.sf(counts - 1, rows - index, min(above, 1.0)) * stats.binom.sf(
        counts - 1, max(index - 1, 0), min(max(below, 0.0), 1.0)
    )
    # what reaches the last count counts as just that
    chance = survive - np.append(survive[1:], 0.0)
    short = tested.threshold - 1 - counts  # ⊥ iff the noise is at most this
    tail = np.exp(
        -epsilon * np.minimum(np.abs(np.where(short >= 0, short + 1, -short)), 700 / epsilon)
    ) / (1 + math.exp(-epsilon))
    return float(min(1.0, (chance * np.where(short >= 0, 1 - tail, tail)).sum()))


def expected_error(mechanism: Mechanism, model: NormalValues) -> float:
    """E|answer − sample quantile|, in cells; ⊥ counts as the middle of the range (a quarter of it
    away where the model does not say), and answers are clamped to the range.

    Method.   The mechanism's law on the expected values of normal order statistics.
    """
    if isinstance(mechanism, QuantileChoice):
        return _choice_error(mechanism, model)
    if isinstance(mechanism, SmoothNoise):
        q = mechanism.a / mechanism.b
        scale = model_sensitivity(model, q, float(mechanism.beta)) * float(mechanism.multiplier)
        return float(
            np.minimum(
                scale * noise_quantiles(mechanism.law, float(mechanism.shape)),
                (model.cells - 1) / 2,
            ).mean()
        )
    tested = as_kind(mechanism, ProposeTestRelease)
    q, bottom = tested.a / tested.b, bottom_probability(tested, model)
    missed = (
        model.cells / 4
        if model.center is None
        else abs(float(model.value(q)) - (model.cells - 1) / 2)
    )
    return bottom * missed + (1 - bottom) * min(float(tested.spread), model.cells / 2)


def _choice_error(mechanism: QuantileChoice, model: NormalValues) -> float:
    """Two grids, a coarse one over the whole range and a fine one about the quantile,
    so that both far and near cells count.
    """
    q = mechanism.a / mechanism.b
    per_row = float(mechanism.rate) * (mechanism.b if mechanism.rule == "exponential" else 1)
    center = float(model.value(q))
    near = min(
        model.cells / 2, 60 * (1 / (per_row * model.rows) + 1 / model.rows) * model.spread + 2
    )
    far = np.geomspace(max(near, 1.0), model.cells, 400)
    offsets = np.unique(np.concatenate([-far, np.linspace(-near, near, _MODEL_CELLS), far]))
    edges = center + offsets
    edges = edges[(edges >= -0.5) & (edges <= model.cells - 0.5)]
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    rank = np.abs(model.share(middles) - q) * model.rows
    weights = widths * np.exp(-per_row * (rank - rank.min()))
    return float((weights * np.abs(middles - center)).sum() / weights.sum())


def model_sensitivity(model: NormalValues, q: float, beta: float) -> float:
    """The smooth sensitivity of normal values, in cells: max over k of the width of k + 1 spacings
    about the quantile times exp(−βk).
    """
    steps = np.unique(
        np.concatenate([np.arange(64.0), np.geomspace(64, max(2 * model.rows, 65), 400)])
    )
    half = (steps + 1) / (2 * model.rows)
    low = np.where(q - half <= 0, 0.0, model.value(q - half))
    high = np.where(q + half >= 1, model.cells - 1.0, model.value(q + half))
    return float(((high - low) * np.exp(-np.minimum(beta * steps, 700.0))).max())


@lru_cache(maxsize=64)
def noise_quantiles(law: str, shape: float) -> Floats:
    """4000 quantiles of |Z| for the noises of smooth sensitivity."""
    if law in ("gaussian", "laplace"):
        return np.asarray(
            special.ndtri((1 + _LEVELS) / 2) if law == "gaussian" else -np.log1p(-_LEVELS)
        )
    if law == "student" or (law == "cauchy" and shape == 2):
        return np.asarray(stats.t.ppf((1 + _LEVELS) / 2, shape if law == "student" else 1))
    if law == "cauchy":
        return np.asarray(
            special.betaincinv(1 / shape, 1 - 1 / shape, _LEVELS)
            / (1 - special.betaincinv(1 / shape, 1 - 1 / shape, _LEVELS))
        ) ** (1 / shape)
    levels = (np.arange(200) + 0.5) / 200
    return np.sort(np.outer(-np.log1p(-levels), np.exp(shape * special.ndtri(levels))).ravel())[
        ::10
    ]
