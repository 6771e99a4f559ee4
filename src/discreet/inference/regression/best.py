"""The result of tuning: the best of a random number of hidden runs, and nothing of the others."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee
from discreet.accounting.loss_distributions.best_of import mean_runs
from discreet.inference.results.decode import as_kind
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told
from discreet.specs.hidden_runs import HiddenRuns
from discreet.specs.mechanisms.procedures import BestOf
from discreet.trusted.release import Release

FORMAT, VERSION = "discreet-best", 1


@dataclass(frozen=True, slots=True, repr=False)
class BestResult(Told):
    """The fit of the best run (`fit`), and which trial it was (`chosen`).

    Method.    A trial is drawn for each of K runs, K is random, and the run with the greatest noisy
               score is released (docs/theory/tuning.md).
    Validity.  The fit is that of one run at a part of the spend; its intervals do not know that it
               was chosen. Among fits of one model they cover as those of one run; where trials are
               different models they are too narrow, as after any choice of a model
               (docs/how-to/tuning.md has figures). The score of the best run is too good.
    """

    release: Release
    fit: Any

    @property
    def trials(self) -> tuple[str, ...]:
        """The trials that each run draws one of, in words."""
        return as_kind(self.release.query, HiddenRuns).trials

    @property
    def place(self) -> int:
        """The place of the chosen trial in the list, from 0 on."""
        return self.release.integers[0]

    @property
    def chosen(self) -> str:
        """The trial of the best run, in words."""
        return self.trials[self.place]

    @property
    def score(self) -> float:
        """The noisy score of the best run, a row: about 0 to 1. The best of several is too good."""
        return float(self._told["score"])

    @property
    def expected_runs(self) -> float:
        """How many runs were to be expected; how many there were is not known."""
        mechanism = as_kind(self.release.mechanism, BestOf)
        return float(mean_runs(mechanism.eta, mechanism.gamma))

    @property
    def _told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.release.found[0])
        return told

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: the chosen trial, what it cost, how it was chosen."""
        told = self.summary()
        return f"{told.title}: {self.chosen}", told.notes[0], told.notes[1]

    def summary(self) -> Summary:
        """Which trial was chosen, what was spent, and what is not known."""
        release, query = self.release, as_kind(self.release.query, HiddenRuns)
        rows = tuple(
            (trial, "chosen" if place == self.place else "")
            for place, trial in enumerate(query.trials)
        )
        noise = float(self._told["noise"])
        return Summary(
            f"Best of hidden runs by {query.score}",
            ("trial", ""),
            rows,
            (
                f"Privacy: {statement.privacy(release.spend, release.guarantee)}, neighbours "
                f"{release.neighbors}; entry {release.entry} of the ledger. About "
                f"{self.expected_runs:.3g} runs were to be expected, each at {_base(query)} with "
                "its score; how many there were, and what the others gave, is not known.",
                f"Score of the best run: {self.score:.3f} a row with noise of {noise:.2g}, on the "
                "rows of the fit; the best of several is too good.",
                "Intervals of its fit are those of one run: they do not know that it was chosen.",
            ),
        )

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        release = json.loads(self.release.to_json())
        record = {"format": FORMAT, "version": VERSION, "release": release}
        return json.dumps(record, ensure_ascii=False)


def told_of_a_run(fit: Any, score: float, noise: float) -> str:
    """What is kept of a run: its fit, without the places of its releases in the hidden account,
    and its score.
    """
    record = json.loads(fit.to_json())
    for release in record["releases"]:
        release |= {"key": "", "entry": 0, "entry_hash": ""}
    return json.dumps({"fit": record, "score": score, "noise": noise}, ensure_ascii=False)


def fit_text(release: Release) -> str:
    """The JSON text of the best run's fit, as `told_of_a_run` kept it."""
    return json.dumps(json.loads(release.found[0])["fit"], ensure_ascii=False)


def in_its_place(fit: Any, release: Release, spend: Guarantee) -> Any:
    """A fit whose releases are parts of the one release, and that says what all of it cost."""
    place = {"key": release.key, "entry": release.entry, "entry_hash": release.entry_hash}
    parts = tuple(replace(one, **place) for one in fit.releases)
    return replace(fit, releases=parts, facts=replace(fit.facts, spend=spend))


def _base(query: HiddenRuns) -> str:
    return f"μ = {query.base.mu:g}" if query.base.mu else f"ε = {query.base.epsilon:g}"
