"""What a ledger says when it refuses: always what would fit instead, or what to do."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.errors import BudgetExceeded, InsecureNoise, LedgerRefused
from discreet.exact import sqrt_down
from discreet.trusted.ledger.stores import Balance, Holding
from discreet.trusted.ledger.units import Amounts

_NEVER_RESPLIT = (
    "the box is fixed when the ledger is opened and never re-split: moving budget after seeing "
    "answers breaks the guarantee"
)


def over_budget(price: Amounts, balance: Balance) -> BudgetExceeded:
    """A price that the free balance cannot pay; says the largest spend that fits."""
    closed = _closed_coordinate(price, balance.box)
    if closed:
        return BudgetExceeded(price=str(price), left=str(balance.free), remedy=closed)
    return BudgetExceeded(
        price=str(price),
        left=str(balance.free),
        remedy=_what_fits(price, balance.free) + _set_aside(balance),
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
            f"({_NEVER_RESPLIT})"
        )
    if price.rho and not box.rho:
        return (
            "this ledger opened no ρ: price the mechanism in its own box (price_of with "
            f"box=ledger.box), or open a new ledger with dp.ZCDP(rho) ({_NEVER_RESPLIT})"
        )
    if price.epsilon and not box.epsilon:
        return (
            "this ledger opened no pure ε: price the mechanism in μ² instead (price_of with "
            f"box=ledger.box), or open a new ledger with pure=... ({_NEVER_RESPLIT})"
        )
    if price.delta and not box.delta:
        return (
            "this ledger opened no δ₀: ask with a mechanism that needs no δ of its own, or open a "
            f"new ledger with delta0=... ({_NEVER_RESPLIT})"
        )
    if price.mu_squared and not box.mu_squared:
        return (
            "this ledger opened no Gaussian part: spend dp.PureDP(epsilon), or open a new ledger "
            f"with dp.ApproxDP(epsilon, delta) or dp.GDP(mu) ({_NEVER_RESPLIT})"
        )
    return ""


def _what_fits(price: Amounts, room: Amounts) -> str:
    largest, left = [], room.exact()
    if price.epsilon > room.epsilon:
        largest.append(f"dp.PureDP({_rounded_down(left.epsilon)})" if room.epsilon > 0 else "")
    if price.mu_squared > room.mu_squared:
        largest.append(
            f"dp.GDP({_rounded_down(sqrt_down(left.mu_squared))})" if room.mu_squared > 0 else ""
        )
    if price.rho > room.rho:
        largest.append(f"dp.ZCDP({_rounded_down(left.rho)})" if room.rho > 0 else "")
    if price.delta > room.delta:
        largest.append(f"δ₀ = {_rounded_down(left.delta)}" if room.delta > 0 else "")
    if "" in largest:
        return (
            "nothing of it is left; answers that were paid for can be read again under their keys, "
            "at no cost"
        )
    return f"the largest spend that fits is {' and '.join(largest)}"


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


def other_request(key: str) -> LedgerRefused:
    return LedgerRefused(
        f"a debit under the key {key!r}",
        "that key was used for another request, or for one that cost less",
        "one key means one question and one answer; a second question under it would not be paid "
        "for",
        "use a new key for a new question (it is a new debit)",
    )


def other_relation(asked: str, found: str) -> LedgerRefused:
    return LedgerRefused(
        f"a debit for neighbours {asked}",
        f"this ledger has debits for neighbours {found}",
        "prices add up only while they all protect the same thing",
        "keep one ledger for each neighbour relation",
    )


def other_noise(*, secure: bool) -> InsecureNoise:
    asked, found = ("secure", "seeded") if secure else ("seeded", "secure")
    return InsecureNoise(
        f"a debit for {asked} noise",
        f"this ledger has debits for {found} noise",
        "whoever knows the seed can subtract seeded noise, so one balance over both kinds would "
        "promise nothing",
        "open a ledger of its own for seeded sessions",
    )


def no_debit(key: str) -> LedgerRefused:
    return LedgerRefused(
        f"storing an answer under the key {key!r}",
        "nothing was debited under that key",
        "every answer must have been paid for before the data was read",
        "call ledger.debit(key=..., ...) first",
    )


def no_reservation(key: str) -> LedgerRefused:
    return LedgerRefused(
        f"reservation {key!r}",
        "this ledger has none of that name",
        "a debit must say where its budget comes from",
        "use the id that ledger.reserve(...) returned",
    )


def other_reservation(key: str) -> LedgerRefused:
    return LedgerRefused(
        f"a reservation under the key {key!r}",
        "that key was used for a reservation of another size",
        "one key means one reservation",
        "use a new key",
    )


def other_box(asked: str, found: str) -> LedgerRefused:
    return LedgerRefused(
        f"opening a ledger with {asked}",
        f"it was opened with {found}",
        _NEVER_RESPLIT,
        "open it as it is (budget=None), or open a new ledger under another name",
    )


def no_budget() -> LedgerRefused:
    return LedgerRefused(
        "opening a ledger",
        "it does not exist yet and no budget was given",
        "a ledger's box is fixed when it is opened",
        "pass budget=, for example dp.ApproxDP(1, 1e-6), or correct the path",
    )


def rolled_back(found: str) -> LedgerRefused:
    return LedgerRefused(
        "the ledger's known head",
        found,
        "an older copy of a ledger forgets what was already spent",
        "bring back the newest file; if it is lost, treat its whole budget as spent",
    )


def broken(problems: str) -> LedgerRefused:
    return LedgerRefused(
        "opening a ledger",
        f"it does not verify ({problems})",
        "a changed history cannot say what was spent",
        "bring back the newest intact copy; discreet.trusted.ledger.verify_file lists every "
        "problem",
    )


def not_copied() -> LedgerRefused:
    return LedgerRefused(
        "copying or pickling a ledger",
        "a ledger is one place, not a value",
        "two copies could each spend the whole budget",
        "share the object between threads, and open the same path in other processes",
    )


def inside_answer() -> LedgerRefused:
    return LedgerRefused(
        "changing a ledger while an answer is being made",
        "make_answer used the ledger that is storing its answer",
        "draw and store are one transaction",
        "debit first, then call ledger.store with a function that only draws and serialises",
    )
