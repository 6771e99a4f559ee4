"""The result of dp.posterior_sample: exact draws from a tempered posterior on a declared grid."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee, guarantee_from_dict
from discreet.inference.posteriors.families import Family, family_from_dict
from discreet.inference.posteriors.laws import normalised
from discreet.inference.posteriors.results import about
from discreet.inference.results.decode import as_kind
from discreet.inference.results.held import cautions, data_notes
from discreet.inference.results.laws import Array
from discreet.inference.results.results import _frame
from discreet.inference.results.stored import fit_from_json
from discreet.inference.results.summary import SHOWN_CELLS, Summary
from discreet.inference.results.told import Told
from discreet.specs.likelihoods import UNIT_BITS, LikelihoodScores
from discreet.specs.mechanisms.selection import ExponentialChoice
from discreet.trusted.release import Release

FORMAT, VERSION = "discreet-posterior-sample", 1


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """Public facts: the family, the declared points with their parameters' names, the spend."""

    family: Family
    points: tuple[tuple[float, ...], ...]
    names: tuple[str, ...]
    spend: Guarantee

    def to_dict(self) -> dict[str, Any]:
        return {
            "family": self.family.to_dict(),
            "points": [list(point) for point in self.points],
            "names": list(self.names),
            "spend": self.spend.to_dict(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class PosteriorSampleResult(Told):
    """Points of the grid that were drawn: `draws`, `temper`, `prior`, `summary`, `plot`.

    *Method*     P(θ_j) ∝ prior(θ_j)·likelihood(θ_j)^temper on the declared grid, drawn exactly
                 (docs/theory/bayes.md).
    *Validity*   The law is exact for every data set. A single draw is no estimate and has no
                 interval; where the temper is below 1 draws are wider than the posterior, and their
                 quantiles are no credible intervals of it.
    """

    releases: tuple[Release, ...]
    facts: SampleFacts

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in order."""
        return self.facts.names

    @property
    def grid(self) -> Array:
        """The declared points, (points, parameters)."""
        return np.array(self.facts.points)

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """Which point each draw is."""
        return np.array([release.integers[0] for release in self.releases], dtype=np.int64)

    @property
    def draws(self) -> Array:
        """The points that were drawn, (draws, parameters)."""
        return np.asarray(self.grid[self.places])

    @property
    def temper(self) -> float:
        """λ, the power of the likelihood: 1 where the spend affords the posterior itself."""
        mechanism = as_kind(self.releases[0].mechanism, ExponentialChoice)
        return float(mechanism.rate * (1 << UNIT_BITS))

    @property
    def prior(self) -> Array:
        """The prior's weights on the grid."""
        release = self.releases[0]
        query = as_kind(release.query, LikelihoodScores)
        rate = as_kind(release.mechanism, ExponentialChoice).rate
        return normalised(np.array([float(offset * rate) for offset in query.offsets]))

    @property
    def guarantee(self) -> Guarantee:
        """What all draws together cost: the one draw's guarantee, or the spend of several."""
        return self.releases[0].guarantee if len(self.releases) == 1 else self.facts.spend

    def records(self) -> list[dict[str, Any]]:
        """The tidy rows as dictionaries."""
        return [
            {"draw": number + 1, **dict(zip(self.names, point, strict=True))}
            for number, point in enumerate(self.draws.tolist())
        ]

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """A tidy data frame: one row a draw (`backend` is pandas, polars or pyarrow)."""
        records = self.records()
        return _frame({name: [one[name] for one in records] for name in records[0]}, backend)

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        rows = [
            (str(one["draw"]), *(f"{one[name]:.6g}" for name in self.names))
            for one in self.records()[:SHOWN_CELLS]
        ]
        title = f"Draws from the posterior of {about(self.facts.family)}"
        return Summary(title, ("draw", *self.names), tuple(rows), tuple(self._notes()))

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: the draws, what they cost, what was asked."""
        told = "; ".join(
            ", ".join(f"{one[name]:.6g}" for name in self.names) for one in self.records()[:8]
        )
        notes = self._notes()
        return f"{self.summary().title}: {told}", notes[1], notes[0]

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

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """The prior on the grid, and where the draws fell; saved if a path is given."""
        from discreet.plots.bayes.posteriors import plot_samples

        return plot_samples(self, ax=ax, title=title, path=path)

    def _notes(self) -> list[str]:
        release, size = self.releases[0], len(self.releases)
        temper = self.temper
        told = (
            "the posterior itself; more spend would not change it"
            if temper >= 1
            else "wider than the posterior"
        )
        notes = [
            f"Drawn exactly from prior × likelihood^{temper:.3g} on {len(self.facts.points)} "
            f"declared points: {told}. A draw is no estimate, and has no interval.",
            f"Privacy of {'this draw' if size == 1 else f'all {size} draws'}: "
            f"{statement.privacy(self.facts.spend, self.guarantee)}, neighbours "
            f"{release.neighbors}.",
        ]
        if release.description.where:
            notes.append(f"Only rows where {release.description.where}.")
        notes += data_notes(release)
        if as_kind(release.query, LikelihoodScores).factors:
            notes.append("Values beyond the declared range count as the nearest bound.")
        if size > SHOWN_CELLS:
            notes.append(f"The first {SHOWN_CELLS} of {size}; to_frame() has all.")
        notes += cautions(*self.releases)
        return notes


def sample_from_json(text: str) -> PosteriorSampleResult | None:
    """The result that `PosteriorSampleResult.to_json` wrote; None where the text is another."""
    return fit_from_json(text, _made, _facts_from_dict, layout=(FORMAT, VERSION))


def _made(releases: tuple[Release, ...], facts: SampleFacts) -> PosteriorSampleResult:
    made = PosteriorSampleResult(releases, facts)
    if made.draws.shape != (len(releases), len(facts.names)) or min(made.places) < 0:
        raise ValueError("its draws are none of its points")
    return made


def _facts_from_dict(record: dict[str, Any]) -> SampleFacts:
    return SampleFacts(
        family_from_dict(record["family"]),
        tuple(tuple(float(one) for one in point) for point in record["points"]),
        tuple(record["names"]),
        guarantee_from_dict(record["spend"]),
    )
