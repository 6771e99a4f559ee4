"""The result of a regression by one of the classical solvers: the same words as `RegressionResult`,
with their own noise propagation.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee
from discreet.errors import NoTheorem
from discreet.exact import decimal_text
from discreet.inference.regression import decode as decode
from discreet.inference.regression.bases import SecondMoments, base_notes
from discreet.inference.regression.classical_covariance import (
    Path,
    Released,
    lecture_correction,
    lecture_estimate,
    pooled,
)
from discreet.inference.regression.covariance import Estimate
from discreet.inference.regression.facts import facts_as, facts_to_dict
from discreet.inference.regression.fit import RegressionResult
from discreet.inference.regression.summary import clip_notes, closing_notes, filter_notes
from discreet.inference.results.decode import as_kind
from discreet.inference.results.laws import Array
from discreet.inference.results.results import checked_level
from discreet.inference.results.stored import fit_from_json, fit_to_json
from discreet.inference.results.summary import Summary
from discreet.specs.estimating.batches import BETA_BITS, SUM_BITS
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.trusted.release import Release

FORMAT, VERSION = "discreet-lecture-fit", 1
METRIC_FIELDS = ("metric_radius", "first_radius", "least_moments")
SOLVERS = {
    "gradient": "noisy gradient descent",
    "newton": "noisy Newton steps",
    "sgd": "noisy stochastic gradient descent",
}


@dataclass(frozen=True, slots=True)
class ClassicalFacts:
    """Public facts of a fit: the solver, its step η (times σ; Newton: the damping) and number of
    steps, and as in `FitFacts`.

    batch      the expected or fixed number of rows in a batch (sgd), else 0
    averaged   how many of the last iterates the estimate is the mean of (sgd), else 0
    metric_radius, first_radius, least_moments
               as in `FitFacts`, where columns were made white; else 0, 0 and none
    """

    estimator: str
    spend: Guarantee
    solver: str
    step: float
    steps: int
    columns: int
    radius: float
    noise_index: float
    response_center: float
    response_half: float
    delta: float = 0.0
    batch: int = 0
    averaged: int = 0
    metric_radius: float = 0.0
    first_radius: float = 0.0
    least_moments: tuple[float, ...] = ()
    bases: tuple[tuple[str, str], ...] = ()

    @property
    def white(self) -> bool:
        """Whether the steps were taken in columns that a learnt metric made white."""
        return self.metric_radius > 0

    def to_dict(self) -> dict[str, Any]:
        return facts_to_dict(self, *(() if self.white else METRIC_FIELDS))


@dataclass(frozen=True, repr=False)
class ClassicalResult(RegressionResult):
    """A private regression by noisy gradient descent, noisy Newton or noisy SGD.

    Verbs are those of `RegressionResult`.

    Method.    The estimate is the solver's own: the last iterate, or the mean of the last ones
               (sgd). Its variance is the private sandwich (H3) and the exact propagation of every
               step's noise (H4, H5, sgd: `lecture_covariance`); what may be left of the start is
               added.
    Validity.  As `RegressionResult`; and the equation is nearly linear over the last steps. Where
               the curvature does not stand clear of its noise intervals are wide; where the steps
               did not suffice there are none: ends and standard errors are infinite, and the
               summary says so.
    """

    facts: ClassicalFacts  # type: ignore[assignment]

    @functools.cached_property
    def fitted(self) -> Estimate:
        """Estimate and covariance in the scaled columns."""
        return lecture_estimate(self._path, self._released, self._back)

    @property
    def trajectory(self) -> Array:
        """The iterates, on the user's scale; the last row is the estimate."""
        matrix, shift = self._scale[1:]
        size = len(self._columns)
        path = [
            decode.coefficients_at(release)[:size]
            for release in self._steps("scale", "burn-in", "gradient")
        ]
        if self.facts.solver == "sgd":
            path += [decode.coefficients_at(self._last_gradient), *(self._sgd_numbers[:-1])]
        elif path:
            path.append(self._end)
        ends = [] if self.facts.solver != "sgd" else [self._end]
        return np.array([matrix @ beta + shift for beta in (*path, *ends)])

    @property
    def scale(self) -> float:
        """The residuals' scale σ, in the response's own units; 1 for logistic and Poisson."""
        return decode.scale_at(self._curvatures[-1]) * self._half

    @property
    def resolved(self) -> dict[str, bool]:
        """For each model column, whether its spread (sgd: its curvature) stood clear of noise."""
        if self.facts.white:
            return super().resolved
        reading = self._released.curvature
        return {
            column.name: bool(value >= 2 * reading.noise)
            for column, value in zip(self._columns, np.diag(reading.value), strict=True)
        }

    @property
    def condition_number(self) -> float:
        """Of the columns' second moment, each column scaled to 1; sgd: of the released curvature in
        the scaled columns, which is what it sees.
        """
        if self.facts.white:
            return super().condition_number
        values = np.linalg.eigvalsh(self.fitted.curvature.matrix)
        return float(values[-1] / values[0])

    @property
    def level_moments(self) -> SecondMoments | None:
        """The metric's last round, where one was learnt; else the curvature in the scaled columns,
        which is the same for most rows of a residual family (None for others, whose rows differ).
        """
        if self.facts.white:
            return super().level_moments
        if not self.family.residual:
            return None
        matrix = decode.metric_matrix(self._curvatures[-1], self.facts.radius)
        return SecondMoments(self._columns, matrix, self._released.curvature, self.facts.radius)

    def lecture_interval(self, level: float = 0.95) -> Array:
        """NOT for use: the intervals that the lectures print (reference.md H4, H5, "Lectures say"),
        which under-cover. A contrast for benchmarks and teaching.
        """
        if self.facts.solver == "sgd":
            raise NoTheorem(
                "the lectures' interval of an sgd fit",
                "the lectures give none",
                "H4 and H5 are about full gradients",
                "use confidence_interval()",
            )
        along = self._scale[1] @ self._back
        covariance = lecture_correction(self._path, self._released)
        variances = np.einsum("ij,jk,ik->i", along, covariance, along)
        half = float(ndtri(0.5 + checked_level(level) / 2)) * np.sqrt(variances)
        return np.stack([self.params - half, self.params + half], axis=1)

    def summary(self, level: float = 0.95) -> Summary:
        """A table to print: coefficients, both parts of their errors, tests and intervals,
        and how the fit went.
        """
        from discreet.inference.regression.summary import fit_summary

        told = dataclasses.replace(
            fit_summary(self, checked_level(level)), notes=tuple(self._notes())
        )
        if self.converged:
            return told
        # an interval about a point that the start still shows in would not hold
        without = [
            place
            for place, name in enumerate(told.header)
            if name in ("z", "p") or name.endswith("interval")
        ]
        rows = (
            tuple("–" if place in without else cell for place, cell in enumerate(row))
            for row in told.rows
        )
        return dataclasses.replace(told, rows=tuple(rows))

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return fit_to_json(self.releases, self.facts.to_dict(), layout=(FORMAT, VERSION))

    # ── read from the releases ────────────────────────────────────────────────────────────────────

    @property
    def _last_gradient(self) -> Release:
        return self._steps("sgd" if self.facts.solver == "sgd" else "gradient")[-1]

    @property
    def _curvatures(self) -> list[Release]:
        return self._steps("curvature")

    @functools.cached_property
    def _sgd_numbers(self) -> Array:
        """Shown iterates and, last, the mean of the last ones (sgd)."""
        numbers = (
            np.array([float(value) for value in self._last_gradient.integers]) / 2.0**BETA_BITS
        )
        return numbers.reshape(-1, len(self._columns))

    @property
    def _end(self) -> Array:
        """The coefficients at which the matrices were released: the estimate, as it was rounded."""
        return decode.coefficients_at(self._curvatures[-1])[: len(self._columns)]

    @functools.cached_property
    def _released(self) -> Released:
        radius, rows = self.facts.radius, self.rows
        curvature, scores = self._curvatures[-1], self._one("scores 1")
        largest = (decode.curvature_bound(curvature), decode.curvature_bound(scores))
        return Released(
            # the first was taken at the start, whose scale is wide
            pooled(self._curvature_readings[1:], residual=True)
            if self.facts.white and self.family.residual and len(self._curvatures) > 1
            else self._curvature_readings[-1],
            decode.read_gram(scores, radius, rows),
            largest,
            decode.scale_at(curvature),
            rows,
            decode.cluster_of(scores),
            self.facts.white,
        )

    @functools.cached_property
    def _back(self) -> Array:
        """Maps θ, the coefficients of the columns as the solver scales them, to β."""
        size = len(self._columns)
        if not self.facts.white:
            return np.eye(size)
        return decode.metric_matrix(self._curvatures[-1], self.facts.radius)[:, :size].T

    @functools.cached_property
    def _path(self) -> Path:
        facts = self.facts
        if facts.solver == "sgd":
            mechanism = as_kind(self._last_gradient.mechanism, NoisySGD)
            noise = np.sqrt(mechanism.variance) / 2.0**SUM_BITS / facts.batch
            return Path(
                "sgd",
                facts.step,
                np.array([decode.scale_at(self._last_gradient)]),
                np.array([noise]),
                decode.coefficients_at(self._last_gradient),
                self._sgd_numbers[-1],
                np.zeros(0),
                facts.steps,
                facts.averaged,
                facts.batch,
                min(1.0, facts.batch / self.rows),
            )
        gradients = self._steps("gradient")
        readings = [decode.read_gradient(release, facts.radius, self.rows) for release in gradients]
        start = decode.coefficients_at(gradients[0])[: len(self._columns)]
        return Path(
            facts.solver,
            facts.step,
            np.array([decode.scale_at(release) for release in gradients]),
            np.array([reading.noise for reading in readings]),
            np.asarray(np.linalg.solve(self._back, start), dtype=np.float64),
            np.asarray(np.linalg.solve(self._back, self._end), dtype=np.float64),
            np.array([self._matrix_noise(place) for place in range(len(self._curvatures) - 1)]),
            last=readings[-1].value if facts.white else None,
        )

    def _matrix_noise(self, place: int) -> float:
        """The noise of the curvature that a step was taken with; shrinking it leaves no larger
        error.
        """
        if not self.facts.white:
            return self._curvature_readings[place].noise
        return pooled(self._curvature_readings[: place + 1], residual=self.family.residual).noise

    @functools.cached_property
    def _curvature_readings(self) -> list[decode.Reading]:
        return [
            decode.read_gram(release, self.facts.radius, self.rows) for release in self._curvatures
        ]

    def _notes(self) -> list[str]:
        facts, first = self.facts, self.releases[0]
        known = first.public_rows is not None and not self._steps("count")
        notes = [
            (
                f"By {SOLVERS[facts.solver]}, {facts.steps} steps; Algorithm A (solver=None) needs "
                "fewer and is more accurate."
            ),
            (
                f"Spent {statement.asked(facts.spend)}"
                f"{f' and δ₀ = {decimal_text(facts.delta)}' if facts.delta else ''} "
                f"in {len(self.releases)} releases, neighbours {first.neighbors}; noise % is the "
                "share of the variance that privacy cost."
            ),
            (
                f"{self.rows:.0f} rows ({'public' if known else 'noisy count'}); condition number "
                f"of the {'' if facts.white else 'scaled '}columns {self.condition_number:.3g}."
            ),
        ]
        notes += [*filter_notes(self), *clip_notes(self), *base_notes(self)]
        if not self.fitted.resolved:
            notes.append(
                "NOT RESOLVED: some curvature is lost in noise; intervals take it as small as it "
                "may be."
            )
        if self.fitted.unbounded:
            notes.append(
                "NOT CONVERGED: the steps did not suffice to forget the start, and nothing that "
                "was released bounds what is left of it. Intervals: none. Use solver=None, or take "
                "more steps."
            )
        return [*notes, *closing_notes(self)]


def classical_from_json(text: str) -> ClassicalResult | None:
    """The result that `ClassicalResult.to_json` wrote; None where the text is something else."""
    read = functools.partial(facts_as, ClassicalFacts)
    return fit_from_json(text, ClassicalResult, read, layout=(FORMAT, VERSION))
