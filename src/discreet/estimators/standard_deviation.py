"""dp.std: a standard deviation with an interval, of all rows or by declared cells
(reference.md F2).

*Method*: the release of `dp.variance`, the joint moments up to the fourth, in every cell.
*Validity* is stated by `discreet.inference.means.standard_deviations.StdResult`. With a `key`,
asking again returns the stored answer at no cost.
"""

from __future__ import annotations

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import By, Cells, Where, cells_by, rows_asked
from discreet.asking.noise_choice import norm_of, require_spend
from discreet.estimators.basic import _open
from discreet.estimators.questions import VARIANCE_BITS, _moments
from discreet.inference.means.standard_deviations import StdResult
from discreet.specs.queries.moments import variance_design
from discreet.trusted.release import Description, PublicFacts, Question
from discreet.trusted.session import Session


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
    public.schema[column]  # refuses what is not declared
    groups = Cells() if by is None else cells_by(public.schema, by)
    subset = rows_asked(public.schema, where, column)
    cells = groups.joined(subset)
    design = variance_design(
        public.neighbors,
        cells=cells.count,
        optional=cells.optional,
        norm=norm_of(require_spend(spend)),
    )
    asked = Description("standard deviation", column, groups.by, groups.labels, subset.where)
    return _moments(public, asked, cells, design, spend, bits=VARIANCE_BITS)
