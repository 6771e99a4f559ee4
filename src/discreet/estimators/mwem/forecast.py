"""What a run of dp.mwem would measure, before anything is spent: from public facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.accounting.guarantees import Guarantee
from discreet.asking.expected import expected_rows, imagined_release
from discreet.asking.preview import Assumptions
from discreet.asking.sessions import Session
from discreet.estimators.mwem.mwem import PAIRS, Queries, plan_of
from discreet.inference.counts.selection import score_gap_steps
from discreet.inference.mwem.fitting import REPLAY
from discreet.inference.results.laws import Noise, half_width
from discreet.inference.results.summary import Summary, number_text
from discreet.inference.results.told import Told
from discreet.specs.mechanisms.additive import AdditiveNoise, GaussianNoise
from discreet.trusted.losses.pricing import price_of_spend


@dataclass(frozen=True, slots=True, repr=False)
class MwemPreview(Told):
    """A forecast of dp.mwem: free, and made without data.

    `gap` is how many rows a chosen query can be behind the one that is missed most, `noise` the
    standard deviation of a count, `width` the width of a measured count's interval, about the data.
    """

    queries: int
    rounds: int
    gap: float
    noise: float
    width: float
    rows: float
    spend: Guarantee
    price: str
    how_many: int
    level: float

    def summary(self) -> Summary:
        lines = (
            ("a choice is behind the query that is missed most by at most", self.gap),
            ("noise s.d. of a measured count", self.noise),
            ("interval width of a measured count", self.width),
        )
        rows = tuple(
            (words, number_text(value, value / 10), f"{100 * value / self.rows:.3g}")
            for words, value in lines
        )
        return Summary(
            "Preview of multiplicative weights",
            (f"in a round ({100 * self.level:g}%)", "rows", "% of the rows"),
            rows,
            (
                (
                    f"{self.queries} queries, {self.rounds} rounds, together {self.spend}. Price: "
                    f"{self.price}. About {self.how_many} like this fit in what is left."
                ),
                (
                    f"Assumed: {self.rows:g} rows. Nothing was spent and no data was read. How far "
                    "the table is off elsewhere cannot be forecast."
                ),
            ),
        )

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """The three numbers as bars; saved if a path is given."""
        from discreet.plots.previews import plot_bars

        shown = self.summary()
        return plot_bars(
            ["behind the best", "noise s.d.", "interval width"],
            [self.gap, self.noise, self.width],
            "rows",
            f"spend {self.spend}; for every data set",
            shown.title if title is None else title,
            ax=ax,
            path=path,
        )


def mwem_preview(
    session: Session,
    columns: Sequence[str],
    *,
    bins: Mapping[str, object] | None = None,
    queries: Queries = PAIRS,
    rounds: int = 10,
    spend: Guarantee,
    variant: str = REPLAY,
    assume: Assumptions,
    level: float,
) -> MwemPreview:
    """The forecast of a run: its first round, which is as all others are."""
    plan = plan_of(session.public, columns, bins, queries, rounds, spend, variant)
    even = np.full(plan.domain.sizes, 1.0)
    choice, count = plan.choice(plan.workload, even, 1), plan.count(plan.workload.box(0), 1)
    noise = count.mechanism
    assert isinstance(noise, AdditiveNoise)
    fourth = 0.0 if isinstance(noise, GaussianNoise) else float(noise.spread) ** 4
    half = float(half_width(level, np.float64(0), Noise(noise.variance, fourth)))
    price = price_of_spend(spend, box=session.ledger.box)
    return MwemPreview(
        plan.workload.size,
        rounds,
        score_gap_steps(imagined_release(session.public, choice, (0,)), level),
        noise.variance**0.5,
        2 * half,
        expected_rows(session.public, assume),
        spend,
        str(price),
        session.ledger.how_many(price),
        level,
    )
