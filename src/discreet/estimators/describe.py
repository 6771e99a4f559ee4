"""dp.describe: n, missing cells, mean, standard deviation and quartiles of many columns from one
spend.

*Method*: several releases under one reservation and one key. A tenth of the spend counts missing
cells of all columns at once; the rest is divided equally over columns, and in each over the five
numbers that are estimated: a part for the mean, one for the standard deviation, one for each
quartile. Every statistic then has the error that it would have alone with that part.

Theorem.  All releases together cost no more than the spend.
Proof.    Their parts add up to it (`step_spend`, rounded down), and each is debited out of a
          reservation of the whole, which refuses what exceeds it (asking/steps.py).
Checked.  tests/estimators/test_describe.py::test_it_costs_the_spend_and_no_more
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.asking.steps import Steps, step_spend
from discreet.errors import InvalidParameter, WrongColumnKind
from discreet.estimators.basic import _open
from discreet.estimators.missing import _named, missing_question
from discreet.estimators.quantiles import quantiles_question
from discreet.estimators.questions import mean_question, spread_question
from discreet.inference.means.described import QUARTILES, DescribeResult
from discreet.schema import Integer, Real
from discreet.trusted.release import Description, PublicFacts, Question

MOST_COLUMNS = 50
COUNTED = Fraction(1, 10)  # of the spend goes to the counts of missing cells
NUMBERS = 5  # that are estimated of a column


@plain.door
def describe(
    session: Session,
    columns: str | Sequence[str] | None = None,
    *,
    spend: Guarantee,
    key: str | None = None,
) -> DescribeResult:
    """n, missing cells, mean, standard deviation and quartiles of number columns (all, unless
    named), each with an interval: ``dp.describe(session, ["age", "income"], spend=dp.GDP(0.5))``.

    The noise of every number grows with the square root of the number of columns (with that number
    itself for a pure spend). Least and greatest values are not told: each of them is one person's.

    Formula.
            mean = (Σ x + Z) / N,   variance = (Σ (x − mean)² + Z) / (N − 1);   quartiles searched

            N  rows that hold a value, counted with noise
            Z  noise, drawn anew for every sum

    Validity. Intervals are for one number at a time.
    Price.    One spend for all columns. Name only those that you will publish.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.describe(session, ["age", "hours"], spend=dp.GDP(0.5)))
    See also. `dp.mean`, `dp.std`, `dp.quantiles`, `dp.missing`.
    """
    opened = _open(session)
    questions = describe_questions(opened.public, columns, spend=spend)
    with Steps(opened, spend, key) as steps:
        for number, question in enumerate(questions):
            steps.ask(question, f"part {number + 1}")
    return DescribeResult(steps.releases[-1], tuple(steps.releases[:-1]))


def describe_questions(
    public: PublicFacts, columns: str | Sequence[str] | None = None, *, spend: Guarantee
) -> tuple[Question, ...]:
    """Mean, standard deviation and quartiles of each column, one after the other; the counts of all
    columns last.
    """
    names = _number_columns(public, columns)
    each = (1 - COUNTED) / (len(names) * NUMBERS)
    one, three = (step_spend(require_spend(spend), share) for share in (each, 3 * each))
    asked: list[Question] = []
    for name in names:
        asked += [
            mean_question(public, name, spend=one),
            spread_question(public, "standard deviation", name, spend=one),
            quantiles_question(public, name, QUARTILES, spend=three),
        ]
    counts = missing_question(public, names, spend=step_spend(spend, COUNTED))
    words = Description("describe", None, ("column",), (names,))
    return (*asked, replace(counts, description=words))


def _number_columns(public: PublicFacts, columns: object) -> tuple[str, ...]:
    """The columns that are asked about: numbers and dates, all of them where none is named."""
    schema = public.schema
    if columns is None:
        names = [name for name, column in schema.items() if isinstance(column, (Real, Integer))]
    else:
        names = list(_named(public, columns))
    for name in names:
        if not isinstance(schema[name], (Real, Integer)):
            kind = type(schema[name]).__name__
            raise WrongColumnKind(name, kind, "Real, Integer or Date", "a description")
    if not 1 <= len(names) <= MOST_COLUMNS or len(set(names)) != len(names):
        raise InvalidParameter(
            "columns",
            "one column is named twice"
            if len(set(names)) != len(names)
            else f"{len(names)} number columns",
            "every column has its part of the spend",
            f"name 1 to {MOST_COLUMNS} different number columns; dp.table tells of levels",
        )
    return tuple(names)
