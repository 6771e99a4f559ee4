"""The result of dp.mwem: a dense table of all columns that learnt a few measured counts, and what
can be said of it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from discreet import plain
from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee, guarantee_from_dict
from discreet.errors import InvalidParameter
from discreet.inference.mwem.fitting import LECTURE, Learner
from discreet.inference.mwem.workload import Box, box_from_list, box_of
from discreet.inference.results.decode import as_kind
from discreet.inference.results.held import cautions
from discreet.inference.results.laws import Array, Noise, half_width
from discreet.inference.results.named import name_text
from discreet.inference.results.results import checked_level, checked_target
from discreet.inference.results.stored import fit_from_json
from discreet.inference.results.summary import SHOWN_CELLS, Summary, number_text
from discreet.inference.simulation.streams import Stream
from discreet.inference.synthesis.answers import TablesAnswer, Variances
from discreet.inference.synthesis.domain import Domain, domain_from_dict
from discreet.inference.synthesis.equations import Equation, under_model
from discreet.inference.synthesis.model import Model
from discreet.inference.synthesis.questions import SyntheticData
from discreet.inference.synthesis.trees import Clique, Tree
from discreet.inference.synthesis.unbiased import NoisyTables
from discreet.specs.mechanisms.additive import AdditiveNoise, GeometricNoise
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.trusted.release import Release

FORMAT, VERSION = "discreet-mwem", 1
UNDER_WEIGHTS = (
    "UNDER THE MODEL: no released count is about this. The numbers are what multiplicative weights "
    "made of other counts; how far they are off is not known, so they have no interval."
)
LOOKING = (
    "Rows of frame() and answers under the model are for looking: nothing tells how far they are "
    "off. Measured counts have intervals; dp.synthesize measures whole tables, and answers from "
    "them."
)


@dataclass(frozen=True, slots=True)
class MwemFacts:
    """What was asked, and which box was measured in each round."""

    domain: Domain
    queries: str
    variant: str
    boxes: tuple[Box, ...]
    spend: Guarantee

    def to_dict(self) -> dict[str, Any]:
        return {
            "columns": self.domain.to_dict(),
            "queries": self.queries,
            "variant": self.variant,
            "boxes": [box.to_list() for box in self.boxes],
            "spend": self.spend.to_dict(),
        }


def facts_from_dict(record: dict[str, Any]) -> MwemFacts:
    return MwemFacts(
        domain_from_dict(record["columns"]),
        record["queries"],
        record["variant"],
        tuple(map(box_from_list, record["boxes"])),
        guarantee_from_dict(record["spend"]),
    )


@dataclass(frozen=True, slots=True, repr=False)
class CountAnswer(TablesAnswer):
    """A measured share: its interval has the law of its noise, which is not normal where the spend
    is pure; `fourth` is Σb⁴ of its Laplace parts.
    """

    fourth: float = 0.0

    @plain.called
    def confidence_interval(self, level: float = 0.95, *, target: str = "population") -> Array:
        """An interval of shape (1, 2), for the population or for the data set itself."""
        level = checked_level(level)
        sampling, privacy = self._parts(level)
        normal = sampling if checked_target(target) == "population" else 0.0 * sampling
        half = half_width(level, normal, Noise(privacy, np.full(privacy.shape, self.fourth)))
        ends = np.stack([self.values - half, self.values + half], axis=1)
        return np.clip(ends, *self.bounds)


@dataclass(frozen=True, slots=True, repr=False)
class WeightsAnswer(TablesAnswer):
    """An answer under the model of dp.mwem: numbers without intervals, marked as such."""

    def summary(self, level: float = 0.95) -> Summary:
        """The numbers alone: there is nothing to stand beside them."""
        shown = self.records(level)[:SHOWN_CELLS]
        rows = tuple(
            (*(str(one[part]) for part in self.head), f"{one['estimate']:.4g}") for one in shown
        )
        more = len(self.names) - len(rows)
        cut = (f"The first {len(rows)} of {len(self.names)}; to_frame() has all.",) if more else ()
        header = (*self.head, "estimate")
        return Summary(self.title, header, rows, (*self._marked(), *self.notes, *cut))

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: the numbers, that they are the model's, and what it cost."""
        pairs = zip(self.names, self.params, strict=True)
        told = "; ".join(f"{name_text(name)} {value:.4g}" for name, value in pairs)
        return f"{self.title}: {told}", UNDER_WEIGHTS, (*self.notes, "")[0]

    def _marked(self) -> tuple[str, ...]:
        return (UNDER_WEIGHTS,)


@dataclass(frozen=True, repr=False)
class Mwem(SyntheticData):
    """Synthetic rows from multiplicative weights, and the counts that were measured on the way; see
    `measured`, `frame`, `share`, `table`, `mean`, `report`, `plot`.

    *Method.*   In every round the query that the table misses most, about, is chosen and counted
                with noise; the table's weights move towards what was counted.
    *Validity.* A measured count has an interval that covers. All other answers are the model's, and
                come without one: the table knows nothing of queries that were never chosen.
    """

    releases: tuple[Release, ...]
    facts: MwemFacts

    @property
    def domain(self) -> Domain:
        return self.facts.domain

    @property
    def rows(self) -> float:
        """The number of rows: public, or as released."""
        first = self.releases[0]
        if first.public_rows is not None:
            return float(max(first.public_rows, 1))
        return max(released_count(first), 1.0)

    @cached_property
    def _learner(self) -> Learner:
        learner = Learner(self.domain.sizes, self.rows, self.facts.variant)
        for box, release in zip(self.facts.boxes, self._measurements, strict=True):
            learner.learn(box, released_count(release))
        return learner

    @property
    def _measurements(self) -> tuple[Release, ...]:
        """The counts of the boxes, one a round: every second release, from the end."""
        return self.releases[::-1][::2][: len(self.facts.boxes)][::-1]

    @cached_property
    def model(self) -> Model:
        """The dense table as a model of one node."""
        whole = tuple(range(len(self.domain.sizes)))
        shares = self._learner.answer
        return Model(Tree(self.domain.sizes, (whole,), ()), {}, (shares / shares.sum(),))

    @property
    def tables(self) -> NoisyTables:
        """No table was measured: an empty list of them."""
        return NoisyTables(self.domain.sizes, {}, round(self.rows))

    @property
    def cluster(self) -> int:
        return self.releases[0].neighbors.rows

    @property
    def spend(self) -> Guarantee:
        """What all releases together may cost."""
        return self.facts.spend

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.domain.names

    @property
    def noise(self) -> float:
        """Standard deviation of the noise of one measured count, in rows."""
        return math.sqrt(as_kind(self._measurements[0].mechanism, AdditiveNoise).variance)

    @property
    def measured(self) -> Mapping[str, float]:
        """Every query that was measured, in words, with its noisy count."""
        found = self._learner.measured
        return {box.words(self.domain): count for box, (count, _) in found.items()}

    def stream(self, part: str) -> Stream:
        text = json.dumps([list(map(str, release.integers)) for release in self.releases])
        return Stream(f"{hashlib.sha256(text.encode()).hexdigest()}/{part}")

    # -- answers ----------------------------------------

    def supports(self, question: object) -> bool:
        """Whether a measured count answers a question: a mapping of conditions that was measured.
        Nothing else has an interval.
        """
        return isinstance(question, Mapping) and self._heard(question) is not None

    @plain.called
    def share(
        self,
        conditions: Mapping[str, object],
        *,
        given: Mapping[str, object] | None = None,
        unsupported: bool = True,
    ) -> TablesAnswer:
        """The share of the rows that satisfy conditions: the measured count where these were
        measured, with its interval; else the model's, marked, without one.
        """
        heard = self._heard(conditions) if given is None else None
        if heard is None:
            self._require_marked(unsupported)
            return as_weights(SyntheticData.share(self, conditions, given=given, unsupported=True))
        count, times = heard
        share, alike = count / self.rows, np.array([float(self.cluster)])
        each = law_of(self._measurements[0].mechanism).scaled(1 / (times * self.rows))
        noise = Noise(times * each.variance, times * each.fourth)
        if self.releases[0].public_rows is None:
            noise = noise + law_of(self.releases[0].mechanism).scaled(share / self.rows)
        return CountAnswer(
            "Share of rows, measured",
            (box_of(self.domain, conditions).words(self.domain),),
            np.array([share]),
            Variances(alike, np.array([noise.variance]), wilson=np.array([self.rows])),
            (0.0, 1.0),
            self._notes(),
            head=("where",),
            fourth=noise.fourth,
        )

    @plain.called
    def table(self, by: str | list[str], *, unsupported: bool = True) -> TablesAnswer:
        """The model's share of the rows in every cell of some columns, marked."""
        self._require_marked(unsupported)
        places = self.domain.places(by)
        law = self.model.table(places)
        self._require_few(law.size, "cells of a table")
        cells = [self.domain.cuts[place].cells for place in places]
        names = tuple(
            tuple(labels[code] for labels, code in zip(cells, cell, strict=True))
            for cell in np.ndindex(*law.shape)
        )
        return WeightsAnswer(
            f"Shares by {self.domain.words(places)}",
            tuple(one[0] for one in names) if len(places) == 1 else names,
            law.ravel(),
            unknown(law.size),
            (0.0, 1.0),
            self._notes(),
            True,
            tuple(self.domain.cuts[place].name for place in places),
        )

    @plain.called
    def mean(
        self, column: str, by: str | list[str] | None = None, *, unsupported: bool = True
    ) -> TablesAnswer:
        """The model's mean of a binned number, of all rows or of groups, marked."""
        self._require_marked(unsupported)
        return as_weights(SyntheticData.mean(self, column, by, unsupported=True))

    def refits(self, sets: int) -> NoReturn:
        """Refused: nothing tells how far the weights are off, so no sets could show it."""
        raise InvalidParameter(
            "several synthetic sets, or a regression",
            "weights of dp.mwem have no known law of their errors",
            "sets that are combined, and standard errors, would claim one",
            "use dp.synthesize, which measures whole tables; frame() gives rows for looking",
        )

    def fit(self, formula: str, *, unsupported: bool = True) -> NoReturn:
        """Refused, as `refits`."""
        self.refits(1)

    def m_estimate(self, *asked: Any, **options: Any) -> NoReturn:
        """Refused, as `refits`."""
        self.refits(1)

    # -- what is told ----------------------------------------

    def report(self) -> Summary:
        """Every measured count beside the model's, by round."""
        table, rows = self._learner.answer, []
        for number, (box, release) in enumerate(
            zip(self.facts.boxes, self._measurements, strict=True), start=1
        ):
            count, of_model = released_count(release), box.count(table)
            rows.append(
                (
                    str(number),
                    box.words(self.domain),
                    *(number_text(one, self.noise) for one in (count, of_model, count - of_model)),
                )
            )
        more = len(rows) - SHOWN_CELLS
        notes = (f"The first {SHOWN_CELLS} of {len(rows)} rounds.",) if more > 0 else ()
        header = ("round", "measured", "noisy count", "model", "difference")
        noise = f"Noise of a count: {number_text(self.noise, self.noise / 10)} rows (s.d.)."
        return Summary(
            "Counts that multiplicative weights learnt",
            header,
            tuple(rows[:SHOWN_CELLS]),
            (noise, *notes, *self._notes()),
        )

    def summary(self) -> Summary:
        """What was asked and measured, to print; renders in a notebook too."""
        report = self.report()
        title = f"Multiplicative weights over {len(self.columns)} columns"
        return Summary(title, report.header, report.rows, (*report.notes, LOOKING))

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: how much was measured, what it cost, what was asked."""
        return (
            f"Multiplicative weights: {len(self.facts.boxes)} counts of {self.facts.queries} of "
            f"{len(self.columns)} columns, {self.rows:.0f} rows.",
            self._notes()[0],
            f"Asked: mwem of {', '.join(self.columns)}. report() says more.",
        )

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """Every measured count beside the model's; saved if a path is given."""
        from discreet.plots.synthetic.weights import plot_weights

        return plot_weights(self, ax=ax, title=title, path=path)

    def measured_and_model(self) -> tuple[Array, Array]:
        """The mean noisy count of each measured query, and the model's."""
        table, heard = self._learner.answer, self._learner.measured
        return (
            np.array([count for count, _ in heard.values()]),
            np.array([box.count(table) for box in heard]),
        )

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
        return Mwem, (self.releases, self.facts)

    # -- how answers are found ----------------------------------------

    def _heard(self, conditions: object) -> tuple[float, int] | None:
        """The mean count of conditions that were measured, and how often they were."""
        masks = self.domain.masks(conditions)
        sides = tuple(
            (place, tuple(int(code) for code in np.flatnonzero(mask)))
            for place, mask in sorted(masks.items())
            if not mask.all()
        )
        return self._learner.measured.get(Box(sides))

    def _require_marked(self, unsupported: object) -> None:
        if unsupported is not True:
            raise InvalidParameter(
                "an answer from measured counts",
                "no released count is about this",
                "what only the model says has no interval that covers",
                "leave unsupported= out for an answer under the model, marked as such",
            )

    def _solved(
        self, equation: Equation, columns: Clique, unsupported: bool
    ) -> tuple[Array, Variances, bool, tuple[bool, ...]]:
        value = under_model(equation, self.model.table(columns))
        return value, unknown(len(value)), True, (False,) * len(value)

    def _notes(self, *notes: tuple[str, ...]) -> tuple[str, ...]:
        first, facts = self.releases[0], self.facts
        used = "once, tables averaged" if facts.variant == LECTURE else "again in every round"
        public = "public" if first.public_rows is not None else "noisy count"
        told = [
            f"Spent {statement.asked(facts.spend)} in {len(self.releases)} releases, neighbours "
            f"{first.neighbors}; {self.rows:.0f} rows ({public}); each count is used {used}."
        ]
        told += [line for group in notes for line in group]
        filled = dict.fromkeys(pair for release in self.releases for pair in release.filled)
        told += [f"A cell of {name} without a value counts as {x}." for name, x in filled]
        if self.cluster > 1:
            told.append("Rows of one unit may be fully alike in intervals of measured counts.")
        told += cautions(*self.releases)
        return tuple(told)


def released_count(release: Release) -> float:
    """A noisy number of rows."""
    return release.integers[0] * float(as_kind(release.mechanism, AdditiveNoise).step)


def law_of(mechanism: Mechanism) -> Noise:
    """The law of a count's noise, in rows; two-sided geometric noise as the Laplace noise that it
    is nearly.
    """
    if isinstance(mechanism, GeometricNoise):
        return Noise(mechanism.variance, float(mechanism.spread) ** 4)
    return Noise(as_kind(mechanism, AdditiveNoise).variance)


def unknown(size: int) -> Variances:
    """No variances: nothing tells how far a model is off."""
    return Variances(np.full(size, np.nan), np.full(size, np.nan))


def as_weights(answer: TablesAnswer) -> WeightsAnswer:
    """An answer of the model, marked as one of multiplicative weights."""
    fields = {one.name: getattr(answer, one.name) for one in dataclasses.fields(TablesAnswer)}
    return WeightsAnswer(**fields | {"under_model": True})


def mwem_from_json(text: str) -> Mwem | None:
    """The result that `Mwem.to_json` wrote; None where the text is something else."""
    return fit_from_json(text, Mwem, facts_from_dict, layout=(FORMAT, VERSION))
