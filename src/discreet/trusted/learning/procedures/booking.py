"""Debits for what was made of the data elsewhere: a line in the ledger, and no release."""

from __future__ import annotations

import json
from typing import Any

from discreet import plain
from discreet.accounting.guarantees import ApproxDP, Guarantee, PureDP, spend_mu_squared
from discreet.accounting.renyi.rdp import ZCDP
from discreet.exact import rational
from discreet.specs.mechanisms.procedures import StatedGuarantee
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.ledger.requests import Debit
from discreet.trusted.losses.pricing import price_of

LONGEST_NOTE = 500


def booked(
    ledger: Ledger, spend: Guarantee, note: str, key: str, about: tuple[Any, Any], secure: bool
) -> Debit:
    """The debit of a guarantee that holds for something made of the same data elsewhere, once for
    a key; refused where the box cannot hold it. Nothing is released.

    `spend` is what is known of it under the session's relation, `note` says what it was, in words
    that the ledger keeps, `about` which relation it protects, on which data.

    Theorem.  If the stated guarantee holds under the ledger's relation, so does the ledger's.
    Proof.    It is charged as any mechanism with that loss (`stated_loss`), before or after what
              else is asked: the box is a filter for any order (docs/theory/ledger.md).
    Checked.  tests/trusted/test_booking.py
    """
    note, stated = plain.text(note, "note=", longest=LONGEST_NOTE), stated_by(spend)
    request = {
        "asked": {"estimator": f"booked: {note}"},
        "mechanism": stated.to_dict(),
        "spend": spend.to_dict(),
        "neighbors": about[0],
        "data": about[1],
    }
    price = price_of((stated,), box=ledger.box)
    debit = ledger.debit(key=key, request=request, price=price, secure=secure)
    ledger.store(key, lambda: json.dumps({"booked": note}))
    return debit


def stated_by(guarantee: Guarantee) -> StatedGuarantee:
    """A guarantee by its numbers. What is (ε, δ)-DP is charged by its ε, never by the μ that a
    spend of (ε, δ) buys: that is the μ of Gaussian noise, and nothing says that there was any.
    """
    if isinstance(guarantee, ZCDP):
        return StatedGuarantee(rho=guarantee.exact)
    if isinstance(guarantee, PureDP):
        return StatedGuarantee(rational(guarantee.epsilon, "epsilon"))
    if isinstance(guarantee, ApproxDP):
        epsilon, delta = rational(guarantee.epsilon, "epsilon"), rational(guarantee.delta, "delta")
        return StatedGuarantee(epsilon, delta=delta)
    return StatedGuarantee(mu_squared=spend_mu_squared(guarantee))
