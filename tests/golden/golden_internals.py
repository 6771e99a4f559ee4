"""All imports of the golden tests beside `discreet`, `.client`, `.local`, `.testing`, `.sklearn`.

Documented functions that have no name in `discreet` itself; where their modules move, this file
follows.
"""

from __future__ import annotations

from discreet.accounting.calibration.iterative import (
    gaussian_sigma_for_approx,
    gaussian_sigma_for_zcdp,
    laplace_scale_for_steps,
    largest_rate_for_pure,
)
from discreet.accounting.composition import (
    adaptive_filter_epsilon,
    advanced,
    advanced_dwork_rothblum_vadhan,
    basic,
    optimal,
    to_replace,
)
from discreet.accounting.least_price import least_mu
from discreet.accounting.pld import (
    approx_pld,
    compose_all,
    exponential_pld,
    fixed_size_subsampled,
    gaussian_pld,
    geometric_pld,
    laplace_pld,
    poisson_subsampled,
    randomized_response_pld,
)
from discreet.accounting.renyi.mechanisms import sampled_gaussian_rdp
from discreet.accounting.renyi.rdp import rdp_of, zcdp_of
from discreet.accounting.subsampling import (
    FixedSizeSampling,
    PoissonSampling,
    amplify,
    amplify_renyi,
)
from discreet.cli.commands import app as command_line
from discreet.inference.simulation.bootstrap import parametric_bootstrap, reproduced_set
from discreet.inference.simulation.fiducial import matched_draws
from discreet.inference.simulation.released import released_moments
from discreet.models.uncertified import output_perturbation

__all__ = [
    "FixedSizeSampling",
    "PoissonSampling",
    "adaptive_filter_epsilon",
    "advanced",
    "advanced_dwork_rothblum_vadhan",
    "amplify",
    "amplify_renyi",
    "approx_pld",
    "basic",
    "command_line",
    "compose_all",
    "exponential_pld",
    "fixed_size_subsampled",
    "gaussian_pld",
    "gaussian_sigma_for_approx",
    "gaussian_sigma_for_zcdp",
    "geometric_pld",
    "laplace_pld",
    "laplace_scale_for_steps",
    "largest_rate_for_pure",
    "least_mu",
    "matched_draws",
    "optimal",
    "output_perturbation",
    "parametric_bootstrap",
    "poisson_subsampled",
    "randomized_response_pld",
    "rdp_of",
    "released_moments",
    "reproduced_set",
    "sampled_gaussian_rdp",
    "to_replace",
    "zcdp_of",
]
