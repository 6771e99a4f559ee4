"""Planning: what σ, how many steps, what sampling rate, how many rows.

`plan` answers for (sub)sampled steps of Gaussian or Laplace noise, by the certified loss
distribution or by Rényi divergences: give all but one of σ (or b), steps and sampling rate, and the
missing one is found so that the whole is (ε, δ)-DP. `rows_needed` answers for a mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from discreet import plain
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.accounting.loss_distributions.build import (
    fixed_size_subsampled,
    gaussian_pld,
    laplace_pld,
    poisson_subsampled,
)
from discreet.accounting.loss_distributions.calibration import calibrate_sigma
from discreet.accounting.loss_distributions.curve import PLD
from discreet.accounting.parameters import positive
from discreet.accounting.renyi.mechanisms import sampled_gaussian_rdp
from discreet.accounting.sampling import PoissonSampling
from discreet.accounting.statement import table_html
from discreet.errors import InvalidParameter
from discreet.exact import decimal_text, rational
from discreet.neighbors import AddRemove

LARGEST_STEPS = 10**9
_WHY = "the plan must be (ε, δ)-DP as a whole"


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps of noise σ (Laplace: b), per sensitivity, on samples of a rate:
    (ε, δ)-DP as a whole, certified.
    """

    sigma: float
    steps: int
    sampling_rate: float
    scheme: str
    epsilon: float
    delta: float
    noise: str = "gaussian"
    accountant: str = "pld"

    @property
    def pld(self) -> PLD:
        return steps_pld(self.sigma, self.steps, self.sampling_rate, self.scheme, noise=self.noise)

    def __str__(self) -> str:
        sample = (
            ""
            if self.sampling_rate == 1
            else f" on {self.scheme} samples of rate {decimal_text(self.sampling_rate)}"
        )
        letter = "σ" if self.noise == "gaussian" else "b"
        return (
            f"{self.steps} {self.noise} steps with {letter} = {decimal_text(self.sigma, 6)} times "
            f"the sensitivity{sample}: ε = {decimal_text(self.epsilon)}, "
            f"δ = {decimal_text(self.delta)}"
        )

    def _repr_html_(self) -> str:
        rows = [
            (field.name.replace("_", " "), str(getattr(self, field.name))) for field in fields(self)
        ]
        return table_html("Plan", ("", ""), rows, (str(self),))


def steps_pld(
    sigma: float,
    steps: int,
    sampling_rate: float = 1.0,
    scheme: str = "poisson",
    *,
    noise: str = "gaussian",
) -> PLD:
    """The loss distribution of `steps` steps,
    sampled ("poisson": add/remove neighbours, "fixed": replace-one).
    """
    if noise not in ("gaussian", "laplace"):
        raise InvalidParameter(
            "noise",
            "it is neither 'gaussian' nor 'laplace'",
            "the loss depends on the law of the noise",
            "pass one of the two",
        )
    base = (gaussian_pld if noise == "gaussian" else laplace_pld)(
        1 / float(positive(sigma, "sigma"))
    )
    if rational(sampling_rate, "sampling_rate") == 1:
        return base.self_compose(steps)
    if scheme not in ("poisson", "fixed"):
        raise InvalidParameter(
            "scheme",
            "it is neither 'poisson' nor 'fixed'",
            "amplification is proven for one scheme and its neighbour relation",
            "pass 'poisson' (AddRemove) or 'fixed' (Replace)",
        )
    sample = poisson_subsampled if scheme == "poisson" else fixed_size_subsampled
    return sample(base, float(sampling_rate)).self_compose(steps)


@plain.door
def plan(
    *,
    epsilon: float,
    delta: float,
    sigma: float | None = None,
    steps: int | None = None,
    sampling_rate: float | None = 1.0,
    scheme: str = "poisson",
    noise: str = "gaussian",
    accountant: str = "pld",
) -> Plan:
    """The missing one of σ, steps and sampling rate (pass None for it),
    so that everything together is (ε, δ)-DP.

    `accountant` is "pld" (tight) or "rdp" (Gaussian noise; Poisson samples or none):
    a Rényi plan needs more noise.

    Example.
            print(dp.plan(epsilon=2, delta=1e-5, steps=1000, sampling_rate=0.01))
    See also. `dp.SGD`, `dp.PLD`; docs/accounting.md.
    """
    missing = [
        name
        for name, value in (("sigma", sigma), ("steps", steps), ("sampling_rate", sampling_rate))
        if value is None
    ]
    if len(missing) != 1:
        raise InvalidParameter(
            "plan",
            f"{len(missing)} of sigma, steps and sampling_rate are missing",
            "exactly one of them can be found from the others",
            "give two of the three",
        )
    target, failure = float(positive(epsilon, "epsilon")), float(positive(delta, "delta"))

    curve = _curve(noise, scheme, accountant)

    def meets(s: float, t: int, q: float) -> bool:
        return float(curve(s, t, q).delta_at(target)) <= failure

    if sigma is None and (noise, accountant) != ("gaussian", "pld"):
        count, rate = steps or 1, float(sampling_rate or 1.0)
        sigma = _least_noise(lambda s: meets(s, count, rate))
    elif sigma is None:
        assert steps is not None
        assert sampling_rate is not None
        sigma = calibrate_sigma(
            target,
            failure,
            steps=steps,
            sampling_rate=sampling_rate,
            scheme=scheme,  # type: ignore[arg-type]
        )
    elif steps is None:
        assert sampling_rate is not None
        given, rate = sigma, sampling_rate
        steps = _most_steps(lambda count: meets(given, count, rate))
    elif sampling_rate is None:
        given, count = sigma, steps
        sampling_rate = _largest_rate(lambda rate: meets(given, count, rate))
    assert steps is not None
    assert sampling_rate is not None
    return Plan(
        float(sigma), steps, float(sampling_rate), scheme, target, failure, noise, accountant
    )


def _curve(noise: str, scheme: str, accountant: str) -> Callable[[float, int, float], Any]:
    """(σ, steps, rate) → a certified guarantee, by the accountant asked for."""
    if accountant == "pld":
        return lambda s, t, q: steps_pld(s, t, q, scheme, noise=noise)
    if accountant != "rdp" or noise != "gaussian" or scheme != "poisson":
        raise InvalidParameter(
            "accountant",
            f"{accountant!r} does not account for {scheme} samples with {noise} noise here",
            "a plan must be certified",
            "pass accountant='pld'",
        )
    orders = tuple(range(2, 65))
    return lambda s, t, q: sampled_gaussian_rdp(
        noise_multiplier=s,
        sampling=PoissonSampling(q),
        neighbors=AddRemove(),
        steps=t,
        orders=orders,
    )


def _least_noise(meets: Callable[[float], bool]) -> float:
    """The least σ that meets the target, within 1e-4 (more noise never costs more)."""
    high = 1.0
    while not meets(high):
        high *= 2
        if high > 1e8:
            raise InvalidParameter(
                "plan",
                "not even noise of 1e8 sensitivities meets the target",
                _WHY,
                "use fewer steps, or a larger epsilon or delta",
            )
    low = high / 2
    while low > 1 / 32 and meets(low):
        low, high = low / 2, low
    while high / low > 1 + 1e-4:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


@plain.door
def rows_needed(
    spend: Guarantee,
    *,
    width: float,
    standard_deviation: float,
    low: float,
    high: float,
    level: float = 0.95,
) -> int:
    """The least number of rows for which a private mean's interval is expected to be no wider than
    `width` (Replace, n public).

    *Method*: width = 2·quantile of N(0, σ²/n) plus noise of the range over n·μ (or Laplace, range
    over n·ε).

    Price.    None: no data are read.
    Example.
            rows = dp.rows_needed(
                dp.GDP(0.1), width=1000, standard_deviation=30_000, low=0, high=200_000
            )
            print(rows)
    See also. `dp.preview`, `dp.sample_size`.
    """
    from statistics import NormalDist

    wide, deviation = (
        float(positive(width, "width")),
        float(positive(standard_deviation, "standard_deviation")),
    )
    span = float(positive(rational(high, "high") - rational(low, "low"), "the range"))
    if isinstance(spend, PureDP):
        noise = (
            math.sqrt(2)
            * span
            / spend.epsilon
            * -math.log(1 - level)
            / (math.sqrt(2) * NormalDist().inv_cdf(0.5 + level / 2))
        )
    else:
        noise = span / math.sqrt(float(spend_mu_squared(spend)))
    half = wide / (2 * NormalDist().inv_cdf(0.5 + level / 2))
    # half² = σ²/n + noise²/n², a quadratic in 1/n
    inverse = (-(deviation**2) + math.sqrt(deviation**4 + 4 * noise**2 * half**2)) / (2 * noise**2)
    return max(1, math.ceil(1 / inverse))


def _most_steps(meets: Callable[[int], bool]) -> int:
    """The greatest number of steps that meets the target (it fails for all greater ones: more steps
    never cost less).
    """
    if not meets(1):
        raise InvalidParameter(
            "plan",
            "not even one step meets the target",
            _WHY,
            "use a larger sigma, or a larger epsilon or delta",
        )
    low, high = 1, 2
    while high < LARGEST_STEPS and meets(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return low


def _largest_rate(meets: Callable[[float], bool]) -> float:
    if meets(1.0):
        return 1.0
    low, high = 1e-9, 1.0
    if not meets(low):
        raise InvalidParameter(
            "plan",
            "not even a sampling rate of 1e-9 meets the target",
            _WHY,
            "use a larger sigma or fewer steps",
        )
    while high / low > 1 + 1e-4:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if meets(middle) else (low, middle)
    return low
