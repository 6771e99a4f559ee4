"""A declaration as a TOML file, which Python (`dp.declare`) and the command line read alike: what
is public about a data set, said once, before anything is asked.

    source = "survey.csv"                        # or a list of files; relative to this file
    neighbors = "replace"                        # or "add_remove", or a table, as below
    budget = { epsilon = 1, delta = 1e-6 }       # of ledgers that are opened on it

    [dialect]                                    # how CSV files are written, where not plainly
    separator = ";"

    [schema]
    income = { kind = "real", low = 0, high = 200_000 }
    age = { kind = "integer", low = 18, high = 90, missing = 40 }
    visit = { kind = "date", low = 2020-01-01, high = 2024-12-31 }
    region = { kind = "category", levels = ["E", "N", "S", "W"] }
    member = { kind = "boolean" }
    city = { kind = "open" }

A person with several rows: ``neighbors = { relation = "replace", unit = "person", max_rows = 4 }``.
Further words: `format` ("csv" or "parquet") where the ending of a file does not tell it, and
`name`, which data in memory go by (`declare(path, source=frame)`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.written import Written, letters_of, near_or
from discreet.errors import DiscreetError, InvalidParameter, shown
from discreet.neighbors import AddRemove, Neighbors, Replace, require_neighbors
from discreet.schema import Column, Schema, column_from_dict
from discreet.specs.dialects import Dialect
from discreet.trusted.datasets import Dataset, from_frame, read_csv, read_parquet

ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}
FORMATS = ("csv", "parquet")
_WORDS = ("source", "format", "dialect", "name", "neighbors", "budget", "schema")
_DIALECT = ("separator", "decimal", "thousands", "encoding", "missing_text")
_RELATIONS: dict[str, type[Replace] | type[AddRemove]] = {
    "replace": Replace,
    "add_remove": AddRemove,
}
_COLUMNS = {
    "real": ("low", "high", "missing", "bits"),
    "integer": ("low", "high", "missing"),
    "date": ("low", "high", "missing"),
    "datetime": ("low", "high", "missing"),
    "boolean": ("missing",),
    "category": ("levels", "missing"),
    "open": (),
}
_WHY = "what is declared is public and sets the noise, so every word of it must be known"
_FILE = Written("a declaration", _WHY)
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a TOML file declares of a data set; nothing is opened."""

    schema: Schema
    neighbors: Neighbors
    source: tuple[str, ...] = ()
    format: str | None = None
    dialect: Mapping[str, Any] = field(default_factory=dict, hash=False)
    name: str | None = None
    budget: Guarantee | None = None

    def dataset(self, source: Any = None) -> Dataset:
        """The data set: of the declared files, of other files of the same columns, or of a table in
        memory.
        """
        data = self._of_files(self.source) if source is None else self._of(source)
        return data if self.budget is None else data.with_budget(self.budget)

    def _of(self, source: Any) -> Dataset:
        listed = (source,) if isinstance(source, (str, os.PathLike)) else source
        if type(listed) in (list, tuple) and all(
            isinstance(one, (str, os.PathLike)) for one in listed
        ):
            return self._of_files(tuple(plain.path(one, "source=") for one in listed))
        return from_frame(source, schema=self.schema, neighbors=self.neighbors, name=self.name)

    def _of_files(self, paths: tuple[str, ...]) -> Dataset:
        if not paths:
            raise _FILE.refused(
                "it names no source",
                "write source = 'survey.csv' into it, or name the data where it is used",
            )
        files = list(paths) if len(paths) > 1 else paths[0]
        if self._format_of(paths) == "parquet":
            return read_parquet(files, schema=self.schema, neighbors=self.neighbors)
        return read_csv(files, schema=self.schema, neighbors=self.neighbors, **self.dialect)

    def _format_of(self, paths: tuple[str, ...]) -> str:
        """How files are written: by the declared format for the declared ones, by their ending for
        others, which are read as the declared ones where the ending does not tell.
        """
        told = {ENDINGS.get(Path(path).suffix.lower()) for path in paths}
        ending = told.pop() if len(told) == 1 else None
        found = (self.format or ending) if paths == self.source else (ending or self.format)
        if found is None:
            raise _FILE.refused(
                f"the endings of {', '.join(shown(path) for path in paths)} do not tell one format",
                'write format = "csv" or format = "parquet" into it',
            )
        return found

    def to_toml(self) -> str:
        """The text of a file that declares the same."""
        relation = {name: held for name, held in self.neighbors.to_dict().items() if held}
        words = {
            "source": list(self.source) if len(self.source) != 1 else self.source[0],
            "format": self.format,
            "name": self.name,
            "neighbors": relation if len(relation) > 1 else relation["relation"],
            "budget": None if self.budget is None else letters_of(self.budget),
        }
        lines = [f"{name} = {_toml(held)}" for name, held in words.items() if held]
        if self.dialect:
            lines += ["", "[dialect]"]
            lines += [f"{name} = {_toml(held)}" for name, held in self.dialect.items()]
        lines += ["", "[schema]"]
        lines += [f"{_key(name)} = {_toml(one.to_dict())}" for name, one in self.schema.items()]
        return "\n".join(lines) + "\n"


@plain.called
def declare(path: str | Path, source: Any = None) -> Dataset:
    """The data set that a TOML file declares: ``dp.declare("survey.toml")``.

    `source` takes the place of the declared one: a file or several, or a table in memory, which
    goes by the declared name. `open()` uses the declared budget unless it is given another.

    Example.
            dp.load_census().frame.to_csv("census.csv", index=False)
            dp.write_declaration(
                "census.toml",
                source="census.csv",
                schema={"age": dp.Integer(18, 90)},
                neighbors=dp.Replace(),
                budget=dp.GDP(1),
            )
            session = dp.declare("census.toml").open()
            print(dp.mean(session, "age", spend=dp.GDP(0.1)))
    See also. `dp.write_declaration`, `dp.read_plan`; docs/how-to/command-line.md.
    """
    return read_declaration(path).dataset(source)


@plain.called
def write_declaration(
    path: str | Path,
    *,
    schema: Mapping[str, Column],
    neighbors: Neighbors | None = None,
    source: str | Path | list[str | Path] | None = None,
    format: str | None = None,
    name: str | None = None,
    budget: Guarantee | None = None,
    **dialect: Any,
) -> None:
    """Writes what `dp.declare` reads: ``dp.write_declaration("survey.toml", source="survey.csv",
    schema=…, neighbors=dp.Replace(), budget=dp.ApproxDP(1, 1e-6), separator=";")``.

    Paths stand in the file as they are given, and are read as relative to it.

    Example.
            from pathlib import Path

            dp.write_declaration(
                "survey.toml",
                source="survey.csv",
                schema={"age": dp.Integer(18, 90), "region": dp.Category(["N", "S"])},
                neighbors=dp.Replace(),
                budget=dp.ApproxDP(epsilon=1, delta=1e-6),
            )
            print(Path("survey.toml").read_text())
    See also. `dp.declare`.
    """
    words = {
        "source": _paths_of(source),
        "format": format,
        "dialect": dialect,
        "name": name,
        "budget": None if budget is None else letters_of(budget),
    }
    relation, declared = require_neighbors(neighbors), Schema(schema)
    told = {
        **{word: held for word, held in words.items() if held},
        "neighbors": {word: held for word, held in relation.to_dict().items() if held},
        "schema": {
            name: {word: held for word, held in column.to_dict().items() if held is not None}
            for name, column in declared.items()
        },
    }
    text = declaration_of(told, "").to_toml()
    Path(plain.path(path, "path")).write_text(text, encoding="utf-8")


def read_declaration(path: str | Path) -> Declaration:
    """What a TOML file declares (this module's first lines show one)."""
    place = plain.path(path, "path")
    return declaration_of(_FILE.read(place), os.path.dirname(place))


def declaration_of(told: Mapping[str, Any], folder: str) -> Declaration:
    """What parsed TOML declares; relative paths are those of `folder`."""
    _FILE.known(told, _WORDS, "the declaration")
    dialect, form = told.get("dialect", {}), told.get("format")
    if type(dialect) is not dict:
        raise _FILE.refused("dialect is no table", "write [dialect] with a line separator = ';'")
    _FILE.known(dialect, _DIALECT, "[dialect]")
    if form is not None and form not in FORMATS:
        raise _FILE.refused(f"format = {shown(form)}", near_or(form, FORMATS))
    paths = tuple(os.path.join(folder, path) for path in _paths_of(told.get("source")))
    declared = Declaration(
        _schema(told.get("schema")),
        _neighbors(told.get("neighbors")),
        paths,
        form,
        MappingProxyType(Dialect(**dialect).to_dict()),
        _name(told.get("name")),
        None if "budget" not in told else _FILE.guarantee(told["budget"], "budget"),
    )
    if dialect and paths and declared._format_of(paths) != "csv":
        raise _FILE.refused(
            "it has a [dialect], and its source is Parquet",
            "leave [dialect] out: it says how CSV files are written",
        )
    return declared


def _schema(told: object) -> Schema:
    if type(told) is not dict or not told:
        raise _FILE.refused(
            "it has no [schema]", 'write [schema] and lines such as age = { kind = "integer", …'
        )
    return Schema({name: _column(name, one) for name, one in told.items()})


def _column(name: str, told: object) -> Column:
    if type(told) is not dict:
        raise _FILE.refused(
            f"{name!r} of [schema] is {shown(told)}",
            f'write {_key(name)} = {{ kind = "real", low = 0, high = 100 }}, for example',
        )
    kind = told.get("kind")
    if type(kind) is not str or kind not in _COLUMNS:
        raise _FILE.refused(
            f"{name!r} of [schema] has kind = {shown(kind)}", near_or(kind, _COLUMNS)
        )
    _FILE.known(told, ("kind", *_COLUMNS[kind]), f"{name!r} of [schema]")
    if kind == "category" and "levels" not in told:
        raise _FILE.refused(
            f"{name!r} of [schema] has no levels", 'write levels = ["N", "S"], for example'
        )
    try:
        return column_from_dict(told)
    except DiscreetError as error:
        asked = f"{name!r} of [schema], {error.asked}"
        raise InvalidParameter(asked, error.found, error.why, error.remedy) from None


def _neighbors(told: object) -> Neighbors:
    words = {"relation": told} if type(told) is str else told
    if type(words) is not dict or not words:
        raise _FILE.refused(
            "it names no neighbors, which say what is protected",
            'write neighbors = "replace" (the number of rows is public) or "add_remove" (it is '
            'not), or { relation = "replace", unit = "person", max_rows = 4 } if one person has '
            "several rows",
        )
    _FILE.known(words, ("relation", "unit", "max_rows"), "neighbors")
    relation = words.get("relation")
    if type(relation) is not str or relation not in _RELATIONS:
        raise _FILE.refused(f"neighbors = {shown(relation)}", near_or(relation, _RELATIONS))
    return _RELATIONS[relation](unit=words.get("unit"), max_rows=words.get("max_rows"))


def _paths_of(source: object) -> list[str]:
    if source is None:
        return []
    listed: Any = source if type(source) in (list, tuple) else [source]
    if not listed or not all(isinstance(one, (str, os.PathLike)) for one in listed):
        hint = "write the path of a file, or a list; how a CSV is written stands under [dialect]"
        raise _FILE.refused(f"source = {shown(source)}", hint)
    return [plain.path(one, "source") for one in listed]


def _name(told: object) -> str | None:
    if told is not None and (type(told) is not str or not told):
        raise _FILE.refused(f"name = {shown(told)}", 'write a text, such as "survey-2024"')
    return told


def _toml(value: Any) -> str:
    if type(value) is dict:
        inside = (f"{_key(name)} = {_toml(one)}" for name, one in value.items() if one is not None)
        return f"{{ {', '.join(inside)} }}"
    if type(value) in (list, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if type(value) is str:
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if type(value) is bool else repr(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _toml(name)
