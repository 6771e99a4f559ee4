"""A budget tree: population or data set, studies and seats, each a box.

    tree = BudgetTree.open("budgets.db")
    survey = tree.root("survey", dp.GDP(1), neighbors=dp.AddRemove(), key="survey")
    wages = tree.carve(survey.id, "wages", dp.GDP(0.5), key="wages")
    anna = tree.carve(wages.id, "anna", dp.PureDP(0.1), key="anna")    # a ledger of her own
    open_seat = tree.pool(wages.id, "ben", dp.GDP(0.2), key="ben")     # a limit on money of wages

A node is used as a ledger is: `Session(engine, schema, neighbors, tree.node(id), source)`. Nothing
is ever refilled, refunded or enlarged: closing a carved node gives back what was never debited.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from discreet import plain
from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee
from discreet.errors import tree as refusals
from discreet.errors.ledger import not_copied
from discreet.neighbors import Neighbors, require_neighbors
from discreet.trusted.ledger.core import plain_budget, protected
from discreet.trusted.ledger.entries import Entry, canonical, checked_key
from discreet.trusted.ledger.units import NOTHING, Amounts, capacity
from discreet.trusted.ledger.verification import Verification
from discreet.trusted.losses.pricing import open_box
from discreet.trusted.tree.node import Box, Node, box_of
from discreet.trusted.tree.places import Places
from discreet.trusted.tree.prices import carved_box
from discreet.trusted.tree.receipts import Seal
from discreet.trusted.tree.records import (
    CARVED,
    FORMAT,
    POOLED,
    ROOT,
    Line,
    Meter,
    draft_line,
    fresh,
)
from discreet.trusted.tree.recovery import Burnt, burn, close_asides, forgotten
from discreet.trusted.tree.sqlite import MemoryDatabase, SQLiteDatabase
from discreet.trusted.tree.verification import verify_tree
from discreet.trusted.tree.work import Database, Work, first

if TYPE_CHECKING:
    from discreet.trusted.tree.pins import Pins

LONGEST_NAME = 200
LONGEST_NOTE = 20_000
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeVerification:
    """The outcome of checking a tree: each chain's, by the id of its node, and the container's."""

    chains: dict[str, Verification]
    damage: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.damage and all(one.ok for one in self.chains.values())

    @property
    def problems(self) -> tuple[str, ...]:
        """All of them, in words."""
        told = [
            f"{node}: {problem}" for node, one in self.chains.items() for problem in one.problems
        ]
        return (*self.damage, *told)

    def __bool__(self) -> bool:
        return self.ok


class BudgetTree:
    """Budgets within budgets; see `open`. It may be shared by threads; other processes open the
    same place.
    """

    def __init__(self, database: Database, pins: Pins | None = None) -> None:
        self._places, self._pins = Places(database, pins), pins

    @classmethod
    @plain.called
    def open(
        cls,
        where: str | os.PathLike[str] | None = None,
        *,
        pins: str | os.PathLike[str] | None = None,
        held: bool = False,
    ) -> BudgetTree:
        """A tree in memory (None), in the SQLite file of a path, or in a PostgreSQL database by its
        `postgresql://` address; made if it is new.

        `pins` is a file on another disk, or at least another file, which notes the place of an
        answer before it leaves: with it a restored older copy is noticed (`freeze_forgotten`).
        `held` keeps connections to a file open between operations, until `close_connections`.
        """
        held = plain.truth(held, "held=")
        if pins is None:
            return cls(_database(where, held))
        from discreet.trusted.tree.pins import Pins  # file locks: where a service runs

        return cls(_database(where, held), Pins(pins))

    @property
    def name(self) -> str:
        """How messages call it."""
        return self._places.database.name

    @property
    def persistent(self) -> bool:
        """Whether it outlives this process."""
        return self._places.database.persistent

    def close_connections(self) -> None:
        """Let go of connections, and of the file of pins."""
        self._places.database.close()
        if self._pins is not None:
            self._pins.close()

    # ── nodes ─────────────────────────────────────────────────────────────────────────────────────

    @plain.called
    def root(
        self,
        name: str,
        budget: Guarantee,
        *,
        neighbors: Neighbors,
        key: str,
        pure: float | None = None,
        delta0: float | None = None,
        secure: bool = True,
    ) -> Node:
        """The top of a tree: what is promised for everything below it together, whoever asks.

        The same key gives the same root again. `secure=False` opens one for seeded noise, in memory
        alone.
        """
        name, key, budget = checked_name(name), checked_key(key), plain_budget(budget)
        box = open_box(
            budget, pure=plain.value(pure, "pure="), delta0=plain.value(delta0, "delta0=")
        )
        if neighbors is None:
            raise refusals.no_relation()
        relation = protected({"neighbors": require_neighbors(neighbors).to_dict()})
        promise = _promise(budget, relation, plain.truth(secure, "secure="))
        if not secure and self.persistent:
            raise refusals.not_that_noise()
        with self._places.changing() as work:
            work.alone()
            known = first(work.all(Meter, "WHERE parent = ? AND key = ?", "", key))
            if known is not None:
                return self._same(work, known, (ROOT, name, _said(budget), capacity(box)))
            meter = _opened(None, ROOT, name, key, budget, promise, capacity(box))
            open_chain(work, meter)
        return self.node(meter.id)

    @plain.called
    def carve(
        self,
        parent: str,
        name: str,
        budget: Guarantee,
        *,
        key: str,
        pure: float | None = None,
        delta0: float | None = None,
    ) -> Node:
        """A ledger of its own below a root or another carved node, whose box is set aside there.

        `budget` may be any guarantee that has a price in the parent's coordinates; the child
        promises that price (`Node.budget`). The same key gives the same child again.
        """
        name, key, budget = checked_name(name), checked_key(key), plain_budget(budget)
        pure, delta0 = plain.value(pure, "pure="), plain.value(delta0, "delta0=")
        with self._places.changing() as work:
            path = self._locked(work, self._path_of(work, checked_key(parent, "parent")))
            above = path[-1]
            if not above.owns_chain:
                raise refusals.below_pooled()
            priced, promised = carved_box(
                budget, within=above.box.exact(), pure=pure, delta0=delta0
            )
            box = capacity(priced)
            known = first(work.all(Meter, "WHERE parent = ? AND key = ?", above.id, key))
            if known is not None:
                return self._same(work, known, (CARVED, name, _said(budget), box))
            _require_open(path)
            if not box.fits(above.free):
                raise statement.over_budget(box, above.balance)
            promise = _promise(promised, *_kept(above))
            meter = _opened(above, CARVED, name, key, budget, promise, box)
            work.change(above.id, reserved=above.reserved + box)
            body = canonical({"name": name, "key": key})
            work.append(draft_line(above, "carve", meter.id, {above.id: box}, body=body))
            open_chain(work, meter)
        return self.node(meter.id)

    @plain.called
    def pool(
        self,
        parent: str,
        name: str,
        limit: Guarantee,
        *,
        key: str,
        pure: float | None = None,
        delta0: float | None = None,
    ) -> Node:
        """One more limit on the money of its parent, in coordinates of its own: nothing is set
        aside, and only the nearest carved node's promise holds (docs/theory/budget-tree.md).
        """
        name, key, limit = checked_name(name), checked_key(key), plain_budget(limit)
        box = capacity(
            open_box(limit, pure=plain.value(pure, "pure="), delta0=plain.value(delta0, "delta0="))
        )
        with self._places.changing() as work:
            path = self._locked(work, self._path_of(work, checked_key(parent, "parent")))
            above = path[-1]
            known = first(work.all(Meter, "WHERE parent = ? AND key = ?", above.id, key))
            if known is not None:
                return self._same(work, known, (POOLED, name, _said(limit), box))
            _require_open(path)
            promise = _promise(limit, *_kept(above))
            meter = _opened(above, POOLED, name, key, limit, promise, box)
            told = {"name": name, "key": key, "box": [*box.as_tuple()]}
            body = canonical(told | {"budget": json.loads(meter.budget)})
            work.append(draft_line(above, "pool", meter.id, body=body))
            work.create(meter)
        return self.node(meter.id)

    def node(self, node: str) -> Node:
        """A node by its id, as a ledger."""
        with self._places.database.read() as work:
            meter = _known(work, checked_key(node, "node"))
            return self._handle(work, meter)

    def roots(self) -> list[Box]:
        """All roots, by name."""
        with self._places.database.read() as work:
            return [*map(box_of, work.all(Meter, "WHERE parent = ? ORDER BY name, id", ""))]

    def children(self, node: str) -> list[Box]:
        """The boxes right below a node, by name."""
        with self._places.database.read() as work:
            above = _known(work, checked_key(node)).id
            return [*map(box_of, work.all(Meter, "WHERE parent = ? ORDER BY name, id", above))]

    def close(self, node: str) -> Amounts:
        """Close a node and everything below it, for good: what it never debited goes back to its
        parent, in whose coordinates its box is; closing again gives back nothing.

        Budget that reservations set aside was not debited; paid questions can still be finished.
        """
        with self._places.changing() as work:
            path = self._path_of(work, checked_key(node, "node"), to_parent=True)
            top = self._locked(work, path)[-1]
            if top.closed:
                return NOTHING
            nodes = [top, *work.subtree([top.id])]
            if any(meter.stopped for meter in nodes):
                raise refusals.frozen()
            for meter in reversed(nodes):  # from the bottom up
                if not work.meters[meter.id].closed:
                    _close(work, work.meters[meter.id])
            meter = work.meters[top.id]
            left = meter.box - meter.spent if top.kind == CARVED else NOTHING
        return plain.twin(left)

    def freeze(self, node: str, reason: str = "") -> None:
        """Stop every debit and draw at a node and below it until it is unfrozen; stored answers can
        be read.
        """
        self._freeze(node, "freeze", reason, frozen=1)

    def unfreeze(self, node: str, reason: str = "") -> None:
        """Take a freeze of this node back; what is frozen for itself below it, or above, stays."""
        self._freeze(node, "thaw", reason, frozen=0)

    def append_note(self, node: str, kind: str, body: str) -> Entry:
        """Write a fact of administration (an approval, a decision) into a node's chain; it debits
        nothing.
        """
        kind, body = plain.text(kind, "kind", longest=LONGEST_NAME), checked_note(body)
        with self._places.changing() as work:
            meter = self._locked(work, self._path_of(work, checked_key(node, "node")))[-1]
            told = canonical({"kind": kind, "body": body})
            line = work.append(draft_line(meter, "note", fresh(), body=told))
        return line.seen_by(meter.id)

    # ── what was forgotten ────────────────────────────────────────────────────────────────────────

    def freeze_forgotten(self) -> dict[str, str]:
        """Freeze every root below which a pinned line is not there any more: the root, by the
        carved node that forgot; "" for both where the root itself is not there.
        """
        if self._pins is None:
            return {}
        with self._places.database.read() as work:
            roots = {chain: _root_of(work, chain) for chain in forgotten(work, self._pins)}
        for root in sorted({*roots.values()} - {""}):
            self.freeze(root, "a line that was pinned is not there any more")
        return roots

    def check_receipt(self, seal: Seal, receipt: object) -> bool:
        """Whether a caller's receipt is one of this tree's, and known; one that `seal` signed and
        that is not known freezes its root, and is refused.
        """
        if not seal.is_own(receipt):
            return False
        words: Any = receipt
        node, number = str(words["node"]), int(words["number"])
        with self._places.database.read() as work:
            line = first(work.all(Line, "WHERE chain = ? AND number = ?", node, number))
            if line is not None and line.hash == words["hash"]:
                return True
            root = _root_of(work, node) if work.meter(node) is not None else ""
        if root:
            self.freeze(root, "a receipt that was signed here is not known")
        raise refusals.rolled_back(self.name)

    def recover(self, receipts: Iterable[tuple[str, int, str]] = ()) -> list[Burnt]:
        """Count what was forgotten as spent, and go on with the rest; see `recovery`. `receipts`
        are (node, number, hash) of receipts that were shown.
        """
        burnt: dict[str, Burnt] = {}
        with self._places.database.write() as work:
            chains = forgotten(work, self._pins, receipts)
            if "" in chains:
                raise refusals.not_this_tree()
            for chain in sorted(chains):
                burnt |= {one.node: one for one in burn(work, chain)}
            heads = dict(work.heads)
        for chain, place in heads.items():
            self._places.reset(chain, place)
            if self._pins is not None:
                self._pins.replace(chain, place)
        gone = set() if self._pins is None else set(self._pins.pinned())
        with self._places.database.read() as work:
            gone -= {one.id for one in work.all(Meter)}
            roots = {_root_of(work, chain) for chain in heads}
        for chain in gone:
            self._places.reset(chain, None)
            if self._pins is not None:
                self._pins.replace(chain, None)
        for root in sorted(roots):
            self.unfreeze(root, "what was forgotten counts as spent")
        return [*burnt.values()]

    def verify(self) -> TreeVerification:
        """Replay every chain: are they intact, do they add up to the meters, has every carved node
        what was set aside for it?
        """
        damage = self._places.database.damage()
        if damage:
            return TreeVerification(chains={}, damage=tuple(damage))
        known = self._places.known()
        with self._places.database.read() as work:
            chains = verify_tree(work, known)
        return TreeVerification(chains=chains, damage=tuple(damage))

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise not_copied()

    def __repr__(self) -> str:
        return f"<BudgetTree: {self.name}>"

    # ── how ───────────────────────────────────────────────────────────────────────────────────────

    def _path_of(self, work: Work, node: str, *, to_parent: bool = False) -> tuple[str, ...]:
        """The ids from the nearest carved node down to a node: facts that never change. With
        `to_parent`, from the nearest carved node that is above it.
        """
        meter = _known(work, node)
        if meter.owns_chain:
            return (meter.parent, meter.id) if to_parent and meter.parent else (meter.id,)
        return (*self._path_of(work, meter.parent), meter.id)

    def _locked(self, work: Work, path: tuple[str, ...], *, forgetful: bool = False) -> list[Meter]:
        meters = work.take(work.ask(work.path(path))[0])
        for meter in meters:
            if meter.owns_chain and not forgetful:
                self._places.require_in(work, meter.id)
        return meters

    def _same(self, work: Work, known: Meter, asked: tuple[str, str, str, Amounts]) -> Node:
        """The node that was made under a key before."""
        if (known.kind, known.name, known.budget, known.box) != asked:
            raise refusals.other_node(known.key)
        return self._handle(work, known)

    def _handle(self, work: Work, meter: Meter) -> Node:
        path, above = self._path_of(work, meter.id), []
        chain = _known(work, meter.chain)
        while chain.parent:
            chain = _known(work, chain.parent)  # a carved node's parent is carved
            above.append(chain.id)
        return Node(self._places, meter, path, tuple(above))

    def _freeze(self, node: str, kind: str, reason: str, *, frozen: int) -> None:
        reason = checked_note(reason)
        with self._places.changing() as work:
            path = self._path_of(work, checked_key(node, "node"), to_parent=True)
            meters = self._locked(work, path, forgetful=bool(frozen))
            top = meters[-1]
            if top.frozen == frozen:
                return
            above = meters[-2].stopped if len(meters) > 1 else 0
            below = work.subtree([top.id])
            work.change(top.id, frozen=frozen, stopped=int(frozen or above))
            for meter in below:  # from the top down
                stopped = work.meters[meter.parent].stopped or meter.frozen
                work.change(meter.id, stopped=stopped)
            work.append(draft_line(top, kind, fresh(), body=canonical(reason)))


def _database(where: object, held: bool) -> Database:
    if where is None:
        return MemoryDatabase()
    text = plain.path(where, "budget tree")
    if text.startswith(("postgresql://", "postgres://")):
        try:
            from discreet.trusted.tree.postgresql import PostgreSQLDatabase
        except ImportError:
            raise refusals.no_postgresql() from None
        return PostgreSQLDatabase(text)
    return SQLiteDatabase(text, held=held)


def _root_of(work: Work, node: str) -> str:
    """The root above a node; "" for no node."""
    meter = _known(work, node) if node else None
    while meter is not None and meter.parent:
        meter = _known(work, meter.parent)
    return "" if meter is None else meter.id


def _known(work: Work, node: str) -> Meter:
    meter = work.meter(node)
    if meter is None:
        raise refusals.no_node(node)
    return meter


def _require_open(path: list[Meter]) -> None:
    if any(meter.stopped for meter in path):
        raise refusals.frozen()
    if any(meter.closed for meter in path):
        raise refusals.closed()


def _said(budget: Guarantee) -> str:
    return canonical(budget.to_dict())


def _promise(budget: Guarantee, relation: str, secure: bool) -> str:
    return canonical({"budget": json.loads(_said(budget)), "neighbors": relation, "secure": secure})


def _kept(meter: Meter) -> tuple[str, bool]:
    told = json.loads(meter.promise)
    return told["neighbors"], told["secure"]


def _opened(
    above: Meter | None,
    kind: str,
    name: str,
    key: str,
    budget: Guarantee,
    promise: str,
    box: Amounts,
) -> Meter:
    """A new node's meter, of a name that nobody can guess from how many there are."""
    node = fresh()
    return Meter(
        id=node,
        parent="" if above is None else above.id,
        chain=above.chain if above is not None and kind == POOLED else node,
        depth=0 if above is None else above.depth + 1,
        kind=kind,
        name=name,
        key=key,
        budget=_said(budget),
        promise=promise,
        box=box,
    )


def open_chain(work: Work, meter: Meter, **told: object) -> None:
    """Put in a carved node, with the first line of its chain."""
    words = {"format": FORMAT, "name": meter.name, "key": meter.key}
    guarantees = {"promise": json.loads(meter.promise), "asked": json.loads(meter.budget)}
    body = canonical(words | guarantees | told)
    work.create(meter)
    work.append(draft_line(meter, "open", "", {meter.id: meter.box}, body=body))


def _close(work: Work, meter: Meter) -> None:
    """Close one locked node, those below it being closed; its parent gets what it did not debit."""
    close_asides(work, meter)
    work.append(draft_line(meter, "end", ""))
    meter = work.change(meter.id, closed=1)
    if meter.kind == CARVED:
        above = work.meters[meter.parent]
        work.change(above.id, reserved=above.reserved - meter.box, spent=above.spent + meter.spent)
        back = {above.id: meter.box - meter.spent}
        work.append(draft_line(above, "return", meter.id, back))


def checked_name(name: object) -> str:
    read = str.__str__(name) if plain.derives(type(name), str) else ""
    if not 0 < len(read) <= LONGEST_NAME or not read.isprintable():
        raise refusals.bad_name()
    return read


def checked_note(body: object) -> str:
    return plain.text(body, "body", longest=LONGEST_NOTE)
