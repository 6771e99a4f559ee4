"""What is said where a mechanism has no price, or a budget no box: public facts alone."""

from __future__ import annotations

from discreet.errors import InvalidParameter, NoTheorem
from discreet.errors.ledger import NEVER_RESPLIT


def no_theorem(kind: str) -> NoTheorem:
    return NoTheorem(
        "pricing a mechanism",
        f"a {kind} has no theorem",
        "only what is proven can be charged",
        "use a mechanism of discreet.specs.mechanisms",
    )


def known_by_zcdp_but_for_delta() -> NoTheorem:
    return NoTheorem(
        "the guarantee of a mechanism",
        "it is known by its zCDP but for δ",
        "no single guarantee of this library says that",
        "charge it to a ledger of dp.ZCDP(rho) with delta0=",
    )


def known_by_zcdp_alone() -> NoTheorem:
    return NoTheorem(
        "pricing a mechanism",
        "it is known by its zCDP alone",
        "a bound on Rényi divergences bounds no trade-off curve by a Gaussian one",
        "open the ledger with dp.ZCDP(rho), or choose another noise",
    )


def too_little_left() -> NoTheorem:
    return NoTheorem(
        "pricing smooth noise",
        "its beta is larger than the ε that the shift leaves",
        "the noise may be stretched by that much between neighbours",
        "use a smaller beta or a larger multiplier",
    )


def not_counted_in(kind: str) -> NoTheorem:
    return NoTheorem(
        "budget=",
        f"a {kind} is not a guarantee that a ledger counts in",
        "a ledger promises one",
        "pass dp.ApproxDP(epsilon, delta), dp.GDP(mu), dp.ZCDP(rho) or dp.PureDP(epsilon)",
    )


def bad_spend_delta(whole: str) -> InvalidParameter:
    return InvalidParameter(
        "delta=",
        f"it must be below the spend's own delta = {whole}",
        NEVER_RESPLIT,
        "leave it out for a tenth of the spend's delta",
    )


def bad_pure(epsilon: str) -> InvalidParameter:
    return InvalidParameter(
        "pure=",
        f"it must be at least 0 and below epsilon = {epsilon}",
        NEVER_RESPLIT,
        "leave it out to keep all of the budget for Gaussian noise",
    )


def bad_failure(delta: str) -> InvalidParameter:
    return InvalidParameter(
        "delta0=",
        f"it must be at least 0 and below delta = {delta}",
        NEVER_RESPLIT,
        "leave it out for delta / 10",
    )


def bad_added_failure(extra: str) -> InvalidParameter:
    return InvalidParameter(
        "delta0=",
        f"{extra} is not at least 0 and below 1",
        "it is a probability of failure that is added to what ρ-zCDP promises",
        "leave it out for none, or use one far below one over the number of people",
    )


def nothing_to_split(budget: str) -> InvalidParameter:
    return InvalidParameter(
        "pure=, delta0=",
        f"a budget of {budget} has nothing to split",
        NEVER_RESPLIT,
        "open the ledger with dp.ApproxDP(epsilon, delta) to split it (dp.ZCDP(rho) takes "
        "delta0= alone)",
    )
