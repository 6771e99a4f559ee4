"""What a clock tells of the data behind a service: small from large tables, rare from common.

    python benchmarks/curator_timing.py                          2 000 timed answers of each kind
    python benchmarks/curator_timing.py --answers 100 --control 60      a short look
    python benchmarks/curator_timing.py --pair filters --tick 0.5       one pair, other ticks

An attacker with a seat asks, in random turns, about 10⁴ and about 10⁶ rows under `AddRemove` (how
many there are is private), and for the median on a fine grid of the rows that pass a filter, one
that few pass and one that nearly all do (a mean takes as long for both: it reads all rows), and
times every answer: how long the first reply took, how long the answer, and how far after its
announced time it came. With ticks the best of these must tell next to nothing; without them the
same attacker must succeed, or the benchmark would show nothing.

Last line: auc_ticks (the worst of all pairs and clocks), auc_without (the least of their controls),
late (answers after their first slot).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import random
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import discreet as dp
import stored
from curator_services import listening, prepared, replica

LARGE, SMALL = 1_000_000, 10_000
SCHEMA = {
    "income": {"kind": "real", "low": 0, "high": 100, "bits": 32},
    "flag": {"kind": "category", "levels": ["no", "yes"]},
}
PAIRS = {"rows": ("small", "large"), "filters": ("rare", "common")}
ASKED = {
    "small": ("small", None),
    "large": ("large", None),
    "rare": ("large", {"flag": "yes"}),
    "common": ("large", {"flag": "no"}),
}


def written(path: Path, rows: int) -> None:
    """A table of which one row in a thousand has the flag."""
    import pyarrow
    import pyarrow.parquet

    numbers = np.random.default_rng(rows)
    flags = np.where(np.arange(rows) % 1000 == 0, "yes", "no")
    table = pyarrow.table({"income": numbers.uniform(0, 100, rows), "flag": flags})
    pyarrow.parquet.write_table(table, path)


def made(desk: Any, tokens: dict[str, str]) -> dict[str, tuple[str, dict[str, Any]]]:
    """The study and the question of each kind."""
    from discreet.estimators.classical_quantiles import exponential_question
    from discreet.estimators.questions import mean_question

    owner, anna = (
        desk.accounts.recognised(tokens[login], by="token") for login in ("olga", "anna")
    )
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in ("small", "large"):
        data = desk.datasets.register(
            owner,
            name=name,
            source=f"data/{name}.parquet",
            schema=SCHEMA,
            neighbors="add_remove",
            budget={"mu": 50.0},
            rows_at_most=LARGE,
            listed=True,
        )
        study = desk.studies.ask(
            anna, dataset=data["id"], name=name, purpose="time", budget={"mu": 50.0}
        )
        desk.studies.decide(owner, study["id"], decision="approve")
        node = desk.studies.one(anna, study["id"])["seat"]["node"]
        with desk.office.database.read() as rows:
            ledger = desk.office.trees.node(data["id"], node)
            public = desk.office.session(rows, data["id"], 1, ledger).public
        for kind, (where, filtered) in ASKED.items():
            if where == name:
                asked = (
                    mean_question(public, "income", spend=dp.GDP(0.01))
                    if filtered is None
                    else exponential_question(
                        public, "income", Fraction(1, 2), spend=dp.PureDP(0.01), where=filtered
                    )
                )
                found[kind] = study["id"], asked.to_dict()
    return found


async def timed(client: httpx.AsyncClient, study: str, question: Any, key: str) -> list[float]:
    """The clocks of one answer: first reply, answer, answer after its announced time; and whether
    it was late.
    """
    begun = time.time()
    path, headers = f"/v1/studies/{study}/releases", {"Idempotency-Key": key}
    told = await client.post(path, json={"question": question}, headers=headers)
    replied, words = time.time(), told.json()
    first = words["ready_at"]
    while told.status_code == 202:
        told = await client.get(f"/v1/answers/{words['answer']}", params={"wait": 20})
        words = told.json()
    over = time.time()
    assert words["status"] == "answered", words
    return [replied - begun, over - begun, over - first, float(words["ready_at"] > first + 1e-6)]


async def taken(
    address: str, token: str, kinds: dict[str, Any], pair: tuple[str, str], each: int, clients: int
) -> dict[str, np.ndarray]:
    """The clocks of so many answers of both kinds, in random turns."""
    turns = [kind for kind in pair for _ in range(each)]
    random.Random(7).shuffle(turns)
    waiting, found = iter(enumerate(turns)), {kind: list[list[float]]() for kind in pair}
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=120) as client:
        for kind in pair:  # files are opened once
            for number in range(4):
                await timed(client, *kinds[kind], f"{pair} {kind} warm {number} {clients}")

        async def one_client() -> None:
            for number, kind in waiting:
                await asyncio.sleep(random.random() * 0.05)
                key = f"{pair} {number} {clients}"
                found[kind].append(await timed(client, *kinds[kind], key))

        await asyncio.gather(*(one_client() for _ in range(clients)))
    return {kind: np.array(rows) for kind, rows in found.items()}


def auc(one: np.ndarray, other: np.ndarray) -> float:
    """How well a number tells two kinds: .5 is not at all, 1 always; whichever way round."""
    ranks = np.argsort(np.argsort(np.concatenate([one, other]))) + 1.0
    share = (ranks[: len(one)].sum() - len(one) * (len(one) + 1) / 2) / (len(one) * len(other))
    return float(max(share, 1 - share))


def measured(
    pairs: list[str], answers: int, control: int, ticking: float, clients: int
) -> dict[str, float]:
    """The AUC of the best clock, with ticks and without."""
    found: dict[str, float] = {"late": 0.0}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        settings, tokens, desk, _ = prepared(folder, None, ["anna"], replicas=1, workers=2)
        for name, rows in (("small", SMALL), ("large", LARGE)):
            written(folder / "data" / f"{name}.parquet", rows)
        with listening(settings[0]):
            kinds = made(desk, tokens)
        for tick, each, number in ((0.0, control, 1), (ticking, answers, clients)):
            told = dataclasses.replace(settings[0], tick=tick)
            with contextlib.ExitStack() as stack:
                address, _ = stack.enter_context(replica(told))
                for name in pairs:
                    pair = PAIRS[name]
                    call = (address, tokens["anna"], kinds, pair, each, number)
                    clocks = asyncio.run(taken(*call))
                    one, other = (clocks[kind] for kind in pair)
                    all_clocks = [auc(one[:, column], other[:, column]) for column in range(3)]
                    when = "ticks" if tick else "without"
                    print(name, when, [round(share, 3) for share in all_clocks], flush=True)
                    found[f"{name}_{when}"] = max(all_clocks) if tick else all_clocks[1]
                    if tick:
                        found["late"] += float(one[:, 3].sum() + other[:, 3].sum())
    return {
        "auc_ticks": max(found[f"{name}_ticks"] for name in pairs),
        "auc_without": min(found[f"{name}_without"] for name in pairs),
        "late": found["late"],
        "answers": float(answers),
        "tick_s": ticking,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=2000, help="timed with ticks, of each kind")
    parser.add_argument("--control", type=int, default=300, help="without ticks, of each kind")
    parser.add_argument("--pair", choices=[*PAIRS], help="one of them alone")
    parser.add_argument("--tick", type=float, default=1.0, help="seconds")
    parser.add_argument("--clients", type=int, default=16, help="at once")
    stored.option(parser)
    given = parser.parse_args()
    pairs = [*PAIRS] if given.pair is None else [given.pair]
    found = measured(pairs, given.answers, given.control, given.tick, given.clients)
    if given.store:
        name = "" if given.pair is None else f"_{given.pair}"
        limits = {"auc_ticks": "≤ 0.55", "auc_without": "≥ 0.95", "late": "0"}
        if given.pair == "filters":  # how long a filter takes need not tell what it lets through
            del limits["auc_without"]
        stored.figures(
            f"curator_timing{name}",
            about="privacy",
            title={
                None: "What a clock tells of the data behind a service",
                "rows": "What a clock tells: 10 000 rows from 1 000 000",
                "filters": "What a clock tells: a rare filter from a common one",
            }[given.pair],
            says="AUC of an attacker who times answers; 0.5 is a coin, 1 is certainty.",
            found={word: (value, limits.get(word, "")) for word, value in found.items()},
        )
    print(" ".join(f"{name}={value:.3f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
