"""Routes of data sets, studies and ledgers."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from discreet.server.api.bodies import (
    AmendBody,
    DatasetBody,
    DecisionBody,
    PopulationBody,
    ReasonBody,
    SeatBody,
    StudyBody,
    VersionBody,
)
from discreet.server.api.door import an_id, for_person

routes = APIRouter(tags=["data"])
Words = dict[str, Any]


@routes.get("/datasets")
def datasets(request: Request) -> Words:
    """The data sets that one may know of."""
    return {"datasets": for_person(request, lambda desk, who: desk.datasets.listed(who))}


@routes.post("/datasets", status_code=201)
def register(request: Request, body: DatasetBody) -> Words:
    """Registers a data set with its budget, for good."""
    words = body.model_dump()
    words["schema"] = words.pop("columns")
    return for_person(request, lambda desk, who: desk.datasets.register(who, **words))


@routes.get("/datasets/{dataset}")
def one_dataset(request: Request, dataset: str) -> Words:
    """Schema, relation, public count and promise."""
    return for_person(request, lambda desk, who: desk.datasets.one(who, an_id(dataset)))


@routes.get("/datasets/{dataset}/dummy")
def dummy(request: Request, dataset: str, rows: int = 1000, seed: int = 1) -> Words:
    """Rows that are made up of the schema alone."""
    return for_person(
        request,
        lambda desk, who: desk.datasets.dummy(who, an_id(dataset), rows=rows, seed=seed),
    )


@routes.get("/datasets/{dataset}/tree")
def tree(request: Request, dataset: str) -> Words:
    """All its boxes, for owners and auditors."""
    return for_person(request, lambda desk, who: desk.datasets.tree(who, an_id(dataset)))


@routes.post("/datasets/{dataset}/versions", status_code=201)
def new_version(request: Request, dataset: str, body: VersionBody) -> Words:
    """Other rows about the same people, which spend the same box."""
    return for_person(
        request,
        lambda desk, who: desk.datasets.new_version(who, an_id(dataset), source=body.source),
    )


@routes.post("/datasets/{dataset}/freeze")
def freeze(request: Request, dataset: str, body: ReasonBody) -> Words:
    """Nothing more is debited or drawn until it is thawed."""
    return for_person(
        request, lambda desk, who: desk.datasets.freeze(who, an_id(dataset), reason=body.reason)
    )


@routes.post("/datasets/{dataset}/thaw")
def thaw(request: Request, dataset: str) -> Words:
    """Goes on after a freeze."""
    return for_person(request, lambda desk, who: desk.datasets.thaw(who, an_id(dataset)))


@routes.post("/datasets/{dataset}/close")
def close_dataset(request: Request, dataset: str) -> Words:
    """No more questions, for good."""
    return for_person(request, lambda desk, who: desk.datasets.close(who, an_id(dataset)))


@routes.get("/populations")
def populations(request: Request) -> Words:
    """Boxes above several data sets, for owners and auditors."""
    return {"populations": for_person(request, lambda desk, who: desk.populations.listed(who))}


@routes.post("/populations", status_code=201)
def new_population(request: Request, body: PopulationBody) -> Words:
    """One box above data sets about the same people, for good."""
    return for_person(request, lambda desk, who: desk.populations.make(who, **body.model_dump()))


@routes.get("/populations/{population}")
def one_population(request: Request, population: str) -> Words:
    """What it promises, what is left of it, and its data sets."""
    return for_person(request, lambda desk, who: desk.populations.one(who, an_id(population)))


@routes.get("/sources")
def sources(request: Request) -> Words:
    """The files that could be registered, for owners."""
    return {"sources": for_person(request, lambda desk, who: desk.datasets.sources(who))}


@routes.get("/studies")
def studies(request: Request) -> Words:
    """One's own studies and requests, or those on one's own data."""
    return {"studies": for_person(request, lambda desk, who: desk.studies.listed(who))}


@routes.post("/studies", status_code=201)
def ask_for_study(request: Request, body: StudyBody) -> Words:
    """Asks the owner of a data set for a study; an owner's own is open at once."""
    return for_person(request, lambda desk, who: desk.studies.ask(who, **body.model_dump()))


@routes.get("/studies/{study}")
def one_study(request: Request, study: str) -> Words:
    """A study, with one's own seat and its boxes."""
    return for_person(request, lambda desk, who: desk.studies.one(who, an_id(study)))


@routes.post("/studies/{study}/amend")
def amend(request: Request, study: str, body: AmendBody) -> Words:
    """Other words for a request that is not decided yet."""
    return for_person(
        request, lambda desk, who: desk.studies.amend(who, an_id(study), **body.model_dump())
    )


@routes.post("/studies/{study}/decision")
def decide(request: Request, study: str, body: DecisionBody) -> Words:
    """Approves or declines a request."""
    return for_person(
        request, lambda desk, who: desk.studies.decide(who, an_id(study), **body.model_dump())
    )


@routes.post("/studies/{study}/seats", status_code=201)
def add_seat(request: Request, study: str, body: SeatBody) -> Words:
    """A seat for one more analyst."""
    return for_person(
        request, lambda desk, who: desk.studies.add_seat(who, an_id(study), **body.model_dump())
    )


@routes.post("/studies/{study}/close")
def close_study(request: Request, study: str) -> Words:
    """No more questions; what was not spent goes back."""
    return for_person(request, lambda desk, who: desk.studies.close(who, an_id(study)))


@routes.get("/requests")
def requests(request: Request) -> Words:
    """What waits for one's decision: studies and questions."""
    return for_person(
        request,
        lambda desk, who: {
            "studies": desk.studies.requests(who),
            "questions": desk.questions.waiting(who),
        },
    )


@routes.get("/ledger/{node}")
def ledger(request: Request, node: str, after: int = -1, limit: int = 200) -> Words:
    """The lines of a chain after a number."""
    return for_person(
        request,
        lambda desk, who: desk.ledgers.entries(who, an_id(node), after=after, limit=limit),
    )


@routes.post("/ledger/{node}/verify")
def verify(request: Request, node: str) -> Words:
    """Whether the history adds up."""
    return for_person(request, lambda desk, who: desk.ledgers.verify(who, an_id(node)))
