"""dp.trimmed_mean: the mean of the middle of a column, less a share of the rows at each end.

*Method*: a share of the spend releases the quantiles a and 1 − a, each by a choice and a search
(reference.md B6); the rest goes to the joint moments of the values clipped to them, whose noise is
in proportion to the distance between the ends and not to the declared range. Both releases are
debited within one reservation of the spend.
*Validity* is stated by `discreet.inference.means.trimmed.TrimmedMeanResult`. With a `key`, asking
again returns the stored answers at no cost.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from discreet import plain
from discreet.accounting.guarantees import Guarantee, PureDP
from discreet.asking.cells import Where
from discreet.asking.sessions import Session
from discreet.asking.steps import Ask, Steps
from discreet.errors import InvalidParameter
from discreet.estimators.basic import _open
from discreet.estimators.quantiles import part_of, searched
from discreet.estimators.unbounded import Search, begun, wide_grid
from discreet.exact import decimal_text, rational
from discreet.inference.means.trimmed import END_LEVEL, TrimmedMeanResult, trim_ends
from discreet.search.quantile_ends import QuantileEnds
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.quantiles import LARGEST_DENOMINATOR
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.queries.histograms import GridCounts
from discreet.specs.queries.plans import Factor
from discreet.trusted.release import Description, PublicFacts, Question, Release

# of the spend, for both ends together
ENDS_SHARE, PURE_ENDS_SHARE = Fraction(2, 3), Fraction(4, 5)
# of an end's part, for the interval of its quantile
INTERVAL_SHARE = Fraction(3, 4)


@plain.door
def trimmed_mean(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    trim: object = 0.1,
    where: Where | None = None,
    key: str | None = None,
) -> TrimmedMeanResult:
    """The mean of a number column without the share `trim` of its smallest and of its largest
    values: ``dp.trimmed_mean(session, "income", trim=0.05, spend=dp.GDP(0.5))``.

    Its noise does not grow with the declared range. `trim` is a share below one half, as a fraction
    with a denominator up to 10**6.

    Formula.
            estimate = Σ x between Q(trim) and Q(1 − trim) / (N·(1 − 2·trim)) + noise

            Q  the quantile function of the column, found by noisy counts

    Validity. Independent rows; the interval assumes no shape (docs/theory/trimmed.md).
    Price.    The spend, once a key: both ends and the mean between them.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.trimmed_mean(session, "income", trim=0.05, spend=dp.GDP(0.5)))
    See also. `dp.median`, `dp.unbounded_mean`; docs/theory/trimmed.md.
    """
    opened = _open(session)
    search = begun(opened.public, column, spend=spend, where=where, asked="a trimmed mean")
    share = checked_trim(trim)
    refuse_early(search, share)
    with Steps(opened, search.spend, key) as steps:
        return trimmed_by_steps(search, share, steps.ask)


def trimmed_by_steps(search: Search, trim: Fraction, ask: Ask) -> TrimmedMeanResult:
    """The two releases of a trimmed mean; `ask` answers the question of a step."""
    ends = ask(ends_question(search, trim), "ends")
    return TrimmedMeanResult(ask(middle_question(search, ends), "middle"), (ends,))


def trimmed_mean_question(
    public: PublicFacts,
    column: str,
    *,
    spend: Guarantee,
    trim: object = 0.1,
    where: Where | None = None,
) -> Question:
    """The first of the questions that a trimmed mean asks, with the whole spend."""
    search = begun(public, column, spend=spend, where=where, asked="a trimmed mean")
    share = checked_trim(trim)
    refuse_early(search, share)
    first = ends_question(search, share)
    asked = Description("trimmed mean", column, where=search.cells.where)
    return Question(asked, first.query, first.mechanism, search.spend)


def checked_trim(trim: object) -> Fraction:
    """The share that is trimmed at each end, strictly between 0 and 1/2."""
    share = rational(trim, "trim=")
    if 0 < share < Fraction(1, 2) and share.denominator <= LARGEST_DENOMINATOR:
        return share
    raise InvalidParameter(
        "trim=",
        f"{decimal_text(share)} is no share below 1/2",
        "it is the share of rows that is left out at each end, as a fraction with a denominator up "
        "to 10**6, and some must stay",
        "pass for example trim=0.1; dp.mean is of all rows, dp.median of the middle one",
    )


def ends_share(search: Search) -> Fraction:
    """The share of the spend that both ends get together."""
    return PURE_ENDS_SHARE if isinstance(search.spend, PureDP) else ENDS_SHARE


def ends_question(search: Search, trim: Fraction) -> Question:
    """The quantiles trim and 1 − trim, on the finest grid that the column has."""
    query = GridCounts(
        search.cells.keys,
        Factor(search.column, wide_grid(search.declared)),
        search.cells.optional,
    )
    spend = search.part(ends_share(search))
    each, whole = part_of(spend, Fraction(1, 2)), trim.denominator
    stages: list[Mechanism] = []
    for a in (trim.numerator, whole - trim.numerator):
        choice, ends = searched(search.public, query, a, whole, spend=each, share=INTERVAL_SHARE)
        stages += (choice, at_end_level(ends))
    asked = Description("trim ends", search.column, where=search.cells.where)
    return Question(asked, query, InTurn(tuple(stages)), spend)


def at_end_level(search: Mechanism) -> Mechanism:
    """The same search, for the ends of an interval of `END_LEVEL`."""
    assert isinstance(search, CountSearch)
    assert isinstance(search.policy, QuantileEnds)
    return replace(search, policy=replace(search.policy, level=END_LEVEL))


def middle_question(search: Search, ends: Release) -> Question:
    """The joint moments of the values clipped to the released ends."""
    low, high = sorted(end.value for end in trim_ends(ends, float(END_LEVEL), "population"))
    return search.moments("trimmed mean", low, high, 1 - ends_share(search))


def refuse_early(search: Search, trim: Fraction) -> None:
    """Builds both questions on the declared range, so that what cannot be asked is refused before
    anything is debited.
    """
    ends_question(search, trim)
    declared = search.declared
    search.moments("trimmed mean", declared.low, declared.high, 1 - ends_share(search))
