"""What was forgotten counts as spent: how a tree goes on after a copy of it was lost.

Theorem.  After `recover`, everything that was ever answered below a node of the tree, before the
          loss or after it, has the node's promise.
Proof.    An answer left only after its line was pinned. A chain that does not know its pinned line
          is burnt with all carved chains below it: nothing more is debited or drawn there. Let v be
          the highest burnt node of a branch: what was answered below it before the loss was within
          its box, and nothing is added. A chain that knows its pinned line has every answer that
          left, so its balance counts them. Boxes that were carved and forgotten burn the node above
          them. (docs/theory/budget-tree.md)
Checked.  tests/trusted/tree/test_tree_rollback.py
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from discreet.trusted.ledger.units import NOTHING, Amounts
from discreet.trusted.tree.places import Place
from discreet.trusted.tree.records import Aside, Line, Meter, draft_line, fresh
from discreet.trusted.tree.work import Work, first

if TYPE_CHECKING:
    from discreet.trusted.tree.pins import Pins

VOID = json.dumps({"failed": True, "secure": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Burnt:
    """A node whose history was forgotten, and what of its box counts as spent now."""

    node: str
    name: str
    amounts: Amounts
    unanswered: int


def forgotten(
    work: Work, pins: Pins | None, receipts: Iterable[tuple[str, int, str]] = ()
) -> set[str]:
    """The carved nodes that do not know a pinned line, or one of receipts; where a node itself is
    not there, the nearest one above it that is, or "" where none is.
    """
    places: list[tuple[str, Place]] = [] if pins is None else [*pins.pinned().items()]
    places += [(chain, (number, digest)) for chain, number, digest in receipts]
    found = set()
    for chain, (number, digest) in places:
        line = first(work.all(Line, "WHERE chain = ? AND number = ?", chain, number))
        if line is None or line.hash != digest:
            above = (chain, *(() if pins is None else pins.above(chain)))
            found.add(next((one for one in above if work.meter(one) is not None), ""))
    return found


def burn(work: Work, chain: str) -> list[Burnt]:
    """Count all that is left of a carved node, and of what is below it, as spent."""
    top = work.take(work.ask(work.path((chain,)))[0])[0]
    carved = [meter for meter in (top, *work.subtree([chain])) if meter.owns_chain]
    return [_burn(work, meter) for meter in reversed(carved)]


def _burn(work: Work, meter: Meter) -> Burnt:
    for one in [one for one in work.meters.values() if one.chain == meter.id]:
        close_asides(work, one)
    answered = {
        (line.node, line.key)
        for line in work.all(Line, "WHERE chain = ? AND kind = 'answer'", meter.id)
    }
    debits = work.all(Line, "WHERE chain = ? AND kind = 'debit' ORDER BY number", meter.id)
    open_ones = [line for line in debits if (line.node, line.key) not in answered]
    for line in open_ones:  # it may have been drawn, and seen, in the history that is lost
        work.append(draft_line(work.meters[line.node], "answer", line.key, body=VOID))
    left = NOTHING if meter.closed else work.meters[meter.id].free
    work.append(draft_line(meter, "lost", fresh(), {meter.id: left}))
    work.change(meter.id, spent=work.meters[meter.id].spent + left)
    return Burnt(node=meter.id, name=meter.name, amounts=left, unanswered=len(open_ones))


def close_asides(work: Work, meter: Meter) -> None:
    """Close every reservation of a node, in each box of its path, all of them locked."""
    asides: dict[str, dict[str, Amounts]] = {}
    for aside in work.all(Aside, "WHERE owner = ? AND is_open = 1 ORDER BY key", meter.id):
        asides.setdefault(aside.key, {})[aside.node] = aside.left
        now = work.meters[aside.node]
        work.change(aside.node, reserved=now.reserved - aside.left)
        work.put(aside, replace(aside, is_open=0))
    for key, left in asides.items():
        work.append(draft_line(meter, "close", key, left))
