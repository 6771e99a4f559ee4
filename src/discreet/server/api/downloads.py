"""Answers as files: JSON, a table, a picture; what data may hold is escaped in each."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

from starlette.responses import Response

from discreet.errors import MissingExtra
from discreet.server.accounts.people import Person
from discreet.server.desk.desk import Desk
from discreet.server.refusals import conflict, invalid

_NUMBER = re.compile(r"[-+]?[0-9][0-9 ,.\u2009\u202f]*(e[-+]?[0-9]+)?%?")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def json_of(desk: Desk, person: Person, answer: str) -> Response:
    """The text that `dp.from_json` reads."""
    told = desk.named.look(person, answer)
    if told["status"] != "answered":
        raise _not_there_yet()
    text = json.dumps(told.get("result") or told["release"], ensure_ascii=True)
    return _file(text.encode(), "application/json", f"{answer}.json")


def csv_of(desk: Desk, person: Person, answer: str) -> Response:
    """The table of the result's summary."""
    summary = _result(desk, person, answer).summary()
    text = io.StringIO()
    writer = csv.writer(text)
    for row in (summary.header, *summary.rows):
        writer.writerow([safe_cell(str(cell)) for cell in row])
    return _file(text.getvalue().encode(), "text/csv; charset=utf-8", f"{answer}.csv")


def svg_of(desk: Desk, person: Person, answer: str) -> Response:
    """The picture that `plot` draws, with all text as outlines."""
    result = _result(desk, person, answer)
    plot = getattr(result, "plot", None)
    if plot is None:
        raise invalid("a picture", "this result has none", "it is a table", "download the table")
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("matplotlib", "plots", "a picture") from None
    with tempfile.TemporaryDirectory() as folder, matplotlib.rc_context({"svg.fonttype": "path"}):
        path = Path(folder) / "answer.svg"
        plot(path=str(path))
        drawn = _COMMENT.sub("", path.read_text("utf-8"))  # comments repeat what is drawn
        return _file(drawn.encode(), "image/svg+xml", f"{answer}.svg", inline=True)


def safe_cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula; numbers stay numbers."""
    if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text):
        return "'" + text
    return text


def _result(desk: Desk, person: Person, answer: str) -> Any:
    result = desk.named.result(person, answer)
    if result is None:
        raise _not_there_yet()
    return result


def _file(body: bytes, kind: str, name: str, *, inline: bool = False) -> Response:
    how = "inline" if inline else "attachment"
    headers = {"Content-Disposition": f'{how}; filename="{name}"'}
    return Response(body, media_type=kind, headers=headers)


def _not_there_yet() -> Exception:
    return conflict(
        "an answer as a file",
        "there is no answer yet, or there will be none",
        "it leaves at a time that depends on public facts alone",
        "look at the answer first",
    )
