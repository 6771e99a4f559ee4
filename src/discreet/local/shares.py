"""Shares of declared values, from randomised response, unary encoding or Hadamard response."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, ndtr, ndtri

from discreet.errors import InvalidParameter, NoTheorem, shown
from discreet.exact import rational
from discreet.inference.results.hypothesis import HypothesisTest
from discreet.inference.results.null_law import NullLaw, from_intervals
from discreet.inference.results.results import Quantity
from discreet.local.binomials import LinkedCounts
from discreet.local.collected import Collected
from discreet.local.results import FitTest, LocalResult, checked_alternative
from discreet.schema import Boolean
from discreet.specs.mechanisms.local import HadamardResponse, UnaryResponse

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SignedRows:
    """Hadamard response with several blocks: for each level the sum of signs of its block's
    reports, and how many reports fell in that block.
    """

    sums: Array
    inside: Array
    reports: int
    kept: float
    least_inside: float

    @property
    def unbiased(self) -> Array:
        return (
            np.asarray(self.sums / (self.reports * self.kept))
            if self.reports
            else np.full(self.sums.shape, np.nan)
        )

    @property
    def estimate(self) -> Array:
        return np.clip(self.unbiased, 0.0, 1.0)

    def _second_moment(self) -> Array:
        """E sign² = P(own block), from its count and not below what it is with nobody in it."""
        return np.asarray(np.maximum(self.inside / max(self.reports, 1), self.least_inside))

    def variances(self) -> tuple[Array, Array]:
        if self.reports == 0:
            return np.full(self.sums.shape, np.inf), np.full(self.sums.shape, np.inf)
        share = self.estimate
        sampling = share * (1 - share) / self.reports
        total = (self._second_moment() / self.kept**2 - share**2) / self.reports
        return np.asarray(sampling), np.asarray(np.maximum(total - sampling, 0.0))

    def interval(self, level: float, target: str) -> tuple[Array, Array]:
        """|π̂ − π| ≤ z·√((m/kept² − π²)/n) (population) or with m/kept² − π (data):
        the ends solve quadratics.

        Method.    A score interval; m is the share of reports in the level's block.
        Validity.  At least some ten reports in the block.
        """
        n, z = self.reports, float(ndtri(0.5 + level / 2))
        if n == 0:
            return np.zeros(self.sums.shape), np.ones(self.sums.shape)
        c, m, w = self.unbiased, self._second_moment() / self.kept**2, z**2 / n
        a, b = (1 + w, 2 * c) if target == "population" else (1.0, 2 * c - w)
        root = np.sqrt(np.maximum(b**2 - 4 * a * (c**2 - w * m), 0.0))
        return np.clip((b - root) / (2 * a), 0.0, 1.0), np.clip((b + root) / (2 * a), 0.0, 1.0)

    def p_values(self, share: Any, alternative: str) -> Array:
        """Of the score statistic, by the normal approximation."""
        pi = np.asarray(share, dtype=float)
        if self.reports == 0:
            return np.ones(self.sums.shape)
        spread = np.sqrt(
            np.maximum(self._second_moment() / self.kept**2 - pi**2, 1e-300) / self.reports
        )
        return normal_p_values((self.unbiased - pi) / spread, alternative)


def normal_p_values(z: Array, alternative: str) -> Array:
    """The tail of a standard normal on the alternative's side, or both."""
    return np.asarray(
        {"greater": ndtr(-z), "less": ndtr(z), "two-sided": 2 * ndtr(-np.abs(z))}[alternative]
    )


@dataclass(frozen=True, slots=True, repr=False)
class LocalShares(LocalResult):
    """The share of every declared value among the people who reported,
    and in the population they were drawn from.

    Method.    Debiased frequencies (reference.md L2, L3). Intervals invert the exact binomial test
               of each count (Hadamard response with several blocks: the score test), and are cut to
               [0, 1] at the end.
    Validity.  People answer independently; exact intervals then cover at every n and share. One
               value alone (K = 1) has the share 1.
    """

    what: ClassVar[str] = "share"
    title: ClassVar[str] = "Shares from randomised reports"
    about: ClassVar[str] = (
        "Intervals contain sampling and privacy error, for the population that the people who "
        "reported were drawn from."
    )

    @property
    def labels(self) -> list[str]:
        return list(self.collected.spec.labels)  # type: ignore[attr-defined]

    @property
    def unbiased(self) -> Array:
        return np.ones(1) if self._trivial else self._statistics().unbiased

    @property
    def on_simplex(self) -> Array:
        """Shares ≥ 0 that add up to 1, nearest to the unbiased ones;
        equal shares without reports.
        """
        raw = self.unbiased
        return on_simplex(raw if np.all(np.isfinite(raw)) else np.zeros(raw.shape))

    def quantity(
        self,
        level: float = 0.95,
        *,
        target: str = "population",
        simultaneous: bool = False,
        method: str = "exact",
    ) -> Quantity:
        if self._trivial:
            one, none = np.ones(1), np.zeros(1)
            return Quantity("share", one, one, one, none, none)
        made = self._statistics()
        each = 1 - (1 - level) / len(made.unbiased) if simultaneous else level
        if isinstance(made, SignedRows):
            low, high = made.interval(each, target)
        else:
            low, high = (
                made.data_interval(each)
                if target == "data"
                else made.exact_interval(each)
                if method == "exact"
                else made.score_interval(each)
            )
        sampling, privacy = made.variances()
        return Quantity(
            "share",
            made.estimate,
            low,
            high,
            sampling if target == "population" else 0 * privacy,
            privacy,
        )

    def p_values(self, null: float, *, alternative: str = "two-sided") -> Array:
        """For every value: how much its reports speak against the share `null`.

        Exact binomial tests (score tests with several Hadamard blocks).
        """
        number, side = _probability(null), checked_alternative(alternative)
        if self._trivial:  # the share is 1, known without reports
            return np.full(1, float(number == 1 or side == "less"))
        return self._statistics().p_values(number, side)

    def test(
        self, null: float, *, label: str | None = None, alternative: str = "two-sided"
    ) -> HypothesisTest:
        """Is the share of the value `label` (of yes/no columns: "true") equal to `null`?

        See `p_values`.
        """
        chosen = (
            "true" if label is None and isinstance(self.collected.spec.column, Boolean) else label
        )
        if chosen not in self.labels:
            raise InvalidParameter(
                "label=",
                f"{shown(label)} is not a declared value",
                "a test is about one share",
                f"name one of {', '.join(self.labels[:8])}; p_values() has all of them",
            )
        place, number = self.labels.index(chosen), _probability(null)
        p = float(self.p_values(null, alternative=alternative)[place])
        scored = not self._trivial and isinstance(self._statistics(), SignedRows)
        method = "score test" if scored else "exact binomial"
        return HypothesisTest(
            "Test of a share from randomised reports",
            f"share of {chosen}",
            number,
            alternative,
            method,
            p,
            float(self.quantity().unprojected[place]),
            f"{self.collected.reports} reports, {self.guarantee} each.",
            self,
            (("null", number), ("label", chosen), ("alternative", alternative)),
        )

    def null_law(
        self, null: float, *, label: str | None = None, alternative: str = "two-sided"
    ) -> NullLaw | None:
        """What the unbiased estimate would be if the share were `null`, with this one in it;
        for the picture of a test.
        """
        made, number = self._statistics(), _probability(null)
        if self._trivial or self.collected.reports == 0:
            return None
        place = self.labels.index("true" if label is None else label)
        axis = f"share of {self.labels[place]} that would be estimated"
        if isinstance(made, LinkedCounts):
            return made.null_law(place, number, alternative, axis)

        def ends(level: float) -> tuple[float, float]:
            low, high = self.confidence_interval(level)[place]
            return float(low), float(high)

        return from_intervals(ends, float(self.params[place]), number, alternative, axis)

    def goodness_of_fit(self, shares: Sequence[float] | Mapping[str, float]) -> FitTest:
        """Are these the shares of all values?

        Pearson's X² on the reports, whose probabilities under the hypothesis are known.

        Method.    Randomised response: counts are multinomial with q + (p−q)·π; X² on K−1. Unary
                   encoding: the bits' covariance under the hypothesis, diag(θ(1−θ) + g²π²) − g²ππ′;
                   X² on K.
        Validity.  Expected counts of 5 or more.
        """
        spec, made = self.collected.spec, self.collected
        wanted = np.array(
            [shares[label] for label in self.labels]
            if isinstance(shares, Mapping)
            else list(shares),
            dtype=float,
        )
        if (
            wanted.shape != (len(self.labels),)
            or not np.all(wanted >= 0)
            or abs(wanted.sum() - 1) > 1e-9
        ):
            raise InvalidParameter(
                "shares",
                "they are not one number ≥ 0 for each value, adding up to 1",
                "the hypothesis must be a distribution",
                "pass a share for every declared value",
            )
        if isinstance(spec, HadamardResponse):
            raise NoTheorem(
                "goodness of fit",
                "reports of Hadamard response have too many outputs for X²",
                "its law would not be χ²",
                "use p_values() with a Bonferroni level, or randomised response",
            )
        if self._trivial or made.reports == 0:
            return FitTest(0.0, 0, 1.0)
        linked = self._statistics()
        assert isinstance(linked, LinkedCounts)
        theta = linked.probability(wanted)
        gap = linked.counts / made.reports - theta
        if isinstance(spec, UnaryResponse):
            diagonal, tilt = theta * (1 - theta) + (linked.gain * wanted) ** 2, linked.gain * wanted
            solved, bent = gap / diagonal, tilt / diagonal
            statistic = made.reports * float(
                gap @ solved + (tilt @ solved) ** 2 / (1 - tilt @ bent)
            )
            freedom = len(gap)
        else:
            statistic, freedom = made.reports * float(np.sum(gap**2 / theta)), len(gap) - 1
        return FitTest(statistic, freedom, float(chdtrc(freedom, statistic)))

    @property
    def _trivial(self) -> bool:
        return len(self.labels) == 1

    def _statistics(self) -> LinkedCounts | SignedRows:
        return statistics_of(self.collected)


def statistics_of(made: Collected) -> LinkedCounts | SignedRows:
    """The counts that shares are read from, with their link."""
    spec: Any = made.spec
    if not isinstance(spec, HadamardResponse):
        # ½ − 1/(1+e^ε), without loss of digits
        gain = (
            math.tanh(float(spec.epsilon) / 2) / 2
            if isinstance(spec, UnaryResponse)
            else float(spec.kept)
        )
        return LinkedCounts(
            np.array(made.counts, dtype=float), made.reports, float(spec.other), gain
        )
    cells = np.array(made.counts, dtype=np.int64).reshape(spec.blocks, spec.width)
    sums = walsh_hadamard(cells)[:, 1:].reshape(-1)[: spec.size].astype(float)
    kept = float(spec.kept)
    if spec.blocks == 1:
        return LinkedCounts((made.reports + sums) / 2, made.reports, 0.5, kept / 2)
    inside = np.repeat(cells.sum(axis=1), spec.width - 1)[: spec.size].astype(float)
    return SignedRows(sums, inside, made.reports, kept, (1 - kept) / spec.blocks)


def _probability(share: object) -> float:
    number = rational(share, "null")
    if not 0 <= number <= 1:
        raise InvalidParameter(
            "null", "it is not between 0 and 1", "it is a share", "pass for example 0.5"
        )
    return float(number)


def walsh_hadamard(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Σ_c (−1)^popcount(r & c)·counts[…, c] for every row r, along the last axis (its length a
    power of two): exact, width·log₂(width) additions.
    """
    out = counts.astype(np.int64)
    width, step = out.shape[-1], 1
    while step < width:
        pairs = out.reshape(*out.shape[:-1], width // (2 * step), 2, step)
        out = np.stack(
            [pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], axis=-2
        ).reshape(out.shape)
        step *= 2
    return out


def on_simplex(shares: Array) -> Array:
    """The nearest point (in Euclid's sense) with shares ≥ 0 that add up to 1.

    Method.    max(shares − t, 0) with the t that makes them add up.
    Reference. Held, Wolfe and Crowder (1974).
    """
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.asarray(np.maximum(shares - excess[last], 0.0))
