"""Calibration of counts of undeclared keys: the least noise that a spend allows,
then the least threshold that its δ allows.
"""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.guarantees import Guarantee
from discreet.errors import InvalidParameter
from discreet.sensitivity import Rows
from discreet.specs.mechanisms.open_keys import ThresholdedCounts, key_count_sensitivity
from discreet.trusted.extensions.open_keys.loss import least_threshold
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
    return ThresholdedCounts(sensitivity, noise, least_threshold(noise, sensitivity.rows, delta))
