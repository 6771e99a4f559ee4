"""Tests on whole tables of noisy counts: independence, goodness of fit, ranks of groups;
and intervals that hold for all shares at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from scipy.special import bdtrik

from discreet.inference.counts.results import share_quantities
from discreet.inference.counts.shares import ShareStatistics, decode_shares, share_interval
from discreet.inference.counts.tulap import ReleasedNoise, released_noise
from discreet.inference.quantiles.simultaneous import cell_level
from discreet.inference.results.decode import noise_of, to_float
from discreet.inference.results.evidence import (
    Evidence,
    TestedResult,
    freedom_text,
    place_of,
    sign_of,
)
from discreet.inference.results.laws import Array, half_width
from discreet.inference.results.null_law import Recorded
from discreet.inference.results.results import Quantity, checked_level
from discreet.inference.simulation.streams import uniforms
from discreet.inference.tables.association import association
from discreet.inference.tables.tables import (
    FEW_DRAWS,
    MANY_DRAWS,
    NoisyTables,
    kruskal_wallis,
    mann_whitney,
    poisson_draws,
    rank_scores,
    rank_statistic,
    read_margins,
    seed_of,
    table_p_value,
    tail_by_simulation,
)


class CountsResult(TestedResult):
    """A noisy table of counts with a test: counts and shares of all cells,
    each with intervals of its own or jointly.
    """

    __slots__ = ()
    about: ClassVar[str] = (
        "count: of this data set, privacy error alone. share: of the population, both errors. "
        "One cell at a time; simultaneous_intervals() holds for all."
    )

    def _counts(self) -> Array:
        release = self.release
        return to_float(release.mechanism, np.array(release.integers, dtype=object), 1.0)

    def _public_total(self) -> int | None:
        """The number of rows where it is public and every row has a cell."""
        return None if self.release.query.optional else self.release.public_rows

    def _shares(self) -> ShareStatistics:
        release = self.release
        return decode_shares(
            release.mechanism,
            np.array(release.integers, dtype=object),
            public_rows=self._public_total(),
            cluster=release.neighbors.rows,
        )

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        return share_quantities(self._shares(), level, target)

    def simultaneous_intervals(self, level: float = 0.95, *, target: str = "population") -> Array:
        """Intervals (cells × 2) that contain all shares at once with probability `level`
        (multinomial error and noise, simulated together).
        """
        shares = self._shares()
        return np.stack(
            share_interval(
                shares, cell_level(shares, checked_level(level), target=target), target=target
            ),
            axis=1,
        )

    def noisy_table(self) -> NoisyTables:
        """The release as a table of its first key by all others."""
        release = self.release
        total = self._public_total()
        first = len(release.description.labels[0])
        return NoisyTables(
            self._counts().reshape(first, -1),
            released_noise(release.mechanism),
            None if total is None else np.asarray(float(total)),
            release.neighbors.rows,
            release.public_rows,
        )


class IndependenceResult(CountsResult):
    """A table of two columns and a χ²-type test of their independence.

    *Validity*: independent rows.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private test of independence"

    def test(self, *, few: int = FEW_DRAWS, many: int = MANY_DRAWS) -> Evidence:
        """Whether rows and columns of the table are independent.

        Method.    The distance to the nearest independent table, weighed by curvature
                   (`discreet.inference.tables.association`); its null law is simulated with
                   sampling and the released noise from the fitted margins, everything found anew
                   for every simulated table.
        Validity.  Size by simulation for 50 to 10 000 rows: benchmarks/tests_size.py. A table of
                   one row or one column has p = 1.
        """
        tables = self.noisy_table()
        names = self.release.description.by
        if 1 in tables.counts.shape:
            return Evidence(
                f"{names[0]} and {names[1]} are independent",
                "dependent",
                0.0,
                1.0,
                "one level depends on nothing",
            )
        statistic = Recorded().watching(association)
        value, p, draws = table_p_value(
            tables, statistic, seed_of(self.release), few=few, many=many
        )
        freedom = (tables.counts.shape[0] - 1) * (tables.counts.shape[1] - 1)
        return Evidence(
            f"{names[0]} and {names[1]} are independent",
            "dependent",
            value,
            p,
            f"χ²-type, {freedom_text(freedom)}, null law simulated {draws} times with the "
            "released noise",
            tables.lost,
            statistic.law(value, "distance from independence"),
        )


def fit_statistic(
    counts: Array, expected: Array, noise_variance: float, total: float | None, cluster: int = 1
) -> Array:
    """The weighted distance of noisy counts (… × cells) from expected shares;
    about χ² with cells − 1 degrees of freedom.

    Method. Public total n: the counts, moved equally to the total, have covariance
            n(diag(π) − ππ′) + v(I − 11′/k); its generalised inverse is the weight. Private total:
            Σ(X − Nπ)²/(Nπ + v) at the best N.
    """
    cells = expected.size
    variance = max(noise_variance, 1e-9)
    if total is not None:
        moved = counts - (counts.sum(axis=-1, keepdims=True) - total) / cells
        covariance = cluster * total * (
            np.diag(expected) - np.outer(expected, expected)
        ) + variance * (np.eye(cells) - 1 / cells)
        residual = moved - total * expected
        return np.asarray(
            np.einsum(
                "...i,ij,...j->...",
                residual,
                np.linalg.pinv(covariance, rcond=1e-12, hermitian=True),
                residual,
            )
        )
    rows = np.maximum(counts.sum(axis=-1, keepdims=True), 0.0)
    weight = 1 / (cluster * rows * expected + variance)
    residual = counts - rows * expected
    return np.asarray(
        (weight * residual**2).sum(axis=-1)
        - (weight * residual * expected).sum(axis=-1) ** 2 / (weight * expected**2).sum(axis=-1)
    )


def multinomial_draws(uniform: Array, rows: int, shares: Array, cluster: int = 1) -> Array:
    """Multinomial counts (draws × cells) from uniform numbers, by inversion of the conditional
    binomial laws, cell by cell; `cluster` rows go together.
    """
    units = np.full(uniform.shape[0], max(rows // cluster, 0), dtype=float)
    left, counts = 1.0, np.zeros_like(uniform)
    for cell, share in enumerate(shares[:-1]):
        p = min(1.0, share / left) if left > 1e-12 else 0.0
        if p >= 1.0:
            drawn = units.copy()
        elif p <= 0.0:
            drawn = np.zeros_like(units)
        else:
            with np.errstate(invalid="ignore"):
                found = np.ceil(bdtrik(uniform[:, cell], np.maximum(units, 1.0), p) - 1e-9)
            drawn = np.where(units > 0, np.clip(np.nan_to_num(found), 0.0, units), 0.0)
        counts[:, cell] = drawn
        units, left = units - drawn, left - share
    counts[:, -1] = units
    return np.asarray(cluster * counts)


def fit_p_value(
    counts: Array,
    expected: Array,
    noise: ReleasedNoise,
    *,
    total: int | None,
    cluster: int = 1,
    seed: int = 0,
    few: int = FEW_DRAWS,
    many: int = MANY_DRAWS,
    kept: Recorded | None = None,
) -> tuple[float, float, int]:
    """(statistic, p-value, draws) of goodness of fit; with a public total the simulated null law is
    the exact one, nothing being unknown. `kept` records what was simulated.
    """

    def distance(given: Array) -> Array:
        return fit_statistic(given, expected, noise.variance, total, cluster)

    statistic = distance if kept is None else kept.watching(distance)
    value = float(statistic(counts))
    cells = expected.size
    rows = max(float(counts.sum()), 0.0)

    def simulate(draws: int, first: int) -> Array:
        uniform = uniforms(seed + first * 2 * cells, (draws, 2 * cells))
        if total is not None:
            drawn = multinomial_draws(uniform[:, :cells], total, expected, cluster)
        else:
            drawn = np.stack(
                [
                    cluster * poisson_draws(uniform[:, cell], rows * share / cluster)
                    for cell, share in enumerate(expected)
                ],
                axis=1,
            )
        return statistic(drawn + noise.quantile(uniform[:, cells:]))

    return value, *tail_by_simulation(value, simulate, few=few, many=many)


class FitResult(CountsResult):
    """Counts of a column's levels or bins and a χ²-type test of declared shares.

    *Validity*: independent rows.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private goodness of fit"

    @property
    def expected(self) -> Array:
        """The shares that are tested."""
        return np.asarray(self.release.description.edges, dtype=float)

    def test(self, *, few: int = FEW_DRAWS, many: int = MANY_DRAWS) -> Evidence:
        """Whether the population's shares are the expected ones.

        Method.    χ² with the noise in its covariance; the null law is simulated with the released
                   noise (nothing in it is unknown where the number of rows is public).
        Validity.  Exact up to the simulation where the number of rows is public.
                   One cell has p = 1.
        """
        what = f"{self.release.description.column} has the expected shares"
        if self.expected.size == 1:
            return Evidence(what, "other shares", 0.0, 1.0, "one cell holds everything")
        kept = Recorded()
        value, p, draws = fit_p_value(
            self._counts(),
            self.expected,
            released_noise(self.release.mechanism),
            total=self._public_total(),
            cluster=self.release.neighbors.rows,
            seed=seed_of(self.release),
            few=few,
            many=many,
            kept=kept,
        )
        return Evidence(
            what,
            "other shares",
            value,
            p,
            f"χ²-type, {freedom_text(self.expected.size - 1)}, null law simulated {draws} times "
            "with the released noise",
            self.noisy_table().lost,
            kept.law(value, "distance from the expected shares"),
        )


class RankResult(TestedResult):
    """Mean ranks of groups on a public grid of bins, and a test that no group lies higher
    (Mann–Whitney, Kruskal–Wallis). *Validity*: independent rows; values in one bin are tied.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private rank test"
    about: ClassVar[str] = (
        "mean rank: the expected share of all rows below a row of the group (ties count half), "
        "½ under the null; intervals take the pooled ranks as given."
    )

    @property
    def labels(self) -> list[tuple[str, ...]]:
        return [(name,) for name in self.release.description.labels[0]]

    def noisy_table(self) -> NoisyTables:
        """Noisy counts, groups × bins."""
        release = self.release
        counts = to_float(release.mechanism, np.array(release.integers, dtype=object), 1.0).reshape(
            len(release.description.labels[0]), -1
        )
        total = (
            None
            if release.query.optional or release.public_rows is None
            else np.asarray(float(release.public_rows))
        )
        return NoisyTables(
            counts,
            released_noise(release.mechanism),
            total,
            release.neighbors.rows,
            release.public_rows,
        )

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        tables = self.noisy_table()
        fit = read_margins(tables)
        scores = rank_scores(fit)
        centred = scores - (scores * fit.q).sum()
        t, _ = rank_statistic(tables, fit, centred)
        rows = np.maximum(tables.known.sum(axis=-1), 1.0)
        noise = noise_of(self.release.mechanism, 1.0)
        weights = noise.scaled(centred)
        noise = type(noise)(
            float(np.sum(weights.variance)) + 0.0 * t, float(np.sum(weights.fourth)) + 0.0 * t
        )
        sampling = (
            tables.cluster * rows * float((centred**2 * fit.q).sum())
            if target == "population"
            else 0.0 * t
        )
        half = half_width(level, sampling, noise) / rows
        mean = 0.5 + t / rows
        return (
            Quantity(
                "mean rank",
                mean,
                np.clip(mean - half, 0.0, 1.0),
                np.clip(mean + half, 0.0, 1.0),
                sampling / rows**2,
                noise.variance / rows**2,
            ),
        )

    def test(
        self,
        *,
        group: object = None,
        baseline: object = None,
        alternative: str = "two-sided",
        few: int = FEW_DRAWS,
        many: int = MANY_DRAWS,
    ) -> Evidence:
        """Without arguments: whether all groups have one distribution (Kruskal–Wallis).

        With a group, its baseline (default: the first) or an alternative:
        these two alone (Mann–Whitney).

        Method.   Mid-ranks of the bins from the pooled noisy table, less where noise hides a bin
                  (`rank_weights`); whether the groups' rank sums are proportional to their rows,
                  both with noise (`kruskal_wallis`); the null law is simulated with the released
                  noise and ranks read anew each time.
        Validity. Size by simulation: benchmarks/tests_size.py. One group or one bin has p = 1.
        """
        tables, names = self.noisy_table(), self.release.description.labels[0]
        sign, column = sign_of(alternative), self.release.description.column
        if 1 in tables.counts.shape:
            return Evidence(
                f"{column} has one distribution in all groups",
                alternative,
                0.0,
                1.0,
                "there is nothing to compare",
            )
        if group is None and baseline is None and not sign:
            kept = Recorded().watching(kruskal_wallis)
            value, p, draws = table_p_value(tables, kept, seed_of(self.release), few=few, many=many)
            return Evidence(
                f"{column} has one distribution in all groups",
                "some lie higher",
                value,
                p,
                f"Kruskal–Wallis type, null law simulated {draws} times with the released noise",
                tables.lost,
                kept.law(value, "Kruskal–Wallis statistic"),
            )
        low = place_of(baseline, names, "baseline=")
        high = place_of(group, names, "group=") if group is not None else (1 if low == 0 else 0)
        total = tables.total if len(names) == 2 else None
        chosen = replace(tables, counts=tables.counts[[low, high]], total=total)

        def statistic(given: NoisyTables) -> Array:
            value = mann_whitney(given)
            return np.asarray(sign * value if sign else np.abs(value))

        kept = Recorded().watching(statistic)
        value, p, draws = table_p_value(chosen, kept, seed_of(self.release), few=few, many=many)
        seen = value if sign >= 0 else -value
        return Evidence(
            f"{column} lies equally high in {names[high]} and {names[low]}",
            alternative,
            seen,
            p,
            f"Mann–Whitney type, null law simulated {draws} times with the released noise",
            chosen.lost,
            kept.law(seen, "difference of ranks, in standard errors", sign=sign or 1.0),
        )
