"""Tests of means: one sample, pairs, groups.

Each is one joint release of counts, sums and spreads; all else is post-processing.
"""

from __future__ import annotations

from discreet import plain
from discreet.accounting.calibration.additive import gaussian_noise, laplace_noise
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.asking.cells import Where, rows_asked
from discreet.asking.noise_choice import norm_of, require_spend
from discreet.asking.sessions import Session
from discreet.errors import WrongColumnKind
from discreet.estimators.basic import _open
from discreet.estimators.hypotheses.comparisons import _different, _groups
from discreet.estimators.questions import FINE_MEAN_BITS, MEAN_BITS, _moments, mean_question
from discreet.exact import rational
from discreet.inference.means.mean_tests import MeansResult, MeanTestResult, PairedResult
from discreet.schema import Boolean, Integer, Real
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.specs.queries.differences import DifferenceMoments
from discreet.specs.queries.moments import mean_design
from discreet.specs.queries.plans import Factor
from discreet.trusted.release import Description, PublicFacts, Question


@plain.door
def mean_test(
    session: Session,
    column: str,
    null: float,
    *,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> MeanTestResult:
    """Test whether a mean is `null`: ``dp.mean_test(session, "income", 50_000,
    spend=dp.GDP(0.2)).test(alternative="greater")`` (reference.md F1, F4).

    The release is that of `dp.mean`; `test(other)` asks about other values at no cost.

    Formula.
            t = (mean − null) / standard error,   noise in the error

    Validity. As `dp.mean`: independent rows; values beyond the range count as its bounds.
    Price.    The spend, once a key, as `dp.mean`.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            mean = dp.mean_test(session, "income", 50_000, spend=dp.GDP(0.2))
            print(mean.test(alternative="greater"))
    See also. `dp.mean`, `dp.paired_test`, `dp.power`.
    """
    return MeanTestResult(
        _open(session).release(
            mean_test_question(_open(session).public, column, null, spend=spend, where=where),
            key=key,
        )
    )


def mean_test_question(
    public: PublicFacts, column: str, null: float, *, spend: Guarantee, where: Where | None = None
) -> Question:
    question = mean_question(public, column, spend=spend, where=where)
    asked = Description(
        "mean test",
        column,
        where=question.description.where,
        edges=(float(rational(null, "null")),),
    )
    return Question(asked, question.query, question.mechanism, question.spend)


@plain.door
def compare_means(
    session: Session,
    column: str,
    *,
    by: str,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> MeansResult:
    """Compare means between groups: ``dp.compare_means(session, "income", by="region",
    spend=dp.GDP(0.3))``.

    Differences from the first declared level with intervals, Welch's test of two groups, and a test
    that all means are equal (analysis of variance without equal variances). Of three groups or more
    `summary()` shows every group and all pairs, with intervals that hold at once (`pairs`). Noise
    is least for means near the middle of the declared range.

    Validity. Independent rows. Simulated sizes at 0.05, 10 000 data sets each, 50 to 10 000 rows,
              ε from 0.1 to 2: 0.044 to 0.057 for two groups, in the middle of the range and far
              from it, 0.042 to 0.057 for three and four (docs/theory/tests.md).

    Formula.
            t = (mean of group − mean of the baseline) / standard error,   noise in the error

    Price.    The spend, once a key, for all groups, pairs and tests.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            found = dp.compare_means(session, "income", by="sex", spend=dp.GDP(0.2))
            print(found.summary())
    See also. `dp.compare`, `dp.rank_test`, `dp.table`.
    """
    return MeansResult(
        _open(session).release(
            compare_means_question(_open(session).public, column, by=by, spend=spend, where=where),
            key=key,
        )
    )


def compare_means_question(
    public: PublicFacts, column: str, *, by: str, spend: Guarantee, where: Where | None = None
) -> Question:
    groups, subset = _groups(public, by), rows_asked(public.schema, where, column)
    _different((by, column))
    cells = groups.joined(subset)
    design = mean_design(
        public.neighbors, cells=cells.count, optional=True, norm=norm_of(require_spend(spend))
    )
    return _moments(
        public,
        Description("means", column, (by,), groups.labels, subset.where),
        cells,
        design,
        spend,
    )


@plain.door
def paired_test(
    session: Session,
    first: str,
    second: str,
    *,
    spend: Guarantee,
    null: float = 0,
    where: Where | None = None,
    key: str | None = None,
) -> PairedResult:
    """Test whether two columns of the same rows have means that differ by `null`:
    ``dp.paired_test(session, "after", "before", spend=dp.GDP(0.3))``.

    The differences first − second are summed exactly on a grid that both columns share: the range
    of the difference is twice the range that holds both columns.

    Formula.
            t = (mean of first − second − null) / standard error

            noise is in the error, and in the null law

    Validity. Independent rows (pairs).
    Price.    The spend, once a key.
    Example.
            import numpy as np

            rng = np.random.default_rng(1)
            before = rng.normal(50, 10, 4000)
            data = dp.from_arrays(
                {"before": before, "after": before + rng.normal(0.8, 5, 4000)},
                schema={"before": dp.Real(0, 100), "after": dp.Real(0, 100)},
                neighbors=dp.Replace(),
            )
            session = data.open(budget=dp.GDP(1))
            print(dp.paired_test(session, "after", "before", spend=dp.GDP(0.5)).test())
    See also. `dp.mean_test`, `dp.compare_means`.
    """
    return PairedResult(
        _open(session).release(
            paired_question(
                _open(session).public, first, second, spend=spend, null=null, where=where
            ),
            key=key,
        )
    )


def paired_question(
    public: PublicFacts,
    first: str,
    second: str,
    *,
    spend: Guarantee,
    null: float = 0,
    where: Where | None = None,
) -> Question:
    x, y = _common_grid(public, first, second)
    cells = rows_asked(public.schema, where, first, second)
    design = mean_design(
        public.neighbors, cells=1, optional=cells.optional, norm=norm_of(require_spend(spend))
    )
    query = DifferenceMoments(cells.keys, x, y, design, cells.optional)
    sensitivity = query.sensitivity(public.neighbors)
    noise: AdditiveNoise
    if isinstance(spend, PureDP):
        assert isinstance(sensitivity, L1)
        noise = laplace_noise(sensitivity, rational(spend.epsilon, "epsilon"))
    else:
        assert isinstance(sensitivity, L2)
        noise = gaussian_noise(sensitivity, spend_mu_squared(spend))
    asked = Description(
        "paired test",
        f"{first} − {second}",
        where=cells.where,
        edges=(float(rational(null, "null")),),
    )
    return Question(asked, query, noise, spend)


def _common_grid(public: PublicFacts, first: str, second: str) -> tuple[Factor, Factor]:
    """Both columns on the grid of the range that holds them both."""
    _different((first, second))
    columns = []
    for name in (first, second):
        column = public.schema[name]
        if not isinstance(column, (Real, Integer, Boolean)):
            raise WrongColumnKind(
                name, type(column).__name__, "Real, Integer or Boolean", "a paired test"
            )
        columns.append(Integer(0, 1) if isinstance(column, Boolean) else column)
    low, high = min(column.low for column in columns), max(column.high for column in columns)
    if all(isinstance(column, Integer) for column in columns):
        encoding = Integer(int(low), int(high)).encoding(FINE_MEAN_BITS)
    else:
        bits = (
            MEAN_BITS
            if any(isinstance(column, Real) and column.bits == MEAN_BITS for column in columns)
            else FINE_MEAN_BITS
        )
        encoding = Real(low, high, bits=32 if bits == FINE_MEAN_BITS else 16).encoding(bits)
    return Factor(first, encoding), Factor(second, encoding)
