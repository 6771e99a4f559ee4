"""Coverage of nominal 95 % bands: distribution functions and densities, pointwise and simultaneous,
and quantiles read from the tree.

Every repetition draws data from a known law, encodes it, computes the exact integer statistic, adds
the exact noise that the estimator would add, and asks the same inference code as the public
functions. The half-width of a simultaneous band (and the level of a density's), itself the result
of a simulation, is computed for the first few repetitions of a case and used by all of them in turn
(their median); all else is done for each.

    make bench NAME=coverage_bands
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

import discreet as dp
from discreet.asking.cells import bin_cells
from discreet.estimators.distributions import (
    default_edges,
    density_question,
    ecdf_question,
    quantile_leaves,
    tree_noise,
)
from discreet.inference.counts.shares import decode_shares, share_interval
from discreet.inference.quantiles.cumulative import Cumulative, share_bounds
from discreet.inference.quantiles.densities import SMALLEST_SHARE
from discreet.inference.quantiles.simultaneous import band_half_width, cell_level
from discreet.inference.quantiles.tree_quantiles import invert
from discreet.inference.quantiles.trees import TreeShape, least_squares, prefix_counts
from discreet.inference.results.decode import noise_of, to_float
from discreet.schema import Column, Integer, Real, Schema
from discreet.specs.queries.trees import TreeCounts, tree_over
from discreet.specs.statistics import histogram_of_cells
from discreet.testing import SeededSource
from discreet.trusted.engines.kernels import bin_index, clamp, encode
from discreet.trusted.noise.sampling import draw
from discreet.trusted.release import PublicFacts

REPETITIONS = 2000
SIZES = (200, 1000, 5000)
SPENDS = (dp.GDP(0.25), dp.GDP(0.5), dp.GDP(1.0), dp.PureDP(0.5))
RELATIONS = (dp.Replace(), dp.AddRemove())
LEVEL = 0.95
CALIBRATIONS = 4
# where the distribution function is looked at, and the quantiles
SHARES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
QUANTILES = np.array([0.1, 0.25, 0.5, 0.75, 0.9])


@dataclass(frozen=True)
class Law:
    """A data law with its distribution function, and the column a user would declare for it."""

    name: str
    column: Column
    sample: Callable[[np.random.Generator, int], np.ndarray]
    cdf: Callable[[np.ndarray], np.ndarray]
    ppf: Callable[[np.ndarray], np.ndarray]


def _bimodal_cdf(x: np.ndarray) -> np.ndarray:
    return 0.4 * stats.norm.cdf(x, 30, 4) + 0.6 * stats.norm.cdf(x, 70, 6)


_GRID = np.linspace(0, 100, 200_001)
LAWS = (
    Law(
        "normal",
        Real(0, 100),
        lambda rng, n: rng.normal(50, 10, n),
        stats.norm(50, 10).cdf,
        stats.norm(50, 10).ppf,
    ),
    Law(
        "lognormal",
        Real(0, 40),
        lambda rng, n: rng.lognormal(0, 1, n),
        stats.lognorm(1).cdf,
        stats.lognorm(1).ppf,
    ),
    Law("t3", Real(-30, 30), lambda rng, n: rng.standard_t(3, n), stats.t(3).cdf, stats.t(3).ppf),
    Law(
        "poisson",
        Integer(0, 40),
        lambda rng, n: rng.poisson(6, n).astype(float),
        stats.poisson(6).cdf,
        stats.poisson(6).ppf,
    ),
    Law(
        "bimodal",
        Real(0, 100),
        lambda rng, n: np.where(rng.random(n) < 0.4, rng.normal(30, 4, n), rng.normal(70, 6, n)),
        _bimodal_cdf,
        lambda q: np.interp(q, _bimodal_cdf(_GRID), _GRID),
    ),
)


@dataclass(frozen=True)
class Case:
    law: Law
    size: int
    spend: dp.GDP | dp.PureDP
    neighbors: dp.Replace | dp.AddRemove

    @property
    def public(self) -> PublicFacts:
        count = self.size if isinstance(self.neighbors, dp.Replace) else None
        return PublicFacts(Schema({"x": self.law.column}), self.neighbors, count)

    @property
    def name(self) -> str:
        spend = (
            f"mu={self.spend.mu:g}"
            if isinstance(self.spend, dp.GDP)
            else f"eps={self.spend.epsilon:g}"
        )
        return f"{self.law.name:10s} n={self.size:<5d} {spend:8s} {self.neighbors}"


def noisy_tree(
    case: Case, query: TreeCounts, values: np.ndarray, source: SeededSource
) -> Cumulative:
    """What `cumulative_of` makes of a release."""
    grid, mechanism = query.factor.encoding, tree_noise(query, case.neighbors, case.spend)
    codes = encode(clamp(values, case.law.column), grid)
    statistic = np.array(
        query.assemble(
            histogram_of_cells(
                query.cells, (codes.astype(np.int64) - grid.low) // query.plan().stride
            )
        )
    )
    released = statistic * (1 << mechanism.refinement) + draw(mechanism, query.size, source)
    public = case.public.rows
    shape = TreeShape(query.branching, query.levels)
    prefix = prefix_counts(least_squares(shape, to_float(mechanism, released, 1.0), total=public))
    total = float(prefix[-1]) if public is None else float(public)
    return Cumulative(
        shape,
        prefix,
        total,
        noise_of(mechanism, 1.0),
        public is not None,
        -(-query.cells // query.width),
    )


def ecdf_edges(query: TreeCounts) -> np.ndarray:
    inner = np.arange(1, -(-query.cells // query.width)) * query.width - 1
    return query.value(inner) + (0.0 if query.factor.encoding.is_exact else query.step / 2)


def run_ecdf(case: Case, repetitions: int, seed: int) -> tuple[np.ndarray, float]:
    """(pointwise coverage at the points nearest to SHARES, simultaneous coverage)."""
    rng, source = np.random.default_rng(seed), SeededSource(seed)
    query = ecdf_question(case.public, "x", spend=case.spend).query
    assert isinstance(query, TreeCounts)
    truth = case.law.cdf(ecdf_edges(query))
    looked = np.unique([int(np.argmin(np.abs(truth - share))) for share in SHARES])
    looked = looked[(truth[looked] > 0.02) & (truth[looked] < 0.98)]
    draws = [
        noisy_tree(case, query, case.law.sample(rng, case.size), source) for _ in range(repetitions)
    ]
    halves = [band_half_width(draw_, LEVEL) for draw_ in draws[:CALIBRATIONS]]
    error = np.array(
        [np.abs(draw_.prefix[draw_.inner] / draw_.rows - truth).max() for draw_ in draws]
    )
    everywhere = float(np.mean(error <= np.resize(halves, repetitions)))
    together = replace(
        draws[0],
        prefix=np.stack([draw_.prefix for draw_ in draws]),
        total=np.array([[draw_.total] for draw_ in draws]),
    )
    low, high = share_bounds(together, looked + 1, LEVEL)
    return np.mean((low <= truth[looked]) & (truth[looked] <= high), axis=0), everywhere


def run_quantiles(case: Case, repetitions: int, seed: int) -> np.ndarray:
    rng, source = np.random.default_rng(seed), SeededSource(seed)
    base = ecdf_question(case.public, "x", spend=case.spend).query
    assert isinstance(base, TreeCounts)
    query = tree_over(
        (),
        base.factor,
        optional=False,
        leaves=quantile_leaves(case.public),
        norm=1 if isinstance(case.spend, dp.PureDP) else 2,
    )
    truth, covered = case.law.ppf(QUANTILES), np.zeros(QUANTILES.size)
    for _ in range(repetitions):
        found = invert(
            noisy_tree(case, query, case.law.sample(rng, case.size), source),
            query,
            QUANTILES,
            LEVEL,
        )
        covered += (found.low <= truth) & (truth <= found.high)
    return covered / repetitions


def run_density(case: Case, repetitions: int, seed: int) -> tuple[np.ndarray, float]:
    """(pointwise coverage of bins that expect at least five rows, simultaneous coverage of all
    bins).
    """
    rng, source = np.random.default_rng(seed), SeededSource(seed)
    mechanism = density_question(case.public, "x", spend=case.spend).mechanism
    edges = np.array(
        bin_cells(case.public.schema, "x", default_edges(case.public, "x", spend=case.spend))
        .keys[0]
        .edges
    )
    inner = case.law.cdf(edges[1:-1])
    truth = np.diff(np.concatenate([[0.0], inner, [1.0]]))
    counts = [
        np.bincount(
            bin_index(clamp(case.law.sample(rng, case.size), case.law.column), tuple(edges)),
            minlength=truth.size,
        )
        for _ in range(repetitions)
    ]
    noise = draw(mechanism, truth.size * repetitions, source).reshape(repetitions, truth.size)
    released = np.array(counts) * (1 << mechanism.refinement) + noise
    levels = [
        cell_level(decode_shares(mechanism, row, public_rows=case.public.rows, cluster=1), LEVEL)
        for row in released[:CALIBRATIONS]
    ]
    statistics = decode_shares(mechanism, released.T, public_rows=case.public.rows, cluster=1)
    low, high = share_interval(statistics, LEVEL)
    pointwise = np.mean((low - SMALLEST_SHARE <= truth[:, None]) & (truth[:, None] <= high), axis=1)
    low, high = share_interval(statistics, float(np.median(levels)))
    everywhere = float(
        np.mean(np.all((low - SMALLEST_SHARE <= truth[:, None]) & (truth[:, None] <= high), axis=0))
    )
    return pointwise[truth * case.size >= 5], everywhere


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    options = parser.parse_args()
    cases = [
        Case(law, size, spend, neighbors)
        for law, size, spend, neighbors in itertools.product(LAWS, SIZES, SPENDS, RELATIONS)
        if isinstance(neighbors, dp.Replace)
        or (spend == dp.GDP(0.5) and law.name in ("normal", "poisson"))
    ]
    cases = [case for case in cases if options.only in case.name]
    pointwise, everywhere, quantiles = [], [], []
    print(
        f"{'case':44s} {'F pointwise':>14s} {'F all':>6s} {'quantiles':>14s} {'f pointwise':>14s} "
        f"{'f all':>6s}  seconds"
    )
    for number, case in enumerate(cases):
        start = time.perf_counter()
        points, curve = run_ecdf(case, options.repetitions, 3 * number)
        found = run_quantiles(case, options.repetitions, 3 * number + 1)
        bins, density = run_density(case, options.repetitions, 3 * number + 2)
        pointwise += [*points, *bins]
        quantiles += [*found]
        everywhere += [curve, density]
        spans = [
            f"{values.min():.3f} … {values.max():.3f}" if values.size else ""
            for values in (points, found, bins)
        ]
        print(
            f"{case.name:44s} {spans[0]:>14s} {curve:6.3f} {spans[1]:>14s} {spans[2]:>14s} "
            f"{density:6.3f}  {time.perf_counter() - start:.1f}",
            flush=True,
        )
    print(
        f"worst_pointwise={min(pointwise):.4f} best_pointwise={max(pointwise):.4f} "
        f"worst_simultaneous={min(everywhere):.4f} best_simultaneous={max(everywhere):.4f} "
        f"worst_quantile={min(quantiles):.4f} best_quantile={max(quantiles):.4f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
