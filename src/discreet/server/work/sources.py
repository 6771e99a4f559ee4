"""Files below the folders that the operator allowed, and what is remembered of them.

An owner names a source as ``folder/file.parquet``: the folder by the name that the operator gave
it, then a path that goes down only. No name leads out, through `..`, a link or a pattern. Only
processes that open data know where the folders are.

A pin is a file's size, time and keyed hash; the key stays beside the data, so that a hash in the
database confirms no guess of its contents.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.asking.declarations import ENDINGS
from discreet.errors import DiscreetError, InvalidParameter
from discreet.server.accounts.marks import key_bytes
from discreet.server.refusals import invalid
from discreet.server.settings import Settings
from discreet.server.work.declared import TABLES, Declared
from discreet.trusted.datasets import Dataset

MOST_FILES, MOST_LISTED, BLOCK = 1000, 2000, 1 << 20
_MARKS = set("*?[]\\")


class FilesPlace:
    """Files of one data set."""

    changed = False  # what a pass finds of it is looked for elsewhere

    def __init__(self, folders: Folders, declared: Declared) -> None:
        self._folders, self._declared = folders, declared
        self._paths = folders.paths(declared.sources)

    def opened(self, pin: Mapping[str, Any] | None, *, memory: str | int | None) -> Dataset:
        return self._declared.opened(self._paths, memory=memory)

    def pin(self) -> dict[str, Any]:
        return self._folders.pin(self._paths)

    def unchanged(self, pin: Mapping[str, Any], *, whole: bool) -> bool:
        """By size and time, or `whole`, by content too; and no name leads elsewhere by now."""
        try:
            paths = self._folders.paths(self._declared.sources)
        except DiscreetError:
            return False
        return paths == self._paths and self._folders.unchanged(paths, pin, whole=whole)


class Sources:
    """All that owners may name."""

    def __init__(self, folders: Folders, connections: Any = None) -> None:
        self._folders, self._connections = folders, connections

    def place(self, declared: Declared) -> Any:
        """Where a data set lies; refused in the same words whatever is not right."""
        if declared.format in TABLES:
            if self._connections is None:
                raise _no_source()
            return self._connections.table(declared)
        return FilesPlace(self._folders, declared)

    def listed(self) -> list[dict[str, Any]]:
        """What could be registered."""
        tables = [] if self._connections is None else self._connections.listed()
        return [*tables, *self._folders.listed()]


def sources_of(settings: Settings) -> Sources:
    """What owners may name of a service with these settings."""
    key = read_key(settings.pin_key)
    folders = Folders(settings.folders, key)
    if settings.connections is None:
        return Sources(folders)
    from discreet.server.work.connections import Connections

    return Sources(folders, Connections(settings.connections, key))


class Folders:
    """The folders that data may lie in, by name, and the key of pins."""

    def __init__(self, folders: Mapping[str, str | os.PathLike[str]], key: bytes) -> None:
        self._folders = {name: Path(place).resolve() for name, place in folders.items()}
        self._key = key

    def paths(self, sources: Sequence[str]) -> list[str]:
        """Where the files of a data set are; refused in the same words whatever is not right."""
        if not 1 <= len(sources) <= MOST_FILES:
            raise _no_source()
        return [str(self._path(source)) for source in sources]

    def listed(self) -> list[dict[str, Any]]:
        """The files that could be registered: names and sizes."""
        found: list[dict[str, Any]] = []
        for name, folder in sorted(self._folders.items()):
            for place, folders, files in os.walk(folder):
                folders[:] = sorted(one for one in folders if not one.startswith((".", "_")))
                for file in sorted(files):
                    path = Path(place) / file
                    if path.suffix.lower() not in ENDINGS or file.startswith((".", "_")):
                        continue
                    if path.is_symlink() or not path.is_file() or len(found) >= MOST_LISTED:
                        continue
                    told = f"{name}/{path.relative_to(folder).as_posix()}"
                    found.append({"source": told, "bytes": path.stat().st_size})
        return found

    def pin(self, paths: Sequence[str]) -> dict[str, Any]:
        """What is remembered of files, read whole once."""
        return {"key": self._name(), "files": [self._of_one(path, whole=True) for path in paths]}

    def unchanged(self, paths: Sequence[str], pin: Mapping[str, Any], *, whole: bool) -> bool:
        """Whether files are as they were pinned: by size and time, or `whole`, by content too."""
        known = pin.get("files", [])
        if pin.get("key") != self._name() or len(known) != len(paths):
            return False
        try:
            now = [self._of_one(path, whole=whole) for path in paths]
        except OSError:
            return False
        return all(
            {name: before.get(name) for name in told} == told
            for before, told in zip(known, now, strict=True)
        )

    def _name(self) -> str:
        """Which key this is, told without the key."""
        return hashlib.blake2b(b"the name of a key", key=self._key, digest_size=8).hexdigest()

    def _of_one(self, path: str, *, whole: bool) -> dict[str, Any]:
        with open(path, "rb") as file:
            facts = os.fstat(file.fileno())
            told: dict[str, Any] = {"bytes": facts.st_size, "time": str(facts.st_mtime_ns)}
            if whole:
                digest = hashlib.blake2b(key=self._key, digest_size=32)
                while block := file.read(BLOCK):
                    digest.update(block)
                told["digest"] = digest.hexdigest()
        return told

    def _path(self, source: str) -> Path:
        name, _, below = source.partition("/")
        folder = self._folders.get(name)
        parts = below.split("/")
        if (
            folder is None
            or not source.isprintable()
            or _MARKS & set(source)
            or any(part in ("", ".", "..") for part in parts)
        ):
            raise _no_source()
        path = folder.joinpath(*parts)
        try:
            inside = path.resolve(strict=True).is_relative_to(folder)
        except (OSError, RuntimeError):
            raise _no_source() from None
        if not inside or not path.is_file():
            raise _no_source()
        return path.resolve()


def read_key(path: Path) -> bytes:
    """The key of pins in a file; made, for its owner's eyes only, where there is none."""
    try:
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(key_bytes())
    except FileExistsError:
        pass
    key = path.read_bytes()
    if len(key) != 32:
        raise invalid(
            "the key of pins",
            "its file does not hold 32 bytes",
            "sources are recognised by it",
            "bring back the file, or remove it and register the data sets again",
        )
    return key


def _no_source() -> InvalidParameter:
    return invalid(
        "source",
        "there is no such file below the folders that the operator allowed",
        "data are opened by name, and no name leads out of these folders",
        "name a source as GET /v1/sources lists it, or ask the operator for a folder",
    )
