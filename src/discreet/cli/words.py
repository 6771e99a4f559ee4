"""From the words of a command line to the values that a public function takes, by what the columns
are declared as: levels, ranges, bins, guarantees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from discreet.accounting.guarantees import Guarantee
from discreet.asking.bases import MOST_FREQUENT
from discreet.asking.written import guarantee_of_letters, letters_of
from discreet.errors import InvalidParameter, shown
from discreet.schema import (
    FALSE_TEXT,
    TRUE_TEXT,
    Boolean,
    Category,
    Date,
    Schema,
    level_text,
    text_number,
)

_LETTERS = "--mu 0.1, --epsilon 1 --delta 1e-6, --epsilon 1 (pure) or --rho 0.005"


def spend_of(given: dict[str, float | None], bare: str | None = None) -> Guarantee:
    """The guarantee that the options name; `bare` is what a --spend without a letter said."""
    if bare is not None:
        raise InvalidParameter(
            f"--spend {bare}",
            "a number without its letter: it could be epsilon or mu",
            "the same number means very different noise under each",
            f"write {_LETTERS}",
        )
    letters = {letter: number for letter, number in given.items() if number is not None}
    found = guarantee_of_letters(letters)
    if found is None:
        raise InvalidParameter(
            "the spend",
            f"{' and '.join(f'--{letter}' for letter in letters) or 'nothing'} was given",
            "what a question may cost is said with it, never defaulted",
            f"write {_LETTERS}",
        )
    return found


def spend_text(spend: Guarantee) -> str:
    """A spend as its letters, for a key."""
    return " ".join(f"{letter}={number!r}" for letter, number in letters_of(spend).items())


def where_of(schema: Schema, texts: Sequence[str]) -> dict[str, object]:
    """``region=N,S``, ``age=18..30``, ``age=65..``, ``member=yes``: levels, or a range with both
    ends, of which one that is left out is the declared bound.
    """
    found: dict[str, object] = {}
    for text in texts:
        name, mark, told = text.partition("=")
        if not mark or name in found:
            raise _bad("--where", f"{shown(text)}: no '=', or a column twice", "region=N,S")
        found[name] = _condition(schema, name, told)
    return dict(sorted(found.items()))


def base_of(schema: Schema, texts: Sequence[str]) -> str | dict[str, object]:
    """``most frequent``, or ``region=N`` and ``region=most frequent``: bases by column."""
    if list(texts) == [MOST_FREQUENT]:
        return MOST_FREQUENT
    found: dict[str, object] = {}
    for text in texts:
        name, mark, told = text.partition("=")
        if not mark or name in found:
            raise _bad("--base", f"{shown(text)}: no '=', or a column twice", "region=N")
        chosen = told == MOST_FREQUENT
        found[name] = MOST_FREQUENT if chosen else level_of(schema, name, told)
    return dict(sorted(found.items()))


def by_of(schema: Schema, texts: Sequence[str]) -> str | list[str] | dict[str, object]:
    """``region``, ``visit:month``, ``age:18,40,65,90``, ``age:6``: columns, with their bins."""
    found: dict[str, object] = {}
    for text in texts:
        name, mark, told = (text, "", "") if text in schema else text.rpartition(":")
        name = name if mark else text
        if name in found:
            raise _bad("--by", f"{shown(name)} twice", "region --by visit:month")
        found[name] = bins_of(told) if mark else None
    if any(bins is not None for bins in found.values()):
        return found
    return list(found) if len(found) > 1 else next(iter(found))


def bins_of(text: str) -> object:
    """A number of bins, edges between commas (numbers or dates), or a word of the calendar."""
    if text.isdecimal():
        return int(text)
    return [_edge(edge) for edge in text.split(",")] if "," in text else text


def level_of(schema: Schema, column: str, text: str) -> object:
    """The declared level, or truth, that a text writes."""
    declared = schema[column]
    if isinstance(declared, Boolean):
        return _truth(text)
    if isinstance(declared, Category):
        for level in declared.levels:
            if level_text(level) == text:
                return level
    return text


def number_of(text: str) -> int | float:
    """A number, as text cells are read."""
    found = text_number(text)
    if found is None:
        raise _bad("a number", f"{shown(text)} is none", "0.5")
    return int(found) if found.is_integer() and abs(found) < 2**53 else found


def _condition(schema: Schema, name: str, told: str) -> object:
    column = schema[name]
    if isinstance(column, (Boolean, Category)):
        whole = level_of(schema, name, told)
        if isinstance(column, Category) and whole not in column.levels and "," in told:
            return [level_of(schema, name, one) for one in told.split(",")]
        return whole
    low, mark, high = told.partition("..")
    read: Callable[[str], object] = str if isinstance(column, Date) else number_of
    if not mark:
        return (read(told), read(told))
    bounds = column.to_dict()  # dates as texts
    return (read(low) if low else bounds.get("low"), read(high) if high else bounds.get("high"))


def _edge(text: str) -> object:
    return text.strip() if text_number(text) is None else number_of(text)


def _truth(text: str) -> bool:
    said = text.strip().lower()
    if said in (*TRUE_TEXT, "1", *FALSE_TEXT, "0"):
        return said in (*TRUE_TEXT, "1")
    raise _bad("a Boolean column", f"{shown(text)} is neither true nor false", "member=true")


def _bad(asked: str, found: str, example: str) -> InvalidParameter:
    return InvalidParameter(
        asked,
        found,
        "the question is built from it before any data is read",
        f"write for example {example}",
    )
