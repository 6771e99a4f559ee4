"""The result of a regression of which coefficients alone were released: pure SGD."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import plain
from discreet.accounting import statement
from discreet.errors import NoTheorem
from discreet.inference.regression import decode as decode
from discreet.inference.regression.classical import SOLVERS, ClassicalFacts, ClassicalResult
from discreet.inference.regression.covariance import Estimate
from discreet.inference.regression.facts import facts_as
from discreet.inference.regression.fit import RegressionResult, mean_response
from discreet.inference.regression.new_rows import bases_by_text, new_rows
from discreet.inference.regression.summary import TITLES, clip_notes, closing_notes, filter_notes
from discreet.inference.results.laws import Array
from discreet.inference.results.named import NamedVector
from discreet.inference.results.stored import fit_from_json, fit_to_json
from discreet.inference.results.summary import Summary, number_text

FORMAT, VERSION = "discreet-point-fit", 1
NO_INTERVALS = "Intervals: none, because no curvature was released."
DIGITS = 1e-3  # of a coefficient, that a table shows


@dataclass(frozen=True, repr=False)
class PointFit(ClassicalResult):
    """Coefficients without standard errors.

    Method.    The mean of the last half of the iterates of a noisy descent.
    Validity.  A point estimate: nothing that was released tells how far off it is. Verbs that need
               a covariance are refused and say so.
    """

    @functools.cached_property
    def fitted(self) -> Estimate:
        """Refused: there is no covariance."""
        raise NoTheorem(
            "standard errors, intervals and tests of this fit",
            "no curvature was released",
            "Laplace noise on a matrix would grow with the number of its entries",
            "spend dp.GDP(mu), dp.ZCDP(rho) or dp.ApproxDP(epsilon, delta) for a fit with them",
        )

    @property
    def params(self) -> NamedVector:
        """Coefficients on the user's scale."""
        return self._named(self._scale[1] @ self.beta + self._scale[2])

    @property
    def beta(self) -> Array:
        """Coefficients of the columns as their declared ranges scale them."""
        return np.asarray(self._sgd_numbers[-1])

    @property
    def scale(self) -> float:
        """The public scale that residuals are clipped by, in the response's own units."""
        return decode.scale_at(self._last_gradient) * self._half

    @property
    def trajectory(self) -> Array:
        """The iterates, on the user's scale; the last row is the estimate."""
        matrix, shift = self._scale[1:]
        path = [decode.coefficients_at(self._last_gradient), *self._sgd_numbers]
        return np.array([matrix @ beta + shift for beta in path])

    @plain.called
    def predict(self, rows: Any, level: float = 0.95) -> Array:
        """The mean response at given values of the user's columns, as `RegressionResult.predict`
        reads them; `level` has nothing to set.
        """
        along = new_rows(rows, self.names, bases_by_text(self.bases, self._columns))
        return mean_response(self.family, along @ np.asarray(self.params))

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Tidy rows, one a coefficient."""
        return point_records(self)

    def summary(self, level: float = 0.95) -> Summary:
        """A table to print: the coefficients, and how the fit went."""
        return point_summary(self, "Private regression", self._notes())

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: coefficients, what they cost, what was asked."""
        return point_lines(self.summary())

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return fit_to_json(self.releases, self.facts.to_dict(), layout=(FORMAT, VERSION))

    def _notes(self) -> list[str]:
        facts, first = self.facts, self.releases[0]
        known = first.public_rows is not None and not self._steps("count")
        spent = (
            f"Spent {statement.asked(facts.spend)} in {len(self.releases)} releases, neighbours "
            f"{first.neighbors}."
        )
        how = (
            f"By {SOLVERS[facts.solver]} with Laplace noise, {facts.steps} steps over batches of "
            f"about {facts.batch}; {self.rows:.0f} rows ({'public' if known else 'noisy count'})."
        )
        notes = [NO_INTERVALS, spent, how]
        return [*notes, *filter_notes(self), *clip_notes(self), *closing_notes(self)]


def point_fit_from_json(text: str) -> PointFit | None:
    """The result that `PointFit.to_json` wrote; None where the text is something else."""
    read = functools.partial(facts_as, ClassicalFacts)
    return fit_from_json(text, PointFit, read, layout=(FORMAT, VERSION))


# ── what a fit without a covariance shows ─────────────────────────────────────────────────────────


def point_records(fit: RegressionResult) -> list[dict[str, Any]]:
    """Tidy rows, one a coefficient."""
    return [
        {"coefficient": name, "estimate": float(value)}
        for name, value in zip(fit.names, fit.params, strict=True)
    ]


def point_summary(fit: RegressionResult, otherwise: str, notes: Sequence[str]) -> Summary:
    """A table of the coefficients; `otherwise` is the title where the estimator has none."""
    rows = tuple(
        (record["coefficient"], number_text(value, abs(value) * DIGITS or DIGITS))
        for record in point_records(fit)
        for value in [record["estimate"]]
    )
    response = fit.releases[-1].description.column
    title = f"{TITLES.get(fit.facts.estimator, otherwise)} of {response}"
    return Summary(title, ("", "coef"), rows, tuple(notes))


def point_lines(told: Summary) -> tuple[str, str, str]:
    """What `repr` shows: coefficients, what they cost, what was asked."""
    shown = "; ".join(f"{name} {value}" for name, value in told.rows)
    return f"{told.title}: {shown}", told.notes[0], told.notes[1]
