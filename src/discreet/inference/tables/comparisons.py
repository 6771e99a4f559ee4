"""Two proportions: difference, ratio and odds ratio from one noisy table of groups × outcome, alone
or within strata (reference.md M1, M2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.inference.counts.tulap import released_noise
from discreet.inference.results.decode import noise_of, to_float
from discreet.inference.results.evidence import Evidence, freedom_text, place_of, sign_of
from discreet.inference.results.laws import Array, Noise, half_width, tail_and_density
from discreet.inference.results.null_law import Recorded
from discreet.inference.results.results import Quantity, checked_level, checked_target
from discreet.inference.tables.association import association, signed_association
from discreet.inference.tables.groups import BaselineResult, Pair, bonferroni_level, pair_level
from discreet.inference.tables.tables import (
    FEW_DRAWS,
    MANY_DRAWS,
    NoisyTables,
    cell_variance,
    fit_independence,
    seed_of,
    table_p_value,
)

ANGLES = 33


@dataclass(frozen=True)
class Group:
    """A group's noisy counts of successes and of others, and the noise of each."""

    successes: float
    others: float
    noise: Noise
    cluster: int = 1

    @property
    def rows(self) -> float:
        return self.successes + self.others

    @property
    def share(self) -> float:
        """The share, in [0, 1]; ½ where the noisy group has no rows."""
        return min(1.0, max(0.0, self.successes / self.rows)) if self.rows > 0 else 0.5

    def variances(self) -> tuple[float, float]:
        """(sampling, privacy) variance of the share."""
        p, rows = self.share, max(self.rows, 1.0)
        return self.cluster * p * (1 - p) / rows, float(self.noise.variance) * (
            (1 - p) ** 2 + p**2
        ) / rows**2

    def ends(self, deviates: Array, target: str = "population") -> tuple[Array, Array]:
        """Shares at which T(p) = (1−p)·successes − p·others lies `deviates` (normal) standard
        errors below and above 0.

        Method. T has mean 0 at the true share, whatever the noisy number of rows; its law at p is
                normal (sampling) plus Laplace parts. A count below 0 allows every share that a
                count of 0 allows. Without rows every share is allowed.
        """
        high = self._end(deviates, max(self.successes, 0.0), self.others, target)
        low = 1 - self._end(deviates, max(self.others, 0.0), self.successes, target)
        return low, high

    def _end(self, deviates: Array, successes: float, others: float, target: str) -> Array:
        rows = successes + others
        if rows <= 0:
            return np.ones_like(deviates)
        inner = np.full_like(deviates, min(1.0, successes / rows))
        outer = np.ones_like(deviates)
        for _ in range(34):
            p = (inner + outer) / 2
            sampling = self.cluster * rows * p * (1 - p) if target == "population" else 0.0 * p
            inside = (
                _deviate(
                    p * others - (1 - p) * successes,
                    sampling,
                    self.noise.scaled(1 - p) + self.noise.scaled(p),
                )
                <= deviates
            )
            inner, outer = np.where(inside, p, inner), np.where(inside, outer, p)
        return outer


def _deviate(error: Array, normal_variance: Array, noise: Noise) -> Array:
    """The normal deviate with the upper tail of `error`'s law: normal plus Laplace parts."""
    total = np.maximum(normal_variance + noise.variance, 1e-300)
    scale = np.asarray(noise.fourth, dtype=float) ** 0.25
    if not np.any(scale > 0):
        return np.asarray(error / np.sqrt(total))
    tail, _ = tail_and_density(np.abs(error), np.sqrt(np.maximum(total - 2 * scale**2, 0.0)), scale)
    return np.asarray(
        np.where(error >= 0, -ndtri(np.clip(tail, 1e-300, 0.5)), ndtri(np.clip(tail, 1e-300, 0.5)))
    )


@dataclass(frozen=True)
class Contrast:
    """Estimates and limits of difference, ratio and odds ratio of two shares."""

    difference: tuple[float, float, float]
    ratio: tuple[float, float, float]
    odds_ratio: tuple[float, float, float]


def contrast(
    group: Group, baseline: Group, level: float, *, target: str = "population"
) -> Contrast:
    """Limits of f(p₁, p₂), f monotone in both: the extremes of f over {Z₁(p₁)² + Z₂(p₂)² ≤ z²},
    Z the score deviates of each group.

    Method.    The boundary is (z·cos θ, z·sin θ) on ANGLES angles, so that one set of limits of
               each share gives all three measures. With θ = 45° alone and symmetric limits this is
               MOVER; all angles need no symmetry, and no count is 0 too many.
    Validity.  Independent rows. As the score interval of one share;
               the set is the one of a profile score test.
    Reference. Zou and Donner (2008) for the idea; docs/theory/tests.md.
    """
    angle = np.linspace(0.0, np.pi / 2, ANGLES)
    z = float(ndtri(0.5 + level / 2))
    low1, high1 = group.ends(z * np.cos(angle), target)
    low2, high2 = baseline.ends(z * np.sin(angle), target)
    p1, p2 = group.share, baseline.share
    difference = (p1 - p2, float(np.min(low1 - high2)), float(np.max(high1 - low2)))
    ratio = (
        _quotient(p1, p2),
        float(np.min(_quotients(low1, high2, 0.0))),
        float(np.max(_quotients(high1, low2, np.inf))),
    )
    odds = (
        _quotient(p1 * (1 - p2), p2 * (1 - p1)),
        float(np.min(_quotients(low1 * (1 - high2), high2 * (1 - low1), 0.0))),
        float(np.max(_quotients(high1 * (1 - low2), low2 * (1 - high1), np.inf))),
    )
    return Contrast(difference, ratio, odds)


def _quotient(above: float, below: float) -> float:
    """above/below; 1 where both are 0, infinite where the second is."""
    return above / below if below > 0 else (1.0 if above <= 0 else float("inf"))


def _quotients(above: Array, below: Array, otherwise: float) -> Array:
    """above/below; `otherwise` where the second is 0."""
    return np.asarray(np.where(below > 0, above / np.where(below > 0, below, 1.0), otherwise))


def common_difference(
    tables: NoisyTables, noise: Noise, level: float, *, target: str = "population"
) -> tuple[float, float, float, float, float]:
    """(estimate, low, high, sampling variance, privacy variance) of one difference of shares in all
    strata (tables of shape strata × 2 × 2).

    Method.    U(δ) = Σ (X₁N₂ − X₂N₁ − δN₁N₂)/N over strata has mean 0 at the true δ, noise and all:
               errors of different groups are independent. The limits are where |U| reaches the
               quantile of its law, [−1, 1] where the weights cannot be told from 0.
    Reference. Mantel and Haenszel (1959); Greenland and Robins (1985).
    """
    x = tables.counts[..., 0]
    n = tables.counts.sum(axis=-1)
    whole = np.maximum(n.sum(axis=-1), 1.0)
    weight = float((n[:, 0] * n[:, 1] / whole).sum())
    top = float(((x[:, 0] * n[:, 1] - x[:, 1] * n[:, 0]) / whole).sum())
    p = np.clip(np.where(n > 0, x / np.where(n > 0, n, 1.0), 0.5), 0.0, 1.0)
    other = n[:, ::-1] / whole[:, None]
    sampling = tables.cluster * float((other**2 * np.maximum(n, 0.0) * p * (1 - p)).sum())
    parts = noise.scaled(other * (1 - p)) + noise.scaled(other * p)
    total = Noise(float(np.sum(parts.variance)), float(np.sum(parts.fourth)))
    half = float(half_width(level, np.asarray(sampling if target == "population" else 0.0), total))
    if weight <= 0:
        return 0.0, -1.0, 1.0, sampling, total.variance
    estimate = top / weight
    low, high = max(-1.0, (top - half) / weight), min(1.0, (top + half) / weight)
    return (
        estimate,
        min(low, 1.0),
        max(high, -1.0),
        sampling / weight**2,
        total.variance / weight**2,
    )


def stratified_root(tables: NoisyTables) -> Array:
    """The strata's contrasts, each weighted by its information about one common difference,
    in standard errors (shape … of … × strata × 2 × 2).
    """
    fit = fit_independence(tables)
    variance = cell_variance(tables, fit.means)
    normal = np.stack([fit.p[..., ::-1], -fit.p[..., ::-1]], axis=-1) * np.stack(
        [fit.q[..., ::-1]] * 2, axis=-2
    )
    normal[..., 1, :] *= -1
    # estimates t, by how many rows the first cell is moved
    moved = (normal * tables.known).sum(axis=(-2, -1))
    error = (normal**2 * variance).sum(axis=(-2, -1))
    expected = fit.rows * fit.p[..., 0] * fit.p[..., 1]  # t of a difference of 1
    information = (expected**2 / error).sum(axis=-1)
    return np.asarray(
        np.where(
            information > 0,
            (expected * moved / error).sum(axis=-1)
            / np.sqrt(np.where(information > 0, information, 1.0)),
            0.0,
        )
    )


class ComparisonResult(BaselineResult):
    """Shares of groups compared with a baseline: difference, ratio, odds ratio;
    with strata the common difference.

    *Validity*: independent rows. The baseline is the first declared level of the grouping column.
    Every pair of groups can be compared from the same release.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private comparison of proportions"
    about: ClassVar[str] = (
        "Score intervals with sampling and noise in all counts; p-values simulate the null "
        "with the noise as it was released. One pair at a time."
    )
    joint: ClassVar[str] = (
        "Score intervals with sampling and noise in all counts, of groups one at a time; p-values "
        "simulate the null with the noise as it was released."
    )

    def _cube(self) -> Array:
        """Noisy counts of shape (groups, 2, strata)."""
        release = self.release
        return to_float(release.mechanism, np.array(release.integers, dtype=object), 1.0).reshape(
            len(self.groups), 2, -1
        )

    def pair(self, group: object = None, *, baseline: object = None) -> NoisyTables:
        """The noisy 2 × 2 tables (strata × 2 × 2) of a group above its baseline."""
        cube, release = self._cube(), self.release
        low = place_of(baseline, self.groups, "baseline=")
        high = self._place_of_group(group, low)
        tables = np.moveaxis(cube[[high, low]], -1, 0)
        public = (
            release.public_rows
            if len(self.groups) == 2 and not release.query.optional and len(tables) == 1
            else None
        )
        return NoisyTables(
            tables,
            released_noise(release.mechanism),
            None if public is None else np.array([public], dtype=float),
            release.neighbors.rows,
            release.public_rows,
        )

    def _arms(self) -> list[Group]:
        """Every group's counts, over all strata together."""
        noise, cube = noise_of(self.release.mechanism, 1.0), self._cube()
        strata = cube.shape[-1]
        pooled = Noise(noise.variance * strata, noise.fourth * strata)
        cluster = self.release.neighbors.rows
        return [Group(float(x), float(y), pooled, cluster) for x, y in cube.sum(axis=-1)]

    def arms(self, level: float = 0.95, *, target: str = "population") -> Quantity:
        """Every group's own share, over all strata together; one group at a time."""
        z, arms = np.array([float(ndtri(0.5 + checked_level(level) / 2))]), self._arms()
        low, high = np.array([group.ends(z, checked_target(target)) for group in arms])[..., 0].T
        spread = np.array([group.variances() for group in arms]).T
        sampling = spread[0] if target == "population" else 0.0 * spread[0]
        share = np.array([arm.share for arm in arms])
        return Quantity("share", share, low, high, sampling, spread[1])

    def share(self, level: float = 0.95) -> dict[str, tuple[float, float, float]]:
        """(estimate, low, high) of every group's own share, over all strata together."""
        arms = self.arms(level)
        ends = zip(arms.unprojected.tolist(), arms.low.tolist(), arms.high.tolist(), strict=True)
        return dict(zip(self.groups, ends, strict=True))

    def contrast(
        self,
        group: object = None,
        *,
        baseline: object = None,
        level: float = 0.95,
        target: str = "population",
    ) -> Contrast:
        """Difference, ratio and odds ratio of one pair of groups (without strata)."""
        low = place_of(baseline, self.groups, "baseline=")
        high = self._place_of_group(group, low)
        arms = self._arms()
        return contrast(arms[high], arms[low], checked_level(level), target=target)

    def _place_of_group(self, group: object, low: int) -> int:
        """The place of a group; of the first that is not the baseline where none is named."""
        if group is not None:
            return place_of(group, self.groups, "group")
        return next(place for place in range(len(self.groups)) if place != low)

    def _differences(self, pairs: Sequence[Pair], level: float, target: str) -> Quantity:
        if self._cube().shape[-1] > 1:
            return self._common(pairs, level, target)
        arms = self._arms()
        found = [contrast(arms[high], arms[low], level, target=target) for high, low in pairs]
        spread = np.array([arm.variances() for arm in arms])
        both = np.array([spread[high] + spread[low] for high, low in pairs]).T
        sampling = both[0] if target == "population" else 0.0 * both[0]
        estimate, low, high = np.array([item.difference for item in found]).T
        return Quantity("difference", estimate, low, high, sampling, both[1])

    def _common(self, pairs: Sequence[Pair], level: float, target: str) -> Quantity:
        """The common difference of each pair over all strata."""
        noise = noise_of(self.release.mechanism, 1.0)
        found = [
            common_difference(
                self.pair(self.groups[high], baseline=self.groups[low]), noise, level, target=target
            )
            for high, low in pairs
        ]
        common = np.array(found).T
        if target == "data":
            common[3] = 0.0
        return Quantity("common difference", *common)

    def _joint_level(self, level: float, target: str) -> float:
        # common differences weigh strata by pair, so that their errors are no differences of groups
        if self._cube().shape[-1] > 1:
            return bonferroni_level(len(self.groups), level)
        arms = self._arms()
        spread = np.array([arm.variances() for arm in arms])
        sampling = spread[:, 0] if target == "population" else 0.0 * spread[:, 0]
        heavy = [
            float(arm.noise.fourth)
            * ((1 - arm.share) ** 4 + arm.share**4)
            / max(arm.rows, 1.0) ** 4
            for arm in arms
        ]
        return pair_level(sampling, Noise(spread[:, 1], np.array(heavy)), level)

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        if self._cube().shape[-1] > 1:
            baseline = [(place, 0) for place in range(1, len(self.groups))]
            return (self._common(baseline, level, target),)
        found = [self.contrast(name, level=level, target=target) for name in self.groups[1:]]
        spread = np.array([self._spread(name) for name in self.groups[1:]])
        kept = spread * np.array([1.0 if target == "population" else 0.0, 1.0])
        values = {
            name: np.array([getattr(item, name) for item in found]).T
            for name in ("ratio", "odds_ratio", "difference")
        }
        quantities = []
        for place, (name, value) in enumerate(values.items()):
            quantities.append(
                Quantity(
                    name.replace("_", " "),
                    value[0],
                    value[1],
                    value[2],
                    kept[:, place, 0],
                    kept[:, place, 1],
                )
            )
        return tuple(quantities)

    def _spread(self, name: object) -> list[tuple[float, float]]:
        """(sampling, privacy) variance of ratio, odds ratio and difference, by the delta method,
        at shares of half a row or more from 0 and 1.
        """
        tables, noise = self.pair(name).counts[0], noise_of(self.release.mechanism, 1.0)
        one, two = (
            Group(float(row[0]), float(row[1]), noise, self.release.neighbors.rows)
            for row in tables
        )
        p, q = (
            min(max(group.share, edge), 1 - edge)
            for group in (one, two)
            for edge in (0.5 / max(group.rows, 1.0),)
        )
        slopes = [
            (1 / q, p / q**2),
            ((1 - q) / (q * (1 - p) ** 2), p / (q**2 * (1 - p))),
            (1.0, 1.0),
        ]
        return [
            (
                _weighted(slope, one.variances()[0], two.variances()[0]),
                _weighted(slope, one.variances()[1], two.variances()[1]),
            )
            for slope in slopes
        ]

    def overall(self, *, few: int = FEW_DRAWS, many: int = MANY_DRAWS) -> Evidence:
        """Whether all groups have one share (in every stratum).

        Method.   Of two groups: `test`. Of more: the distance of the table of groups × outcome to
                  the nearest one with equal shares, summed over strata (`association`), its null
                  law simulated with sampling and the released noise.
        Validity. As `dp.independence_test`: docs/theory/tests.md.
        """
        if len(self.groups) == 2:
            return self.test(few=few, many=many)
        release, counts = self.release, np.moveaxis(self._cube(), -1, 0)
        public = None if release.query.optional or len(counts) > 1 else release.public_rows
        tables = NoisyTables(
            counts,
            released_noise(release.mechanism),
            None if public is None else np.array([public], dtype=float),
            release.neighbors.rows,
            release.public_rows,
        )
        kept = Recorded(lambda given: np.asarray(association(given).sum(axis=-1)))
        value, p, draws = table_p_value(tables, kept, seed_of(release), few=few, many=many)
        return Evidence(
            f"{release.description.column} has one share in all groups",
            "some differ",
            value,
            p,
            f"{freedom_text((len(self.groups) - 1) * len(counts))}, null law simulated {draws} "
            "times with the released noise",
            tables.lost,
            kept.law(value, "distance from equal shares"),
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
        """Without arguments: whether all groups have one share (`overall`). With a group, its
        baseline or an alternative: these two alone, in every stratum; `group` defaults to the first
        that is not the baseline.

        Method.   The distance to the nearest table with equal shares, weighed by curvature
                  (`discreet.inference.tables.association`); its null law is simulated with sampling
                  and the released noise, everything found anew for every simulated table. Strata:
                  the contrasts weighted as for a common difference (Mantel and Haenszel, with
                  noise).
        Validity. Size by simulation for 50 to 10 000 rows, also where noise exceeds every count:
                  docs/theory/tests.md, benchmarks/tests_size.py.
        """
        sign = sign_of(alternative)
        if len(self.groups) > 2 and group is None and baseline is None and not sign:
            return self.overall(few=few, many=many)
        tables = self.pair(group, baseline=baseline)
        root = signed_association if len(tables.counts) == 1 else stratified_root

        def statistic(given: NoisyTables) -> Array:
            value = root(given)
            value = value[..., 0] if root is signed_association else value
            return np.asarray(sign * value if sign else np.abs(value))

        kept = Recorded(statistic)
        value, p, draws = table_p_value(tables, kept, seed_of(self.release), few=few, many=many)
        seen = value if sign >= 0 else -value
        low = place_of(baseline, self.groups, "baseline=")
        high = self._place_of_group(group, low)
        return Evidence(
            f"{self.release.description.column} has one share in {self.groups[high]} and "
            f"{self.groups[low]}",
            alternative,
            seen,
            p,
            f"null law simulated {draws} times with the released noise",
            tables.lost,
            kept.law(seen, "distance from equal shares", sign=sign or 1.0),
        )


def _weighted(slope: tuple[float, float], first: float, second: float) -> float:
    return float(
        sum(s * s * v if v > 0 else 0.0 for s, v in zip(slope, (first, second), strict=True))
    )


def normal_p_value(tables: Any, noise_variance: float) -> Array:
    """The plain normal approximation on 2 × 2 tables, for comparison: pooled z-test with the
    noise's variance added (reference.md M2); never rejects where a noisy group is empty.
    """
    x, n = tables[..., 0], tables.sum(axis=-1)
    good = (n > 0).all(axis=-1)
    safe = np.where(good[..., None], n, 1.0)
    p = np.clip(x.sum(axis=-1) / safe.sum(axis=-1), 0.0, 1.0)
    variance = (p * (1 - p))[..., None] / safe + noise_variance * ((1 - p) ** 2 + p**2)[
        ..., None
    ] / safe**2
    z = (x[..., 0] / safe[..., 0] - x[..., 1] / safe[..., 1]) / np.sqrt(variance.sum(axis=-1))
    return np.asarray(np.where(good, 2 * ndtr(-np.abs(z)), 1.0))
