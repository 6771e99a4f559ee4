"""Which noise a spend buys: pure spends Laplace or geometric noise, all others Gaussian."""

from __future__ import annotations

from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise, laplace_noise
from discreet.accounting.guarantees import GDP, ApproxDP, Guarantee, PureDP, spend_mu_squared
from discreet.accounting.renyi.rdp import ZCDP
from discreet.errors import InvalidParameter
from discreet.exact import rational
from discreet.neighbors import Neighbors
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.specs.queries.moments import Moments
from discreet.specs.queries.shares import ShareCounts
from discreet.specs.queries.sums import Sum
from discreet.specs.queries.unit_sums import UnitShares, UnitSums


def require_spend(spend: object) -> Guarantee:
    """`spend` if it is a guarantee, else the error that shows how to write one."""
    if isinstance(spend, (PureDP, ApproxDP, GDP, ZCDP)):
        return spend
    raise InvalidParameter(
        "spend=",
        f"a {type(spend).__name__} is not a guarantee",
        "every release says what it costs",
        "pass for example spend=dp.GDP(0.1), dp.PureDP(0.1), dp.ZCDP(0.005) or dp.ApproxDP(0.1, "
        "1e-8)",
    )


def norm_of(spend: Guarantee) -> int:
    """1 where the spend is pure (ℓ₁, Laplace), else 2 (ℓ₂, Gaussian)."""
    return 1 if isinstance(spend, PureDP) else 2


def count_noise(query: Sum, neighbors: Neighbors, spend: Guarantee) -> AdditiveNoise:
    """Noise for counts: geometric on the integers for a pure spend,
    so that exact tests stay possible.
    """
    l1, l2, _ = query.sensitivity(neighbors)
    if isinstance(spend, PureDP):
        return geometric_noise(l1, rational(spend.epsilon, "epsilon"))
    return gaussian_noise(l2, spend_mu_squared(spend))


def moments_noise(
    query: Moments | ShareCounts | UnitSums | UnitShares, neighbors: Neighbors, spend: Guarantee
) -> AdditiveNoise:
    """Noise for a joint vector of moments, in the norm of its design."""
    sensitivity = query.sensitivity(neighbors)
    if isinstance(spend, PureDP):
        assert isinstance(sensitivity, L1)
        return laplace_noise(sensitivity, rational(spend.epsilon, "epsilon"))
    assert isinstance(sensitivity, L2)
    return gaussian_noise(sensitivity, spend_mu_squared(spend))
