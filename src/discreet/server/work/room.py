"""The room where data are opened: paid questions are aggregated, drawn and stored in it.

Whatever fails after the debit leaves one word, "failed", and the same key finishes the question
later. A source that is not what was pinned freezes its data set before anything is read of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from discreet.errors import DiscreetError
from discreet.inference.results.stored import question_from_dict
from discreet.server.records import paid_row
from discreet.server.store.database import Database, Row
from discreet.server.trees import Trees
from discreet.server.work.declared import data_name, declared_from, declared_from_text
from discreet.server.work.sources import Sources, sources_of
from discreet.trusted.ledger.requests import Reservation
from discreet.trusted.noise.source import Source, secure_source
from discreet.trusted.session import Session

MOST_OPEN = 8  # data sets that one process keeps open
CHANGED = "its source is not what was registered"


class Room:
    """Data sets, opened where they lie; used by one thread."""

    def __init__(
        self,
        database: Database,
        trees: Trees,
        sources: Sources,
        *,
        clock: Callable[[], float],
        memory: str | int | None = None,
        source: Callable[[], Source] = secure_source,
    ) -> None:
        """`source` is another one in tests alone."""
        self._database, self._trees, self._sources = database, trees, sources
        self._clock, self._memory, self._source = clock, memory, source
        self._open: OrderedDict[tuple[str, int], Any] = OrderedDict()

    def finish(self, question: str) -> str:
        """Answers a paid question: "answered", "failed", or "nothing" where none is to be done."""
        with self._database.read() as rows:
            row = paid_row(rows, question)
        if row is None or row["kind"] != "release" or row["state"] in ("waiting", "declined"):
            return "nothing"
        node = self._trees.node(row["dataset"], row["node"])
        if not node.holds(row["key"]):
            return "nothing"
        state = "answered" if self._answered(row, node) else "failed"
        self._database.soon_one(  # undone, the sweeper finds the stored answer
            "UPDATE questions SET state = ?, finished_at = ? WHERE id = ?"
            " AND state NOT IN ('answered', ?)",
            *(state, self._clock(), question, state),
        )
        return state

    def look(self, declared: dict[str, Any]) -> dict[str, Any]:
        """What is public of a source: its count, where the relation has one, and its pin."""
        read = declared_from(declared, declared["sources"], declared["reasons"])
        place = self._sources.place(read)
        pin = place.pin()
        data = place.opened(pin, memory=self._memory)
        count = data.open(budget=_nothing_is_spent()).public.count
        if not place.unchanged(pin, whole=False):
            raise self._moving()
        return {"public_count": count, "pin": pin}

    def listed(self) -> list[dict[str, Any]]:
        return self._sources.listed()

    def _answered(self, row: Row, node: Any) -> bool:
        try:
            engine = self._engine(row)
            if engine is None:
                self._freeze(row["dataset"])
                return False
            session = Session(engine, engine.schema, engine.neighbors, node, self._source())
            held = row["reservation"]
            session.release(
                question_from_dict(row["body"]),
                key=row["key"],
                reservation=None if held is None else Reservation(node, held),
            )
        except (DiscreetError, MemoryError, OSError):
            place, _ = self._open.get((row["dataset"], row["version"]), (None, None))
            if place is not None and place.changed:
                self._freeze(row["dataset"])
            return False
        return True

    def _engine(self, row: Row) -> Any:
        """The engine of a question's version; None where its source changed."""
        name = row["dataset"], row["version"]
        place, engine = self._open.pop(name, (None, None))
        try:
            place = place or self._sources.place(declared_from_text(row["declared"]))
        except DiscreetError:
            return None
        if not place.unchanged(row["pin"], whole=engine is None):
            return None
        if engine is None:
            engine = place.opened(row["pin"], memory=self._memory)._engine
            engine.data_id = lambda: data_name(*name)  # a name and a version, never a path
        self._open[name] = place, engine
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)
        return engine if engine.unchanged() else None

    def _freeze(self, dataset: str) -> None:
        with self._database.write() as rows:
            row = rows.one("SELECT node FROM datasets WHERE id = ?", dataset)
            rows.changed(
                "UPDATE datasets SET state = 'frozen', reason = ? WHERE id = ? AND state = 'open'",
                *(CHANGED, dataset),
            )
        assert row is not None
        self._trees.freeze(dataset, row["node"], CHANGED)

    @staticmethod
    def _moving() -> DiscreetError:
        from discreet.server.refusals import conflict

        return conflict(
            "a source",
            "it changed while it was read",
            "a data set is one table that stays as it is",
            "wait until it is written, and register it then",
        )


def room_of(settings: Any, database: Database, trees: Trees, clock: Callable[[], float]) -> Room:
    """The room of a process with these settings."""
    limit = settings.memory // 4 if settings.memory else None
    sources = sources_of(settings)
    return Room(database, trees, sources, clock=clock, memory=limit and min(limit, 1 << 30))


def _nothing_is_spent() -> Any:
    from discreet.accounting.guarantees import GDP

    return GDP(1)
