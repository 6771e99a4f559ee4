"""Counts of keys that nobody declared: noise on every key that some row holds, and only noisy
counts above a threshold are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.sensitivity import L1, L2, Rows, Sensitivity, sensitivity_from_dict
from discreet.specs.mechanisms.additive import GaussianNoise, GeometricNoise


def key_count_sensitivity(rows: Rows) -> tuple[L1, L2]:
    """How far the counts of all keys move together, in ℓ₁ and ℓ₂; a key that is absent has count 0.

    Theorem.  k and k if rows come or go, 2k and √2·k otherwise, k = `rows.rows`.
    Proof.    k rows are a vector of counts ≥ 0 of sum k, so of ℓ₁ norm k and ℓ₂ norm at most k.
              Where a ≥ 0 goes and b ≥ 0 comes, ‖b − a‖₁ ≤ 2k and ‖b − a‖₂² = ‖a‖² + ‖b‖² − 2a·b ≤
              2k².
    Checked.  tests/claims/test_open_keys.py::test_neighbouring_key_counts_differ_as_stated
    """
    k, sides = rows.rows, 1 if rows.change == "added or removed" else 2
    return L1(Fraction(sides * k)), L2(Fraction(sides * k * k))


@plain.kept()
@dataclass(frozen=True, slots=True)
class ThresholdedCounts:
    """Count + noise for every key that is present, shown if it is at least `threshold` (in grid
    steps of the noise), in the order of the keys' texts.

    Of keys that are not shown nothing leaves: neither their names, nor how many they are, nor how
    many rows they hold. The theorem, with the probability δ that it is about, is in
    trusted/extensions/open_keys/loss.py.
    """

    sensitivity: Rows
    noise: GaussianNoise | GeometricNoise
    threshold: int
    kind: ClassVar[str] = "thresholded counts"
    reads: ClassVar[str] = "keys"

    def __post_init__(self) -> None:
        if not isinstance(self.sensitivity, Rows) or type(self.noise) not in (
            GaussianNoise,
            GeometricNoise,
        ):
            raise _bad(
                "it needs Gaussian or geometric noise, and the rows that one unit can change"
            )
        if self.noise.sensitivity not in key_count_sensitivity(self.sensitivity):
            raise _bad("its noise is not calibrated to the counts of keys")
        if (
            isinstance(self.threshold, bool)
            or not isinstance(self.threshold, int)
            or self.threshold <= self.sensitivity.rows << self.noise.refinement
        ):
            raise _bad("its threshold does not lie above the rows of one unit")

    @property
    def least_shown(self) -> Fraction:
        """The threshold as a number of rows."""
        return self.threshold * self.noise.step

    @property
    def step(self) -> Fraction:
        """One grid step of a shown count, in rows."""
        return self.noise.step

    @property
    def variance(self) -> float:
        """Variance of the noise, in squared rows, before the threshold."""
        return self.noise.variance

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "noise": self.noise.to_dict(),
            "threshold": self.threshold,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> ThresholdedCounts:
        law = {GaussianNoise.kind: GaussianNoise, GeometricNoise.kind: GeometricNoise}[
            record["noise"]["kind"]
        ]
        rows: Sensitivity = sensitivity_from_dict(record["sensitivity"])
        return cls(
            rows,  # type: ignore[arg-type]
            law.from_dict(record["noise"]),  # type: ignore[arg-type]
            record["threshold"],
        )


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "ThresholdedCounts",
        found,
        "the sampler and the accountant both read this object",
        "build it with discreet.accounting.thresholded_counts",
    )
