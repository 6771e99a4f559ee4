"""The level that a column of levels leaves out: named beside a formula, or chosen privately.

    base={"region": "N"}                 as C(region, base="N") in the formula
    base={"region": "most frequent"}     chosen by a private selection
    base="most frequent"                 chosen so for every Category column that leaves one out

A coefficient of a level is a difference from the base, so that a rare base makes all of them
uncertain, whatever the spend.

Method.    The declared levels are scored by how many of the regression's rows have them, and one is
           chosen by the exponential mechanism: a part BASE_SHARE of the regression's μ², divided
           equally among the columns, pays for it. The design is that of the formula with the chosen
           levels named.
Validity.  The choice is a release of its own before all others. What follows treats the chosen base
           as public, as adaptive composition allows (docs/theory/ledger.md). Intervals are those
           of the chosen contrasts; that a base was chosen by counts of levels, and not by the
           response, leaves them valid given the columns.
Reference. docs/theory/selection.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.accounting.calibration.selection import exponential_choice
from discreet.accounting.guarantees import GDP
from discreet.asking.cells import level_cells
from discreet.asking.formula import Design, Term, category_terms, design_of
from discreet.asking.steps import GRAIN
from discreet.errors import InvalidParameter, WrongColumnKind, shown
from discreet.exact import float_down, sqrt_down
from discreet.schema import Boolean, Category, Schema
from discreet.specs.estimating.model import Model
from discreet.specs.queries.keys import Key
from discreet.specs.queries.scores import CandidateGroup, CandidateScores
from discreet.trusted.release import Description, PublicFacts, Question, Step

MOST_FREQUENT = "most frequent"
BASE_SHARE = Fraction(1, 50)  # of a regression's μ², where it chooses bases
Base = str | Mapping[str, str | int | bool]


@dataclass(frozen=True, slots=True)
class BaseChoice:
    """A formula in which the bases of `columns` are still to be chosen; `named` are those that are
    not, `keys` the filters of its rows.
    """

    formula: str
    schema: Schema
    counts: bool
    named: tuple[tuple[str, Any], ...]
    columns: tuple[str, ...]
    keys: tuple[Key, ...] = ()

    def questions(
        self, public: PublicFacts, asked: Description, mu_squared: Fraction
    ) -> tuple[tuple[Step, Question], ...]:
        """One choice a column, all together within BASE_SHARE of μ²; `asked` says whose they are.

        Theorem.  Their debits sum to at most BASE_SHARE·μ².
        Proof.    Each is calibrated to GDP(m) with m² at most its part less what a debit is rounded
                  up by, both rounded down.
        Checked.  tests/models/test_bases.py::test_a_choice_is_paid_out_of_the_same_spend
        """
        part = mu_squared * BASE_SHARE / len(self.columns) - GRAIN
        if part <= GRAIN:
            raise InvalidParameter(
                "spend=",
                f"it is too small to choose {len(self.columns)} bases from it",
                f"{BASE_SHARE} of it pays for the choices, each a release of its own",
                "spend more, or name the bases: base={'column': 'level'}",
            )
        spend, questions = GDP(float_down(sqrt_down(part))), []
        for number, name in enumerate(self.columns, 1):
            step, cells = Step("base", number), level_cells(self.schema, name)
            query = CandidateScores((CandidateGroup(cells.keys + self.keys),))
            mechanism = exponential_choice(query.sensitivity(public.neighbors), spend)
            words = Description(
                asked.estimator, name, labels=cells.labels, where=asked.where, step=step
            )
            questions.append((step, Question(words, query, mechanism, spend)))
        return tuple(questions)

    def model(self, codes: tuple[int, ...]) -> Model:
        """The model whose open bases are these codes of levels, in order."""
        chosen = {
            name: _levels(self.schema, name)[code]
            for name, code in zip(self.columns, codes, strict=True)
        }
        bases = {**dict(self.named), **chosen}
        return design_of(self.formula, self.schema, counts=self.counts, bases=bases).model(
            self.keys
        )


def based_design(
    formula: str, schema: Schema, base: Base | None, *, counts: bool
) -> tuple[Design, BaseChoice | None]:
    """The design with every named base, and what is still to be chosen; refused, from public facts,
    where a base cannot be had.
    """
    first = design_of(formula, schema, counts=counts)
    if base is None:
        return first, None
    named, columns = _asked(formula, schema, base, counts)
    design = design_of(formula, schema, counts=counts, bases=named)
    if not columns:
        return design, None
    return design, BaseChoice(formula, schema, counts, tuple(named.items()), columns)


def with_rows(
    design: Design, choice: BaseChoice | None, keys: tuple[Key, ...]
) -> tuple[Model, BaseChoice | None]:
    """The design's model of the rows that some filters keep, and the choice among them."""
    return design.model(keys), None if choice is None else replace(choice, keys=keys)


def require_named(choice: BaseChoice | None) -> None:
    """Refuses a choice beside a solver that has none."""
    if choice is not None:
        raise InvalidParameter(
            "base=",
            f"{MOST_FREQUENT!r} with pure noise",
            "bases are chosen out of a part of μ², and a pure spend has none",
            "name the base, base={'column': 'level'}, or find it first with dp.mode",
        )


def _asked(
    formula: str, schema: Schema, base: object, counts: bool
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The levels that were named, and the columns whose base is to be chosen."""
    terms = category_terms(formula, schema)
    if isinstance(base, str):
        if base != MOST_FREQUENT:
            raise _refused(
                shown(base) + " names no column",
                f"pass base={{'column': {shown(base)}}}, or base={MOST_FREQUENT!r}",
            )
        columns = tuple(
            dict.fromkeys(
                term.column
                for term in terms
                if isinstance(schema[term.column], Category)
                and all(_is_open(one) for one in terms if one.column == term.column)
                and _leaves_out(formula, schema, term.column, counts)
            )
        )
        if not columns:
            raise _refused(
                "no Category column of the formula leaves an unnamed base out",
                "leave base= out",
            )
        for name in columns:
            _require_clear(schema, name)
        return {}, columns
    if not isinstance(base, Mapping) or not base:
        raise _refused(
            f"{shown(base)} is neither {MOST_FREQUENT!r} nor a mapping from columns to levels",
            "pass for example base={'region': 'N'}",
        )
    named: dict[str, Any] = {}
    chosen: list[str] = []
    for name, level in base.items():
        _require_base(formula, schema, name, terms, counts)
        if isinstance(level, str) and level == MOST_FREQUENT:
            _require_clear(schema, name)
            chosen.append(name)
        else:
            named[name] = _level(schema, name, level)
    return named, tuple(chosen)


def _is_open(term: Term) -> bool:
    return term.base is None and term.coding == "treatment"


def _levels(schema: Schema, name: str) -> tuple[Any, ...]:
    column = schema[name]
    return tuple(column.levels) if isinstance(column, Category) else (False, True)


def _level(schema: Schema, name: str, level: object) -> Any:
    """A declared level, as it was declared."""
    column = schema[name]
    if isinstance(column, Category):
        return column.levels[column.index(level)]
    if type(level) is not bool:
        raise InvalidParameter(
            f"base={{{name!r}: …}}",
            f"{shown(level)} is neither True nor False",
            f"{name!r} is declared as dp.Boolean()",
            f"pass True, False or {MOST_FREQUENT!r}",
        )
    return level


def _require_base(
    formula: str, schema: Schema, name: object, terms: tuple[Term, ...], counts: bool
) -> None:
    """Refuses a column that has no base, has one already, or stands nowhere in the formula."""
    if not isinstance(name, str):
        raise _refused(f"{shown(name)} is no name", "pass for example base={'region': 'N'}")
    column = schema[name]
    if not isinstance(column, (Category, Boolean)):
        raise WrongColumnKind(name, type(column).__name__, "Category or Boolean", "a base")
    own = [term for term in terms if term.column == name]
    if not own:
        raise _refused(
            f"{name!r} is no term of the formula {shown(formula)}",
            "name a column of its right side, or add it there",
        )
    if any(term.base is not None for term in own):
        raise _refused(
            f"the formula names a base of {name!r} too",
            f"leave one of them out: base= or C({name}, base=…)",
        )
    if not _leaves_out(formula, schema, name, counts):
        raise _refused(
            f"{name!r} has a column for every level here and leaves none out",
            "leave it out of base=, or give the formula an intercept",
        )


def _leaves_out(formula: str, schema: Schema, name: str, counts: bool) -> bool:
    """Whether another base gives another design."""
    levels = _levels(schema, name)
    if len(levels) < 2:
        return False
    first, last = (
        design_of(formula, schema, counts=counts, bases={name: level}).columns
        for level in (levels[0], levels[-1])
    )
    return first != last


def _require_clear(schema: Schema, name: str) -> None:
    column = schema[name]
    if isinstance(column, Category) and MOST_FREQUENT in column.levels:
        raise _refused(
            f"{name!r} has a level of that name",
            f"write C({name}, base={MOST_FREQUENT!r}) in the formula if the level is meant",
        )


def _refused(found: str, remedy: str) -> InvalidParameter:
    return InvalidParameter(
        "base=",
        found,
        "a base is the level that the coefficients of a column are differences from: a declared "
        "one, or one that is chosen privately",
        remedy,
    )
