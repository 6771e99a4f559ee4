"""Heads noted beside the server, outside the database, before an answer leaves.

A file of one JSON line a pin: a chain, the chains above it, and number and hash of the line that
keeps an answer. It is synced before the answer is seen, so a database that does not know a pinned
line is an older copy, or was changed. Processes of one machine share the file; a line that a crash
cut short was never synced, and no answer left for it.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterable
from pathlib import Path

from discreet import plain
from discreet.errors.tree import bad_pins
from discreet.trusted.ledger.entries import canonical
from discreet.trusted.tree.places import Place

MOST_SPARE = 20_000  # lines beyond one a chain, before the file is written anew


class Pins:
    """The newest pinned line of each chain."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(plain.path(path, "pins"))
        self._lock, self._syncing = threading.Lock(), threading.Lock()
        self._places: dict[str, Place] = {}
        self._above: dict[str, tuple[str, ...]] = {}
        self._written = self._synced = 0
        try:
            self._file = _opened(self.path)
            self._read()
        except OSError as error:
            raise bad_pins(self.path.name, error.strerror or "an error") from None

    def pinned(self) -> dict[str, Place]:
        """Number and hash of the newest pinned line, by chain."""
        with self._lock:
            return dict(self._places)

    def above(self, chain: str) -> tuple[str, ...]:
        """The chains above one, the root last."""
        return self._above.get(chain, ())

    def pin(self, chain: str, above: tuple[str, ...], number: int, digest: str) -> None:
        """Note a line durably; several threads share one sync."""
        with self._lock:
            if self._places.get(chain, (-1, ""))[0] >= number:
                wanted = self._written
            else:
                self._write([(chain, above, (number, digest))])
                wanted = self._written
        self._sync(wanted)

    def replace(self, chain: str, place: Place | None) -> None:
        """Put another line in the place of one that is lost; None forgets the chain."""
        with self._lock:
            self._write([(chain, self.above(chain), place)])
            wanted = self._written
        self._sync(wanted)

    def close(self) -> None:
        os.close(self._file)

    def _write(self, pins: Iterable[tuple[str, tuple[str, ...], Place | None]]) -> None:
        lines = ""
        for chain, above, place in pins:
            told = {"chain": chain, "above": [*above], "place": None if place is None else [*place]}
            lines += canonical(told) + "\n"
            self._take(chain, above, place)
        os.write(self._file, lines.encode("ascii"))
        self._written += 1

    def _take(self, chain: str, above: tuple[str, ...], place: Place | None) -> None:
        if place is None:
            self._places.pop(chain, None)
        else:
            self._places[chain], self._above[chain] = place, above

    def _sync(self, wanted: int) -> None:
        with self._syncing:
            if self._synced < wanted:
                reached = self._written
                os.fsync(self._file)
                self._synced = reached

    def _read(self) -> None:
        text = self.path.read_text(encoding="utf-8", errors="replace")
        lines = text.split("\n")
        for line in lines[:-1]:
            try:
                told = json.loads(line)
                place = None if told["place"] is None else (told["place"][0], told["place"][1])
                self._take(str(told["chain"]), tuple(told["above"]), place)
            except (LookupError, TypeError, ValueError):
                continue  # cut short by a crash: nothing left that it was for
        if lines[-1]:
            os.write(self._file, b"\n")
        if len(lines) > len(self._places) + MOST_SPARE and _is_alone(self._file):
            self._write_anew()

    def _write_anew(self) -> None:
        """Keep one line a chain, where no other process has the file open."""
        new, old = self.path.with_name(f".{self.path.name}.new"), self._file
        self._file = os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_SH)
        self._write((chain, self.above(chain), place) for chain, place in [*self._places.items()])
        os.fsync(self._file)
        os.replace(new, self.path)
        os.close(old)
        _sync_folder(self.path.parent)


def _opened(path: Path) -> int:
    """The file, open for appending, and marked as in use."""
    while True:
        file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        fcntl.flock(file, fcntl.LOCK_SH)
        if os.path.exists(path) and os.path.samestat(os.fstat(file), os.stat(path)):
            _sync_folder(path.parent)
            return file
        os.close(file)  # it was written anew in between


def _is_alone(file: int) -> bool:
    """Whether no other process has it open; if so, none can open it before this one is done."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        fcntl.flock(file, fcntl.LOCK_SH)
        return False
    return True


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
