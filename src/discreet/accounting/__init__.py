"""Mechanism → guarantee → price: what was promised, and what it costs."""

from discreet.accounting.calibrate import gaussian_noise, geometric_noise, laplace_noise
from discreet.accounting.guarantees import (
    GDP,
    ApproxDP,
    Guarantee,
    PureDP,
    compose,
    guarantee_from_dict,
    spend_mu_squared,
)
from discreet.accounting.pricing import Price, guarantee_of, open_box, price_of, price_of_spend, within_spend
from discreet.accounting.renyi import RDP, ZCDP

__all__ = [
    "ApproxDP", "GDP", "Guarantee", "Price", "PureDP", "RDP", "ZCDP", "compose", "gaussian_noise", "geometric_noise", "guarantee_from_dict", "guarantee_of",
    "laplace_noise", "open_box", "price_of", "price_of_spend", "spend_mu_squared", "within_spend",
]
