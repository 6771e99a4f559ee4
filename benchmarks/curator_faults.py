"""A service whose processes and database are killed while it answers: nothing is overspent, lost,
paid twice or left without an answer.

    python benchmarks/curator_faults.py                                       eight minutes
    python benchmarks/curator_faults.py --questions 100000 --seconds 36000    the whole
    python benchmarks/curator_faults.py --questions 5000 --more --store       one more part of it

With ``--more`` a run has the next seed, and its counts are added to those that are stored: faults
and chances of two parts differ, and what went wrong in any of them stays.

Two replicas on one PostgreSQL, each with web processes, a keeper and a worker of its own; clients
send questions to either, a fifth of them twice at once, cut one connection in twenty, and go on
with the same key until they know. Meanwhile processes are killed (SIGKILL) and the database is
restarted at once (`pg_ctl -m immediate`). Seats are asked for more than they hold: they must run
out exactly, carved ones alone and pooled ones together.

Last line: asked, kills, restarts, and what must be 0.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

import stored

HERE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HERE), str(HERE / "tests" / "server")]
SPEND, CLIENTS, PATIENCE = {"mu": 0.01}, 64, 600.0
SEATS = {"carved": 6, "pooled": 4}
OVER = 1.1  # asked, for each question that fits


@dataclass
class Tally:
    """What clients saw: the answer of each key, by seat, and what went on."""

    answers: dict[tuple[str, str], tuple[Any, ...]] = field(default_factory=dict)
    refused: set[tuple[str, str]] = field(default_factory=set)
    differing: int = 0
    unknown: int = 0
    calls: int = 0
    cut: int = 0


# ── the service ───────────────────────────────────────────────────────────────────────────────────


def made(desk: Any, tokens: dict[str, str], each: int) -> tuple[str, dict[str, dict[str, Any]]]:
    """A data set, a study of carved seats and one of pooled ones; seats by login."""
    from curators import SCHEMA

    from discreet.accounting.guarantees import GDP
    from discreet.estimators.questions import mean_question

    def person(login: str) -> Any:
        return desk.accounts.recognised(tokens[login], by="token")

    owner, seats = person("olga"), {}
    data = desk.datasets.register(
        owner,
        name="survey",
        source="data/survey.csv",
        schema=SCHEMA,
        neighbors="replace",
        budget={"mu": 100.0},
        listed=True,
    )
    for kind, number in SEATS.items():
        members = [f"{kind}{one}" for one in range(number)]
        study = desk.studies.ask(
            person(members[0]),
            dataset=data["id"],
            name=kind,
            purpose="faults",
            budget={"mu": 0.01 * (each * number + 0.5) ** 0.5},
            members=members,
            seats=kind,
        )
        desk.studies.decide(owner, study["id"], decision="approve")
        for login in members:
            node = desk.studies.one(person(login), study["id"])["seat"]["node"]
            with desk.office.database.read() as rows:
                session = desk.office.session(
                    rows, data["id"], 1, desk.office.trees.node(data["id"], node)
                )
            question = mean_question(session.public, "income", spend=GDP(0.01))
            seats[login] = {
                "study": study["id"],
                "node": node,
                "question": question.to_dict(),
                "fits": session.ledger.how_many(session.price(question)),
            }
    return data["id"], seats


class Killer(threading.Thread):
    """Kills a process of a replica now and then, and restarts the database now and then; never
    twice without an answer between, so that each hits a service that works.
    """

    def __init__(
        self,
        replicas: list[int],
        restart: Any,
        *,
        every: float,
        restarts: float,
        tally: Tally,
        seed: int,
    ) -> None:
        super().__init__(daemon=True)
        self.tally, self.seed = tally, seed
        self.replicas, self.restart = replicas, restart
        self.every, self.restarts_every = every, restarts
        self.kills, self.restarts, self.over = 0, 0, threading.Event()
        self.by_kind: Counter[str] = Counter()

    def run(self) -> None:
        chance, next_restart = random.Random(self.seed), time.monotonic() + self.restarts_every
        from curator_services import below

        before = -1
        while not self.over.wait(self.every * chance.uniform(0.5, 1.5)):
            if len(self.tally.answers) == before:
                continue
            before = len(self.tally.answers)
            victims = below(chance.choice(self.replicas))
            if victims:
                victim = chance.choice(victims)
                with contextlib.suppress(OSError):
                    words = Path(f"/proc/{victim}/cmdline").read_text().split("\0")
                    os.kill(victim, signal.SIGKILL)
                    self.kills += 1
                    self.by_kind[words[2].rpartition(".")[2] if len(words) > 2 else "?"] += 1
            if time.monotonic() > next_restart:
                self.restart()
                self.restarts += 1
                next_restart = time.monotonic() + self.restarts_every


# ── the clients ───────────────────────────────────────────────────────────────────────────────────


async def settled(
    client: httpx.AsyncClient, places: list[str], seat: Any, token: str, key: str, tally: Tally
) -> None:
    """One question, asked until it is known what became of it."""
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
    body, chance = {"question": seat["question"]}, random.Random(key)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        place = chance.choice(places)
        cut = chance.random() < 0.05
        timeout = chance.uniform(0.001, 0.05) if cut else 30.0
        tally.calls, tally.cut = tally.calls + 1, tally.cut + cut
        try:
            path = f"{place}/v1/studies/{seat['study']}/releases?wait=5"
            told = await client.post(path, json=body, headers=headers, timeout=timeout)
            words = told.json()
            while told.status_code == 202:
                path = f"{place}/v1/answers/{words['answer']}"
                told = await client.get(path, params={"wait": 5}, headers=headers)
                words = told.json()
        except (httpx.HTTPError, ValueError):
            await asyncio.sleep(chance.uniform(0.05, 0.4))
            continue
        if told.status_code == 200 and words["status"] == "answered":
            release = words["release"]
            answer = (tuple(release["integers"]), release["entry"], release["entry_hash"])
            if tally.answers.setdefault((seat["node"], key), answer) != answer:
                tally.differing += 1
            return
        if told.status_code == 409:
            tally.refused.add((seat["node"], key))
            return
        await asyncio.sleep(chance.uniform(0.05, 0.4))
    tally.unknown += 1


async def asked(
    places: list[str],
    seats: Any,
    tokens: Any,
    most: int,
    *,
    seconds: float,
    tally: Tally,
    seed: int,
) -> int:
    """Asks all seats in turn, from many clients at once; how many questions were begun."""
    logins = sorted(seats)
    waiting = iter(range(most))
    limits = httpx.Limits(max_connections=4 * CLIENTS, max_keepalive_connections=CLIENTS)
    until, begun = time.monotonic() + seconds, 0
    async with httpx.AsyncClient(limits=limits, timeout=30.0) as client:

        async def one_client() -> None:
            nonlocal begun
            for number in waiting:
                if time.monotonic() > until:
                    return
                begun += 1
                login, key = logins[number % len(logins)], f"question {seed}.{number}"
                call = (client, places, seats[login], tokens[login], key, tally)
                twice = 2 if number % 5 == 0 else 1
                await asyncio.gather(*(settled(*call) for _ in range(twice)))

        await asyncio.gather(*(one_client() for _ in range(CLIENTS)))
    return begun


# ── what must hold ────────────────────────────────────────────────────────────────────────────────


def judged(desk: Any, dataset: str, seats: Any, tally: Tally) -> dict[str, int]:
    """What went wrong, counted in the ledger itself and against what clients saw."""
    trees, found = desk.office.trees, Counter[str]()
    found["chain_problems"] = len(trees.problems(dataset))
    debits: dict[str, Counter[str]] = {}
    stored_at: dict[str, set[str]] = {}
    for seat in seats.values():
        entries = trees.node(dataset, seat["node"]).entries()
        debits[seat["node"]] = Counter(one.key for one in entries if one.kind == "debit")
        stored_at[seat["node"]] = {one.key for one in entries if one.kind == "answer"}
        hashes = {one.key: (one.number, one.hash) for one in entries if one.kind == "debit"}
        for (node, key), answer in tally.answers.items():
            if node == seat["node"]:
                found["lost"] += hashes.get(key) != answer[1:] or key not in stored_at[node]
    for node, keys in debits.items():
        found["duplicated"] += sum(count - 1 for count in keys.values())
        found["unanswered"] += len(set(keys) - stored_at[node])
    found["duplicated"] += tally.differing
    found["unanswered"] += tally.unknown
    for kind in SEATS:
        mine = {login: seat for login, seat in seats.items() if login.startswith(kind)}
        spent = {login: sum(debits[seat["node"]].values()) for login, seat in mine.items()}
        fits = {login: seat["fits"] for login, seat in mine.items()}
        if kind == "pooled":
            spent, fits = {kind: sum(spent.values())}, {kind: next(iter(fits.values()))}
        for name, number in spent.items():
            found["overspent"] += number > fits[name]
            refused = sum(node in {seat["node"] for login, seat in mine.items()
                                   if login == name or kind == "pooled"}
                          for node, _ in tally.refused)  # fmt: skip
            found["not_exact"] += bool(refused) and number != fits[name]
            found["full"] += number == fits[name]
    return found


def run(
    questions: int, seconds: float, every: float, restarts: float, web: int, seed: int = 1
) -> dict[str, Any]:
    """One service, its clients and its faults."""
    from curator_services import postgresql, prepared, replica
    from discreet.server.desk.desk import open_desk

    each = max(1, int(questions / OVER / sum(SEATS.values())))
    logins = [f"{kind}{one}" for kind, number in SEATS.items() for one in range(number)]
    with tempfile.TemporaryDirectory() as folder, postgresql() as (address, restart):
        settings, tokens, desk, work = prepared(Path(folder), address, logins)
        with work:
            dataset, seats = made(desk, tokens, each)
        with contextlib.ExitStack() as stack:
            started = [stack.enter_context(replica(one, web)) for one in settings]
            places = [place for place, _ in started]
            tally, begun = Tally(), time.monotonic()
            ids = [process.pid for _, process in started]
            killer = Killer(ids, restart, every=every, restarts=restarts, tally=tally, seed=seed)
            killer.start()
            asked_of = asyncio.run(
                asked(places, seats, tokens, questions, seconds=seconds, tally=tally, seed=seed)
            )
            killer.over.set()
            killer.join()
            lasted = time.monotonic() - begun
            time.sleep(3)  # a sweep
        found = judged(open_desk(settings[0]), dataset, seats, tally)  # by new connections
    return {
        "asked": asked_of,
        "answered": len(tally.answers),
        "refused": len(tally.refused),
        "calls": tally.calls,
        "cut": tally.cut,
        "kills": killer.kills,
        "kinds": dict(killer.by_kind),
        "restarts": killer.restarts,
        "seconds": round(lasted),
        **{
            name: found[name]
            for name in ("overspent", "lost", "duplicated", "unanswered", "chain_problems")
        },
        "not_exact": found["not_exact"],
        "full_boxes": found["full"],
    }


COUNTED = ("asked", "answered", "refused", "kills", "restarts", "cut")
WRONG = ("overspent", "lost", "duplicated", "unanswered", "chain_problems", "not_exact")


def parts_so_far() -> dict[str, int]:
    """The counts that are stored, and of how many parts they are the sum."""
    told = json.loads((stored.FOLDER / "curator_faults.json").read_text(encoding="utf-8"))
    found = {row["what"]: row["figure"] for row in told["rows"]}
    return {name: found[name] for name in ("parts", *COUNTED, *WRONG)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=480.0)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two kills")
    parser.add_argument("--restarts", type=float, default=20.0, help="seconds between two restarts")
    parser.add_argument("--web", type=int, default=1, help="web processes of each replica")
    parser.add_argument("--more", action="store_true", help="add to what is stored")
    stored.option(parser)
    given = parser.parse_args()
    before = Counter(parts_so_far() if given.more else {})
    seed = before["parts"] + 1
    found = run(given.questions, given.seconds, given.every, given.restarts, given.web, seed)
    print(found)
    total = {name: before[name] + found[name] for name in (*COUNTED, *WRONG)}
    if given.store:
        stored.figures(
            "curator_faults",
            about="privacy",
            title="Processes and databases that are killed while a service answers",
            says="Two replicas on one PostgreSQL; each paid question is answered, and once. Parts "
            "have seeds of their own and are added up; the command is that of the last.",
            found={"parts": (seed, "")}
            | {name: (total[name], "") for name in COUNTED}
            | {name: (total[name], "0") for name in WRONG},
        )
    shown = ("asked", "kills", "restarts", *WRONG[:-1])
    print(" ".join(f"{name}={total[name]}" for name in shown))


if __name__ == "__main__":
    main()
