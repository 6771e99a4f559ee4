"""The result of dp.trimmed_mean: the mean of the middle of a law, from two released quantiles and
the mean of the values clipped to them (docs/theory/trimmed.md).

For a trim share a and ends l < u let W(l, u) = E clip(X, l, u) − a(l + u). Moving an end from its
quantile changes W by the integral of F − a (of 1 − a − F) over the way, which is of second order:
the way times a share of rows that is misplaced. The released counts bound both, and the interval is
widened by what they allow (`TrimEnd.allowance`).
"""

from __future__ import annotations

import math
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
from discreet.inference.results.summary import grouped
from discreet.search.policy import Count
from discreet.search.quantile_ends import pooled
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.specs.mechanisms.quantiles import QuantileChoice
from discreet.specs.mechanisms.search import CountSearch
from discreet.trusted.release import Release

# the level of each end's interval, so that both hold with 95 %; the least that is worked out, and
# what ends are kept within
END_LEVEL = Fraction(975, 1000)
FAR = 10  # a choice so many times as far from the inner end of its interval as from the outer one


@dataclass(frozen=True, slots=True)
class TrimEnd:
    """A released end with the interval of its quantile, in the units of the column.

    `missing` and `surplus` are the most by which the share of rows below a place of the interval
    may fall short of the end's own share, and exceed it; `sampling_share` is the part of the
    interval's variance that is sampling.
    """

    value: float
    low: float
    high: float
    missing: float
    surplus: float
    sampling_share: float

    def allowance(self, used: float) -> float:
        """What clipping at `used` instead of the quantile may change in the clipped mean: the way
        times the greatest misplaced share, half of that where both sides are alike.
        """
        if not self.low <= used <= self.high:
            return max(used - self.low, self.high - used)
        below, above = used - self.low, self.high - used
        alike = min(below, above) / 2
        return max((below - alike) * self.surplus, (above - alike) * self.missing)


def trim_share(release: Release) -> Fraction:
    """The share that is trimmed at each end, of the release of both ends."""
    choice = as_kind(as_kind(release.mechanism, InTurn).stages[0], QuantileChoice)
    return Fraction(choice.a, choice.b)


def trim_ends(release: Release, level: float, target: str) -> tuple[TrimEnd, TrimEnd]:
    """Both ends as they were released; their intervals hold together at `level`."""
    mechanism = as_kind(release.mechanism, InTurn)
    answers = mechanism.split(release.integers)
    lower, upper = (
        _end(
            release,
            as_kind(mechanism.stages[place + 1], CountSearch),
            answers[place][0],
            answers[place + 1],
            ((1 + level) / 2, target),
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
    first, last = interval_of(search, found, query.size, float(END_LEVEL))
    cell = _kept(chosen, first, last, lower=search.above < search.below)
    level, target = max(asked[0], float(END_LEVEL)), asked[1]
    first, last = interval_of(search, found, query.size, level, target=target)
    first, last = min(first, cell), max(last, cell)
    half_step = 0.0 if query.factor.encoding.is_exact else query.step / 2
    sampling = sampling_variance_of(search, found, target)
    private = min((answer.deviation**2 for answer in found), default=1.0)
    return TrimEnd(
        query.value(cell),
        query.value(first) - half_step,
        query.value(last) + half_step,
        *_misplaced(search, found, first, last),
        sampling / (sampling + private),
    )


def _kept(chosen: int, first: int, last: int, *, lower: bool) -> int:
    """The choice, within its interval; the inner end of that where the choice lies far out, as it
    does where most of a wide range holds next to no rows.
    """
    inner, outer = (last, first) if lower else (first, last)
    far = abs(chosen - inner) > FAR * max(abs(outer - chosen), 1)
    return inner if far or not first <= chosen <= last else chosen


def _misplaced(
    search: CountSearch, found: tuple[Count, ...], first: int, last: int
) -> tuple[float, float]:
    """The most by which the share of rows below a place from `first` to `last` may fall short of
    the quantile's own and exceed it: by the nearest answers outside and their noise, as shares do
    not fall.
    """
    whole = float(search.below + search.above)
    unit, blocks = whole * max(rows_of(search, found), 1.0), pooled(found)
    missing = min(
        (math.sqrt(one.variance) - one.value for one in blocks if one.place <= first),
        default=math.inf,
    )
    surplus = min(
        (math.sqrt(one.variance) + one.value for one in blocks if one.place > last),
        default=math.inf,
    )
    return (
        min(max(missing / unit, 0.0), search.above / whole),
        min(max(surplus / unit, 0.0), search.below / whole),
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
    *Validity*: independent rows, from about 500 on; no shape is assumed, ties are allowed. With
    too few rows in the tails for the spend the ends are not found, and the interval is as wide as
    a part of the declared range.
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
        ends = f"{grouped(low, 4)} and {grouped(high, 4)}"
        return (f"{percent} are trimmed at each end, at {ends} as released.",)
