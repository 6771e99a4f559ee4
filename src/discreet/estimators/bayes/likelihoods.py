"""From a family and a declared grid of its parameters to whole-number row likelihoods, and to the
prior's weights on the grid.

Common to all candidates, and so of no consequence for what is drawn, are the parts of a row's
log-likelihood that are subtracted to keep its range, and with it the price of a draw, small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.asking.cells import Where, rows_asked
from discreet.errors import InvalidParameter, shown
from discreet.estimators.bayes.posterior import (
    level_of,
    levels_of,
    line_columns,
    require_numbers,
)
from discreet.exact import rational
from discreet.inference.posteriors.families import (
    BetaBinomial,
    DirichletMultinomial,
    Family,
    GammaPoisson,
    LinearModel,
    NormalModel,
)
from discreet.specs.likelihoods import FINE_BITS, LARGEST_GRID, RowLikelihood
from discreet.specs.queries.keys import Key, Split
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.sums import number_factor
from discreet.trusted.release import PublicFacts

Row = tuple[float, ...]
CODE_BITS = 16
FARTHEST = 1e60
SUM_SLACK = 1e-6  # of shares that are said to add up to 1


@dataclass(frozen=True)
class Candidates:
    """What a family's grid asks of rows: keys, factors, row likelihoods, log-prior weights."""

    names: tuple[str, ...]
    keys: tuple[Key, ...]
    factors: tuple[Factor, ...]
    rows: tuple[RowLikelihood, ...]
    prior: tuple[float, ...]
    optional: bool
    where: str
    column: str | None


def candidates_of(
    public: PublicFacts, family: Family, grid: Sequence[Row], where: Where | None
) -> Candidates:
    """Row likelihoods for every point of a checked grid."""
    if isinstance(family, (BetaBinomial, DirichletMultinomial)):
        return _of_levels(public, family, grid, where)
    if isinstance(family, LinearModel):
        return _of_line(public, family, grid, where)
    return _of_numbers(public, family, grid, where)


def parameter_names(public: PublicFacts, family: Family) -> tuple[str, ...]:
    """The parameters of a point of the grid, in order."""
    if isinstance(family, BetaBinomial):
        return (level_of(public.schema, family)[1],)
    if isinstance(family, DirichletMultinomial):
        return levels_of(public.schema, family).labels[0]
    if isinstance(family, LinearModel):
        return "Intercept", *line_columns(public.schema, family.formula)[:-1], "sigma"
    require_numbers(public.schema, family)
    return ("rate",) if isinstance(family, GammaPoisson) else ("mean", "sd")


def checked_grid(family: Family, names: tuple[str, ...], grid: object) -> tuple[Row, ...]:
    """The points as numbers, refused unless finite and inside the parameters' ranges."""
    if isinstance(grid, np.ndarray):
        grid = grid.tolist()
    if not isinstance(grid, (list, tuple)) or not 2 <= len(grid) <= LARGEST_GRID:
        raise _bad_grid(f"not a list of 2 to {LARGEST_GRID} points", names)
    points = tuple(_point(point, names) for point in grid)
    inside = _INSIDE[type(family)]
    for point in points:
        if not inside(point):
            raise _bad_grid(f"{shown(point)} is out of the range of the parameters", names)
    return points


def _point(point: Any, names: tuple[str, ...]) -> Row:
    members = [point] if len(names) == 1 and not isinstance(point, (list, tuple)) else point
    if not isinstance(members, (list, tuple)) or len(members) != len(names):
        raise _bad_grid(f"{shown(point)} is no point", names)
    if any(isinstance(one, bool) or not isinstance(one, (int, float)) for one in members):
        raise _bad_grid(f"{shown(point)} holds what is no number", names)
    if not all(math.isfinite(one) and abs(one) <= FARTHEST for one in members):
        raise _bad_grid(f"{shown(point)} is not finite", names)
    return tuple(float(rational(one, "grid=")) for one in members)


_INSIDE: dict[type[Any], Callable[[Row], bool]] = {
    BetaBinomial: lambda point: 0 < point[0] < 1,
    DirichletMultinomial: lambda point: min(point) > 0 and abs(sum(point) - 1) <= SUM_SLACK,
    GammaPoisson: lambda point: 1e-12 <= point[0] <= 1e12,
    NormalModel: lambda point: point[1] >= 1e-60,
    LinearModel: lambda point: point[-1] >= 1e-60,
}


def _bad_grid(found: str, names: tuple[str, ...]) -> InvalidParameter:
    one = "a number" if len(names) == 1 else f"({', '.join(names)})"
    return InvalidParameter(
        "grid=",
        found,
        "the draw is one of declared points, and its price is how far rows move their likelihoods",
        f"pass a list of finite points, each {one}, inside the parameters' ranges",
    )


# ── levels ────────────────────────────────────────────────────────────────────────────────────────


def _of_levels(
    public: PublicFacts,
    family: BetaBinomial | DirichletMultinomial,
    grid: Sequence[Row],
    where: Where | None,
) -> Candidates:
    """ℓ = ln θ_k for a row of level k, less its middle over the grid."""
    subset = rows_asked(public.schema, where, family.column)
    if isinstance(family, BetaBinomial):
        code, _ = level_of(public.schema, family)
        keys: tuple[Key, ...] = (Split(family.column, (code,)),)
        shares = np.array([(point[0], 1 - point[0]) for point in grid])
        powers = np.array(family.prior)
    else:
        cells = levels_of(public.schema, family)
        keys = cells.keys
        shares = np.array(grid)
        powers = np.array(family.concentrations(cells.count))
    logs = np.log(shares)
    middles = (logs.min(axis=0) + logs.max(axis=0)) / 2
    rows = tuple(RowLikelihood(tuple(map(_fine, row))) for row in (logs - middles).tolist())
    return Candidates(
        parameter_names(public, family),
        keys + subset.keys,
        (),
        rows,
        tuple((logs @ (powers - 1)).tolist()),
        subset.optional,
        subset.where,
        family.column,
    )


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────


def _of_numbers(
    public: PublicFacts,
    family: GammaPoisson | NormalModel,
    grid: Sequence[Row],
    where: Where | None,
) -> Candidates:
    require_numbers(public.schema, family)
    subset = rows_asked(public.schema, where, family.column)
    factor = number_factor(public.schema, family.column, "a posterior", CODE_BITS)
    center, step = factor.encoding.center, float(factor.encoding.step)
    half = step * factor.encoding.high
    if isinstance(family, GammaPoisson):
        shape, rate = family.shape_and_rate
        rates = np.array([point[0] for point in grid])
        logs = np.log(rates)
        prior = (shape - 1) * logs - rate * rates
        moved = logs - (logs.min() + logs.max()) / 2
        rows = [
            RowLikelihood((_fine(center * slope - one),), (_fine(step * slope),))
            for slope, one in zip(moved.tolist(), rates.tolist(), strict=True)
        ]
    else:
        means, deviations = (np.array([point[place] for point in grid]) for place in (0, 1))
        mean, weight, shape, scale = family.in_half_ranges(center, half)
        off, logs = (means - center) / half - mean, np.log(deviations / half)
        prior = -(2 * shape + 2) * logs
        with np.errstate(over="ignore"):
            prior = prior - (scale + weight * off**2 / 2) * np.exp(-2 * logs)
        rows = [
            RowLikelihood(
                (_fine(-log),),
                (),
                _form((center - mean) / (math.sqrt(2) * one), (step / (math.sqrt(2) * one),)),
            )
            for log, mean, one in zip(
                logs.tolist(), means.tolist(), deviations.tolist(), strict=True
            )
        ]
    return Candidates(
        parameter_names(public, family),
        subset.keys,
        (factor,),
        _centred(rows, (factor,)),
        tuple(np.maximum(prior, -1e12).tolist()),
        subset.optional,
        subset.where,
        family.column,
    )


def _of_line(
    public: PublicFacts, family: LinearModel, grid: Sequence[Row], where: Where | None
) -> Candidates:
    """ℓ = −ln σ − (y − a − b'x)²/(2σ²): the response given the predictors."""
    names = line_columns(public.schema, family.formula)
    subset = rows_asked(public.schema, where, *names)
    factors = tuple(number_factor(public.schema, name, "a posterior", CODE_BITS) for name in names)
    centers = np.array([factor.encoding.center for factor in factors])
    steps = np.array([float(factor.encoding.step) for factor in factors])
    halves = steps * np.array([factor.encoding.high for factor in factors])
    slope, place, spread, widest = family.scales
    rows, prior = [], []
    for point in grid:
        intercept, slopes, sigma = point[0], np.array(point[1:-1]), point[-1]
        off = centers[-1] - intercept - float(slopes @ centers[:-1])
        weights = np.append(-slopes * steps[:-1], steps[-1]) / (math.sqrt(2) * sigma)
        log = math.log(sigma / halves[-1])
        rows.append(
            RowLikelihood((_fine(-log),), (), _form(off / (math.sqrt(2) * sigma), weights.tolist()))
        )
        scores = [-off / halves[-1] / place, (log - math.log(spread)) / math.log(widest)]
        scores += (slopes * halves[:-1] / halves[-1] / slope).tolist()
        prior.append(max(-0.5 * sum(one * one for one in scores) - log, -1e12))
    return Candidates(
        parameter_names(public, family),
        subset.keys,
        factors,
        _centred(rows, factors),
        tuple(prior),
        subset.optional,
        subset.where,
        names[-1],
    )


def _centred(
    rows: Sequence[RowLikelihood], factors: tuple[Factor, ...]
) -> tuple[RowLikelihood, ...]:
    """The rows less one number for all: the middle of what they can be."""
    bounds = [one.bounds(factors) for one in rows]
    middle = (min(low for low, _ in bounds) + max(high for _, high in bounds)) // 2
    return tuple(
        RowLikelihood(tuple(level - middle for level in one.levels), one.linear, one.form)
        for one in rows
    )


def _form(constant: float, weights: Sequence[float]) -> tuple[int, ...]:
    """A linear form whose square is in fine units."""
    scale = 1 << (FINE_BITS // 2)
    return tuple(round(Fraction(_bounded(one)) * scale) for one in (constant, *weights))


def _fine(value: float) -> int:
    return round(Fraction(_bounded(value)) * (1 << FINE_BITS))


def _bounded(value: float) -> float:
    """A number that a row likelihood can hold; beyond it one point of the grid has no weight for
    any row, and its price would be out of all proportion.
    """
    if not abs(value) <= 2.0**40:
        raise InvalidParameter(
            "grid=",
            "rows would move the likelihood of a point by more than 2**40",
            "a draw is priced by the point that rows move farthest",
            "leave out points that no row of the declared range fits",
        )
    return value
