"""Hostile calls of a service: questions that were right and are changed in one or two places, and
bodies for every route of the OpenAPI document; what must not come of them.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx
from curators import Curator

import discreet as dp
from discreet.server.accounts.marks import new_id

_PLACE = Path(__file__).parents[1] / "remote" / "remote_asks.py"
_SPEC = importlib.util.spec_from_file_location("remote_asks", _PLACE)
assert _SPEC is not None
assert _SPEC.loader is not None
asks = importlib.util.module_from_spec(_SPEC)
sys.modules.setdefault("remote_asks", asks)
_SPEC.loader.exec_module(asks)

PROCEDURES = ("mean", "table", "median", "describe", "histogram", "select", "robust", "top")
LONGEST = 1.0  # seconds of one call, of the processor: a busy machine makes no call slow


def _deep(levels: int, mark: str = "[") -> Any:
    text = mark * levels + "]" * levels if mark == "[" else '{"a":' * levels + "1" + "}" * levels
    return json.loads(text)


HOSTILE: tuple[Any, ...] = (
    *(None, True, False, "", " ", 0, -1, 1, 2, 0.5, -0.0, 1e-320, 1e308, -1e308, 2**53, 2**63),
    *(2**64, 10**30, -(10**40), 10**4000, "1/0", "0/1", "-1/3", "1/3", "10**9", "1e999", "nan"),
    *("inf", "9" * 5000, "9" * 400 + "/" + "7" * 400, "x" * 50_000, "'; DROP TABLE people; --"),
    *("../../etc/passwd", "<script>alert(1)</script>", "=1+1", "\u202e", "\ud7ff", "é" * 300),
    *([], {}, [[]], [None], [1] * 3000, {"kind": "unknown"}, {"kind": None}, {"": ""}),
    *({"__class__": "os.system"}, {"kind": "gaussian"}, _deep(90), _deep(90, "{")),
)
WORDS = ("kind", "sigma", "sensitivity", "query", "mechanism", "spend", "extra", "", "__proto__")


def recorded(here: Curator, dataset: str, study: str) -> list[dict[str, Any]]:
    """The questions that some procedures ask, as a client writes them."""
    connection, found = here.connection("anna"), list[dict[str, Any]]()
    usual = connection._service.call

    def call(method: str, path: str, **more: Any) -> Any:
        if path.endswith("/releases"):
            found.append(more["body"]["question"])
        return usual(method, path, **more)

    connection._service.call = call  # type: ignore[method-assign]
    session = connection.open(dataset, study=study)
    for name in PROCEDURES:
        try:
            asks.ASKS[name](session, dp.GDP(0.05), key=f"recorded {name}")
        except (KeyError, dp.errors.DiscreetError):
            continue  # it is not asked so, or not of these columns
    return found


def places(told: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a JSON value."""
    yield at
    if isinstance(told, dict):
        for name, one in told.items():
            yield from places(one, (*at, name))
    elif isinstance(told, list):
        for number, one in enumerate(told[:20]):
            yield from places(one, (*at, number))


def hostile(chance: random.Random) -> Any:
    """One of them, to be changed on."""
    return copy.deepcopy(chance.choice(HOSTILE))


def mutated(told: Any, chance: random.Random, others: list[Any]) -> Any:
    """The value, other in one place or two."""
    changed = copy.deepcopy(told)
    for _ in range(chance.choice((1, 1, 1, 2))):
        at = chance.choice(list(places(changed)))
        if not at:
            return hostile(chance)
        inner = changed
        for step in at[:-1]:
            inner = inner[step]
        act = chance.randrange(5)
        if act == 0:
            del inner[at[-1]]
        elif act == 1 and isinstance(inner, dict):
            inner[chance.choice(WORDS)] = hostile(chance)
        elif act == 2:
            other = chance.choice(others)
            where = chance.choice(list(places(other)))
            for step in where:
                other = other[step]
            inner[at[-1]] = copy.deepcopy(other)
        elif act == 3 and isinstance(inner[at[-1]], (int, float)):
            times = chance.choice((-1, 0.999999, 1.0000001, 1e9, 3))
            with contextlib.suppress(OverflowError):  # an integer beyond every float stays
                inner[at[-1]] = inner[at[-1]] * times
        else:
            inner[at[-1]] = hostile(chance)
    return changed


@dataclass
class Outcome:
    """What came of many calls."""

    statuses: Counter[int] = field(default_factory=Counter)
    broken: list[Any] = field(default_factory=list)  # 5xx
    slow: list[Any] = field(default_factory=list)
    paid: set[str] = field(default_factory=set)  # keys of calls that were granted

    def took(self, told: Any, answer: Any, seconds: float) -> None:
        self.statuses[answer.status_code] += 1
        if answer.status_code >= 500:
            self.broken.append((told, answer.text[:200]))
        if seconds > LONGEST:
            self.slow.append((seconds, str(told)[:300]))

    def add(self, other: Outcome) -> None:
        self.statuses += other.statuses
        self.broken += other.broken
        self.slow += other.slow
        self.paid |= other.paid


class Asked(Protocol):
    """A service that people have clients of."""

    def client(self, login: str | None = None) -> httpx.Client: ...


def ask_mutated(
    here: Asked,
    study: str,
    bases: list[dict[str, Any]],
    number: int,
    seed: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> Outcome:
    """So many mutated questions, half of them as releases and half by name."""
    chance, anna, found = random.Random(seed), here.client("anna"), Outcome()
    named = [
        {"estimator": "mean", "column": "income", "spend": {"mu": 0.01}},
        {"estimator": "count", "where": {"region": "N", "age": [18, 30]}, "spend": {"mu": 0.01}},
        {"estimator": "table", "by": ["region"], "spend": {"mu": 0.01}},
        {"estimator": "median", "column": "age", "spend": {"epsilon": 0.01}},
        {"estimator": "histogram", "column": "income", "bins": 5, "spend": {"rho": 0.01}},
    ]
    for turn in range(number):
        key = f"mutated {seed} {turn}"
        if turn % 2:
            path, body = "questions", mutated(chance.choice(named), chance, named)
        else:
            asked = mutated(chance.choice(bases), chance, bases)
            path, body = "releases", {"question": asked}
            if chance.random() < 0.1:
                body = mutated(body, chance, bases)
        try:
            text = json.dumps(body)
        except ValueError:
            continue
        begun = clock()
        answer = anna.post(
            f"/v1/studies/{study}/{path}",
            content=text.encode(),
            headers={"Idempotency-Key": key, "Content-Type": "application/json"},
        )
        found.took(body, answer, clock() - begun)
        if answer.status_code in (200, 202):
            found.paid.add(key)
    return found


def call_every_route(
    here: Asked,
    ids: dict[str, str],
    rounds: int,
    seed: int = 2,
    clock: Callable[[], float] = time.process_time,
) -> Outcome:
    """Every operation of the OpenAPI document as every role, with bodies and queries at random."""
    chance, found = random.Random(seed), Outcome()
    document = here.client().get("/v1/openapi.json").json()
    schemas = document["components"]["schemas"]
    clients = [here.client(login) for login in ("anna", "olga", "ada", "op")]
    for _ in range(rounds):
        for path, methods in document["paths"].items():
            for method, told in methods.items():
                place, query = path, {}
                for one in told.get("parameters", []):
                    name = one["name"]
                    if one["in"] == "path":
                        usual = ids.get(name, new_id("xx"))
                        shown = chance.choice((usual, usual, "x", "0" * 300, "%00", "é"))
                        place = place.replace(f"{{{name}}}", shown)
                    elif one["in"] == "query":
                        query[name] = str(chance.choice((1, -1, 10**30, "x", "", "nan", 1e400)))
                body = _body(told, schemas, chance) if method in ("post", "put") else None
                begun = clock()
                answer = chance.choice(clients).request(
                    method,
                    place,
                    params=query,
                    content=None if body is None else json.dumps(body).encode(),
                    headers={"Idempotency-Key": new_id("k"), "Content-Type": "application/json"},
                )
                found.took((method, place, query, body), answer, clock() - begun)
    return found


def _body(told: Any, schemas: Any, chance: random.Random) -> Any:
    """A body in the shape that the document asks for, with hostile values in it."""
    content = told.get("requestBody", {}).get("content", {}).get("application/json", {})
    reference = content.get("schema", {}).get("$ref", "")
    properties = schemas.get(reference.rpartition("/")[2], {}).get("properties", {})
    body = {
        name: hostile(chance) if chance.random() < 0.4 else _usual(one, chance)
        for name, one in properties.items()
        if chance.random() < 0.9
    }
    return body if chance.random() < 0.95 else hostile(chance)


def _usual(one: Any, chance: random.Random) -> Any:
    kinds = [one, *one.get("anyOf", [])]
    kind = chance.choice([k.get("type") for k in kinds if k.get("type")] or ["string"])
    usual: dict[str, Any] = {
        "string": "x",
        "integer": 1,
        "number": 0.1,
        "boolean": True,
        "array": ["anna"],
        "object": {"mu": 0.1},
    }
    return usual.get(kind)
