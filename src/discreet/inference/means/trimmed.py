"""The result of dp.trimmed_mean: the mean of the middle of a law, from two released quantiles and
the mean of the values clipped to them (docs/theory/trimmed.md).

For a trim share a and ends l < u let W(l, u) = E clip(X, l, u) − a(l + u). Moving an end from its
quantile changes W by the integral of F − a (of 1 − a − F) over the way, which is of second order:
the way times how far the count at the released end is from its share. The released counts bound
both, and the interval is widened by half of their product (`TrimEnd.allowance`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from discreet.inference.means.results import column_grid, mean_quantity, mean_statistics
from discreet.inference.means.unbounded import Procedure, grid_counts
from discreet.inference.quantiles.quantiles import interval_of, rows_of, sampling_variance_of
from discreet.inference.results.decode import as_kind, search_answers
from discreet.inference.results.results import Quantity
from discreet.search.policy import Count
from discreet.search.quantile_ends import pooled
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.specs.mechanisms.quantiles import QuantileChoice
from discreet.specs.mechanisms.search import CountSearch
from discreet.trusted.release import Release

# the level that ends are kept within, and the least that the allowance is worked out at
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class TrimEnd:
    """A released end with the interval of its quantile, in the units of the column.

    `misplaced` is the most by which the share of rows below a place of the interval may differ from
    the end's own share; `sampling_share` the part of the interval's variance that is sampling.
    """

    value: float
    low: float
    high: float
    misplaced: float
    sampling_share: float

    def allowance(self, used: float) -> float:
        """What clipping at `used` instead of the quantile may change in the clipped mean."""
        outside = used < self.low or used > self.high
        way = max(used - self.low, self.high - used)
        return way * (1.0 if outside else self.misplaced) / 2


def trim_share(release: Release) -> Fraction:
    """The share that is trimmed at each end, of the release of both ends."""
    choice = as_kind(as_kind(release.mechanism, InTurn).stages[0], QuantileChoice)
    return Fraction(choice.a, choice.b)


def trim_ends(release: Release, level: float, target: str) -> tuple[TrimEnd, TrimEnd]:
    """Both ends as they were released."""
    mechanism = as_kind(release.mechanism, InTurn)
    answers = mechanism.split(release.integers)
    lower, upper = (
        _end(
            release,
            as_kind(mechanism.stages[place + 1], CountSearch),
            answers[place][0],
            answers[place + 1],
            (max(level, LEVEL), target),
        )
        for place in (0, 2)
    )
    return lower, upper


def _end(
    release: Release,
    search: CountSearch,
    chosen: int,
    transcript: tuple[int, ...],
    asked: tuple[float, str],
) -> TrimEnd:
    query, found = grid_counts(release), search_answers(search, transcript)
    first, last = interval_of(search, found, query.size, LEVEL)
    cell = min(max(chosen, first), last)
    first, last = interval_of(search, found, query.size, asked[0], target=asked[1])
    first, last = min(first, cell), max(last, cell)
    half_step = 0.0 if query.factor.encoding.is_exact else query.step / 2
    sampling = sampling_variance_of(search, found, asked[1])
    private = min((answer.deviation**2 for answer in found), default=1.0)
    return TrimEnd(
        query.value(cell),
        query.value(first) - half_step,
        query.value(last) + half_step,
        _misplaced(search, found, first, last),
        sampling / (sampling + private),
    )


def _misplaced(search: CountSearch, found: tuple[Count, ...], first: int, last: int) -> float:
    """The most by which the share of rows below a place from `first` to `last` may differ from the
    quantile's own: by the nearest answers outside, which bound it as shares do not fall.
    """
    whole = float(search.below + search.above)
    rows, blocks = max(rows_of(search, found), 1.0), pooled(found)
    below = max((block.value for block in blocks if block.place <= first), default=-np.inf)
    above = min((block.value for block in blocks if block.place > last), default=np.inf)
    return max(
        min(-below / (whole * rows), search.above / whole),
        min(above / (whole * rows), search.below / whole),
        0.0,
    )


class TrimmedMeanResult(Procedure):
    """The mean of the middle: (1/(1−2a)) ∫ Q(p) dp over a < p < 1−a, Q the quantile function of the
    column clamped to its declared range. For a continuous law this is the mean of the values
    between the quantiles a and 1−a; where values tie with an end, they count with the part of
    their rows that is not trimmed.

    *Method*: T = c + (M − c)/(1−2a), M the mean of the values clipped to the released ends and c
    the middle between them. The interval is that of M, stretched by 1/(1−2a), and widened by what
    the ends' errors may change in M (docs/theory/trimmed.md). For the data set itself the sign of
    that change is known, and each end widens one side.
    *Validity*: independent rows, from about 500 on; no shape is assumed, ties are allowed.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private trimmed mean"
    about: ClassVar[str] = (
        "The mean of the values clipped to the released ends, stretched to the middle that they "
        "stand for; the interval allows for the ends' own errors, and no shape is assumed."
    )

    @property
    def trim(self) -> Fraction:
        """The share of rows that is trimmed at each end."""
        return trim_share(self.before[0])

    @property
    def range(self) -> tuple[float, float]:
        """The ends that values were clipped to."""
        grid = column_grid(self)
        return grid.center - grid.half_range, grid.center + grid.half_range

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        center, middle = column_grid(self).center, 1 - 2 * float(self.trim)
        plain = mean_quantity(self, mean_statistics(self), level, target)
        ends = trim_ends(self.before[0], level, target)
        down, up = self._widening(ends, target)
        lowest, highest = self._declared
        low, high = (
            np.clip(center + (end - center + shift) / middle, lowest, highest)
            for end, shift in ((plain.low, -down), (plain.high, up))
        )
        extra = ((down + up) / 2 / float(ndtri(0.5 + level / 2))) ** 2
        sampled = (ends[0].sampling_share + ends[1].sampling_share) / 2
        return (
            Quantity(
                "trimmed mean",
                center + (plain.estimate - center) / middle,
                low,
                high,
                (plain.sampling_variance + sampled * extra) / middle**2,
                (plain.privacy_variance + (1 - sampled) * extra) / middle**2,
            ),
        )

    def _widening(self, ends: tuple[TrimEnd, TrimEnd], target: str) -> tuple[float, float]:
        """What is added below and above the interval of M.

        In a data set a lower end that is not its quantile raises W and an upper one lowers it. The
        population's quantiles are not the data set's, so that both signs occur.
        """
        lower, upper = (end.allowance(used) for end, used in zip(ends, self.range, strict=True))
        return (lower, upper) if target == "data" else (lower + upper, lower + upper)

    @property
    def _declared(self) -> tuple[float, float]:
        grid = grid_counts(self.before[0])
        return grid.value(0), grid.value(grid.size - 1)

    def _further(self) -> tuple[str, ...]:
        low, high = self.range
        percent = f"{100 * float(self.trim):g}%"
        return (f"{percent} are trimmed at each end, at {low:.4g} and {high:.4g} as released.",)
