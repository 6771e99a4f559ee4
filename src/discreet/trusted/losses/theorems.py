"""One theorem a mechanism, for additive noise, searches and selection: from its numbers to its
Loss. What else is proven stands beside its sampler (trusted/extensions/*/loss.py).

In selection Δ is the largest change of one score, span = Δ where all scores move the same way and
2Δ otherwise; proofs in full: docs/theory/selection.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.enclosure import enclose
from discreet.exact import float_up
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import AdditiveNoise, TulapNoise
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.mechanisms.selection import (
    STEPS,
    AboveThreshold,
    ExponentialChoice,
    NoisyMax,
    PermuteAndFlip,
    TopChoices,
)
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.trusted.losses.loss import Loss

# -- additive noise ------------------------------------------------------------


def gaussian_mu_squared(mechanism: AdditiveNoise) -> Fraction:
    """μ² = Δ²/σ², exactly."""
    assert isinstance(mechanism.sensitivity, L2)
    return mechanism.sensitivity.squared / mechanism.spread**2


def pure_epsilon(mechanism: AdditiveNoise) -> Fraction:
    """ε = Δ/b, exactly."""
    assert isinstance(mechanism.sensitivity, L1)
    return mechanism.sensitivity.value / mechanism.spread


def gaussian_loss(mechanism: AdditiveNoise) -> Loss:
    """Theorem.  Gaussian noise of standard deviation σ on a statistic of ℓ₂ sensitivity Δ is
    (Δ/σ)-GDP (reference.md B5).
    """
    return Loss(mu_squared=gaussian_mu_squared(mechanism))


def pure_loss(mechanism: AdditiveNoise) -> Loss:
    """Theorem.  Laplace, two-sided geometric and Tulap noise of scale b on ℓ₁ sensitivity Δ is
    (Δ/b)-DP (reference.md B2, M3).
    """
    return Loss(pure=(pure_epsilon(mechanism),))


def symmetric_loss(mechanism: SymmetricGaussianNoise) -> Loss:
    """μ² of symmetric matrix noise, exactly, from the two spreads that are drawn.

    Theorem.  The mechanism is μ-GDP with μ² = Δ²·max(1/s², 1/(2t²)), Δ the Frobenius sensitivity,
              s and t the standard deviations on and off the diagonal (reference.md G5); for
              t = s/√2 this is (Δ/s)².
    Proof.    Between two neighbours the real-valued outputs are normal with the same covariance and
              means that differ by D. Their trade-off curve is G_m with m² = Σ D_diag²/s² + Σ
              D_off²/t² + Σ D_rest²/s², which is at most max(1/s², 1/(2t²))·(Σ D_diag² + 2Σ
              D_off² + Σ D_rest²). Rounding to a grid that holds the statistic is post-processing.
    Checked.  tests/claims/test_symmetric_noise.py
    """
    worst = max(1 / mechanism.spread**2, 1 / (2 * mechanism.off_spread**2))
    return Loss(mu_squared=mechanism.sensitivity.squared * worst)


def cut_tulap_loss(mechanism: CutTulapNoise) -> Loss:
    """ε for the ratio of probabilities, δ for the ends that only one neighbour can reach
    (reference.md M3).

    Theorem.  `CutTulapNoise` of spread s and reach L on whole statistics of ℓ₁ sensitivity k is
              (k/s, δ)-DP with δ = P(N ≥ L − k), N the cut noise. For one count and k = 1 no smaller
              δ is true. It is charged as ε but for an event of probability δ that does not depend
              on the data.
    Proof.    A step's probability is c·b^|m|, b = e^(−1/s), m the whole number nearest to its cell
              (r ≥ 1, so no cell holds a half). Where both neighbours can give an answer, the ratio
              is at most Π b^(−k_i) ≤ e^(k/s), k_i the moves of the coordinates. Answers that only
              one can give have some coordinate in the last k_i counts: probability ≤ Σ
              P(N ≥ L − k_i). As a function of k_i ≤ L this is convex, 0 at 0 (the law falls from 0
              outwards, and the part of it in a count's width grows inwards), so the sum is at most
              P(N ≥ L − k). The hockey stick at k/s is no more than that, in both orders; for one
              count and k = 1 it is that, because next to the other neighbour's end the ratio is
              e^(1/s) at most. Every (ε, δ)-DP pair is a post-processing of: with probability δ all
              is told, else randomised response with ε (Kairouz, Oh and Viswanath 2015).
    Checked.  tests/claims/test_cut_tulap.py
    """
    epsilon = mechanism.sensitivity.value / mechanism.spread
    return Loss(pure=(epsilon,), delta=cut_delta(mechanism))


@plain.remembered(1024)
def cut_delta(mechanism: CutTulapNoise) -> Fraction:
    """The δ of a mechanism, rounded up to a float."""
    return Fraction(float_up(cut_bounds(mechanism.noise, mechanism.reach)[1]))


def cut_bounds(noise: TulapNoise, reach: int) -> tuple[Fraction, Fraction]:
    """Bounds of δ for a reach in grid steps."""
    assert isinstance(noise.sensitivity, L1)
    moved = int(noise.sensitivity.value) << noise.refinement

    def delta(ball: Any) -> Any:
        beyond = _tulap_tail(ball, noise, reach)
        return (_tulap_tail(ball, noise, reach - moved) - beyond) / (1 - 2 * beyond)

    return enclose(delta)


def _tulap_tail(ball: Any, noise: TulapNoise, steps: int) -> Any:
    """P(N ≥ steps) of uncut Tulap noise, in grid steps, as a ball: b^m/(1+b)·(b + (m − t + ½)(1 −
    b)) for t = steps·step ≥ 0, m the nearest whole number.
    """
    if steps < 0:
        return 1 - _tulap_tail(ball, noise, -steps)
    whole = (steps + (1 << (noise.refinement - 1))) >> noise.refinement
    b = (-1 / ball(noise.spread)).exp()
    inside = ball(whole - steps * noise.step + Fraction(1, 2))
    return (-ball(whole) / ball(noise.spread)).exp() / (1 + b) * (b + inside * (1 - b))


# -- searches ------------------------------------------------------------------


def search_loss(mechanism: CountSearch) -> Loss:
    """Theorem.  Whatever its policy, a search by noisy counts is √budget-GDP (Gaussian noise),
              or budget-DP (Laplace noise).

    Proof.    discreet.trusted.noise.search.search; the filter theorem of docs/theory/ledger.md.
    Checked.  tests/claims/test_search.py
    """
    if mechanism.law == "gaussian":
        return Loss(mu_squared=mechanism.budget)
    return Loss(pure=(mechanism.budget,))


# -- selection -----------------------------------------------------------------


def exponential_choice_loss(mechanism: ExponentialChoice) -> Loss:
    """Bounded range ε = rate·span (reference.md B6; Dong et al. 2020).

    Theorem.  All log-ratios ln P(j)/P′(j) of neighbours lie in one interval of length rate·span;
              so they are within ±rate·span.
    Proof.    ln P(j)/P′(j) = rate·(score_j − score′_j) − ln Z/Z′. The last part is the same for all
              j, and the changes of the scores lie in [−Δ, Δ], or in [0, Δ] or [−Δ, 0]. Two
              probability vectors are not everywhere apart in one direction, so 0 is in the
              interval.
    Checked.  tests/claims/test_selection.py::test_exponential_choice_keeps_its_bounded_range
    """
    return Loss(bounded_range=(mechanism.rate * mechanism.sensitivity.span,))


def permute_and_flip_loss(mechanism: PermuteAndFlip) -> Loss:
    """Pure ε = rate·span (McKenna and Sheldon 2020).

    Theorem.  P(j) ≤ exp(rate·span)·P′(j) for neighbours.
    Proof.    Its law is that of the greatest score_i + E_i, E_i independent exponentials of mean
              1/rate: the best candidate's sum is at least the best score b, score_i + E_i > b has
              the coin's probability, and given so the excesses over b are alike, hence a uniform
              one is greatest. j wins iff E_j > t, t = max over i ≠ j of score_i + E_i − score_j;
              a neighbour raises t by at most span; P(E > t + span) ≥ exp(−rate·span)·P(E > t).
    Checked.  tests/claims/test_selection.py::test_permute_and_flip_keeps_epsilon
    """
    return Loss(pure=(mechanism.rate * mechanism.sensitivity.span,))


def noisy_max_loss(mechanism: NoisyMax) -> Loss:
    """Pure ε = span/spread.

    Theorem.  P(j) ≤ exp(span/spread)·P′(j) for neighbours, ties included.
    Proof.    Given the noise of all others, j wins iff its own noise N ≥ t, with the whole number
              t = max(1 + max over i < j of score_i + N_i, max over i > j of
              score_i + N_i) − score_j: earlier ones win ties. A neighbour raises t by a whole
              number ≤ span, and P(N ≥ t + c) ≥ exp(−c/spread)·P(N ≥ t), because
              P(N = k + c) ≥ exp(−c/spread)·P(N = k).
    Checked.  tests/claims/test_selection.py::test_noisy_max_keeps_epsilon_with_ties
    """
    return Loss(pure=(mechanism.sensitivity.span / mechanism.spread,))


def top_choices_loss(mechanism: TopChoices) -> Loss:
    """`count` losses of bounded range, or pure, each rate·span.

    Theorem.  The order of choices is an adaptive composition of `count` mechanisms, each an
              exponential choice (permute-and-flip) at this rate.
    Proof.    Given the earlier choices, which both neighbours share, the candidates that are left
              are the same, and so are Δ and span.
    Checked.  tests/claims/test_selection.py::test_top_choices_keep_their_parts
    """
    epsilons = (mechanism.rate * mechanism.sensitivity.span,) * mechanism.count
    return Loss(bounded_range=epsilons) if mechanism.step == STEPS[0] else Loss(pure=epsilons)


def above_threshold_loss(mechanism: AboveThreshold) -> Loss:
    """Renewed: `positives` pure losses of Δ/threshold_spread + span/query_spread.

    Else one pure loss of Δ/threshold_spread + positives·span/query_spread.

    Theorem.  P(a) ≤ exp(ε)·P′(a) for every sequence of answers a, also where each question is
              chosen after the answers before it.
    Proof.    Given the threshold's noise r the answers are independent: P(a) = Σ_r P(r)·Π
              P(0 or 1 at i given r). (1) Where scores may rise, compare r with r + Δ: a 0 at r
              stays one of P′ at r + Δ; P(r) ≤ exp(Δ/threshold_spread)·P(r + Δ); a 1 needs
              noise ≥ threshold + r − score_i, which moves up by Δ + score_i − score′_i ≤ span
              (≤ Δ where no score falls), so it costs exp(span/query_spread) at most. (2) Where all
              fall or stay, compare r with r: zeros stay, a 1 costs exp(Δ/query_spread). A renewed
              run composes such runs of one positive each (Lyu, Su, Li 2017).
    Checked.  tests/claims/test_selection.py::test_above_threshold_keeps_epsilon_for_all_answers
    """
    first = mechanism.sensitivity.value / mechanism.threshold_spread
    each = mechanism.sensitivity.span / mechanism.query_spread
    if mechanism.renewed:
        return Loss(pure=(first + each,) * mechanism.positives)
    return Loss(pure=(first + mechanism.positives * each,))
