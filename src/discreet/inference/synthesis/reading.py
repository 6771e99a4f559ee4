"""Released tables, read: noisy counts with the spread of their noise."""

from __future__ import annotations

import math

import numpy as np

from discreet.inference.results.decode import as_kind
from discreet.inference.synthesis.model import Noisy
from discreet.inference.synthesis.trees import Clique
from discreet.inference.synthesis.unbiased import NoisyTables, merged
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.specs.queries.marginals import Discrepancies, Marginals, sizes_of
from discreet.trusted.release import Release

ONE_WAY, DISTANCES, TABLES = "one-way tables", "distances", "tables"  # the releases, in order


def noisy_tables(*releases: Release) -> NoisyTables:
    """All tables of releases of `Marginals`, those measured several times as one."""
    first = as_kind(releases[0].query, Marginals)
    tables = [table for release in releases for table in measured_tables(release)]
    sizes = tuple(axis.size for axis in first.axes)
    return NoisyTables(sizes, merged(tables), releases[0].public_rows)


def measured_tables(release: Release) -> list[tuple[Clique, Noisy]]:
    """The tables of one release: table r is what was released of it over its weight a_r."""
    query, noise = as_kind(release.query, Marginals), as_kind(release.mechanism, AdditiveNoise)
    plan, at, found = query.plan(), 0, []
    values = np.array(release.integers, dtype=float) * float(noise.step)
    spread = math.sqrt(noise.variance)
    for table, size, weight in zip(query.tables, sizes_of(plan), query.weights, strict=True):
        counts = values[at : at + size].reshape(plan.shape(table)) / weight
        found.append((table, Noisy(counts, spread / weight)))
        at += size
    return found


def released_distances(release: Release) -> dict[Clique, float]:
    """The noisy distance of each pair from independence; of a choice, nothing but its order."""
    query = as_kind(release.query, Discrepancies)
    if not isinstance(release.mechanism, AdditiveNoise):
        return {}
    step = float(release.mechanism.step)
    return {pair: step * value for pair, value in zip(query.tables, release.integers, strict=True)}


def guessed_tables(release: Release) -> dict[Clique, np.ndarray]:
    """The public guesses that pairs were compared with: counts under independence."""
    query = as_kind(release.query, Discrepancies)
    plan = query.plan()
    return {
        pair: np.array(guess, dtype=float).reshape(plan.shape(pair))
        for pair, guess in zip(query.tables, query.guesses, strict=True)
    }
