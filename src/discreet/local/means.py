"""The mean of a bounded number, from one-bit, Laplace or Gaussian reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidParameter
from discreet.exact import rational
from discreet.inference.results.hypothesis import HypothesisTest
from discreet.inference.results.laws import (
    Noise,
    allow_for_noisy_variance,
    half_width,
    student_factor,
)
from discreet.inference.results.null_law import NullLaw, from_intervals
from discreet.inference.results.results import Quantity
from discreet.local.binomials import LinkedCounts
from discreet.local.results import LocalResult, checked_alternative
from discreet.schema import Boolean
from discreet.specs.mechanisms.local import LaplaceResponse, OneBitResponse

Array = npt.NDArray[np.float64]
# reports below which the sampling variance cannot be seen, and its greatest value is taken
_FEW = 2


@dataclass(frozen=True, slots=True, repr=False)
class LocalMean(LocalResult):
    """The mean of a number on its declared range.

    Method.    One bit: the exact binomial interval of the ones, mapped to the range. Laplace,
               Gaussian: mean of the answers; the noise's variance is known and the rest of their
               variance is sampling; the quantile is that of a normal plus the sum of the Laplace
               terms.
    Validity.  People answer independently. One bit: covers at every n, and its `noise %` is the
               least possible (one bit does not show how much the values themselves vary). Noisy
               numbers: 10 reports or more; fewer than two give the widest sampling variance.
               Intervals are widened by half a step of the column's grid, and cut to the range at
               the end.
    """

    what: ClassVar[str] = "mean"
    title: ClassVar[str] = "Mean from randomised reports"
    about: ClassVar[str] = (
        "Intervals contain sampling and privacy error, for the population that the people who "
        "reported were drawn from."
    )

    @property
    def labels(self) -> list[str]:
        return ["mean"]

    @property
    def bounds(self) -> tuple[float, float]:
        """The declared range."""
        column = self.collected.spec.column
        return (
            (0.0, 1.0) if isinstance(column, Boolean) else (float(column.low), float(column.high))
        )

    @property
    def unbiased(self) -> Array:
        low, high = self.bounds
        made = self.collected
        if isinstance(made.spec, OneBitResponse):
            return np.asarray(low + (high - low) * self._ones().unbiased)
        return np.array([self._moments()[0]]) if made.reports else np.full(1, np.nan)

    def quantity(
        self,
        level: float = 0.95,
        *,
        target: str = "population",
        simultaneous: bool = False,
        method: str = "exact",
    ) -> Quantity:
        low, high = self.bounds
        if isinstance(self.collected.spec, OneBitResponse):
            ones, width = self._ones(), high - low
            ends = ones.exact_interval(level) if method == "exact" else ones.score_interval(level)
            sampling, privacy = ones.variances()
            lower, upper = (low + width * end for end in ends)
            sampling, privacy = sampling * width**2, privacy * width**2
            # given the data, what is not seen of the values' spread is rounding at random:
            # noise as well
            if target == "data":
                sampling, privacy = 0 * sampling, sampling + privacy
        else:
            lower, upper, sampling, privacy = self._noisy_interval(level, target)
        grid = self.collected.spec.column.encoding()
        half_step = 0.0 if grid.is_exact else float(grid.step) / 2
        return Quantity(
            "mean",
            np.clip(self.unbiased, low, high),
            np.clip(lower - half_step, low, high),
            np.clip(upper + half_step, low, high),
            sampling,
            privacy,
        )

    def test(self, null: float, *, alternative: str = "two-sided") -> HypothesisTest:
        """Is the mean equal to `null`?

        The p-value is exact for one-bit reports, and for noisy ones the least 1 − level whose
        interval leaves it out (1e-9 at least).
        """
        number, side = float(rational(null, "null")), checked_alternative(alternative)
        low, high = self.bounds
        if not low <= number <= high:
            raise InvalidParameter(
                "null",
                "it is outside the declared range",
                "no mean of this column can lie there",
                f"pass a number from {low:g} to {high:g}",
            )
        if isinstance(self.collected.spec, OneBitResponse):
            p = float(self._ones().p_values((number - low) / (high - low), side)[0])
        else:
            p = self._noisy_p_value(number, side)
        method = (
            "exact binomial"
            if isinstance(self.collected.spec, OneBitResponse)
            else "inverted interval"
        )
        return HypothesisTest(
            "Test of a mean from randomised reports",
            "mean",
            number,
            side,
            method,
            p,
            float(self.quantity().unprojected[0]),
            f"{self.collected.reports} reports, {self.guarantee} each.",
            self,
            (("null", number), ("alternative", side)),
        )

    def null_law(self, null: float, *, alternative: str = "two-sided") -> NullLaw | None:
        """What the mean would be estimated as if it were `null`; for the picture of a test."""
        if self.collected.reports == 0:
            return None
        axis, (bottom, top) = "mean that would be estimated", self.bounds
        if isinstance(self.collected.spec, OneBitResponse):
            share = (float(null) - bottom) / (top - bottom)
            law = self._ones().null_law(0, share, alternative, axis)
            return law.scaled(top - bottom, bottom)

        def ends(level: float) -> tuple[float, float]:
            low, high = self.confidence_interval(level)[0]
            return float(low), float(high)

        return from_intervals(ends, float(self.params[0]), float(null), alternative, axis)

    def _ones(self) -> LinkedCounts:
        made: Any = self.collected
        return LinkedCounts(
            np.array([made.counts[1]], dtype=float),
            made.reports,
            float(made.spec.other),
            float(made.spec.kept),
        )

    def _moments(self) -> tuple[float, float]:
        """(mean, variance) of the answers in units of the column, from exact sums."""
        made: Any = self.collected
        total, squares, n = made.counts[0], made.counts[1], made.reports
        grid, cut = made.spec.column.encoding(), 1 << made.spec.noise.refinement
        step = float(grid.step) / cut
        # exact whole numbers until here
        spread = (n * squares - total * total) / (n * max(n - 1, 1))
        return float(grid.center) + total / n * step, spread * step**2

    def _noise(self) -> Noise:
        """The noise of one answer, in units of the column."""
        spec: Any = self.collected.spec
        step, spread = float(spec.column.encoding().step), float(spec.noise.spread)
        fourth = (spread * step) ** 4 if isinstance(spec, LaplaceResponse) else 0.0
        return Noise(spec.noise.variance * step**2, fourth)

    def _error(self, level: float, target: str) -> tuple[Array, Array, Noise, Array]:
        """(factor, sampling variance, noise of the mean, half width) at a level."""
        n, one, (low, high) = self.collected.reports, self._noise(), self.bounds
        noise, freedom = Noise(one.variance / n, one.fourth / n**3), np.ones(1)
        if n < _FEW:
            sampling, factor = np.full(1, (high - low) ** 2 / (4 * n)), np.ones(1)
        else:
            total = self._moments()[1]
            cumulant = 12 * one.fourth
            deviation = np.sqrt((2 * max(total, one.variance) ** 2 + cumulant) / n) / n
            sampling, factor = allow_for_noisy_variance(
                level, np.full(1, (total - one.variance) / n), deviation, one.variance / n
            )
            sampling = np.minimum(sampling, (high - low) ** 2 / (4 * (n - 1)))
            share = sampling / (sampling + noise.variance)
            freedom = (n - 1) / np.maximum(share, 1e-9) ** 2
            factor = factor * student_factor(level, freedom)
        if target == "data":
            return np.ones(1), 0 * sampling, noise, half_width(level, np.zeros(1), noise)
        return factor, sampling, noise, factor * half_width(level, sampling, noise)

    def _noisy_interval(self, level: float, target: str) -> tuple[Array, Array, Array, Array]:
        if self.collected.reports == 0:
            low, high = self.bounds
            return np.full(1, low), np.full(1, high), np.full(1, np.inf), np.full(1, np.inf)
        _, sampling, noise, half = self._error(level, target)
        centre = np.array([self._moments()[0]])
        return centre - half, centre + half, sampling, np.full(1, noise.variance)

    def _noisy_p_value(self, number: float, side: str) -> float:
        """Bisection over the level of the interval (before it is cut)."""
        if self.collected.reports == 0:
            return 1.0
        gap = self._moments()[0] - number
        least, most = 1e-9, 1 - 1e-4  # one minus the levels that intervals have
        for _ in range(60):
            middle = float(np.sqrt(least * most))
            least, most = (
                (middle, most)
                if float(self._error(1 - middle, "population")[3][0]) > abs(gap)
                else (least, middle)
            )
        if side == "two-sided":
            return most
        return most / 2 if (gap > 0) == (side == "greater") else 1 - most / 2
