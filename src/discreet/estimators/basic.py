"""Public functions: the session first, what is asked second, the rest by keyword;
`spend` is always explicit.

*Method*: one joint, exact integer statistic with exact noise; `PureDP` spends use Laplace or
two-sided geometric noise, all others Gaussian. Intervals contain sampling and privacy error both,
and nothing is clamped before them.
*Validity* is stated by each result class in `discreet.inference`. With a `key`, asking
again returns the stored answer at no cost.
"""

from __future__ import annotations

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import By, Where
from discreet.asking.sessions import Session, opened
from discreet.estimators import questions
from discreet.inference.counts.open_keys import OpenTableResult
from discreet.inference.counts.results import (
    CountResult,
    HistogramResult,
    ProportionResult,
    TableResult,
)
from discreet.inference.means.results import MeanResult, SumResult, VarianceResult


def _open(session: object) -> Session:
    return opened(session)


@plain.door
def count(
    session: Session, *, spend: Guarantee, where: Where | None = None, key: str | None = None
) -> CountResult:
    """The number of rows, or of rows in a subset (``where={"region": "N", "age": (18, 30)}``; an
    end that is None is the declared one).
    """
    return CountResult(
        _open(session).release(
            questions.count_question(_open(session).public, spend=spend, where=where), key=key
        )
    )


@plain.door
def sum(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> SumResult:
    """The total of a number column."""
    return SumResult(
        _open(session).release(
            questions.sum_question(_open(session).public, column, spend=spend, where=where), key=key
        )
    )


@plain.door
def mean(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> MeanResult:
    """The mean of a number column (reference.md F1, F4)."""
    return MeanResult(
        _open(session).release(
            questions.mean_question(_open(session).public, column, spend=spend, where=where),
            key=key,
        )
    )


@plain.door
def variance(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    by: By | None = None,
    where: Where | None = None,
    key: str | None = None,
) -> VarianceResult:
    """The variance of a number column (reference.md F2); with `by` (as for `dp.table`) of every
    cell by itself, out of one release.
    """
    question = questions.variance_question(
        _open(session).public, column, spend=spend, by=by, where=where
    )
    return VarianceResult(_open(session).release(question, key=key))


@plain.door
def proportion(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    level: object = None,
    where: Where | None = None,
    noise: str | None = None,
    key: str | None = None,
) -> ProportionResult:
    """The share of rows that are True (Boolean) or have `level` (Category) (reference.md M1, M2).

    ``noise="tulap"`` draws Tulap noise for a pure spend, and for ``dp.ApproxDP(ε, δ)`` Tulap noise
    cut so that the release is (ε, δ)-DP (reference.md M3), where the number of rows is public; that
    needs a ledger with as much pure ε and δ₀: ``data.open(budget=dp.ApproxDP(1, 1e-6), pure=0.9,
    delta0=9e-7)``.
    """
    return ProportionResult(
        _open(session).release(
            questions.proportion_question(
                _open(session).public, column, spend=spend, level=level, where=where, noise=noise
            ),
            key=key,
        )
    )


@plain.door
def histogram(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    bins: object = None,
    where: Where | None = None,
    key: str | None = None,
) -> HistogramResult:
    """Counts and shares of a column's levels, or of bins of a number column (reference.md F3).

    `bins` is a number of equal bins over the declared range (20 by default) or increasing edges.
    Shares are of all rows where their number is public and no filter is set, else of the rows that
    fall in a bin or have a declared level.
    """
    return HistogramResult(
        _open(session).release(
            questions.histogram_question(
                _open(session).public, column, spend=spend, bins=bins, where=where
            ),
            key=key,
        )
    )


@plain.door
def table(
    session: Session,
    column: str | None = None,
    *,
    by: By,
    spend: Guarantee,
    where: Where | None = None,
    delta: float | None = None,
    key: str | None = None,
) -> TableResult | OpenTableResult:
    """Counts and shares, and the means of a column if one is named, by declared categories or bins.

    `by` is a column, a list of columns, or a mapping from columns to bins: ``by={"region": None,
    "age": [18, 40, 65, 90]}``. Where `by` names a column that is declared as `Open`, the keys are
    found in the data: counts alone, of the keys whose noisy count reaches a threshold, so that a
    key which one unit alone holds is shown with probability at most `delta` (default: a tenth of an
    (ε, δ) spend's own).
    """
    release = _open(session).release(
        questions.table_question(
            _open(session).public, column, by=by, spend=spend, where=where, delta=delta
        ),
        key=key,
    )
    return (
        OpenTableResult(release)
        if release.description.estimator == "open table"
        else TableResult(release)
    )
