"""The questions that the page can build: which words each estimator takes, how a form says them.

What the form says becomes the words that `POST /v1/studies/{study}/questions` takes; the desk
checks them again, and whatever is not here can be written in those words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from discreet.server.pages.forms import Form, number_of, numbers_of
from discreet.server.refusals import invalid

Words = dict[str, Any]
NUMBERS, GROUPS = ("real", "integer", "date", "datetime"), ("category", "boolean")
MOST_BOXES = 40  # levels that a filter shows one by one


@dataclass(frozen=True, slots=True)
class Asked:
    """One word of an estimator, as a field."""

    name: str
    label: str
    kind: str = "number"  # column, columns, by, number, numbers, level, text
    of: tuple[str, ...] = NUMBERS  # kinds of columns
    usual: str = ""
    needed: bool = True
    help: str = ""


@dataclass(frozen=True, slots=True)
class Estimator:
    """An estimator of the page."""

    name: str
    label: str
    group: str
    fields: tuple[Asked, ...] = ()
    where: bool = True


COLUMN = Asked("column", "Column", "column")
PAIR = Asked("columns", "Columns", "columns")
BY = Asked("by", "By groups of", "by", (*GROUPS, *NUMBERS))
BY_IF = Asked("by", "By groups of", "by", (*GROUPS, *NUMBERS), needed=False)
TWO = Asked("by", "Two groups of", "column", GROUPS)
BINS = Asked("bins", "Bins", "bins", needed=False, help="how many, or edges with commas between")
SHARE = Asked("column", "Column", "column", GROUPS)
LEVEL = Asked("level", "Share of", "level", GROUPS, needed=False)
FORMULA = Asked("formula", "Formula", "text", help="for example income ~ age + education")
NULL = Asked("null", "Compared with", usual="0")

_COUNTS, _NUMBERS = "Counts and tables", "Numbers of one column"
_TESTS, _MODELS = "Comparisons and tests", "Several columns and models"
ESTIMATORS = (
    Estimator("count", "Count of rows", _COUNTS),
    Estimator("proportion", "Share of a level", _COUNTS, (SHARE, LEVEL)),
    Estimator(
        "table",
        "Table of counts and means by groups",
        _COUNTS,
        (BY, Asked("column", "Mean of", "column", needed=False)),
    ),
    Estimator("histogram", "Histogram", _COUNTS, (COLUMN, BINS)),
    Estimator("mode", "Most frequent level", _COUNTS, (SHARE,)),
    Estimator("mean", "Mean", _NUMBERS, (COLUMN,)),
    Estimator("sum", "Sum", _NUMBERS, (COLUMN,)),
    Estimator("median", "Median", _NUMBERS, (COLUMN, BY_IF)),
    Estimator(
        "quantile", "Quantile", _NUMBERS, (COLUMN, Asked("q", "Quantile", usual="0.9"), BY_IF)
    ),
    Estimator(
        "quantiles",
        "Several quantiles",
        _NUMBERS,
        (COLUMN, Asked("qs", "Quantiles", "numbers", usual="0.25, 0.5, 0.75")),
    ),
    Estimator("std", "Standard deviation", _NUMBERS, (COLUMN, BY_IF)),
    Estimator("iqr", "Interquartile range", _NUMBERS, (COLUMN,)),
    Estimator("trimmed_mean", "Trimmed mean", _NUMBERS, (COLUMN,)),
    Estimator("ecdf", "Distribution function", _NUMBERS, (COLUMN,)),
    Estimator("describe", "Overview of columns", _NUMBERS, (PAIR,), where=False),
    Estimator("missing", "Missing values", _NUMBERS, (PAIR,), where=False),
    Estimator("compare", "Shares of two groups", _TESTS, (SHARE, TWO, LEVEL)),
    Estimator("compare_means", "Means of groups", _TESTS, (COLUMN, TWO)),
    Estimator("mean_test", "Test of a mean", _TESTS, (COLUMN, NULL)),
    Estimator(
        "independence_test",
        "Independence of two columns",
        _TESTS,
        (
            Asked("first", "First column", "column", GROUPS),
            Asked("second", "Second column", "column", GROUPS),
        ),
    ),
    Estimator("correlation", "Correlations", _MODELS, (PAIR,)),
    Estimator("ols", "Linear regression", _MODELS, (FORMULA,)),
    Estimator("robust", "Robust regression", _MODELS, (FORMULA,)),
    Estimator("logistic", "Logistic regression", _MODELS, (FORMULA,)),
    Estimator("poisson", "Poisson regression", _MODELS, (FORMULA,)),
)
OWN_WORDS = Estimator("words", "Any other, in words", "Everything else", where=False)
KNOWN = {one.name: one for one in (*ESTIMATORS, OWN_WORDS)}


def estimator_of(name: str) -> Estimator:
    """An estimator of the page, by its name."""
    found = KNOWN.get(name or "mean")
    if found is None:
        raise invalid(
            "estimator", "the page has none of that name", "it decides what is asked", "choose one"
        )
    return found


def grouped() -> dict[str, list[Estimator]]:
    """The estimators by what they are for."""
    found: dict[str, list[Estimator]] = {}
    for one in KNOWN.values():
        found.setdefault(one.group, []).append(one)
    return found


def columns_of(schema: Mapping[str, Words], kinds: tuple[str, ...]) -> list[str]:
    """The declared columns of some kinds."""
    return [name for name, told in schema.items() if told["kind"] in kinds]


def words_of(form: Form, schema: Mapping[str, Words]) -> Words:
    """What a form asks, in the words of the service."""
    chosen, spend = estimator_of(form.text("estimator")), form.letters("spend", "the spend")
    if chosen is OWN_WORDS:
        return {**_own_words(form.text("words")), "spend": spend}
    asked: Words = {"estimator": chosen.name}
    for field in chosen.fields:
        said = _READ[field.kind](form, field, schema)
        if said is None and field.needed:
            raise invalid(
                field.label, "it is not filled in", "it is part of the question", "say it"
            )
        if said is not None:
            asked[field.name] = said
    where = dict(_where(form, schema)) if chosen.where else {}
    return asked | ({"where": where} if where else {}) | {"spend": spend}


def _own_words(text: str) -> Words:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("estimator"), str):
        raise invalid(
            "a question in words",
            "it is no JSON object with an estimator",
            "it is read as POST /v1/studies/…/questions reads it",
            'write for example {"estimator": "variance", "column": "income"}',
        )
    told.pop("spend", None)
    return told


def _where(form: Form, schema: Mapping[str, Words]) -> Iterator[tuple[str, Any]]:
    """The filter: levels that are ticked, or ends of a range."""
    for place, (name, told) in enumerate(schema.items()):
        if told["kind"] in GROUPS:
            levels = levels_of(told)
            found = [_level(levels, one) for one in form.texts(f"where{place}") if one]
            if found:
                yield name, found
        elif told["kind"] in NUMBERS:
            ends = [
                _end(told, form.text(f"where{place}{side}"), f"the filter of {name}")
                for side in ("low", "high")
            ]
            if ends != [None, None]:
                yield name, ends


def levels_of(told: Words) -> list[Any]:
    """What a column of groups may hold."""
    return [False, True] if told["kind"] == "boolean" else list(told["levels"])


def _level(levels: list[Any], place: str) -> Any:
    if not place.isdecimal() or len(place) > 6 or int(place) >= len(levels):
        raise invalid("a level", "it is not declared", "levels are public", "choose one")
    return levels[int(place)]


def _end(told: Words, text: str, called: str) -> Any:
    if not text:
        return None
    return text if told["kind"] in ("date", "datetime") else number_of(text, called)


def _column(form: Form, field: Asked, schema: Mapping[str, Words]) -> str | None:
    return form.text(field.name) or None


def _columns(form: Form, field: Asked, schema: Mapping[str, Words]) -> list[str] | None:
    return [one for one in form.texts(field.name) if one] or None


def _by(form: Form, field: Asked, schema: Mapping[str, Words]) -> Any:
    """Columns of groups, and columns of numbers or dates with their bins."""
    found: list[Any] = []
    for turn in ("", "2"):
        name = form.text(f"by{turn}")
        if not name:
            continue
        told = schema.get(name, {})
        bins = form.text(f"by{turn}bins")
        if told.get("kind") in NUMBERS:
            found.append({name: _cut(bins, told)})
        else:
            found.append(name)
    if not found:
        return None
    return found[0] if len(found) == 1 and isinstance(found[0], str) else found


def _bins(form: Form, field: Asked, schema: Mapping[str, Words]) -> Any:
    text = form.text(field.name)
    return _cut(text, schema.get(form.text("column"), {})) if text else None


def _cut(text: str, told: Words) -> Any:
    """A number of bins, edges, or a word of the calendar."""
    if told.get("kind") in ("date", "datetime") and not text[:1].isdigit():
        return text or "year"
    if not text:
        return 4
    if told.get("kind") in ("date", "datetime") and "," in text:
        return [one.strip() for one in text.split(",")]
    found = numbers_of(text, "bins")
    return found[0] if len(found) == 1 else found


def _one_number(form: Form, field: Asked, schema: Mapping[str, Words]) -> Any:
    return form.number(field.name, field.label)


def _numbers(form: Form, field: Asked, schema: Mapping[str, Words]) -> Any:
    return numbers_of(form.text(field.name), field.label) or None


def _level_of_column(form: Form, field: Asked, schema: Mapping[str, Words]) -> Any:
    """A level by its column and its place; those of other columns are left out."""
    column, _, place = form.text(field.name).rpartition(":")
    if not place or column != form.text("column") or column not in schema:
        return None
    told = schema[column]
    return None if told["kind"] == "boolean" else _level(levels_of(told), place)


def _text(form: Form, field: Asked, schema: Mapping[str, Words]) -> str | None:
    return form.text(field.name) or None


_READ: dict[str, Callable[[Form, Asked, Mapping[str, Words]], Any]] = {
    "column": _column,
    "columns": _columns,
    "by": _by,
    "bins": _bins,
    "number": _one_number,
    "numbers": _numbers,
    "level": _level_of_column,
    "text": _text,
}
