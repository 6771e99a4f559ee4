"""The result of dp.synthesize: three releases, and everything that follows from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee, guarantee_from_dict
from discreet.inference.results.held import cautions
from discreet.inference.results.stored import fit_from_json
from discreet.inference.results.summary import Summary, number_text
from discreet.inference.simulation.streams import Stream
from discreet.inference.synthesis.domain import Domain, domain_from_dict
from discreet.inference.synthesis.model import (
    Model,
    empty_model,
    fitted_model,
    independent_start,
)
from discreet.inference.synthesis.questions import SyntheticData
from discreet.inference.synthesis.reading import (
    guessed_tables,
    noisy_tables,
    released_distances,
)
from discreet.inference.synthesis.refits import refitted, shown
from discreet.inference.synthesis.report import PairError, pair_errors, report_table
from discreet.inference.synthesis.unbiased import NoisyTables
from discreet.trusted.release import Release

FORMAT, VERSION = "discreet-synthesis", 1
LOOKING = (
    "Rows of frame() are for looking: intervals from them as if they were real are too short. "
    "share(), table(), mean() and fit() have intervals that cover."
)


@dataclass(frozen=True, slots=True)
class SynthesisFacts:
    """What was asked: the columns with their cells, the declared analyses, the spend."""

    domain: Domain
    analyses: tuple[str, ...]
    spend: Guarantee

    def to_dict(self) -> dict[str, Any]:
        return {
            "columns": self.domain.to_dict(),
            "analyses": list(self.analyses),
            "spend": self.spend.to_dict(),
        }


def facts_from_dict(record: dict[str, Any]) -> SynthesisFacts:
    return SynthesisFacts(
        domain_from_dict(record["columns"]),
        tuple(record["analyses"]),
        guarantee_from_dict(record["spend"]),
    )


@dataclass(frozen=True, repr=False)
class Synthesis(SyntheticData):
    """Synthetic data and answers from released tables; see `frame`, `frames`, `share`, `table`,
    `mean`, `fit`, `supports`, `combine`, `report`, `plot`.

    *Method.*   Tables of counts with noise, in three releases: one column each; how far pairs are
                from independence; declared tables and the pairs that are worth their noise. A
                log-linear model of them gives rows. Answers come from the tables.
    *Validity.* Intervals are for the population whose sample the data are, asymptotically right
                whether or not the model is; what no table holds is marked "under the model".
    """

    releases: tuple[Release, ...]
    facts: SynthesisFacts

    @property
    def domain(self) -> Domain:
        return self.facts.domain

    @cached_property
    def tables(self) -> NoisyTables:
        """The measured tables: those of the first release and of the last."""
        return noisy_tables(self.releases[0], self.releases[-1])

    @cached_property
    def model(self) -> Model:
        """The model of the tables, fitted at first use."""
        measured = self.tables.measured
        start = independent_start(empty_model(self.tables.sizes, tuple(measured)), measured)
        return fitted_model(start, measured, self.tables.rows)

    @property
    def cluster(self) -> int:
        return self.releases[0].neighbors.rows

    @cached_property
    def _refitted(self) -> dict[int, Model]:
        return {}

    def refits(self, sets: int) -> tuple[Model, ...]:
        for place in shown([one for one in range(sets) if one not in self._refitted]):
            stream = self.stream(f"refit {place}")
            self._refitted[place] = refitted(self.model, self.tables, self.cluster, stream)
        return tuple(self._refitted[place] for place in range(sets))

    def stream(self, part: str) -> Stream:
        return Stream(f"{self._seed}/{part}")

    @cached_property
    def _seed(self) -> str:
        """What draws below the privacy line start from: the released integers."""
        text = json.dumps([list(map(str, release.integers)) for release in self.releases])
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.domain.names

    @property
    def measured(self) -> tuple[tuple[str, ...], ...]:
        """The columns of every measured table."""
        names = self.domain.names
        return tuple(tuple(names[place] for place in one) for one in self.tables.measured)

    @property
    def spend(self) -> Guarantee:
        """What all releases together may cost."""
        return self.facts.spend

    @property
    def pair_errors(self) -> Mapping[tuple[str, str], float]:
        """The error to be expected of the model's table of every pair of columns: half the ℓ₁
        distance of shares.
        """
        names = self.domain.names
        return {(names[a], names[b]): one.error for one in self._pairs for a, b in [one.columns]}

    @cached_property
    def _pairs(self) -> list[PairError]:
        middle = self.releases[1]
        return pair_errors(
            self.tables, self.model, released_distances(middle), guessed_tables(middle)
        )

    def report(self) -> Summary:
        """Measured tables beside the model's, and the expected error of what no table holds."""
        return report_table(self.domain, self.tables, self.model, self._pairs).with_notes(
            *self._notes()
        )

    def summary(self) -> Summary:
        """What was measured and at which noise, to print; renders in a notebook too."""
        rows = [
            (
                self.domain.words(columns),
                str(noisy.values.size),
                number_text(noisy.sigma, noisy.sigma / 10),
                number_text(100 * noisy.sigma / self.rows, 10 * noisy.sigma / self.rows),
            )
            for columns, noisy in self.tables.measured.items()
        ]
        header = ("measured together", "cells", "noise s.d. of a count", "% of the rows")
        public = self.releases[0].public_rows is not None
        counted = f"{self.rows:.0f} rows ({'public' if public else 'noisy count'})."
        declared = [f"Declared: {'; '.join(self.facts.analyses)}."] if self.facts.analyses else []
        notes = (*self._notes((counted,)), *declared, LOOKING)
        title = f"Synthetic data of {len(self.domain.cuts)} columns"
        return Summary(title, header, tuple(rows), notes)

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: how much was measured, what it cost, what was asked."""
        tables, told = self.tables, self._notes()
        many = f"{len(tables.measured)} tables of {len(self.domain.cuts)} columns"
        return (
            f"Synthetic data: {many}, {self.rows:.0f} rows.",
            told[0],
            f"Asked: synthesize of {', '.join(self.columns)}. summary() and report() say more.",
        )

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """Measured shares beside the model's, and the expected error of every pair; saved if a path
        is given.
        """
        from discreet.plots.synthetic.tables import plot_synthesis

        return plot_synthesis(self, ax=ax, title=title, path=path)

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "facts": self.facts.to_dict(),
                "releases": [json.loads(release.to_json()) for release in self.releases],
            },
            ensure_ascii=False,
        )

    def __reduce__(self) -> Any:
        return Synthesis, (self.releases, self.facts)

    def _notes(self, *notes: tuple[str, ...]) -> tuple[str, ...]:
        first = self.releases[0]
        told = [
            f"Spent {statement.asked(self.facts.spend)} in {len(self.releases)} releases, "
            f"neighbours {first.neighbors}; noise % is the share of the variance that privacy cost."
        ]
        told += [line for group in notes for line in group]
        told += _filled_note(first.filled)
        absent = [cut.name for cut in self.domain.cuts if cut.absent]
        if absent:
            told.append(f"A cell without a value is a level of its own: {', '.join(absent)}.")
        if self.cluster > 1:
            told.append(
                "Rows of one unit may be fully alike in these intervals (sampling variance × "
                "max_rows)."
            )
        told += cautions(*self.releases)
        return tuple(told)


def _filled_note(filled: tuple[tuple[str, str], ...]) -> list[str]:
    """What cells without a value count as, where the schema names it."""
    if not filled:
        return []
    counted = ", ".join(f"{name} as {value}" for name, value in filled)
    return [f"A cell without a value counts in {counted}."]


def synthesis_from_json(text: str) -> Synthesis | None:
    """The result that `Synthesis.to_json` wrote; None where the text is something else."""
    return fit_from_json(text, _consistent, facts_from_dict, layout=(FORMAT, VERSION))


def _consistent(releases: tuple[Release, ...], facts: SynthesisFacts) -> Synthesis:
    """A synthesis whose releases are about the columns that it names."""
    made = Synthesis(releases, facts)
    if len(releases) != 3 or made.tables.sizes != made.domain.sizes:
        raise ValueError("its releases are about other tables")
    return made
