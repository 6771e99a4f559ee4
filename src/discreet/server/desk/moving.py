"""A ledger file that moves into a data set of a service: what was asked from the file before counts
in the data set's box, and nothing can be asked from the file any more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from discreet.server.desk.office import Office
from discreet.server.desk.words import Words, amounts_words
from discreet.server.records import dataset_row
from discreet.server.refusals import conflict, not_there
from discreet.specs.mechanisms.procedures import StatedGuarantee
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.ledger.units import Amounts, capacity, charge
from discreet.trusted.losses.pricing import price_of
from discreet.trusted.tree.node import Node


def move_ledger(office: Office, dataset: str, path: Path) -> Words:
    """Empties a ledger file and debits a data set by what the file had given away; called again, it
    goes on where it stopped, and debits nothing twice.

    Everything that was ever answered from the file, and everything that the service ever answers,
    has the data set's promise: the file's answers are debited there by their price, as a guarantee
    that is stated, and the file holds nothing more that could be spent beside it.
    """
    with office.database.read() as rows:
        row = dataset_row(rows, dataset)
        if row is None or row["state"] == "opening":
            raise not_there()
        relation = office.declared(rows, dataset, row["version"]).neighbors.to_dict()
    ledger, root = Ledger.open(None, path=path), office.trees.node(dataset, row["node"])
    if not ledger.verify():
        raise conflict(
            "moving a ledger",
            f"{path.name} does not verify",
            "what was changed cannot say what was spent",
            "bring back the newest intact copy of it",
        )
    box, first = capacity(ledger.box), ledger.entries()[0]
    away, here = f"moved to {root.id}", f"moved from {first.hash[:32]}"
    about = {"neighbors": relation, "data": f"curator:{dataset}"}
    moved = _moved(ledger, away)
    if not moved:
        _require_room(root, box - ledger.remaining(), path.name)
    for name, part in _stated(ledger.remaining()).items():
        # what it set aside for procedures may still be used, and counts as gone
        told = {"asked": {"estimator": f"moved to {dataset}"}, "mechanism": part.to_dict()}
        key = f"{away}, {name}"
        ledger.debit(key=key, request=told | about, price=price_of((part,), box=ledger.box))
        ledger.store(key, lambda: json.dumps({"moved": dataset}))
    gone = box - _moved(ledger, away)
    known = root.holds(f"{here}, {next(iter(_stated(gone)), '')}")
    for name, part in _stated(gone).items():
        told = {"asked": {"estimator": "moved from a ledger"}, "mechanism": part.to_dict()}
        key = f"{here}, {name}"
        root.debit(key=key, request=told | about, price=price_of((part,), box=root.box))
        root.store(key, lambda: json.dumps({"moved": first.hash}))
    if not known:
        note = {"head": ledger.head, "entries": len(ledger.entries())}
        office.trees.note(dataset, root.id, "moved from a ledger", note)
    return {"dataset": dataset, "counted_as_spent": amounts_words(gone)}


def _moved(ledger: Ledger, away: str) -> Amounts:
    """What was taken out of a ledger before."""
    mine = (one for one in ledger.entries() if one.kind == "debit" and one.key.startswith(away))
    return sum((one.amounts for one in mine), Amounts())


def _stated(amounts: Amounts) -> dict[str, StatedGuarantee]:
    """Amounts as guarantees that cost just these, one a coordinate; δ goes with the first, and by
    itself buys nothing.
    """
    price: Any = amounts.exact()
    found: dict[str, StatedGuarantee] = {}
    for name in ("epsilon", "mu_squared", "rho"):
        if getattr(price, name):
            words = {name: getattr(price, name)} | ({} if found else {"delta": price.delta})
            found[name] = StatedGuarantee(**words)
    return found


def _require_room(root: Node, gone: Amounts, name: str) -> None:
    parts = tuple(_stated(gone).values())
    if parts and not charge(price_of(parts, box=root.box)).fits(root.remaining()):
        raise _no_room(name)


def _no_room(name: str) -> Exception:
    return conflict(
        "moving a ledger",
        f"the data set has no room for what {name} gave away",
        "answers that people have seen count, wherever they were paid",
        "register the data set with the budget that the ledger was opened with",
    )
