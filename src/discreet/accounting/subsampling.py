"""Privacy amplification by sampling: the guarantee of a mechanism that is run on a secret random
sample (`sampling`; reference.md E1, E2).

The mechanism's own guarantee must hold, under the same relation, on the data sets it is run on
(the samples). The sample must stay secret, its size too under Poisson sampling. Any other pairing
of scheme and relation has no theorem here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from discreet.accounting.guarantees import (
    DELTA_FLOOR,
    EPSILON_FLOOR,
    GDP,
    ApproxDP,
    Guarantee,
    PureDP,
)
from discreet.accounting.parameters import Number, positive, probability
from discreet.accounting.renyi.curves import WHOLE_ORDERS, pure_renyi
from discreet.accounting.renyi.rdp import RDP, ZCDP, rdp_from, renyi_bound
from discreet.accounting.renyi.sampled import (
    drawn_general_renyi,
    sampled_gaussian_renyi,
    sampled_general_renyi,
    sampled_pure_renyi,
)
from discreet.accounting.sampling import FixedSizeSampling as FixedSizeSampling
from discreet.accounting.sampling import PoissonSampling as PoissonSampling
from discreet.accounting.sampling import Sampling, matched_rate
from discreet.enclosure import enclose, lower_float, upper_float
from discreet.errors import InvalidParameter, NoTheorem
from discreet.exact import float_up, rational
from discreet.neighbors import Neighbors

SAMPLED_ORDERS: tuple[Fraction, ...] = tuple(
    sorted({*(Fraction(n, 4) for n in range(5, 33)), *WHOLE_ORDERS})
)
LARGEST_SAMPLED_ORDER = 1 << 12


def amplify(
    guarantee: Guarantee, sampling: Sampling, neighbors: Neighbors
) -> PureDP | ApproxDP | RDP:
    """The guarantee, under `neighbors`, of a mechanism with `guarantee` that is run on a sample.

    Theorem.  (ε, δ) becomes (ln(1+γ(e^ε−1)), γδ), γ the rate or size/rows (reference.md E1;
              Balle–Barthe–Gaboardi 2018, Theorems 8 and 9). GDP, zCDP and RDP become an RDP curve:
              `amplify_renyi`.
    Checked.  tests/accounting/test_subsampling.py::test_amplification_is_exact_on_small_examples
    """
    if isinstance(guarantee, (PureDP, ApproxDP)):
        rate = matched_rate(sampling, neighbors)
        epsilon = rational(guarantee.epsilon, "epsilon")
        smaller = max(float(EPSILON_FLOOR), amplified_epsilon(epsilon, rate))
        if isinstance(guarantee, PureDP):
            return PureDP(min(guarantee.epsilon, smaller))
        return ApproxDP(
            min(guarantee.epsilon, smaller),
            float_up(max(DELTA_FLOOR, rate * rational(guarantee.delta, "delta"))),
        )
    return amplify_renyi(guarantee, sampling, neighbors)


def amplified_epsilon(epsilon: Number, rate: Number) -> float:
    """ln(1 + γ(e^ε − 1)), rounded up."""
    e, g = positive(epsilon, "epsilon"), _rate(rate)
    return upper_float(enclose(lambda ball: (ball(g) * ball(e).expm1()).log1p()))


def base_epsilon(epsilon: Number, rate: Number) -> float:
    """What a mechanism may spend on the sample so that the amplified ε is met:
    ln(1 + (e^ε − 1)/γ), rounded down.
    """
    e, g = positive(epsilon, "epsilon"), _rate(rate)
    return lower_float(enclose(lambda ball: (ball(e).expm1() / ball(g)).log1p()))


def amplify_renyi(
    guarantee: Guarantee,
    sampling: Sampling,
    neighbors: Neighbors,
    *,
    orders: Sequence[Fraction | float] = SAMPLED_ORDERS,
) -> RDP:
    """The Rényi curve of a mechanism with `guarantee` on a sample;
    NoTheorem for (ε, δ), which bounds no Rényi divergence.

    Theorem.  Poisson, add/remove: exact for μ-GDP (the sampled Gaussian) and ε-DP (sampled
              randomised response), at any order; factor-3 form at whole orders otherwise. Fixed
              size, replace-one: Wang–Balle–Kasiviswanathan at whole orders. An order between two
              whole ones takes the bound of the next (D_α increases with α).
    Proof.    `sampled_renyi`; a μ-GDP or ε-DP pair is a post-processing of its worst pair,
              and so are its mixtures.
    """
    rate = matched_rate(sampling, neighbors)
    wanted = checked_orders(orders)
    if type(guarantee) not in (PureDP, GDP, ZCDP, RDP):
        raise NoTheorem(
            f"Rényi amplification of {type(guarantee).__name__}",
            "no Rényi divergence is bounded by it",
            "an (ε, δ) mechanism, for one, may fail outright with probability δ",
            "amplify it as (ε, δ) with amplify(...), or start from the mechanism",
        )
    if isinstance(sampling, PoissonSampling):
        if isinstance(guarantee, GDP):
            mu_squared = rational(guarantee.mu, "mu") ** 2
            return rdp_from(
                [
                    (order, Fraction(sampled_gaussian_renyi(order, rate, mu_squared)))
                    for order in wanted
                ]
            )
        if isinstance(guarantee, PureDP):
            epsilon = rational(guarantee.epsilon, "epsilon")
            return rdp_from(
                [(order, Fraction(sampled_pure_renyi(order, rate, epsilon))) for order in wanted]
            )
    whole = _whole_orders(wanted, guarantee)
    bounds = [
        Fraction(0),
        Fraction(0),
        *(_bound(guarantee, order) for order in range(2, whole[-1] + 1)),
    ]
    if isinstance(sampling, PoissonSampling):
        return rdp_from(
            [
                (Fraction(order), Fraction(sampled_general_renyi(order, rate, bounds)))
                for order in whole
            ]
        )
    pure = rational(guarantee.epsilon, "epsilon") if isinstance(guarantee, PureDP) else None
    points = [
        (Fraction(order), Fraction(drawn_general_renyi(order, rate, bounds, pure)))
        for order in whole
    ]
    if pure is not None:  # the amplified mechanism is ε'-DP itself
        smaller = amplified_epsilon(pure, rate)
        points = [
            (order, min(bound, Fraction(pure_renyi(order, smaller)))) for order, bound in points
        ]
    return rdp_from(points)


def _rate(value: Number) -> Fraction:
    number = probability(value, "rate")
    if number == 0:
        raise InvalidParameter(
            "rate",
            "it is 0",
            "an empty sample answers nothing",
            "pass a rate above 0 and at most 1",
        )
    return number


def checked_orders(orders: Sequence[Fraction | float]) -> list[Fraction]:
    wanted = sorted({rational(order, "order") for order in orders})
    if not wanted or wanted[0] <= 1 or wanted[-1] > LARGEST_SAMPLED_ORDER:
        raise InvalidParameter(
            "orders",
            f"they are not all above 1 and at most {LARGEST_SAMPLED_ORDER}",
            "each order k costs k terms",
            "leave them out, or pass for example (2, 4, 8, 16)",
        )
    return wanted


def _whole_orders(wanted: list[Fraction], guarantee: Guarantee) -> list[int]:
    """The orders rounded up, as far as the guarantee's own bounds reach."""
    last = (
        math.floor(guarantee.exact[-1][0]) if isinstance(guarantee, RDP) else LARGEST_SAMPLED_ORDER
    )
    whole = sorted({math.ceil(order) for order in wanted if math.ceil(order) <= last})
    if not whole:
        raise NoTheorem(
            "Rényi amplification at these orders",
            "the curve has no bound at a whole order of 2 or more",
            "the theorem uses every whole order from 2 to k",
            "tabulate the curve at 2, 3, 4, …",
        )
    return whole


def _bound(guarantee: Guarantee, order: int) -> Fraction:
    bound = renyi_bound(guarantee, Fraction(order))
    assert bound is not None
    return bound
