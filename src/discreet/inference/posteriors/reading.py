"""From a release and a family to the posterior, noise-aware or naive."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass

import numpy as np

from discreet.inference.counts.tulap import ReleasedNoise, released_noise, released_value
from discreet.inference.means.pair_decode import decode_pairs
from discreet.inference.posteriors.families import (
    BetaBinomial,
    DirichletMultinomial,
    Family,
    GammaPoisson,
    LinearModel,
    NormalModel,
)
from discreet.inference.posteriors.grids import NoisySums, normal_law, poisson_law
from discreet.inference.posteriors.hidden_counts import (
    NoisyCounts,
    exact_counts_law,
    shares_law,
)
from discreet.inference.posteriors.laws import DrawnLaw, Law
from discreet.inference.posteriors.second_moments import (
    NoisySecondMoments,
    line_law,
    naive_line,
)
from discreet.inference.results.decode import additive, as_kind, wrong_kind
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.specs.queries.moments import Moments
from discreet.specs.queries.pairs import PairMoments
from discreet.specs.queries.sums import Sum
from discreet.trusted.release import Release

NAIVE_DRAWS = 4000
ROOM = 4.0  # standard deviations that ranges must hold on both sides for a line


@dataclass(frozen=True)
class Posterior:
    """A law, the names of its parameters, and what a summary has to say of it."""

    law: Law
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def posterior_of(release: Release, family: Family, *, naive: bool) -> Posterior:
    """The posterior that a release and a family determine; kept for the last few of them."""
    return _kept(release, _Text(family), naive)


class _Text:
    """A family, told apart from others by what it wrote."""

    __slots__ = ("family", "text")

    def __init__(self, family: Family) -> None:
        self.family, self.text = family, repr(family.to_dict())

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Text) and self.text == other.text


@functools.lru_cache(maxsize=32)
def _kept(release: Release, named: _Text, naive: bool) -> Posterior:
    family = named.family
    if isinstance(family, (BetaBinomial, DirichletMultinomial)):
        return _shares(release, family, naive)
    if isinstance(family, (GammaPoisson, NormalModel)):
        return _sums(release, family, naive)
    return _line(release, family, naive)


def seed_of(release: Release, what: str) -> str:
    """A seed that the released numbers decide, so that what was stored gives the same draws."""
    text = f"posterior/{what}/{release.integers}/{release.query.to_dict()}"
    return hashlib.sha256(text.encode()).hexdigest()


# ── shares ────────────────────────────────────────────────────────────────────────────────────────


def _shares(
    release: Release, family: BetaBinomial | DirichletMultinomial, naive: bool
) -> Posterior:
    query, mechanism = as_kind(release.query, Sum), release.mechanism
    noise, rows = released_noise(mechanism), release.public_rows
    values = np.array([released_value(mechanism, steps) for steps in release.integers])
    counts = values[: query.size - query.absent]
    if isinstance(family, BetaBinomial):
        prior, names, shown = np.array(family.prior), release.description.labels[0][:1], 1
    else:
        names = release.description.labels[0]
        prior, shown = np.array(family.concentrations(len(names))), len(names)
    if naive:
        if len(counts) < len(prior):
            first = float(np.clip(counts[0], 0, rows or 0))
            counts = np.array([first, float(rows or 0) - first])
        return Posterior(exact_counts_law(counts, prior, shown=shown), names)
    whole = not query.optional and rows is not None
    whole = whole or len(counts) < len(prior)
    released = NoisyCounts(
        counts,
        noise,
        rows if whole else None,
        release.public_count,
        float(values[-1]) if query.absent and not whole else None,
    )
    return Posterior(shares_law(released, prior, seed_of(release, "atoms"), shown=shown), names)


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────


def _sums(release: Release, family: GammaPoisson | NormalModel, naive: bool) -> Posterior:
    query = as_kind(release.query, Moments)
    grid = query.factor.encoding
    center, half = grid.center, grid.high * float(grid.step)
    released = noisy_sums(release, query)
    if isinstance(family, GammaPoisson):
        if naive:
            return Posterior(_naive_rate(released, family, center, half), ("rate",))
        low, high = round(center - half), round(center + half)
        return Posterior(poisson_law(released, family, low, high), ("rate",))
    names = "mean", "sd"
    if naive:
        seed = seed_of(release, "naive")
        return Posterior(_naive_normal(released, family, (center, half), seed), names)
    return Posterior(normal_law(released, family, center, half), names)


def noisy_sums(release: Release, query: Moments) -> NoisySums:
    """The released sums of c and 1 − c², each with its noise, in units of one row."""
    mechanism = release.mechanism
    step, noise = float(additive(mechanism).step), released_noise(mechanism)
    units = query.unit_values()
    values = [
        float(steps) * step * unit for steps, unit in zip(release.integers, units, strict=True)
    ]
    laws = [ReleasedNoise(noise.kind, noise.spread * unit, step * unit) for unit in units]
    sums = np.array(values[-2:])
    if release.public_rows is not None and not query.design.count:
        return NoisySums(sums, (laws[-2], laws[-1]), release.public_rows)
    return NoisySums(sums, (laws[-2], laws[-1]), None, (values[0], laws[0]), release.public_count)


def _naive_rate(released: NoisySums, family: GammaPoisson, center: float, half: float) -> DrawnLaw:
    """Gamma(shape + Σx, rate + n) of the noisy total as if exact, clamping forgotten."""
    from scipy.special import gammaincinv

    rows, (shape, rate) = released.likely_rows(), family.shape_and_rate
    total = max(center * rows + half * float(released.values[0]), 0.0)
    levels = (np.arange(NAIVE_DRAWS) + 0.5) / NAIVE_DRAWS
    values = gammaincinv(shape + total, levels) / (rate + rows)
    return DrawnLaw(values[:, None], np.full(NAIVE_DRAWS, 1 / NAIVE_DRAWS))


def _naive_normal(
    released: NoisySums, family: NormalModel, place: tuple[float, float], seed: str
) -> DrawnLaw:
    """The conjugate update by the noisy mean and variance as if exact, clamping forgotten."""
    from scipy.special import ndtri

    center, half = place
    mean, weight, shape, scale = family.in_half_ranges(center, half)
    rows = released.likely_rows()
    seen = float(released.values[0]) / max(rows, 1.0)
    spread = max(1 - float(released.values[1]) / max(rows, 1.0) - seen**2, 0.0)
    after = shape + rows / 2
    left = scale + rows / 2 * spread + weight * rows / (weight + rows) * (seen - mean) ** 2 / 2
    stream = Stream(seed)
    gammas = np.maximum(stream.gammas(np.full(NAIVE_DRAWS, after), "gammas"), 1e-300)
    deviations = np.sqrt(left / gammas)
    normal = ndtri(stream.uniforms((NAIVE_DRAWS,), "normal"))
    middle = (weight * mean + rows * seen) / (weight + rows)
    means = middle + deviations * normal / np.sqrt(weight + rows)
    values = np.column_stack([center + half * means, half * deviations])
    return DrawnLaw(values, np.full(NAIVE_DRAWS, 1 / NAIVE_DRAWS))


# ── lines ─────────────────────────────────────────────────────────────────────────────────────────


def _line(release: Release, family: LinearModel, naive: bool) -> Posterior:
    query = as_kind(release.query, PairMoments)
    released = noisy_second_moments(release, query)
    columns = [factor.column for factor in query.factors]
    names = "Intercept", *columns[:-1], "sigma"
    if naive:
        law = naive_line(released, family.scales, seed_of(release, "naive"), NAIVE_DRAWS)
        return Posterior(_in_units(law, query), names)
    law, room = line_law(released, family.scales, seed_of(release, "line"))
    notes = [
        f"Importance draws: {law.effective:.0f} of {len(law.weights)} count"
        + ("." if law.effective >= 100 else ", which is few: read tails with care.")
    ]
    tight = [name for name, held in zip(columns, room, strict=True) if held < ROOM]
    if tight:
        short = ", ".join(
            f"{name} {held:.1f}" for name, held in zip(columns, room, strict=True) if name in tight
        )
        notes.append(
            f"Declared ranges hold fewer than {ROOM:g} standard deviations on a side ({short}): "
            "values that were clamped are not in this likelihood, and intervals may be off."
        )
    return Posterior(_in_units(law, query), names, tuple(notes))


def noisy_second_moments(release: Release, query: PairMoments) -> NoisySecondMoments:
    """The released sums of c, of c_j c_k and of 1 − c_j², with the variances of their noise."""
    mechanism = release.mechanism
    if not isinstance(mechanism, SymmetricGaussianNoise):
        raise wrong_kind(mechanism, "SymmetricGaussianNoise")
    found = decode_pairs(
        query,
        mechanism,
        np.array(release.integers, dtype=object),
        public_rows=release.public_rows if not query.count else None,
        cluster=1,
    )
    size = query.columns
    first = [("x", j) for j in range(size)]
    second = [
        ("E", j) if j == k else ("xy", j, k) for j, k in zip(*np.triu_indices(size), strict=True)
    ]
    keys = [
        tuple(int(part) if not isinstance(part, str) else part for part in key)
        for key in [*first, *second]
    ]
    sums = np.array([float(found.sums[key]) for key in keys])
    variances = np.array([found.noise[key] for key in keys])
    public = None if query.count else release.public_rows
    count = None if public is not None else (float(found.sums["1",]), found.noise["1",])
    return NoisySecondMoments(
        size, sums[:size], sums[size:], variances, public, count, release.public_count
    )


def _in_units(law: DrawnLaw, query: PairMoments) -> DrawnLaw:
    """(intercept, slopes, residual deviation) in the columns' own units."""
    centers = np.array([factor.encoding.center for factor in query.factors])
    halves = np.array([query.height * float(factor.encoding.step) for factor in query.factors])
    slopes = law.values[:, 1:-1] * halves[-1] / halves[:-1]
    intercepts = centers[-1] + halves[-1] * law.values[:, 0] - slopes @ centers[:-1]
    values: Array = np.column_stack([intercepts, slopes, halves[-1] * law.values[:, -1]])
    return DrawnLaw(values, law.weights)
