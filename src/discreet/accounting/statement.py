"""What a ledger says of itself, in words: its promise, its balance, what was spent, what would fit.

It describes. What is charged and what is refused is decided in `trusted.ledger`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet import plain
from discreet.accounting import shares
from discreet.accounting.guarantees import (
    EPSILON_FLOOR,
    GDP,
    MU_FLOOR,
    ApproxDP,
    Guarantee,
    PureDP,
    spend_mu_squared,
)
from discreet.accounting.parameters import RHO_FLOOR, failure_probability
from discreet.accounting.renyi.rdp import ZCDP
from discreet.accounting.replay import epsilon_at
from discreet.errors import BudgetExceeded, InvalidParameter
from discreet.errors.ledger import NEVER_RESPLIT
from discreet.exact import decimal_text, float_up, rational, sqrt_down
from discreet.trusted.losses.pricing import Price

if TYPE_CHECKING:
    from discreet.trusted.ledger.entries import Entry
    from discreet.trusted.ledger.stores import Balance, Holding
    from discreet.trusted.ledger.units import Amounts

USUAL_DELTA = 1e-6  # where a budget names no δ of its own
_COORDINATES = (("ε", "epsilon"), ("μ²", "mu_squared"), ("δ₀", "delta"), ("ρ", "rho"))


def promise(budget: Guarantee, box: Price) -> str:
    """`Ledger.guarantee`: the promise for everything together."""
    if not isinstance(budget, ZCDP) or not box.delta:
        return f"({budget})"
    return (
        f"({budget} but for δ₀ = {decimal_text(box.delta)}: (ε, δ₀ + δ)-DP wherever ρ alone "
        f"gives (ε, δ), such as ε = {budget.epsilon_at(1e-6):.4g} at δ₀ + 1e-06)"
    )


def state(name: str, budget: Guarantee, balance: Balance) -> str:
    """What was spent of what, in one line."""
    spent, box = balance.spent.exact(), balance.box.exact()
    used = [
        f"{symbol} {decimal_text(getattr(spent, field))} of {decimal_text(getattr(box, field))}"
        for symbol, field in _COORDINATES
        if getattr(box, field)
    ]
    aside = f"; set aside: {balance.reserved.exact()}" if balance.reserved else ""
    return (
        f"{name}: budget ({budget}); spent {', '.join(used)}{aside}; "
        f"{balance.entries} entries, head {balance.head[:12]}"
    )


def state_html(name: str, budget: Guarantee, balance: Balance) -> str:
    """The same as a table for a notebook: each coordinate of the box, and what is left of it."""
    parts = (balance.box, balance.spent, balance.reserved, balance.free)
    exact = [amounts.exact() for amounts in parts]
    rows = [
        (symbol, *(decimal_text(getattr(amounts, field)) for amounts in exact))
        for symbol, field in _COORDINATES
        if getattr(exact[0], field)
    ]
    return table_html(
        f"Ledger {name}, budget ({budget})",
        ("", "box", "spent", "set aside", "left"),
        rows,
        (f"{balance.entries} entries, head {balance.head[:12]}",),
        (False, True, True, True, True),
    )


def spent_guarantee(spent: Price, delta: float) -> ApproxDP | None:
    """`Ledger.spent_guarantee`: the (ε, δ) that a box of exactly this size would promise."""
    if spent == Price():
        return None
    delta = plain.value(delta, "delta")
    total = epsilon_at(spent, rational(delta, "delta"))
    if total == math.inf:
        raise InvalidParameter(
            "delta",
            f"it must be above the {decimal_text(spent.delta)} that was spent directly",
            "δ₀ is part of the total δ",
            "ask at a larger delta",
        )
    return ApproxDP(float_up(max(rational(total, "epsilon"), EPSILON_FLOOR)), delta)


# ── a spend ───────────────────────────────────────────────────────────────────────────────────────


def asked(spend: Guarantee) -> str:
    """A spend as it was asked for, with the μ that an (ε, δ) one buys."""
    if not isinstance(spend, ApproxDP):
        return str(spend)
    return f"{spend} (μ = {decimal_text(sqrt_down(spend_mu_squared(spend)))})"


def privacy(spend: Guarantee, guarantee: Guarantee) -> str:
    """The guarantee of a release; after an (ε, δ) spend that was asked for, the one behind it."""
    if not isinstance(spend, ApproxDP) or str(guarantee) == str(spend):
        return str(guarantee)
    # what an (ε, δ) mechanism satisfies by itself is within its spend: one pair is enough
    return str(spend) if isinstance(guarantee, ApproxDP) else f"{spend}, by {guarantee}"


def cost(spend: Guarantee, guarantee: Guarantee) -> str:
    """The same in fewer words, for one line."""
    if isinstance(spend, ApproxDP):
        return privacy(spend, guarantee).removesuffix(" (Gaussian DP)")
    return str(guarantee)


# ── what is left ──────────────────────────────────────────────────────────────────────────────────


ROUNDING = 1e-4  # an ε that buys nothing


@dataclass(frozen=True, slots=True, repr=False)
class Remaining:
    """What a ledger can still grant: public, since prices and the budget are.

    amounts    in the coordinates of the box
    delta      the δ at which `epsilon` is read: the budget's own, or 1e-6
    last       the last question, in words; "" before the first
    like_last  how many more of its price fit; None before the first
    """

    budget: Guarantee
    amounts: Price
    delta: float
    last: str = ""
    like_last: int | None = None

    @property
    def epsilon(self) -> float:
        """The ε, at `delta`, of a box of what is left; 0 where nothing is."""
        if self.amounts == Price():
            return 0.0
        return epsilon_at(self.amounts, rational(self.delta, "delta"))

    @property
    def mu(self) -> float:
        """The μ of the greatest Gaussian spend that fits; 0 in a pure box."""
        return shares.greatest_root(self.amounts.mu_squared or 2 * self.amounts.rho)

    @property
    def spend(self) -> Guarantee | None:
        """The greatest spend that fits, to be used whole or split; None where nothing is left."""
        left = self.amounts
        if left.rho >= RHO_FLOOR:
            return ZCDP(shares.greatest_float(left.rho))
        if left.mu_squared >= MU_FLOOR**2:
            return GDP(shares.greatest_root(left.mu_squared))
        if left.epsilon >= EPSILON_FLOOR:
            return PureDP(shares.greatest_float(left.epsilon))
        return None

    def __str__(self) -> str:
        again = f"of ({self.budget}); answers can be read again under their keys"
        if self.spend is None:
            return f"nothing is left {again}"
        if self.like_last == 0 and self.epsilon < ROUNDING:
            return f"nothing but rounding is left {again}"
        gaussian = f", μ = {decimal_text(self.mu)}" if self.mu else ""
        more = f"; about {self.like_last} more like the last ({self.last})" if self.last else ""
        more = f"; none like the last ({self.last}) fits" if self.like_last == 0 else more
        at = "" if isinstance(self.budget, PureDP) else f" at δ = {decimal_text(self.delta)}"
        return f"left of ({self.budget}): ε = {decimal_text(self.epsilon)}{at}{gaussian}{more}"

    def __repr__(self) -> str:
        return str(self)


def remaining(
    budget: Guarantee, free: Amounts, entries: Sequence[Entry], delta: float | None = None
) -> Remaining:
    """`Session.remaining`: what is free, and how often the last procedure would fit in it."""
    if delta is None:
        delta = budget.delta if isinstance(budget, ApproxDP) else USUAL_DELTA
    delta = float(failure_probability(delta))
    debits = [entry for entry in entries if entry.kind == "debit"]
    if not debits:
        return Remaining(budget, free.exact(), delta)
    last = debits[-1]
    # a procedure of several releases sets all of its spend aside at first
    held = [entry for entry in entries if entry.kind == "reserve" and entry.key == last.reservation]
    price = held[-1].amounts if held else last.amounts
    words = (last.request or {}).get("asked", {})
    of = f" of {words['column']}" if words.get("column") else ""
    name = f"{words.get('estimator', 'question')}{of}"
    return Remaining(budget, free.exact(), delta, name, price.times_in(free))


# ── what would fit ────────────────────────────────────────────────────────────────────────────────


def over_budget(price: Amounts, balance: Balance) -> BudgetExceeded:
    """A price that the free balance cannot pay; says the largest spend that fits."""
    closed = _closed_coordinate(price, balance.box)
    if closed:
        return BudgetExceeded(price=str(price), left=str(balance.free), remedy=closed)
    return BudgetExceeded(
        price=str(price),
        left=str(balance.free),
        remedy=_what_fits(price, balance.free) + _kept_delta(price, balance) + _set_aside(balance),
    )


def over_reservation(price: Amounts, holding: Holding) -> BudgetExceeded:
    """A price that the reservation cannot pay."""
    name = f"in reservation {holding.key!r}"
    if not holding.is_open:
        return BudgetExceeded(
            price=str(price),
            left=f"nothing {name}, which is closed",
            remedy="make a new reservation with ledger.reserve(...), or debit without one",
        )
    return BudgetExceeded(
        price=str(price),
        left=f"{holding.left} {name}",
        remedy=_what_fits(price, holding.left) + ", or debit without the reservation",
    )


def _closed_coordinate(price: Amounts, box: Amounts) -> str:
    if box.rho and (price.epsilon or price.mu_squared):
        return (
            "this ledger counts in ρ (zCDP): price the mechanism in ρ instead (price_of with "
            "box=ledger.box), or open a new ledger with dp.ApproxDP(epsilon, delta) "
            f"({NEVER_RESPLIT})"
        )
    if price.rho and not box.rho:
        return (
            "this ledger opened no ρ: price the mechanism in its own box (price_of with "
            f"box=ledger.box), or open a new ledger with dp.ZCDP(rho) ({NEVER_RESPLIT})"
        )
    if price.epsilon and not box.epsilon:
        return (
            "this ledger opened no pure ε: price the mechanism in μ² instead (price_of with "
            f"box=ledger.box), or open a new ledger with pure=... ({NEVER_RESPLIT})"
        )
    if price.delta and not box.delta:
        return (
            "this ledger opened no δ₀: ask with a mechanism that needs no δ of its own, or open a "
            f"new ledger with delta0=... ({NEVER_RESPLIT})"
        )
    if price.mu_squared and not box.mu_squared:
        return (
            "this ledger opened no Gaussian part: spend dp.PureDP(epsilon), or open a new ledger "
            f"with dp.ApproxDP(epsilon, delta) or dp.GDP(mu) ({NEVER_RESPLIT})"
        )
    return ""


def _what_fits(price: Amounts, room: Amounts) -> str:
    largest, left = [], room.exact()
    if price.epsilon > room.epsilon:
        fits = left.epsilon >= EPSILON_FLOOR
        largest.append(f"dp.PureDP({_rounded_down(left.epsilon)})" if fits else "")
    if price.mu_squared > room.mu_squared:
        root = sqrt_down(left.mu_squared)
        largest.append(f"dp.GDP({_rounded_down(root)})" if root > MU_FLOOR else "")
    if price.rho > room.rho:
        largest.append(f"dp.ZCDP({_rounded_down(left.rho)})" if left.rho >= RHO_FLOOR else "")
    if price.delta > room.delta:
        largest.append(f"δ₀ = {_rounded_down(left.delta)}" if room.delta > 0 else "")
    if "" in largest:
        return (
            "nothing of it is left; answers that were paid for can be read again under their keys, "
            "at no cost"
        )
    return f"the largest spend that fits is {' and '.join(largest)}"


def _kept_delta(price: Amounts, balance: Balance) -> str:
    """Why a spend that is written as the budget is does not fit in an untouched ledger."""
    box, free = balance.box, balance.free
    nearly = box.mu_squared < price.mu_squared and 10 * price.mu_squared < 11 * box.mu_squared
    return (
        "; a part of δ is kept for mechanisms that may fail, so an (ε, δ) spend as large as the "
        "budget does not fit: budget.split(1)[0] is all of it"
        if box.delta and free.mu_squared == box.mu_squared and nearly
        else ""
    )


def _set_aside(balance: Balance) -> str:
    return (
        (
            f"; {balance.reserved} is set aside by open reservations, and "
            "ledger.close_reservation(id) returns what they did not use"
        )
        if balance.reserved
        else ""
    )


def _rounded_down(value: Fraction) -> str:
    """`value` > 0 with six significant digits, never more than it is."""
    power = math.floor(math.log10(value)) - 5
    step = Fraction(10) ** power
    return f"{float(math.floor(value / step) * step):.6g}"


_CELL = "padding:.2em .8em;text-align:"


def session_html(columns: Mapping[str, object], relation: str, ledger: object) -> str:
    """A session in a notebook: what is declared, what is protected, and the account."""
    rows = [(name, str(column)) for name, column in columns.items()]
    return table_html("Session", ("column", "declared"), rows, (f"{relation}. {ledger}",))


def table_html(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
    numeric: Sequence[bool] = (),
) -> str:
    """A table in a notebook: all texts escaped, rules as in print, no style sheet."""
    sides = ["right" if number else "left" for number in numeric] or ["left"] * len(header)
    head = "".join(
        f"<th style='{_CELL}{side};border-bottom:1px solid'>{html.escape(name)}</th>"
        for name, side in zip(header, sides, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td style='{_CELL}{side};font-variant-numeric:tabular-nums'>{html.escape(cell)}</td>"
            for cell, side in zip(row, sides, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    told = "<br>".join(html.escape(note) for note in notes)
    rules = "border-collapse:collapse;border-top:2px solid;border-bottom:2px solid"
    return (
        f"<table style='{rules}'><caption>{html.escape(title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        + (f"<p><small>{told}</small></p>" if told else "")
    )
