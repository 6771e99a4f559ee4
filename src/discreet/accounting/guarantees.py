"""Privacy guarantees as numbers one can read, compare and compose.

    PureDP(epsilon)           P(M(x)∈E) ≤ e^ε P(M(x')∈E)
    ApproxDP(epsilon, delta)  … + δ
    GDP(mu)                   telling x from x' is at least as hard as telling N(0,1) from N(μ,1)
    ZCDP(rho), RDP(…)         Rényi divergences, in `renyi`

for neighbours x, x' under the relation that the data set declares.
Every result is rounded against us.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from discreet import plain
from discreet.accounting import shares
from discreet.accounting.gaussian import (
    gdp_delta,
    gdp_epsilon,
    mu_for_approx,
    mu_for_pure,
    tradeoff_gdp,
)
from discreet.accounting.parameters import not_negative, probability, within
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.renyi.conversions import gaussian_rho, pure_rho
from discreet.accounting.renyi.curves import pure_renyi
from discreet.accounting.renyi.rdp import RDP, ZCDP
from discreet.enclosure import enclose, lower_float, upper_float
from discreet.errors import InvalidParameter, NoTheorem
from discreet.exact import decimal_text, float_up, rational

EPSILON_FLOOR, EPSILON_CEILING = Fraction(1, 10**9), Fraction(10**6)
MU_FLOOR, MU_CEILING = Fraction(1, 10**6), Fraction(10**3)
DELTA_FLOOR = Fraction(1, 10**17)
_WHY = "noise is computed from it; a value outside this range would mean no noise or no answer"


def _checked(value: object, name: str, floor: Fraction, ceiling: Fraction) -> float:
    number = within(
        value, name, floor, ceiling, f"typical values of {name} are between 0.01 and 10"
    )
    return plain.number(value, name) if plain.derives(type(value), float) else float(number)


def _checked_delta(value: object, name: str = "delta") -> float:
    number = rational(value, name)
    if not DELTA_FLOOR <= number < 1:
        raise InvalidParameter(
            name,
            f"{decimal_text(number)} is outside {decimal_text(DELTA_FLOOR)} … 1",
            "delta is a probability of failure; at 0 use dp.PureDP, at 1 nothing is private",
            "use a delta far below one over the number of people, for example 1e-6",
        )
    return float(number)


@plain.kept()
@dataclass(frozen=True, slots=True)
class PureDP(PrivacyProfile):
    """ε-differential privacy.

    Formula.
            P(answer in S | data) ≤ e^ε · P(answer in S | neighbour),   for every set S of answers

            epsilon  ε: 0 tells nothing, 1 limits odds to change by a factor of 2.7

    Price.    Spends of ε₁ and ε₂ add up to ε₁ + ε₂.
    Example.
            budget = dp.PureDP(1)
            print(dp.explain(budget))
            print(budget / 4, dp.compose(dp.PureDP(0.3), dp.PureDP(0.2)))
    See also. `dp.GDP`, `dp.ApproxDP`, `dp.explain`; docs/accounting.md.
    """

    epsilon: float
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", _checked(self.epsilon, "epsilon", EPSILON_FLOOR, EPSILON_CEILING)
        )

    def epsilon_at(self, delta: float) -> float:
        """The least ε of an (ε, δ) statement that follows:
        ln(e^ε − δ(1+e^ε)), rounded up (reference.md A5 inverted).
        """
        if rational(delta, "delta") == 0:
            return self.epsilon
        exact, delta_exact = (
            rational(self.epsilon, "epsilon"),
            rational(_checked_delta(delta), "delta"),
        )
        if self.delta_at(0.0) <= delta_exact:
            return 0.0
        return max(
            0.0,
            upper_float(
                enclose(
                    lambda ball: (
                        ball(exact).exp() * (1 - ball(delta_exact)) - ball(delta_exact)
                    ).log()
                )
            ),
        )

    def delta_at(self, epsilon: float) -> float:
        """δ(ε′) = max(0, (e^ε − e^ε′)/(1+e^ε)), rounded up:
        randomised response is the worst case.
        """
        mine, asked = rational(self.epsilon, "epsilon"), not_negative(epsilon, "epsilon")
        if asked >= mine:
            return 0.0
        return min(
            1.0,
            upper_float(
                enclose(
                    lambda ball: (1 - (ball(asked) - ball(mine)).exp()) / (1 + (-ball(mine)).exp())
                )
            ),
        )

    def tradeoff(self, alpha: float) -> float:
        """The least probability of missing a person at false-alarm rate α,
        rounded down (reference.md A5).
        """
        return _tradeoff_approx(self.epsilon, 0.0, float(probability(alpha, "alpha")))

    def pure_epsilon(self) -> Fraction:
        return rational(self.epsilon, "epsilon")

    def zcdp_rho(self) -> Fraction:
        return Fraction(pure_rho(self.epsilon))

    def renyi_bound(self, order: Fraction) -> Fraction:
        return Fraction(pure_renyi(order, self.epsilon))

    def covers(self, other: PrivacyProfile) -> bool:
        """Whether everything that satisfies `other` satisfies this too."""
        return isinstance(other, PureDP) and self.epsilon >= other.epsilon

    def group(self, size: int) -> PureDP:
        return PureDP(float_up(rational(self.epsilon, "epsilon") * _group(size)))

    def _share(self, share: Fraction) -> PureDP:
        amount = shares.units_of(rational(self.epsilon, "epsilon"), share)
        return PureDP(shares.greatest_float(amount))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "epsilon": self.epsilon}

    def __str__(self) -> str:
        return f"ε = {decimal_text(self.epsilon)}"


@plain.kept()
@dataclass(frozen=True, slots=True)
class ApproxDP(PrivacyProfile):
    """(ε, δ)-differential privacy.

    Formula.
            P(answer in S | data) ≤ e^ε · P(answer in S | neighbour) + δ

            epsilon  ε
            delta    δ: far below one over the number of people

    Price.    A budget of (ε, δ) is kept as the Gaussian μ that implies it, beside a part of δ: its
              parts are `dp.GDP` spends (docs/how-to/budgets.md).
    Example.
            budget = dp.ApproxDP(epsilon=1, delta=1e-6)
            print(budget.split({"table": 1, "model": 3}))
    See also. `dp.GDP`, `dp.PureDP`, `dp.plan`; docs/deciding/choosing.md.
    """

    epsilon: float
    delta: float
    kind: ClassVar[str] = "approx"

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", _checked(self.epsilon, "epsilon", EPSILON_FLOOR, EPSILON_CEILING)
        )
        object.__setattr__(self, "delta", _checked_delta(self.delta))

    def epsilon_at(self, delta: float) -> float:
        """The least ε at a δ at or above this guarantee's own;
        below it nothing follows (infinity).
        """
        asked = _checked_delta(delta)
        if asked < self.delta:
            return math.inf
        mine, own, wanted = (rational(x, "a parameter") for x in (self.epsilon, self.delta, asked))
        if self.delta_at(0.0) <= wanted:
            return 0.0
        # δ(ε′) = δ + (1−δ)(e^ε − e^ε′)/(1+e^ε), solved for ε′
        return max(
            0.0,
            upper_float(
                enclose(
                    lambda ball: (
                        ball(mine).exp()
                        - (ball(wanted) - ball(own)) / (1 - ball(own)) * (1 + ball(mine).exp())
                    ).log()
                )
            ),
        )

    def delta_at(self, epsilon: float) -> float:
        mine, own, asked = (
            rational(self.epsilon, "epsilon"),
            rational(self.delta, "delta"),
            not_negative(epsilon, "epsilon"),
        )
        if asked >= mine:
            return self.delta
        return min(
            1.0,
            upper_float(
                enclose(
                    lambda ball: (
                        ball(own)
                        + (1 - ball(own))
                        * (1 - (ball(asked) - ball(mine)).exp())
                        / (1 + (-ball(mine)).exp())
                    )
                )
            ),
        )

    def tradeoff(self, alpha: float) -> float:
        return _tradeoff_approx(self.epsilon, self.delta, float(probability(alpha, "alpha")))

    def covers(self, other: PrivacyProfile) -> bool:
        return isinstance(other, PrivacyProfile) and other.delta_at(self.epsilon) <= self.delta

    def group(self, size: int) -> ApproxDP:
        """(kε, δ(e^{kε}−1)/(e^ε−1)) (reference.md A3)."""
        k, epsilon, delta = (
            _group(size),
            rational(self.epsilon, "epsilon"),
            rational(self.delta, "delta"),
        )
        # refused beyond what an ε may be, before e^{kε} is written out
        reached = PureDP(float_up(k * epsilon)).epsilon
        grown = upper_float(
            enclose(
                lambda ball: ball(delta) * (ball(k * epsilon).exp() - 1) / (ball(epsilon).exp() - 1)
            )
        )
        return ApproxDP(reached, grown)

    def split(
        self,
        parts: Any,
        *,
        pure: float | None = None,
        delta0: float | None = None,
    ) -> Any:
        """Shares of μ², as `GDP` spends. `pure` and `delta0` are those that the ledger is opened
        with (`Dataset.open`): what they set aside is not shared.
        """
        box = _gaussian_box(self, pure, delta0)
        return shares.split(lambda share: _gaussian_share(box, share), parts)

    def _share(self, share: Fraction) -> GDP:
        return _gaussian_share(_gaussian_box(self, None, None), share)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "epsilon": self.epsilon, "delta": self.delta}

    def __str__(self) -> str:
        return f"ε = {decimal_text(self.epsilon)}, δ = {decimal_text(self.delta)}"


@plain.kept()
@dataclass(frozen=True, slots=True)
class GDP(PrivacyProfile):
    """μ-Gaussian differential privacy.

    Formula.
            telling data from a neighbour is as hard as telling N(0, 1) from N(μ, 1)

            mu  μ: 0.1 is hard to notice, 1 is the usual upper end, 3 tells nearly all

    Price.    Spends of μ₁ and μ₂ add up to √(μ₁² + μ₂²).
    Example.
            spend = dp.GDP(0.5)
            print(spend.epsilon_at(1e-6), spend.delta_at(1.0))
            print(dp.explain(spend))
    See also. `dp.ApproxDP`, `dp.PureDP`, `dp.ZCDP`, `dp.explain`.
    """

    mu: float
    kind: ClassVar[str] = "gdp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _checked(self.mu, "mu", MU_FLOOR, MU_CEILING))

    def epsilon_at(self, delta: float) -> float:
        """The least ε with (ε, δ)-DP, rounded up (reference.md A7)."""
        return gdp_epsilon(rational(self.mu, "mu"), rational(_checked_delta(delta), "delta"))

    def delta_at(self, epsilon: float) -> float:
        """δ_μ(ε), rounded up (reference.md A7)."""
        return gdp_delta(rational(self.mu, "mu"), not_negative(epsilon, "epsilon"))

    def tradeoff(self, alpha: float) -> float:
        return tradeoff_gdp(self.mu, float(probability(alpha, "alpha")))

    def zcdp_rho(self) -> Fraction:
        return gaussian_rho(self.mu)

    def covers(self, other: PrivacyProfile) -> bool:
        if isinstance(other, GDP):
            return self.mu >= other.mu
        return isinstance(other, PureDP) and self.mu >= mu_for_pure(
            rational(other.epsilon, "epsilon")
        )

    def group(self, size: int) -> GDP:
        return GDP(float_up(rational(self.mu, "mu") * _group(size)))

    def _share(self, share: Fraction) -> GDP:
        return _gaussian_share(rational(self.mu, "mu") ** 2, share)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "mu": self.mu}

    def __str__(self) -> str:
        return f"μ = {decimal_text(self.mu)} (Gaussian DP)"


Guarantee = PureDP | ApproxDP | GDP | ZCDP | RDP


def mu_squared(guarantee: Guarantee) -> Fraction:
    """The μ² that this guarantee costs in Gaussian accounting;
    NoTheorem for (ε, δ), zCDP and RDP, which are no μ-GDP.
    """
    if isinstance(guarantee, GDP):
        return rational(guarantee.mu, "mu") ** 2
    if isinstance(guarantee, PureDP):
        return Fraction(mu_for_pure(rational(guarantee.epsilon, "epsilon"))) ** 2
    if isinstance(guarantee, (ZCDP, RDP)):
        raise NoTheorem(
            f"the μ of {guarantee}",
            "a bound on Rényi divergences bounds no trade-off curve by a Gaussian one",
            "μ-GDP implies zCDP with ρ = μ²/2, and not the other way round",
            "open the ledger with dp.ZCDP(rho), or spend dp.GDP(mu)",
        )
    raise NoTheorem(
        "the μ of an (ε, δ) guarantee",
        "a mechanism may fail outright with probability δ, which no μ-GDP mechanism does",
        "its trade-off curve starts at 1−δ, every G_μ at 1",
        "spend dp.GDP(mu) or dp.PureDP(epsilon)",
    )


def spend_mu_squared(spend: Guarantee) -> Fraction:
    """How much μ² a Gaussian mechanism may use so that it satisfies `spend`: 2ρ for zCDP; analytic
    Gaussian for (ε, δ) (reference.md B5, D1).
    """
    if isinstance(spend, ZCDP):
        if not MU_FLOOR**2 <= 2 * spend.exact <= MU_CEILING**2:
            raise InvalidParameter(
                "spend=",
                f"{spend} is outside {decimal_text(MU_FLOOR**2 / 2)} … "
                f"{decimal_text(MU_CEILING**2 / 2)}",
                _WHY,
                "typical values of rho are between 0.00001 and 10",
            )
        return 2 * spend.exact
    if isinstance(spend, ApproxDP):
        return (
            Fraction(
                mu_for_approx(rational(spend.epsilon, "epsilon"), rational(spend.delta, "delta"))
            )
            ** 2
        )
    return mu_squared(spend)


def guarantee_from_dict(record: dict[str, Any]) -> Guarantee:
    kinds: dict[str, type[Guarantee]] = {
        "pure": PureDP,
        "approx": ApproxDP,
        "gdp": GDP,
        "zcdp": ZCDP,
        "rdp": RDP,
    }
    return kinds[record["kind"]](
        **{name: value for name, value in record.items() if name != "kind"}
    )


def _gaussian_box(budget: ApproxDP, pure: float | None, delta0: float | None) -> Fraction:
    """The μ² that a ledger opens for an (ε, δ) budget (trusted/losses/pricing.py `open_box`)."""
    epsilon, delta = rational(budget.epsilon, "epsilon"), rational(budget.delta, "delta")
    first = Fraction(0) if pure is None else not_negative(pure, "pure")
    second = delta / 10 if delta0 is None else not_negative(delta0, "delta0")
    if first >= epsilon or second >= delta:
        raise InvalidParameter(
            "pure=, delta0=",
            f"they leave nothing of {budget} to split",
            "a ledger sets them aside when it is opened",
            "pass those that the ledger is opened with, or leave them out",
        )
    return Fraction(mu_for_approx(epsilon - first, delta - second)) ** 2


def _gaussian_share(box: Fraction, share: Fraction) -> GDP:
    return GDP(shares.greatest_root(shares.units_of(box, share)))


def _group(size: int) -> int:
    size = plain.value(size, "group size")
    if type(size) is not int or size < 1:
        raise InvalidParameter(
            "group size",
            "not a whole number of 1 or more",
            "it counts protected units",
            "pass for example 4 for a household of four",
        )
    return size


def _tradeoff_approx(epsilon: float, delta: float, alpha: float) -> float:
    """f_(ε,δ)(α) = max(0, 1−δ−e^ε α, e^−ε(1−δ−α)), rounded down (reference.md A5)."""
    e, d, a = rational(epsilon, "epsilon"), rational(delta, "delta"), Fraction(alpha)
    steep = lower_float(enclose(lambda ball: 1 - ball(d) - ball(e).exp() * ball(a)))
    flat = lower_float(enclose(lambda ball: (-ball(e)).exp() * (1 - ball(d) - ball(a))))
    return max(0.0, steep, flat)
