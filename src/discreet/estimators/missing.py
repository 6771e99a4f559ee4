"""How much of the data is missing, cannot be read, or lies out of range: private shares by column.

Bounds and levels are declared before anybody looks; what is learnt here costs budget, and may then
be used to declare them better.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet import plain
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter
from discreet.estimators.basic import _open
from discreet.exact import rational
from discreet.inference.counts.missing import MissingResult
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.specs.queries.cell_states import STATES, CellStates
from discreet.trusted.release import Description, PublicFacts, Question


@plain.door
def missing(
    session: Session,
    columns: str | Sequence[str] | None = None,
    *,
    spend: Guarantee,
    key: str | None = None,
) -> MissingResult:
    """Shares of missing, unreadable and out-of-range cells of some columns (all, unless named):
    ``dp.missing(session, ["age", "income"], spend=dp.GDP(0.1))``.

    One release for all columns; the noise grows with the square root of their number.

    Formula.
            share of a state = (cells in it + Z) / N

            N  rows, public or counted with noise

    Validity. Intervals are for one column and state at a time.
    Price.    The spend, once a key, for all columns.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.missing(session, ["income", "hours"], spend=dp.GDP(0.2)))
    See also. docs/deciding/missing.md, `dp.describe`.
    """
    question = missing_question(_open(session).public, columns, spend=spend)
    return MissingResult(_open(session).release(question, key=key))


def missing_question(
    public: PublicFacts, columns: str | Sequence[str] | None = None, *, spend: Guarantee
) -> Question:
    names = _named(public, columns)
    query = CellStates(names, not public.neighbors.row_count_is_public)
    l1, l2 = query.sensitivity(public.neighbors)
    noise: AdditiveNoise
    if isinstance(require_spend(spend), PureDP):
        noise = geometric_noise(l1, rational(spend.epsilon, "epsilon"))  # type: ignore[union-attr]
    else:
        noise = gaussian_noise(l2, spend_mu_squared(spend))
    asked = Description("missing", None, ("column", "state"), (names, STATES))
    return Question(asked, query, noise, spend)


def _named(public: PublicFacts, columns: object) -> tuple[str, ...]:
    if columns is None:
        return tuple(public.schema)
    if isinstance(columns, str):
        columns = [columns]
    if not isinstance(columns, Sequence) or not columns:
        raise InvalidParameter(
            "columns",
            f"a {type(columns).__name__} names none",
            "shares are told column by column",
            'pass for example ["age", "income"], or leave it out for all declared columns',
        )
    for name in columns:
        public.schema[name]  # refuses what is not declared
    return tuple(columns)
