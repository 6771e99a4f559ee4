"""What the desk says of boxes, entries and budgets: JSON in the words of `discreet.remote.far`."""

from __future__ import annotations

import json
from typing import Any

from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee
from discreet.asking.written import guarantee_of_letters, letters_of
from discreet.errors import DiscreetError, shown
from discreet.server.refusals import invalid
from discreet.trusted.ledger.entries import Entry
from discreet.trusted.ledger.units import COORDINATES, Amounts, capacity
from discreet.trusted.losses.pricing import Price

Words = dict[str, Any]
_PLACES = (12, 12, 18, 12)  # decimals of a unit in each coordinate
_ADMINISTRATION = ("note", "carve", "pool", "freeze", "thaw")
LONGEST_NAME, LONGEST_TEXT = 120, 4000


def amounts_words(amounts: Amounts) -> Words:
    """Amounts as exact decimals by coordinate."""
    return {
        name: _decimal(units, places)
        for name, units, places in zip(COORDINATES, amounts.as_tuple(), _PLACES, strict=True)
    }


def price_words(price: Price) -> Words:
    """A price as an amount, rounded down to units where it is none."""
    return amounts_words(capacity(price) if price != Price() else Amounts())


def box_words(box: Any) -> Words:
    """A box of a path, as its asker may see it."""
    return {
        "node": box.node,
        "name": box.name,
        "kind": box.kind,
        "budget": letters_of(box.budget),
        "box": price_words(box.box),
        "left": amounts_words(box.left),
        "spent": amounts_words(box.spent),
        "reserved": amounts_words(box.reserved),
        "head": box.head,
        "frozen": box.frozen,
        "closed": box.closed,
    }


def entry_words(entry: Entry, *, whole: bool) -> Words:
    """A line of a chain; its time is for those who do not ask (`whole`), who see no answer."""
    told = {
        "number": entry.number,
        "kind": entry.kind,
        "key": entry.key,
        "reservation": entry.reservation,
        "amounts": amounts_words(entry.amounts),
        "request": entry.request,
        "hash": entry.hash,
    }
    if not whole:
        return told
    about = about_words(entry)
    return {**told, "timestamp": entry.timestamp, "previous": entry.previous, "about": about}


def about_words(entry: Entry) -> Words | None:
    """What a line of administration says: a decision, a box that was carved, a freeze; None for
    debits and answers.
    """
    if entry.kind not in _ADMINISTRATION:
        return None
    held = json.loads(entry.body) if entry.body else {}
    if entry.kind == "note":
        return {"what": held["kind"], **json.loads(held["body"])}
    return {"what": entry.kind, **(held if isinstance(held, dict) else {"reason": held})}


def guarantee_from(letters: object, what: str) -> Guarantee:
    """A guarantee from its letters, for example ``{"mu": 0.1}``."""
    found = None
    if isinstance(letters, dict) and all(
        type(name) is str and type(held) in (int, float) for name, held in letters.items()
    ):
        try:
            found = guarantee_of_letters(letters)
        except (TypeError, OverflowError):
            found = None
    if found is None:
        raise invalid(
            what,
            f"{shown(letters)} is no guarantee",
            "what is promised or spent must be said exactly",
            'write {"mu": 0.1}, {"epsilon": 1, "delta": 1e-6}, {"epsilon": 0.1} or {"rho": 0.01}',
        )
    return found


def require_name(name: str, what: str) -> str:
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise invalid(
            what,
            f"it has not 1 to {LONGEST_NAME} printable characters, with none of them a space at "
            "an end",
            "people find it by this name",
            "use a short name",
        )
    return name


def require_text(text: str, what: str) -> str:
    if len(text) > LONGEST_TEXT or not text.replace("\n", " ").isprintable():
        raise invalid(
            what,
            f"it is longer than {LONGEST_TEXT} characters, or not printable",
            "people read it before they decide",
            "shorten it",
        )
    return text


def largest_that_fits(node: Any, error: DiscreetError) -> DiscreetError:
    """A refusal for want of room, with the largest spend that still fits every box of the path."""
    fits: Words = {}
    for box in node.boxes():
        spend = statement.remaining(box.budget, box.left, ()).spend
        if spend is None:
            fits = {}
            break
        letters = letters_of(spend)
        alike = letters.keys() == fits.keys()
        fits = letters if not fits or (alike and _first(letters) < _first(fits)) else fits
    error.fits = fits  # type: ignore[attr-defined]
    return error


def _first(letters: Words) -> float:
    return float(next(iter(letters.values())))


def _decimal(units: int, places: int) -> str:
    whole, rest = divmod(units, 10**places)
    return f"{whole}.{rest:0{places}d}".rstrip("0").rstrip(".")
