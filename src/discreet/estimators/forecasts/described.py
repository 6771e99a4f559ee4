"""What dp.describe would give for normal values as assumed; no data is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.accounting.guarantees import Guarantee
from discreet.asking.expected import expected_release, expected_rows
from discreet.asking.preview import Assumptions, Forecast, forecast_summary
from discreet.asking.sessions import Session
from discreet.estimators.describe import describe_questions
from discreet.estimators.forecasts.scale import expected_scale_release
from discreet.inference.means.described import DescribeResult
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.trusted.losses.pricing import price_of_spend
from discreet.trusted.release import Question, Release


@dataclass(frozen=True, slots=True, repr=False)
class DescribePreview(Told):
    """A forecast: free, and made without data."""

    questions: tuple[Question, ...]
    spend: Guarantee
    forecasts: tuple[Forecast, ...]
    price: str
    how_many: int
    assumed: str
    level: float

    @property
    def width(self) -> float:
        """Expected width of the interval of the last column's mean."""
        return self.forecasts[-1].width

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        spent = (
            f"{len(self.questions)} releases, together {self.spend}. Price: {self.price}. About "
            f"{self.how_many} like this fit in what is left."
        )
        return forecast_summary("Preview of a description", "quantity", self, spent)

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """Expected widths beside those without privacy, and at other spends; saved if a path is
        given.
        """
        from discreet.plots.previews import plot_forecasts

        words = self.summary().title
        return plot_forecasts(self, words, str(self.spend), ax=ax, title=title, path=path)


def describe_preview(
    session: Session,
    columns: str | Sequence[str] | None = None,
    *,
    spend: Guarantee,
    assume: Assumptions,
    level: float,
) -> DescribePreview:
    """The forecast of a description, number by number."""
    questions = describe_questions(session.public, columns, spend=spend)
    rows = expected_rows(session.public, assume)
    releases = [_expected(session, question, rows, assume) for question in questions]
    result = DescribeResult(releases[-1], tuple(releases[:-1]))
    forecasts = tuple(
        Forecast(
            f"{column}: {one.name}",
            float(one.privacy_variance[place] ** 0.5),
            float(one.std_error[place]),
            float(one.high[place] - one.low[place]),
            float(one.noise_share[place]),
        )
        for place, column in enumerate(result.columns)
        for one in result.quantities(level)
    )
    price = price_of_spend(spend, box=session.ledger.box)
    return DescribePreview(
        questions,
        spend,
        forecasts,
        str(price),
        session.ledger.how_many(price),
        f"{int(rows)} rows, columns that are normal about the middle of their range with a quarter "
        "of it as standard deviation, unless assumed otherwise",
        level,
    )


def _expected(session: Session, question: Question, rows: float, assume: Assumptions) -> Release:
    """The release that normal values would give without noise."""
    if isinstance(question.mechanism, InTurn):
        return expected_scale_release(session.public, question, rows, assume)[0]
    return expected_release(session.public, question, assume)[0]
