"""Draws of one more row from a posterior: of the family, not of clamped or noisy numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import poisson

from discreet.errors import InvalidParameter, shown
from discreet.exact import rational
from discreet.inference.posteriors.families import (
    BetaBinomial,
    DirichletMultinomial,
    GammaPoisson,
    LinearModel,
    NormalModel,
)
from discreet.inference.posteriors.reading import seed_of
from discreet.inference.simulation.streams import Stream

if TYPE_CHECKING:
    from discreet.inference.posteriors.results import PosteriorResult

LARGEST_RATE = 1e15


def predicted(result: PosteriorResult, size: int, at: Any) -> npt.NDArray[Any]:
    """One more row for each draw of the parameters."""
    family, draws = result.family, result.draws(size)
    if at is not None and not isinstance(family, LinearModel):
        raise InvalidParameter(
            "at=",
            "given for a family without predictors",
            "it names the predictors' values of a row",
            "leave it out",
        )
    uniforms = Stream(seed_of(result.release, "predictive")).uniforms((size,), "row")
    if isinstance(family, BetaBinomial):
        return np.asarray(uniforms < draws[:, 0])
    if isinstance(family, DirichletMultinomial):
        sums = np.cumsum(draws, axis=1)
        places = np.sum(sums <= uniforms[:, None] * sums[:, -1:], axis=1)
        names = np.array(result.names, dtype=object)
        return np.asarray(names[np.minimum(places, len(names) - 1)])
    if isinstance(family, GammaPoisson):
        return np.asarray(poisson.ppf(uniforms, np.minimum(draws[:, 0], LARGEST_RATE)))
    if isinstance(family, NormalModel):
        return np.asarray(draws[:, 0] + draws[:, 1] * ndtri(uniforms))
    values = _values(at, result.names[1:-1])
    return np.asarray(draws[:, 0] + draws[:, 1:-1] @ values + draws[:, -1] * ndtri(uniforms))


def _values(at: Any, names: tuple[str, ...]) -> npt.NDArray[np.float64]:
    if not isinstance(at, Mapping) or set(at) != set(names):
        raise InvalidParameter(
            "at=",
            f"{shown(at)} does not name the predictors {', '.join(names)}",
            "the response depends on them",
            f"pass for example at={{{names[0]!r}: 1.0}}",
        )
    return np.array([float(rational(at[name], f"at[{name!r}]")) for name in names])
