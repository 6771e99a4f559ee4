"""Two groups of people, each with its own reports: how much do the shares of one value differ?"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from discreet.errors import InvalidParameter, NoTheorem
from discreet.inference.results.hypothesis import HypothesisTest
from discreet.inference.results.null_law import NullLaw, from_survival
from discreet.inference.results.results import checked_level
from discreet.inference.results.summary import Summary, number_text
from discreet.inference.results.told import Told
from discreet.local.binomials import LinkedCounts
from discreet.local.results import RESULT_FORMAT, checked_alternative
from discreet.local.shares import LocalShares, normal_p_values, statistics_of

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False)
class Difference(Told):
    """The share of `label` among the first group minus that among the second,
    from reports of different people.

    Method.    Newcombe's interval: each group's Wilson interval, mapped to shares and not cut,
               gives its side of the error; the test is the score test at equal shares. Everything
               is cut to [−1, 1] at the end.
    Validity.  Independent people, who report once; n·θ(1−θ) of 5 or more in each group.
    Reference. Newcombe (1998), method 10.
    """

    first: LocalShares
    second: LocalShares
    label: str
    what: ClassVar[str] = "difference"

    @property
    def estimate(self) -> float:
        """The difference of the unbiased shares, cut to [−1, 1];
        NaN where a group has no reports.
        """
        return float(np.clip(self._raw(), -1.0, 1.0))

    @property
    def std_error(self) -> float:
        """Sampling and privacy together."""
        return math.sqrt(
            sum(
                float(part)
                for counts in self._counts()
                for parts in counts.variances()
                for part in parts
            )
        )

    def confidence_interval(self, level: float = 0.95) -> Array:
        """(low, high) of the difference."""
        one, two = self._counts()
        if not one.reports or not two.reports:
            return np.array([-1.0, 1.0])
        checked, gap = checked_level(level), self._raw()
        (below_one, above_one), (below_two, above_two) = (
            _sides(counts, checked) for counts in (one, two)
        )
        return np.clip(
            [gap - math.hypot(below_one, above_two), gap + math.hypot(above_one, below_two)],
            -1.0,
            1.0,
        )

    def null_law(self, *, alternative: str = "two-sided") -> NullLaw | None:
        """What the difference would be if both shares were one; for the picture of a test."""
        spread = self._null_spread()
        if spread is None:
            return None

        def survival(t: Array) -> Array:
            return np.asarray(ndtr(-t / spread))

        return from_survival(
            survival,
            (-6 * spread, 6 * spread),
            self._raw(),
            alternative,
            "difference that would be estimated",
            source="normal error at the pooled share",
        )

    def plot(
        self,
        level: float = 0.95,
        *,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """Both shares with their intervals, and their difference; saved if a path is given."""
        from discreet.plots.results import plot_local_difference

        return plot_local_difference(self, checked_level(level), ax=ax, title=title, path=path)

    def _null_spread(self) -> float | None:
        """The standard error of the difference where both shares are the pooled one."""
        one, two = self._counts()
        if not one.reports or not two.reports:
            return None
        weights = np.array(
            [
                counts.reports * counts.gain**2 / max(_spread(counts, 0.5), 1e-12)
                for counts in (one, two)
            ]
        )
        shares = [counts.unbiased[0] for counts in (one, two)]
        pooled = float(np.clip(weights @ shares / weights.sum(), 0.0, 1.0))
        variances = [
            _spread(counts, pooled) / (counts.reports * counts.gain**2) for counts in (one, two)
        ]
        return max(math.sqrt(sum(variances)), 1e-300)

    def test(self, *, alternative: str = "two-sided") -> HypothesisTest:
        """Are both shares the same? The alternative is about first − second."""
        side, (one, two) = checked_alternative(alternative), self._counts()
        spread, p = self._null_spread(), 1.0
        if spread is not None:
            p = float(normal_p_values(np.array([self._raw() / spread]), side)[0])
        about = (
            f"{one.reports} and {two.reports} reports, {self.first.guarantee} and "
            f"{self.second.guarantee} each."
        )
        return HypothesisTest(
            "Test of two shares from randomised reports",
            f"difference of {self.label}",
            0.0,
            side,
            "score",
            p,
            self.estimate,
            about,
            self,
            (("alternative", side),),
        )

    def summary(self, level: float = 0.95) -> Summary:
        """A table to print; renders in a notebook too."""
        error = self.std_error
        low, high = self.confidence_interval(level)
        row = (
            self.label,
            number_text(self.estimate, error),
            number_text(error, error),
            f"{number_text(low, error)} … {number_text(high, error)}",
            f"{self.test().p_value:.3g}",
        )
        return Summary(
            "Difference of shares from randomised reports",
            ("", "difference", "std. error", f"{100 * level:g}% interval", "p (equal)"),
            (row,),
            (self.test().about,),
        )

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return json.dumps(
            {
                "discreet": RESULT_FORMAT,
                "what": self.what,
                "label": self.label,
                "groups": [group.collected.to_dict() for group in (self.first, self.second)],
            }
        )

    def _counts(self) -> tuple[LinkedCounts, LinkedCounts]:
        return _of(self.first, self.label), _of(self.second, self.label)

    def _raw(self) -> float:
        one, two = self._counts()
        return float(one.unbiased[0] - two.unbiased[0])


def difference(first: LocalShares, second: LocalShares, *, label: str | None = None) -> Difference:
    """The share of a value in one group minus that in another:
    `local.difference(new, old, label="yes")`; of yes/no columns "true" if no label is named.
    """
    for group in (first, second):
        if not isinstance(group, LocalShares) or len(group.labels) < 2:
            raise InvalidParameter(
                "a group",
                "it is no result of local.shares with two values or more",
                "shares are compared",
                "pass local.shares(spec, reports) of each group",
            )
        if not isinstance(statistics_of(group.collected), LinkedCounts):
            raise NoTheorem(
                "a difference of shares",
                "Hadamard response with several blocks has no binomial counts",
                "the interval is made of them",
                "use blocks=1, or another spec",
            )
    chosen = "true" if label is None and set(first.labels) == {"false", "true"} else label
    if chosen is None or chosen not in first.labels or chosen not in second.labels:
        raise InvalidParameter(
            "label=",
            "it is not a declared value of both groups",
            "one share is compared",
            "name a value that both specs declare",
        )
    return Difference(first, second, chosen)


def _of(group: LocalShares, label: str) -> LinkedCounts:
    """The counts of one value."""
    made = statistics_of(group.collected)
    assert isinstance(made, LinkedCounts)
    place = group.labels.index(label)
    return LinkedCounts(made.counts[place : place + 1], made.reports, made.base, made.gain)


def _spread(counts: LinkedCounts, share: float) -> float:
    """θ(1−θ) at a share."""
    theta = float(counts.probability(share))
    return theta * (1 - theta)


def _sides(counts: LinkedCounts, level: float) -> tuple[float, float]:
    """How far the uncut interval of a share reaches below and above its unbiased estimate."""
    low, high = counts.wilson(level)
    centre = counts.counts / counts.reports
    return float((centre - low)[0]) / counts.gain, float((high - centre)[0]) / counts.gain
