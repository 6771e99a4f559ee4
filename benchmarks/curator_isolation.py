"""What a service tells people of what is not theirs: every route of its OpenAPI document, as every
role, with ids of others, of nobody and of no form; and what a carved seat can see of its neighbour.

    python benchmarks/curator_isolation.py
    python benchmarks/curator_isolation.py --malformed 8 --asked 50     a short look

A probe reveals something where a foreign id gives other bytes, or another status, than one that is
nobody's, where a status is none of 403, 404 and 422, or where anything is changed by it. The
neighbour asks 0 questions, then `--asked`, through a refusal for want of room.

Last line: probes, revealed, neighbour (paths whose bytes changed).
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import stored

HERE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HERE), str(HERE / "tests" / "server")]

from curators import Curator, curator  # noqa: E402
from test_isolation import (  # noqa: E402
    MALFORMED,
    MEAN,
    NOBODY,
    calls,
    outcome,
    planted,
    release_body,
    state,
)

MARKS = "abcxyz0189_-~.!$&'()*+,;=:@%41%2e%C3%A9"
STRANGERS = ("ben", "otto", "op", "ada", None)


def malformed(number: int) -> list[str]:
    """Ids of no form, the usual attempts first."""
    chance, found = random.Random(22), [*MALFORMED]
    while len(found) < number:
        length = chance.choice((1, 3, 20, 32, 64, 65, 300))
        text = "".join(chance.choice(MARKS) for _ in range(length))
        if "%" not in text and text not in (".", ".."):
            found.append(text)
    return found[:number]


def probed(here: Curator, mine: dict[str, str], forms: list[str]) -> tuple[int, list[Any]]:
    """How many probes there were, and those that revealed something."""
    releases, before = release_body(here), state(here)
    absent = here.client("ben").get(f"/v1/answers/{NOBODY['answer']}").content
    probes, revealed = 0, []
    for login in STRANGERS:
        client = here.client(login)
        for method, path, usual in calls(here):
            body = releases if path.endswith("/releases") else usual
            if login == "op" and path.startswith("/v1/people"):
                continue  # their own business
            if login == "ada" and not path.startswith(("/v1/answers", "/v1/tokens", "/v1/people")):
                continue  # auditors see what stands in ledgers
            told = [outcome(client, method, path, ids, body) for ids in (NOBODY, mine)]
            told += [
                outcome(client, method, path, dict.fromkeys(NOBODY, one), body) for one in forms
            ]
            probes += len(told)
            allowed = {401, 404, 422} if login is None else {403, 404, 422}
            odd = told[0] != told[1] or not {status for status, _ in told} <= allowed
            if odd or any(status == 404 and text != absent for status, text in told):
                revealed.append((login, method, path))
    if state(here) != before:
        revealed.append(("somebody", "changed", "something"))
    return probes, revealed


def seen_by(here: Curator, dataset: str, study: dict[str, Any]) -> dict[str, bytes]:
    """Whatever a seat can look at."""
    anna, node = here.client("anna"), study["seat"]["node"]
    paths = ["/v1/me", "/v1/datasets", "/v1/studies", "/v1/estimators", f"/v1/datasets/{dataset}"]
    paths += [f"/v1/studies/{study['id']}", f"/v1/studies/{study['id']}/answers"]
    paths += [f"/v1/ledger/{node}", f"/v1/datasets/{dataset}/dummy?rows=20"]
    told = {path: anna.get(path).content for path in paths}
    preview = f"/v1/studies/{study['id']}/previews"
    told |= {preview: anna.post(preview, json=MEAN).content}
    told |= {"verify": anna.post(f"/v1/ledger/{node}/verify").content}
    large = {**MEAN, "spend": {"mu": 5.0}}
    refused = anna.post(
        f"/v1/studies/{study['id']}/questions", json=large, headers={"Idempotency-Key": "large"}
    )
    return told | {"no room": refused.content}


def neighbour(here: Curator, asked: int) -> list[str]:
    """The paths whose bytes depend on what another carved seat asked."""
    data = here.register("neighbours")
    mine = here.study(data["id"], name="mine", login="anna", budget={"mu": 0.5})
    words = {"budget": {"mu": 0.01 * (asked - 5) ** 0.5}}
    other = here.study(data["id"], name="other", login="ben", **words)
    before, ben = seen_by(here, data["id"], mine), here.client("ben")
    statuses = set()
    for number in range(asked):
        told = ben.post(
            f"/v1/studies/{other['id']}/questions",
            json=MEAN,
            headers={"Idempotency-Key": f"neighbour {number}"},
        )
        statuses.add(told.status_code)
    assert statuses == {200, 409}, statuses
    after = seen_by(here, data["id"], mine)
    return [path for path in before if before[path] != after[path]]


def measured(forms: int, asked: int) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        here = curator(Path(folder))
        probes, revealed = probed(here, planted(here), malformed(forms))
        changed = neighbour(here, asked)
    for one in (*revealed, *changed):
        print("revealed:", one)
    return {"probes": probes, "revealed": len(revealed) + len(changed), "neighbour": len(changed)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--malformed", type=int, default=55, help="ids of no form for each route")
    parser.add_argument("--asked", type=int, default=1000, help="questions of the neighbour")
    stored.option(parser)
    given = parser.parse_args()
    found = measured(given.malformed, given.asked)
    if given.store:
        limits = {"probes": "≥ 5000", "revealed": "0", "neighbour": "0"}
        stored.figures(
            "curator_isolation",
            about="privacy",
            title="What a service tells of what is not one's own",
            says="Every route, role and kind of id; a carved seat beside one that asks.",
            found={word: (value, limits.get(word, "")) for word, value in found.items()},
        )
    print(" ".join(f"{name}={value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
