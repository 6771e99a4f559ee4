"""What a question costs more by way of a service than in the library, beside what it cannot do
without: two bare POSTs and one durable commit; and how fast the ledger alone is.

    python benchmarks/curator_overhead.py
    python benchmarks/curator_overhead.py --questions 100 --seconds 2      a short look

Service, library, bare application and commits take turns in one run, on one PostgreSQL and one
machine. Ticks are off. `--ledger` leaves out the first half, `--service` the second.

Last line: overhead_vs_limit, overhead_p99_ms, carved_vs_pooled, pooled_vs_commits.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg

import discreet as dp
import stored
import tree
from curator_services import postgresql, prepared, replica

BARE = """
import socket, sys, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
class Body(BaseModel):
    question: dict
    reservation: str | None = None
app = FastAPI()
@app.post("/")
def told(body: Body) -> dict:
    return {"status": "answered", "question": body.question}
config = uvicorn.Config(app, log_level="critical", access_log=False)
uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
"""


@contextlib.contextmanager
def bare() -> Iterator[str]:
    """An application of the same framework that does nothing."""
    listening = socket.create_server(("127.0.0.1", 0))
    number = listening.fileno()
    process = subprocess.Popen([sys.executable, "-c", BARE, str(number)], pass_fds=(number,))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    try:
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                httpx.post(address, json={"question": {}})
                break
            time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait()


def timed(act: Any) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def service_times(questions: int) -> dict[str, list[float]]:
    """Seconds of each, in turns."""
    from curators import SCHEMA, write_survey

    from discreet.estimators.questions import mean_question

    found: dict[str, list[float]] = {"service": [], "library": [], "posts": [], "commit": []}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address, _ = stack.enter_context(postgresql())
        settings, tokens, desk, work = prepared(folder, address, ["anna"], replicas=1)
        with work:
            owner = desk.accounts.recognised(tokens["olga"], by="token")
            anna = desk.accounts.recognised(tokens["anna"], by="token")
            data = desk.datasets.register(
                owner, name="survey", source="data/survey.csv", schema=SCHEMA,
                neighbors="replace", budget={"mu": 9.0}, listed=True,
            )  # fmt: skip
            study = desk.studies.ask(
                anna, dataset=data["id"], name="wages", purpose="time", budget={"mu": 9.0}
            )
            desk.studies.decide(owner, study["id"], decision="approve")
        place, _ = stack.enter_context(replica(settings[0]))
        client = stack.enter_context(httpx.Client(base_url=place, timeout=60))
        client.headers["Authorization"] = f"Bearer {tokens['anna']}"
        write_survey(folder / "survey.csv")
        schema = dp.Schema({name: SCHEMA_OF[one["kind"]](one) for name, one in SCHEMA.items()})
        table = dp.read_csv(folder / "survey.csv", schema=schema, neighbors=dp.Replace())
        local = table.open(budget=dp.GDP(9), ledger=folder / "local.ledger")
        question = mean_question(local.public, "income", spend=dp.GDP(0.01))
        body = {"question": question.to_dict()}
        empty = stack.enter_context(httpx.Client(timeout=60))
        nothing = stack.enter_context(bare())
        link = stack.enter_context(psycopg.connect(address, autocommit=True))
        link.execute("CREATE TABLE commits (number BIGINT PRIMARY KEY, text TEXT)")

        def ask(number: int) -> None:
            headers = {"Idempotency-Key": f"question {number}"}
            path = f"/v1/studies/{study['id']}/releases?wait=20"  # as `dp.connect` asks
            told = client.post(path, json=body, headers=headers)
            while told.status_code == 202:
                told = client.get(f"/v1/answers/{told.json()['answer']}", params={"wait": 20})
            assert told.json()["status"] == "answered", told.text

        for number in range(-20, questions):
            took = {
                "service": timed(lambda number=number: ask(number)),
                "library": timed(lambda number=number: local.release(question, key=f"k {number}")),
                "posts": timed(lambda: [empty.post(nothing, json=body) for _ in range(2)]),
                "commit": timed(
                    lambda number=number: link.execute(
                        "INSERT INTO commits VALUES (%s, %s)", (number, "x" * 200)
                    )
                ),
            }
            if number >= 0:
                for name, seconds in took.items():
                    found[name].append(seconds)
    return found


SCHEMA_OF: dict[str, Any] = {
    "real": lambda one: dp.Real(one["low"], one["high"]),
    "integer": lambda one: dp.Integer(one["low"], one["high"]),
    "category": lambda one: dp.Category(one["levels"]),
}


def overhead(questions: int) -> dict[str, float]:
    found = service_times(questions)
    middle = {name: statistics.median(seconds) for name, seconds in found.items()}
    limit = middle["posts"] + middle["commit"]
    more = sorted(one - middle["library"] for one in found["service"])
    return {
        "overhead_vs_limit": (middle["service"] - middle["library"]) / limit,
        "overhead_p99_ms": 1000 * more[int(0.99 * len(more))],
        **{f"{name}_ms": 1000 * seconds for name, seconds in middle.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each rate of the ledger")
    parser.add_argument("--ledger", action="store_true")
    parser.add_argument("--service", action="store_true")
    stored.option(parser)
    given = parser.parse_args()
    found: dict[str, float] = {}
    if not given.ledger:
        found |= overhead(given.questions)
    if not given.service:
        found |= tree.rates(given.seconds)
    if given.store:
        limits = {
            "overhead_vs_limit": "≤ 2",
            "overhead_p99_ms": "≤ 25",
            "carved_vs_pooled": "≥ 1.5",
            "pooled_vs_commits": "≥ 0.3",
        }
        stored.figures(
            "curator_overhead",
            about="speed",
            title="A question by way of a service, and the ledger alone",
            says="Overhead: service minus library, over two bare POSTs and one durable commit.",
            found={name: (found[name], limit) for name, limit in limits.items() if name in found},
        )
    print(" ".join(f"{name}={value:.2f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
