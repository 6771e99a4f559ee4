"""What a mechanism costs before any box: a composition of losses of four kinds, and δ."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Loss:
    """A composition of mechanisms of which each is known by one number:

    mu_squared     Σμ² of those that are μ-GDP
    pure           the ε of each that is ε-DP
    bounded_range  the ε of each whose log-ratios lie in an interval of length ε
    rho            Σρ of those that are known by their ρ-zCDP alone
    delta          the probability, under both neighbours, of an event outside which the rest holds
    """

    mu_squared: Fraction = Fraction(0)
    pure: tuple[Fraction, ...] = ()
    bounded_range: tuple[Fraction, ...] = ()
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    @property
    def epsilon(self) -> Fraction | None:
        """Σε of the pure ones and those of bounded range, where there are no others."""
        if self.mu_squared or self.rho:
            return None
        return sum((*self.pure, *self.bounded_range), Fraction(0))

    def __add__(self, other: Loss) -> Loss:
        """The loss of mechanisms that run in turn.

        Theorem.  The loss of a fixed list of mechanisms, each of which may depend on the answers
                  before it, is the composition of theirs.
        Proof.    docs/theory/ledger.md: each coordinate adds up on every path,
                  and here no path exceeds the fixed list.
        Checked.  tests/claims/test_search.py::test_mechanisms_in_turn_cost_the_sum
        """
        return Loss(
            self.mu_squared + other.mu_squared,
            self.pure + other.pure,
            self.bounded_range + other.bounded_range,
            self.rho + other.rho,
            self.delta + other.delta,
        )
