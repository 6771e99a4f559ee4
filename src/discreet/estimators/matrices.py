"""dp.covariance and dp.correlation: one joint release for any number of columns.

*Method*: means, second moments and what their standard errors need are one exact integer statistic
with symmetric matrix noise (docs/theory/covariance.md). The quantities are those of the columns
clamped to their declared ranges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from discreet import plain
from discreet.accounting.calibration.additive import symmetric_noise
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.asking.cells import Where, rows_asked
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.encoding import Encoding
from discreet.errors import InvalidParameter, NoTheorem, WrongColumnKind
from discreet.estimators.basic import _open
from discreet.inference.means.matrices import CorrelationResult, CovarianceResult
from discreet.schema import Boolean, Category, Column, Integer, Open
from discreet.specs.queries.pairs import LARGEST_COLUMNS, PairMoments, count_weight
from discreet.specs.queries.plans import Factor
from discreet.trusted.release import Description, PublicFacts, Question

# largest codes to try: fourth powers stay exact, and the noise within its grid
HEIGHTS = (2047, 1023, 511, 255, 127, 63, 31)
MOST_STEPS = 1 << 50


@plain.door
def covariance(
    session: Session,
    columns: Sequence[str],
    *,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> CovarianceResult:
    """Variances and covariances of number columns, with intervals (reference.md F2, G5).

    `spend` is GDP, zCDP or (ε, δ): the noise is Gaussian.
    A filter `where` keeps some rows, as in dp.mean.

    Formula.
            cov(a, b) = Σ (aᵢ − mean a)(bᵢ − mean b) / (N − 1) + noise

    Validity. Independent rows; intervals are for one pair at a time.
    Price.    The spend, once a key, for all pairs: moments are one release
              (docs/theory/covariance.md).
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            fit = dp.covariance(session, ["age", "hours", "income"], spend=dp.GDP(0.5))
            print(fit.summary())
    See also. `dp.correlation`, `dp.variance`, `dp.ols`.
    """
    return CovarianceResult(
        _open(session).release(
            covariance_question(_open(session).public, columns, spend=spend, where=where), key=key
        )
    )


@plain.door
def correlation(
    session: Session,
    columns: Sequence[str],
    *,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> CorrelationResult:
    """Pearson correlations of two or more number columns,
    with intervals within [−1, 1] (reference.md F2, G5).

    Formula.
            r = cov(a, b) / √(v(a)·v(b))

    Validity. Independent rows; intervals are for one pair at a time.
    Price.    The spend, once a key, for all pairs.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            fit = dp.correlation(session, ["age", "hours", "income"], spend=dp.GDP(0.5))
            print(fit.between("age", "income"))
            fit.plot()
    See also. `dp.covariance`, `dp.ols`, `dp.independence_test`.
    """
    return CorrelationResult(
        _open(session).release(
            correlation_question(_open(session).public, columns, spend=spend, where=where), key=key
        )
    )


def covariance_question(
    public: PublicFacts, columns: Sequence[str], *, spend: Guarantee, where: Where | None = None
) -> Question:
    return _question(public, "covariance", _names(columns, least=1), spend, where)


def correlation_question(
    public: PublicFacts, columns: Sequence[str], *, spend: Guarantee, where: Where | None = None
) -> Question:
    return _question(public, "correlation", _names(columns, least=2), spend, where)


def _question(
    public: PublicFacts,
    estimator: str,
    names: tuple[str, ...],
    spend: Guarantee,
    where: Where | None,
) -> Question:
    declared = [public.schema[name] for name in names]
    for name, column in zip(names, declared, strict=True):
        if isinstance(column, (Category, Open)):
            raise WrongColumnKind(
                name, type(column).__name__, "Real, Integer or Boolean", f"a {estimator}"
            )
    if isinstance(require_spend(spend), PureDP):
        raise NoTheorem(
            f"a {estimator} with a pure spend",
            "its noise is Gaussian",
            "no Gaussian noise is pure, and Laplace noise on a matrix would grow with the number "
            "of pairs",
            "spend dp.GDP(mu), dp.ZCDP(rho) or dp.ApproxDP(epsilon, delta)",
        )
    cells = rows_asked(public.schema, where, *names)
    mu_squared, count = (
        spend_mu_squared(spend),
        count_weight(public.neighbors, optional=cells.optional),
    )
    for height in HEIGHTS:
        whole = _dividing(height, declared)
        query = PairMoments(
            cells.keys,
            tuple(
                Factor(name, _encoding(column, whole))
                for name, column in zip(names, declared, strict=True)
            ),
            count,
            cells.optional,
        )
        if query.sensitivity(public.neighbors).squared <= mu_squared * MOST_STEPS**2 / 4:
            break
    asked = Description(estimator, None, ("column", "with"), (), cells.where)
    return Question(
        asked, query, symmetric_noise(query.sensitivity(public.neighbors), mu_squared), spend
    )


def _encoding(column: Column, height: int) -> Encoding:
    """The declared range on codes −height … height."""
    low, high = (
        (0.0, 1.0)
        if isinstance(column, Boolean)
        else (
            float(column.low),  # type: ignore[union-attr]
            float(column.high),  # type: ignore[union-attr]
        )
    )
    return Encoding(low / 2 + high / 2, height / ((high - low) / 2), -height, height)


def _dividing(height: int, columns: Sequence[Column]) -> int:
    """The greatest number up to `height` on whose grid every whole number of the declared ranges
    lies, if there is one; else `height`.
    """
    common = math.lcm(
        *(column.high - column.low for column in columns if isinstance(column, Integer)), 1
    )
    return height // common * common or height


def _names(columns: object, *, least: int) -> tuple[str, ...]:
    names = (
        list(columns) if isinstance(columns, Sequence) and not isinstance(columns, str) else None
    )
    if (
        names is None
        or not least <= len(names) <= LARGEST_COLUMNS
        or len(set(map(str, names))) != len(names)
    ):
        raise InvalidParameter(
            "columns",
            f"not a list of {least} to {LARGEST_COLUMNS} different columns",
            "every pair of them is one entry of the matrix",
            "pass for example ['age', 'income']",
        )
    return tuple(names)
