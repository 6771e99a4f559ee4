"""Claims: sampled gradients cost what their theorems say, by loss distributions and enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import kstest, laplace, norm
from tests.claims.test_sgd import ALPHA, DELTA, FAMILIES, Recorder, descent_of, query_of

import discreet as dp
from discreet.accounting.calibration.sgd import pure_sgd_spread, sgd_multiplier
from discreet.accounting.gaussian import gdp_delta
from discreet.accounting.least_price import least_mu
from discreet.sensitivity import OneRow, sensitivity_from_dict
from discreet.specs.registry import mechanism_from_dict, query_from_dict
from discreet.testing.seeded import SeededSource
from discreet.trusted.extensions.sgd.draw import descend
from discreet.trusted.extensions.sgd.loss import (
    descent_loss,
    descent_mu,
    descent_pld,
    step_epsilon,
)
from discreet.trusted.losses.losses import loss_of

# ── the price ─────────────────────────────────────────────────────────────────────────────────────

SETTINGS = [
    ("poisson", Fraction(20.0), None, 300, 1.5),
    ("fixed", None, 50, 300, 1.5),
    ("poisson", Fraction(2.0), None, 20, 4.0),
    ("fixed", None, 900, 10, 3.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "gap", "size", "steps", "multiplier"), SETTINGS)
def test_the_price_is_never_below_the_loss_distribution(scheme, gap, size, steps, multiplier):
    one = (
        OneRow(Fraction(2**60), "replaced", 1000)
        if gap is None
        else OneRow(Fraction(2**60), "added or removed", None)
    )
    spread = Fraction(multiplier * math.sqrt(one.moved_squared))
    spec = descent_of(one, spread=spread, gap=gap, size=size, steps=steps)
    loss = loss_of(spec)
    assert loss.delta == spec.delta
    assert not (loss.pure)
    assert not (loss.bounded_range)
    assert not (loss.rho)
    mu, rate = math.sqrt(loss.mu_squared), -math.expm1(-1 / float(gap)) if gap else size / 1000
    pld, optimistic = (
        descent_pld(1 / multiplier, rate, scheme, steps),
        descent_pld(2 / multiplier, rate, scheme, steps),
    )
    caught = 0
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        allowed = float(DELTA) + (1 - float(DELTA)) * gdp_delta(mu, epsilon)
        assert pld.delta_at(epsilon) <= allowed * (1 + 1e-3)
        caught += optimistic.delta_at(epsilon) > allowed
    assert caught >= 4, "half the noise must cost more"


def test_one_step_agrees_with_the_closed_form_of_the_sampled_gaussian():
    rate_gap, multiplier = Fraction(5.0), 0.8
    spec = descent_of(
        OneRow(Fraction(2**60), "added or removed", None),
        spread=Fraction(multiplier * 2.0**30),
        gap=rate_gap,
        steps=1,
        every=1,
        averaged=1,
    )
    loss, q, mu0 = descent_loss(spec), -math.expm1(-0.2), 1 / multiplier
    mu = math.sqrt(loss.mu_squared)
    assert mu < mu0
    for epsilon in np.linspace(0.01, 3, 40):
        # remove: q·P₀ + (1−q)Q₀ against Q₀ is q times the base at ln(1 + (e^ε − 1)/q)
        inner = 1 + (math.exp(epsilon) - 1) / q
        base = math.log(inner)
        removed = q * (norm.cdf(mu0 / 2 - base / mu0) - inner * norm.cdf(-mu0 / 2 - base / mu0))
        assert removed <= float(DELTA) + gdp_delta(mu, epsilon) + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["poisson", "fixed"])
def test_calibrated_noise_costs_no_more_than_asked_and_nearly_that(scheme):
    rate, target = 0.05, Fraction(1, 2)
    multiplier = sgd_multiplier(target, DELTA, rate, scheme, 200)
    pld = descent_pld(1 / multiplier, rate, scheme, 200)
    assert 0.99 * math.sqrt(target) <= least_mu(pld, float(DELTA)) <= math.sqrt(target)


@pytest.mark.slow
def test_no_price_is_above_that_of_all_rows_in_every_batch():
    plain = math.sqrt(400) / 18
    for scheme in ("poisson", "fixed"):
        for rate in (0.3, 0.5, 0.6, 0.9, 1.0):
            assert descent_mu(1 / 18, rate, scheme, 400, DELTA) <= plain * (1 + 1e-12)
        assert descent_mu(1 / 18, 0.05, scheme, 400, DELTA) <= 0.2 * plain


def test_a_loss_distribution_that_cannot_be_bounded_has_no_price():
    """Batches of nearly all rows: the lattice of a fixed-size pair bounds δ(0) by 1 only.

    That is safe, and it must end in a refusal, not in a search without end.
    """
    with pytest.raises(dp.NoTheorem, match="bounded"):
        least_mu(descent_pld(1 / 18, 256 / 300, "fixed", 400), 1e-7)


# ── pure parts ────────────────────────────────────────────────────────────────────────────────────


def pure_of(one, **changes):
    fields = {"spread": Fraction(2.0**20), "delta": Fraction(0), "law": "laplace"}
    return descent_of(one, **(fields | changes))


def noisy_sum(values, subsets, scale, at):
    """The density of a noisy sum over a random subset, at given points."""
    total = np.zeros(len(at))
    for subset_of_rows, chance in subsets:
        middle = sum(values[row] for row in subset_of_rows)
        total += chance * laplace.pdf(at, middle, scale)
    return total


def fixed_subsets(count, size):
    chosen = list(itertools.combinations(range(count), size))
    return [(one, 1 / len(chosen)) for one in chosen]


def poisson_subsets(count, rate):
    return [
        (one, rate ** len(one) * (1 - rate) ** (count - len(one)))
        for size in range(count + 1)
        for one in itertools.combinations(range(count), size)
    ]


@pytest.mark.parametrize("relation", ["replaced", "added or removed"])
def test_a_pure_step_is_never_dearer_than_its_price(relation):
    """Densities of one noisy sum, by enumeration of all batches, for worst neighbours."""
    rng, bound, caught, closest = np.random.default_rng(8), 2**20, 0, 0.0
    for _ in range(60):
        count = int(rng.integers(2, 6))
        spread = Fraction(float(rng.choice([0.3, 1.0, 4.0]) * bound))
        values = rng.choice([-bound, 0, bound], count).astype(float)
        at = np.linspace(-(count + 2) * bound, (count + 2) * bound, 4001)
        at = np.concatenate([at, [-40.0 * bound, 40.0 * bound]])
        if relation == "replaced":
            size = int(rng.integers(1, count + 1))
            spec = pure_of(OneRow(Fraction(bound**2), relation, count, 1), spread=spread, size=size)
            other = values.copy()
            values[0], other[0] = bound, -bound
            subsets = fixed_subsets(count, size)
            laws = [noisy_sum(one, subsets, float(spread), at) for one in (values, other)]
        else:
            gap = Fraction(float(rng.choice([0.5, 2.0, 8.0])))
            spec = pure_of(OneRow(Fraction(bound**2), relation, None, 1), spread=spread, gap=gap)
            values[0], rate = bound, -math.expm1(-1 / float(gap))
            laws = [
                noisy_sum(values, poisson_subsets(count, rate), float(spread), at),
                noisy_sum(values[1:], poisson_subsets(count - 1, rate), float(spread), at),
            ]
        price = float(step_epsilon(spec))
        loss = float(np.abs(np.log(laws[0] / laws[1])).max())
        assert loss <= price * (1 + 1e-9)
        closest = max(closest, loss / price)
        half = pure_of(spec.sensitivity, spread=2 * spread, gap=spec.gap, size=spec.size)
        caught += loss > float(step_epsilon(half))
        assert loss_of(spec).pure == (step_epsilon(spec),) * spec.steps
        assert loss_of(spec).delta == 0
    assert closest > 0.99, "the price should be attained"
    assert caught > 10, "the price of twice the noise must be exceeded"


def test_laplace_noise_has_its_law_and_a_wrong_one_is_noticed():
    spec = pure_of(
        OneRow(Fraction(4), "added or removed", None, 1),
        spread=Fraction(2.0**14),
        steps=2000,
        every=1,
        averaged=1,
        rate=1.0,
        limit=1 << 36,
    )
    shown = np.array(descend(spec, Recorder(0), SeededSource(6)), dtype=float).reshape(-1, 3)
    noise = np.diff(shown[:-1], axis=0).ravel() / 2.0**14
    assert kstest(noise, laplace.cdf).pvalue > ALPHA
    for wrong in (noise / 1.3, noise * 1.3):
        assert kstest(wrong, laplace.cdf).pvalue < ALPHA
    assert kstest(noise / math.sqrt(2), norm.cdf).pvalue < ALPHA
    assert spec.variance == pytest.approx(2 * 2.0**28)


def test_the_scale_of_scenario_one_is_the_reference_value():
    """scenario1_laplace_scale of the reference values: the mean's scale times the batch."""
    spread = pure_sgd_spread(Fraction(1), Fraction(100, 10_000), Fraction(1), 100)
    assert float(spread) / 100 == pytest.approx(0.01437499545006971, abs=1e-12)


def test_a_pure_descent_is_stored_with_its_law_and_others_without():
    one, other = OneRow(Fraction(4), "replaced", 9, 1), OneRow(Fraction(4), "replaced", 9)
    pure, plain = pure_of(one), descent_of(other)
    assert mechanism_from_dict(pure.to_dict()) == pure
    assert sensitivity_from_dict(one.to_dict()) == one
    assert not {"law", "momentum"} & set(plain.to_dict())
    assert "of" not in other.to_dict()
    assert mechanism_from_dict(plain.to_dict()).law == "gaussian"
    for family in FAMILIES:
        query = query_of(family, rows=9, norm=1)
        assert query_from_dict(query.to_dict()) == query
        assert "norm" not in query_of(family, rows=9).to_dict()


@pytest.mark.parametrize(
    "changes",
    [
        {"law": "cauchy"},
        {"law": "gaussian"},
        {"delta": DELTA},
        {"steps": 20_001, "every": 5},
        {"momentum": 1.0},
        {"momentum": math.nan},
        {"momentum": 0},
    ],
)
def test_bad_pure_specs_are_refused(changes):
    with pytest.raises(dp.InvalidParameter):
        pure_of(OneRow(Fraction(4), "added or removed", None, 1), **changes)
    with pytest.raises(dp.InvalidParameter):
        descent_of(OneRow(Fraction(4), "added or removed", None), law="laplace")


def test_momentum_is_a_function_of_the_noisy_sums():
    one = OneRow(Fraction(2**80), "added or removed", None)
    spec = descent_of(one, spread=Fraction(1024.0), rate=1.0, momentum=0.5, every=1)
    steps = np.array(descend(spec, Recorder(0), SeededSource(3)), dtype=float).reshape(-1, 3)[:-1]
    bare = descent_of(one, spread=Fraction(1024.0), rate=1.0, every=1)
    plain = np.array(descend(bare, Recorder(0), SeededSource(3)), dtype=float).reshape(-1, 3)[:-1]
    moves, sums = np.diff(steps, axis=0, prepend=0), np.diff(plain, axis=0, prepend=0)
    velocity = np.zeros(3)
    for move, noisy in zip(moves, sums, strict=True):
        velocity = 0.5 * velocity + noisy
        assert np.abs(move - velocity).max() <= 1
