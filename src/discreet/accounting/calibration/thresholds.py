"""The least thresholds that a δ allows: of undeclared keys, and of propose-test-release."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.guarantees import Guarantee
from discreet.errors import InvalidParameter
from discreet.exact import float_up
from discreet.sensitivity import Rows
from discreet.specs.mechanisms.additive import GaussianNoise, GeometricNoise
from discreet.specs.mechanisms.open_keys import ThresholdedCounts, key_count_sensitivity
from discreet.trusted.losses.pricing import spend_box


def thresholded_counts(sensitivity: Rows, spend: Guarantee, delta: Fraction) -> ThresholdedCounts:
    """Noise that costs no more than `spend` (geometric if it is pure, else Gaussian) and the least
    threshold whose δ is at most `delta`.
    """
    if not 0 < delta < 1:
        raise InvalidParameter(
            "delta=",
            "it is not above 0 and below 1",
            "it bounds the probability that a key is shown which one unit alone holds",
            "pass for example delta=1e-8",
        )
    box, (l1, l2) = spend_box(spend, delta), key_count_sensitivity(sensitivity)
    noise = (
        geometric_noise(l1, box.epsilon)
        if box.epsilon
        else gaussian_noise(l2, box.mu_squared or 2 * box.rho)
    )
    return ThresholdedCounts(sensitivity, noise, key_threshold(noise, sensitivity.rows, delta))


def key_threshold(noise: GaussianNoise | GeometricNoise, rows: int, delta: Fraction) -> int:
    """The least threshold (in grid steps) at which the δ of keys is certainly at most `delta`."""
    from discreet.trusted.extensions.open_keys.loss import failure_bounds

    none = rows << noise.refinement  # no threshold is allowed here, and δ is about ½

    def enough(width: int) -> bool:
        return float_up(failure_bounds(noise, none + width, rows)[1]) <= delta

    return none + _least(enough)


def proposal_threshold(epsilon: Fraction, delta: Fraction) -> int:
    """The least t ≥ 1 with P(G ≥ t) ≤ δ, G the two-sided geometric noise of an ε-DP test."""
    from discreet.trusted.extensions.data_dependent.loss import geometric_tail

    return _least(lambda threshold: geometric_tail(epsilon, threshold) <= delta)


def _least(enough: Callable[[int], bool]) -> int:
    """The least whole number of 1 or more that is enough; every greater one is."""
    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
