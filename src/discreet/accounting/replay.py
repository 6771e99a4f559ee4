"""The history of a ledger, priced again by another accountant: a description, never a balance.

A ledger stores the mechanism of every request, so any accountant can say what they add up to.
The answer treats the list of mechanisms as if it had been fixed before the first answer. It was
not: an analyst who sees the answers chooses how the list goes on, and may stop when it looks best.
So a replay says how much was used; what may still be spent, and what is promised, is the box
(docs/theory/ledger.md, "Why the box is never re-split").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from discreet import plain
from discreet.accounting.gaussian import gdp_epsilon
from discreet.accounting.guarantees import PureDP
from discreet.accounting.parameters import failure_probability
from discreet.accounting.renyi.conversions import bounded_range_rho, zcdp_epsilon
from discreet.accounting.renyi.mechanisms import rdp_of_mechanism
from discreet.accounting.renyi.rdp import ZCDP, compose_renyi, rdp_of
from discreet.errors import InvalidParameter, LedgerRefused, NoTheorem, shown
from discreet.exact import decimal_text, float_down, float_up, rational, sqrt_up
from discreet.specs.mechanisms.additive import AdditiveNoise, LaplaceNoise
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.registry import mechanism_from_dict
from discreet.trusted.losses.losses import loss_of
from discreet.trusted.losses.pricing import Price, price_of

Accountant = Callable[[Sequence[Mechanism], float], float]
_WHY = "an accountant prices the mechanisms that were run, all of them, at one delta"
_GAUSSIAN_BOX, _ZCDP_BOX = Price(mu_squared=Fraction(1)), Price(rho=Fraction(1))


class Entry(Protocol):
    """What is read of an entry of a ledger."""

    @property
    def number(self) -> int: ...

    @property
    def kind(self) -> str: ...

    @property
    def request(self) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What the debits of a ledger add up to by one accountant, beside the ledger's own count;
    it changes nothing.

    epsilon    ε at `delta` of all debited mechanisms by `accountant`,
               as if they had been chosen before the first answer
    spent      ε at `delta` of a box of the size spent so far: the ledger's own count
    promised   ε at `delta` of the whole box, which holds however the questions were chosen;
               `promise` says it in words

    Each is infinity where `delta` is not above the δ₀ that belongs to it.
    """

    accountant: str
    delta: float
    debits: int
    epsilon: float
    spent: float
    promised: float
    promise: str

    def rows(self) -> list[tuple[str, int | None, float]]:
        """(what, number of debits, ε at `delta`), for a table."""
        return [
            (f"history by {self.accountant}", self.debits, self.epsilon),
            ("spent, by the ledger's box", self.debits, self.spent),
            ("promised, the whole box", None, self.promised),
        ]

    def __str__(self) -> str:
        return replay_text(self)


def replay_text(*replays: Replay) -> str:
    """One small table of replays of the same ledger at the same δ."""
    rows = [*(one.rows()[0] for one in replays), *replays[0].rows()[1:]]
    width = max(len(name) for name, _, _ in rows)
    lines = [f"{'':{width}}  {'debits':>6}  ε at δ = {decimal_text(replays[0].delta)}"]
    lines += [
        f"{name:{width}}  {'' if count is None else count:>6}  {epsilon:.6g}"
        for name, count, epsilon in rows
    ]
    return "\n".join(
        [
            *lines,
            (
                f"The promise is {replays[0].promise}. A replay describes what was used; it never "
                "gives budget back."
            ),
        ]
    )


def replayed(
    entries: Sequence[Entry],
    accountant: str | Accountant,
    delta: float,
    *,
    spent: Price,
    box: Price,
    promise: str,
) -> Replay:
    """`Ledger.replay`, from the entries of a ledger."""
    name, price_again = _accountant(accountant)
    asked = failure_probability(delta)
    mechanisms = [_mechanism(entry) for entry in entries if entry.kind == "debit"]
    rest = asked - spent.delta
    epsilon = 0.0
    if mechanisms and rest > 0:
        epsilon = price_again(
            mechanisms, delta if type(delta) is float and not spent.delta else float_down(rest)
        )
        epsilon = plain.value(epsilon, "accountant=")
        if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not epsilon >= 0:
            raise InvalidParameter(
                "accountant=",
                f"it returned {shown(epsilon)}",
                _WHY,
                "return the total ε of the mechanisms at delta, a number of 0 or more",
            )
    elif mechanisms:
        epsilon = float("inf")
    whole = epsilon_at(box, asked)
    used = epsilon_at(spent, asked)
    return Replay(
        accountant=name,
        delta=float(delta),
        debits=len(mechanisms),
        epsilon=float(epsilon),
        spent=used,
        promised=whole,
        promise=promise,
    )


def epsilon_at(price: Price, delta: Fraction) -> float:
    """The ε at δ that a box of this size promises, rounded up;
    infinity where its δ₀ leaves nothing of δ.
    """
    rest = delta - price.delta
    if rest < 0 or (rest == 0 and (price.mu_squared or price.rho)):
        return float("inf")
    total = price.epsilon
    if price.mu_squared:
        total += rational(gdp_epsilon(sqrt_up(price.mu_squared), rest), "epsilon")
    if price.rho:
        total += rational(zcdp_epsilon(price.rho, rest), "epsilon")
    return float_up(total)


def _by_gdp(mechanisms: Sequence[Mechanism], delta: float) -> float:
    return gdp_epsilon(
        sqrt_up(_total(mechanisms, _GAUSSIAN_BOX).mu_squared), rational(delta, "delta")
    )


def _by_zcdp(mechanisms: Sequence[Mechanism], delta: float) -> float:
    return zcdp_epsilon(_total(mechanisms, _ZCDP_BOX).rho, rational(delta, "delta"))


def _by_rdp(mechanisms: Sequence[Mechanism], delta: float) -> float:
    """What is Gaussian or of bounded range by ρ;
    pure losses at the usual orders, each distinct mechanism once.
    """
    rho, curves = Fraction(0), []
    for one, times in Counter(mechanisms).items():
        loss = loss_of(one)
        rho += times * (
            loss.mu_squared / 2
            + loss.rho
            + sum((bounded_range_rho(epsilon) for epsilon in loss.bounded_range), Fraction(0))
        )
        if isinstance(one, LaplaceNoise):
            curves.append(rdp_of_mechanism(one).repeat(times))
        else:
            curves += [
                rdp_of(PureDP(float_up(epsilon))).repeat(times * same)
                for epsilon, same in Counter(loss.pure).items()
            ]
    return compose_renyi(*([ZCDP(float_up(rho))] if rho else []), *curves).epsilon_at(delta)


def _by_pld(mechanisms: Sequence[Mechanism], delta: float) -> float:
    """Additive noise by its own loss distribution; other mechanisms by those of their losses."""
    from discreet.accounting.loss_distributions.build import (
        approx_pld,
        exponential_pld,
        gaussian_pld,
        pld_of,
    )

    # late: numpy and the transforms are needed here alone
    from discreet.accounting.loss_distributions.curve import compose_all

    plds = []
    for one, times in Counter(mechanisms).items():
        if isinstance(one, AdditiveNoise):
            plds.append((pld_of(one), times))
            continue
        loss = loss_of(one)
        if loss.rho:
            raise NoTheorem(
                "a loss distribution",
                "a mechanism of this ledger is known by its zCDP alone",
                "a bound on Rényi divergences fixes no loss distribution",
                "replay with accountant='zcdp' or 'rdp'",
            )
        plds += (
            [(gaussian_pld(float_up(sqrt_up(loss.mu_squared))), times)] if loss.mu_squared else []
        )
        plds += [
            (approx_pld(float_up(epsilon)), times * same)
            for epsilon, same in Counter(loss.pure).items()
        ]
        plds += [
            (exponential_pld(float_up(epsilon)), times * same)
            for epsilon, same in Counter(loss.bounded_range).items()
        ]
    return compose_all(plds).epsilon_at(delta)


ACCOUNTANTS: Mapping[str, Accountant] = {
    "pld": _by_pld,
    "rdp": _by_rdp,
    "gdp": _by_gdp,
    "zcdp": _by_zcdp,
}


def _accountant(asked: object) -> tuple[str, Accountant]:
    if isinstance(asked, str) and asked in ACCOUNTANTS:
        return asked, ACCOUNTANTS[asked]
    if callable(asked):
        return getattr(asked, "__name__", type(asked).__name__), asked
    raise InvalidParameter(
        "accountant=",
        f"{shown(asked)} is not one of {', '.join(ACCOUNTANTS)}",
        _WHY,
        "pass one of these names, or a function of (mechanisms, delta) that returns ε",
    )


def _total(mechanisms: Sequence[Mechanism], box: Price) -> Price:
    total = Price()
    for mechanism, times in Counter(mechanisms).items():
        one = price_of((mechanism,), box=box)
        total += Price(mu_squared=times * one.mu_squared, rho=times * one.rho)
    return total


def _mechanism(entry: Entry) -> Mechanism:
    record: Any = (entry.request or {}).get("mechanism")
    try:
        return mechanism_from_dict(record)
    except (LookupError, TypeError, ValueError, ArithmeticError):
        # a DiscreetError about a spec is a ValueError
        raise LedgerRefused(
            "replaying a ledger",
            f"the debit in entry {entry.number} names no mechanism that this version knows",
            "only a mechanism can be priced again; an amount cannot",
            "read what was charged with ledger.spent_guarantee(delta)",
        ) from None
