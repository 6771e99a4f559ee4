"""The result of dp.posterior: a posterior of what released numbers say, noise and clamping in its
likelihood; or, for contrast, the naive one that takes them as exact.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.accounting import statement
from discreet.errors import InvalidParameter, shown
from discreet.exact import rational
from discreet.inference.posteriors.families import (
    BetaBinomial,
    DirichletMultinomial,
    Family,
    GammaPoisson,
    NormalModel,
    family_from_dict,
)
from discreet.inference.posteriors.predictive import predicted
from discreet.inference.posteriors.reading import Posterior, posterior_of, seed_of
from discreet.inference.results.held import cautions, data_notes
from discreet.inference.results.named import Entry, NamedVector
from discreet.inference.results.results import _frame, checked_level
from discreet.inference.results.stored import UNREADABLE, release_from_json
from discreet.inference.results.summary import (
    SHOWN_CELLS,
    Summary,
    _tidy,
    number_text,
    percent_text,
)
from discreet.inference.results.told import Told, answers_line
from discreet.trusted.release import Release

FORMAT, VERSION = "discreet-posterior", 1
MOST_DRAWS = 1_000_000
NAIVE = (
    "NOT VALID: the naive posterior takes noisy numbers as exact and forgets clamping; its "
    "intervals are too narrow. It is shown for contrast."
)
AWARE = {
    "beta-binomial": "The count that noise hid is summed over with the law of that noise: the "
    "posterior is exact for independent rows.",
    "dirichlet-multinomial": "The counts that noise hid are drawn from their exact law given the "
    "release; shares given them are Dirichlet.",
    "gamma-poisson": "Sums of clamped Poisson rows, taken as normal, with the law of the noise, on "
    "a grid.",
    "normal": "Sums of clamped normal rows, taken as normal, with the law of the noise, on a grid.",
    "linear": "Second moments of jointly normal rows with the law of the noise; weighted draws "
    "about the greatest density.",
}


@dataclass(frozen=True, slots=True, repr=False)
class PosteriorResult(Told):
    """A posterior: `means`, `deviations`, `credible_interval`, `draws`, `probability`,
    `predictive`, `summary`, `plot`; ``result.as_if_exact`` is the naive one of the same release.

    *Method*     the likelihood of the released numbers themselves, clamping and noise included
                 (docs/theory/bayes.md), times the declared prior. Draws and intervals are functions
                 of the release: they cost nothing, and a stored result gives the same ones.
    *Validity*   over parameters from the prior and rows from the family, credible intervals contain
                 the parameter with the stated probability (simulated: benchmarks/
                 bayes_calibration.py), if the family is right. The naive posterior's do not.
    """

    release: Release
    family: Family
    naive: bool = False
    title: ClassVar[str] = "Posterior"

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in order."""
        return self._posterior.names

    @property
    def means(self) -> NamedVector:
        """Posterior means by name or position."""
        return NamedVector(self._posterior.law.means, self.names)

    @property
    def deviations(self) -> NamedVector:
        """Posterior standard deviations."""
        return NamedVector(self._posterior.law.deviations, self.names)

    @property
    def noise_share(self) -> NamedVector:
        """About which share of each posterior variance privacy cost: what the naive posterior of
        the same release leaves out. Not known of a naive one.
        """
        if self.naive:
            return NamedVector(np.full(len(self.names), np.nan), self.names)
        exact = posterior_of(self.release, self.family, naive=True).law.deviations
        share = 1 - (exact / np.maximum(self._posterior.law.deviations, 1e-300)) ** 2
        return NamedVector(np.clip(share, 0.0, 1.0), self.names)

    @property
    def as_if_exact(self) -> PosteriorResult:
        """The naive posterior of the same release, for contrast; it costs nothing."""
        return PosteriorResult(self.release, self.family, True)

    @property
    def guarantee(self) -> Any:
        """The privacy guarantee of the release."""
        return self.release.guarantee

    @plain.called
    def credible_interval(self, level: float = 0.95) -> npt.NDArray[np.float64]:
        """The middle `level` of each parameter's posterior, as an array (parameters, 2)."""
        tail = (1 - checked_level(level)) / 2
        law = self._posterior.law
        ends = [law.quantiles(place, np.array([tail, 1 - tail])) for place in range(law.size)]
        return np.asarray(np.stack(ends))

    @plain.called
    def probability(
        self, name: str | None = None, *, low: float | None = None, high: float | None = None
    ) -> float:
        """P(low < parameter ≤ high) under the posterior; an end that is left out is open."""
        place, law = self._place(name), self._posterior.law
        below, upto = (
            outer if end is None else float(law.cdf(place, np.array([_number(end, called)]))[0])
            for end, outer, called in ((low, 0.0, "low="), (high, 1.0, "high="))
        )
        return max(0.0, min(1.0, upto) - below)

    @plain.called
    def draws(self, size: int = 4000) -> npt.NDArray[np.float64]:
        """Draws of all parameters, (size, parameters): the same ones whenever they are asked."""
        return self._posterior.law.draws(_size(size), seed_of(self.release, "draws"))

    @plain.called
    def predictive(self, size: int = 4000, *, at: Any = None) -> npt.NDArray[Any]:
        """Draws of one more row, not clamped: True or False, a level, a count, or a number; for a
        line of the response at the predictors ``at={"x": 3}``.
        """
        return predicted(self, _size(size), at)

    @plain.called
    def summary(self, level: float = 0.95) -> Summary:
        """A table to print; renders in a notebook too."""
        rows = []
        for record in self.records(checked_level(level))[:SHOWN_CELLS]:
            sd = record["sd"]
            rows.append(
                (
                    record["parameter"],
                    number_text(record["mean"], sd),
                    number_text(sd, sd),
                    f"{number_text(record['low'], sd)} … {number_text(record['high'], sd)}",
                    percent_text(record["noise_share"]),
                )
            )
        interval = f"{100 * level:g}% credible interval"
        header = ("parameter", "mean", "sd", interval, "noise %")
        return Summary(self._title, header, tuple(rows), tuple(self._notes()))

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """The tidy rows as dictionaries."""
        ends, shares = self.credible_interval(level), self.noise_share
        return [
            {
                "parameter": name,
                "mean": float(self.means[place]),
                "sd": float(self.deviations[place]),
                "low": float(ends[place, 0]),
                "high": float(ends[place, 1]),
                "noise_share": float(shares[place]),
                "valid": not self.naive,
            }
            for place, name in enumerate(self.names)
        ]

    @plain.called
    def to_frame(self, level: float = 0.95, *, backend: str = "pandas") -> Any:
        """A tidy data frame: one row a parameter (`backend` is pandas, polars or pyarrow)."""
        records = self.records(level)
        return _frame({name: [each[name] for each in records] for name in records[0]}, backend)

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: means with credible intervals, what they cost, what was asked."""
        release = self.release
        entries = [
            Entry(
                one["parameter"],
                "",
                one["mean"],
                one["low"],
                one["high"],
                0.95,
                one["sd"],
                one["noise_share"],
                one["mean"],
            )
            for one in self.records()
        ]
        marked = f"{NAIVE[:9]}, " if self.naive else ""
        return (
            answers_line(self._title, entries, many=len(entries) != 1),
            f"{marked}Privacy: {statement.cost(release.spend, release.guarantee)}, neighbours "
            f"{release.neighbors}.",
            f"Asked: posterior, prior {_prior_text(self.family)}. summary() says more.",
        )

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "family": self.family.to_dict(),
                "naive": self.naive,
                "releases": [json.loads(self.release.to_json())],
            },
            ensure_ascii=False,
        )

    def plot(
        self,
        level: float = 0.95,
        *,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """Posterior densities with their credible intervals, beside the naive ones; saved if a path
        is given.
        """
        from discreet.plots.bayes.posteriors import plot_posterior

        return plot_posterior(self, checked_level(level), ax=ax, title=title, path=path)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────

    @property
    def _posterior(self) -> Posterior:
        return posterior_of(self.release, self.family, naive=self.naive)

    @property
    def _title(self) -> str:
        what = f"{'Naive posterior (not valid)' if self.naive else self.title} of "
        return what + about(self.family)

    def _place(self, name: object) -> int:
        if name is None and len(self.names) == 1:
            return 0
        if name not in self.names:
            raise InvalidParameter(
                "name",
                f"{shown(name)} is no parameter of this posterior",
                "each parameter has a law of its own",
                f"pass one of {', '.join(self.names)}",
            )
        return self.names.index(str(name))

    def _notes(self) -> list[str]:
        release = self.release
        notes = [NAIVE] if self.naive else [AWARE[self.family.kind]]
        notes.append(f"Prior: {_prior_text(self.family)}. Rows are taken as independent.")
        notes.append(
            f"Privacy of this release: {statement.privacy(release.spend, release.guarantee)}, "
            f"neighbours {release.neighbors}. noise % is about the share of the posterior variance "
            "that privacy cost."
        )
        if release.description.where:
            notes.append(f"Only rows where {release.description.where}.")
        if release.public_count is not None:
            counted = "rows" if release.neighbors.unit is None else "units, of one row each"
            notes.append(f"{release.public_count} {counted} (public).")
        notes += data_notes(release)
        notes += (
            [self._range_note()] if isinstance(self.family, (GammaPoisson, NormalModel)) else []
        )
        notes += self._posterior.notes
        if len(self.names) > SHOWN_CELLS:
            notes.append(f"The first {SHOWN_CELLS} of {len(self.names)}; to_frame() has all.")
        notes += cautions(release)
        return notes

    def _range_note(self) -> str:
        grid = self.release.query.factor.encoding  # type: ignore[attr-defined]
        half = float(grid.step) * grid.high
        low, high = (_tidy(float(grid.value(code)), half) for code in (grid.low, grid.high))
        told = "which this posterior forgets" if self.naive else "which the likelihood knows"
        return f"Values outside {low} … {high} count as the nearest bound, {told}."


def posterior_from_json(text: str) -> PosteriorResult | None:
    """The result that `PosteriorResult.to_json` wrote; None where the text is something else."""
    try:
        record = json.loads(text)
        if (record.get("format"), record.get("version")) != (FORMAT, VERSION):
            return None
        release = release_from_json(json.dumps(record["releases"][0]))
        made = PosteriorResult(release, family_from_dict(record["family"]), bool(record["naive"]))
        made.names  # a release of another family cannot be read  # noqa: B018
        return made
    except UNREADABLE:
        return None


def about(family: Family) -> str:
    """What a family is about, in words."""
    if isinstance(family, BetaBinomial):
        level = "" if family.level is None else f" = {family.level}"
        return f"the share of {family.column}{level}"
    if isinstance(family, DirichletMultinomial):
        return f"the shares of {family.column}"
    if isinstance(family, GammaPoisson):
        return f"the rate of {family.column}"
    if isinstance(family, NormalModel):
        return f"mean and deviation of {family.column}"
    return family.formula


def _prior_text(family: Family) -> str:
    if isinstance(family, BetaBinomial):
        return "Beta({:g}, {:g})".format(*family.prior)
    if isinstance(family, DirichletMultinomial):
        prior = family.prior if isinstance(family.prior, tuple) else (family.prior,)
        told = ", ".join(f"{one:g}" for one in prior[:8]) + (", …" if len(prior) > 8 else "")
        return f"Dirichlet({told})"
    if isinstance(family, GammaPoisson):
        return "Gamma({:g}, {:g})".format(*family.shape_and_rate)
    if isinstance(family, NormalModel):
        if family.prior is None:
            return (
                "the middle of the range with a quarter of a row's weight, Inverse-Gamma variance"
            )
        told = "mean {:g} with the weight of {:g} rows, variance Inverse-Gamma({:g}, {:g})"
        return told.format(*family.prior)
    told = "slopes N(0, {:g}²), places N(0, {:g}²), deviations about {:g} times or over {:g}"
    return told.format(*family.scales) + " (half ranges)"


def _number(given: Any, called: str) -> float:
    return float(rational(given, called))


def _size(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_DRAWS:
        raise InvalidParameter(
            "size",
            f"{shown(given)} is no whole number from 1 to {MOST_DRAWS}",
            "it is a number of draws",
            "pass for example 4000",
        )
    return given
