"""The parts of a likelihood against their definitions: enumeration, quadrature, and dense grids."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from discreet.inference.counts.tulap import ReleasedNoise, released_noise
from discreet.inference.posteriors.families import GammaPoisson, NormalModel
from discreet.inference.posteriors.grids import (
    NoisySums,
    log_likelihood,
    normal_law,
    poisson_law,
)
from discreet.inference.posteriors.hidden_counts import NoisyCounts, log_noise, shares_law
from discreet.inference.posteriors.laws import DrawnLaw, GridLaw, SharesLaw
from discreet.inference.posteriors.row_moments import RowMoments, clamped_normal, clamped_poisson
from discreet.inference.posteriors.second_moments import row_law
from discreet.inference.results.laws import tail_and_density
from discreet.sensitivity import L2
from discreet.specs.mechanisms.additive import GaussianNoise

GEOMETRIC = ReleasedNoise("geometric", 1.7)


def test_noise_has_the_law_of_its_grid():
    noise = released_noise(GaussianNoise(L2(Fraction(1)), Fraction(3), 9))
    offs = np.array([-40, -7, 0, 1, 5, 400]) * noise.step
    exact = [stats.norm.cdf(o + noise.step / 2, 0, 3) - stats.norm.cdf(o - noise.step / 2, 0, 3)
             for o in offs]  # fmt: skip
    found = log_noise(noise, offs)
    assert found - found[2] == pytest.approx(np.log(exact) - math.log(exact[2]), abs=1e-9)
    steps = np.arange(-6, 7)
    weights = np.exp(log_noise(GEOMETRIC, steps))
    assert weights == pytest.approx(GEOMETRIC.b ** np.abs(steps))


def enumerated(counts, prior, noise, *, total=None, most=60):
    """Posterior means of shares, by going through all hidden counts."""
    weights, means = [], []
    for x in itertools.product(range(most), repeat=len(prior)):
        if total is not None and sum(x) != total:
            continue
        at, rows = np.array(x, dtype=float), sum(x)
        log = np.sum(gammaln(prior + at) - gammaln(prior) - gammaln(at + 1))
        if total is None:
            log += gammaln(rows + 1) + gammaln(prior.sum()) - gammaln(prior.sum() + rows)
        log += np.sum(log_noise(noise, counts - at))
        weights.append(math.exp(log))
        means.append((prior + at) / (prior.sum() + rows))
    return np.average(means, axis=0, weights=weights)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("counts", "prior", "total"),
    [
        ((4, -2, 3), (1, 1, 1), 6),
        ((4, 9, -3), (0.1, 2, 1), 7),
        ((3, 6), (1, 2), 8),
        ((3, 5), (1, 2), None),
        ((-3, 1, 2), (0.5, 0.5, 0.5), None),
        ((-9, -9), (1, 1), None),
    ],
)
def test_shares_are_those_of_all_hidden_counts(counts, prior, total):
    counts, prior = np.array(counts, dtype=float), np.array(prior, dtype=float)
    most = 24 if len(prior) == 3 else 60
    truth = enumerated(counts, prior, GEOMETRIC, total=total, most=most)
    law = shares_law(NoisyCounts(counts, GEOMETRIC, total, total), prior, "seed", shown=len(prior))
    exact = total is not None and len(prior) == 2
    errors = 5 * law.deviations / math.sqrt(len(law.weights))
    assert np.all(np.abs(law.means - truth) <= (1e-12 if exact else errors))


def test_a_count_of_absent_rows_counts():
    noise = ReleasedNoise("geometric", 0.4)
    known = NoisyCounts(np.array([5.0, 20.0]), noise, None, 40, 15.0)
    other = NoisyCounts(np.array([5.0, 20.0]), noise, None, 40, 16.0)
    prior = np.array([1.0, 1.0])
    means = [shares_law(each, prior, "s", shown=2).means[0] for each in (known, other)]
    assert means[0] == pytest.approx(6 / 27, abs=0.01)
    assert means[0] != means[1]


def test_bins_of_hidden_counts_change_little():
    """A noise of scale 900 on counts of a million: bins, against every count one by one."""
    noise, total = ReleasedNoise("geometric", 900.0), 1_000_000
    law = shares_law(
        NoisyCounts(np.array([300_000.0]), noise, total, total), np.ones(2), "s", shown=1
    )
    x = np.arange(270_000, 330_001)
    weights = np.exp(log_noise(noise, 300_000.0 - x))
    mean = np.average((x + 1) / (total + 2), weights=weights)
    spread = np.sqrt(
        np.average(((x + 1) / (total + 2) - mean) ** 2, weights=weights) + 0.21 / total
    )
    assert law.means[0] == pytest.approx(mean, abs=1e-7)
    assert law.deviations[0] == pytest.approx(spread, rel=1e-3)


def features(c):
    return np.stack([c, 1 - c**2])


@pytest.mark.parametrize(("mean", "sd"), [(0.2, 0.3), (-0.9, 0.5), (1.6, 0.2), (0, 8.0), (3, 2.0)])
def test_moments_of_clamped_normal_rows(mean, sd):
    grid = np.linspace(-1, 1, 200_001)
    mass = stats.norm.pdf(grid, mean, sd) * (grid[1] - grid[0])
    mass[[0, -1]] /= 2
    mass[0] += stats.norm.cdf(-1, mean, sd)
    mass[-1] += stats.norm.sf(1, mean, sd)
    values = features(grid)
    means = values @ mass
    spread = (values * mass) @ values.T - np.outer(means, means)
    found = clamped_normal(np.array([mean]), np.array([sd]))
    assert found.means[:, 0] == pytest.approx(means, abs=1e-7)
    assert found.covariances[:, 0] == pytest.approx(spread[[0, 0, 1], [0, 1, 1]], abs=1e-7)


@pytest.mark.parametrize(
    ("rate", "low", "high"), [(2.3, 0, 5), (0.01, 0, 9), (30.0, 2, 9), (4, 1, 40)]
)
def test_moments_of_clamped_counts(rate, low, high):
    counts = np.arange(400)
    mass = stats.poisson.pmf(counts, rate)
    values = features((np.clip(counts, low, high) - (low + high) / 2) / ((high - low) / 2))
    means = values @ mass
    spread = (values * mass) @ values.T - np.outer(means, means)
    found = clamped_poisson(np.array([rate]), low, high)
    assert found.means[:, 0] == pytest.approx(means, abs=1e-9)
    assert found.covariances[:, 0] == pytest.approx(spread[[0, 0, 1], [0, 1, 1]], abs=1e-9)


def test_moments_of_normal_pairs():
    """Gauss–Hermite quadrature is exact for polynomials."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(6)
    weights = weights / weights.sum()
    means, root = np.array([0.3, -0.2]), np.array([[0.5, 0.0], [0.2, 0.4]])
    points = [means + root @ np.array(pair) for pair in itertools.product(nodes, repeat=2)]
    mass = np.array([a * b for a, b in itertools.product(weights, repeat=2)])
    values = np.array([[c, d, 1 - c * c, c * d, 1 - d * d] for c, d in points])
    center = mass @ values
    spread = (values * mass[:, None]).T @ values - np.outer(center, center)
    found = row_law(means[None], (root @ root.T)[None], np.triu_indices(2))
    assert found[0][0] == pytest.approx(center, abs=1e-12)
    assert found[1][0] == pytest.approx(spread, abs=1e-12)


@pytest.mark.parametrize("scale", [0.2, 3.0, 40.0])
def test_laplace_noise_is_a_mixture_of_normal_laws(scale):
    """Against the convolution, computed by quadrature."""
    row = RowMoments(np.array([[0.1], [0.6]]), np.array([[0.2], [0.05], [0.1]]))
    rows, values = 50, np.array([9.0, 25.0])
    noises = (ReleasedNoise("laplace", scale), ReleasedNoise("laplace", scale / 2))
    found = [
        float(log_likelihood(NoisySums(values + shift, noises, rows), row)[0])
        for shift in (0.0, 4.0)
    ]
    mean, spread = rows * row.means[:, 0], rows * np.array([[0.2, 0.05], [0.05, 0.1]])
    first = np.linspace(mean[0] - 30, mean[0] + 30, 12_001)
    middle = mean[1] + spread[0, 1] / spread[0, 0] * (first - mean[0])
    conditional = np.full(first.shape, (spread[1, 1] - spread[0, 1] ** 2 / spread[0, 0]) ** 0.5)

    def density(at):
        inner = tail_and_density(
            np.abs(at[1] - middle), conditional, np.full(first.shape, scale / 2)
        )
        outer = stats.norm.pdf(first, mean[0], spread[0, 0] ** 0.5)
        return np.sum(outer * stats.laplace.pdf(at[0] - first, 0, scale) * inner[1])

    exact = [math.log(density(values + shift)) for shift in (0.0, 4.0)]
    assert found[1] - found[0] == pytest.approx(exact[1] - exact[0], abs=2e-3)


def test_the_grid_of_two_parameters_is_fine_enough():
    """Against a plain dense grid over the same density."""
    noise = ReleasedNoise("gaussian", 5.0)
    released = NoisySums(np.array([20.0, 170.0]), (noise, noise), 200)
    family = NormalModel("x", prior=(0.0, 1.0, 4.0, 0.4))
    law = normal_law(released, family, 0.0, 1.0)
    line = np.meshgrid(np.linspace(-0.3, 0.5, 401), np.linspace(-2, 0, 401))
    m, log = (each.ravel() for each in line)
    prior = -8 * log - 0.4 * np.exp(-2 * log) - log - 0.5 * (m * np.exp(-log)) ** 2
    logs = prior + log_likelihood(released, clamped_normal(m, np.exp(log)))
    weights = np.exp(logs - logs.max())
    for place, values in enumerate((m, np.exp(log))):
        mean = np.average(values, weights=weights)
        sd = math.sqrt(np.average((values - mean) ** 2, weights=weights))
        order = np.argsort(values)
        median = np.interp(0.5, np.cumsum(weights[order]) / weights.sum(), values[order])
        assert law.means[place] == pytest.approx(mean, abs=1e-4 * sd + 1e-5)
        assert law.deviations[place] == pytest.approx(sd, rel=3e-3)
        assert law.quantiles(place, np.array([0.5]))[0] == pytest.approx(median, abs=0.03 * sd)


def test_a_posterior_of_noise_alone_is_the_prior():
    wide = ReleasedNoise("gaussian", 1e9)
    released = NoisySums(np.array([0.0, 100.0]), (wide, wide), 200)
    rate = poisson_law(released, GammaPoisson("k", prior=(2.0, 0.5)), 0, 9)
    assert rate.means[0] == pytest.approx(4, rel=1e-3)
    assert rate.quantiles(0, np.array([0.05, 0.95])) == pytest.approx(
        stats.gamma.ppf([0.05, 0.95], 2, scale=2), rel=1e-3
    )
    law = normal_law(released, NormalModel("x", prior=(0.3, 2.0, 2.0, 0.5)), 0.0, 1.0)
    student = stats.t(4, 0.3, math.sqrt(0.5 / 2 / 2.0))
    wanted = np.array([0.025, 0.5, 0.9])
    assert law.quantiles(0, wanted) == pytest.approx(student.ppf(wanted), abs=0.02)
    median = math.sqrt(stats.invgamma(2, scale=0.5).median())
    assert law.quantiles(1, np.array([0.5]))[0] == pytest.approx(median, rel=0.01)


LAWS = [
    SharesLaw(np.array([[2.0, 3.0, 1.0], [8.0, 1.0, 4.0]]), np.array([0.3, 0.7]), 2),
    GridLaw(
        np.array([[0.0, -1.0], [1.0, 0.5], [2.0, 0.0]]),
        np.tile(np.array([[0.5, 0.0], [0.2, 0.3]]), (3, 1, 1)),
        np.array([0.2, 0.5, 0.3]),
        (False, True),
        (1.0, 0.0),
        (2.0, 3.0),
    ),
    DrawnLaw(np.random.default_rng(1).normal(size=(3000, 2)), np.full(3000, 1 / 3000)),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_a_law_agrees_with_its_draws(law):
    draws = law.draws(40_000, "seed")
    assert np.array_equal(draws, law.draws(40_000, "seed"))
    for place in range(law.size):
        wanted = np.array([0.05, 0.3, 0.5, 0.95])
        ends = law.quantiles(place, wanted)
        assert law.cdf(place, ends) == pytest.approx(wanted, abs=2e-3)
        assert [np.mean(draws[:, place] <= end) for end in ends] == pytest.approx(wanted, abs=0.02)
        assert np.all(np.diff(law.cdf(place, np.linspace(-5, 30, 200))) >= -1e-12)
