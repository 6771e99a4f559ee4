"""What a posterior or a draw of one would give, before anything is spent: from public facts and
what the caller assumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import Where
from discreet.asking.expected import expected_release
from discreet.asking.preview import Assumptions, Forecast, Preview
from discreet.asking.sessions import Session
from discreet.estimators.bayes.posterior import posterior_question
from discreet.estimators.bayes.posterior_sample import sampling_of
from discreet.inference.posteriors.families import Family
from discreet.inference.posteriors.results import PosteriorResult
from discreet.inference.posteriors.samples import SampleFacts
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told
from discreet.specs.likelihoods import UNIT_BITS
from discreet.specs.mechanisms.selection import ExponentialChoice
from discreet.trusted.losses.pricing import guarantee_of, price_of_spend
from discreet.trusted.release import Question


def posterior_preview(
    session: Session,
    family: Family,
    *,
    spend: Guarantee,
    assume: Assumptions,
    level: float,
    naive: bool = False,
    where: Where | None = None,
) -> Preview:
    """The posterior of the release that is expected of rows as assumed."""
    question = posterior_question(session.public, family, spend=spend, where=where)
    release, words = expected_release(session.public, question, assume)
    result = PosteriorResult(release, family, naive)
    ends, shares = result.credible_interval(level), np.nan_to_num(result.noise_share)
    forecasts = tuple(
        Forecast(
            name,
            float(deviation * np.sqrt(share)),
            float(deviation),
            float(high - low),
            float(share),
        )
        for name, deviation, share, (low, high) in zip(
            result.names, result.deviations, shares, ends, strict=True
        )
    )
    price = session.price(question)
    many = session.ledger.how_many(price)
    return Preview(question, forecasts, str(price), many, words, level)


@dataclass(frozen=True, slots=True, repr=False)
class SamplePreview(Told):
    """A forecast of draws: free, and made without data."""

    question: Question
    facts: SampleFacts
    samples: int
    price: str
    how_many: int

    @property
    def temper(self) -> float:
        """The power of the likelihood that the spend affords."""
        mechanism = self.question.mechanism
        assert isinstance(mechanism, ExponentialChoice)
        return float(mechanism.rate * (1 << UNIT_BITS))

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        row = (str(self.samples), str(len(self.facts.points)), f"{self.temper:.3g}")
        notes = (
            f"Each draw: {guarantee_of(self.question.mechanism)}. Price of all: {self.price}. "
            f"About {self.how_many} like this fit in what is left.",
            "It holds for every data set. Nothing was spent and no data was read.",
        )
        return Summary(
            "Preview of posterior_sample",
            ("draws", "points", "power of the likelihood"),
            (row,),
            notes,
        )

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """The power of the likelihood beside that of the posterior; saved if a path is given."""
        from discreet.plots.previews import plot_bars

        return plot_bars(
            ["as asked", "the posterior itself"],
            [self.temper, 1.0],
            "power of the likelihood",
            f"spend {self.facts.spend}; {self.samples} draws",
            self.summary().title if title is None else title,
            ax=ax,
            path=path,
        )


def sample_preview(
    session: Session,
    family: Family,
    *,
    grid: Sequence[Any],
    samples: int = 1,
    spend: Guarantee,
    assume: Assumptions,
    level: float,
    where: Where | None = None,
) -> SamplePreview:
    """What draws would be drawn from; nothing needs to be assumed."""
    sampling = sampling_of(
        session.public, family, grid=grid, samples=samples, spend=spend, where=where
    )
    price = (
        session.price(sampling.question)
        if samples == 1
        else price_of_spend(spend, box=session.ledger.box)
    )
    many = session.ledger.how_many(price)
    return SamplePreview(sampling.question, sampling.facts, samples, str(price), many)
