"""What is declared of a data set: words in the database, a data set where rows may be opened, and
an engine without rows where they may not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from discreet.asking.declarations import ENDINGS, declaration_of
from discreet.neighbors import Neighbors, neighbors_from_dict
from discreet.schema import Schema, column_from_dict
from discreet.server.refusals import invalid
from discreet.trusted.datasets import Dataset, read_csv, read_parquet

FILES, TABLES = ("parquet", "csv"), ("database", "stream")
WORDS = ("schema", "neighbors", "format", "dialect")
_SUFFIXES = {".parquet": "parquet", ".csv": "csv"} | ENDINGS


@dataclass(frozen=True, slots=True)
class Declared:
    """One version of a data set, in words that are public but for its sources."""

    schema: Schema
    neighbors: Neighbors
    format: str
    dialect: Mapping[str, Any]
    sources: tuple[str, ...]
    reasons: Mapping[str, str]

    def opened(self, paths: Sequence[str], *, memory: str | int | None) -> Dataset:
        """The data set, where its files are."""
        files: Any = list(paths) if len(paths) > 1 else paths[0]
        declared: Any = {"schema": self.schema, "neighbors": self.neighbors}
        if self.format == "parquet":
            return read_parquet(files, memory_limit=memory, **declared)
        return read_csv(files, memory_limit=memory, **declared, **self.dialect)

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": self.schema.to_dict(),
            "neighbors": self.neighbors.to_dict(),
            "format": self.format,
            "dialect": dict(self.dialect),
            "sources": list(self.sources),
            "reasons": dict(self.reasons),
        }


def declared_from(
    told: Mapping[str, Any], sources: Sequence[str], reasons: Mapping[str, str]
) -> Declared:
    """What an owner declares, in the words of a declaration file (`dp.declare`)."""
    given = {word: told[word] for word in WORDS if told.get(word) not in (None, {}, "")}
    if given.get("format") in TABLES:
        del given["format"]
    read = declaration_of({**given, "source": list(sources)}, "")
    kinds = {_SUFFIXES.get("." + one.rpartition(".")[2].lower()) for one in sources}
    form = told.get("format") or (kinds.pop() if len(kinds) == 1 else None)
    if form not in (*FILES, *TABLES):
        raise invalid(
            "format",
            "the endings of the sources do not tell one",
            "a file is read as it is declared, and nothing of it is guessed",
            'say "parquet" or "csv", or for what is no file "database" or "stream"',
        )
    unknown = [name for name in reasons if name not in read.schema]
    if unknown:
        raise invalid(
            "reasons",
            "they are about a column that is not declared",
            "they say why a column's bounds are what they are",
            "name declared columns alone",
        )
    dialect = dict(read.dialect) if form == "csv" else {}
    return Declared(read.schema, read.neighbors, form, dialect, tuple(sources), dict(reasons))


def relation_from(told: Any) -> Neighbors:
    """A relation, in the words of a declaration file."""
    return declaration_of({"neighbors": told, "schema": {"any": {"kind": "boolean"}}}, "").neighbors


def declared_from_text(text: str) -> Declared:
    """What `json.dumps` of a declaration wrote."""
    told = json.loads(text)
    return Declared(
        Schema({name: column_from_dict(one) for name, one in told["schema"].items()}),
        neighbors_from_dict(told["neighbors"]),
        told["format"],
        told["dialect"],
        tuple(told["sources"]),
        told["reasons"],
    )


def data_name(dataset: str, version: int) -> str:
    """What identifies rows in a ledger: a data set and its version, never a path."""
    return f"curator:{dataset}:{version}"


class NoRows:
    """What a session needs of an engine to check a question and to debit it; it has no rows, so
    that a statistic asked of it fails.
    """

    scale = None

    def __init__(self, declared: Declared, count: int | None, name: str) -> None:
        self.schema, self.neighbors = declared.schema, declared.neighbors
        self.remembered: dict[type[Any], Any] = {}
        self._count, self._name = count, name

    def public_count(self) -> int | None:
        return self._count

    def unchanged(self) -> bool:
        return True

    def describe(self) -> dict[str, Any]:
        return {"kind": "remote", "source": self._name, "columns": sorted(self.schema)}

    def data_id(self) -> str:
        return self._name

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("there are no rows in this process")

    sums = gram = histogram = fold = whole = _refused
