"""Pricing a mechanism of the core loads neither extensions nor loss distributions."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from fractions import Fraction
from discreet.accounting.calibration.additive import gaussian_noise
from discreet.accounting.guarantees import GDP
from discreet.sensitivity import L2
from discreet.trusted.losses.losses import loss_of
from discreet.trusted.losses.pricing import price_of, spend_box

noise = gaussian_noise(L2(Fraction(1)), Fraction(1, 4))
price_of((noise,), box=spend_box(GDP(1)))
seen = ("discreet.trusted.extensions", "discreet.accounting.loss_distributions",
        "discreet.accounting.pld", "discreet.accounting.least_price")
print(sorted(name for name in sys.modules if name.startswith(seen)))
"""


def test_pricing_gaussian_noise_loads_no_extension_and_no_loss_distribution() -> None:
    found = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
    ).stdout
    assert found.strip() == "[]"
