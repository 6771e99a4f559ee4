"""Mutated questions of a service: nothing breaks, nothing invalid is debited, nothing takes long.

    python benchmarks/curator_fuzz.py                       100 000 questions
    python benchmarks/curator_fuzz.py --questions 5000      a short look

Questions of the library and questions by name are changed in one place or two: huge numbers, deep
nesting, fractions that are none, unknown types, parts of other questions. They go by HTTP to a
service of its own processes, from a few clients at once. Then every route of the OpenAPI document
is called with bodies of its shape. `slow` are calls of more than a second, and the memory of web
processes and of workers is looked at after the first turn, in the middle and at the end.

Last line: calls, broken (5xx), paid_for_invalid, slow, and MiB of web processes and workers.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

import stored

HERE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HERE), str(HERE / "tests" / "server")]

from mutations import Outcome, ask_mutated, call_every_route  # noqa: E402
from test_fuzzed import prepared  # noqa: E402

from curator_services import replica, resident  # noqa: E402

TURN, CLIENTS, LONGEST = 1000, 4, 1.0


@dataclasses.dataclass
class Wire:
    """The people of a service that is reached by HTTP."""

    address: str
    tokens: dict[str, str]

    def client(self, login: str | None = None) -> httpx.Client:
        headers = {} if login is None else {"Authorization": f"Bearer {self.tokens[login]}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=60)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[Any, Wire, dict[str, Any], list[Any], int]]:
    """A desk, its service by HTTP with the id of its process, a study, and what is mutated."""
    here, study, bases = prepared(folder, clock=time.time)
    here.desk.office.trees.let_go()
    settings = dataclasses.replace(here.desk.office.settings, workers=1, sweep=0.5)
    with replica(settings) as (address, process):
        yield here.desk, Wire(address, here.tokens), study, bases, process.pid
    here.desk.office.trees.let_go()


def measured(questions: int, seconds: float) -> dict[str, float]:
    total, sizes = Outcome(), list[dict[str, float]]()
    begun = time.monotonic()
    turns = -(-questions // TURN)
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as all_of_it:
        desk, wire, study, bases, process = all_of_it
        node = desk.office.trees.node(study["dataset"], study["seat"]["node"])
        before = {one.key.partition("/")[0] for one in node.entries()}

        def turn(number: int) -> None:
            if time.monotonic() - begun < seconds:
                found = ask_mutated(
                    wire,
                    study["id"],
                    bases,
                    min(TURN, questions),
                    seed=number,
                    clock=time.monotonic,
                )
                total.add(found)
                sizes.append(resident(process))

        with ThreadPoolExecutor(CLIENTS) as together:
            list(together.map(turn, range(turns)))
        ids = {"dataset": study["dataset"], "study": study["id"], "node": study["seat"]["node"]}
        routes = call_every_route(wire, ids, 20, clock=time.monotonic)
        debits = {one.key.partition("/")[0] for one in node.entries() if one.kind == "debit"}
        problems = desk.office.trees.problems(study["dataset"])
    wrong = {key for key in debits - before - total.paid if key.startswith("mutated")}
    for one in [*total.broken, *routes.broken, *total.slow, *routes.slow, *problems][:10]:
        print("odd:", one)
    print(dict(total.statuses), dict(routes.statuses))
    right = total.statuses[200] + total.statuses[202]
    assert right, "some are still right, so that they reach the ledger"
    assert not total.statuses[401], "they come from somebody who is known"
    looks = {"start": sizes[0], "middle": sizes[len(sizes) // 2], "end": sizes[-1]}
    return {
        "calls": sum(total.statuses.values()) + sum(routes.statuses.values()),
        "broken": len(total.broken) + len(routes.broken),
        "paid_for_invalid": len(wrong),
        "slow": len(total.slow) + len(routes.slow),
        "chain_problems": len(problems),
        **{
            f"{kind}_{when}_mib": size[kind]
            for kind in ("web", "worker")
            for when, size in looks.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=3600.0, help="at most")
    stored.option(parser)
    given = parser.parse_args()
    found = measured(given.questions, given.seconds)
    if given.store:
        limits = dict.fromkeys(("broken", "paid_for_invalid", "slow", "chain_problems"), "0")
        stored.figures(
            "curator_fuzz",
            about="privacy",
            title="Mutated questions of a service",
            says="No answer 5xx, nothing debited for what was refused.",
            found={word: (value, limits.get(word, "")) for word, value in found.items()},
        )
    print(" ".join(f"{name}={value:.0f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
