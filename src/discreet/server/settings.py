"""What an operator decides of a service: read once, handed to every process as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from discreet.server.refusals import invalid

GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A service as it was started.

    state         the folder of its socket, its keys and pins, and of SQLite's files
    database      the address of a PostgreSQL, instead of SQLite
    folders       where data may lie, by the name that owners use
    connections   a file that names databases and streams, for those who open data
    tick          seconds: answers leave at its multiples; 0 lets them leave when they are there
    workers       processes that open data
    memory        bytes of address space of each; 0 for no limit
    seconds       that one question may take
    sweep         seconds between looks for paid questions without an answer
    pins          the folder of pinned heads, best on another disk than the database
    receipt_key   the file of the key that signs receipts; one for all replicas
    oidc          an OpenID provider: `issuer`, `client`, `secret_file`, `claim`, and the `address`
                  of this service as browsers see it
    """

    state: str
    database: str | None = None
    folders: Mapping[str, str] = field(default_factory=dict)
    tick: float = 1.0
    workers: int = 2
    memory: int = 8 * GIB
    seconds: float = 600.0
    sweep: float = 5.0
    per_second: float = 50.0
    burst: float = 200.0
    secure_cookies: bool = True
    key_file: str | None = None
    connections: str | None = None
    pins: str | None = None
    receipt_key: str | None = None
    oidc: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (("tick", 0), ("workers", 1), ("memory", 0), ("sweep", 0.05)):
            if not getattr(self, name) >= least:
                raise invalid(name, "too small", "the service could not work", f"use {least} up")
        if not (self.seconds > 0 and self.per_second > 0 and self.burst >= 1):
            raise invalid("a limit", "it is not above 0", "nothing could be asked", "raise it")

    @property
    def socket(self) -> Path:
        """Where workers listen."""
        return Path(self.state) / "work.sock"

    @property
    def pin_key(self) -> Path:
        """The key of pins, which only those who open data may read."""
        return Path(self.key_file or os.path.join(self.state, "pins.key"))

    @property
    def heads(self) -> Path:
        """The folder of pinned heads."""
        return Path(self.pins or os.path.join(self.state, "heads"))

    @property
    def seal(self) -> Path:
        """The key of receipts."""
        return Path(self.receipt_key or os.path.join(self.state, "receipts.key"))

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def settings_from_json(text: str) -> Settings:
    return Settings(**json.loads(text))


def folders_of(given: list[Path]) -> dict[str, str]:
    """Allowed folders by their last names, which must differ."""
    found: dict[str, str] = {}
    for place in given:
        path = place.resolve()
        if not path.is_dir() or path.name in found or not path.name:
            raise invalid(
                "--data",
                f"{place} is no folder, or another one has its last name",
                "owners name a file by the folder's last name and the way down from it",
                "name folders with different last names",
            )
        found[path.name] = str(path)
    return found
