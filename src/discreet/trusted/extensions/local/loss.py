"""What one report of local privacy costs: the loss of one record, replaced by any other."""

from __future__ import annotations

from fractions import Fraction

from discreet.enclosure import enclose, upper_float
from discreet.specs.mechanisms.local import (
    GaussianResponse,
    LaplaceResponse,
    LocalSpec,
    TwoCoinResponse,
)
from discreet.trusted.losses.loss import Loss
from discreet.trusted.losses.theorems import gaussian_loss, pure_loss


def report_loss(spec: LocalSpec) -> Loss:
    """The loss of one report.

    Theorem.  Each spec is ε-DP for its ε (two coins: ln 3, rounded up), or μ-GDP, for one record
              replaced by any other (reference.md L1, L2, B2, B5).
    Proof.    In the docstring of each spec of specs/mechanisms/local.py.
    Checked.  tests/claims/test_local_reports.py
    """
    if isinstance(spec, GaussianResponse):
        return gaussian_loss(spec.noise)
    if isinstance(spec, LaplaceResponse):
        return pure_loss(spec.noise)
    if isinstance(spec, TwoCoinResponse):
        return Loss(pure=(Fraction(upper_float(enclose(lambda ball: ball(3).log()))),))
    return Loss(pure=(spec.epsilon,))
