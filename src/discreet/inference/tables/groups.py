"""Groups compared with each other: every group by itself, an overall test, and all pairs with
intervals that hold at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from discreet.inference.quantiles.simultaneous import _level_of, _noise, _Plan
from discreet.inference.results.evidence import Evidence, TestedResult, with_evidence
from discreet.inference.results.laws import Array, Noise
from discreet.inference.results.named import Entry
from discreet.inference.results.results import (
    Quantity,
    Result,
    _frame,
    checked_level,
    checked_target,
    entry_of,
)
from discreet.inference.results.summary import (
    SHOWN_CELLS,
    Summary,
    number_text,
    percent_text,
    title_of,
)
from discreet.inference.results.told import Told, answers_line, share_text

Pair = tuple[int, int]  # the places of a group and of the one that it is compared with


def pairs_of(groups: int) -> tuple[Pair, ...]:
    """Every pair once: each group with all that are declared before it."""
    return tuple((high, low) for low in range(groups) for high in range(low + 1, groups))


def pair_level(sampling: Array, noise: Noise, level: float) -> float:
    """The level at which the intervals of all pairs hold at once with probability `level`, for
    groups whose errors have these variances: between `level` and Bonferroni's.

    Method.    The errors of the groups are independent. They are simulated with their laws (normal
               and Laplace parts), the error of every pair is read as the level of the least
               interval that contains it, and the answer is the `level` quantile of the largest: the
               studentised range of Tukey and Kramer, for unequal variances and noise.
    Validity.  As that of one pair's interval. Bonferroni's level, used beyond what the simulation
               resolves, needs nothing else.
    Reference. Hochberg and Tamhane (1987), chapter 3.
    """
    groups, pairs = sampling.size, np.array(pairs_of(sampling.size), dtype=int).reshape(-1, 2)
    first, second = pairs.T
    bonferroni = bonferroni_level(groups, level)
    plan = _Plan(2 * groups + first.size, level)
    if first.size <= 1 or not plan.resolves:
        return bonferroni
    variance, fourth = (
        np.broadcast_to(np.asarray(part, dtype=float), sampling.shape)
        for part in (noise.variance, noise.fourth)
    )
    laplace = 2 * np.sqrt(fourth)  # the variance of the Laplace part
    normal = np.sqrt(np.maximum(sampling + variance - laplace, 0.0))
    apart = Noise(variance[first] + variance[second], fourth[first] + fourth[second])
    largest = []
    for uniform in plan.chunks():
        error = ndtri(uniform[:, :groups]) * normal
        error += _noise(uniform[:, groups : 2 * groups], Noise(laplace, fourth))
        error = error[:, first] - error[:, second]
        largest.append(_level_of(error, sampling[first] + sampling[second], apart).max(axis=1))
    return min(max(plan.limit(largest), level), bonferroni)


def bonferroni_level(groups: int, level: float) -> float:
    """The level of each pair at which all hold, whatever their errors have in common."""
    return 1 - (1 - level) / max(len(pairs_of(groups)), 1)


@dataclass(frozen=True, slots=True, repr=False)
class AllPairs(Told):
    """Every pair of groups: `quantity` has the differences with intervals that contain all of them
    at once with probability `level`, each at the level `each`.
    """

    result: BaselineResult
    names: tuple[str, ...]
    quantity: Quantity
    level: float
    each: float

    def __getitem__(self, name: Any) -> Entry:
        return entry_of(self.quantity, self.names, name, self.level)

    @property
    def title(self) -> str:
        """What is shown."""
        return f"{title_of(self.result)}: all pairs"

    @property
    def private(self) -> Quantity:
        """The same differences, with intervals of privacy error alone."""
        pairs = pairs_of(len(self.result.groups))
        return self.result._differences(pairs, self.each, "data")

    @property
    def note(self) -> str:
        """What the intervals promise."""
        if len(self.names) < 2:
            return "One pair."
        return (
            f"The intervals of all {len(self.names)} pairs hold at once with probability "
            f"{self.level:g}: each has the level {self.each:.4g}."
        )

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        rows = table_rows(self.names, self.quantity)
        return Summary(self.title, table_header("pair", self.level), rows, (self.note,))

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: differences with their intervals, what they cost, what was asked."""
        entries = (self[place] for place in range(len(self.names)))
        return (
            answers_line(self.title, entries, many=True),
            f"Privacy: {self.result.release.guarantee}; {share_text(self.quantity.noise_share)}.",
            self.note,
        )

    def records(self) -> list[dict[str, Any]]:
        """One dictionary a pair."""
        entries = (self[place] for place in range(len(self.names)))
        return [
            {
                "pair": entry.name,
                "quantity": entry.quantity,
                "estimate": entry.estimate,
                "std_error": entry.std_error,
                "low": entry.low,
                "high": entry.high,
                "noise_share": entry.noise_share,
            }
            for entry in entries
        ]

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """A tidy data frame, one row a pair (`backend` is pandas, polars or pyarrow)."""
        records = self.records()
        return _frame({name: [record[name] for record in records] for name in records[0]}, backend)

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """The differences with their intervals; saved if a path is given."""
        from discreet.plots.results import plot_pairs

        return plot_pairs(self, ax=ax, title=title, path=path)


class BaselineResult(TestedResult):
    """Groups compared: with a baseline, the first declared level of the grouping column, and each
    with each (`pairs`).
    """

    __slots__ = ()
    __test__ = False
    joint: ClassVar[str] = ""  # what the intervals contain where all pairs are shown

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups, the baseline first."""
        return self.release.description.labels[0]

    @property
    def labels(self) -> list[tuple[str, ...]]:
        return [(f"{name} vs {self.groups[0]}",) for name in self.groups[1:]]

    def arms(self, level: float = 0.95, *, target: str = "population") -> Quantity:
        """Every group's own share or mean, with its interval; one group at a time."""
        raise NotImplementedError

    def overall(self) -> Evidence:
        """Whether all groups are alike."""
        raise NotImplementedError

    def _differences(self, pairs: Sequence[Pair], level: float, target: str) -> Quantity:
        """The difference of each pair, one pair at a time."""
        raise NotImplementedError

    def _joint_level(self, level: float, target: str) -> float:
        """The level of each pair at which all of them hold."""
        raise NotImplementedError

    def pairs(self, level: float = 0.95, *, target: str = "population") -> AllPairs:
        """The differences of all pairs of groups, with intervals that hold at once. From the same
        release, so it costs nothing.
        """
        level, target = checked_level(level), checked_target(target)
        pairs, each = pairs_of(len(self.groups)), self._joint_level(level, target)
        names = tuple(f"{self.groups[high]} vs {self.groups[low]}" for high, low in pairs)
        return AllPairs(self, names, self._differences(pairs, each, target), level, each)

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print: of two groups their difference, of more all groups and all pairs, with
        what the test of all says below it.
        """
        plain = Result.summary(self, level, target=target)
        arms = self.arms(level, target=target)
        if len(self.groups) <= 2:
            entries = (entry_of(arms, self.groups, name, level) for name in self.groups)
            shown = f"{arms.name} of " + "; ".join(map(str, entries)) + "."
            return with_evidence(replace(plain, notes=(shown, *plain.notes)), self.overall())
        pairs = self.pairs(level, target=target)
        rows = (*table_rows(self.groups, arms), *table_rows(pairs.names, pairs.quantity))
        told = [
            self.joint if note == self.about else note
            for note in plain.notes
            if "to_frame() has all" not in note
        ]
        if len(rows) > SHOWN_CELLS:
            told.append(
                f"The first {SHOWN_CELLS} of {len(rows)} lines; pairs().to_frame() has all."
            )
        header = table_header(self.release.description.by[0], level)
        table = Summary(plain.title, header, rows[:SHOWN_CELLS], (pairs.note, *told))
        return with_evidence(table, self.overall())


def table_header(first: str, level: float) -> tuple[str, ...]:
    """The header of `table_rows`."""
    return (first, "quantity", "estimate", "std. error", f"{100 * level:g}% interval", "noise %")


def table_rows(names: Sequence[str], quantity: Quantity) -> tuple[tuple[str, ...], ...]:
    """One line a cell of a quantity."""
    rows = []
    for place, name in enumerate(names):
        error = float(quantity.std_error[place])
        estimate, low, high = (
            number_text(float(values[place]), error)
            for values in (quantity.estimate, quantity.low, quantity.high)
        )
        share = percent_text(float(quantity.noise_share[place]))
        rows.append(
            (name, quantity.name, estimate, number_text(error, error), f"{low} … {high}", share)
        )
    return tuple(rows)
