"""The sharpest reusable holdout that a spend allows: one half for deciding what is a surprise, one
half for answering it.

What adds up is shared (ε, ρ or μ²), so that many answers under a Gaussian or zCDP spend have noise
that grows with the square root of their number.
"""

from __future__ import annotations

from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.calibration.selection import above_threshold
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.exact import rational
from discreet.sensitivity import L1, L2, LInf
from discreet.specs.holdout.thresholdout import Noise, Thresholdout

# of a spend: as much for deciding as for answering, as in the published mechanism; where the
# number of rows is private, a little for that
SHARES = {"threshold": 10, "answers": 10}
ROWS_SHARE = {"rows": 1}


def thresholdout(
    sensitivity: LInf, spend: Guarantee, *, answers: int, rows_are_public: bool
) -> Thresholdout:
    """A threshold for so many surprises, noise for each of their answers, and noise for the number
    of rows where that is private; all of them together cost no more than the spend.
    """
    shares = spend.split(SHARES if rows_are_public else SHARES | ROWS_SHARE)
    above = above_threshold(sensitivity, shares["threshold"], threshold=0, positives=answers)
    return Thresholdout(
        above,
        _noise(sensitivity, shares["answers"], answers),
        None if rows_are_public else _noise(sensitivity, shares["rows"], 1),
    )


def _noise(sensitivity: LInf, spend: Guarantee, times: int) -> Noise:
    """Noise of which `times` numbers cost no more than a spend."""
    moved = sensitivity.value
    if isinstance(spend, PureDP):
        return geometric_noise(L1(moved), rational(spend.epsilon, "epsilon") / times)
    return gaussian_noise(L2(moved**2), spend_mu_squared(spend) / times)
