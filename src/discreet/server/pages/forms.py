"""What a form sent: texts by name, read as numbers, times and guarantees, or refused."""

from __future__ import annotations

import datetime
import math
import re
import urllib.parse
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from discreet.server.refusals import invalid, malformed

MOST_FIELDS = 3000
FORM = "application/x-www-form-urlencoded"
KINDS = {
    "mu": "μ (Gaussian)",
    "epsilon_delta": "ε, at a δ",
    "epsilon": "pure ε",
    "rho": "ρ (zCDP)",
}
_WHOLE = re.compile(r"[-+]?[0-9]{1,30}")
_SPACES = re.compile(r"[\s\u2009\u202f\u00a0]+")


@dataclass(frozen=True, slots=True)
class Form:
    """Texts by name; a name may have several."""

    held: dict[str, list[str]]

    def text(self, name: str, otherwise: object = "") -> str:
        """The first text of a name, without spaces at its ends."""
        return str(self.held.get(name, [otherwise])[0]).strip()

    def texts(self, name: str) -> list[str]:
        return self.held.get(name, [])

    def has(self, name: str) -> bool:
        """Whether something was filled in, ticked or pressed."""
        return bool(self.text(name))

    def lines(self, name: str) -> list[str]:
        """The lines of a text that say something."""
        return [line.strip() for line in self.text(name).splitlines() if line.strip()]

    def words(self, name: str) -> list[str]:
        """What stands between commas, spaces or lines."""
        return [one for one in re.split(r"[\s,;]+", self.text(name)) if one]

    def number(self, name: str, called: str) -> int | float | None:
        """A number; None where nothing was filled in."""
        return number_of(self.text(name), called) if self.has(name) else None

    def letters(self, name: str, called: str) -> dict[str, float]:
        """A guarantee: an amount, what it counts, and a δ where that needs one."""
        kind = self.text(f"{name}_kind", "mu")
        amount = self.number(f"{name}_amount", called)
        if kind not in KINDS or amount is None:
            raise invalid(
                called,
                "it is not filled in",
                "what is promised or spent must be said exactly",
                "name a number, and whether it counts μ, ε or ρ",
            )
        if kind != "epsilon_delta":
            return {kind: float(amount)}
        delta = self.number(f"{name}_delta", f"δ of {called}")
        return {"epsilon": float(amount), "delta": float(1e-6 if delta is None else delta)}

    def day(self, name: str, called: str) -> float | None:
        """The end of a day, in seconds since 1970; None where nothing was filled in."""
        if not self.has(name):
            return None
        try:
            day = datetime.date.fromisoformat(self.text(name))
            end = datetime.datetime.combine(day, datetime.time.max, datetime.UTC)
        except (ValueError, OverflowError):
            raise invalid(
                called, "it is no date", "time is counted in days", "write 2027-01-31"
            ) from None
        return end.timestamp()


async def form_of(request: Request) -> Form:
    """The form that a call brings."""
    body = await request.body()
    if body and not request.headers.get("content-type", "").startswith(FORM):
        raise malformed("its body is no form", "use the pages of this service")
    try:
        pairs = urllib.parse.parse_qsl(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS
        )
    except ValueError:
        raise malformed("its body is no form", "use the pages of this service") from None
    held: dict[str, list[str]] = {}
    for name, text in pairs:
        if "\0" in text:
            raise malformed("it holds a character that no text has", "write it again")
        held.setdefault(name, []).append(text.replace("\r\n", "\n"))
    return Form(held)


Sent = Annotated[Form, Depends(form_of)]


def number_of(text: str, called: str) -> int | float:
    """A number that somebody wrote; whole ones stay whole."""
    plain = _SPACES.sub("", text).replace("−", "-")
    try:
        found = int(plain) if _WHOLE.fullmatch(plain) else float(plain[:60])
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or "_" in plain:
        raise invalid(called, "it is no number", "it is counted with", "write for example 0.1")
    return found


def numbers_of(text: str, called: str) -> list[int | float]:
    """Numbers between commas or semicolons."""
    return [number_of(one, called) for one in re.split(r"[,;]", text) if one.strip()]
