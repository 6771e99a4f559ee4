"""Results of procedures that find a range first: means without bounds, Huber-type location, and
truncated means (reference.md F4).

A procedure is several releases under one spend. The estimate comes from the last ones; those before
it found the range, and their counts say how many rows lie outside it. Values outside count as the
nearest end of the range, which moves the mean by

    E(x − high)₊ − E(low − x)₊,

and the interval allows for that: by what the released counts and a fitted tail say (tails.py), and
where so many rows may lie outside that no fit can be trusted, by those rows times their distance to
the end of the declared range.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from discreet.exact import float_up, rational, sqrt_up
from discreet.inference.means.means import MeanStatistics
from discreet.inference.results.decode import noise_of, to_float
from discreet.inference.results.laws import Noise, half_width
from discreet.inference.results.results import Quantity, Result
from discreet.inference.results.stored import release_from_json
from discreet.inference.results.summary import Summary
from discreet.search.ranges import Bulk, Ends, Purse, all_of_it, nothing_found, replayed
from discreet.search.tails import Tail, posterior
from discreet.trusted.release import Release

FORMAT, VERSION = "discreet-procedure", 1
# standard deviations of what is left out that a population's interval allows for beside the
# expected loss
CAUTION = 1.5
MISFIT = 0.25  # a fitted loss may be wrong by this part of itself
HEAVIER = 4.0  # rows beyond all counted places scatter more than the fitted tails say
DISTRUST = 0.35  # from this share of possibly clipped rows on no tail is fitted
# a location step divides by the share of rows inside, if that is clearly above this
LEAST_INSIDE = 0.2


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer of a search."""

    place: int
    share: int
    value: float
    deviation: float


def answers_of(release: Release) -> tuple[Answered, ...]:
    """The noisy counts of a search, in the order in which they were asked."""
    mechanism: Any = release.mechanism
    found = []
    for place, share, steps in zip(
        *(release.integers[start::3] for start in range(3)), strict=True
    ):
        noise = mechanism.noise(share)
        found.append(Answered(place, share, steps * float(noise.step), noise.variance**0.5))
    return tuple(found)


@lru_cache(maxsize=32)
def found_by(release: Release) -> Any:
    """What a search for a range found: its conversation,
    gone through again with the released answers.
    """
    mechanism: Any = release.mechanism
    cells, policy = release.query.size, mechanism.policy
    purse = Purse(cells, mechanism.units, mechanism.noise(1).variance ** 0.5, mechanism.law)
    found = replayed(policy.talk(purse), answers_of(release))
    if found is not None:
        return found
    if policy.kind == "bulk":
        return nothing_found(cells, max(float(policy.rows or 1), 1.0))
    return all_of_it(cells, Bulk(policy.rows, policy.left, policy.right))


def grid_of(result: Result) -> tuple[float, float, float]:
    """(centre, half-width, half a grid step) of the range that a result's values were
    clipped to.
    """
    from discreet.inference.means import basic  # basic registers the results of this module

    return basic._grid(result)


def mean_statistics(result: Result) -> MeanStatistics:
    from discreet.inference.means import basic

    return basic._mean_statistics(result)


def mean_quantity(
    result: Result, statistics: MeanStatistics, level: float, target: str
) -> Quantity:
    """The mean of the clipped values with its interval, as `dp.mean` gives it."""
    from discreet.inference.means import basic

    return basic._mean_quantity(result, statistics, level, target)


def mean_of_clipped(release: Release) -> float:
    """The mean of the clipped values that one release of moments gives, within its range."""
    result = TruncatedMeanResult(release)
    center, worth, _ = grid_of(result)
    return center + worth * float(np.clip(mean_statistics(result).mean[0], -1.0, 1.0))


@dataclass(frozen=True, slots=True)
class Procedure(Result):
    """A result of several releases: `release` gives the estimate,
    `before` are those that led to it.
    """

    before: tuple[Release, ...] = ()

    @property
    def releases(self) -> tuple[Release, ...]:
        return (*self.before, self.release)

    @property
    def guarantee(self) -> Any:
        """The guarantee of all releases together: ε adds up where all are pure, else μ² does
        (reference.md C1, C4), rounded up.
        """
        parts: list[Any] = [release.guarantee for release in self.releases]
        if hasattr(parts[0], "mu"):
            return type(parts[0])(
                float_up(
                    sqrt_up(sum((rational(part.mu, "mu") ** 2 for part in parts), Fraction(0)))
                )
            )
        return type(parts[0])(
            float_up(sum((rational(part.epsilon, "epsilon") for part in parts), Fraction(0)))
        )

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "releases": [json.loads(release.to_json()) for release in self.releases],
            },
            ensure_ascii=False,
        )

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print; renders in a notebook too."""
        plain = Result.summary(self, level, target=target)
        first = (
            f"Privacy of these {len(self.releases)} releases together: {self.guarantee}, "
            f"neighbours {self.release.neighbors}. noise % is the share of the variance that "
            "privacy cost."
        )
        return Summary(
            plain.title, plain.header, plain.rows, (first, *plain.notes[1:], *self._further())
        )

    def _further(self) -> tuple[str, ...]:
        return ()


def procedure_from_json(text: str) -> Procedure | None:
    """The procedure that `to_json` wrote, or None if the text is none."""
    try:
        record = json.loads(text)
        if (
            not isinstance(record, dict)
            or record.get("format") != FORMAT
            or record.get("version") != VERSION
        ):
            return None
        releases = [release_from_json(json.dumps(release)) for release in record["releases"]]
        return PROCEDURES[releases[-1].description.estimator](releases[-1], tuple(releases[:-1]))
    except (LookupError, TypeError, ValueError):
        return None


@dataclass(frozen=True)
class LeftOut:
    """Rows outside the range on one side, in rows and in what they take from the mean:
    (estimate, low, high) and (mean, variance).
    """

    rows: tuple[float, float, float]
    deviation: float
    loss: float
    variance: float
    scatter: float  # variance of what a sample loses about its expectation
    worst: float  # added where no tail can be fitted


def left_out(tail: Tail, distance: float, step: float, limit: float, level: float) -> LeftOut:
    """What lies beyond a distance; `step` is the worth of one unit of distance and `limit` how far
    beyond it values can be.

    *Method*: rows by the fitted tails, within the bounds that single counts give whatever the tail
    (further in at most, further out at least).
    """
    quantile = float(ndtri(0.5 + level / 2)) + 0.5
    rows = max(tail.rows, 1.0)
    highest = min(
        (seen.rows + quantile * seen.deviation for seen in tail.seen if seen.distance <= distance),
        default=tail.beyond + quantile * rows / 20,
    )
    lowest = max(
        (seen.rows - quantile * seen.deviation for seen in tail.seen if seen.distance >= distance),
        default=0.0,
    )
    high = min(max(highest, 0.0), rows)
    low = min(max(lowest, 0.0), high)
    if tail.reach > 0 and tail.seen:
        fitted = posterior(tail)
        beyond, (lost, squares) = (
            fitted.beyond(distance),
            (part[0] for part in fitted.excess(np.array([distance]))),
        )
        square = float(squares @ fitted.weight)
        expected, mean = float(beyond @ fitted.weight), float(lost @ fitted.weight)
        deviation, variance = (
            max(float(beyond**2 @ fitted.weight) - expected**2, 0.0) ** 0.5,
            max(float(lost**2 @ fitted.weight) - mean**2, 0.0),
        )
    else:
        weights = np.array(
            [seen.deviation**-2.0 for seen in tail.seen if seen.distance <= distance]
        )
        expected = (
            float(
                np.average(
                    [seen.rows for seen in tail.seen if seen.distance <= distance], weights=weights
                )
            )
            if len(weights)
            else 0.0
        )
        deviation, mean, variance, square = (
            float(weights.sum() ** -0.5) if len(weights) else 0.0,
            0.0,
            0.0,
            0.0,
        )
    possible = min(expected + deviation if tail.seen else high, high)
    expected = min(max(expected, low), high)
    worst = high / rows * max(limit, 0.0) if possible > DISTRUST * rows else 0.0
    return LeftOut(
        (expected, low, high),
        deviation,
        mean * step,
        (variance + (MISFIT * mean) ** 2) * step**2,
        HEAVIER * square * step**2 / rows,
        worst,
    )


def widened(below: LeftOut, above: LeftOut, level: float, target: str) -> tuple[float, float]:
    """What is added to the lower and to the upper end of the clipped mean's interval,
    so that it holds for the mean itself.

    *Method*: the expected loss of both sides, and for its own uncertainty 1.5 standard deviations
    where sampling error is in the interval as well (the two are independent, and the sum of
    half-widths is more than their combination). For the data set itself as many as the level asks
    for, of the loss of this sample, which scatters about the expected one.
    """
    shift, variance = above.loss - below.loss, above.variance + below.variance
    own = target == "data"
    spread = (
        float(ndtri(0.5 + level / 2)) * np.sqrt(variance + above.scatter + below.scatter)
        if own
        else CAUTION * np.sqrt(variance)
    )
    return float(min(shift - spread, 0.0) - below.worst), float(
        max(shift + spread, 0.0) + above.worst
    )


class UnboundedMeanResult(Procedure):
    """A mean whose range was found privately.

    *Validity*: independent rows. The interval contains sampling, privacy and clipping error;
    the last is judged by released counts and fitted tails, so values beyond all counted places that
    carry much of the mean (a few rows a thousand times further out) can be missed: `clipped` says
    how many rows may lie outside, and `worst_case` how far they could move the mean within the
    declared range.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private mean, range found privately"
    about: ClassVar[str] = (
        "The interval contains sampling, privacy and clipping error, the last by released "
        "counts of outlying rows and fitted tails."
    )

    @property
    def range(self) -> tuple[float, float]:
        """The range that values were clipped to."""
        center, worth, _ = grid_of(self)
        return center - worth, center + worth

    def clipped(self, level: float = 0.95) -> tuple[LeftOut, LeftOut]:
        """What lies below and above the range:
        rows with an interval, and what they take from the mean.
        """
        search = self.before[1]
        ends: Ends = found_by(search)
        query: Any = search.query
        wide: Any = self.before[0].query
        declared = wide.value(0) - wide.step / 2, wide.value(wide.size - 1) + wide.step / 2
        policy: Any = search.mechanism.policy  # type: ignore[attr-defined]
        low, high = self.range
        return (
            left_out(
                ends.left, float(policy.left.place - ends.low), query.step, low - declared[0], level
            ),
            left_out(
                ends.right,
                float(ends.high - policy.right.place),
                query.step,
                declared[1] - high,
                level,
            ),
        )

    def worst_case(self, level: float = 0.95) -> tuple[float, float]:
        """How far rows outside the range could lower and raise the mean, whatever the tails: their
        largest share times the way to the declared end.
        """
        wide: Any = self.before[0].query
        low, high = self.range
        reach = low - wide.value(0), wide.value(wide.size - 1) - high
        rows = max(float(found_by(self.before[1]).left.rows), 1.0)
        below, above = (
            min(side.rows[2] / rows, 1.0) * max(way, 0.0)
            for side, way in zip(self.clipped(level), reach, strict=True)
        )
        return -below, above

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        statistics = mean_statistics(self)
        plain = mean_quantity(self, statistics, level, target)
        below, above = self.clipped(level)
        down, up = widened(below, above, level, target)
        low, high = plain.low + down, plain.high + up
        mean = Quantity(
            "mean", plain.estimate, low, high, plain.sampling_variance, plain.privacy_variance
        )
        rows = float(np.max(statistics.rows))
        return (
            *(
                _share(name, side, rows)
                for name, side in (("clipped below", below), ("clipped above", above))
            ),
            mean,
        )

    def _further(self) -> tuple[str, ...]:
        low, high = self.worst_case()
        return (
            (
                "clipped: the share of rows outside the range, from released counts. Whatever they "
                f"are, those rows cannot move the mean by more than {low:.4g} … +{high:.4g} (95%)."
            ),
        )


def _share(name: str, side: LeftOut, rows: float) -> Quantity:
    expected, low, high = (np.array([min(number / max(rows, 1.0), 1.0)]) for number in side.rows)
    return Quantity(
        name, expected, low, high, np.zeros(1), np.array([(side.deviation / max(rows, 1.0)) ** 2])
    )


class LocationResult(Procedure):
    """Huber's location: θ with E ψ(x − θ) = 0,
    ψ(u) = u up to the released half-width h and ±h beyond it.

    *Validity*: independent rows; for symmetric data θ is the centre of symmetry (mean and median
    too), otherwise it lies between the two and is a quantity of its own. One Newton step from a
    released centre: θ = c + (M − c)/p, M the mean of values clipped to c ± h and p the share of
    rows inside; the interval is that of M, divided by p (the sandwich), with the error of p to
    first order.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private location (Huber)"
    about: ClassVar[str] = (
        "Huber's M-estimate at the released half-width; for symmetric data the centre of "
        "symmetry. Sandwich interval with sampling and privacy error."
    )

    @property
    def half_width(self) -> float:
        """h: values further than this from the estimate count as if they were at this distance."""
        return grid_of(self)[1]

    def inside(self) -> tuple[float, float]:
        """The share of rows within h of the centre, and the standard deviation of its noise."""
        counted, rows = self.before[-1], float(np.max(mean_statistics(self).rows))
        count = float(to_float(counted.mechanism, np.array(counted.integers, dtype=object), 1.0)[0])
        return count / rows, float(np.sqrt(noise_of(counted.mechanism, 1.0).variance)) / rows

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        center, worth, _ = grid_of(self)
        plain = mean_quantity(self, mean_statistics(self), level, target)
        share, deviation = self.inside()
        wide: Any = self.before[0].query
        ends = wide.value(0), wide.value(wide.size - 1)
        # too few rows near the centre: it says nothing about the location
        if share - 2 * deviation < LEAST_INSIDE:
            estimate = np.clip(plain.estimate, *ends)
            return (
                Quantity(
                    "location",
                    estimate,
                    np.full(1, ends[0]),
                    np.full(1, ends[1]),
                    plain.sampling_variance,
                    plain.privacy_variance + (ends[1] - ends[0]) ** 2 / 12,
                ),
            )
        p = min(share, 1.0)
        move = (plain.estimate - center) / p
        slope = (np.abs(move) * deviation / p) ** 2
        low, high = (center + (end - center) / p for end in (plain.low, plain.high))
        extra = half_width(level, 0.0 * slope, Noise(slope))
        touching = (plain.low <= center - worth * (1 - 1e-9)) | (
            plain.high >= center + worth * (1 - 1e-9)
        )
        low, high = (
            np.where(touching, ends[0], low - extra),
            np.where(touching, ends[1], high + extra),
        )
        return (
            Quantity(
                "location",
                center + move,
                low,
                high,
                plain.sampling_variance / p**2,
                plain.privacy_variance / p**2 + slope,
            ),
        )

    def _further(self) -> tuple[str, ...]:
        share, _ = self.inside()
        return (
            (
                f"Half-width h = {self.half_width:.4g}; "
                f"about {100 * min(max(share, 0.0), 1.0):.0f}% of the rows lie within h of the "
                "centre."
            ),
        )


class TruncatedMeanResult(Result):
    """The mean of sign(x)·min(|x|, B), B public.

    *Validity*: as the mean's; it is the mean itself only where |x| ≤ B.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private truncated mean"
    about: ClassVar[str] = (
        "The mean of values truncated to −B … B, B public: what truncation takes from the mean "
        "is not in the interval."
    )

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        plain = mean_quantity(self, mean_statistics(self), level, target)
        return (
            Quantity(
                "truncated mean",
                plain.estimate,
                plain.low,
                plain.high,
                plain.sampling_variance,
                plain.privacy_variance,
            ),
        )


PROCEDURES: dict[str, type[Procedure]] = {
    "unbounded mean": UnboundedMeanResult,
    "location": LocationResult,
}
