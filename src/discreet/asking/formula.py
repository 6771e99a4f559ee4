"""From a formula and declared columns to the columns of a model: a closed grammar, nothing
evaluated, nothing learnt from data.

    response ~ term + term …   `+ : * / -1 0 ( )**k` as usual
    a term's factors           name · log(name) · square(name) · bs(name, knots=(…),
                               degree=3) · C(name, base="level") · C(name, "sum")

Levels come from the schema, knots from the formula. formulaic parses the formula into terms; each
factor is then read here as a literal syntax tree. Categories are coded by treatment (the first
declared level is the base) or by sum contrasts; where a category stands without its margin
(no intercept, say), it gets one column a level, as statisticians expect. Numbers are scaled to
−1 … 1 by their declared range, and centred where the model contains all margins of the term,
so that the shift can be undone exactly.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from discreet.dates import units_of
from discreet.encoding import Encoding
from discreet.errors import InvalidParameter, MissingExtra, WrongColumnKind, shown
from discreet.schema import Boolean, Category, Date, Integer, Real, Schema, level_text
from discreet.specs.estimating.components import (
    LOG_RESPONSE_BITS,
    RESPONSE_BITS,
    Component,
    LevelComponent,
    ModelColumn,
    NumberComponent,
    Response,
    constant,
)
from discreet.specs.estimating.metric import LARGEST_COLUMNS
from discreet.specs.estimating.model import Model
from discreet.specs.queries.plans import Factor

PIECE_BITS = 16
LARGEST_SPLINE = 40
LONGEST_FORMULA = 20_000  # characters
MOST_TERMS = 2000
MOST_FACTORS = 6  # of an interaction
OPERATORS = ("~", "+", "-", ":", "*", "/", "**", "^")
FUNCTIONS = ("log", "square", "bs", "C")
_WHY = "a formula is read, never run: names, transforms of declared range, and declared levels"
_GRAMMAR = (
    "use for example \"income ~ age + log(hours) + C(region, base='N') + bs(tenure, knots=(5, "
    '20))"'
)


@dataclass(frozen=True, slots=True)
class Term:
    """One factor of a formula, read: the column, what is done to it, and its options."""

    column: str
    transform: str = "linear"
    knots: tuple[float, ...] = ()
    degree: int = 3
    base: Any = None
    coding: str = "treatment"

    @property
    def text(self) -> str:
        return (
            self.column
            if self.transform in ("linear", "levels")
            else f"{self.transform}({self.column})"
        )


@dataclass(frozen=True, slots=True)
class Design:
    """A formula against a schema: the model's columns and its response."""

    formula: str
    columns: tuple[ModelColumn, ...]
    response: Response
    response_name: str
    several: bool = False  # the response has a class for each of its levels

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def reads(self) -> tuple[str, ...]:
        """The data columns of its terms and its response."""
        return self.model().reads

    def model(self, keys: tuple[Any, ...] = ()) -> Model:
        return Model(self.columns, self.response, keys)


def design_of(
    formula: str,
    schema: Schema,
    *,
    counts: bool = False,
    classes: bool = False,
    bases: Mapping[str, Any] | None = None,
) -> Design:
    """The design of a formula; refused, before anything is spent,
    where it asks for what was not declared.

    `counts` says that the response's whole numbers matter themselves (Poisson, logistic),
    so that it is read on its own grid; `classes`, that a Category may stand for all its levels.
    `bases` are levels that the formula's columns leave out, as C(name, base=…) would say.
    """
    left, terms = _parsed(formula)
    terms = [tuple(_with_base(factor, bases or {}) for factor in term) for term in terms]
    columns: list[ModelColumn] = []
    present = {frozenset(term) for term in terms}
    used: set[tuple[frozenset[Term], frozenset[Term]]] = set()
    for term in terms:
        columns += _columns(term, present, used, schema)
        if len(columns) > LARGEST_COLUMNS:
            raise _too_large(formula, f"it has more than {LARGEST_COLUMNS} columns")
    if not columns:
        raise _refused(formula, "it has no terms")
    if len({column.name for column in columns}) != len(columns):
        raise _refused(formula, "two of its columns are the same")
    if left.column in {factor.column for term in terms for factor in term}:
        raise InvalidParameter(
            f"formula {shown(formula)}",
            f"{left.column!r} stands on both sides",
            "a column explains itself without error, so that nothing would be learnt for the spend",
            f"take {left.column!r} out of the right side",
        )
    column = schema[left.column]
    if classes and isinstance(column, Category) and left.base is None and len(column.levels) != 2:
        response, name = Response(level=(left.column, 0)), left.column
        return Design(formula, tuple(columns), response, name, several=True)
    response, name = _response(left, schema, counts, centred=any(constant(columns)))
    return Design(formula, tuple(columns), response, name)


def category_terms(formula: str, schema: Schema) -> tuple[Term, ...]:
    """The factors on a formula's right side that are columns of levels, each once."""
    factors = dict.fromkeys(factor for term in _parsed(formula)[1] for factor in term)
    return tuple(
        factor for factor in factors if isinstance(schema[factor.column], (Boolean, Category))
    )


def _with_base(factor: Term, bases: Mapping[str, Any]) -> Term:
    return replace(factor, base=bases[factor.column]) if factor.column in bases else factor


def _parsed(formula: object) -> tuple[Term, list[tuple[Term, ...]]]:
    if not isinstance(formula, str) or formula.count("~") != 1:
        raise _refused(formula, "it is not text of the form response ~ terms")
    try:
        parser = importlib.import_module("formulaic.parser")
    except ImportError:
        raise MissingExtra("formulaic", "formulas", "a formula") from None
    if len(formula) > LONGEST_FORMULA:
        raise _too_large(formula, f"it is longer than {LONGEST_FORMULA} characters")
    if not formula.split("~")[1].strip():
        raise _refused(formula, "its right side is empty (write 1 for an intercept alone)")
    reader = parser.DefaultFormulaParser()
    try:
        tree = reader.get_ast(formula)
    except Exception:
        raise _refused(formula, "it could not be parsed") from None
    _require_small(tree, formula)
    try:
        parts = reader.get_terms(formula)
        left, right = list(parts.lhs), list(parts.rhs)
    except Exception:
        raise _refused(formula, "it could not be parsed") from None
    if len(left) != 1 or len(left[0].factors) != 1:
        raise _refused(formula, "it must have one response")
    terms = []
    for term in right:
        factors = tuple(
            _read(factor, formula) for factor in term.factors if str(factor.expr) != "1"
        )
        if len({(factor.column, factor.transform) for factor in factors}) != len(factors):
            raise _refused(formula, "a term repeats a factor")
        if len(factors) > MOST_FACTORS:
            raise _too_large(formula, f"it has an interaction of more than {MOST_FACTORS} columns")
        terms.append(factors)
    return _read(left[0].factors[0], formula), sorted(terms, key=len)


def _require_small(tree: Any, formula: object) -> None:
    """Refuses operators beyond the grammar, and products and powers that would expand to too many
    terms, before they are expanded.

    A node counts at most as many terms as its operator can make of its arguments'; nothing is
    evaluated, and nothing recurses.
    """
    waiting, counts = [(tree, False)], list[int]()
    while waiting:
        node, seen = waiting.pop()
        operator = getattr(node, "operator", None)
        if operator is None:
            counts.append(1)
        elif not seen:
            if operator.symbol not in OPERATORS:
                raise _refused(
                    formula, f"{shown(operator.symbol)} is not an operator of the grammar"
                )
            waiting += [(node, True), *((part, False) for part in reversed(list(node.args)))]
        else:
            parts = [counts.pop() for _ in node.args][::-1]
            exponent = str(list(node.args)[-1]) if operator.symbol in ("**", "^") else ""
            power = min(int(exponent), 64) if exponent.isdigit() and len(exponent) < 6 else 64
            first, last = parts[0], parts[-1]
            base = next(iter(node.args))
            if exponent and getattr(base, "operator", None) is None:
                raise _refused(
                    formula,
                    f"{base}{operator.symbol}{exponent} is a power of one column, and powers are "
                    "of sums: (a + b)**2 is a + b + a:b",
                    _power_hint(str(base), exponent),
                )
            size = {
                "*": first + last + first * last,
                ":": first * last,
                "**": first**power,
                "^": first**power,
                "-": first,
            }.get(operator.symbol, sum(parts))
            if size > MOST_TERMS:
                raise _too_large(formula, f"it expands to more than {MOST_TERMS} terms")
            counts.append(size)


def _read(factor: Any, formula: object) -> Term:
    """A factor as the parser found it: a name (in backticks, it may hold any character),
    or a call.
    """
    text = str(factor.expr)
    return (
        Term(text)
        if getattr(getattr(factor, "eval_method", None), "value", "") == "lookup"
        else _call_of(text, formula)
    )


def _call_of(text: str, formula: object) -> Term:
    """A literal call; anything beyond the grammar is refused."""
    quoted = re.findall("`([^`]*)`", text)
    plain = re.sub("`[^`]*`", lambda found: f"quoted_name_{len(text)}_{found.start()}", text)
    places = {
        f"quoted_name_{len(text)}_{found.start()}": name
        for found, name in zip(re.finditer("`[^`]*`", text), quoted, strict=True)
    }
    try:
        tree = ast.parse(plain, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _refused(formula, f"{shown(text)} is not in the grammar") from None
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise _refused(formula, f"{shown(text)} is not in the grammar", _call_hint(tree))
    if tree.func.id not in FUNCTIONS:
        raise _refused(
            formula,
            f"{shown(tree.func.id)} is none of the functions that formulas know "
            f"({', '.join(FUNCTIONS)})",
            _call_hint(tree),
        )
    first = tree.args[0] if tree.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        column = first.value
    elif isinstance(first, ast.Name):
        column = places.get(first.id, first.id)
    else:
        raise _refused(formula, f"{shown(text)} does not name a column")
    try:
        rest = [ast.literal_eval(node) for node in tree.args[1:]]
        options = {word.arg or "**": ast.literal_eval(word.value) for word in tree.keywords}
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise _refused(formula, f"{shown(text)} has options that are not literals") from None
    return _call(tree.func.id, column, rest, options, formula)


def _call(
    name: str, column: str, rest: list[Any], options: dict[str, Any], formula: object
) -> Term:
    if name in ("log", "square") and not rest and not options:
        return Term(column, name)
    if name == "bs" and not rest and set(options) <= {"knots", "degree"}:
        knots = options.get("knots", ())
        degree = options.get("degree", 3)
        if (
            isinstance(knots, (list, tuple))
            and all(isinstance(knot, (int, float)) and math.isfinite(knot) for knot in knots)
            and type(degree) is int
            and 1 <= degree <= 5
        ):
            return Term(column, "bs", tuple(float(knot) for knot in knots), degree)
    if name == "C" and set(options) <= {"base", "coding"} and len(rest) <= 1:
        coding = rest[0] if rest else options.get("coding", "treatment")
        base = options.get("base")
        if coding in ("treatment", "sum") and (
            base is None or isinstance(base, (str, int, float, bool))
        ):
            return Term(column, "levels", base=options.get("base"), coding=coding)
    raise _refused(formula, f"{name}(…) with these options is not in the grammar")


def _response(term: Term, schema: Schema, counts: bool, *, centred: bool) -> tuple[Response, str]:
    column = schema[term.column]
    if isinstance(column, (Boolean, Category)):
        if term.transform not in ("linear", "levels"):
            raise WrongColumnKind(term.column, "Category", "Real or Integer", f"{term.transform}()")
        if isinstance(column, Category) and term.base is None and len(column.levels) != 2:
            raise InvalidParameter(
                f"response {term.column!r}",
                f"it has {len(column.levels)} levels",
                "a yes/no response is one level against all others",
                f'name the level that counts as yes: C({term.column}, base="…")',
            )
        code = 1 if isinstance(column, Boolean) or term.base is None else column.index(term.base)
        return Response(level=(term.column, code)), term.column
    if not isinstance(column, (Real, Integer)):
        raise WrongColumnKind(
            term.column, type(column).__name__, "Real, Integer, Boolean or Category", "a response"
        )
    if counts:
        return Response(Factor(term.column, column.encoding())), term.column
    low, high = float(column.low), float(column.high)
    if term.transform == "log":
        if low <= 0:
            raise _needs_positive(term.column)
        grid = Encoding(
            low / 2 + high / 2,
            2**LOG_RESPONSE_BITS / ((high - low) / 2),
            -(2**LOG_RESPONSE_BITS),
            2**LOG_RESPONSE_BITS,
        )
        return Response(Factor(term.column, grid), transform="log", centred=centred), term.text
    if term.transform != "linear":
        raise _refused(term.text, "a response can be a column or its log")
    grid = Encoding(
        low / 2 + high / 2,
        2**RESPONSE_BITS / ((high - low) / 2),
        -(2**RESPONSE_BITS),
        2**RESPONSE_BITS,
    )
    return Response(Factor(term.column, grid), centred=centred), term.column


def _columns(
    term: tuple[Term, ...],
    present: set[frozenset[Term]],
    used: set[tuple[frozenset[Term], frozenset[Term]]],
    schema: Schema,
) -> list[ModelColumn]:
    """The columns of one term that earlier terms do not span already (`used` grows)."""
    if not term:
        used.add((frozenset(), frozenset()))
        return [ModelColumn("intercept", ())]
    categories = [
        factor for factor in term if isinstance(schema[factor.column], (Boolean, Category))
    ]
    numbers = frozenset(factor for factor in term if factor not in categories)
    centred = all(
        frozenset(part) in present
        for size in range(len(term))
        for part in itertools.combinations(term, size)
    )
    columns = []
    for coding in _codings(categories, numbers, used):
        choices = [
            _components(
                factor,
                schema,
                centred=centred,
                reduced=not coding.get(factor, frozenset(term) - {factor} not in present),
            )
            for factor in term
            if factor in numbers or factor in coding
        ]
        if math.prod(len(components) for components in choices) > LARGEST_COLUMNS:
            raise _too_large(
                ":".join(factor.text for factor in term),
                f"it has more than {LARGEST_COLUMNS} columns",
            )
        columns += [
            ModelColumn(
                ":".join(name for name, _ in chosen), tuple(component for _, component in chosen)
            )
            for chosen in itertools.product(*choices)
        ]
    return columns


def _codings(
    categories: list[Term],
    numbers: frozenset[Term],
    used: set[tuple[frozenset[Term], frozenset[Term]]],
) -> list[dict[Term, bool]]:
    """How the categories of a term are coded: each entry maps some of them to True
    (one column a level) or False (a base left out).

    A term spans the reduced products of all subsets of its categories. Those that earlier terms
    span are left out; of the rest, a product with and without one more reduced factor are together
    that product with the factor's full coding.
    """
    parts = []
    for size in range(len(categories) + 1):
        for subset in itertools.combinations(categories, size):
            if (numbers, frozenset(subset)) not in used:
                used.add((numbers, frozenset(subset)))
                parts.append(dict.fromkeys(subset, False))
    merged = True
    while merged:
        merged = False
        for short, long in itertools.permutations(parts, 2):
            extra = [factor for factor in long if factor not in short]
            if (
                len(extra) == 1
                and len(long) == len(short) + 1
                and not long[extra[0]]
                and all(long[factor] == short[factor] for factor in short)
            ):
                parts[parts.index(long)] = long | {extra[0]: True}
                parts.remove(short)
                merged = True
                break
    return parts


def _components(
    factor: Term, schema: Schema, *, centred: bool, reduced: bool
) -> list[tuple[str, Component]]:
    column = schema[factor.column]
    if isinstance(column, (Boolean, Category)):
        if factor.transform not in ("linear", "levels"):
            raise WrongColumnKind(
                factor.column, "Category", "Real or Integer", f"{factor.transform}()"
            )
        return _contrasts(factor, column, reduced)
    if not isinstance(column, (Real, Integer)) or factor.transform == "levels":
        raise (
            WrongColumnKind(factor.column, type(column).__name__, "Category or Boolean", "C()")
            if factor.transform == "levels"
            else WrongColumnKind(
                factor.column,
                type(column).__name__,
                "Real, Integer, Boolean or Category",
                "a formula",
            )
        )
    source = Factor(factor.column, column.encoding(PIECE_BITS))
    low, high = float(column.low), float(column.high)
    if factor.transform == "bs":
        return _splines(factor, source, low, high, reduced)
    if factor.transform == "log":
        if low <= 0:
            raise _needs_positive(factor.column)
        ends = (math.log(low), math.log(high))
    elif factor.transform == "square":
        ends = (0.0 if low <= 0 <= high else min(low**2, high**2), max(low**2, high**2))
    else:
        ends = (low, high)
    if not centred:
        largest = max(abs(end) for end in ends)
        ends = (-largest, largest)
    name = (
        f"{factor.text}[{units_of(column.origin or '')}]"
        if isinstance(column, Date)
        else factor.text
    )
    return [(name, NumberComponent(source, factor.transform, *ends))]


def _contrasts(
    factor: Term, column: Boolean | Category, reduced: bool
) -> list[tuple[str, Component]]:
    levels: Sequence[Any] = (False, True) if isinstance(column, Boolean) else column.levels
    base = 0
    if factor.base is not None:
        base = int(bool(factor.base)) if isinstance(column, Boolean) else column.index(factor.base)
    names = [f"{factor.column}[{level_text(level)}]" for level in levels]
    size, shown_levels = (
        len(levels),
        [place for place in range(len(levels)) if not reduced or place != base],
    )
    if factor.coding == "sum" and reduced:
        return [
            (
                names[place],
                LevelComponent(
                    factor.column,
                    tuple(
                        1 if code == place else -1 if code == base else 0 for code in range(size)
                    ),
                ),
            )
            for place in shown_levels
        ]
    return [
        (
            names[place],
            LevelComponent(factor.column, tuple(1 if code == place else 0 for code in range(size))),
        )
        for place in shown_levels
    ]


def _splines(
    factor: Term, source: Factor, low: float, high: float, reduced: bool
) -> list[tuple[str, Component]]:
    """B-splines on the declared range; the first function is left out where the margin has a
    constant, as their sum is 1.
    """
    inner = factor.knots
    if (
        any(not low < knot < high for knot in inner)
        or any(a >= b for a, b in itertools.pairwise(inner))
        or len(inner) > LARGEST_SPLINE
    ):
        raise InvalidParameter(
            f"bs({factor.column})",
            "its knots do not increase inside the declared range",
            "knots are declared, never learnt from the data",
            f"name increasing knots between {low:g} and {high:g}",
        )
    knots = (low,) * (factor.degree + 1) + inner + (high,) * (factor.degree + 1)
    count = len(inner) + factor.degree + 1
    return [
        (
            f"bs({factor.column})[{place}]",
            NumberComponent(source, "spline", -1.0, 1.0, knots, place),
        )
        for place in range(1 if reduced else 0, count)
    ]


def names_of(columns: Iterable[ModelColumn]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def _needs_positive(name: str) -> InvalidParameter:
    return InvalidParameter(
        f"log({name})",
        "its declared range is not above 0",
        "the log of a bound must be finite",
        f"declare {name} with a positive lower bound",
    )


def _too_large(formula: object, found: str) -> InvalidParameter:
    return InvalidParameter(
        f"formula {shown(formula)}",
        found,
        "every column of a model has noise of its own, and a formula is read before anything is "
        "spent",
        "name fewer columns, or fewer interactions",
    )


def _refused(formula: object, found: str, remedy: str = _GRAMMAR) -> InvalidParameter:
    return InvalidParameter(f"formula {shown(formula)}", found, _WHY, remedy)


def _power_hint(name: str, exponent: str) -> str:
    """How a power of a column is written."""
    if exponent == "2":
        return f"write square({name}) for the square, beside {name} itself"
    return f"write bs({name}, knots=(…)) for a curve, or square({name}) for the square"


def _call_hint(tree: ast.expr) -> str:
    """What a function of R, patsy or numpy is called here."""
    if not isinstance(tree, ast.Call) or not tree.args:
        return _GRAMMAR
    function, first = tree.func, tree.args[0]
    if isinstance(first, ast.BinOp) and isinstance(first.op, (ast.Pow, ast.BitXor)):
        return _power_hint(ast.unparse(first.left), ast.unparse(first.right))
    if not isinstance(first, ast.Name):
        return _GRAMMAR
    called = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
    meant = {
        "log": "log({})",
        "square": "square({})",
        "poly": "bs({}, knots=(…))",
        "ns": "bs({}, knots=(…))",
        "cr": "bs({}, knots=(…))",
        "factor": "C({})",
    }.get(called)
    return _GRAMMAR if meant is None else f"write {meant.format(first.id)}"
