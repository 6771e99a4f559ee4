"""Tests and intervals that every released proportion can be asked for afterwards: post-processing
of one noisy count (reference.md M2, M3, M6).

    exact         the released law; a geometric count first gets its public uniform
                  (`public_uniform`), which makes it a Tulap count: exact size, and uniformly most
                  powerful one-sided tests. Two-sided: equal tails.
    conservative  the released law with nothing added: size ≤ α on the lattice of whole counts.
    symmetric     as exact, but two-sided by distance from n·null.
    fiducial      DP-JIMI, of the count as in exact, computed without simulation.
    normal        Vu and Slavković's normal approximation.
    score         normal sampling error and the noise's own law;
                  the only one where the number of rows is private.

Where the number of rows is public, tests and intervals are "exact" unless another method is named,
so that an interval holds just the shares that its test does not reject.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidParameter, NoTheorem
from discreet.inference.counts.binomial import (
    NoisyCount,
    checked_alternative,
    noisy_count,
    normal_interval,
    normal_p_value,
)
from discreet.inference.counts.fiducial_share import FiducialShare
from discreet.inference.counts.shares import (
    ShareStatistics,
    decode_share,
    decode_shares,
    share_interval,
)
from discreet.inference.counts.tulap import checked_share
from discreet.inference.counts.unit_counts import decode_unit_share, unit_counts
from discreet.inference.results.decode import all_rows
from discreet.inference.results.hypothesis import HypothesisTest
from discreet.inference.results.laws import Array, tail_and_density
from discreet.inference.results.null_law import NullLaw, from_survival
from discreet.inference.results.results import Result, checked_level, checked_target
from discreet.specs.queries.shares import ShareCounts
from discreet.specs.queries.unit_sums import UnitShares, UnitSums

METHODS = ("exact", "conservative", "symmetric", "fiducial", "normal", "score")
ABOUT = {
    "exact": (
        "Exact for the binomial law and the noise as released; one-sided tests are the most "
        "powerful that privacy allows."
    ),
    "conservative": (
        "Exact for the binomial law and the noise as released; the size is at most nominal."
    ),
    "symmetric": (
        "Exact for the binomial law and the noise as released; both tails by their distance from "
        "the null."
    ),
    "fiducial": "Fiducial (DP-JIMI): approximate, close to nominal.",
    "normal": "Normal approximation of the binomial law and of the noise.",
    "score": "Normal sampling error at the null, with the noise's own law.",
}


class ProportionInference(Result):
    """What `ProportionResult` adds to a result: `test`, and intervals by several methods."""

    __slots__ = ()

    def test(
        self, null: float, *, alternative: str = "two-sided", method: str | None = None
    ) -> HypothesisTest:
        """Test whether the population's share is `null`; free, and as often as one likes.

        Method.   "exact" by default where the number of rows is public, else "score"; see
                  `discreet.inference.counts.proportion_tests` for all.
        Validity. Rows are independent draws. Of several tests on one release the usual corrections
                  for multiplicity are the caller's.
        """
        share, side = checked_share(null, "null"), checked_alternative(alternative)
        used = (
            ("exact" if self._count_is_binomial else "score")
            if method is None
            else self._checked_method(method)
        )
        p = (
            self._score_p_value(share, side)
            if used == "score"
            else _p_value(self._noisy(used), share, side, used)
        )
        return HypothesisTest(
            "Private test of a proportion",
            f"P({self.labels[0][0]})",
            share,
            side,
            used,
            p,
            float(np.clip(self._statistics().share[0], 0.0, 1.0)),
            ABOUT[used],
            self,
            (("null", share), ("alternative", side), ("method", used)),
        )

    def null_law(
        self, null: float, *, alternative: str = "two-sided", method: str | None = None
    ) -> NullLaw | None:
        """What the released share would be if the population's were `null`, with this one in it;
        for the picture of a test.
        """
        axis = f"share of {self.labels[0][0]} that would be released"
        exact = self._count_is_binomial if method is None else method not in ("score", "normal")
        if not exact:
            return self._score_law(null, alternative, axis)
        count = self._noisy("exact" if method is None else method)
        if count.rows == 0:
            return None
        law = count.null_law(null, alternative, axis, symmetric=method == "symmetric")
        return law.scaled(1 / count.rows)

    def _score_law(self, null: float, alternative: str, axis: str) -> NullLaw | None:
        off, gaussian, scale, rows = self._score_error(null)

        def survival(t: Array) -> Array:
            tail = tail_and_density(np.abs(t - null) * rows, gaussian, scale)[0]
            return np.asarray(np.where(t > null, tail, 1 - tail))

        reach = 9 * float(gaussian[0] + scale[0]) / rows
        return from_survival(
            survival,
            (null - reach, null + reach),
            null + off / rows,
            alternative,
            axis,
            centre=null,
            source="normal sampling error and the noise's own law",
        )

    def confidence_interval(
        self, level: float = 0.95, *, target: str = "population", method: str | None = None
    ) -> npt.NDArray[np.float64]:
        """The interval, of shape (1, 2), within [0, 1].

        Method.   The shares that the test of the same method does not reject. "exact" by default
                  where the number of rows is public, as for `test`; else "score". The others are
                  "conservative", "symmetric", "fiducial" and "normal". ``target="data"``
                  (privacy error alone) is always "score".
        Validity. "exact" and "conservative" cover with probability ≥ level at every share and
                  number of rows ("exact" on average over its uniform, which whole counts get).
                  "score" falls to 0.93 for 0.95 at some shares where there are few rows or little
                  noise.
        """
        used = self._interval_method(target) if method is None else self._checked_method(method)
        if used != "score" and checked_target(target) == "data":
            raise InvalidParameter(
                "target=",
                f"method={method!r} is about the population",
                "it contains sampling error",
                "leave target= out, or pass method='score'",
            )
        low, high = self._ends(checked_level(level), checked_target(target), used)
        return np.array([[low, high]])

    def _interval_method(self, target: str) -> str:
        """The method of intervals that are asked for without one."""
        return "exact" if self._count_is_binomial and target == "population" else "score"

    def _ends(self, level: float, target: str, method: str) -> tuple[float, float]:
        if method != "score":
            return _interval(self._noisy(method), level, method)
        ends = share_interval(self._statistics(), level, target=target)
        low, high = (float(end[0]) for end in ends)
        if target == "data" and self._count_is_binomial:
            # the exact interval holds, by Jensen's inequality, the one that the count with its
            # public uniform gives for the data set: the two differ by less than half a row
            whole = _interval(self._noisy("exact"), level, "exact")
            low, high = (min(max(end, whole[0]), whole[1]) for end in (low, high))
        return low, high

    @property
    def _count_is_binomial(self) -> bool:
        return all_rows(self.release) is not None

    def _checked_method(self, method: object) -> str:
        if method == "umpu":
            raise NoTheorem(
                "method='umpu'",
                "the most powerful unbiased two-sided test is no function of a noisy count",
                "its rejection probability turns at its centre faster than any post-processing of "
                "the count",
                "use method='exact' or 'symmetric'; "
                "discreet.inference.counts.most_powerful.unbiased_test computes it as a yardstick",
            )
        if method not in METHODS:
            raise InvalidParameter(
                "method=",
                "it is not known",
                "it decides the size and the coverage",
                "pass one of " + ", ".join(METHODS),
            )
        if method != "score" and not self._count_is_binomial:
            raise NoTheorem(
                f"method={method!r}",
                "the number of rows is private here",
                "the count is binomial only for a known number of independent rows",
                "use method='score', or release the proportion of all rows under "
                "neighbors=Replace(), of a column whose missing= says what a cell without a value "
                "counts as",
            )
        return str(method)

    def _noisy(self, method: str) -> NoisyCount:
        return noisy_count(self.release, uniform=method in ("exact", "symmetric", "fiducial"))

    def _statistics(self) -> ShareStatistics:
        release = self.release
        integers, cluster = np.array(release.integers, dtype=object), release.neighbors.rows
        if isinstance(release.query, ShareCounts):
            return decode_share(
                release.query,
                release.mechanism,
                integers,
                public_rows=release.public_rows,
                cluster=cluster,
            )
        if isinstance(release.query, UnitShares):
            return decode_unit_share(release.query, release.mechanism, integers)
        if isinstance(release.query, UnitSums):
            return unit_counts(release).shares()
        return decode_shares(
            release.mechanism, integers, public_rows=all_rows(release), cluster=cluster
        )

    def _score_error(self, null: float) -> tuple[float, Array, Array, float]:
        """(count less its expectation, spread of the normal part of the error, scale of its
        Laplace part, rows) at a null.
        """
        statistics = self._statistics()
        at = np.full(1, null)
        noise = statistics.noise_at(at)
        variance = statistics.sampling_variance(at)[:1] + noise.variance
        scale: Any = np.asarray(noise.fourth, dtype=float) ** 0.25
        off = float((statistics.count - null * statistics.rows)[0])
        # with next to no noise and a null of 0 or 1 there is no error at all
        gaussian = np.maximum(np.sqrt(np.maximum(variance - 2 * scale**2, 0.0)), 1e-9)
        return off, gaussian, np.maximum(scale, 1e-9 * gaussian), float(statistics.rows[0])

    def _score_p_value(self, null: float, alternative: str) -> float:
        off, gaussian, scale, _ = self._score_error(null)
        tail = float(tail_and_density(np.array([abs(off)]), gaussian, scale)[0][0])
        if alternative == "two-sided":
            return min(1.0, 2 * tail)
        return tail if (off > 0) == (alternative == "greater") else 1 - tail


def _p_value(count: NoisyCount, null: float, alternative: str, method: str) -> float:
    if method == "fiducial":
        return FiducialShare(count).p_value(null, alternative)
    if method == "normal":
        return normal_p_value(count, null, alternative)
    if method == "symmetric" and alternative == "two-sided":
        return count.symmetric_p_value(null)
    return count.p_value(null, alternative)


def _interval(count: NoisyCount, level: float, method: str) -> tuple[float, float]:
    if method == "fiducial":
        return FiducialShare(count).interval(level)
    if method == "normal":
        return normal_interval(count, level)
    return count.symmetric_interval(level) if method == "symmetric" else count.interval(level)
