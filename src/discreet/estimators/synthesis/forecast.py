"""What dp.synthesize would give: the noise of every table, and the widths of the declared analyses'
intervals; no data is read.

Which pairs a synthesis chooses is not known beforehand. The noise of the last release is told for
the declared tables alone, and with half of all pairs beside them (all, where they are few); widths
are those of the second, for columns that are independent, with all cells alike and no row without a
value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.accounting.guarantees import Guarantee
from discreet.asking.expected import expected_rows
from discreet.asking.preview import Assumptions, Forecast, forecast_summary
from discreet.asking.sessions import Session
from discreet.estimators.synthesis.synthesize import SynthesisPlan, plan_of
from discreet.inference.results.laws import Array
from discreet.inference.results.summary import Summary, number_text
from discreet.inference.results.told import Told
from discreet.inference.synthesis.answers import TablesAnswer, Variances
from discreet.inference.synthesis.equations import one_step
from discreet.inference.synthesis.formulas import columns_asked, formula_of
from discreet.inference.synthesis.model import Noisy
from discreet.inference.synthesis.trees import Clique, cell_count
from discreet.inference.synthesis.unbiased import NoisyTables
from discreet.trusted.losses.pricing import price_of_spend
from discreet.trusted.release import Question


@dataclass(frozen=True, slots=True)
class TableNoise:
    """The noise in a cell of one table: at its least, and with further tables beside it."""

    columns: str
    cells: int
    least: float
    most: float


@dataclass(frozen=True, slots=True, repr=False)
class SynthesisPreview(Told):
    """A forecast: free, and made without data."""

    tables: tuple[TableNoise, ...]
    spend: Guarantee
    forecasts: tuple[Forecast, ...]
    price: str
    how_many: int
    assumed: str
    level: float

    @property
    def width(self) -> float:
        """The expected width of the last number's interval."""
        return self.forecasts[-1].width

    def noise_table(self) -> Summary:
        """The standard deviation of the noise in a cell of every table."""
        rows = tuple(
            (
                one.columns,
                str(one.cells),
                number_text(one.least, one.least / 10),
                number_text(one.most, one.most / 10),
            )
            for one in self.tables
        )
        header = ("measured together", "cells", "noise s.d. of a count", "with pairs beside")
        return Summary("Noise of the tables of a synthesis", header, rows)

    def summary(self) -> Summary:
        """Widths of the declared analyses, and the noise of every table below."""
        noise = "; ".join(
            f"{one.columns}: {number_text(one.least, one.least / 10)}"
            + ("" if one.least == one.most else f" … {number_text(one.most, one.most / 10)}")
            for one in self.tables
        )
        spent = (
            f"3 releases, together {self.spend}. Price: {self.price}. About {self.how_many} like "
            f"this fit in what is left. Noise s.d. in a cell's count: {noise} (noise_table())."
        )
        return forecast_summary("Preview of a synthesis", "quantity", self, spent)

    def plot(
        self, *, ax: object = None, title: str | None = None, path: str | None = None
    ) -> object:
        """Expected widths beside those without privacy, and at other spends; saved if a path is
        given.
        """
        from discreet.plots.previews import plot_forecasts

        words = self.summary().title
        return plot_forecasts(self, words, str(self.spend), ax=ax, title=title, path=path)


def synthesis_preview(
    session: Session,
    columns: Sequence[str],
    *,
    bins: Mapping[str, object] | None = None,
    analyses: Sequence[str] = (),
    spend: Guarantee,
    assume: Assumptions,
    level: float,
) -> SynthesisPreview:
    """The forecast of a synthesis, table by table and analysis by analysis."""
    plan = plan_of(session.public, columns, bins, analyses, spend)
    rows = expected_rows(session.public, assume)
    others = [pair for pair in plan.pairs if pair not in plan.declared]
    beside = tuple(others[:: 1 if len(others) <= 2 * len(plan.axes) else 2])
    first = _noise(plan.one_way())
    alone = _noise(plan.tables(plan.declared)) if plan.declared else {}
    crowded = _noise(plan.tables((*plan.declared, *beside)))
    told = [TableNoise(_words(plan, one), _cells(plan, one), s, s) for one, s in first.items()]
    told += [
        TableNoise(_words(plan, one), _cells(plan, one), s, crowded[one])
        for one, s in alone.items()
    ]
    tables = _expected(plan, {**first, **{one: crowded[one] for one in plan.declared}}, rows)
    price = price_of_spend(spend, box=session.ledger.box)
    return SynthesisPreview(
        tuple(told),
        spend,
        tuple(one for asked in analyses for one in _forecast(plan, tables, asked, level))
        or tuple(_cell(plan, tables, one, level) for one in first),
        str(price),
        session.ledger.how_many(price),
        f"{int(rows)} rows, independent columns with all levels and bins alike, {len(beside)} "
        "pairs chosen beside what is declared",
        level,
    )


def _noise(question: Question) -> dict[Clique, float]:
    """The standard deviation of a cell's noise in each table of a question."""
    query, noise = question.query, question.mechanism
    spread = math.sqrt(noise.variance)  # type: ignore[attr-defined]
    pairs = zip(query.tables, query.weights, strict=True)  # type: ignore[attr-defined]
    return {table: spread / weight for table, weight in pairs}


def _expected(plan: SynthesisPlan, sigmas: dict[Clique, float], rows: float) -> NoisyTables:
    """The tables that alike cells would give without noise."""
    sizes = plan.domain.sizes
    measured = {one: Noisy(rows * _alike(plan, one), sigma) for one, sigma in sigmas.items()}
    public = plan.public.rows
    return NoisyTables(sizes, measured, None if public is None else round(rows))


def _forecast(
    plan: SynthesisPlan, tables: NoisyTables, asked: object, level: float
) -> list[Forecast]:
    """Coefficients of a formula, or a cell of a table."""
    if not (isinstance(asked, str) and "~" in asked):
        return [_cell(plan, tables, columns_asked(asked, plan.domain), level)]
    formula = formula_of(asked, plan.domain)
    names, equation = formula.equation()
    found = one_step(equation, tables, _alike(plan, formula.columns))
    cluster = plan.public.neighbors.rows
    answer = TablesAnswer(
        asked, names, found.beta, Variances(cluster * found.sampling, found.privacy)
    )
    return [_told(f"{formula.title}: {name}", answer, name, level) for name in names]


def _cell(plan: SynthesisPlan, tables: NoisyTables, columns: Clique, level: float) -> Forecast:
    """The share of one cell of a table."""
    share = float(_alike(plan, columns).max())
    noise = tables.cell_variance(columns, share) / tables.rows**2
    variances = Variances(
        np.array([float(plan.public.neighbors.rows)]),
        np.atleast_1d(noise),
        wilson=np.array([tables.rows]),
    )
    words = _words(plan, columns)
    answer = TablesAnswer(words, (words,), np.array([share]), variances, (0.0, 1.0))
    return _told(f"{words}: share of a cell", answer, words, level)


def _told(words: str, answer: TablesAnswer, name: str, level: float) -> Forecast:
    one = answer.entry(name, level)
    place = answer.names.index(name)
    noise = float(answer.privacy_errors[place])
    return Forecast(words, noise, one.std_error, one.high - one.low, one.noise_share)


def _alike(plan: SynthesisPlan, columns: Clique) -> Array:
    """Shares of cells that are alike, and none of rows without a value."""
    held = [plan.domain.cuts[place].held for place in columns]
    law = np.ones(())
    for one in held:
        law = np.multiply.outer(law, one / one.sum())
    return law


def _cells(plan: SynthesisPlan, columns: Clique) -> int:
    return cell_count(plan.domain.sizes, columns)


def _words(plan: SynthesisPlan, columns: Clique) -> str:
    return plan.domain.words(columns)
