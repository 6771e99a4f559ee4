"""Parameters from their prior, rows from the family, the release that a session would make, and
where the truth lies in the posterior: simulation-based calibration.

A posterior is calibrated where P(θ < truth) is uniform over all of it. The mechanisms that run are
those of the questions that dp.posterior asks; their noise is seeded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from discreet.accounting.guarantees import GDP, Guarantee, PureDP
from discreet.asking.expected import imagined_release
from discreet.estimators.bayes.posterior import posterior_question
from discreet.inference.posteriors.families import (
    BetaBinomial,
    DirichletMultinomial,
    Family,
    GammaPoisson,
    LinearModel,
    NormalModel,
)
from discreet.inference.posteriors.results import PosteriorResult
from discreet.neighbors import AddRemove, Neighbors, Replace
from discreet.schema import Boolean, Category, Integer, Real, Schema
from discreet.specs.queries.moments import Moments
from discreet.specs.queries.pairs import PairMoments
from discreet.specs.queries.sums import Sum
from discreet.testing import SeededSource
from discreet.trusted.noise.samplers import apply
from discreet.trusted.release import PublicFacts

Array = Any
BINS = 20
LEVELS = ("a", "b", "c")
SCHEMA = Schema(
    {
        "share": Boolean(missing=False),
        "level": Category(LEVELS, missing="a"),
        "count": Integer(0, 5, missing=0),
        "held": Real(-1, 1),
        "number": Real(-1, 1, missing=0.0),
        "x": Real(-1, 1, missing=0.0),
        "y": Real(-1, 1, missing=0.0),
    }
)
# (draw of the truth by its parameters' names, rows given it)
Truth = dict[str, float]


@dataclass(frozen=True)
class Case:
    """A family, what is asked, and how many rows there are."""

    name: str
    family: Family
    rows: int
    spend: Guarantee
    neighbors: Neighbors = Replace()  # noqa: RUF009


CASES = (
    Case("beta_n20", BetaBinomial("share", prior=(1, 1)), 20, PureDP(0.5)),
    Case("beta_n1000", BetaBinomial("share", prior=(2, 3)), 1000, PureDP(0.1)),
    Case("beta_private_n", BetaBinomial("share"), 400, GDP(0.1), AddRemove()),
    Case("dirichlet", DirichletMultinomial("level", prior=(0.5, 1, 2)), 100, PureDP(0.2)),
    Case("dirichlet_private_n", DirichletMultinomial("level"), 400, GDP(0.1), AddRemove()),
    Case("poisson", GammaPoisson("count", prior=(3, 1)), 1000, GDP(0.1)),
    Case("poisson_private_n", GammaPoisson("count", prior=(3, 1)), 300, GDP(0.3), AddRemove()),
    Case("normal", NormalModel("number", prior=(0, 1, 4, 0.4)), 200, GDP(0.3)),
    Case(
        "normal_private_n", NormalModel("held", prior=(0, 1, 4, 0.4)), 2000, GDP(0.1), AddRemove()
    ),
    Case("line", LinearModel("y ~ x", prior=(0.5, 0.1, 0.14, 1.2)), 1000, GDP(0.5)),
    Case(
        "line_private_n",
        LinearModel("y ~ x", prior=(0.5, 0.1, 0.14, 1.2)),
        3000,
        GDP(0.2),
        AddRemove(),
    ),
)


@dataclass(frozen=True)
class Ranks:
    """P(θ < truth) of every run, noise-aware and naive, for each parameter."""

    aware: Array
    naive: Array

    def coverage(self, level: float = 0.95) -> tuple[float, float]:
        """The share of runs whose interval holds the truth, noise-aware and naive; the worst
        parameter's.
        """
        tail = (1 - level) / 2
        inside = [
            ((one > tail) & (one < 1 - tail)).mean(axis=0) for one in (self.aware, self.naive)
        ]
        worst = int(np.argmax(np.abs(inside[0] - level)))
        return float(inside[0][worst]), float(inside[1][worst])

    def p_values(self) -> tuple[float, float]:
        """χ² of the ranks in 20 bins, the least over parameters (Bonferroni), aware and naive."""
        found = []
        for ranks in (self.aware, self.naive):
            each = [uniform_p(ranks[:, place]) for place in range(ranks.shape[1])]
            found.append(min(1.0, len(each) * min(each)))
        return found[0], found[1]


def uniform_p(ranks: Array) -> float:
    """The p-value of χ² for ranks in equal bins."""
    places = np.minimum((np.clip(ranks, 0.0, 1.0) * BINS).astype(int), BINS - 1)
    return float(stats.chisquare(np.bincount(places, minlength=BINS)).pvalue)


def simulated(case: Case, runs: int, seed: int) -> Ranks:
    """Where the truth lies in the posterior of each of so many releases."""
    public = PublicFacts(
        SCHEMA, case.neighbors, case.rows if isinstance(case.neighbors, Replace) else None
    )
    question = posterior_question(public, case.family, spend=case.spend)
    rng, source = np.random.default_rng(seed), SeededSource(f"{case.name}/{seed}")
    draw = _DRAWS[type(case.family)]
    found: list[list[list[float]]] = [[], []]
    for _ in range(runs):
        truth, statistic = draw(case, question.query, rng)
        integers = apply(question.mechanism, statistic, source).integers
        release = imagined_release(public, question, integers)
        for place, naive in enumerate((False, True)):
            result = PosteriorResult(release, case.family, naive)
            law = result._posterior.law
            found[place].append(
                [
                    float(law.cdf(result.names.index(name), np.array([value]))[0])
                    for name, value in truth.items()
                ]
            )
    return Ranks(np.array(found[0]), np.array(found[1]))


# ── truths and statistics ─────────────────────────────────────────────────────────────────────────


def _share(case: Case, query: Sum, rng: np.random.Generator) -> tuple[Truth, list[int]]:
    assert isinstance(case.family, BetaBinomial)
    share = rng.beta(*case.family.prior)
    yes = int(rng.binomial(case.rows, share))
    return {"share = True": share}, [yes, case.rows - yes][: query.size]


def _shares(case: Case, query: Sum, rng: np.random.Generator) -> tuple[Truth, list[int]]:
    assert isinstance(case.family, DirichletMultinomial)
    shares = rng.dirichlet(case.family.concentrations(len(LEVELS)))
    counts = rng.multinomial(case.rows, shares).tolist()
    return {"a": shares[0], "c": shares[2]}, counts + [0] * (query.size - len(counts))


def _poisson(case: Case, query: Moments, rng: np.random.Generator) -> tuple[Truth, list[int]]:
    assert isinstance(case.family, GammaPoisson)
    shape, rate = case.family.shape_and_rate
    truth = rng.gamma(shape, 1 / rate)
    return {"rate": truth}, _moments(query, rng.poisson(truth, case.rows))


def _normal(case: Case, query: Moments, rng: np.random.Generator) -> tuple[Truth, list[int]]:
    assert isinstance(case.family, NormalModel)
    assert case.family.prior is not None
    mean, weight, shape, scale = case.family.prior
    deviation = np.sqrt(scale / rng.gamma(shape))
    place = mean + deviation / np.sqrt(weight) * rng.normal()
    return {"mean": place, "sd": deviation}, _moments(
        query, rng.normal(place, deviation, case.rows)
    )


def _line(case: Case, query: PairMoments, rng: np.random.Generator) -> tuple[Truth, list[int]]:
    assert isinstance(case.family, LinearModel)
    slope_sd, place, spread, factor = case.family.scales
    slope, intercept = slope_sd * rng.normal(), place * rng.normal()
    deviation, sigma = (spread * factor ** rng.normal() for _ in range(2))
    x = rng.normal(place * rng.normal(), deviation, case.rows)
    y = intercept + slope * x + rng.normal(0, sigma, case.rows)
    codes = [_codes(query, place, values) for place, values in enumerate((x, y))]
    sums = [
        int(np.prod([codes[j] for j in term], axis=0).sum()) if term else case.rows
        for term in query.terms()
    ]
    statistic = query.assemble(np.array([sums], dtype=object))
    return {"Intercept": intercept, "x": slope, "sigma": sigma}, statistic


def _codes(query: PairMoments, place: int, values: Array) -> Array:
    grid = query.factors[place].encoding
    codes = np.rint((values - grid.center) * grid.per_unit)
    return np.clip(codes, grid.low, grid.high).astype(np.int64)


def _moments(query: Moments, values: Array) -> list[int]:
    grid = query.factor.encoding
    codes = np.clip(np.rint((values - grid.center) * grid.per_unit), grid.low, grid.high)
    sums = [sum(int(one) for one in codes.astype(np.int64) ** power) for power in range(3)]
    return query.assemble(np.array([sums], dtype=object))


_DRAWS: dict[type[Any], Callable[[Case, Any, np.random.Generator], tuple[Truth, list[int]]]] = {
    BetaBinomial: _share,
    DirichletMultinomial: _shares,
    GammaPoisson: _poisson,
    NormalModel: _normal,
    LinearModel: _line,
}
