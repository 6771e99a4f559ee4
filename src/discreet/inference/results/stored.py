"""Releases, and fits of several, read again from the JSON that they wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from discreet import plain
from discreet.accounting.guarantees import guarantee_from_dict
from discreet.errors import DiscreetError
from discreet.errors.questions import foreign_record
from discreet.exact import stored_fraction
from discreet.neighbors import neighbors_from_dict
from discreet.specs.registry import mechanism_from_dict, query_from_dict
from discreet.trusted.release import (
    FORMAT,
    IN_STEPS,
    VERSION,
    Description,
    Question,
    Release,
    step_from_text,
)

Fit = TypeVar("Fit")
PROCEDURE = ("discreet-procedure", 1)
_ASKED = ("asked", "query", "mechanism", "spend", "delta")  # the words of a question
# what a text that no result wrote can raise where it is read
UNREADABLE = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    RecursionError,
)


def release_from_json(text: str) -> Release:
    """The release that `Release.to_json` wrote."""
    try:
        record = json.loads(plain.text(text, "from_json"))
        if (
            isinstance(record, dict)
            and record.get("format") == FORMAT
            and record.get("version") == VERSION
        ):
            return _release_from_dict(record)
    except UNREADABLE:
        pass
    raise foreign_record(f"{FORMAT} of version {VERSION}")


def question_from_dict(record: object) -> Question:
    """The question that `Question.to_dict` wrote, word for word: what would be left out of it, or
    read as something else, is refused.
    """
    try:
        if isinstance(record, dict) and set(record) == set(_ASKED):
            question = Question(
                _description_from_dict(record["asked"]),
                query_from_dict(record["query"]),
                mechanism_from_dict(record["mechanism"]),
                guarantee_from_dict(record["spend"]),
                stored_fraction(record["delta"]),
            )
            if json.dumps(question.to_dict(), sort_keys=True) == json.dumps(record, sort_keys=True):
                return question
    except DiscreetError:
        raise
    except UNREADABLE:
        pass
    raise foreign_record("question")


def fit_to_json(
    releases: Iterable[Release], facts: dict[str, Any] | None, *, layout: tuple[str, int]
) -> str:
    """A fit in a layout (format, version): its facts, where it has any, and its releases."""
    written: dict[str, Any] = {"format": layout[0], "version": layout[1]}
    if facts is not None:
        written["facts"] = facts
    written["releases"] = [json.loads(release.to_json()) for release in releases]
    return json.dumps(written, ensure_ascii=False)


def fit_from_json(
    text: str,
    made: Callable[[tuple[Release, ...], Any], Fit],
    facts_from_dict: Callable[[dict[str, Any]], Any],
    *,
    layout: tuple[str, int],
) -> Fit | None:
    """The fit that `fit_to_json` wrote in a layout: its releases and its facts, put together by
    `made`; None where the text is something else.
    """
    try:
        record = json.loads(text)
        if not isinstance(record, dict) or (record.get("format"), record.get("version")) != layout:
            return None
        releases = (release_from_json(json.dumps(release)) for release in record["releases"])
        return made(tuple(releases), facts_from_dict(record["facts"]))
    except UNREADABLE:
        return None


def _release_from_dict(record: dict[str, Any]) -> Release:
    return Release(
        description=_description_from_dict(record["asked"]),
        query=query_from_dict(record["query"]),
        mechanism=mechanism_from_dict(record["mechanism"]),
        integers=tuple(int(value) for value in record["integers"]),
        neighbors=neighbors_from_dict(record["neighbors"]),
        spend=guarantee_from_dict(record["spend"]),
        guarantee=guarantee_from_dict(record["guarantee"]),
        public_count=record["public_count"],
        key=record["key"],
        entry=record["entry"],
        entry_hash=record["entry_hash"],
        secure=record["secure"],
        delta=stored_fraction(record["delta"]),
        found=tuple(record["found"]),
        filled=tuple((name, value) for name, value in record.get("filled", ())),
        made_up=record.get("made_up", False) is True,
    )


def _description_from_dict(record: dict[str, Any]) -> Description:
    labels = tuple(tuple(labels) for labels in record["labels"])
    # one that was asked by hand may have no step
    in_steps = record["estimator"] in IN_STEPS and bool(record["by"])
    return Description(
        record["estimator"],
        record["column"],
        () if in_steps else tuple(record["by"]),
        labels,
        record["where"],
        tuple(record["edges"]),
        step_from_text(record["by"][0]) if in_steps else None,
        record.get("origin", ""),
    )
