"""What dp.median, dp.quantile and dp.quantiles would give for normal values as assumed, and how the
methods compare; no data is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.asking.expected import expected_preview, expected_rows
from discreet.asking.preview import Assumptions, Preview
from discreet.asking.sessions import Session
from discreet.errors import DiscreetError
from discreet.estimators.classical_quantiles import METHODS
from discreet.estimators.forecasts.scale import expected_scale_release
from discreet.inference.quantiles.classical_quantiles import (
    NormalValues,
    bottom_probability,
    expected_error,
)
from discreet.inference.quantiles.quantiles import QuantilesResult, has_search
from discreet.inference.results.summary import Summary, number_text
from discreet.inference.results.told import Told
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.specs.queries.keys import filtered
from discreet.trusted.losses.pricing import Price
from discreet.trusted.release import Question


@dataclass(frozen=True, slots=True, repr=False)
class QuantilePreview(Told):
    """A forecast: free, and made without data.

    `errors` are expected distances from the sample quantile, by method, in the units of the column.
    """

    question: Question
    widths: tuple[float, ...]
    error: float
    errors: dict[str, float]
    bottom: float | None
    price: str
    how_many: int
    assumed: str
    level: float

    @property
    def width(self) -> float:
        """Expected width of the interval; of the widest one, where there are several."""
        return max(self.widths)

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        header = ("method", "expected error", f"{100 * self.level:g}% interval width", "P(⊥)")
        width = number_text(self.width, self.width)
        rows = [("as asked", number_text(self.error, self.error), width, "–")]
        rows += [
            (
                f"{name}, whole spend",
                number_text(error, error),
                "–",
                f"{self.bottom:.2g}" if name == "ptr" and self.bottom is not None else "–",
            )
            for name, error in self.errors.items()
        ]
        asked = self.question.description
        return Summary(
            f"Preview of {asked.estimator} of {asked.column}",
            header,
            tuple(rows),
            (
                (
                    "Expected error: distance from the quantile of the data, by privacy alone. "
                    f"Price: {self.price}. About {self.how_many} like this fit in what is left."
                ),
                f"Assumed: {self.assumed}. Nothing was spent and no data was read.",
            ),
        )

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """Expected errors of the methods side by side; saved if a path is given."""
        from discreet.plots.previews import plot_bars

        asked, words = self.question.description, self.summary().title
        width = number_text(self.width, self.width)
        return plot_bars(
            ["as asked", *(f"{name}, whole spend" for name in self.errors)],
            [self.error, *self.errors.values()],
            f"expected error by privacy alone, in units of {asked.column}",
            f"{100 * self.level:g}% interval {width} wide; {self.assumed}",
            words if title is None else title,
            ax=ax,
            path=path,
        )


def quantile_preview(
    session: Session,
    question: Question | tuple[Question, ...],
    assume: Assumptions,
    level: float,
) -> QuantilePreview | Preview:
    """The forecast of a question about quantiles by searches or by a classical method; of a tree of
    counts, that of one release; of several cells, that of one of them at the price of all.
    """
    if isinstance(question, tuple):
        share = 1 / len(question) if assume.share is None else assume.share
        one = quantile_preview(session, question[0], replace(assume, share=share), level)
        price = Price()
        for cell in question:
            price += session.price(cell)
        words = f"{one.assumed}, one of {len(question)} cells"
        how_many = session.ledger.how_many(price)
        return replace(one, price=str(price), how_many=how_many, assumed=words)
    public, query, mechanism = session.public, question.query, question.mechanism
    if query.kind != "grid counts":
        return expected_preview(session, question, assume, level)
    rows = expected_rows(public, assume)
    model, words = _model(query, rows, assume)
    if has_search(mechanism):
        release, words = expected_scale_release(public, question, rows, assume)
        interval = QuantilesResult(release).confidence_interval(level)
        widths = tuple(float(high - low) for low, high in interval)
        choices: Any = mechanism.stages[::2]
    else:
        ends = query.value(0), query.value(query.size - 1)  # type: ignore[attr-defined]
        widths, choices = (float(ends[1] - ends[0]),), (mechanism,)
        if isinstance(mechanism, InTurn):  # an end, and how many rows hold a value
            choices = mechanism.stages[:1]
    step = query.step  # type: ignore[attr-defined]
    errors, bottom = (
        _compared(session, question, choices[0], model) if len(choices) == 1 else ({}, None)
    )
    price = session.price(question)
    error = max(expected_error(choice, model) for choice in choices) * step
    return QuantilePreview(
        question,
        widths,
        error,
        errors,
        bottom,
        str(price),
        session.ledger.how_many(price),
        words,
        level,
    )


def _model(query: Any, rows: float, assume: Any) -> tuple[NormalValues, str]:
    """Normal values on the column's grid: a quarter of the range as standard deviation,
    if none is assumed.
    """
    grid = query.factor.encoding
    share = (
        1.0
        if not filtered(query.keys)
        else float(assume.share if assume.share is not None else 0.5)
    )
    mean = float(assume.mean if assume.mean is not None else grid.center)
    deviation = (
        float(assume.standard_deviation)
        if assume.standard_deviation is not None
        else grid.high / grid.per_unit / 2
    )
    words = (
        f"{int(rows)} rows, normal with mean {mean:.6g} and standard deviation {deviation:.6g}"
        + (f", a share of {share:.3g} in the filter" if filtered(query.keys) else "")
    )
    return NormalValues(
        max(rows * share, 1.0),
        max(deviation / query.step, 0.5),
        query.size,
        (mean - query.value(0)) / query.step,
    ), words


def _compared(
    session: Session, question: Question, choice: Any, model: NormalValues
) -> tuple[dict[str, float], float | None]:
    """Expected errors of the methods that have a theorem here, each with the whole spend,
    and P(⊥).
    """
    errors: dict[str, float] = {}
    bottom = None
    if question.query.optional or question.description.column is None:
        return errors, bottom
    for name, build in METHODS.items():
        try:
            asked = build(
                session.public,
                question.description.column,
                Fraction(choice.a, choice.b),
                spend=question.spend,
                delta=question.delta or None,
            )
        except DiscreetError:  # no theorem for this relation, or no δ: decided from public facts
            continue
        step = question.query.step  # type: ignore[attr-defined]
        errors[name] = expected_error(asked.mechanism, model) * step
        if name == "ptr":
            bottom = bottom_probability(asked.mechanism, model)
    return errors, bottom
