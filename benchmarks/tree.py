"""How fast a budget tree in PostgreSQL is: questions per second of eight seats at once.

    python benchmarks/tree.py                 the figures of the house
    python benchmarks/tree.py --seconds 2     a short look

A question is a durable debit and a durable answer. `carved`: each seat is a ledger of its own;
`pooled`: all are limits on the money of one study, whose meter every debit locks. `commits`: rows
that one connection inserts and commits, one at a time, on the same server, in turns with the
others, so that a busy disk is busy for all of them.

Last line: carved_vs_pooled, pooled_vs_commits and the rates they are made of.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from fractions import Fraction
from pathlib import Path

import psycopg

from discreet.accounting.guarantees import GDP
from discreet.neighbors import AddRemove
from discreet.trusted.losses.pricing import Price
from discreet.trusted.tree.node import Node
from discreet.trusted.tree.tree import BudgetTree

sys.path.append(str(Path(__file__).parents[1] / "tests" / "trusted" / "scale"))

SEATS, TURNS = 8, 5
PRICE = Price(mu_squared=Fraction(1, 10**9))
RELATION = AddRemove().to_dict()


def ask(node: Node, seconds: float) -> float:
    """How many questions a second a seat gets answered."""
    begun, asked = time.time(), 0
    while time.time() < begun + seconds:
        key = f"{begun} {asked}"
        node.debit(key=key, request={"query": "count", "neighbors": RELATION}, price=PRICE)
        node.store(key, lambda: '{"integers":["12345"],"found":[],"secure":true}')
        asked += 1
    return asked / (time.time() - begun)


def rate_of(address: str, seats: list[str], seconds: float) -> float:
    """Questions per second of seats that ask at once, each in a process of its own."""
    ready, is_ready = os.pipe()
    gate, start = os.pipe()
    results, out = os.pipe()
    children = []
    for seat in seats:
        child = os.fork()
        if child == 0:
            tree = BudgetTree.open(address)
            node = tree.node(seat)
            node.remaining()
            os.write(is_ready, b"r")
            os.read(gate, 1)
            os.write(out, f"{ask(node, seconds)}\n".encode())
            tree.close_connections()
            os._exit(0)
        children.append(child)
    for _ in children:
        os.read(ready, 1)
    os.write(start, b"g" * len(seats))
    for child in children:
        os.waitpid(child, 0)
    for end in (ready, is_ready, gate, start, out):
        os.close(end)
    with os.fdopen(results) as lines:
        return sum(map(float, lines))


def commits(address: str, seconds: float) -> float:
    """Durable commits of one row per second, over one connection."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS commits (number BIGINT PRIMARY KEY, text TEXT)"
        )
        number = connection.execute("SELECT count(*) FROM commits").fetchone()[0]
        begun, done = time.time(), 0
        while time.time() < begun + seconds:
            connection.execute("INSERT INTO commits VALUES (%s, %s)", (number + done, "x" * 200))
            done += 1
        return done / (time.time() - begun)


def rates(seconds: float) -> dict[str, float]:
    """The two ratios, and the rates that they are made of."""
    from postgresql import server

    with server(durable=True) as address:
        tree = BudgetTree.open(address)
        root = tree.root("survey", GDP(10), neighbors=AddRemove(), key="survey")
        study = tree.carve(root.id, "study", GDP(5), key="study")
        carved = [tree.carve(root.id, f"{n}", GDP(1), key=f"{n}").id for n in range(SEATS)]
        pooled = [tree.pool(study.id, f"{n}", GDP(4), key=f"{n}").id for n in range(SEATS)]
        found: dict[str, list[float]] = {"carved": [], "pooled": [], "commits": []}
        for turn in range(TURNS):
            found["commits"].append(commits(address, seconds))
            found["pooled"].append(rate_of(address, pooled, seconds))
            found["carved"].append(rate_of(address, carved, seconds))
            print(turn, *(f"{name}={taken[-1]:.1f}" for name, taken in found.items()), flush=True)
        report = tree.verify()
        assert report.ok, report.problems
        tree.close_connections()
    middle = {name: statistics.median(taken) for name, taken in found.items()}
    return {
        "carved_vs_pooled": middle["carved"] / middle["pooled"],
        "pooled_vs_commits": middle["pooled"] / middle["commits"],
        **{f"{name}_per_second": rate for name, rate in middle.items()},
    }


def main(seconds: float) -> None:
    print(*(f"{name}={value:.2f}" for name, value in rates(seconds).items()))


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--seconds", type=float, default=6.0, help="of each rate in each turn")
    main(reader.parse_args().seconds)
