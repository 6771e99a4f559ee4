"""A curator's service by HTTP: one client that retries, and the seat of a study behind it.

Everything that spends carries an idempotency key, so that a call which was cut off is made again
with the same key and is charged once. Answers leave at a time that the service computes from public
facts; until then it says 202, and the client waits.
"""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Callable
from typing import Any

from discreet import errors
from discreet.errors import DiscreetError, MissingExtra, ReleaseFailed, ServiceRefused
from discreet.errors.remote import declined, foreign_words, not_yet, unreachable, waits_for_owner
from discreet.remote.far import Words
from discreet.remote.receipts import Receipts

TRIES = 8
LONGEST_PAUSE = 10.0  # seconds between two tries
WAIT = 20  # seconds that one look at an answer may last on the far side
TRANSIENT = (408, 429, 500, 502, 503, 504)
_PLAIN = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
_PARTS = ("asked", "found", "why", "remedy")


class Service:
    """JSON by HTTP, with a token, retries and errors in four parts."""

    def __init__(
        self,
        address: str,
        token: str,
        *,
        receipts: Receipts,
        patience: float,
        transport: Any = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`patience` is how many seconds an answer is waited for; `transport` and `sleep` are
        those of a test.
        """
        try:
            import httpx
        except ImportError:
            raise MissingExtra("httpx", "remote", "a session on a service") from None
        self.address, self.receipts, self.patience = address, receipts, patience
        self._sleep, self._failed = sleep, (httpx.TransportError, httpx.InvalidURL)
        self._client = httpx.Client(
            base_url=address,
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=httpx.Timeout(30.0, read=WAIT + 30.0),
            follow_redirects=False,
            # a proxy of the environment would be shown the token of a service of this machine
            trust_env=address.startswith("https:"),
            transport=transport,
        )

    def get(self, path: str, **query: Any) -> Words:
        """What is at a path."""
        return self.call("GET", path, query=query)[1]

    def post(self, path: str, body: Words, key: str | None = None) -> Words:
        """What comes of a body."""
        return self.call("POST", path, body=body, key=key)[1]

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Words | None = None,
        key: str | None = None,
        query: Words | None = None,
    ) -> tuple[int, Words]:
        """Status and JSON of one call, made again where it was cut off.

        What has no key and changes something is not made again.
        """
        again = method in ("GET", "DELETE") or key is not None
        found, last = "", 0
        for number in range(TRIES if again else 1):
            if number:
                self._sleep(min(0.1 * 2**number, LONGEST_PAUSE))
            try:
                answer = self._client.request(
                    method, path, json=body, params=query, headers=self._headers(key)
                )
            except self._failed as error:
                found = type(error).__name__
                continue
            if answer.status_code not in TRANSIENT:
                return answer.status_code, self._read(answer)
            found, last = f"status {answer.status_code}", answer.status_code
            self._pause(answer)
        refused = unreachable(self.address, TRIES if again else 1, found)
        refused.status = last or None
        raise refused

    def close(self) -> None:
        """Let go of its connections."""
        self._client.close()

    def _headers(self, key: str | None) -> dict[str, str]:
        headers = {} if key is None else {"Idempotency-Key": as_header(key)}
        return headers | self.receipts.header()

    def _pause(self, answer: Any) -> None:
        told = answer.headers.get("Retry-After", "")
        if told.isdigit():
            self._sleep(min(float(told), LONGEST_PAUSE))

    def _read(self, answer: Any) -> Words:
        if answer.status_code == 204:
            return {}
        try:
            told = answer.json()
        except ValueError:
            told = None
        if type(told) is not dict:
            raise foreign_words(f"no JSON object, with status {answer.status_code}")
        if answer.status_code >= 400:
            raise refusal(answer.status_code, told)
        if answer.status_code >= 300:
            raise foreign_words(f"status {answer.status_code}")
        return told


class StudySeat:
    """One's own seat in a study, behind a service."""

    made_up = False

    def __init__(self, service: Service, dataset: Words, study: Words) -> None:
        self._service, self._dataset = service, dataset
        self._path = f"/v1/studies/{study['id']}"

    def facts(self) -> Words:
        return self._dataset

    def boxes(self) -> list[Words]:
        study = self._service.get(self._path)
        boxes = (study.get("seat") or {}).get("boxes")
        if type(boxes) is not list or not boxes:
            raise foreign_words("a study without a seat of one's own")
        return boxes

    def entries(self) -> list[Words]:
        node, found = self.boxes()[0]["node"], list[Words]()
        while True:
            after = found[-1]["number"] if found else -1
            page = self._service.get(f"/v1/ledger/{node}", after=after, limit=200).get("entries")
            if type(page) is not list or not all(
                type(one) is dict and type(one.get("number")) is int for one in page
            ):
                raise foreign_words("entries of a ledger that are none")
            if not page or page[-1]["number"] <= after:
                return found
            found += page

    def release(self, question: Words, key: str, reservation: str | None) -> Words:
        body, wait = {"question": question, "reservation": reservation}, {"wait": WAIT}
        path = f"{self._path}/releases"
        first = self._service.call("POST", path, body=body, key=key, query=wait)
        told = self._answered(first, key)
        release = told.get("release")
        if type(release) is not dict:
            raise foreign_words("an answer without a release")
        self._service.receipts.keep(told.get("receipt"), release)
        return release

    def reserve(self, spend: Words, delta: str, key: str) -> Words:
        return self._service.post(
            f"{self._path}/reservations", {"spend": spend, "delta": delta}, key
        )

    def close(self, reservation: str) -> Words:
        return self._service.call("DELETE", f"{self._path}/reservations/{reservation}")[1]

    def _answered(self, first: tuple[int, Words], key: str) -> Words:
        """The answer of a question that was handed in, waited for."""
        status, told = first
        waited, began = 0.0, time.monotonic()
        while True:
            state = told.get("status")
            if state == "failed":
                raise ReleaseFailed(key)
            if state == "declined":
                raise declined(key, str(told.get("reason") or ""))
            if state == "waiting":
                raise waits_for_owner(key)
            if status == 200 and state == "answered":
                return told
            if type(told.get("answer")) is not str:
                raise foreign_words("an answer without its place")
            waited = time.monotonic() - began
            if waited > self._service.patience:
                ready = told.get("ready_at")
                raise not_yet(key, f"it is paid for and not ready before {ready}")
            place = urllib.parse.quote(told["answer"], safe="")
            status, told = self._service.call("GET", f"/v1/answers/{place}", query={"wait": WAIT})


def as_header(key: str) -> str:
    """A key as a header: printable ASCII as it is, the rest and what stands at its ends in percent
    signs.
    """
    text = urllib.parse.quote(key, safe=_PLAIN)
    ends = len(text) - len(text.lstrip(" ")), len(text) - len(text.rstrip(" "))
    inner = text.strip(" ")
    return "%20" * ends[0] + inner + "%20" * (ends[1] if inner else 0)


def refusal(status: int, told: Words) -> DiscreetError:
    """The error that a service answered with; those of this library are of their own class."""
    parts = [told.get(name) for name in _PARTS]
    if not all(type(part) is str for part in parts):
        return foreign_words(f"no reason in four parts, with status {status}")
    kind: Any = getattr(errors, str(told.get("code")), None)
    if not (isinstance(kind, type) and issubclass(kind, DiscreetError)):
        kind = ServiceRefused
    four: Any = parts
    error = errors.raised_elsewhere(kind, *four)
    if isinstance(error, ServiceRefused):
        error.status = status
    return error
