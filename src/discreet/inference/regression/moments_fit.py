"""Least squares from one noisy second-moment matrix:
the result of ``dp.ols(…, method="moments")`` (regression.md §5).

With u = (x, y) scaled to −1 … 1, M̃ = mean(uuᵀ) + E and E symmetric noise of standard deviation s,
b = M̃ₓₓ⁻¹m̃ₓᵧ and

    V = σ²M⁻¹/n + (s²/2)·M⁻¹[(1+‖b‖²)I + bbᵀ]M⁻¹ + (s²/2)·M⁻¹(tr(T)I + T)M⁻¹,   M = M̃ₓₓ,
        T the second term

The second term is the noise at first order, the third what the noise of M does to it. Eigenvalues
of M̃ₓₓ are floored at s√(2p)/2.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

from discreet.accounting import statement
from discreet.exact import decimal_text
from discreet.inference.regression import decode as decode
from discreet.inference.regression.bases import SecondMoments, base_notes
from discreet.inference.regression.covariance import Estimate
from discreet.inference.regression.curvature import Shrunk, floored, symmetric_draws
from discreet.inference.regression.facts import LeastSquares, facts_from_dict, facts_to_dict
from discreet.inference.regression.fit import RegressionResult
from discreet.inference.regression.summary import closing_notes, filter_notes, fit_summary
from discreet.inference.results.laws import Array
from discreet.inference.results.stored import fit_from_json, fit_to_json
from discreet.inference.results.summary import Summary, number_text
from discreet.trusted.release import Release

FORMAT, VERSION = "discreet-moments-fit", 1
FLOOR = 0.5  # of the spectral radius of the noise
# where a direction is lost in noise, its second moment may be this much smaller than the floor
LOST = 25.0
LEAST_VARIANCE = 2.0**-32  # of residuals, in half-ranges of the response, squared


@dataclass(frozen=True, repr=False)
class MomentsResult(RegressionResult):
    """A least-squares fit from released second moments; the verbs are those of every regression.

    Validity.   Independent rows and errors of equal variance (homoskedastic): fourth moments are
                not released, so there is no sandwich. Values outside a declared range count as the
                nearest bound. Exact least squares otherwise: nothing is clipped, no row is
                weighted.
    Reference.  regression.md §5; reference.md G5 for the noise.
    """

    @functools.cached_property
    def fitted(self) -> Estimate:
        """Estimate and covariance in the scaled columns."""
        reading, p, rows = self._reading, self.facts.columns, self.rows
        noise, matrix = reading.noise, reading.value
        floor = FLOOR * noise * (math.sqrt(2 * p) if p > 1 else 1.0)
        released = matrix[:p, :p]
        values, vectors = np.linalg.eigh(released)
        inner = floored(released, floor)
        inverse: Array = np.linalg.inv(inner).astype(np.float64)
        beta = np.asarray(inverse @ matrix[:p, p])
        first = _first_order(inverse, beta, noise)
        variance = self._residual_variance(beta, first)
        sampling = self.releases[0].neighbors.rows * variance * inverse / rows
        further = noise**2 / 2 * inverse @ (np.trace(first) * np.eye(p) + first) @ inverse
        lost = vectors[:, values < floor]
        further = further + LOST * max(float(matrix[p, p]), noise) / floor * (lost @ lost.T)
        return Estimate(
            beta=beta,
            back=np.eye(p),
            sampling=sampling,
            noise=first,
            further=further,
            redraws=self._redrawn(inner, beta, variance, floor),
            converged=True,
            resolved=lost.size == 0,
            curvature=Shrunk(inner, float(np.trace(inner)) / p, np.ones((p, p)), floor, noise),
            scores=Shrunk(variance * inner, variance, np.ones((p, p)), 0.0, 0.0),
        )

    def _residual_variance(self, beta: Array, first: Array) -> float:
        """σ² in squared half-ranges: (−b, 1)M̃(−b, 1)ᵀ, plus what b took from it by following the
        noise, at least half the noise of that number.
        """
        matrix, p, rows = self._reading.value, self.facts.columns, self.rows
        along = np.append(-beta, 1.0)
        seen = float(along @ matrix @ along) + float(np.trace(matrix[:p, :p] @ first))
        return max(
            seen * rows / max(rows - p, 1.0),
            self._reading.noise * float(along @ along) / 2,
            LEAST_VARIANCE,
        )

    def _redrawn(self, inner: Array, beta: Array, variance: float, floor: float) -> Array:
        """The leading covariance that other noise on the second moments would have given."""
        noise = self._reading.noise
        inverses: Array = np.asarray(
            np.linalg.inv(floored(inner + noise * symmetric_draws(len(inner), "moments"), floor)),
            dtype=np.float64,
        )
        return np.asarray(
            self.releases[0].neighbors.rows * variance * inverses / self.rows
            + _first_order(inverses, beta, noise)
        )

    @property
    def _reading(self) -> decode.Reading:
        return decode.read_gram(self._one("moments 1"), self.facts.radius, self.rows)

    @property
    def scale(self) -> float:
        """The residuals' standard deviation, in the response's own units."""
        return self.relative_scale * self._half

    @property
    def relative_scale(self) -> float:
        """The residuals' standard deviation, in half-ranges of the response."""
        return math.sqrt(self.fitted.scores.level)

    @property
    def family(self) -> LeastSquares:
        """Least squares."""
        return LeastSquares()

    @property
    def resolved(self) -> dict[str, bool]:
        """For each model column, whether its second moment stands clear of the noise."""
        reading = self._reading
        return {
            column.name: bool(reading.value[place, place] > 3 * reading.noise)
            for place, column in enumerate(self._columns)
        }

    @property
    def level_moments(self) -> SecondMoments:
        """The second moments of columns and response, in which every row has its whole weight."""
        return SecondMoments(
            self._columns, np.eye(self.facts.columns + 1), self._reading, self.facts.radius
        )

    @property
    def condition_number(self) -> float:
        """Of the columns' second moment as released and floored, each column scaled to 1."""
        matrix = self.fitted.curvature.matrix
        root = np.sqrt(np.diag(matrix))
        values = np.linalg.eigvalsh(matrix / np.outer(root, root))
        return float(values[-1] / max(values[0], 1e-12))

    @property
    def trajectory(self) -> Array:
        """There are no iterates: the estimate alone."""
        return np.asarray(self.params)[None, :]

    def summary(self, level: float = 0.95) -> Summary:
        """A table to print: coefficients, both parts of their errors, tests and intervals."""
        shown, first = fit_summary(self, level), self.releases[0]
        notes = [
            (
                f"Spent {statement.asked(self.facts.spend)} in {len(self.releases)} "
                f"release{'s' if len(self.releases) > 1 else ''}, neighbours {first.neighbors}; "
                "noise % is the share of the variance that privacy cost."
            ),
            (
                f"From one matrix of second moments; {self.rows:.0f} rows; residual s.d. "
                f"{number_text(self.scale, self.scale / 100)}; condition number "
                f"{self.condition_number:.3g}; noise of a second moment "
                f"{decimal_text(self._reading.noise, 2)}."
            ),
            "For errors of equal variance (homoskedastic): standard errors are not a sandwich.",
        ]
        notes += [*filter_notes(self), *base_notes(self)]
        if not self.fitted.resolved:
            notes.append(
                "NOT RESOLVED: some direction of the columns is lost in noise; its coefficients "
                "have wide intervals. dp.ols without method= needs far fewer rows."
            )
        return replace(
            shown,
            title=f"Private least squares (moments) of {first.description.column}",
            notes=(*notes, *closing_notes(self)),
        )

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return fit_to_json(self.releases, facts_to_dict(self.facts), layout=(FORMAT, VERSION))

    @property
    def _last_gradient(self) -> Release:
        return self._one("moments 1")


def _first_order(inverse: Array, beta: Array, noise: float) -> Array:
    """(s²/2)·M⁻¹[(1+‖b‖²)I + bbᵀ]M⁻¹, for one M⁻¹ or a stack of them."""
    middle = (1 + float(beta @ beta)) * np.eye(len(beta)) + np.outer(beta, beta)
    return np.asarray(noise**2 / 2 * inverse @ middle @ inverse)


def moments_from_json(text: str) -> MomentsResult | None:
    """The result that `MomentsResult.to_json` wrote; None where the text is something else."""
    return fit_from_json(text, MomentsResult, facts_from_dict, layout=(FORMAT, VERSION))
