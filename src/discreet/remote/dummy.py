"""A seat on made-up rows, in this process: every call of the far side, answered by a session at
hand.

Rows come from the schema alone, so that nothing is known from them of anybody, and nothing is
spent. They are there to try a script on: every release says that they are made up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from discreet.accounting.guarantees import Guarantee
from discreet.asking.written import letters_of
from discreet.exact import stored_fraction
from discreet.inference.results.stored import question_from_dict
from discreet.neighbors import Neighbors
from discreet.remote.far import Words, budget_of_words, words_of_price
from discreet.schema import Schema
from discreet.trusted.datasets import from_arrays
from discreet.trusted.ledger.entries import Entry
from discreet.trusted.ledger.requests import Reservation
from discreet.trusted.session import Session


class HereSeat:
    """The far side of a session that is at hand: what it hands over is JSON, as by HTTP."""

    made_up = False

    def __init__(self, session: Session) -> None:
        self._session = session

    def facts(self) -> Words:
        public = self._session.public
        return _travelled(
            {
                "schema": public.schema.to_dict(),
                "neighbors": public.neighbors.to_dict(),
                "public_count": public.count,
            }
        )

    def boxes(self) -> list[Words]:
        ledger = self._session.ledger
        amounts = {"left": ledger.remaining(), "spent": ledger.spent()}
        box: Words = {name: words_of_price(held.exact()) for name, held in amounts.items()}
        box |= {"budget": letters_of(ledger.budget), "box": words_of_price(ledger.box)}
        return [_travelled(box | {"kind": "carved", "head": ledger.head})]

    def entries(self) -> list[Words]:
        return [_travelled(_entry_words(entry)) for entry in self._session.ledger.entries()]

    def release(self, question: Words, key: str, reservation: str | None) -> Words:
        held = None if reservation is None else Reservation(self._session.ledger, reservation)
        asked = question_from_dict(_travelled(question))
        return _parsed(self._session.release(asked, key=key, reservation=held).to_json())

    def reserve(self, spend: Words, delta: str, key: str) -> Words:
        held = self._session.reserve(
            budget_of_words(_travelled(spend)), delta=stored_fraction(delta), key=key
        )
        return {"reservation": held.id}

    def close(self, reservation: str) -> Words:
        returned = self._session.ledger.close_reservation(reservation)
        return _travelled({"returned": words_of_price(returned.exact())})


class DummySeat(HereSeat):
    """A seat on rows that were made up of the schema."""

    made_up = True


def dummy_seat(
    columns: Mapping[str, Any], schema: Schema, neighbors: Neighbors, budget: Guarantee
) -> DummySeat:
    """A seat on made-up columns, declared as the data set that they stand for."""
    rows = from_arrays(columns, schema=schema, neighbors=neighbors)
    return DummySeat(rows.open(budget=budget))


def _entry_words(entry: Entry) -> Words:
    return {
        "number": entry.number,
        "kind": entry.kind,
        "key": entry.key,
        "reservation": entry.reservation,
        "amounts": words_of_price(entry.amounts.exact()),
        "request": entry.request,
        "hash": entry.hash,
    }


def _travelled(words: Words) -> Words:
    return _parsed(json.dumps(words, ensure_ascii=False))


def _parsed(text: str) -> Words:
    parsed: Words = json.loads(text)
    return parsed
