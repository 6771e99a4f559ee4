"""Symmetric matrix noise: the law that runs against the guarantee that is charged, with an
off-diagonal spread that must be caught.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

import discreet as dp
from discreet.accounting.calibration.additive import gaussian_noise, symmetric_noise
from discreet.estimators.matrices import covariance_question
from discreet.sensitivity import L2, Frobenius
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise, off_diagonal
from discreet.specs.registry import mechanism_from_dict
from discreet.testing import SeededSource, seeded_session
from discreet.trusted.losses.pricing import guarantee_of, within_spend
from discreet.trusted.noise.additive import draw_symmetric
from discreet.trusted.noise.samplers import apply

ALPHA = 1e-9
MU = Fraction(1)
SHIFT = 100  # off the diagonal: its Frobenius norm is √2·100
EPSILONS = (0.25, 1.0, 3.0)


def noise(mu=MU):
    return symmetric_noise(Frobenius(3, Fraction(2 * SHIFT**2)), mu**2)


def halved(mechanism):
    """The control: off the diagonal s/2 where s/√2 is needed."""
    return replace(mechanism, off_spread=mechanism.spread / 2)


def hockey_stick(spread, shift, refinement, epsilon):
    """Σ (P(k) − e^ε Q(k))₊ over the grid cells of rounded normal laws of the given spread,
    one of them moved by `shift`.
    """
    steps, moved = float(spread) * 2**refinement, shift * 2**refinement
    cells = np.arange(int(-10 * steps), int(10 * steps + moved) + 1)

    def probabilities(center):
        low, high = (cells - 0.5 - center) / steps, (cells + 0.5 - center) / steps
        return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))

    return float(np.maximum(probabilities(moved) - math.exp(epsilon) * probabilities(0), 0).sum())


def worst_excess(mechanism, claimed):
    """The largest true δ over claimed δ, for a move of one entry on and one off the diagonal within
    the sensitivity.
    """
    moves = ((mechanism.spread, math.isqrt(2 * SHIFT**2)), (mechanism.off_spread, SHIFT))
    return max(
        hockey_stick(spread, shift, mechanism.refinement, epsilon) / claimed.delta_at(epsilon)
        for spread, shift in moves
        for epsilon in EPSILONS
    )


@pytest.mark.parametrize("mu", [Fraction(1, 2), Fraction(1), Fraction(2)])
def test_the_law_that_is_drawn_keeps_the_guarantee_and_uses_it(mu):
    mechanism = noise(mu)
    assert 0.99 < worst_excess(mechanism, guarantee_of(mechanism)) <= 1 + 1e-9


def test_half_the_spread_off_the_diagonal_is_caught_by_the_same_check():
    honest = noise()
    assert worst_excess(halved(honest), guarantee_of(honest)) > 1.5
    assert within_spend(honest, dp.GDP(1))
    assert not within_spend(halved(honest), dp.GDP(1))
    assert guarantee_of(halved(honest)).mu == pytest.approx(math.sqrt(2))


def test_mu_is_exact_for_every_direction_of_the_change():
    """Σ D²/variance ≤ μ² for moves in any direction with the given Frobenius norm, and nearly equal
    for all of them: the noise is isotropic.
    """
    mechanism, rng = noise(), np.random.default_rng(4)
    off = np.array([*off_diagonal(3), False, False])
    mu_squared = float(guarantee_of(mechanism).mu) ** 2
    for _ in range(200):
        move = rng.standard_normal(len(off))
        move *= math.sqrt(2) * SHIFT / math.sqrt(np.sum(move**2 * np.where(off, 2, 1)))
        loss = np.sum(
            move**2 / np.where(off, float(mechanism.off_spread), float(mechanism.spread)) ** 2
        )
        assert 1 - 1e-12 < loss / mu_squared <= 1 + 1e-12


def p_value(draws, spread):
    edges = np.round(stats.norm.ppf(np.arange(1, 64) / 64) * spread).astype(np.int64)
    below = np.concatenate([[0.0], stats.norm.cdf((edges - 0.5) / spread), [1.0]])
    counts = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=64)
    return float(stats.chisquare(counts, np.diff(below) * len(draws)).pvalue)


@pytest.mark.slow
def test_draws_follow_the_two_laws():
    """Diagonal, off-diagonal and further numbers, each at its place;
    a spread that is 10 % off, and the other law, are rejected.
    """
    mechanism, source = noise(), SeededSource("symmetric")
    draws = np.array([draw_symmetric(mechanism, 8, source) for _ in range(10_000)])
    steps = {
        True: float(mechanism.off_spread) * 2**mechanism.refinement,
        False: float(mechanism.spread) * 2**mechanism.refinement,
    }
    for place, off in enumerate((*off_diagonal(3), False, False)):
        assert p_value(draws[:, place], steps[off]) > ALPHA, place
        for wrong in (0.9 * steps[off], 1.1 * steps[off], steps[not off]):
            assert p_value(draws[:, place], wrong) < ALPHA
    correlations = np.corrcoef(draws, rowvar=False)[np.triu_indices(8, 1)]
    assert np.max(np.abs(correlations)) * math.sqrt(len(draws)) < stats.norm.isf(ALPHA / 2)


def test_the_answer_is_the_statistic_plus_the_noise():
    mechanism = noise()
    statistic = [10**6 * place for place in range(9)]
    answer = apply(mechanism, statistic, SeededSource("answer")).integers
    drawn = draw_symmetric(mechanism, 9, SeededSource("answer"))
    assert [
        value - 2**mechanism.refinement * exact
        for value, exact in zip(answer, statistic, strict=True)
    ] == drawn.tolist()


def test_rounding_is_upward_and_json_round_trips():
    mechanism = noise(Fraction(1, 3))
    assert mechanism.spread**2 >= 9 * 2 * SHIFT**2
    assert 2 * mechanism.off_spread**2 >= 9 * 2 * SHIFT**2
    assert guarantee_of(mechanism).mu <= 1 / 3 + 1e-15
    assert mechanism_from_dict(mechanism.to_dict()) == mechanism


def test_specs_refuse_what_no_proof_covers():
    honest = noise()
    for change in (
        {"sensitivity": L2(Fraction(1))},
        {"spread": Fraction(1, 3)},
        {"off_spread": Fraction(-1)},
        {"refinement": 61},
        {"spread": Fraction(2**60)},
        {"refinement": True},
    ):
        with pytest.raises(dp.InvalidParameter):
            replace(honest, **change)
    for order in (0, True, 1.5):
        with pytest.raises(dp.InvalidParameter):
            Frobenius(order, Fraction(1))


def test_a_session_refuses_noise_of_another_layout_before_the_debit():
    """Plain noise on a matrix, symmetric noise of another order,
    and a spread off the diagonal that costs more than the spend.
    """
    data = dp.from_arrays(
        {"x": [0.1, 0.9], "y": [0.3, 0.2]},
        schema={"x": dp.Real(0, 1), "y": dp.Real(0, 1)},
        neighbors=dp.Replace(),
    )
    session = seeded_session(data, dp.GDP(5), 1)
    question = covariance_question(session.public, ["x", "y"], spend=dp.GDP(1))
    mechanism = question.mechanism
    assert isinstance(mechanism, SymmetricGaussianNoise)
    wrong = [
        gaussian_noise(L2(mechanism.sensitivity.squared), Fraction(1)),
        replace(mechanism, sensitivity=Frobenius(4, mechanism.sensitivity.squared)),
        replace(mechanism, off_spread=mechanism.spread / 2),
    ]
    for other in wrong:
        with pytest.raises(dp.InvalidParameter):
            session.release(replace(question, mechanism=other))
    assert session.ledger.spent().mu_squared == 0
