"""Checking a tree against its own history: every chain, every balance, every box set aside.

Each chain is replayed from its first line; what comes out must be the stored meters and
reservations, and where a node stands, what it is called and what it promises what its first line
says. A carved child's first line must name the box that its parent set aside, and what came back
must be what it did not spend.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from discreet.trusted.ledger.entries import FIRST_PREVIOUS, canonical
from discreet.trusted.ledger.units import NOTHING, Amounts
from discreet.trusted.ledger.verification import Verification
from discreet.trusted.tree.records import CARVED, KINDS, POOLED, ROOT, Aside, Line, Meter
from discreet.trusted.tree.work import Work

_STATES = {"end": ("closed", 1), "freeze": ("frozen", 1), "thaw": ("frozen", 0)}


@dataclass(slots=True)
class _Box:
    """A box as its chain says it should be."""

    box: Amounts
    spent: Amounts = NOTHING
    reserved: Amounts = NOTHING
    closed: int = 0
    frozen: int = 0
    above: str = ""  # the node above it in the same chain
    told: dict[str, Any] = field(default_factory=dict)  # its name, key, budget and promise

    @property
    def free(self) -> Amounts:
        return self.box - self.spent - self.reserved


@dataclass(slots=True)
class _Replay:
    """A chain as its lines say it should be."""

    chain: str
    boxes: dict[str, _Box] = field(default_factory=dict)
    debits: set[tuple[str, str]] = field(default_factory=set)
    answers: set[tuple[str, str]] = field(default_factory=set)
    asides: dict[tuple[str, str, str], Aside] = field(default_factory=dict)
    carved: dict[str, Amounts] = field(default_factory=dict)
    promise: dict[str, Any] = field(default_factory=dict)

    def take(self, line: Line) -> str | None:
        """Apply one line; what is wrong with it, if anything."""
        if line.kind == "open":
            if line.number or line.node != self.chain:
                return "a second opening"
            told = json.loads(line.body)
            self.promise = told["promise"]
            self.boxes[self.chain] = _Box(line.amounts, told=told | {"budget": told["asked"]})
            return None
        if line.node not in self.boxes:
            return "its node is not in this chain"
        if line.kind in _STATES:
            setattr(self.boxes[line.node], *_STATES[line.kind])
            return None
        return getattr(self, f"_{line.kind}")(line)  # type: ignore[no-any-return]

    def _path(self, node: str) -> list[str]:
        found = [node]
        while self.boxes[found[-1]].above:
            found.append(self.boxes[found[-1]].above)
        return found

    def _debit(self, line: Line) -> str | None:
        if (line.node, line.key) in self.debits:
            return "its key was debited before"
        self.debits.add((line.node, line.key))
        path = self._path(line.node)
        fits = not any(self.boxes[one].closed or self.boxes[one].frozen for one in path)
        for node in path:
            box, paid = self.boxes[node], line.paid_by(node)
            room = box.free
            if line.reservation:
                place = node, line.node, line.reservation
                aside = self.asides.get(place)
                if aside is None:
                    return "its reservation does not exist"
                room = aside.left
                self.asides[place] = replace(aside, used=aside.used + paid)
                box.reserved -= paid
            box.spent += paid
            fits = fits and bool(paid) and paid.fits(room)
        return None if fits else "it did not fit what was left"

    def _lost(self, line: Line) -> str | None:
        box = self.boxes[self.chain]
        fits = line.node == self.chain and line.amounts.fits(box.free)
        box.spent += line.amounts
        return None if fits else "it did not fit what was left"

    def _answer(self, line: Line) -> str | None:
        place = line.node, line.key
        if place not in self.debits or line.amounts or line.paid:
            return "no earlier debit paid for this answer"
        if place in self.answers:
            return "its key has an earlier answer"
        self.answers.add(place)
        return None

    def _reserve(self, line: Line) -> str | None:
        fits = True
        for node in self._path(line.node):
            amounts, place = line.paid_by(node), (node, line.node, line.key)
            if place in self.asides:
                return "its key was reserved before"
            fits = fits and amounts.fits(self.boxes[node].free)
            self.boxes[node].reserved += amounts
            self.asides[place] = Aside(node=node, owner=line.node, key=line.key, amounts=amounts)
        return None if fits else "it did not fit what was left"

    def _close(self, line: Line) -> str | None:
        for node in self._path(line.node):
            place = node, line.node, line.key
            aside = self.asides.get(place)
            if aside is None or not aside.is_open or aside.left != line.paid_by(node):
                return "it returns what was not set aside"
            self.asides[place] = replace(aside, is_open=0)
            self.boxes[node].reserved -= line.paid_by(node)
        return None

    def _carve(self, line: Line) -> str | None:
        box = self.boxes[self.chain]
        fits = line.node == self.chain and line.amounts.fits(box.free)
        box.reserved += line.amounts
        self.carved[line.key] = line.amounts
        return None if fits else "the box did not fit what was left"

    def _return(self, line: Line) -> str | None:
        held = self.carved.pop(line.key, None)
        if held is None or not line.amounts.fits(held):
            return "it returns what was not set aside"
        box = self.boxes[self.chain]
        box.reserved -= held
        box.spent += held - line.amounts
        return None

    def _pool(self, line: Line) -> str | None:
        told = json.loads(line.body)
        if line.key in self.boxes:
            return "its node was opened before"
        told["promise"] = self.promise | {"budget": told["budget"]}
        self.boxes[line.key] = _Box(Amounts(*told["box"]), above=line.node, told=told)
        return None

    def _note(self, line: Line) -> str | None:
        return "a note costs nothing" if line.amounts or line.paid else None


def verify_chain(work: Work, chain: str) -> Verification:
    """Everything that is wrong with one chain and the meters that write in it."""
    lines = work.all(Line, "WHERE chain = ? ORDER BY number", chain)
    meters = {one.id: one for one in work.all(Meter, "WHERE chain = ?", chain)}
    own = meters.get(chain)
    if own is None or not lines or lines[0].kind != "open":
        return Verification(entries=len(lines), head="", problems=("there is no opening",))
    problems = _chain_problems(lines)
    if not problems:
        replay = _Replay(chain)
        for line in lines:
            problem = replay.take(line)
            if problem:
                problems.append(f"line {line.number}: {problem}")
        problems += _meter_problems(replay, meters, lines)
        asides = [one for node in meters for one in work.all(Aside, "WHERE node = ?", node)]
        if {(one.node, one.owner, one.key): one for one in asides} != replay.asides:
            problems.append("the reservations are not what the lines say")
    return Verification(entries=len(lines), head=own.head, problems=tuple(problems))


def _chain_problems(lines: list[Line]) -> list[str]:
    previous, problems = FIRST_PREVIOUS, []
    for number, line in enumerate(lines):
        if line.number != number or line.previous != previous:
            problems.append(f"line {line.number}: it does not follow the line before it")
        if line.kind not in KINDS or line.digest() != line.hash:
            problems.append(f"line {line.number}: its content does not match its hash")
        previous = line.hash
    return problems


def _meter_problems(replay: _Replay, meters: dict[str, Meter], lines: list[Line]) -> list[str]:
    problems = []
    if set(meters) != set(replay.boxes):
        problems.append("the nodes are not those that the lines open")
    for node in sorted(meters.keys() & replay.boxes.keys()):
        meter, box = meters[node], replay.boxes[node]
        told = (box.box, box.spent, box.reserved, box.closed, box.frozen)
        if told != (meter.box, meter.spent, meter.reserved, meter.closed, meter.frozen):
            problems.append(f"the balance of {meter.name!r} is not what the lines add up to")
        said = meter.name, meter.key, meter.budget, meter.promise
        name, key, *rest = (box.told[one] for one in ("name", "key", "budget", "promise"))
        if said != (name, key, *map(canonical, rest)):
            problems.append(f"what {meter.name!r} is called or promises is not what its line says")
        if box.above and not _stands(meter, meters.get(box.above, meter), POOLED):
            problems.append(f"{meter.name!r} is not where its line puts it")
        if not (meter.spent + meter.reserved).fits(meter.box):
            problems.append(f"more was spent or set aside than {meter.name!r} holds")
    own = meters[replay.chain]
    if (own.entries, own.head) != (len(lines), lines[-1].hash):
        problems.append("the head is not the last line's")
    return problems


def verify_tree(work: Work, known: dict[str, tuple[int, str]]) -> dict[str, Verification]:
    """Every chain, by the id of its carved node; what carved nodes have of their parents; and
    whether each chain has the line that is known to have been there.
    """
    meters = {one.id: one for one in work.all(Meter, "ORDER BY depth, id")}
    found = {}
    for meter in meters.values():
        if not meter.owns_chain:
            continue
        report = verify_chain(work, meter.id)
        problems = [*report.problems, *_kin_problems(work, meter, meters)]
        number, digest = known.get(meter.id, (-1, ""))
        if number >= 0 and not _holds(work, meter.id, number, digest):
            problems.append(f"line {number} is not the one that was noted elsewhere")
        found[meter.id] = replace(report, problems=tuple(problems))
    for chain in sorted(set(known) - set(found)):
        gone = ("the whole chain is not there any more",)
        found[chain] = Verification(entries=0, head="", problems=gone)
    return found


def _holds(work: Work, chain: str, number: int, digest: str) -> bool:
    found = work.all(Line, "WHERE chain = ? AND number = ?", chain, number)
    return bool(found) and found[0].hash == digest


def _kin_problems(work: Work, meter: Meter, meters: dict[str, Meter]) -> list[str]:
    """Whether a carved node has what its parent set aside for it, and gave back the rest."""
    parent = meters.get(meter.parent)
    if meter.kind == ROOT:
        stands = (meter.parent, meter.depth, meter.stopped) == ("", 0, meter.frozen)
        return [] if stands else [f"{meter.name!r} does not stand at the top"]
    opened = None if parent is None else work.line(parent.id, "carve", meter.id)
    if parent is None or parent.kind == POOLED or opened is None or opened.amounts != meter.box:
        return [f"its box is not what the node above set aside for {meter.name!r}"]
    back = work.line(parent.id, "return", meter.id)
    if (back is not None) != bool(meter.closed):
        return ["it was closed on one side alone"]
    if back is not None and back.amounts != meter.box - meter.spent:
        return ["what it handed back is not what it did not spend"]
    return [] if _stands(meter, parent, CARVED) else ["it is not below that node"]


def _stands(meter: Meter, above: Meter, kind: str) -> bool:
    """Whether a meter is of a kind, right below another, and stopped where that one is."""
    place = kind, above.id, above.depth + 1, bool(meter.frozen or above.stopped)
    return (meter.kind, meter.parent, meter.depth, bool(meter.stopped)) == place
