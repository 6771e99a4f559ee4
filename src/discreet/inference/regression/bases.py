"""The level that a column's coefficients are differences from: its name, how many rows have it by
what a fit released, and whether another one would give narrower intervals.

In a regression with treatment contrasts the rows of the base are the predictor
b = 1 − Σ levels of its column, so that their share is a quadratic form E[b²] of the second moments
that a fit releases; so is the share of every other level.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.inference.counts.selection import score_gap_steps
from discreet.inference.regression.decode import Reading, step_of
from discreet.inference.results.laws import Array
from discreet.schema import Boolean, Category, Schema, level_text
from discreet.specs.estimating.components import LevelComponent, ModelColumn, constant

if TYPE_CHECKING:
    from discreet.inference.regression.fit import RegressionResult

RARE = 0.05  # of the rows: the share below which a base is called rare
BETTER = 4.0  # times as many rows that another level has, at least
SURE = 3.0  # standard deviations of noise: so far above its share a base may be, and stays rare


@dataclass(frozen=True, slots=True)
class SecondMoments:
    """A released mean of w·zzᵀ, z = matrix·x, in which a row counts min(1, R²/‖z‖²); `columns` are
    the first entries of x.
    """

    columns: tuple[ModelColumn, ...]
    matrix: Array
    reading: Reading
    radius: float


@dataclass(frozen=True, slots=True)
class LevelShare:
    """A level's share of the rows as released, and the standard deviation of its noise."""

    level: str
    share: float
    noise: float


def base_levels(columns: Sequence[ModelColumn], schema: Schema) -> tuple[tuple[str, str], ...]:
    """The columns of levels that leave one level out (treatment contrasts), and that level."""
    found = []
    for name, places in _treated(columns).items():
        column = schema[name]
        if isinstance(column, (Boolean, Category)):
            levels = (False, True) if isinstance(column, Boolean) else column.levels
            left = [level for code, level in enumerate(levels) if code not in places]
            found += [(name, level_text(left[0]))] if len(left) == 1 else []
    return tuple(found)


def _treated(columns: Sequence[ModelColumn]) -> dict[str, dict[int, int]]:
    """For each column of levels, where the model has a column of 0 and 1 for a level (by its
    code).
    """
    places: dict[str, dict[int, int]] = {}
    for place, column in enumerate(columns):
        component = column.components[0] if len(column.components) == 1 else None
        if isinstance(component, LevelComponent) and sorted(component.contrast) == [0] * (
            len(component.contrast) - 1
        ) + [1]:
            places.setdefault(component.column, {})[component.contrast.index(1)] = place
    return places


def base_notes(result: RegressionResult) -> list[str]:
    """What a table says of bases: which were chosen, and which are rare."""
    return [*_chosen_notes(result), *_rare_notes(result)]


def _chosen_notes(result: RegressionResult) -> Iterator[str]:
    for release in result.releases:
        if step_of(release).name == "base":
            asked, levels = release.description, release.description.labels[0]
            yield (
                f"Base of {asked.column}: {levels[release.integers[0]]}, chosen privately for its "
                f"frequency among {len(levels)} levels; with probability at least 95% at most "
                f"{score_gap_steps(release, 0.95):.0f} rows behind the most frequent."
            )


def _rare_notes(result: RegressionResult) -> Iterator[str]:
    moments = result.level_moments if result.bases else None
    if moments is None:
        return
    for name, base in result.bases.items():
        shares = level_shares(name, base, moments)
        first = shares[0]
        best = max(shares, key=lambda one: one.share)
        upper, lower = first.share + SURE * first.noise, best.share - SURE * best.noise
        if first.share < RARE and upper < 2 * RARE and lower > BETTER * max(upper, 0.0):
            yield (
                f"RARE BASE: {base} is the base of {name} and has about "
                f"{_percent(max(first.share, 0.0), first.noise)} of the rows, {best.level} about "
                f"{_percent(best.share, best.noise)}. Every coefficient of {name} is a difference "
                f"from {base} and cannot be surer than it; base={{{name!r}: {best.level!r}}} would "
                "give narrower intervals."
            )


def level_shares(name: str, base: str, moments: SecondMoments) -> list[LevelShare]:
    """The shares of a column's levels, the base first.

    Method.    With a the coefficients of a level's indicator, its weighted share is aᵀSa for the
               second moments S = A⁻¹MA⁻ᵀ of a release M in the metric A; symmetric noise of
               standard deviation s on M gives it s·‖A⁻ᵀa‖². Rows of a level are taken to weigh what
               one at their mean does, R²/‖z‖² at most 1, with the spread about it that levels have
               on average; shares then sum to 1.
    Validity.  Post-processing. Exact where every row has its whole weight, within a small factor
               elsewhere, which BETTER allows for.
    """
    columns, size = moments.columns, len(moments.matrix)
    places = _treated(columns)[name]
    indicators = np.zeros((len(places) + 1, size))
    indicators[0, : len(columns)] = constant(columns)
    for row, place in enumerate(places.values(), 1):
        indicators[row, place] = 1.0
        indicators[0, place] -= 1.0
    inward = np.linalg.solve(moments.matrix.T, indicators.T).T
    matrix, noise = moments.reading.value, moments.reading.noise
    errors = noise * (inward**2).sum(axis=1)
    weighted = np.einsum("gi,ij,gj->g", inward, matrix, inward)
    means = (inward @ matrix) / np.maximum(weighted, errors)[:, None]
    between = (means**2).sum(axis=1)
    total = max(float(np.maximum(weighted, 0.0).sum()), float(errors[0]))
    spread = max(0.0, float(np.trace(matrix) - np.maximum(weighted, 0.0) @ between)) / total
    weights = np.minimum(1.0, moments.radius**2 / (between + spread))
    whole = max(float((np.maximum(weighted, 0.0) / weights).sum()), total)
    texts = [base, *(columns[place].name[len(name) + 1 : -1] for place in places.values())]
    return [
        LevelShare(text, float(share), float(error))
        for text, share, error in zip(
            texts, weighted / weights / whole, errors / weights / whole, strict=True
        )
    ]


def _percent(share: float, noise: float) -> str:
    """A share in percent with the digits that its noise leaves."""
    digits = 0 if noise <= 0 else min(2, max(0, -math.floor(math.log10(100 * noise))))
    return f"{100 * share:.{digits}f} %"
