"""What a search by noisy counts costs, and mechanisms that run one after another."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from discreet.specs.mechanisms.search import CountSearch


def search_parts(mechanism: CountSearch) -> dict[str, Any]:
    """The fields of a search's Loss.

    Theorem.  Whatever its policy, a search is √budget-GDP (Gaussian noise),
              or budget-DP (Laplace noise).
    Proof.    discreet.trusted.noise.search.search; the filter theorem of docs/theory/ledger.md.
    Checked.  tests/claims/test_search.py
    """
    return (
        {"mu_squared": mechanism.budget}
        if mechanism.law == "gaussian"
        else {"pure": (mechanism.budget,)}
    )


def joined_parts(losses: Iterable[Any]) -> dict[str, Any]:
    """The fields of the Loss of mechanisms that run in turn: μ², ρ and δ add up, pure and
    bounded-range parts are listed.

    Theorem.  The loss of a fixed list of mechanisms, each of which may depend on the answers before
              it, is the composition of theirs.
    Proof.    docs/theory/ledger.md: each coordinate adds up on every path,
              and here no path exceeds the fixed list.
    Checked.  tests/claims/test_search.py::test_mechanisms_in_turn_cost_the_sum
    """
    found = list(losses)
    return {
        "mu_squared": sum((loss.mu_squared for loss in found), Fraction(0)),
        "pure": tuple(epsilon for loss in found for epsilon in loss.pure),
        "bounded_range": tuple(epsilon for loss in found for epsilon in loss.bounded_range),
        "rho": sum((loss.rho for loss in found), Fraction(0)),
        "delta": sum((loss.delta for loss in found), Fraction(0)),
    }
