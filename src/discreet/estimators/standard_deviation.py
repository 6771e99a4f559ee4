"""dp.std: a standard deviation with an interval, of all rows or by declared cells
(reference.md F2).

*Method*: the release of `dp.variance`, the joint moments up to the fourth, in every cell.
*Validity* is stated by `discreet.inference.means.standard_deviations.StdResult`. With a `key`,
asking again returns the stored answer at no cost.
"""

from __future__ import annotations

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import By, Where
from discreet.asking.sessions import Session
from discreet.estimators.basic import _open
from discreet.estimators.questions import spread_question
from discreet.inference.means.standard_deviations import StdResult
from discreet.trusted.release import PublicFacts, Question


@plain.door
def std(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    by: By | None = None,
    where: Where | None = None,
    key: str | None = None,
) -> StdResult:
    """The standard deviation of a number column: ``dp.std(session, "income", by="region",
    spend=dp.GDP(0.3))``.

    `by` is as for `dp.table`: declared categories or bins, each with a standard deviation of its
    own out of one release.

    Formula.
            s = √v,   interval = square roots of the ends of the variance's interval

    Validity. As the variance's.
    Price.    That of `dp.variance`.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.std(session, "age", by="region", spend=dp.GDP(0.3)))
    See also. `dp.variance`, `dp.mad`, `dp.describe`.
    """
    question = std_question(_open(session).public, column, spend=spend, by=by, where=where)
    return StdResult(_open(session).release(question, key=key))


def std_question(
    public: PublicFacts,
    column: str,
    *,
    spend: Guarantee,
    by: By | None = None,
    where: Where | None = None,
) -> Question:
    return spread_question(public, "standard deviation", column, spend=spend, by=by, where=where)
