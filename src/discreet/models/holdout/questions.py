"""How questions to a holdout are built from public facts: what each row counts for, on the public
grid of claimed means, and in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.accounting.calibration.holdout import thresholdout
from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import Where, cells_where
from discreet.asking.noise_choice import require_spend
from discreet.errors import InvalidParameter, WrongColumnKind, shown
from discreet.estimators.hypotheses.part_tests import function_name
from discreet.exact import rational
from discreet.inference.holdout.answers import Claim
from discreet.models.learners.accuracy import accuracy_question
from discreet.schema import Open, Schema
from discreet.specs.estimating.networks import Agreement
from discreet.specs.holdout.pure_functions import texts_of
from discreet.specs.holdout.surprises import (
    MOST_COLUMNS,
    MOST_FACTORS,
    STEPS,
    Kept,
    Part,
    Product,
    Right,
    RowFunction,
    stand_in,
)
from discreet.specs.mechanisms.selection import LARGEST_COUNT
from discreet.specs.queries.keys import Held, may_leave_out
from discreet.specs.queries.sums import number_factor
from discreet.trusted.release import WATCH, Description, PublicFacts, Question

BITS = {1: 20, 2: 20, 3: 15}  # of each column's codes, by the number of columns in a product
NOT_A_NUMBER = "A row where the function fails, or gives no number, counts as 0."

Asked = tuple[Part, Claim]


def holdout_question(
    public: PublicFacts, *, threshold: float, answers: int, spend: Guarantee
) -> Question:
    """What opening a holdout costs; the count of all rows stands for what will be asked."""
    tolerance = _tolerance(threshold)
    if type(answers) is not int or not 1 <= answers <= LARGEST_COUNT:
        raise InvalidParameter(
            "answers=",
            f"{shown(answers)} is not a whole number from 1 to {LARGEST_COUNT}",
            "each surprise that is answered has its price, and all are paid at the opening",
            "pass for example answers=50",
        )
    query = stand_in(tolerance)
    mechanism = thresholdout(
        query.sensitivity(public.neighbors),
        require_spend(spend),
        answers=answers,
        rows_are_public=public.neighbors.row_count_is_public,
    )
    described = Description(WATCH, by=("question",), labels=(("means asked later",),))
    return Question(described, query, mechanism, spend)


def share_asked(public: PublicFacts, where: Where, training: object) -> Asked:
    if not isinstance(where, Mapping):
        raise InvalidParameter(
            "where",
            f"a {type(where).__name__} is no filter",
            "a share is that of the rows which a declared filter keeps",
            "pass for example {'age': (18, 30)}",
        )
    cells = cells_where(public.schema, where)
    return Kept(cells.keys), _claim(f"share where {cells.where}", training, 0, 1)


def mean_asked(
    public: PublicFacts,
    what: str | Sequence[str] | Callable[..., Any],
    training: object,
    columns: Sequence[str] | None,
) -> Asked:
    if callable(what):
        return _function_asked(public.schema, what, training, columns)
    if columns is not None:
        raise InvalidParameter(
            "columns=",
            "given beside columns",
            "they are those that a function of one row reads",
            "leave it out",
        )
    return _product_asked(public.schema, what, training)


def accuracy_asked(public: PublicFacts, fit: Any, training: object, spend: Guarantee) -> Asked:
    asked = accuracy_question(public, fit, spend=spend)
    query = asked.query
    assert isinstance(query, Agreement)
    _require_values(public.schema, query.model.reads)
    whole = Agreement(query.model, query.network, query.weights, query.optional, True)
    return Right(whole), _claim(f"accuracy in {asked.description.column}", training, 0, 1)


def claimed_steps(claim: Claim) -> int:
    """The claimed mean on the grid."""
    low, high = claim.low, claim.high
    return round(STEPS * (rational(claim.training, "training=") - low) / (high - low))


def _function_asked(
    schema: Schema, function: Callable[..., Any], training: object, columns: object
) -> Asked:
    if columns is None:
        texts = texts_of(function)
        names = tuple(name for name in schema if name in texts)
        names = names or tuple(n for n in schema if not isinstance(schema[n], Open))[:MOST_COLUMNS]
    else:
        names = (columns,) if isinstance(columns, str) else tuple(columns)  # type: ignore[arg-type]
    for name in names:
        if isinstance(schema[name], Open):
            raise WrongColumnKind(
                name, "Open", "Real, Integer, Boolean, Category or dates", "a function of one row"
            )
    part = RowFunction(names, function_name(function), function=function)
    name = getattr(function, "__name__", "function")
    asked = f"mean of {'a function' if name == '<lambda>' else name} of {', '.join(names)}"
    return part, _claim(asked, training, 0, 1, NOT_A_NUMBER)


def _product_asked(schema: Schema, what: object, training: object) -> Asked:
    names = [what] if isinstance(what, str) else list(what) if isinstance(what, Sequence) else []
    if not 1 <= len(names) <= MOST_FACTORS:
        raise InvalidParameter(
            "mean",
            f"it names no 1 to {MOST_FACTORS} columns, and is no function",
            "a mean is that of a column, of a product of columns, or of a function of one row",
            "pass a column, a list of columns that are multiplied, or a function of one row",
        )
    bits = BITS[len(names)]
    factors = tuple(number_factor(schema, name, "a mean", bits) for name in names)
    _require_values(schema, names)
    part = Product(factors)
    low, high = (bound * part.unit for bound in part.bounds)
    filled = tuple(
        f"A row without a value of {name} counts as {value}."
        for name, value in schema.filled_in(names)
    )
    return part, _claim(f"mean of {' × '.join(names)}", training, low, high, *filled)


def _claim(
    asked: str, training: object, low: int | Fraction, high: int | Fraction, *notes: str
) -> Claim:
    number = rational(training, "training=")
    ends = Fraction(low), Fraction(high)
    if not ends[0] <= number <= ends[1]:
        raise InvalidParameter(
            "training=",
            f"{shown(training)} is not between {float(low):g} and {float(high):g}",
            "it is compared with a mean, which lies within the declared range",
            "pass the mean that the training data gave",
        )
    return Claim(asked, float(number), *ends, notes)


def _require_values(schema: Schema, names: Any) -> None:
    """Refuses columns whose cells may be without a value: each row has to count for something."""
    for name in names:
        if may_leave_out(Held(name), schema):
            raise InvalidParameter(
                f"column {name!r}",
                "its declaration does not say what a row without a value counts as",
                "a holdout takes means over all of its rows, whose number does not depend on them",
                f"declare {name!r} with missing=, or ask for the mean of a function of one row",
            )


def _tolerance(threshold: object) -> int:
    number = rational(threshold, "threshold=")
    if not 0 < number < 1:
        raise InvalidParameter(
            "threshold=",
            f"{shown(threshold)} is not between 0 and 1",
            "it is how far a claimed mean may be off, as a share of the range, unnoticed",
            "pass for example threshold=0.04",
        )
    return max(1, round(STEPS * number))
