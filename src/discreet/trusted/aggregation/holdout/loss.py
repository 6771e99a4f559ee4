"""What a reusable holdout costs: its noisy threshold, each of its answers, and the noisy number of
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.specs.holdout.thresholdout import Thresholdout
from discreet.specs.mechanisms.additive import GaussianNoise, GeometricNoise
from discreet.trusted.losses.loss import Loss
from discreet.trusted.losses.theorems import above_threshold_loss, gaussian_loss, pure_loss

_THEOREMS: dict[type[Any], Callable[[Any], Loss]] = {
    GaussianNoise: gaussian_loss,
    GeometricNoise: pure_loss,
}


def thresholdout_loss(mechanism: Thresholdout) -> Loss:
    """Theorem.  The answers to any questions, each chosen after the answers before it, are the
              composition of AboveThreshold, of `positives` noisy numbers and of a noisy count.
    Proof.    The threshold's run is an interactive mechanism, hence a post-processing of
              randomised responses drawn at its opening (docs/theory/selection.md). Beside it stand
              a noisy count, once, and after each 1 a noisy number of a question that all answers
              before it choose: at most `positives` of them, each of the Δ that its noise is
              calibrated to (specs/holdout/thresholdout.py).
    Checked.  tests/claims/test_holdout.py::test_all_answers_keep_epsilon
    """
    loss = above_threshold_loss(mechanism.above)
    for _ in range(mechanism.above.positives):
        loss += _noise_loss(mechanism.answer)
    return loss if mechanism.count is None else loss + _noise_loss(mechanism.count)


def _noise_loss(noise: GaussianNoise | GeometricNoise) -> Loss:
    return _THEOREMS[type(noise)](noise)
