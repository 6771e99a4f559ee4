"""What leaves the trusted side: noisy integers with everything needed to read them,
and nothing else.

A `Release` is frozen, holds no data, pickles and writes itself as JSON (read again in
inference/results/stored.py); every estimate, interval and plot is a function of it alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, get_args

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.errors.questions import foreign_answer, mismatched, not_spendable
from discreet.exact import fraction_text, rational
from discreet.neighbors import Neighbors
from discreet.schema import Schema
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.queries.query import Query
from discreet.specs.registry import (
    PROVEN_MECHANISMS,
    PROVEN_QUERIES,
    mechanism_from_dict,
    query_from_dict,
)

FORMAT = "discreet-release"
VERSION = 1

WATCH = "watch"  # the estimator of questions that open a threshold, and of no release
# estimators whose releases are steps; JSON keeps a step where others keep their cells
IN_STEPS = ("robust", "ols", "logistic", "poisson", "m_estimate", "network", "erm")


@plain.kept()
@dataclass(frozen=True, slots=True)
class Step:
    """A release's place in a procedure of several: the third "gradient"."""

    name: str
    number: int = 1

    def __str__(self) -> str:
        return f"{self.name} {self.number}"


def step_from_text(text: str) -> Step:
    """The step that `str` of a step wrote."""
    name, _, number = text.rpartition(" ")
    return Step(name, int(number))


@plain.kept()
@dataclass(frozen=True, slots=True)
class Description:
    """The question in public words: which estimator, of what, in which cells, at which step."""

    estimator: str
    column: str | None = None
    by: tuple[str, ...] = ()
    labels: tuple[tuple[str, ...], ...] = ()  # the labels of each key's cells, in order
    where: str = ""
    edges: tuple[float, ...] = ()
    step: Step | None = None
    origin: str = ""  # the date or time that 0 stands for, where numbers count from one

    def to_dict(self) -> dict[str, Any]:
        return {
            "estimator": self.estimator,
            "column": self.column,
            "by": list(self.by) if self.step is None else [str(self.step)],
            "labels": [list(labels) for labels in self.labels],
            "where": self.where,
            "edges": list(self.edges),
        } | ({"origin": self.origin} if self.origin else {})


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """All that may be known about a data set without spending:
    schema, relation, and the public count if there is one.
    """

    schema: Schema
    neighbors: Neighbors
    count: int | None

    @property
    def rows(self) -> int | None:
        """The number of rows where it is public (row-level Replace)."""
        return self.count if self.neighbors.row_count_is_public else None


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its statistic, its mechanism and what the caller agreed to spend.

    `delta` is the δ₀ that goes with the spend, for mechanisms that fail with a small probability;
    an (ε, δ) spend sets it aside from its δ.
    """

    description: Description
    query: Query
    mechanism: Mechanism
    spend: Guarantee
    delta: Fraction = Fraction(0)

    def to_dict(self) -> dict[str, Any]:
        """What a ledger binds to a key, and what travels; a caller's own function does not."""
        return {
            "asked": self.description.to_dict(),
            "query": self.query.to_dict(),
            "mechanism": self.mechanism.to_dict(),
            "spend": self.spend.to_dict(),
            "delta": fraction_text(self.delta),
        }


def plain_question(question: Question) -> Question:
    """A new question of exact parts: nothing of the caller's objects is in it but a test of parts,
    which is a function.

    Each field is read once, from the slots of an exact Question, and query and mechanism are
    rebuilt; one with parts that are no specifications of their own is written as JSON and read
    again.
    """
    if type(question) is not Question:
        raise mismatched(f"a {plain.kind_name(question)} is not exactly a Question")
    description, query, mechanism, spend, delta = (
        _field(question, name) for name in ("description", "query", "mechanism", "spend", "delta")
    )
    if not plain.among(type(query), PROVEN_QUERIES) or not plain.among(
        type(mechanism), PROVEN_MECHANISMS
    ):
        raise mismatched("its query or its mechanism is of a type without a theorem")
    try:
        own_query = _own(query, query_from_dict)
        own_mechanism = _own(mechanism, mechanism_from_dict)
    except Exception:  # whatever was smuggled into it failed
        raise mismatched(
            "its query or its mechanism cannot be written down and read again"
        ) from None
    return Question(
        plain.exactly(description, Description, "a question"),
        own_query,
        own_mechanism,
        plain_spend(spend),
        rational(delta, "a question's delta"),
    )


def _own(given: Any, from_dict: Callable[[dict[str, Any]], Any]) -> Any:
    """A query or a mechanism made anew, down to its last part."""
    others: list[Any] = []
    own = plain.rebuilt(given, others) if plain.is_kept(given) else given
    return (
        own
        if plain.is_kept(given) and not others
        else from_dict(json.loads(json.dumps(own.to_dict())))
    )


def _field(question: Question, name: str) -> Any:
    try:
        return object.__getattribute__(question, name)
    except AttributeError:
        raise mismatched(f"it has no {name}") from None


def plain_spend(spend: object) -> Guarantee:
    """A new guarantee of exactly one of the kinds that can be spent."""
    if not plain.among(type(spend), get_args(Guarantee)):
        raise not_spendable(plain.kind_name(spend))
    own: Guarantee = plain.rebuilt(spend)  # type: ignore[assignment]
    return own


def stored_answer(answer: str) -> dict[str, Any] | None:
    """What `Session._draw` wrote, None where the draw failed;
    refused where it is something else.
    """
    failed = False
    try:
        record = json.loads(answer)
        failed = "failed" in record
        if not failed:
            integers, found = (
                [int(value) for value in record["integers"]],
                [plain.text(name, "found") for name in record["found"]],
            )
            return {"integers": integers, "found": found, "secure": record["secure"] is True}
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError):
        pass
    if failed:
        return None
    raise foreign_answer()


@dataclass(frozen=True, slots=True)
class Release:
    """What a mechanism answered: `integers` as its spec says (for additive noise, steps of its
    grid), `found` the keys that it discovered.

    `public_count` is the number of rows (row-level Replace) or of units (Replace with a unit),
    else None.

    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            release = dp.count(session, where={"region": "N"}, spend=dp.GDP(0.1)).release
            print(release.integers, release.guarantee, release.neighbors)
    See also. `dp.Result`, `dp.from_json`.
    """

    description: Description
    query: Query
    mechanism: Mechanism
    integers: tuple[int, ...] = field(repr=False)
    neighbors: Neighbors
    spend: Guarantee
    guarantee: Guarantee
    public_count: int | None
    key: str
    entry: int
    entry_hash: str
    secure: bool = True
    delta: Fraction = Fraction(0)
    found: tuple[str, ...] = ()
    # column and value, of each column read in which cells without a value count as some value
    filled: tuple[tuple[str, str], ...] = ()
    made_up: bool = False  # whether its rows were made up of the schema alone

    @property
    def public_rows(self) -> int | None:
        """The number of rows, where the relation makes it public."""
        return self.public_count if self.neighbors.row_count_is_public else None

    def to_json(self) -> str:
        record = {
            "format": FORMAT,
            "version": VERSION,
            "asked": self.description.to_dict(),
            "query": self.query.to_dict(),
            "mechanism": self.mechanism.to_dict(),
            "integers": [str(value) for value in self.integers],
            "neighbors": self.neighbors.to_dict(),
            "spend": self.spend.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "public_count": self.public_count,
            "key": self.key,
            "entry": self.entry,
            "entry_hash": self.entry_hash,
            "secure": self.secure,
            "delta": fraction_text(self.delta),
            "found": list(self.found),
            **({"filled": [list(pair) for pair in self.filled]} if self.filled else {}),
            **({"made_up": True} if self.made_up else {}),
        }
        return json.dumps(record, ensure_ascii=False)
