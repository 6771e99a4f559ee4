"""What every guarantee is: a privacy profile, read at a δ or at an ε, and said in words."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NoReturn, overload

from discreet.accounting import shares
from discreet.accounting.explain import explain
from discreet.errors import InvalidParameter, NoTheorem


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

    @overload
    def split(self, parts: int) -> tuple[Any, ...]: ...

    @overload
    def split(self, parts: Mapping[str, float]) -> dict[str, Any]: ...

    def split(self, parts: int | Mapping[str, float]) -> Any:
        """Spends that together fill the box of a ledger with this budget: ``budget.split(12)`` for
        equal ones, ``budget.split({"tables": 3, "model": 1})`` by weight (accounting/shares.py).

        What adds up is shared: ε of a pure budget, ρ of a zCDP one, μ² of all others. A twelfth of
        an (ε, δ) budget is therefore a `GDP`, whose noise is √12 times that of the whole, where
        twelve times (ε/12, δ/12) would each have more than three times as much.
        """
        return shares.split(self._share, parts)

    def __truediv__(self, parts: int) -> Any:
        """One of `parts` equal spends: ``budget / 12``."""
        return shares.part(self._share, parts)

    def _no_arithmetic(self, other: object) -> NoReturn:
        raise InvalidParameter(
            "a guarantee",
            "guarantees are neither added nor multiplied",
            "what adds up is ε, ρ or μ², by the kind of budget, and never (ε, δ) itself",
            "divide a budget with budget / 12 or budget.split({'tables': 3, 'model': 1}), and "
            "join guarantees with dp.compose([first, second])",
        )

    __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = _no_arithmetic

    def _share(self, share: Fraction) -> Any:
        """The greatest spend that costs no more than a share of what this opens as a budget."""
        raise NoTheorem(
            "split",
            f"a {type(self).__name__} is not a guarantee that a ledger counts in",
            "shares add up in the units of a ledger's box",
            "split a dp.ApproxDP, dp.GDP, dp.ZCDP or dp.PureDP",
        )

    def explain(
        self, *, false_alarm: float = 0.05, prior: float | None = None, delta: float = 1e-6
    ) -> str:
        """In words: what an attacker who knows everyone else can achieve
        (see `discreet.accounting.explain`).
        """
        return explain(self, false_alarm=false_alarm, prior=prior, delta=delta)
