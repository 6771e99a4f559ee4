"""What a question would give, before anything is spent:
noise, expected widths, price, how many more like it.

Computed from public facts and the caller's stated assumptions, never from data. Which estimators
there are, and what forecasts each of them, is said by their records (records.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.records import RECORDS, Record, record_of, resolve
from discreet.asking.release_plans import ReleasePlan
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter
from discreet.exact import rational
from discreet.inference.results.results import Quantity, checked_level
from discreet.inference.results.summary import Summary, number_text
from discreet.inference.results.told import Told
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.release import Question


@plain.kept()
@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the caller believes about the data; used for the forecast alone.

    Example.
            session = dp.load_visits().open(budget=dp.GDP(1))
            guess = dp.Assumptions(rows=6000, mean=36, standard_deviation=30)
            print(dp.preview(session, dp.mean, "hours", spend=dp.GDP(0.3), assume=guess))
    See also. `dp.preview`.
    """

    rows: float | None = None
    mean: float | None = None
    standard_deviation: float | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        for name in ("rows", "mean", "standard_deviation", "share"):
            value = getattr(self, name)
            if value is not None:
                number = float(rational(value, name))
                if (
                    (name == "rows" and number < 1)
                    or (name == "standard_deviation" and number <= 0)
                    or (name == "share" and not 0 <= number <= 1)
                ):
                    raise InvalidParameter(
                        f"{name}=",
                        "outside its domain",
                        "it is an assumption about the data",
                        "rows ≥ 1, standard_deviation > 0, share between 0 and 1",
                    )


@dataclass(frozen=True, slots=True)
class Forecast:
    """One quantity's forecast in a typical cell, in the units of the data."""

    quantity: str
    noise: float
    std_error: float
    width: float
    noise_share: float


def forecasts_of(quantities: Iterable[Quantity]) -> tuple[Forecast, ...]:
    """The forecast of each quantity in its typical cell: medians over the cells."""
    return tuple(
        Forecast(
            quantity.name,
            float(np.sqrt(np.median(quantity.privacy_variance))),
            float(np.median(quantity.std_error)),
            float(np.median(quantity.high - quantity.low)),
            float(np.median(quantity.noise_share)),
        )
        for quantity in quantities
    )


@dataclass(frozen=True, slots=True, repr=False)
class Preview(Told):
    """A forecast: free, and made without data."""

    question: Question
    forecasts: tuple[Forecast, ...]
    price: str
    how_many: int
    assumed: str
    level: float

    @property
    def noise(self) -> float:
        """Standard deviation of the privacy noise in the main quantity."""
        return self.forecasts[-1].noise

    @property
    def width(self) -> float:
        """Expected width of the main quantity's interval."""
        return self.forecasts[-1].width

    def summary(self) -> Summary:
        asked = self.question.description
        return forecast_summary(
            f"Preview of {asked.estimator}" + (f" of {asked.column}" if asked.column else ""),
            "quantity",
            self,
            f"Noise: {self.question.mechanism.kind}, {guarantee_of(self.question.mechanism)}. "
            f"Price: {self.price}. About {self.how_many} like this fit in what is left.",
        )

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """Expected widths beside those without privacy, and at other spends; saved if a path is
        given.
        """
        from discreet.plots.previews import plot_forecasts

        words, spend = self.summary().title, str(self.question.spend)
        return plot_forecasts(self, words, spend, ax=ax, title=title, path=path)


def forecast_summary(title: str, first: str, shown: Any, spent: str) -> Summary:
    """The table of a preview: `shown` has forecasts, level and assumed; `first` heads its first
    column, `spent` says noise and price.
    """
    header = (
        first,
        "noise s.d.",
        "std. error",
        f"{100 * shown.level:g}% interval width",
        "noise %",
    )
    rows = tuple(
        (
            item.quantity,
            *(number_text(value, value) for value in (item.noise, item.std_error, item.width)),
            f"{100 * item.noise_share:.0f}",
        )
        for item in shown.forecasts
    )
    return Summary(
        title,
        header,
        rows,
        (spent, f"Assumed: {shown.assumed}. Nothing was spent and no data was read."),
    )


@plain.door
def preview(
    session: Session,
    estimator: Callable[..., Any] | ReleasePlan,
    *asked: Any,
    spend: Guarantee | None = None,
    assume: Assumptions | None = None,
    level: float = 0.95,
    **options: Any,
) -> Any:
    """Forecast an estimator: ``dp.preview(session, dp.mean, "income", spend=dp.GDP(0.1),
    assume=dp.Assumptions(standard_deviation=20_000))``.

    What is not assumed is taken from public facts: the mean at the middle of the range, a standard
    deviation of a quarter of the range, equal shares. Where the number of rows is private,
    `Assumptions(rows=…)` is needed. A selection is forecast by the bound on its score gap, which
    needs no assumption (`SelectionPreview`). `level` is that of the intervals; a level of a column
    (no float) is handed to an estimator that takes one. A plan (`dp.read_plan`) has its own spends
    and assumptions: ``dp.preview(session, plan)`` checks and forecasts all of it.

    Price.    None: no data are read.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            guess = dp.Assumptions(standard_deviation=30_000)
            print(dp.preview(session, dp.mean, "income", spend=dp.GDP(0.1), assume=guess))
    See also. `dp.Assumptions`, `dp.rows_needed`, `dp.power`; docs/how-to/budgets.md.
    """
    if type(estimator) is ReleasePlan:
        return estimator.preview(session, level=level)
    record = record_of(estimator)
    if record is None:
        raise InvalidParameter(
            "preview",
            "this is not an estimator that can be previewed",
            "a forecast needs its noise",
            "pass one of " + ", ".join(f"dp.{known.name}" for known in RECORDS),
        )
    if (
        type(level) is not float
        and "level" in inspect.signature(resolve(record.function)).parameters
    ):
        level, options = 0.95, {**options, "level": level}  # whose share is asked for
    options.pop("key", None)
    return forecast_of(record, session, *asked, spend=spend, assume=assume, at=level, **options)


def forecast_of(
    record: Record,
    session: Session,
    *asked: Any,
    spend: Guarantee | None,
    assume: Assumptions | None,
    at: float,
    **options: Any,
) -> Any:
    """The forecast of a record's estimator, with intervals `at` a level; `options` are the
    estimator's own, of which one may be called level.
    """
    if assume is not None and type(assume) is not Assumptions:
        raise InvalidParameter(
            "assume=",
            f"a {plain.kind_name(assume)} states no assumptions",
            "a forecast is made from them, and from public facts",
            "pass for example assume=dp.Assumptions(standard_deviation=20_000)",
        )
    forecast, believed, level = resolve(record.forecast), assume or Assumptions(), checked_level(at)
    if not record.question:
        return forecast(session, *asked, spend=spend, assume=believed, level=level, **options)
    question = resolve(record.question)(session.public, *asked, spend=spend, **options)
    return forecast(session, question, believed, level)
