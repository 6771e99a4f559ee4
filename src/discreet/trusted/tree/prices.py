"""What a box of a tree costs its parent, and what a question costs in each box of a path.

Theorem.  (i) The box that `carved_box` opens for a guarantee, in its parent's coordinates, covers
          every adaptive sequence of pure steps whose ε add up to it. (ii) A mechanism keeps the
          price that `price_in` says in every box; so does a price that is carried over.
Proof.    docs/theory/budget-tree.md: x ↦ μ(x)² and x ↦ ρ(x) are superadditive, so parts cost no
          more than the whole; Gaussian μ² is ρ = μ²/2; from ρ to μ² there is no theorem.
Checked.  tests/trusted/tree/test_tree_prices.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.accounting.gaussian import mu_for_pure
from discreet.accounting.guarantees import GDP, ApproxDP, Guarantee
from discreet.accounting.renyi.conversions import pure_rho
from discreet.accounting.renyi.rdp import ZCDP
from discreet.errors import tree as refusals
from discreet.exact import float_up, root_up
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.registry import mechanism_from_dict
from discreet.trusted.losses.pricing import Price, open_box, price_of

NOTHING = Fraction(0)


def carved_box(
    budget: Guarantee, *, within: Price, pure: float | None, delta0: float | None
) -> tuple[Price, Guarantee]:
    """The box of a child in its parent's coordinates, and what it promises by itself."""
    if isinstance(budget, ApproxDP) and delta0 is None and not within.delta:
        delta0 = 0.0  # where the parent opened no δ₀, nothing is kept for it
    own = open_box(budget, pure=pure, delta0=delta0)
    box = carried_over(own, within)
    if box == own:
        return box, budget
    if box.rho:
        return box, ZCDP(float_up(box.rho))
    if box.delta:
        raise refusals.no_pure_part()
    return box, GDP(root_up(box.mu_squared))


def carried_over(price: Price, box: Price) -> Price:
    """A price that is valid in the coordinates of a box, from one in those of another."""
    if box.rho:
        pure = Fraction(pure_rho(price.epsilon)) if price.epsilon else NOTHING
        return Price(rho=price.rho + price.mu_squared / 2 + pure, delta=price.delta)
    if price.rho:
        raise refusals.no_theorem_from_rho()
    if box.epsilon or not price.epsilon:
        return price
    squared = price.mu_squared + Fraction(mu_for_pure(price.epsilon)) ** 2
    return Price(mu_squared=squared, delta=price.delta)


def price_in(box: Price, price: Price, mechanism: Mechanism | None) -> Price:
    """What a question costs in a box of its path that is not its asker's own: the mechanism's own
    price there, or `price` carried over, where only a price is known.
    """
    return carried_over(price, box) if mechanism is None else price_of((mechanism,), box=box)


def asked_mechanism(request: Mapping[str, Any]) -> Mechanism | None:
    """The mechanism that a request names; None where it names none that is known."""
    record: Any = request.get("mechanism")
    try:
        return mechanism_from_dict(record)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
        return None


def without_pure(box: Price) -> Price:
    """The box in which a step is priced whose reservation set no ε aside (`Ledger.box_in`)."""
    return replace(box, epsilon=NOTHING)
