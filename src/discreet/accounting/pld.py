"""Privacy loss distributions: certified (ε, δ) of compositions of different mechanisms,
from above and from below.
"""

from discreet.accounting.loss_distributions.build import (
    approx_pld,
    discrete_pld,
    exponential_pld,
    fixed_size_subsampled,
    gaussian_pld,
    geometric_pld,
    laplace_pld,
    pld_of,
    poisson_subsampled,
    randomized_response_pld,
)
from discreet.accounting.loss_distributions.calibration import calibrate_sigma
from discreet.accounting.loss_distributions.curve import PLD, compose_all

__all__ = [
    "PLD",
    "approx_pld",
    "calibrate_sigma",
    "compose_all",
    "discrete_pld",
    "exponential_pld",
    "fixed_size_subsampled",
    "gaussian_pld",
    "geometric_pld",
    "laplace_pld",
    "pld_of",
    "poisson_subsampled",
    "randomized_response_pld",
]
