"""The results of dp.subsample: one number or one level from what a function gave on secret parts
(docs/theory/aggregation.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from discreet.inference.aggregation.tables import of_table, part_notes
from discreet.inference.counts.results import HistogramResult, ProportionResult
from discreet.inference.counts.selection import ChoiceResult
from discreet.inference.means.results import MeanResult
from discreet.inference.means.unbounded import Procedure
from discreet.inference.quantiles.quantiles import MedianResult
from discreet.inference.results.decode import as_kind
from discreet.inference.results.laws import student_factor
from discreet.inference.results.results import Quantity, Result
from discreet.inference.results.summary import Summary
from discreet.specs.aggregation.part_outputs import PartOutputs
from discreet.specs.queries.scores import CandidateScores
from discreet.trusted.release import Release

TWO_SIZES = "subsample two sizes"
READ_BY: dict[str, type[Result]] = {
    "subsample median": MedianResult,
    "subsample mean": MeanResult,
    TWO_SIZES: MeanResult,
    "subsample share": ProportionResult,
    "subsample shares": HistogramResult,
}
_WORDS = {
    "subsample median": "the median of what the function gives on a part of this size",
    "subsample mean": "the mean of what the function gives on parts of this size",
    TWO_SIZES: "what the function would give on many rows",
    "subsample share": "how often the function says yes on a part of this size",
    "subsample shares": "how often the function gives each level on a part of this size",
}


def table_result(release: Release) -> Result:
    """The ordinary result of the table of what the function gave."""
    table = of_table(release)
    result: Any = READ_BY[release.description.estimator]
    name = release.description.estimator.removeprefix("subsample ")
    made: Result = result(replace(table, description=replace(table.description, estimator=name)))
    return made


class SubsampleResult(Procedure):
    """What a function gives on a part, over all parts: a median, a mean, or shares of levels.

    *Method*: what the function gave is a table with a row for each part; its median (exact counts
    of a search, no shape assumed), mean or shares are read as of any table. With two sizes, θ =
    2·(mean of k parts) − (mean of 2k parts), and its variance is 4 times the first plus the second:
    both means come from the same rows, which makes their errors alike, and nothing is taken off for
    that.
    *Validity*: rows are independent, so that parts are alike. The interval is for the median, or
    the mean, of the function *at this part size*: what small parts do to the function (a bias of
    about B/rows) stays in it. `bias="two sizes"` takes a bias away that is in proportion to one
    over the rows of a part.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private estimate from parts"

    @property
    def about(self) -> str:  # type: ignore[override]
        """What the intervals contain."""
        asked = self.release.description.estimator
        inner = "" if self.before else f" {table_result(self.release).about}"
        return f"The interval is for {_WORDS[asked]}.{inner}"

    @property
    def parts(self) -> int:
        """The number of secret parts; of the finer of two partitions."""
        return as_kind(self.release.query, PartOutputs).parts

    @property
    def labels(self) -> list[tuple[str, ...]]:
        return table_result(self.release).labels

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        fine = table_result(self.release).quantities(level, target=target)
        if not self.before:
            return fine
        coarse = table_result(self.before[0]).quantities(level, target=target)
        return (self._extrapolated(coarse[-1], fine[-1], level),)

    def _extrapolated(self, coarse: Quantity, fine: Quantity, level: float) -> Quantity:
        """2·coarse − fine with its interval, within the declared range."""
        first = as_kind(self.before[0].query, PartOutputs)
        column: Any = first.declared[0]
        estimate = 2 * coarse.unprojected - fine.unprojected
        sampling = 4 * coarse.sampling_variance + fine.sampling_variance
        privacy = 4 * coarse.privacy_variance + fine.privacy_variance
        half = float(ndtri(0.5 + level / 2)) * np.sqrt(sampling + privacy)
        half = half * student_factor(level, max(first.parts - 1, 1))
        low, high = (
            np.clip(end, column.low, column.high) for end in (estimate - half, estimate + half)
        )
        return Quantity("two sizes", estimate, low, high, sampling, privacy)

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print; renders in a notebook too."""
        shown = Procedure if self.before else Result
        table = shown.summary(self, level, target=target)
        return table.with_notes(*(note for one in self.releases for note in part_notes(one)))

    def _cost(self) -> str:
        return Procedure._cost(self) if self.before else Result._cost(self)


@dataclass(frozen=True, slots=True, repr=False)
class VoteResult(ChoiceResult):
    """The level that most parts give, about.

    *Validity*: as a choice's; `score_gap` is in parts.
    """

    title: ClassVar[str] = "Private vote of parts"

    @property
    def _scores(self) -> CandidateScores:
        return as_kind(as_kind(self.release.query, PartOutputs).about, CandidateScores)

    @property
    def unit(self) -> str:
        return "parts"

    def _gap_text(self, level: float) -> str:
        return f"{self.score_gap(level):g} parts"

    def summary(self, level: float = 0.95) -> Summary:
        """A table to print; renders in a notebook too."""
        return ChoiceResult.summary(self, level).with_notes(*part_notes(self.release))
