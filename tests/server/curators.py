"""A service within the test's own process: desk, routes and room, on SQLite or in memory.

Workers answer at once, in the caller's thread, unless they are `paused`.
"""

from __future__ import annotations

import asyncio
import atexit
import csv
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from argon2 import PasswordHasher

from discreet.remote.connection import Connection
from discreet.remote.receipts import Receipts
from discreet.remote.service import Service
from discreet.server.accounts import passwords
from discreet.server.accounts.people import add_person, person_of
from discreet.server.api.app import make_app
from discreet.server.desk.desk import Desk, desk_of
from discreet.server.desk.office import Office
from discreet.server.settings import Settings
from discreet.server.store.opening import open_database
from discreet.server.trees import Trees, open_trees
from discreet.server.work.room import Room
from discreet.server.work.sources import sources_of
from discreet.testing.seeded import SeededSource
from discreet.trusted.noise.source import secure_source
from discreet.trusted.tree.receipts import Seal

ADDRESS = "https://curator.test"
PASSWORD = "correct horse battery"
USUAL_HASHER = passwords._hasher()  # slow on purpose; tests log in often
QUICK_HASHER = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1)
passwords._hasher = lambda: QUICK_HASHER  # type: ignore[assignment]
STORED = passwords.hashed(PASSWORD)
PEOPLE = {
    "olga": "owner",
    "otto": "owner",
    "anna": "analyst",
    "ben": "analyst",
    "ada": "auditor",
    "op": "operator",
}
SCHEMA = {
    "income": {"kind": "real", "low": 0, "high": 100},
    "age": {"kind": "integer", "low": 18, "high": 90},
    "region": {"kind": "category", "levels": ["E", "N", "S", "W"]},
}


class Clock:
    """A time that moves when a test says so."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class HereWorkers:
    """Workers without processes."""

    def __init__(self, room: Room) -> None:
        self.room, self.paused, self.waiting = room, False, list[str]()

    def finish(self, question: str, seat: str) -> None:
        if self.paused:
            self.waiting.append(question)
        else:
            self.room.finish(question)

    def look(self, declared: dict[str, Any]) -> dict[str, Any]:
        return self.room.look(declared)

    def listed(self) -> list[dict[str, Any]]:
        return self.room.listed()

    def go_on(self) -> None:
        self.paused, waiting, self.waiting = False, self.waiting, []
        for question in waiting:
            self.room.finish(question)


_RUNNER = asyncio.Runner()
atexit.register(_RUNNER.close)


class Here(httpx.BaseTransport):
    """HTTP without a wire: calls of one application, in the caller's thread."""

    def __init__(self, app: Any) -> None:
        self._there = httpx.ASGITransport(app)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return _RUNNER.run(self._answer(request, request.read()))

    async def _answer(self, request: httpx.Request, body: bytes) -> httpx.Response:
        told = httpx.Request(request.method, request.url, headers=request.headers, content=body)
        answer = await self._there.handle_async_request(told)
        return httpx.Response(
            answer.status_code, headers=answer.headers, content=await answer.aread()
        )


@dataclasses.dataclass
class Curator:
    """A service of a test's own, with some people in it."""

    desk: Desk
    workers: HereWorkers
    clock: Clock
    folder: Path
    tokens: dict[str, str]

    @property
    def app(self) -> Any:
        return make_app(self.desk)

    def client(self, login: str | None = None) -> httpx.Client:
        """A client by HTTP, with somebody's token."""
        headers = {} if login is None else {"Authorization": f"Bearer {self.tokens[login]}"}
        return httpx.Client(transport=Here(self.app), base_url=ADDRESS, headers=headers)

    def person(self, login: str) -> Any:
        return self.desk.accounts.recognised(self.tokens[login], by="token")

    def connection(self, login: str) -> Connection:
        """What `dp.connect` gives, by way of this app."""
        service = Service(
            ADDRESS,
            self.tokens[login],
            receipts=Receipts(),
            patience=5.0,
            transport=Here(self.app),
            sleep=lambda seconds: None,
        )
        return Connection(service)

    def register(self, name: str = "survey", **changes: Any) -> dict[str, Any]:
        words = {
            "name": name,
            "source": "data/survey.csv",
            "schema": SCHEMA,
            "neighbors": "replace",
            "budget": {"mu": 2.0},
            "listed": True,
        } | changes
        return self.desk.datasets.register(self.person("olga"), **words)

    def study(
        self, dataset: str, login: str = "anna", name: str = "wages", **changes: Any
    ) -> dict[str, Any]:
        """An approved study of one analyst."""
        words = {"budget": {"mu": 1.0}, "purpose": "how much people earn"} | changes
        decided = {word: words.pop(word) for word in ("ask_above",) if word in words}
        asked = self.desk.studies.ask(self.person(login), dataset=dataset, name=name, **words)
        owner = self.person("olga")
        self.desk.studies.decide(owner, asked["id"], decision="approve", **decided)
        return self.desk.studies.one(self.person(login), asked["id"])


def write_survey(path: Path, columns: dict[str, Any] | None = None, rows: int = 200) -> None:
    """A CSV file of people who are made up."""
    made = columns or {
        "income": [float(30 + number % 41) for number in range(rows)],
        "age": [18 + number % 73 for number in range(rows)],
        "region": ["ENSW"[number % 4] for number in range(rows)],
    }
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(made)
        writer.writerows(zip(*made.values(), strict=True))


def curator(
    folder: Path,
    *,
    seed: str | None = None,
    database: str | None = None,
    tick: float = 0.0,
    clock: Clock | None = None,
    **settings: Any,
) -> Curator:
    """A service with its people and one file; a `seed` makes its noise repeat, in memory."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    if not (data / "survey.csv").exists():
        write_survey(data / "survey.csv")
    told = Settings(
        state=str(folder / "state"),
        database=database,
        folders={"data": str(data)},
        tick=tick,
        **({"burst": 1e6, "per_second": 1e6} | settings),
    )
    rows_in = open_database(told)
    trees = Trees(lambda dataset: None, secure=False)
    if seed is None:
        trees = open_trees(told, pinned=True)
    source: Callable[[], Any] = secure_source
    if seed is not None:
        seeded = SeededSource(seed)  # one stream, as a session at hand has
        source = lambda: seeded
    clock = clock or Clock()
    room = Room(rows_in, trees, sources_of(told), clock=clock, source=source)
    workers = HereWorkers(room)
    seal = None if seed is not None else Seal.open(told.seal)
    desk = desk_of(Office(rows_in, trees, workers, told, clock, source, seal))
    tokens = {}
    for login, role in PEOPLE.items():
        with rows_in.write() as rows:
            known = rows.one("SELECT * FROM people WHERE login = ?", login)
            row = known or add_person(
                rows,
                login=login,
                name=login.title(),
                role=role,
                stored=STORED,
                subject=None,
                now=clock(),
            )
        made = desk.accounts.new_token(person_of(row), name="tests")
        tokens[login] = made["token"]
    return Curator(desk, workers, clock, folder, tokens)
