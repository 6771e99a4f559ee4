"""What the process tests run: races of 64 forked processes, and releases that die at a chosen step.

Run as a script, so that nothing of the test runner is forked.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from fractions import Fraction

from discreet.accounting.guarantees import PureDP
from discreet.errors import BudgetExceeded, DiscreetError
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.ledger.sqlite import SQLiteView
from discreet.trusted.losses.pricing import Price

RACERS = 64
TENTH = Price(epsilon=Fraction(1, 10))


def race(work: Callable[[int], object]) -> list[object]:
    """Fork 64 processes, let them all start at once, and collect what each returned."""
    gate, start = os.pipe()
    results, out = os.pipe()
    children = []
    for racer in range(RACERS):
        child = os.fork()
        if child == 0:
            os.read(gate, 1)
            try:
                outcome = work(racer)
            except BaseException as error:
                outcome = f"{type(error).__name__}: {error}"
            os.write(out, json.dumps(outcome).encode() + b"\n")  # below PIPE_BUF: not interleaved
            os._exit(0)
        children.append(child)
    os.write(start, b"g" * RACERS)
    os.close(out)
    with os.fdopen(results) as lines:
        # until the last racer is done; a pipe holds only so much
        outcomes = [json.loads(line) for line in lines]
    for child in children:
        os.waitpid(child, 0)
    return outcomes


def last_unit(path: str, steps: str) -> list[object]:
    """Every racer debits `steps` tenths, each under its own key; how many each got."""
    ledger = Ledger.open(None, path=path)  # opened before the fork: a file may be used after it

    def work(racer: int) -> int:
        won = 0
        for step in range(int(steps)):
            try:
                won += ledger.debit(
                    key=f"{racer}/{step}", request={"racer": racer}, price=TENTH
                ).fresh
            except BudgetExceeded:
                continue
        return won

    return race(work)


def one_key(path: str) -> list[object]:
    """Every racer asks the same question under the same key,
    and makes its own answer if it has to.
    """

    def work(racer: int) -> list[object]:
        ledger = Ledger.open(None, path=path)
        debit = ledger.debit(key="same", request={"query": "count"}, price=TENTH)
        return [debit.fresh, debit.answer or ledger.store("same", lambda: f"drawn by {racer}")]

    return race(work)


def created(path: str) -> list[object]:
    """Every racer makes the ledger; the box id that each ends up with."""
    return race(lambda racer: Ledger.open(PureDP(1), path=path).entries()[0].hash)


def naive(path: str) -> list[object]:
    """The control: the same race on a store that checks first and writes afterwards."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE balance (spent INTEGER)")
        connection.execute("INSERT INTO balance VALUES (9)")
    connection.close()

    def work(racer: int) -> int:
        own = sqlite3.connect(path, timeout=600, isolation_level=None)
        if own.execute("SELECT spent FROM balance").fetchone()[0] + 1 > 10:
            return 0
        with open(f"{path}.checked", "ab", buffering=0) as checked:
            checked.write(b"1")
        # until another has checked too: at once, or a minute on a machine that is hardly running
        for _ in range(6000):
            if os.path.getsize(f"{path}.checked") > 1:
                break
            time.sleep(0.01)
        own.execute("UPDATE balance SET spent = spent + 1")
        return 1

    return race(work)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_release(path: str, step: str) -> object:
    """One release under the key 'asked' that dies at `step`."""
    original = SQLiteView.append

    def append(self: SQLiteView, entry: object, *rest: object) -> None:
        kind = entry.kind  # type: ignore[attr-defined]
        if step == f"{kind}: before insert":
            die()
        original(self, entry, *rest)  # type: ignore[arg-type]
        if step == f"{kind}: inserted, not committed":
            die()

    SQLiteView.append = append  # type: ignore[method-assign, assignment]
    ledger = Ledger.open(None, path=path)
    if step == "before debit":
        die()
    debit = ledger.debit(key="asked", request={"query": "count"}, price=TENTH)
    if step == "after debit":
        die()

    def make_answer() -> str:
        if step == "while drawing":
            die()
        return "first draw"

    answer = debit.answer or ledger.store("asked", make_answer)
    if step == "answer: committed":
        die()
    return answer


def killed_creation(path: str, step: str) -> object:
    """A ledger whose making dies at `step`."""
    link, append = os.link, SQLiteView.append

    def dying_link(source: object, target: object) -> None:
        if step == "before link":
            die()
        link(source, target)  # type: ignore[arg-type]
        die()

    def dying_append(self: SQLiteView, entry: object, *rest: object) -> None:
        append(self, entry, *rest)  # type: ignore[arg-type]
        die()

    os.link = dying_link  # type: ignore[assignment]
    if step == "first entry not committed":
        SQLiteView.append = dying_append  # type: ignore[method-assign, assignment]
    Ledger.open(PureDP(1), path=path)
    return "alive"


def endless(path: str) -> object:
    """Release after release, each printed once it is paid and answered, until killed."""
    ledger, number = Ledger.open(None, path=path), 0
    while True:
        key = f"request {number}"
        ledger.debit(key=key, request={"number": number}, price=Price(epsilon=Fraction(1, 10**6)))
        print(json.dumps(["debited", key]), flush=True)
        answer = ledger.store(key, lambda key=key: f"answer to {key}")  # type: ignore[misc]
        print(json.dumps([answer, key]), flush=True)
        number += 1


def in_child(work: Callable[[], object]) -> object:
    results, out = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            outcome = work()
        except DiscreetError as error:
            outcome = [type(error).__name__, error.remedy]
        os.write(out, json.dumps(outcome).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(out)
    with os.fdopen(results) as lines:
        return json.load(lines)


def forked_memory() -> object:
    """A ledger in memory, used by a forked child and then by its owner."""
    ledger = Ledger.open(PureDP(1))
    tried = [
        in_child(lambda: ledger.debit(key="child", request={}, price=TENTH).key),
        in_child(lambda: str(ledger.spent())),
        in_child(lambda: ledger.reserve(TENTH).id),
    ]
    return [tried, str(ledger.spent()), ledger.debit(key="owner", request={}, price=TENTH).fresh]


def forked_inside(path: str) -> object:
    """A process that forks while it makes an answer: the child cannot store, the owner can."""
    ledger = Ledger.open(None, path=path)
    ledger.debit(key="asked", request={}, price=TENTH)
    results, out = os.pipe()
    owner = os.getpid()

    def make_answer() -> str:
        if os.fork() == 0:
            return "from the child"
        os.wait()
        return "from the owner"

    try:
        answer = ledger.store("asked", make_answer)
    except DiscreetError as error:
        os.write(out, json.dumps([type(error).__name__, error.found]).encode())
        os._exit(0)
    assert os.getpid() == owner
    os.close(out)
    with os.fdopen(results) as lines:
        return [json.load(lines), answer, Ledger.open(None, path=path).verify().ok]


COMMANDS = {
    command.__name__: command
    for command in (
        last_unit,
        one_key,
        created,
        naive,
        killed_release,
        killed_creation,
        endless,
        forked_memory,
        forked_inside,
    )
}

if __name__ == "__main__":
    print(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))
