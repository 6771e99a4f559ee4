"""Schemathesis on the OpenAPI document of a service: right and wrong calls of every operation.

    pip install schemathesis
    python benchmarks/curator_schemathesis.py                    40 examples of each kind
    python benchmarks/curator_schemathesis.py --examples 3       a short look

Each operation is called with examples that fit its document and with examples that do not, as an
analyst, an owner, an auditor and an operator in random turns, half of them with ids that are there.
`broken` are answers 5xx, `undocumented` statuses that the document does not name, `slow` calls that
take the processor for more than a second, `problems` what is then wrong with the ledger.

Last line: calls, broken, undocumented, slow, problems.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import stored

HERE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HERE), str(HERE / "tests" / "server")]

from curators import ADDRESS, Curator, curator  # noqa: E402

LOGINS = ("anna", "olga", "ada", "op")
LONGEST = 1.0


class Caller:
    """Makes one call of an example, and counts what comes of it."""

    def __init__(self, here: Curator, ids: dict[str, str]) -> None:
        self._clients = {login: here.client(login) for login in LOGINS}
        self._ids, self._chance = ids, random.Random(3)
        self.found: Counter[str] = Counter()
        self.odd: list[Any] = []

    def call(self, operation: Any, case: Any) -> None:
        for name in case.path_parameters or {}:
            if name in self._ids and self._chance.random() < 0.5:
                case.path_parameters[name] = self._ids[name]
        told = case.as_transport_kwargs(base_url=ADDRESS)
        words = {name: told[name] for name in ("method", "url", "json", "params") if name in told}
        if "data" in told:
            words["content"] = told["data"]
        given = dict(told.get("headers") or {})
        headers = {name: given[name] for name in given if name.lower() != "authorization"}
        if self._chance.random() < 0.8:
            headers.setdefault("Idempotency-Key", f"key {self._chance.randrange(10**12)}")
        client, begun = self._clients[self._chance.choice(LOGINS)], time.process_time()
        try:
            answer = client.request(headers=headers, **words)
        except (TypeError, ValueError):  # no call that a client could send
            self.found["unsent"] += 1
            return
        self.found["calls"] += 1
        self.found["slow"] += time.process_time() - begun > LONGEST
        self.found[f"status {answer.status_code}"] += 1
        known = str(answer.status_code) in operation.definition.raw["responses"]
        for what, wrong in (("broken", answer.status_code >= 500), ("undocumented", not known)):
            if wrong:
                self.found[what] += 1
                self.odd.append((what, operation.label, answer.status_code, str(words)[:300]))


def tried(hypothesis: Any, operation: Any, mode: Any, examples: int, caller: Caller) -> Any:
    """What calls an operation with so many examples of a kind."""

    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def called(case: Any) -> None:
        caller.call(operation, case)

    return called


def measured(examples: int) -> dict[str, int]:
    schemathesis: Any = importlib.import_module("schemathesis")
    hypothesis: Any = importlib.import_module("hypothesis")
    with tempfile.TemporaryDirectory() as folder:
        here = curator(Path(folder))
        made = here.register()
        study = here.study(made["id"])
        ids = {"dataset": made["id"], "study": study["id"], "node": study["seat"]["node"]}
        caller = Caller(here, ids)
        document = here.client().get("/v1/openapi.json").json()
        for result in schemathesis.openapi.from_dict(document).get_all_operations():
            for mode in schemathesis.GenerationMode:
                called = tried(hypothesis, result.ok(), mode, examples, caller)
                try:
                    called()
                except hypothesis.errors.Unsatisfiable:  # everything fits, or nothing does
                    caller.found["no examples"] += 1
        problems = here.desk.office.trees.problems(made["id"])
    for one in caller.odd[:20]:
        print("odd:", one)
    print(dict(caller.found))
    names = ("calls", "broken", "undocumented", "slow")
    return {name: caller.found[name] for name in names} | {"problems": len(problems)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=40, help="of each operation, right and not")
    stored.option(parser)
    given = parser.parse_args()
    found = measured(given.examples)
    if given.store:
        stored.figures(
            "curator_schemathesis",
            about="privacy",
            title="Schemathesis on the OpenAPI document of a service",
            says="Calls of every operation that fit its document, and calls that do not.",
            found={word: (value, "" if word == "calls" else "0") for word, value in found.items()},
        )
    print(" ".join(f"{name}={value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
