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

    Formula.
            estimate = N + Z

            N  rows that are kept
            Z  noise of deviation 1/μ (a GDP spend) or scale 1/ε (a pure one)

    Validity. Intervals for the population take rows as independent; those of ``target="data"``
              hold for every data set.
    Price.    The spend, once a key. Under `dp.Replace` the number of all rows is public: ask
              about a subset.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            young = dp.count(session, where={"age": (18, 30)}, spend=dp.GDP(0.1))
            print(young.summary())
    See also. `dp.proportion`, `dp.histogram`, `dp.table`.
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
    """The total of a number column.

    Formula.
            estimate = Σ xᵢ + Z

            xᵢ  cells with a value, clamped to the declared range
            Z   noise of deviation (high − low)/μ under Replace, of scale (high − low)/ε where pure

    Validity. As the mean's. Values outside the declared range count as the nearest bound.
    Price.    The spend, once a key. A range twice as wide costs twice the noise.
    Example.
            session = dp.load_visits().open(budget=dp.GDP(1))
            print(dp.sum(session, "hours", where={"urgent": True}, spend=dp.GDP(0.3)))
    See also. `dp.mean`, `dp.count`.
    """
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
    """The mean of a number column (reference.md F1, F4).

    Formula.
            estimate = (Σ xᵢ + Z) / N,   standard error² = (s² + noise) / N

            xᵢ  cells with a value, clamped to the declared range [low, high]
            Z   noise of deviation (high − low)/μ under Replace, of scale (high − low)/ε where pure
            N   how many hold a value, released beside the sum unless it is public
            s²  the variance of rows, released beside the sum at no further cost

    Validity. Independent rows (or units). The interval contains sampling and privacy error; values
              outside the declared range count as the nearest bound (docs/theory/intervals.md).
    Price.    The spend, once a key. Noise moves the mean by about (high − low)/(N·μ): choose the
              range as tight as public knowledge allows.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            income = dp.mean(session, "income", spend=dp.GDP(0.1), key="mean income")
            print(income.summary())
            print(income.interval, income.noise_share)
    See also. `dp.sum`, `dp.table` for groups, `dp.trimmed_mean` and `dp.unbounded_mean` where the
              range is wide, `dp.mean_test`, `dp.preview`.
    """
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

    Formula.
            v = Σ (xᵢ − m)² / (N − 1),   standard error² ≈ (μ₄ − v²) / N + noise

            m   the mean of the same release
            μ₄  the fourth moment, released with it

    Validity. Independent rows with a fourth moment; no shape is assumed.
    Price.    The spend, once a key: four sums are one release (docs/theory/moments.md).
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.variance(session, "age", spend=dp.GDP(0.2)))
    See also. `dp.std`, `dp.iqr`, `dp.mad`, `dp.covariance`.
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

    Formula.
            p = (X + Z) / N

            X  rows that are True, or have the level
            Z  noise of deviation 1/μ, scale 1/ε where pure
            N  rows with a value: public, or released beside X

    Validity. Independent rows. Coverage is exact where the number of rows is public
              (docs/theory/binomial.md).
    Price.    The spend, once a key. The noise does not depend on a range: shares are cheap.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            graduates = dp.proportion(session, "education", level="degree", spend=dp.GDP(0.05))
            print(graduates.summary())
    See also. `dp.proportion_test`, `dp.compare`, `dp.histogram`, `dp.posterior`.
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

    Formula.
            count = Nₖ + Z,   share = count / N

            Z  noise of deviation 1/μ (√2/μ where a row may move between bins), however many
               bins there are

    Validity. Intervals are for one cell at a time.
    Price.    The spend, once a key, for all bins together.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            ages = dp.histogram(session, "age", bins=[18, 30, 45, 60, 91], spend=dp.GDP(0.1))
            print(ages.summary())
            ages.plot()
    See also. `dp.density`, `dp.ecdf`, `dp.table`, `dp.goodness_of_fit`.
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

    Formula.
            count = Nₖ + Z,   share = count / Σ counts,   mean = (Σ of cell k + Z) / count

            k  a cell: one combination of levels or bins
            Z  noise that does not grow with the number of cells, since a row is in one of them

    Validity. Independent rows; intervals are for one cell at a time.
    Price.    The spend, once a key, for all cells together.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            incomes = dp.table(session, "income", by="region", spend=dp.GDP(0.3))
            print(incomes.summary())
    See also. `dp.histogram`, `dp.compare_means`, `dp.independence_test`; docs/how-to/open-keys.md
              for keys that nobody lists.
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
