"""`dp.connect`: a service that holds data, as one who may ask.

    connection = dp.connect("https://curator.example.org", token="dct_…")
    session = connection.open("survey", study="wages")
    print(dp.mean(session, "income", spend=dp.GDP(0.1), key="mean income").summary())

`session` is used as one at hand. With ``dummy=True`` it is about rows made up of the schema, costs
nothing, and every result says so.
"""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.written import letters_of
from discreet.errors import InvalidParameter, questions
from discreet.errors.remote import bad_address, no_token, not_among
from discreet.remote.dummy import dummy_seat
from discreet.remote.far import Words, budget_of_words
from discreet.remote.receipts import Receipts
from discreet.remote.service import Service, StudySeat
from discreet.remote.session import RemoteSession
from discreet.trusted.session import fresh_key

PATIENCE = 600.0  # seconds
HERE = ("localhost", "127.0.0.1", "::1")
DUMMY_ROWS = 1000


@plain.called
def connect(
    url: str,
    *,
    token: str | None = None,
    receipts: str | Path | None = None,
    patience: float = PATIENCE,
) -> Connection:
    """A connection to a curator's service, which answers questions on data that it never shows.

    `token` is made on the service's page *Account*; without one DISCREET_TOKEN is read. `receipts`
    is a file that keeps what the service signed, so that an older copy of its ledger is noticed in
    later sessions too. An answer is waited for as many seconds as `patience` says.

    Example.
            curator = dp.connect("https://curator.example.org", token="made on the page Account")
            print(curator)
    See also. `dp.Session`, `dp.NotAnswered`, `dp.ServiceRefused`.
    """
    address = _address(plain.text(url, "url"))
    token = os.environ.get("DISCREET_TOKEN") if token is None else plain.text(token, "token=")
    if not token or not token.isascii() or not token.isprintable():
        raise no_token()
    path = None if receipts is None else plain.path(receipts, "receipts=")
    kept = Receipts(path)
    return Connection(
        Service(address, token, receipts=kept, patience=plain.number(patience, "patience="))
    )


class Connection:
    """A service, as one of its people sees it; see `connect`."""

    __slots__ = ("_service",)

    def __init__(self, service: Service) -> None:
        self._service = service

    def datasets(self) -> tuple[str, ...]:
        """The names of the data sets that one may ask about, or ask for a study on."""
        return tuple(str(one["name"]) for one in self._datasets())

    def studies(self, dataset: str | None = None) -> tuple[str, ...]:
        """The names of one's own studies, of a data set or of all."""
        return tuple(
            str(one["name"])
            for one in self._studies()
            if dataset is None or dataset in (one["dataset"], one.get("dataset_name"))
        )

    @property
    def receipts(self) -> tuple[Words, ...]:
        """What the service signed of its ledger, so far as this connection knows."""
        return self._service.receipts.all()

    @plain.called
    def open(
        self, dataset: str, *, study: str, dummy: bool = False, rows: int = DUMMY_ROWS
    ) -> RemoteSession:
        """A session on one's seat in a study, both by name or id; with `dummy`, on `rows` rows that
        are made up of the schema alone.
        """
        held = self._find(dataset)
        asked = _one_of(
            [one for one in self._studies() if one["dataset"] == held["id"]], study, "study"
        )
        if not plain.truth(dummy, "dummy="):
            return RemoteSession(StudySeat(self._service, held, asked))
        made = self._service.get(
            f"/v1/datasets/{held['id']}/dummy", rows=plain.whole(rows, "rows="), seed=1
        )
        session = RemoteSession(StudySeat(self._service, held, asked))
        public, budget = session.public, session.ledger.budget
        return RemoteSession(dummy_seat(made["columns"], public.schema, public.neighbors, budget))

    @plain.called
    def request(
        self,
        dataset: str,
        *,
        study: str,
        purpose: str,
        budget: Guarantee,
        members: Sequence[str] = (),
        plan: Sequence[str] = (),
    ) -> str:
        """Ask the owner of a data set for a study; returns its id. It may be opened once the owner
        has approved it.
        """
        me = self._service.get("/v1/me")["person"]["login"]
        body = {
            "dataset": self._find(dataset)["id"],
            "name": study,
            "purpose": purpose,
            "members": list(members) or [me],
            "budget": letters_of(budget),
            "seats": "carved",
            "plan": list(plan),
        }
        return str(self._service.post("/v1/studies", body, fresh_key())["id"])

    def budget(self, dataset: str) -> Guarantee:
        """What a data set promises in all."""
        return budget_of_words(self._find(dataset)["budget"])

    def close(self) -> None:
        """Let go of the connection; sessions on it end."""
        self._service.close()

    def _find(self, dataset: str) -> Words:
        found = _one_of(self._datasets(), dataset, "data set")
        return self._service.get(f"/v1/datasets/{found['id']}")

    def _datasets(self) -> list[Words]:
        return list(self._service.get("/v1/datasets")["datasets"])

    def _studies(self) -> list[Words]:
        return list(self._service.get("/v1/studies")["studies"])

    def __reduce__(self) -> NoReturn:
        raise questions.not_copied("connection")

    def __repr__(self) -> str:
        return f"Connection({self._service.address})"


def _one_of(there: list[Words], asked: str, what: str) -> Words:
    """The one of an id or a name; refused where there is none, or several of one name."""
    asked = plain.text(asked, what)
    found = [one for one in there if asked in (one["id"], one["name"])]
    if not found:
        raise not_among(what, asked, sorted({str(one["name"]) for one in there}))
    if len(found) > 1:
        raise InvalidParameter(
            f"{what} {asked!r}",
            f"{len(found)} have this name",
            "a question must go to one",
            f"use an id: {', '.join(str(one['id']) for one in found)}",
        )
    return found[0]


def _address(url: str) -> str:
    """The address of a service; one that would show the token to the network is refused."""
    parts: Any = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise bad_address(
            f"{url!r} is no address of a service", "pass for example https://curator.example.org"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise bad_address(
            "it holds more than scheme, host and path", "pass the token as token=, not in the url"
        )
    if parts.scheme == "http" and parts.hostname not in HERE:
        raise bad_address(
            f"{url!r} is not encrypted", "use https://; http:// is for this machine alone"
        )
    return url.rstrip("/")
