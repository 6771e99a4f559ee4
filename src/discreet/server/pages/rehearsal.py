"""A question asked of made-up rows: to see what an answer looks like before one is paid for."""

from __future__ import annotations

from typing import Any

from discreet.accounting.guarantees import GDP
from discreet.asking.records import resolve
from discreet.asking.written import guarantee_of_letters
from discreet.neighbors import neighbors_from_dict
from discreet.remote.dummy import dummy_seat
from discreet.remote.session import RemoteSession
from discreet.schema import Schema, column_from_dict
from discreet.server.accounts.people import Person
from discreet.server.desk.desk import Desk
from discreet.server.desk.named import planned_of
from discreet.server.refusals import invalid

ROWS, SEED = 1000, 1
SLOW = ("mwem", "synthesize", "network", "erm", "posterior", "posterior_sample")
Words = dict[str, Any]


def on_dummy_rows(desk: Desk, person: Person, study: Words, asked: Words) -> Any:
    """The summary of an answer on rows that were made up of the schema alone."""
    planned = planned_of(asked)
    if planned.record.name in SLOW:
        raise invalid(
            "made-up rows",
            f"dp.{planned.record.name} takes long",
            "a page answers at once, or others wait",
            "try it in Python, with open(…, dummy=True)",
        )
    made = desk.datasets.dummy(person, study["dataset"], rows=ROWS, seed=SEED)
    told = desk.datasets.one(person, study["dataset"])
    schema = Schema({name: column_from_dict(one) for name, one in told["schema"].items()})
    relation = neighbors_from_dict(told["neighbors"])
    budget = guarantee_of_letters(study["budget"]) or GDP(1)
    session = RemoteSession(dummy_seat(made["columns"], schema, relation, budget))
    return planned.call(resolve(planned.record.function), session).summary()
