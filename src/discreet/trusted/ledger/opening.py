"""How a ledger begins, and when an existing one is accepted."""

from __future__ import annotations

import json
import os
import secrets

from discreet.accounting.guarantees import Guarantee
from discreet.errors import ledger as refusals
from discreet.trusted.ledger.entries import FIRST_PREVIOUS, Entry, canonical, draft
from discreet.trusted.ledger.memory import MemoryStore
from discreet.trusted.ledger.sqlite import FORMAT, SQLiteStore
from discreet.trusted.ledger.stores import Balance, Store
from discreet.trusted.ledger.units import Amounts, capacity
from discreet.trusted.ledger.verification import Verification, opened_with, verify
from discreet.trusted.losses.pricing import open_box

_PROBLEMS_SHOWN = 3


def asked_box(
    budget: Guarantee | None, *, pure: float | None, delta0: float | None
) -> Amounts | None:
    """The box that the caller asks for; None to take the file as it is."""
    if budget is not None:
        return capacity(open_box(budget, pure=pure, delta0=delta0))
    if pure is not None or delta0 is not None:
        raise refusals.nothing_to_split()
    return None


STORES = (MemoryStore, SQLiteStore)


def new_memory(budget: Guarantee | None, box: Amounts | None, expected_head: str | None) -> Store:
    if expected_head is not None:
        raise refusals.rolled_back("a new ledger in memory has no history")
    return MemoryStore(*_first(budget, box))


def new_or_existing_file(
    path: str | os.PathLike[str],
    budget: Guarantee | None,
    box: Amounts | None,
    expected_head: str | None,
) -> Store:
    """The ledger file at `path`, made with its box if it is not there;
    refused unless it verifies and is the one asked for.
    """
    store = SQLiteStore(path)
    if not store.path.exists():
        if expected_head is not None:
            raise refusals.rolled_back("the file does not exist")
        store.create(*_first(budget, box))
    with store.read() as view:
        report = verify(view)
        if not report.ok:
            raise refusals.broken("; ".join(report.problems[:_PROBLEMS_SHOWN]))
        entries = view.entries()
    first = entries[0]
    stored = opened_with(first)
    if (
        budget is not None
        and box is not None
        and (stored != budget or _split(first.amounts) != _split(box))
    ):
        raise refusals.other_box(f"({budget}), box {box}", f"({stored}), box {first.amounts}")
    if expected_head is not None and all(entry.hash != expected_head for entry in entries):
        raise refusals.rolled_back(f"{store.name} does not know it")
    return store


def verify_file(path: str | os.PathLike[str]) -> Verification:
    """Check a ledger file without opening it for use."""
    with SQLiteStore(path).read() as view:
        return verify(view)


def _first(budget: Guarantee | None, box: Amounts | None) -> tuple[Entry, Balance]:
    if budget is None or box is None:
        raise refusals.no_budget()
    body = canonical(
        {
            "budget": json.loads(canonical(budget.to_dict())),
            "format": FORMAT,
            "ledger": secrets.token_hex(16),
        }
    )
    entry = draft("open", "", amounts=box, body=body).after(0, FIRST_PREVIOUS)
    return entry, Balance(box=box, entries=1, head=entry.hash)


def _split(box: Amounts) -> tuple[int, int]:
    """The chosen part of a box: μ² or ρ follows from it and the budget (a later accountant may find
    a last digit of μ² differently).
    """
    return box.epsilon, box.delta
