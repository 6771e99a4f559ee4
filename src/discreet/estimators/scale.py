"""dp.iqr and dp.mad: robust measures of spread, from counts on the column's grid.

*Method*: a quantile is chosen by the exponential mechanism and the ends of its interval are
searched by noisy counts; both quartiles in one release, or the median of the distances from a
private median in one release.
"""

from __future__ import annotations

from fractions import Fraction

from discreet import plain
from discreet.accounting.calibration.additive import bounded_range_within
from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import Where, rows_asked
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter
from discreet.estimators.basic import _open
from discreet.estimators.quantiles import part_of, searched
from discreet.inference.quantiles.scale import IQRResult, MADResult, NormalMADResult
from discreet.specs.mechanisms.in_turn import AboutCentre, InTurn
from discreet.specs.mechanisms.quantiles import QuantileChoice
from discreet.specs.queries.histograms import GridCounts
from discreet.specs.queries.sums import number_factor
from discreet.trusted.release import Description, PublicFacts, Question

# of a quantile's budget goes to the ends of its interval, the rest to its estimate
INTERVAL = Fraction(1, 2)
CENTRE = Fraction(1, 5)  # of the whole goes to the centre of a median absolute deviation


@plain.door
def iqr(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> IQRResult:
    """The interquartile range of a number column,
    with an interval that assumes no shape (reference.md B6).

    Formula.
            estimate = Q(¾) − Q(¼)

            Q  the quantile function of the column clamped to its declared range

    Validity. Independent rows; the interval assumes no shape.
    Price.    The spend, once a key; half of it for each quartile.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.iqr(session, "income", spend=dp.GDP(0.3)))
    See also. `dp.mad`, `dp.std`, `dp.quantiles`.
    """
    return IQRResult(
        _open(session).release(
            iqr_question(_open(session).public, column, spend=spend, where=where), key=key
        )
    )


@plain.door
def mad(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    normal: bool = False,
    where: Where | None = None,
    key: str | None = None,
) -> MADResult:
    """The median absolute deviation of a number column about a private median,
    with an interval (reference.md B6).

    ``normal=True`` multiplies it by 1.4826, which makes it the standard deviation of normal data.

    Formula.
            estimate = median of |x − c|

            c  a private median, released first

    Validity. Independent rows; the interval assumes no shape.
    Price.    The spend, once a key, for the centre and the deviation together.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.mad(session, "income", spend=dp.GDP(0.3)))
    See also. `dp.iqr`, `dp.std`, `dp.median`.
    """
    release = _open(session).release(
        mad_question(_open(session).public, column, spend=spend, normal=normal, where=where),
        key=key,
    )
    return NormalMADResult(release) if normal else MADResult(release)


def iqr_question(
    public: PublicFacts, column: str, *, spend: Guarantee, where: Where | None = None
) -> Question:
    query, condition = _query(public, column, "an interquartile range", where)
    half = part_of(require_spend(spend), Fraction(1, 2))
    parts = [
        part for a in (1, 3) for part in searched(public, query, a, 4, spend=half, share=INTERVAL)
    ]
    return Question(Description("iqr", column, where=condition), query, InTurn(tuple(parts)), spend)


def mad_question(
    public: PublicFacts,
    column: str,
    *,
    spend: Guarantee,
    normal: bool = False,
    where: Where | None = None,
) -> Question:
    if not isinstance(normal, bool):
        raise InvalidParameter(
            "normal=",
            "neither True nor False",
            "it decides whether the answer is multiplied by 1.4826",
            "leave it out for the median absolute deviation itself",
        )
    query, condition = _query(public, column, "a median absolute deviation", where)
    rows = query.sensitivity(public.neighbors)
    rate = bounded_range_within(part_of(require_spend(spend), CENTRE)) / (
        2 * QuantileChoice(rows, 1, 2, Fraction(1), "exponential").largest_change
    )
    distances = InTurn(
        searched(public, query, 1, 2, spend=part_of(spend, 1 - CENTRE), share=INTERVAL)
    )
    centre = QuantileChoice(rows, 1, 2, rate, "exponential")
    return Question(
        Description("normal mad" if normal else "mad", column, where=condition),
        query,
        AboutCentre(centre, distances),
        spend,
    )


def _query(
    public: PublicFacts, column: str, asked: str, where: Where | None
) -> tuple[GridCounts, str]:
    cells = rows_asked(public.schema, where, column)
    return GridCounts(
        cells.keys, number_factor(public.schema, column, asked), cells.optional
    ), cells.where
