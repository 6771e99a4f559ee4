"""The losses of mechanisms.selection.

Δ is the largest change of one score, span = Δ where all scores move the same way and 2Δ otherwise.

Proofs in full: docs/theory/selection.md.
"""

from __future__ import annotations

from fractions import Fraction

from discreet.specs.mechanisms.selection import (
    STEPS,
    AboveThreshold,
    ExponentialChoice,
    NoisyMax,
    PermuteAndFlip,
    TopChoices,
)

Parts = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]  # (pure, of bounded range), each an ε


def selection_parts(
    mechanism: ExponentialChoice | PermuteAndFlip | NoisyMax | TopChoices | AboveThreshold,
) -> Parts:
    """The parts that a mechanism is a composition of, by its theorem below."""
    if isinstance(mechanism, ExponentialChoice):
        return exponential_choice_parts(mechanism)
    if isinstance(mechanism, PermuteAndFlip):
        return permute_and_flip_parts(mechanism)
    if isinstance(mechanism, NoisyMax):
        return noisy_max_parts(mechanism)
    return (
        top_choices_parts(mechanism)
        if isinstance(mechanism, TopChoices)
        else above_threshold_parts(mechanism)
    )


def exponential_choice_parts(mechanism: ExponentialChoice) -> Parts:
    """Bounded range ε = rate·span (reference.md B6; Dong et al. 2020).

    Theorem.  All log-ratios ln P(j)/P′(j) of neighbours lie in one interval of length rate·span;
              so they are within ±rate·span.
    Proof.    ln P(j)/P′(j) = rate·(score_j − score′_j) − ln Z/Z′. The last part is the same for all
              j, and the changes of the scores lie in [−Δ, Δ], or in [0, Δ] or [−Δ, 0]. Two
              probability vectors are not everywhere apart in one direction, so 0 is in the
              interval.
    Checked.  tests/claims/test_selection.py::test_exponential_choice_keeps_its_bounded_range
    """
    return (), (mechanism.rate * mechanism.sensitivity.span,)


def permute_and_flip_parts(mechanism: PermuteAndFlip) -> Parts:
    """Pure ε = rate·span (McKenna and Sheldon 2020).

    Theorem.  P(j) ≤ exp(rate·span)·P′(j) for neighbours.
    Proof.    Its law is that of the greatest score_i + E_i, E_i independent exponentials of mean
              1/rate: the best candidate's sum is at least the best score b, score_i + E_i > b has
              the coin's probability, and given so the excesses over b are alike, hence a uniform
              one is greatest. j wins iff E_j > t, t = max over i ≠ j of score_i + E_i − score_j;
              a neighbour raises t by at most span; P(E > t + span) ≥ exp(−rate·span)·P(E > t).
    Checked.  tests/claims/test_selection.py::test_permute_and_flip_keeps_epsilon
    """
    return (mechanism.rate * mechanism.sensitivity.span,), ()


def noisy_max_parts(mechanism: NoisyMax) -> Parts:
    """Pure ε = span/spread.

    Theorem.  P(j) ≤ exp(span/spread)·P′(j) for neighbours, ties included.
    Proof.    Given the noise of all others, j wins iff its own noise N ≥ t, with the whole number
              t = max(1 + max over i < j of score_i + N_i, max over i > j of
              score_i + N_i) − score_j: earlier ones win ties. A neighbour raises t by a whole
              number ≤ span, and P(N ≥ t + c) ≥ exp(−c/spread)·P(N ≥ t), because
              P(N = k + c) ≥ exp(−c/spread)·P(N = k).
    Checked.  tests/claims/test_selection.py::test_noisy_max_keeps_epsilon_with_ties
    """
    return (mechanism.sensitivity.span / mechanism.spread,), ()


def top_choices_parts(mechanism: TopChoices) -> Parts:
    """`count` parts of bounded range, or pure, each rate·span.

    Theorem.  The order of choices is an adaptive composition of `count` mechanisms, each an
              exponential choice (permute-and-flip) at this rate.
    Proof.    Given the earlier choices, which both neighbours share, the candidates that are left
              are the same, and so are Δ and span.
    Checked.  tests/claims/test_selection.py::test_top_choices_keep_their_parts
    """
    parts = (mechanism.rate * mechanism.sensitivity.span,) * mechanism.count
    return ((), parts) if mechanism.step == STEPS[0] else (parts, ())


def above_threshold_parts(mechanism: AboveThreshold) -> Parts:
    """Renewed: `positives` pure parts of Δ/threshold_spread + span/query_spread.

    Else one pure part of Δ/threshold_spread + positives·span/query_spread.

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
    first, each = (
        mechanism.sensitivity.value / mechanism.threshold_spread,
        mechanism.sensitivity.span / mechanism.query_spread,
    )
    return (
        (first + each,) * mechanism.positives
        if mechanism.renewed
        else (first + mechanism.positives * each,)
    ), ()
