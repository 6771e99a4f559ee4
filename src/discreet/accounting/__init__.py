"""Mechanism → guarantee → price: what was promised, and what it costs."""

from discreet.accounting.calibration.additive import bounded_range_within, gaussian_noise, geometric_noise, laplace_noise, pure_within
from discreet.accounting.calibration.open_keys import thresholded_counts
from discreet.accounting.guarantees import (
    GDP,
    ApproxDP,
    Guarantee,
    PureDP,
    compose,
    guarantee_from_dict,
    spend_mu_squared,
)
from discreet.accounting.renyi.rdp import RDP, ZCDP
from discreet.trusted.losses.pricing import Price, guarantee_of, open_box, price_of, price_of_spend, spend_box, within_spend
from discreet.trusted.losses.symmetric import symmetric_noise

__all__ = [
    "ApproxDP", "GDP", "Guarantee", "Price", "PureDP", "RDP", "ZCDP", "bounded_range_within", "compose", "gaussian_noise", "geometric_noise", "guarantee_from_dict", "guarantee_of",
    "laplace_noise", "open_box", "price_of", "price_of_spend", "pure_within", "spend_box", "spend_mu_squared", "thresholded_counts", "symmetric_noise", "within_spend",
]
