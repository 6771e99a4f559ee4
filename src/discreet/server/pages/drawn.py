"""Numbers, guarantees and meters as pages show them."""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting.replay import epsilon_at
from discreet.exact import decimal_text, float_down, float_up, sqrt_down, sqrt_up
from discreet.trusted.losses.pricing import Price

USUAL_DELTA = 1e-6  # where a budget names no δ of its own
COORDINATES = ("epsilon", "mu_squared", "delta", "rho")
SYMBOLS = {"epsilon": "ε", "mu_squared": "μ²", "delta": "δ₀", "rho": "ρ", "mu": "μ"}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
Words = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Meter:
    """A box as a bar: shares of a hundred, and what they say in words."""

    spent: float
    aside: float
    price: float
    left_text: str
    spent_text: str
    aside_text: str
    price_text: str

    @property
    def label(self) -> str:
        """The bar for those who do not see it."""
        more = f"; this question {self.price:.3g} %" if self.price else ""
        aside = f", {self.aside:.3g} % set aside" if self.aside else ""
        return f"{self.spent:.3g} % spent{aside}{more}"


def meter(box: Words, price: Words | None = None) -> Meter:
    """The bar of a box, with what a question would take of it."""
    delta = delta_of(box["budget"])
    wide = [name for name in COORDINATES if Fraction(box["box"][name])]

    def share(amounts: Words) -> float:
        parts = [float(Fraction(amounts[name]) / Fraction(box["box"][name])) for name in wide]
        return min(100.0, 100 * max(parts, default=0.0))

    return Meter(
        share(box["spent"]),
        share(box["reserved"]),
        0.0 if price is None else share(price),
        amounts(box["left"], delta, down=True),
        amounts(box["spent"], delta),
        amounts(box["reserved"], delta),
        "" if price is None else amounts(price, delta),
    )


def delta_of(budget: Words) -> float:
    """The δ at which a box's ε is read."""
    return float(budget.get("delta") or USUAL_DELTA)


def amounts(held: Words, delta: float, down: bool = False) -> str:
    """Amounts as an ε at δ and a μ: what is spent rounded up, what is left rounded `down`."""
    return _amounts(tuple(str(held[name]) for name in COORDINATES), delta, down)


@functools.lru_cache(maxsize=4096)
def _amounts(held: tuple[str, ...], delta: float, down: bool) -> str:
    price = Price(*(Fraction(one) for one in held))
    if price == Price():
        return "nothing"
    parts = []
    epsilon = epsilon_at(price, Fraction(repr(delta)))
    pure = not (price.mu_squared or price.rho or price.delta)
    if math.isfinite(epsilon):
        at = "" if pure else f" at δ = {number(delta)}"
        parts.append(f"ε = {rounded(epsilon, down)}{at}")
    squared = price.mu_squared or 2 * price.rho
    if squared:
        root = float_down(sqrt_down(squared)) if down else float_up(sqrt_up(squared))
        parts.append(f"μ = {rounded(root, down)}")
    if price.delta and not math.isfinite(epsilon):
        parts.append(f"δ₀ = {number(float(price.delta))}")
    return ", ".join(parts)


def rounded(value: float, down: bool) -> str:
    """Three digits, on the side that promises no more than there is, but for one part in 10⁶."""
    if value == 0:
        return "0"
    step = Fraction(10) ** (math.floor(math.log10(value)) - 2)
    turns, slack = Fraction(value) / step, Fraction(1, 10**4)
    whole = math.floor(turns + slack) if down else math.ceil(turns - slack)
    return number(float(whole * step))


def number(value: object) -> str:
    """A number with four digits, in powers of ten where it is tiny."""
    if value is None:
        return "—"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f")
    found = float(value)  # type: ignore[arg-type]
    if not math.isfinite(found):
        return "∞" if found > 0 else "—"
    if found and abs(found) < 1e-4:
        power = math.floor(math.log10(abs(found)) + 1e-12)
        digits = f"{found / 10**power:.3g}"
        raised = f"10{str(power).translate(_RAISED)}"
        return raised if digits == "1" else f"{digits}·{raised}"
    if abs(found) >= 10_000:
        return f"{found:,.0f}".replace(",", "\u202f")
    return decimal_text(found)


def promise(letters: Words) -> str:
    """A guarantee by its letters."""
    if "rho" in letters:
        return f"ρ = {number(letters['rho'])} (zCDP)"
    if "mu" in letters:
        return f"μ = {number(letters['mu'])} (Gaussian DP)"
    delta = letters.get("delta")
    at = f", δ = {number(delta)}" if delta else ""
    return f"ε = {number(letters['epsilon'])}{at}"


def moment(seconds: float | None) -> str:
    """A time for people, in UTC."""
    if seconds is None:
        return "—"
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def size(octets: int) -> str:
    """How large a file is."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if octets < 1024 or unit == "GiB":
            return f"{octets:.0f} {unit}" if unit == "B" else f"{octets:.3g} {unit}"
        octets = octets / 1024  # type: ignore[assignment]
    raise AssertionError


def column(told: Words) -> str:
    """What is declared of a column's values."""
    kind = told["kind"]
    if kind in ("real", "integer"):
        return f"{number(told['low'])} … {number(told['high'])}"
    if kind in ("date", "datetime"):
        return f"{told['low']} … {told['high']}"
    if kind == "category":
        levels = [str(one) for one in told["levels"]]
        more = f" and {len(levels) - 12} more" if len(levels) > 12 else ""
        return ", ".join(levels[:12]) + more
    words = {"boolean": "true or false", "open": "values that nobody listed"}
    return words.get(kind, str(kind))


def relation(told: Words) -> str:
    """What is protected, in a sentence."""
    unit, most = told.get("unit"), told.get("max_rows")
    what = "one row" if unit is None else f"one “{unit}” with at most {most} rows"
    if told["relation"] == "replace":
        return f"{what} is replaced by another"
    return f"{what} is added or taken away"


FILTERS = {
    "number": number,
    "promise": promise,
    "moment": moment,
    "size": size,
    "column": column,
    "relation": relation,
}
FUNCTIONS = {"meter": meter, "amounts": amounts, "delta_of": delta_of}
