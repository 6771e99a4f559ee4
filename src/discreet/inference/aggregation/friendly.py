"""The results of dp.friendly_mean and dp.friendly_clusters (docs/theory/aggregation.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from discreet.accounting.gaussian import gdp_epsilon
from discreet.accounting.guarantees import ApproxDP, Guarantee
from discreet.exact import float_up, sqrt_up
from discreet.inference.aggregation.tables import of_table, part_notes
from discreet.inference.means.unbounded import Procedure
from discreet.inference.results.decode import as_kind, wrong_kind
from discreet.inference.results.laws import Array, student_factor
from discreet.inference.results.results import Quantity, Result
from discreet.inference.results.summary import Summary
from discreet.sensitivity import L2
from discreet.specs.aggregation.friends import FINE_BITS, ClippedSum, Friends
from discreet.specs.mechanisms.additive import GaussianNoise
from discreet.specs.mechanisms.friendly import LEAST_WEIGHT, FriendlyMean
from discreet.specs.queries.plans import Factor
from discreet.trusted.release import Release

LEAST_SHARE = 0.1  # of the usual variance, that a coordinate's own is taken to be


def points_of(release: Release) -> Friends | ClippedSum:
    """The query about points: of the rows, or of what a function gave on parts."""
    query = of_table(release).query
    if isinstance(query, (Friends, ClippedSum)):
        return query
    raise wrong_kind(query, "Friends")


@dataclass(frozen=True, slots=True)
class Core:
    """A released friendly mean: its place in codes, σ of its noise, and the certain weight of the
    rows that it is of; no place where there was no core.
    """

    place: Array | None
    spread: float
    weight: float


def core_of(release: Release) -> Core:
    """The friendly mean of a release."""
    mechanism, (noisy, *steps) = as_kind(release.mechanism, FriendlyMean), release.integers
    noise, weight = mechanism.mean_noise(noisy), float(mechanism.certain_weight(noisy))
    if noise is None:
        return Core(None, math.inf, weight)
    step = 2.0 ** -mechanism.step_bits(noisy)
    return Core(np.array([value * step for value in steps]), float(noise.spread) * step, weight)


def grid(factors: tuple[Factor, ...]) -> tuple[Array, float]:
    """(the values of the code 0, codes per unit) of columns with one step."""
    return np.array([one.encoding.center for one in factors]), factors[0].encoding.per_unit


class FriendlyMeanResult(Procedure):
    """The mean of rows of which most lie near each other.

    *Method*: refined, rows are clipped to a ball about a released friendly mean; the sum of what is
    left and the sums of its squares are one release (the squares are free), which gives mean,
    noise and the sampling variance of each coordinate, drawn towards their average where noise
    hides how they differ. Not refined, no spread is released: the sampling variance is then the
    largest that rows within the radius can have, r²/n for each coordinate.
    *Validity*: independent rows, nearly all of them within `radius` of each other. Rows that lie
    further from the released centre than the clip radius are drawn in: the mean is then that of
    the clipped rows, and how many were clipped is not released. Where no core was found, the
    interval is the declared range.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private friendly mean"
    about: ClassVar[str] = (
        "Normal error, sampling and noise, in each coordinate; rows far from the others are left "
        "out or drawn in."
    )

    @property
    def found(self) -> bool:
        """Whether more than half of the rows were certainly friends."""
        return core_of(self.releases[0]).place is not None

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all releases together, rounded up: μ-GDP outside an event of probability
        δ, said as (ε, 2δ) with δ_μ(ε) = δ.
        """
        if not self.before:
            return self.release.guarantee
        first, second = (release.mechanism for release in self.releases)
        centre, noise = as_kind(first, FriendlyMean), as_kind(second, GaussianNoise)
        moved = as_kind(noise.sensitivity, L2).squared / noise.spread**2
        failure = self.before[0].delta
        epsilon = gdp_epsilon(sqrt_up(centre.total_mu_squared + moved), failure)
        return ApproxDP(epsilon, float_up(2 * failure))

    @property
    def radius(self) -> float:
        """How far two friends may lie apart."""
        query = points_of(self.releases[0])
        return query.radius / query.factors[0].encoding.per_unit

    @property
    def clipped_at(self) -> float | None:
        """The distance from the centre to which rows were clipped; None where none was."""
        query = points_of(self.release)
        clipped = isinstance(query, ClippedSum)
        return query.radius / query.factors[0].encoding.per_unit if clipped else None

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        query = points_of(self.release)
        centers, per_unit = grid(query.factors)
        reach = np.array([one.largest for one in query.factors]) / per_unit
        if not self.found:
            wide = reach**2 / 3
            return (Quantity("mean", centers, centers - reach, centers + reach, 0 * wide, wide),)
        if isinstance(query, ClippedSum):
            place, sampling, privacy, rows = _refined(of_table(self.release), query)
        else:
            place, sampling, privacy, rows = _plain(of_table(self.release), query)
        if target == "data":
            sampling = 0 * sampling
        half = float(ndtri(0.5 + level / 2)) * np.sqrt(sampling + privacy)
        half = half * student_factor(level, max(rows - 1, 1))
        ends = (np.clip(end, -reach, reach) for end in (place - half, place + half))
        low, high = (centers + end for end in ends)
        return (Quantity("mean", centers + place, low, high, sampling, privacy),)

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print; renders in a notebook too."""
        shown = Procedure if self.before else Result
        return shown.summary(self, level, target=target).with_notes(*self._told())

    def _told(self) -> list[str]:
        core, unit = core_of(self.releases[0]), "rows"
        notes = [note for one in self.releases for note in part_notes(one)]
        if notes:
            unit = "parts"
        if core.place is None:
            return [
                f"No core was found: not more than half of the {unit} are certainly within "
                f"{self.radius:.4g} of each other. The intervals are the declared range.",
                *notes,
            ]
        notes.append(
            f"Friends lie within {self.radius:.4g}; the {unit} that have friends among more than "
            f"half of all weigh at least {max(core.weight, LEAST_WEIGHT):.4g} together."
        )
        if self.clipped_at is not None:
            notes.append(
                f"{unit.capitalize()} further than {self.clipped_at:.4g} from the released centre "
                "were drawn in to that distance; how many is not released."
            )
        else:
            notes.append(
                "No spread was released: the sampling error is the largest that "
                f"{unit} within the radius can have."
            )
        return list(dict.fromkeys(notes))

    def _cost(self) -> str:
        return Procedure._cost(self) if self.before else Result._cost(self)


Parts = tuple[Array, Array, Array, float]


def _plain(release: Release, query: Friends) -> Parts:
    """(place, sampling variance, privacy variance, rows) of a friendly mean, in units of columns
    about their centers.
    """
    core, per_unit = core_of(release), query.factors[0].encoding.per_unit
    assert core.place is not None
    rows = float(max(release.public_count or 1, 1))
    flat = np.ones(len(core.place))
    sampling = (query.radius / per_unit) ** 2 / rows * flat
    return core.place / per_unit, sampling, (core.spread / per_unit) ** 2 * flat, rows


def _refined(release: Release, query: ClippedSum) -> Parts:
    """The same of sums of clipped rows and of their squares."""
    noise, width = as_kind(release.mechanism, GaussianNoise), len(query.factors)
    per_unit = query.factors[0].encoding.per_unit
    given = np.array([float(value) for value in release.integers]) * float(noise.step)
    deviation = math.sqrt(noise.variance) / (1 << FINE_BITS)  # of each sum, in codes
    sums, squares = (part / (1 << FINE_BITS) for part in (given[:width], given[width : 2 * width]))
    rows, uncertain = float(max(release.public_count or 1, 1)), 0.0
    if query.optional:
        rows = min(max(given[-1] / query.count_weight, 1.0), rows)
        uncertain = (deviation * (1 << FINE_BITS) / query.count_weight / rows) ** 2
    mean, variance = sums / rows, (deviation / rows) ** 2
    spread = squares * 2 * query.radius / rows - mean**2 + variance
    noisy = 2 * query.radius * deviation / rows
    sampling = drawn_together(spread, noisy) / rows
    place = np.array(query.centre) + mean
    privacy = variance + mean**2 * uncertain
    return place / per_unit, sampling / per_unit**2, privacy / per_unit**2, rows


def drawn_together(spread: Array, noisy: float) -> Array:
    """Variances of coordinates from noisy ones: drawn towards their average by the share of their
    differences that the noise explains, and not below a tenth of it.
    """
    usual = max(float(spread.mean()), 0.0)
    if len(spread) > 3:
        seen = float(((spread - spread.mean()) ** 2).sum()) / (len(spread) - 1)
        spread = usual + max(0.0, 1 - noisy**2 / seen if seen > 0 else 0.0) * (spread - usual)
    return np.maximum(spread, LEAST_SHARE * usual)


class FriendlyClustersResult(FriendlyMeanResult):
    """The centres that k-means finds on most parts of the data.

    *Method*: a friendly mean of the parts' k centres, labelled alike.
    *Validity*: on most parts k-means finds centres that lie more than six radii apart, and within
    `radius` of those of other parts. The intervals are for the mean of the centres that are found
    on parts of this size; their sampling error is the largest that parts within the radius can
    have. The order of the centres says nothing.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private centres of clusters"

    @property
    def centres(self) -> npt.NDArray[Any]:
        """The centres, one a row."""
        groups = as_kind(points_of(self.release), Friends).centres
        return np.array(self.params).reshape(groups, -1)
