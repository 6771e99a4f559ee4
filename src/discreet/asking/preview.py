"""What a question would give, before anything is spent:
noise, expected widths, price, how many more like it.

Computed from public facts and the caller's stated assumptions, never from data: the expected
statistic is put through the same inference as a real release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.errors import InvalidParameter
from discreet.estimators import (
    basic,
    distributions,
    matrices,
    questions,
    scale,
    selection,
    selection_questions,
    unbounded,
)
from discreet.estimators.forecasts import quantile as quantile_forecast
from discreet.estimators.forecasts import scale as scale_forecast
from discreet.estimators.forecasts import unbounded as unbounded_forecast
from discreet.estimators.forecasts.selection import selection_preview
from discreet.estimators.open_keys import expected_open_release
from discreet.estimators.proportions import proportion_test, proportion_test_question
from discreet.estimators.quantiles import (
    median,
    median_question,
    quantile,
    quantile_question,
    quantiles,
    quantiles_question,
)
from discreet.exact import rational
from discreet.inference.means.basic import RESULTS
from discreet.inference.results.results import checked_level
from discreet.inference.results.summary import Summary, number_text
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.specs.queries.moments import Moments
from discreet.specs.queries.pairs import PairMoments
from discreet.specs.queries.trees import TreeCounts
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.release import Question, Release
from discreet.trusted.session import PublicFacts, Session

_BUILDERS: dict[Callable[..., Any], Callable[..., Question]] = {
    basic.count: questions.count_question,
    basic.sum: questions.sum_question,
    basic.mean: questions.mean_question,
    basic.variance: questions.variance_question,
    basic.proportion: questions.proportion_question,
    basic.histogram: questions.histogram_question,
    basic.table: questions.table_question,
    distributions.ecdf: distributions.ecdf_question,
    distributions.density: distributions.density_question,
    selection.select: selection_questions.select_question,
    selection.mode: selection_questions.mode_question,
    selection.top: selection_questions.top_question,
    selection.above_threshold: selection_questions.above_threshold_question,
    selection.watch: selection_questions.watch_question,
    proportion_test: proportion_test_question,
    median: median_question,
    quantile: quantile_question,
    quantiles: quantiles_question,
    unbounded.unbounded_mean: unbounded_forecast.unbounded_mean_question,
    unbounded.location: unbounded_forecast.location_question,
    unbounded.truncated_mean: unbounded.truncated_mean_question,
    scale.iqr: scale.iqr_question,
    scale.mad: scale.mad_question,
    matrices.covariance: matrices.covariance_question,
    matrices.correlation: matrices.correlation_question,
}


# procedures of several releases, which forecast themselves
_PROCEDURES: dict[Callable[..., Any], Callable[..., Any]] = {}


def register_procedure(estimator: Callable[..., Any], forecast: Callable[..., Any]) -> None:
    """Lets `preview` forecast a procedure of another package:
    forecast(session, *asked, spend=, assume=, level=, **options).
    """
    _PROCEDURES[estimator] = forecast


@plain.kept()
@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the caller believes about the data; used for the forecast alone."""

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


@dataclass(frozen=True, slots=True)
class Preview:
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

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


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
    estimator: Callable[..., Any],
    *asked: Any,
    spend: Guarantee,
    assume: Assumptions | None = None,
    level: float = 0.95,
    **options: Any,
) -> Any:
    """Forecast an estimator: ``dp.preview(session, dp.mean, "income", spend=dp.GDP(0.1),
    assume=dp.Assumptions(standard_deviation=20_000))``.

    What is not assumed is taken from public facts: the mean at the middle of the range, a standard
    deviation of a quarter of the range, equal shares. Where the number of rows is private,
    `Assumptions(rows=…)` is needed. A selection is forecast by the bound on its score gap, which
    needs no assumption (`SelectionPreview`).
    """
    if callable(estimator) and estimator in _PROCEDURES:
        options.pop("key", None)
        return _PROCEDURES[estimator](
            session,
            *asked,
            spend=spend,
            assume=assume or Assumptions(),
            level=checked_level(level),
            **options,
        )
    if not callable(estimator) or estimator not in _BUILDERS:
        raise InvalidParameter(
            "preview",
            "this is not an estimator that can be previewed",
            "a forecast needs its noise",
            "pass one of "
            + ", ".join(f"dp.{known.__name__}" for known in (*_BUILDERS, *_PROCEDURES)),
        )
    options.pop("key", None)
    question = _BUILDERS[estimator](session.public, *asked, spend=spend, **options)
    if question.query.kind == "scores":
        return selection_preview(session, question, level)
    believed = assume or Assumptions()
    if (
        question.description.estimator in quantile_forecast.ESTIMATORS
        and question.query.kind == "grid counts"
    ):
        return quantile_forecast.quantile_preview(session, question, believed, level)
    if question.description.estimator in unbounded_forecast.ESTIMATORS:
        return unbounded_forecast.unbounded_preview(session, question, believed, level)
    release, text = expected_release(session.public, question, believed)
    quantities = RESULTS[question.description.estimator](release).quantities(checked_level(level))
    forecasts = tuple(
        Forecast(
            quantity.name,
            float(np.sqrt(np.median(quantity.privacy_variance))),
            float(np.median(quantity.std_error)),
            float(np.median(quantity.high - quantity.low)),
            float(np.median(quantity.noise_share)),
        )
        for quantity in quantities
    )
    price = session.price(question)
    return Preview(question, forecasts, str(price), session.ledger.how_many(price), text, level)


def expected_release(
    public: PublicFacts, question: Question, assume: Assumptions
) -> tuple[Release, str]:
    """The release that data as assumed would give without noise, and the assumptions in words."""
    if question.query.kind == "open counts":
        return expected_open_release(public, question, rows=assume.rows, share=assume.share)
    rows = public.rows if public.rows is not None else assume.rows
    if rows is None:
        raise InvalidParameter(
            "preview",
            "the number of rows is private here",
            "the forecast needs one",
            "pass assume=dp.Assumptions(rows=…) with your own guess",
        )
    query = question.query
    if question.description.estimator in scale_forecast.ESTIMATORS:
        return scale_forecast.expected_scale_release(public, question, float(rows), assume)
    texts = [f"{int(rows)} rows"]
    if isinstance(query, Moments):
        sums, words = _expected_moments(query, float(rows), assume)
        statistic = query.assemble(sums)
        texts.append(words)
    elif isinstance(query, PairMoments):
        statistic, words = matrices.expected_pairs(query, float(rows), assume)
        texts.append(words)
    elif isinstance(query, TreeCounts):
        statistic, words = distributions.expected_tree(query, float(rows), assume)
        texts.append(words)
    else:
        cells = query.size
        first = (
            assume.share
            if assume.share is not None
            else (
                0.5
                if cells <= 2 and question.description.estimator in ("count", "proportion")
                else 1 / cells
            )
        )
        shares = np.full(cells, (1 - first) / max(cells - 1, 1))
        shares[0] = first
        statistic = [round(float(rows) * float(share)) for share in shares]
        texts.append(f"a share of {first:.3g}" + (" in the first cell" if cells > 1 else ""))
    assert isinstance(question.mechanism, (AdditiveNoise, CutTulapNoise, SymmetricGaussianNoise))
    cut = 1 << question.mechanism.refinement
    count = public.count if public.count is not None else None
    return Release(
        question.description,
        query,
        question.mechanism,
        tuple(value * cut for value in statistic),
        public.neighbors,
        question.spend,
        guarantee_of(question.mechanism),
        count,
        "preview",
        0,
        "",
    ), ", ".join(texts)


def _expected_moments(query: Moments, rows: float, assume: Assumptions) -> tuple[Any, str]:
    """Expected power sums of codes by cell, of a normal law with the assumed mean and standard
    deviation.
    """
    encoding = query.factor.encoding
    half_range = encoding.high * float(encoding.step)
    deviation = float(
        assume.standard_deviation if assume.standard_deviation is not None else half_range / 2
    )
    mean = float(assume.mean if assume.mean is not None else encoding.center)
    m, s = (mean - encoding.center) * encoding.per_unit, deviation * encoding.per_unit
    share = (
        float(assume.share)
        if assume.share is not None
        else (1 / query.cells if query.cells > 1 or not query.optional else 0.5)
    )
    powers = (1.0, m, m**2 + s**2, m**3 + 3 * m * s**2, m**4 + 6 * m**2 * s**2 + 3 * s**4)[
        : query.design.degree + 1
    ]
    sums = np.array(
        [[round(rows * share * power) for power in powers] for _ in range(query.cells)],
        dtype=object,
    )
    return sums, f"mean {mean:.6g}, standard deviation {deviation:.6g}" + (
        f", a share of {share:.3g} in a cell" if query.cells > 1 or query.optional else ""
    )
