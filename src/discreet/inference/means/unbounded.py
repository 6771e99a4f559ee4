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

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from discreet.accounting.composition import compose
from discreet.accounting.guarantees import Guarantee
from discreet.inference.means.clipping import LeftOut, left_out, widened
from discreet.inference.means.results import column_grid, mean_quantity, mean_statistics
from discreet.inference.results.decode import as_kind, noise_of, search_answers, to_float
from discreet.inference.results.laws import Noise, half_width
from discreet.inference.results.results import Quantity, Result
from discreet.inference.results.stored import PROCEDURE, fit_to_json
from discreet.inference.results.summary import Summary, grouped
from discreet.search.range_policy import BulkSearch, EndsSearch
from discreet.search.ranges import Bulk, Ends, Purse, all_of_it, nothing_found, replayed
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.queries.histograms import GridCounts
from discreet.trusted.release import Release

# a location step divides by the share of rows inside, if that is clearly above this
LEAST_INSIDE = 0.2


def grid_counts(release: Release) -> GridCounts:
    """The grid that a search counted on."""
    return as_kind(release.query, GridCounts)


def grid_ends(release: Release) -> tuple[float, float]:
    """The ends of the declared range, on the grid that a search counted on."""
    grid = grid_counts(release)
    return float(grid.value(0)), float(grid.value(grid.size - 1))


def bulk_of(release: Release) -> Bulk:
    """Where the first search found the rows; anywhere on the grid if it came to nothing."""
    search = as_kind(release.mechanism, CountSearch)
    policy = as_kind(search.policy, BulkSearch)
    cells = grid_counts(release).size
    found = replayed(policy.talk(_purse(search, cells)), search_answers(search, release.integers))
    return found or nothing_found(cells, max(float(policy.rows or 1), 1.0))


def ends_policy(release: Release) -> EndsSearch:
    """What the second search started from."""
    return as_kind(as_kind(release.mechanism, CountSearch).policy, EndsSearch)


@lru_cache(maxsize=32)
def ends_of(release: Release) -> Ends:
    """The range that the second search found; the whole grid if it came to nothing."""
    search, policy = as_kind(release.mechanism, CountSearch), ends_policy(release)
    cells = grid_counts(release).size
    found = replayed(policy.talk(_purse(search, cells)), search_answers(search, release.integers))
    return found or all_of_it(cells, Bulk(policy.rows, policy.left, policy.right))


def _purse(search: CountSearch, cells: int) -> Purse:
    return Purse(cells, search.units, search.deviation(1), search.law)


def mean_of_clipped(release: Release) -> float:
    """The mean of the clipped values that one release of moments gives, within its range."""
    result = TruncatedMeanResult(release)
    grid = column_grid(result)
    return grid.center + grid.half_range * float(
        np.clip(mean_statistics(result).mean[0], -1.0, 1.0)
    )


@dataclass(frozen=True, slots=True, repr=False)
class Procedure(Result):
    """A result of several releases: `release` gives the estimate,
    `before` are those that led to it.
    """

    before: tuple[Release, ...] = ()

    @property
    def releases(self) -> tuple[Release, ...]:
        return (*self.before, self.release)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all releases together (reference.md C1, C4), rounded up."""
        together: Guarantee = compose(*(release.guarantee for release in self.releases))
        return together

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return fit_to_json(self.releases, None, layout=PROCEDURE)

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

    def _cost(self) -> str:
        return f"{self.guarantee} ({len(self.releases)} releases)"

    def _further(self) -> tuple[str, ...]:
        return ()


OWN_MEAN = (
    "With heavy tails, fitted tails do not say which rows this data set drew: its own interval can "
    "cover less than it says (0.91 of 0.95 for Student's t with 3 degrees, 1000 rows, μ = 2)."
)


class UnboundedMeanResult(Procedure):
    """A mean whose range was found privately.

    *Validity*: independent rows. The interval contains sampling, privacy and clipping error;
    the last is judged by released counts and fitted tails, so values beyond all counted places that
    carry much of the mean (a few rows a thousand times further out) can be missed: `clipped` says
    how many rows may lie outside, and `worst_case` how far they could move the mean within the
    declared range. The population's interval is never narrower than the data set's own: of the
    population mean the fitted tails say what is left out on average, of the data set's mean they do
    not say which rows it drew, and with heavy tails that is the larger uncertainty.
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
        grid = column_grid(self)
        return grid.center - grid.half_range, grid.center + grid.half_range

    def clipped(self, level: float = 0.95) -> tuple[LeftOut, LeftOut]:
        """What lies below and above the range:
        rows with an interval, and what they take from the mean.
        """
        wide, search = self.before[:2]
        ends, started, grid = ends_of(search), ends_policy(search), grid_counts(wide)
        declared = grid.value(0) - grid.step / 2, grid.value(grid.size - 1) + grid.step / 2
        step = grid_counts(search).step
        low, high = self.range
        return (
            left_out(
                ends.left, float(started.left.place - ends.low), step, low - declared[0], level
            ),
            left_out(
                ends.right, float(ends.high - started.right.place), step, declared[1] - high, level
            ),
        )

    def worst_case(self, level: float = 0.95) -> tuple[float, float]:
        """How far rows outside the range could lower and raise the mean, whatever the tails: their
        largest share times the way to the declared end.
        """
        grid = grid_counts(self.before[0])
        low, high = self.range
        ways = low - grid.value(0), grid.value(grid.size - 1) - high
        rows = max(float(ends_of(self.before[1]).left.rows), 1.0)
        below, above = (
            min(side.rows[2] / rows, 1.0) * max(way, 0.0)
            for side, way in zip(self.clipped(level), ways, strict=True)
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
        if target == "population":
            # what rows outside take from this sample scatters about what they take on average, and
            # may do so by more than the clipped rows' own sampling error: the whole holds both
            own = mean_quantity(self, statistics, level, "data")
            down, up = widened(below, above, level, "data")
            low, high = np.minimum(low, own.low + down), np.maximum(high, own.high + up)
        ends = grid_ends(self.before[0])
        low, high = np.clip(low, *ends), np.clip(high, *ends)
        mean = Quantity(
            "mean", plain.unprojected, low, high, plain.sampling_variance, plain.privacy_variance
        )
        rows = float(np.max(statistics.rows))
        return (
            *(
                _share(name, side, rows)
                for name, side in (("clipped below", below), ("clipped above", above))
            ),
            mean,
        )

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print: the mean first, and what was clipped beside it."""
        told = Procedure.summary(self, level, target=target)
        # quantities are the two clipped shares, then the mean: three columns each; a share's error
        # is noise alone by definition
        order = (*range(6, len(told.header)), 0, 1, 3, 4)

        def moved(cells: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(cells[place] for place in order)

        moved_told = replace(told, header=moved(told.header), rows=tuple(map(moved, told.rows)))
        return moved_told.with_notes(OWN_MEAN) if target == "data" else moved_told

    def _further(self) -> tuple[str, ...]:
        low, high = (grouped(end, 3) for end in self.worst_case())
        return (
            (
                "clipped: the share of rows outside the range, from released counts. Whatever they "
                f"are, those rows cannot move the mean by more than {low} … +{high} (95%)."
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
        return column_grid(self).half_range

    def inside(self) -> tuple[float, float]:
        """The share of rows within h of the centre, and the standard deviation of its noise."""
        counted, rows = self.before[-1], float(np.max(mean_statistics(self).rows))
        count = float(to_float(counted.mechanism, np.array(counted.integers, dtype=object), 1.0)[0])
        return count / rows, float(np.sqrt(noise_of(counted.mechanism, 1.0).variance)) / rows

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        center, half_range, _ = column_grid(self)
        plain = mean_quantity(self, mean_statistics(self), level, target)
        share, deviation = self.inside()
        ends = grid_ends(self.before[0])
        # too few rows near the centre: it says nothing about the location
        if share - 2 * deviation < LEAST_INSIDE:
            estimate = plain.unprojected
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
        move = (plain.unprojected - center) / p
        slope = (np.abs(move) * deviation / p) ** 2
        low, high = (center + (end - center) / p for end in (plain.low, plain.high))
        extra = half_width(level, 0.0 * slope, Noise(slope))
        touching = (plain.low <= center - half_range * (1 - 1e-9)) | (
            plain.high >= center + half_range * (1 - 1e-9)
        )
        low, high = (
            np.clip(np.where(touching, ends[0], low - extra), *ends),
            np.clip(np.where(touching, ends[1], high + extra), *ends),
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
                f"Half-width h = {grouped(self.half_width, 4)}; "
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
                plain.unprojected,
                plain.low,
                plain.high,
                plain.sampling_variance,
                plain.privacy_variance,
            ),
        )
