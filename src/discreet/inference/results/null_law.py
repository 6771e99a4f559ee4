"""What a test's statistic would be if its null hypothesis were true, as a histogram with the value
that was observed: what a picture of a test shows.

Post-processing: a function of a release (or of simulated draws from one) alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import chdtrc

from discreet.inference.results.laws import Array

BINS = 61
MOST_KEPT = 20_000  # simulated statistics that are kept for a picture
FAR_TAIL = 1e-4  # of the law is left out of a picture on each side


@dataclass(frozen=True, slots=True)
class NullLaw:
    """Masses between edges; at or below `low` and at or above `high` lies what speaks at least as
    much against the null as what was observed (−∞ or ∞: nothing on that side).
    """

    edges: Array
    masses: Array
    observed: float
    low: float
    high: float
    axis: str
    source: str

    @property
    def shaded(self) -> float:
        """The mass at and beyond the marks: the p-value, as far as bins tell."""
        outside = (self.edges[1:] <= self.low) | (self.edges[:-1] >= self.high)
        return float(self.masses[outside].sum())

    def scaled(self, factor: float, shift: float = 0.0) -> NullLaw:
        """The law of a positive factor times the statistic, plus a shift."""
        return replace(
            self,
            edges=shift + factor * self.edges,
            observed=shift + factor * self.observed,
            low=shift + factor * self.low,
            high=shift + factor * self.high,
        )


@dataclass(slots=True)
class Recorded:
    """A statistic that keeps what it gave for simulated data: arrays, where the observed value is
    one number.
    """

    statistic: Callable[[Any], Array] | None = None
    kept: list[Array] = field(default_factory=list)

    def watching(self, statistic: Callable[[Any], Array]) -> Recorded:
        """The same record, of this statistic."""
        self.statistic = statistic
        return self

    def __call__(self, given: Any) -> Array:
        assert self.statistic is not None
        value = self.statistic(given)
        if np.ndim(value) and sum(map(len, self.kept)) < MOST_KEPT:
            self.kept.append(np.asarray(value, dtype=float))
        return value

    def law(self, observed: float, axis: str, *, sign: float = 1.0) -> NullLaw | None:
        """The law of `sign` times the statistic; `observed` is in these terms too."""
        drawn = sign * np.concatenate(self.kept) if self.kept else np.empty(0)
        drawn = drawn[np.isfinite(drawn)]
        if drawn.size < 2 or not np.isfinite(observed):
            return None
        return from_draws(drawn, observed, axis, greater=sign >= 0)


def from_draws(drawn: Array, observed: float, axis: str, *, greater: bool = True) -> NullLaw:
    """The law of simulated statistics; evidence lies above the observed value, or below it."""
    low, high = float(drawn.min()), float(drawn.max())
    width = max((high - low) / BINS, 1e-9 * max(abs(low), abs(high), 1e-9))
    # edges are counted from the observed value, so that no bin lies on both sides of it
    first, last = int(np.floor((low - observed) / width)), int(np.ceil((high - observed) / width))
    edges = observed + width * np.arange(first, max(last, first + 1) + 1, dtype=float)
    edges[-1] += 1e-6 * width
    masses = np.histogram(drawn, edges)[0] / drawn.size
    return NullLaw(
        edges,
        masses,
        observed,
        -np.inf if greater else observed,
        observed if greater else np.inf,
        axis,
        f"{drawn.size} simulated statistics",
    )


def from_survival(
    survival: Callable[[Array], Array],
    span: tuple[float, float],
    observed: float,
    side: str,
    axis: str,
    *,
    centre: float | None = None,
    step: float = 0.0,
    source: str = "",
) -> NullLaw:
    """The law with P(statistic ≥ t) = survival(t) over a span of t.

    `side` is "greater", "less" or "two-sided"; two-sided shades tails of equal mass, or, with a
    `centre`, all that is as far from it. Values `step` apart are kept whole: bins hold equally
    many of them.
    """
    low, high = _span(survival, span)
    width = (high - low) / BINS
    width = step * max(1.0, np.ceil(width / step)) if step else width
    middle = observed if low < observed < high else low
    first, last = np.floor((low - middle) / width), np.ceil((high - middle) / width)
    edges = middle - step / 2 + width * np.arange(first, last + 1)
    above = np.asarray(survival(edges), dtype=float)
    above[0], above[-1] = 1.0, 0.0  # what lies beyond is drawn in the outermost bins
    masses = np.maximum(-np.diff(above), 0.0)
    cuts = {
        "greater": (-np.inf, observed - step / 2),
        "less": (observed + step / 2, np.inf),
    }.get(side)
    if cuts is None:
        cuts = _both_sides(edges, above, (observed, step), centre)
    return _cut_at(NullLaw(edges, masses, observed, *cuts, axis, source), survival)


def _span(survival: Callable[[Array], Array], span: tuple[float, float]) -> tuple[float, float]:
    """Where nearly all of the law lies."""
    places = np.linspace(*span, 2001)
    above = np.asarray(survival(places), dtype=float)
    inside = np.flatnonzero((above > FAR_TAIL) & (above < 1 - FAR_TAIL))
    if not inside.size:
        return span
    low, high = places[max(inside[0] - 1, 0)], places[min(inside[-1] + 1, len(places) - 1)]
    return float(low), float(high)


def _both_sides(
    edges: Array, above: Array, seen: tuple[float, float], centre: float | None
) -> tuple[float, float]:
    """The marks of a two-sided test; `seen` is the observed value and the step of its lattice."""
    observed, step = seen
    if centre is not None:
        distance = abs(observed - centre) - step / 2
        return centre - distance, centre + distance
    at_least, beyond = (
        float(np.interp(mark, edges, above)) for mark in (observed - step / 2, observed + step / 2)
    )
    if at_least <= 1 - beyond:  # the upper tail is the smaller one
        return float(np.interp(at_least - 1, -above, edges)), observed - step / 2
    return observed + step / 2, float(np.interp(beyond - 1, -above, edges))


def _cut_at(law: NullLaw, survival: Callable[[Array], Array]) -> NullLaw:
    """The same law with its marks among its edges."""
    marks = [mark for mark in (law.low, law.high) if law.edges[0] < mark < law.edges[-1]]
    edges = np.unique(np.append(law.edges, marks))
    above = np.asarray(survival(edges), dtype=float)
    above[0], above[-1] = 1.0, 0.0
    masses = np.maximum(-np.diff(above), 0.0)
    return NullLaw(edges, masses, law.observed, law.low, law.high, law.axis, law.source)


def from_intervals(
    ends: Callable[[float], tuple[float, float]],
    estimate: float,
    null: float,
    side: str,
    axis: str,
) -> NullLaw:
    """The law of the estimate that belongs to a test by inverting intervals: the confidence
    density of the estimate, mirrored so that it is centred at the null.

    The mass beyond the estimate is then the mass of candidates beyond the null: the p-value.
    """
    tails = np.concatenate([np.geomspace(FAR_TAIL, 0.05, 12), np.linspace(0.06, 0.49, 20)])
    found = np.array([ends(1 - 2 * float(tail)) for tail in tails])
    candidates = np.concatenate([found[:, 0], found[::-1, 1]])
    chances = np.concatenate([tails, 1 - tails[::-1]])
    places = np.maximum.accumulate(candidates)
    mirrored = (estimate + null - places)[::-1]  # P(a new estimate ≥ x) = chance of a candidate

    def survival(t: Array) -> Array:
        return np.asarray(np.interp(t, mirrored, chances[::-1], left=1.0, right=0.0))

    span = (float(mirrored[0]), float(mirrored[-1]))
    wide = max(span[1] - span[0], 1e-12)
    return from_survival(
        survival,
        (span[0] - 0.02 * wide, span[1] + 0.02 * wide),
        estimate,
        side,
        axis,
        source="the intervals, moved to the null",
    )


def chi_square_law(statistic: float, degrees: int, scales: Any = 1.0) -> NullLaw | None:
    """The law of a χ²-type statistic whose tail is the mean of χ² tails at `scales` times it, and
    never below the plain one.
    """
    if degrees < 1:
        return None
    factors = np.atleast_1d(np.asarray(scales, dtype=float))

    def survival(t: Array) -> Array:
        places = np.maximum(np.asarray(t, dtype=float), 0.0)
        mixed = chdtrc(degrees, places[..., None] * factors).mean(axis=-1)
        return np.asarray(np.maximum(mixed, chdtrc(degrees, places)))

    top = degrees + 8 * np.sqrt(2 * degrees) / min(1.0, float(factors.mean()))
    return from_survival(survival, (0.0, float(top)), statistic, "greater", "chi-square statistic")
