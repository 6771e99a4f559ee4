"""What one report of local privacy costs: the loss of one record, replaced by any other."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.enclosure import enclose, upper_float
from discreet.specs.mechanisms.local import (
    GaussianResponse,
    LaplaceResponse,
    LocalSpec,
    TwoCoinResponse,
)


def local_parts(spec: LocalSpec) -> dict[str, Any]:
    """The fields of a report's Loss.

    Theorem.  Each spec is ε-DP for its ε (two coins: ln 3, rounded up), or μ-GDP, for one record
              replaced by any other (reference.md L1, L2, B2, B5).
    Proof.    In the docstring of each spec of specs/mechanisms/local.py.
    Checked.  tests/claims/test_local_reports.py
    """
    if isinstance(spec, GaussianResponse):
        return {"mu_squared": spec.noise.sensitivity.squared / spec.noise.spread**2}  # type: ignore[union-attr]
    if isinstance(spec, LaplaceResponse):
        return {"pure": (spec.noise.sensitivity.value / spec.noise.spread,)}  # type: ignore[union-attr]
    if isinstance(spec, TwoCoinResponse):
        return {"pure": (Fraction(upper_float(enclose(lambda ball: ball(Fraction(3)).log()))),)}
    return {"pure": (spec.epsilon,)}
