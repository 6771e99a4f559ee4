"""What every guarantee is: a privacy profile, read at a δ or at an ε, and said in words."""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting.explain import explain


class PrivacyProfile:
    """δ as a function of ε, for both orders of the neighbours; every type of guarantee is one.

    What else a guarantee implies is told by the methods below, so that a guarantee can be read
    without naming its type: None where no such number is known.
    """

    __slots__ = ()

    def delta_at(self, epsilon: float) -> float:
        """The least δ known at ε ≥ 0, rounded up."""
        raise NotImplementedError

    def epsilon_at(self, delta: float) -> float:
        """The least ε known at δ, rounded up."""
        raise NotImplementedError

    def tradeoff(self, alpha: float) -> float:
        """The least probability of missing a person at false-alarm rate α, rounded down."""
        raise NotImplementedError

    def pure_epsilon(self) -> Fraction | None:
        """An ε such that this is ε-DP."""
        return None

    def zcdp_rho(self) -> Fraction | None:
        """A ρ such that this is ρ-zCDP."""
        return None

    def renyi_bound(self, order: Fraction) -> Fraction | None:
        """A bound of D_α at one order."""
        rho = self.zcdp_rho()
        return None if rho is None else order * rho

    def explain(
        self, *, false_alarm: float = 0.05, prior: float | None = None, delta: float = 1e-6
    ) -> str:
        """In words: what an attacker who knows everyone else can achieve
        (see `discreet.accounting.explain`).
        """
        return explain(self, false_alarm=false_alarm, prior=prior, delta=delta)
