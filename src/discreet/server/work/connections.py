"""Tables of databases, and Arrow streams, that the operator allowed; owners name them, and only
processes that open data know how they are reached.

A TOML file says what there is, for the eyes of those processes alone (`discreet serve
--connections`); owners name a source as ``clinic/visits``:

    [clinic]
    uri = "postgresql://reader:secret@db.example.org/clinic"    # or sqlite:////srv/clinic.db
    tables = ["visits", "public.people"]                        # these can be registered

    [events]
    reader = "hospital.events:reader"    # reader(table, columns): any Arrow stream of the table
    tables = ["today"]

The pin of a table is a keyed digest of the multiset of its rows. Each pass of a question is
compared with it, column by column, before anything is answered: an answer is about the rows that
were registered, or there is none and the data set freezes.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow

from discreet.errors import DiscreetError
from discreet.server.refusals import invalid
from discreet.server.work.declared import Declared
from discreet.trusted.datasets import Dataset
from discreet.trusted.scale.databases import Table
from discreet.trusted.scale.sources import from_batches
from discreet.trusted.scale.streams import PassSums, readable

KINDS = {"uri": "database", "reader": "stream"}


class Connections:
    """What an operator's file names."""

    def __init__(self, file: str | None, key: bytes) -> None:
        self._key, self._told = key, {} if file is None else _read(Path(file))

    def listed(self) -> list[dict[str, Any]]:
        """The tables that could be registered."""
        return [
            {"source": f"{name}/{table}", "format": _kind(told)}
            for name, told in sorted(self._told.items())
            for table in told["tables"]
        ]

    def table(self, declared: Declared) -> TablePlace:
        """A table that is allowed."""
        name, _, table = declared.sources[0].partition("/")
        told = self._told.get(name)
        allowed = told is not None and table in told["tables"] and _kind(told) == declared.format
        if len(declared.sources) != 1 or told is None or not allowed:
            raise _no_table()
        return TablePlace(told, table, declared, self._key)


class TablePlace:
    """One table, read anew in each pass; `changed` once a pass found other rows than pinned."""

    def __init__(self, told: Mapping[str, Any], table: str, declared: Declared, key: bytes) -> None:
        self._told, self._table, self._declared, self._key = told, table, declared, key
        unit = declared.neighbors.unit
        self._columns = sorted({*declared.schema, *([] if unit is None else [unit])})
        self._read: Any = None
        self.changed = False

    def opened(self, pin: Mapping[str, Any] | None, *, memory: str | int | None) -> Dataset:
        """The data set; with a pin, a pass that finds other rows fails."""
        return from_batches(
            lambda columns: self._batches(columns, pin),
            schema=self._declared.schema,
            neighbors=self._declared.neighbors,
            name=self._declared.sources[0],
            memory_limit=memory,
        )

    def pin(self) -> dict[str, Any]:
        """What is remembered of the table, read whole once; it tells nobody without the key how
        many rows there are, or what they hold.
        """
        found: dict[str, str] = {}
        try:
            for _ in self._pass(self._columns, found):
                pass
        except Exception:  # what the driver says could hold a password, or a cell
            raise _not_read() from None
        return {"key": self._name(), "digests": found}

    def unchanged(self, pin: Mapping[str, Any], *, whole: bool) -> bool:
        """Whether it is as it was pinned: as far as passes saw it, or `whole`, by reading it."""
        return not self.changed and (not whole or self.pin() == pin)

    def _batches(self, columns: list[str], pin: Mapping[str, Any] | None) -> Iterator[Any]:
        found: dict[str, str] = {}
        yield from self._pass(columns, found)
        if pin is not None:
            known = pin.get("digests", {})
            if pin.get("key") != self._name() or any(
                known[about] != digest for about, digest in found.items() if about in known
            ):
                self.changed = True
                raise ValueError("other rows than were registered")

    def _pass(self, columns: Sequence[str], found: dict[str, str]) -> Iterator[Any]:
        """The batches of one pass; their digests are `found` once it is over."""
        if self._read is None:
            self._read = _reader(self._told, self._table)
        schema, batches = readable(self._read(list(columns)))
        types = {name: schema.field(name).type for name in columns}
        sums = PassSums(self._key, list(columns), types, self._hashed)
        empty = pyarrow.RecordBatch.from_pylist([], schema=schema)
        for batch in itertools.chain(batches, [empty]):  # a stream without a batch is no stream
            few = batch.select(list(columns))
            for _ in sums.seen(few):
                pass
            yield few
        found |= self._digests(sums)

    def _hashed(self, cell: Any) -> int:
        """64 bits of a cell that is no number, the same in every process that has the key."""
        told = cell if isinstance(cell, bytes) else repr(cell).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(told, key=self._key, digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)

    def _digests(self, sums: PassSums) -> dict[str, str]:
        """Sums under the key, by what they are about: rows, each column, all columns together."""
        found = {}
        for about, total in sums.totals.items():
            name = "\0".join(about)
            told = f"{name}\0{total}".encode("utf-8", "surrogatepass")
            label = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8)
            digest = hmac.new(self._key, told, hashlib.sha256)
            found[label.hexdigest()] = digest.hexdigest()
        return found

    def _name(self) -> str:
        return hashlib.blake2b(b"the name of a key", key=self._key, digest_size=8).hexdigest()


def _reader(told: Mapping[str, Any], table: str) -> Any:
    """What gives the rows of a table, by columns."""
    try:
        if "uri" in told:
            return Table(told["uri"], table.split(".")).reader
        module, _, function = told["reader"].partition(":")
        return partial(getattr(importlib.import_module(module), function), table)
    except Exception as error:
        if isinstance(error, DiscreetError):
            raise
        raise _not_read() from None  # its text could hold a password


def _kind(told: Mapping[str, Any]) -> str:
    return next(kind for word, kind in KINDS.items() if word in told)


def _read(file: Path) -> dict[str, dict[str, Any]]:
    """The operator's file; a word that is not known is refused, and none of it is shown."""
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise _bad_file("it cannot be read as TOML") from None
    for name, one in told.items():
        words = set(one) if isinstance(one, dict) else set()
        listed = one.get("tables") if words else None
        if (
            words not in ({"uri", "tables"}, {"reader", "tables"})
            or not isinstance(listed, list)
            or not all(isinstance(word, str) and word.isprintable() for word in [*listed, name])
            or not all(isinstance(one[word], str) for word in words - {"tables"})
        ):
            raise _bad_file(f"the words of a connection are not {' or '.join(KINDS)}, and tables")
    return told


def _bad_file(found: str) -> DiscreetError:
    return invalid(
        "the file of connections",
        found,
        "it says which tables may be registered, and how they are reached",
        'write [clinic], uri = "postgresql://…" and tables = ["visits"] into it',
    )


def _no_table() -> DiscreetError:
    return invalid(
        "source",
        "the operator allowed no such table",
        "tables are opened by name, and the operator says which",
        "name a source as GET /v1/sources lists it, or ask the operator for the table",
    )


def _not_read() -> DiscreetError:
    return invalid(
        "a source",
        "it could not be read",
        "what a database says could hold a password",
        "ask the operator whether the database is there, and whether it may be read",
    )
