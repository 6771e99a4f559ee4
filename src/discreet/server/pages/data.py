"""Data sets: what is there, what is promised of it, and how one is registered."""

from __future__ import annotations

import csv
import io
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from discreet.errors import DiscreetError
from discreet.server.api.door import an_id
from discreet.server.api.downloads import safe_cell
from discreet.server.desk.desk import Desk
from discreet.server.pages.forms import KINDS, Form, Sent, number_of
from discreet.server.pages.site import Words, goes_on, looks, page
from discreet.server.refusals import invalid, status_of

routes = APIRouter()
LINES, MORE_LINES, MOST_LINES = 8, 8, 200  # of the form that declares columns
SHOWN_ROWS = 20
DUMMY_ROWS = 1000
COLUMN_KINDS = {
    "": "—",
    "real": "number",
    "integer": "whole number",
    "category": "one of a list",
    "boolean": "yes or no",
    "date": "date",
    "datetime": "date and time",
    "open": "not listed (open)",
}


@routes.get("/datasets")
def datasets(request: Request) -> Response:
    """The data sets that one may know of."""
    desk, person = looks(request)
    found = desk.datasets.listed(person)
    if person.role in ("owner", "auditor"):
        found = [desk.datasets.one(person, one["id"]) for one in found]
    return page(request, "datasets.html", here="datasets", datasets=found)


@routes.get("/datasets/new")
def new_form(request: Request) -> Response:
    """The form of a new data set: source, columns, promise."""
    desk, _ = looks(request)
    return _new(request, desk, Form({"source": [request.query_params.get("source", "")]}))


@routes.post("/datasets/new")
def register(request: Request, form: Sent) -> Response:
    """Registers a data set; or shows the form with more lines."""
    desk, person = looks(request)
    if form.has("more"):
        return _new(request, desk, form)
    try:
        listed = desk.datasets.sources(person) if form.text("source") else []
        formats = {one["source"]: one.get("format") for one in listed}
        told = _declared(form) | {"format": formats.get(form.text("source"))}
        made = desk.datasets.register(person, **told)
    except DiscreetError as error:
        if status_of(error) in (401, 403, 404):
            raise
        return _new(request, desk, form, error)
    return goes_on(f"/datasets/{made['id']}", "registered")


@routes.get("/populations")
def populations(request: Request) -> Response:
    """Boxes above several data sets."""
    desk, _ = looks(request)
    return _populations(request, desk, Form({}))


@routes.post("/populations")
def make_population(request: Request, form: Sent) -> Response:
    """One box above data sets about the same people."""
    desk, person = looks(request)
    try:
        if not form.has("sure"):
            raise _for_good()
        desk.populations.make(
            person,
            name=form.text("name"),
            description=form.text("description"),
            neighbors=_relation(form),
            budget=form.letters("budget", "the budget"),
        )
    except DiscreetError as error:
        if status_of(error) in (401, 403, 404):
            raise
        return _populations(request, desk, form, error)
    return goes_on("/populations", "population")


@routes.get("/datasets/{dataset}")
def one_dataset(request: Request, dataset: str) -> Response:
    """Promise, columns, and for owners and auditors the tree of budgets."""
    desk, _ = looks(request)
    return _one(request, desk, an_id(dataset))


@routes.post("/datasets/{dataset}/{act}")
def act_on(request: Request, dataset: str, act: str, form: Sent) -> Response:
    """Freezes, thaws, closes; or a new version."""
    desk, person = looks(request)
    name, said = an_id(dataset), {"freeze": "frozen", "thaw": "thawed", "close": "closed"}
    try:
        if act == "freeze":
            desk.datasets.freeze(person, name, reason=form.text("reason"))
        elif act == "thaw":
            desk.datasets.thaw(person, name)
        elif act == "close":
            if not form.has("sure"):
                raise _for_good()
            desk.datasets.close(person, name)
        elif act == "versions":
            desk.datasets.new_version(person, name, source=form.lines("source"))
        else:
            desk.datasets.one(person, "")
    except DiscreetError as error:
        if status_of(error) in (401, 403, 404):
            raise
        return _one(request, desk, name, error)
    return goes_on(f"/datasets/{name}", said.get(act, "version"))


@routes.get("/datasets/{dataset}/dummy")
def dummy(request: Request, dataset: str) -> Response:
    """Rows that are made up of the schema alone."""
    desk, person = looks(request)
    data = desk.datasets.one(person, an_id(dataset))
    made = desk.datasets.dummy(person, dataset, rows=DUMMY_ROWS)
    columns = made["columns"]
    shown = [[held[row] for held in columns.values()] for row in range(SHOWN_ROWS)]
    words = {"data": data, "columns": list(columns), "rows": shown, "most": DUMMY_ROWS}
    return page(request, "dummy.html", here="datasets", **words)


@routes.get("/datasets/{dataset}/dummy.csv")
def dummy_file(request: Request, dataset: str) -> Response:
    """The same rows as a file, which says of itself what it is."""
    desk, person = looks(request)
    columns = desk.datasets.dummy(person, an_id(dataset), rows=DUMMY_ROWS)["columns"]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([safe_cell(str(name)) for name in columns])
    for row in range(DUMMY_ROWS):
        writer.writerow([safe_cell(str(held[row])) for held in columns.values()])
    name = 'attachment; filename="made-up-rows.csv"'
    return Response(
        text.getvalue(), media_type="text/csv; charset=utf-8", headers={"Content-Disposition": name}
    )


def _one(
    request: Request, desk: Desk, dataset: str, problem: DiscreetError | None = None
) -> Response:
    person = request.state.person
    data = desk.datasets.one(person, dataset)
    whole = person.role in ("owner", "auditor")
    studies = [one for one in desk.studies.listed(person) if one["dataset"] == dataset]
    return page(
        request,
        "dataset.html",
        200 if problem is None else status_of(problem),
        here="datasets",
        data=data,
        tree=desk.datasets.tree(person, dataset) if whole else None,
        studies=studies,
        problem=problem,
    )


def _new(
    request: Request, desk: Desk, form: Form, problem: DiscreetError | None = None
) -> Response:
    """The form of a new data set, filled in as it was."""
    sources = desk.datasets.sources(request.state.person)
    said = form.text("lines")
    lines = int(said) if said.isdecimal() and len(said) <= 3 else LINES
    lines = min(MOST_LINES, lines + (MORE_LINES if form.has("more") else 0))
    return page(
        request,
        "new_dataset.html",
        200 if problem is None else status_of(problem),
        here="datasets",
        sources=sources,
        populations=desk.populations.listed(request.state.person),
        form=form,
        lines=lines,
        column_kinds=COLUMN_KINDS,
        kinds=KINDS,
        problem=problem,
    )


def _declared(form: Form) -> Words:
    """What the form declares, as the desk takes it."""
    if not form.has("sure"):
        raise _for_good()
    schema, reasons = _columns(form)
    sources = form.lines("source")
    most = form.number("rows_at_most", "rows at most")
    return {
        "name": form.text("name"),
        "description": form.text("description"),
        "source": sources[0] if len(sources) == 1 else sources,
        "schema": schema,
        "neighbors": _relation(form),
        "reasons": reasons,
        "budget": form.letters("budget", "the budget"),
        "rows_at_most": most,
        "listed": form.has("listed"),
        "population": form.text("population") or None,
    }


def _relation(form: Form) -> Any:
    """What is protected, in the words of a declaration file."""
    relation: Any = form.text("relation", "replace")
    if form.has("unit"):
        most = form.number("max_rows", "rows of one unit")
        relation = {"relation": relation, "unit": form.text("unit"), "max_rows": most}
    return relation


def _populations(
    request: Request, desk: Desk, form: Form, problem: DiscreetError | None = None
) -> Response:
    return page(
        request,
        "populations.html",
        200 if problem is None else status_of(problem),
        here="datasets",
        populations=desk.populations.listed(request.state.person),
        form=form,
        kinds=KINDS,
        problem=problem,
    )


def _columns(form: Form) -> tuple[dict[str, Words], dict[str, str]]:
    """Declared columns, and why each is as it is."""
    schema: dict[str, Words] = {}
    reasons: dict[str, str] = {}
    for line in range(MOST_LINES):
        name, kind = form.text(f"column{line}"), form.text(f"kind{line}")
        if not name:
            continue
        if kind not in COLUMN_KINDS or not kind or name in schema:
            raise invalid(
                f"column {line + 1}",
                "it has no kind, or its name is there twice",
                "what is not declared cannot be asked for",
                "choose what it holds, and name each column once",
            )
        schema[name] = _column(form, line, kind)
        if form.has(f"why{line}"):
            reasons[name] = form.text(f"why{line}")
    return schema, reasons


def _column(form: Form, line: int, kind: str) -> Words:
    told: Words = {"kind": kind}
    low, high = form.text(f"low{line}"), form.text(f"high{line}")
    if kind in ("real", "integer"):
        called = f"the bounds of column {line + 1}"
        told |= {"low": number_of(low, called), "high": number_of(high, called)}
    elif kind in ("date", "datetime"):
        told |= {"low": low, "high": high}
    elif kind == "category":
        listed = form.text(f"levels{line}").replace("\n", ",").split(",")
        told["levels"] = [one.strip() for one in listed if one.strip()]
    return told


def _for_good() -> DiscreetError:
    return invalid(
        "something that is done once",
        "you did not tick that you know that it cannot be undone",
        "a budget is never enlarged, and what was closed stays closed",
        "look it over, and tick the box",
    )
