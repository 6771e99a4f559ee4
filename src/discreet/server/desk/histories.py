"""Whether ledgers are the newest there were: pinned heads, and receipts that people show.

A ledger whose own lines do not add up was changed, and the service does not start on it. One that
adds up and does not know a line that was pinned, or that a receipt proves, is an older copy: its
data set freezes, all others go on, and `discreet curator recover` counts what is missing as spent.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from typing import Any

from discreet.errors import DiscreetError, LedgerRefused, NodeFrozen
from discreet.errors.tree import broken
from discreet.server.accounts.people import Person
from discreet.server.desk.office import Office
from discreet.server.desk.words import Words, amounts_words
from discreet.server.records import insert
from discreet.server.refusals import conflict, frozen, not_there, status_of
from discreet.server.store.database import Row, Rows

FORGOTTEN = "its ledger is an older copy"
CHANGED = "its ledger does not verify"
NEVER_THAWED = (FORGOTTEN, CHANGED)
VERIFIED = "its history was verified"
LONGEST_HEADER, MOST_SHOWN = 2000, 3
# the root that a data set is below: its own node, or that of its population
_TOP = "COALESCE(populations.node, datasets.node) AS top"
_DATASETS = "datasets LEFT JOIN populations ON populations.id = datasets.population"


class Histories:
    """What is known of ledgers outside of them."""

    def __init__(self, office: Office) -> None:
        self._office, self._database = office, office.database

    # ── at start ──────────────────────────────────────────────────────────────────────────────────

    def report(self) -> list[Words]:
        """Each data set with what is wrong with its ledger: `older` copies and `problems`."""
        found = []
        with self._database.read() as rows:
            listed = rows.run(
                f"SELECT {_TOP}, datasets.id AS id, datasets.name AS name, datasets.state AS state,"
                f" datasets.reason AS reason FROM {_DATASETS} WHERE datasets.state <> 'opening'"
                " ORDER BY datasets.name, datasets.id"
            )
        for row in listed:
            told: Words = {word: row[word] for word in ("id", "name", "state", "reason")}
            try:
                older = self._office.trees.forgotten(row["id"], row["top"])
                problems = [] if older else self._problems(row["id"], row["top"])
            except DiscreetError as error:  # a file that is no ledger
                older, problems = [], [error.found]
            found.append({**told, "older": older, "problems": problems})
        return found

    def require_whole(self, say: Callable[[str], None] = lambda _: None) -> None:
        """Freezes older copies, and refuses to start where a ledger was changed; one that was shut
        for it already (`discreet curator verify --freeze`) keeps the others from nothing.
        """
        for told in self.report():
            where = f"data set {told['id']}"
            if told["older"]:
                self.shut(told["id"], FORGOTTEN)
                say(f"{where}: {FORGOTTEN}, and it is frozen")
            elif told["problems"] and told["reason"] not in NEVER_THAWED:
                raise broken(f"{where}: " + "; ".join(told["problems"][:MOST_SHOWN]))
            elif not told["problems"]:
                say(f"{where}: {VERIFIED}")

    def shut(self, dataset: str, reason: str) -> None:
        """Freezes a data set until `recover`; its owner cannot take that back."""
        with self._database.write() as rows:
            row = rows.one("SELECT node FROM datasets WHERE id = ?", dataset)
            rows.changed(
                "UPDATE datasets SET state = 'frozen', reason = ? WHERE id = ?"
                " AND state <> 'closed'",
                *(reason, dataset),
            )
        try:
            assert row is not None
            self._office.trees.freeze(dataset, row["node"], reason)
        except DiscreetError:
            pass  # a ledger that cannot be written is not spent from either

    # ── while it runs ─────────────────────────────────────────────────────────────────────────────

    def suspect(self, dataset: str) -> None:
        """Looks again at a ledger that refused; an older copy freezes its data set."""
        row = self._top(dataset)
        try:
            older = row is not None and bool(self._office.trees.forgotten(dataset, row["top"]))
        except LedgerRefused:
            older = True
        if older:
            self.shut(dataset, FORGOTTEN)

    def shown(self, person: Person, header: str | None) -> None:
        """Looks at the receipt that came with a call: one that was signed here and that no ledger
        knows freezes its data set, and the call is refused.
        """
        receipt, seal = _read(header), self._office.seal
        if receipt is None or seal is None or not seal.is_own(receipt):
            return
        with self._database.read() as rows:
            places = _datasets_of(rows, receipt["node"])
            counted = rows.one("SELECT node FROM counted WHERE node = ?", receipt["node"])
        if counted is not None:  # all of that node counts as spent, whatever it forgot
            return
        for dataset in places:
            try:
                self._office.trees.tree(dataset).check_receipt(seal, receipt)
            except (NodeFrozen, LedgerRefused) as error:
                if status_of(error) == 503:
                    raise
                self._forgot([dataset], receipt)
                raise frozen() from None
        if not places:  # the study that it is of was forgotten with its answers
            with self._database.read() as rows:
                mine = _datasets_with(rows, person)
            self._forgot(mine, receipt)
            raise frozen()

    def _forgot(self, datasets: Iterable[str], receipt: Words) -> None:
        for dataset in datasets:
            line = {"dataset": dataset} | {
                word: receipt[word] for word in ("node", "number", "hash")
            }
            with self._database.write() as rows:
                insert(rows, "shown", line, "ON CONFLICT DO NOTHING")
            self.shut(dataset, FORGOTTEN)

    # ── afterwards ────────────────────────────────────────────────────────────────────────────────

    def recover(self, dataset: str, receipts: Iterable[Words] = ()) -> list[Words]:
        """Counts what was forgotten as spent, and opens the data set again; `receipts` are more
        than those that people showed here.
        """
        row = self._top(dataset)
        if row is None:
            raise not_there()
        with self._database.read() as rows:
            shown: list[Row] = rows.run("SELECT * FROM shown WHERE dataset = ?", dataset)
        seal = self._office.seal
        own = [one for one in receipts if seal is not None and seal.is_own(one)]
        places = [(one["node"], one["number"], one["hash"]) for one in (*shown, *own)]
        burnt = self._office.trees.recover(dataset, row["top"], row["node"], places)
        problems = self._problems(dataset, row["top"])
        if problems:
            raise conflict(
                "recovering a data set",
                "its ledger does not verify: " + "; ".join(problems[:MOST_SHOWN]),
                "what was changed cannot say what was spent",
                "bring back the newest intact copy of it, and recover that",
            )
        with self._database.write() as rows:
            rows.changed("DELETE FROM shown WHERE dataset = ?", dataset)
            for node in {one.node for one in burnt} | {node for node, _, _ in places}:
                told = {"node": node, "dataset": dataset}
                insert(rows, "counted", told, "ON CONFLICT DO NOTHING")
            rows.changed(
                "UPDATE datasets SET state = 'open', reason = '' WHERE id = ? AND reason IN (?, ?)",
                *(dataset, *NEVER_THAWED),
            )
        return [
            {
                "node": one.node,
                "name": one.name,
                "counted_as_spent": amounts_words(one.amounts),
                "unanswered": one.unanswered,
            }
            for one in burnt
        ]

    def _top(self, dataset: str) -> Row | None:
        with self._database.read() as rows:
            found = f"SELECT {_TOP}, datasets.node AS node FROM {_DATASETS} WHERE datasets.id = ?"
            return rows.one(found, dataset)

    def _problems(self, dataset: str, root: str) -> list[str]:
        return self._office.trees.problems(dataset, below=root)


def _read(header: str | None) -> Words | None:
    """The receipt in a header; None for what is none."""
    if not header or len(header) > LONGEST_HEADER:
        return None
    try:
        told: Any = json.loads(base64.b64decode(header, validate=True))
    except (ValueError, RecursionError):
        return None
    return told if type(told) is dict else None


def _datasets_of(rows: Rows, node: str) -> list[str]:
    """The data set that a node is below; several replicas know the same."""
    found = rows.run(
        "SELECT id AS dataset FROM datasets WHERE node = ? UNION"
        " SELECT dataset FROM studies WHERE node = ? UNION"
        " SELECT studies.dataset AS dataset FROM seats JOIN studies ON studies.id = seats.study"
        " WHERE seats.node = ?",
        *(node, node, node),
    )
    return [str(row["dataset"]) for row in found]


def _datasets_with(rows: Rows, person: Person) -> list[str]:
    """The data sets that somebody has a seat at, or is the owner of."""
    found = rows.run(
        "SELECT studies.dataset AS dataset FROM seats JOIN studies ON studies.id = seats.study"
        " WHERE seats.person = ? UNION SELECT id AS dataset FROM datasets WHERE owner = ?",
        *(person.id, person.id),
    )
    return [str(row["dataset"]) for row in found]
