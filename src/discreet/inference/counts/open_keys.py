"""Counts of keys that nobody declared, with intervals that allow for the choice of what is shown.

A key is shown only if its noisy count reaches a threshold, so a key near it is seen only when its
noise was high. The lower end of an interval is therefore taken from the law of a noisy count *given
that it is shown*; the upper end needs no change.

Method.     With Y the noisy count, T the threshold, α = 1 − level: low is the least whole c ≥ 1
            with P_c(Y ≥ y | Y ≥ T) > α/2, high the greatest with P_c(Y ≤ y) > α/2. For shares, c is
            n·p and Y has the sampling variance n·p(1−p) too.
Validity.   Given that a key is shown, its count lies in its interval with probability at least
            `level`, whatever the count: exactly for the counts of this data set (P_c(low > c) ≤ α/2
            by its definition; P_c(Y < y₀ | Y ≥ T) ≤ P_c(Y < y₀) for every y₀). It is nominal for
            counts far above the threshold and up to 1 − α/2 near it. Shares rely on the normal
            approximation as well.
Checked.    tests/inference/counts/test_open_key_intervals.py
Reference.  Reid, Taylor and Tibshirani (2017), inference after selection by truncated laws.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr

from discreet.inference.results.decode import as_kind
from discreet.inference.results.laws import Array, tail_and_density
from discreet.inference.results.results import Quantity, Result, _frame
from discreet.inference.results.summary import Summary
from discreet.specs.mechanisms.additive import GaussianNoise, GeometricNoise
from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.specs.queries.open_keys import OpenCounts

_HALVINGS = 64
_SPREADS = 60.0  # beyond this many spreads no law has 10⁻⁹ of its mass


def log_tail(noise: GaussianNoise | GeometricNoise, steps: Array) -> Array:
    """ln P(N ≥ steps) of the drawn noise, in grid steps (trusted/extensions/open_keys/loss.py has
    the same law in ball arithmetic).
    """
    spread = float(noise.steps)
    if noise.kind == "gaussian":
        return np.asarray(log_ndtr((0.5 - steps) / spread))
    rest = np.log1p(np.exp(-1 / spread))
    above = -np.maximum(steps, 1.0) / spread - rest
    below = np.log1p(-np.exp(np.minimum(steps - 1.0, 0.0) / spread - rest))
    return np.asarray(np.where(steps >= 1.0, above, below))


def _first(holds: Callable[[Array], Any], low: Array, high: Array, *, whole: bool) -> Array:
    """The least number in (low, high] at which a condition holds,
    where it holds from some point on; `high` if it never does.
    """
    for _ in range(_HALVINGS):
        middle = np.floor((low + high) / 2) if whole else (low + high) / 2
        found, settled = holds(middle), whole & (high - low <= 1)
        if np.all(settled):
            break
        low, high = np.where(found | settled, low, middle), np.where(found & ~settled, middle, high)
    return high


def count_interval(mechanism: ThresholdedCounts, shown: Array, level: float) -> tuple[Array, Array]:
    """Whole numbers (low, high) for the counts behind the noisy counts `shown` (in rows)."""
    noise, cut, tail = (
        mechanism.noise,
        float(1 << mechanism.noise.refinement),
        float(np.log((1 - level) / 2)),
    )
    steps, threshold = shown * cut, float(mechanism.threshold)
    far = np.ceil(shown + _SPREADS * float(noise.spread)) + 1
    low = _first(
        lambda c: log_tail(noise, steps - c * cut) - log_tail(noise, threshold - c * cut) > tail,
        np.zeros(shown.shape),
        far,
        whole=True,
    )
    high = (
        _first(
            lambda c: log_tail(noise, c * cut - steps) <= tail,
            np.zeros(shown.shape),
            far,
            whole=True,
        )
        - 1
    )
    return np.minimum(low, np.maximum(high, 1)), np.maximum(high, 1)


def show_probability(mechanism: ThresholdedCounts, rows: Any) -> Array:
    """P(a key of `rows` rows is shown)."""
    cut = float(1 << mechanism.noise.refinement)
    return np.asarray(
        np.exp(
            log_tail(
                mechanism.noise, float(mechanism.threshold) - np.asarray(rows, dtype=float) * cut
            )
        )
    )


def share_limits(
    mechanism: ThresholdedCounts, shown: Array, rows: float, level: float
) -> tuple[Array, Array]:
    """(low, high) for the population's share of each key, of a public number of rows:
    sampling and privacy error both.
    """
    scale = np.sqrt(mechanism.variance / 2) if mechanism.noise.kind == "geometric" else 0.0
    half_step, threshold, tail = (
        float(mechanism.step) / 2,
        float(mechanism.least_shown),
        (1 - level) / 2,
    )

    def above(bound: Any, p: Array) -> Array:
        """P(Y ≥ bound) where the share is p."""
        sampling = np.maximum(rows * p * (1 - p), 0.0)
        distance = bound - half_step - rows * p
        if not scale:
            return np.asarray(np.exp(log_ndtr(-distance / np.sqrt(sampling + mechanism.variance))))
        beyond, _ = tail_and_density(
            np.abs(distance), np.sqrt(sampling), np.full(shown.shape, scale)
        )
        return np.where(distance >= 0, beyond, 1 - beyond)

    zero, one = np.zeros(shown.shape), np.ones(shown.shape)
    low = _first(lambda p: above(shown, p) > tail * above(threshold, p), zero, one, whole=False)
    high = _first(lambda p: 1 - above(shown + 2 * half_step, p) <= tail, zero, one, whole=False)
    return np.minimum(low, high), high


class OpenTableResult(Result):
    """Counts by keys that nobody declared: those whose noisy count reached the threshold.

    *Validity*: intervals hold for every key given that it is shown, one key at a time. Near the
    threshold a count is too high on average.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private table"
    about: ClassVar[str] = (
        "count: of this data set, privacy error alone. share: of the population, both errors. "
        "Intervals allow for the threshold. One key at a time."
    )

    @property
    def threshold(self) -> float:
        """The noisy number of rows from which on a key is shown."""
        return float(self._mechanism.least_shown)

    @property
    def _mechanism(self) -> ThresholdedCounts:
        return as_kind(self.release.mechanism, ThresholdedCounts)

    def show_probability(self, rows: int) -> float:
        """The probability that a key of `rows` rows is shown; a key that one unit alone holds:
        at most δ.
        """
        return float(show_probability(self._mechanism, rows))

    @property
    def labels(self) -> list[tuple[str, ...]]:
        """The keys that were found, one part for each column of `by`,
        in the order of their texts.
        """
        release, query = self.release, as_kind(self.release.query, OpenCounts)
        declared = list(
            itertools.product(*(labels for labels in release.description.labels if labels))
        )
        named = []
        for name in release.found:
            words, cell = query.parts(name)
            rest, texts = iter(declared[cell]), iter(words)
            named.append(
                tuple(
                    next(rest) if labels else next(texts) for labels in release.description.labels
                )
            )
        return named

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        release, mechanism = self.release, self._mechanism
        shown = np.array(release.integers, dtype=float) * float(mechanism.step)
        low, high = count_interval(mechanism, shown, level)
        variance = np.full(shown.shape, mechanism.variance)
        count = Quantity("count", shown, low, high, 0.0 * variance, variance)
        total = None if release.description.where else release.public_rows
        if not total:
            return (count,)
        share = np.clip(shown / total, 0.0, 1.0)
        if target == "data":
            return count, Quantity(
                "share",
                shown / total,
                np.minimum(low / total, 1.0),
                np.minimum(high / total, 1.0),
                0.0 * variance,
                variance / total**2,
            )
        return count, Quantity(
            "share",
            shown / total,
            *share_limits(mechanism, shown, float(total), level),
            share * (1 - share) / total,
            variance / total**2,
        )

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print; characters of a key that do not print are shown as escapes."""
        plain = Result.summary(self, level, target=target)
        width = len(self.release.description.by)
        rows = tuple(
            (*(printable(cell) for cell in row[:width]), *row[width:]) for row in plain.rows
        )
        found = len(self.release.found)
        note = (
            f"{found} key{'' if found == 1 else 's'} with a noisy count of {self.threshold:.4g} or "
            f"more; a key of {self.threshold:.0f} rows is shown about half of the time, and a key "
            "that is not listed may exist."
        )
        return dataclasses.replace(plain, rows=rows, notes=(*plain.notes, note))

    def to_frame(
        self, level: float = 0.95, *, target: str = "population", backend: str = "pandas"
    ) -> Any:
        """A tidy data frame: one row a key and quantity (`backend` is pandas, polars or
        pyarrow).
        """
        records = self.records(level, target=target)
        names = (
            *self.release.description.by,
            "quantity",
            "estimate",
            "std_error",
            "low",
            "high",
            "noise_share",
        )
        return _frame({name: [record[name] for record in records] for name in names}, backend)


def printable(text: str) -> str:
    """A text with escapes for the characters that do not print."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
