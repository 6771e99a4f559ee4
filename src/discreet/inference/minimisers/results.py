"""The result of a perturbed minimiser: coefficients without the pull of the penalty, with intervals
where curvature was released.

In the metric, with H and Q the regularised curvature and score matrices at the estimate, H₁ the
curvature at the minimiser θ̂, Λ the penalty and n the rows,

    θ = θ̂ + v,  v = (nH₁)⁻¹Λθ̂     since Σwψ(θ̂) = −Λθ̂ − b: one Newton step leaves −b alone
    V = H⁻¹(Q/n + s_b²I/n²)H⁻¹ + s_c²MMᵀ + (s₁²/2)H⁻¹(‖v‖²I + vvᵀ)H⁻¹,  M = I + Λ(nH)⁻¹

s_b is the noise b, s_c that on the minimiser itself (all of it for output), s₁ that of H₁; ψ′ of
residual families is divided by σ.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet import plain
from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee
from discreet.errors import NoTheorem
from discreet.exact import decimal_text
from discreet.inference.regression import decode as decode
from discreet.inference.regression.bases import SecondMoments, base_notes
from discreet.inference.regression.covariance import PESSIMISTIC, UNRESOLVED, Estimate, _redrawn
from discreet.inference.regression.curvature import shrunk
from discreet.inference.regression.facts import facts_as, facts_to_dict
from discreet.inference.regression.fit import RegressionResult, mean_response
from discreet.inference.regression.new_rows import new_rows
from discreet.inference.regression.point_fit import (
    NO_INTERVALS,
    point_lines,
    point_records,
    point_summary,
)
from discreet.inference.regression.summary import (
    clip_notes,
    closing_notes,
    filter_notes,
    fit_summary,
)
from discreet.inference.results.decode import as_kind
from discreet.inference.results.held import data_notes
from discreet.inference.results.laws import Array
from discreet.inference.results.named import NamedVector
from discreet.inference.results.results import checked_level
from discreet.inference.results.stored import fit_from_json, fit_to_json
from discreet.inference.results.summary import Summary
from discreet.schema import level_text
from discreet.specs.estimating.components import UNIT, LevelComponent, model_matrix
from discreet.specs.mechanisms.minimiser import NOISE_BITS, PerturbedMinimiser
from discreet.trusted.release import Release

FORMAT, VERSION = "discreet-minimiser-fit", 1
LONGEST_STEP = 2.0  # of the minimiser's own length: what the Newton step may add to it
WAYS = {
    "objective": "noise in its objective",
    "output": "noise on the minimiser",
}


@dataclass(frozen=True, slots=True)
class MinimiserFacts:
    """Public facts of a fit, as in `FitFacts`; `levels` are those of the columns that have some,
    `penalty` the one that was asked for, if any.
    """

    estimator: str
    spend: Guarantee
    columns: int
    radius: float
    noise_index: float
    response_center: float
    response_half: float
    least_moments: tuple[float, ...] = ()
    metric_radius: float = 0.0
    first_radius: float = 1.0
    levels: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    bases: tuple[tuple[str, str], ...] = ()
    penalty: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return facts_to_dict(self, *(("penalty",) if self.penalty is None else ()))


def _facts_from_dict(record: dict[str, Any]) -> MinimiserFacts:
    levels = {name: tuple(values) for name, values in record["levels"].items()}
    return facts_as(MinimiserFacts, record, levels=levels)


@dataclass(frozen=True)
class Found:
    """The minimiser θ in the metric, β = back @ θ, and what is known of its noise: `penalty` Λ, and
    the variances of a coordinate of b and of the noise on θ.
    """

    theta: Array
    back: Array
    sigma: float
    penalty: float
    linear: float
    cover: float

    @property
    def beta(self) -> Array:
        return np.asarray(self.back @ self.theta)


def minimiser_of(releases: Sequence[Release], facts: MinimiserFacts) -> Found:
    """What the minimiser's release says, in units of the metric."""
    release = next(one for one in releases if decode.step_of(one).name == "minimiser")
    mechanism = as_kind(release.mechanism, PerturbedMinimiser)
    radius, step = facts.radius, float(mechanism.step)
    # coordinates of Euclidean Laplace noise of spread a have variance a²(d+1)
    shape = 1.0 if mechanism.law == "gaussian" else mechanism.size + 1.0
    return Found(
        np.array([float(value) for value in release.integers]) * (step / radius),
        decode.metric_matrix(release, radius)[:, : facts.columns].T,
        decode.scale_at(release),
        float(mechanism.penalty) * radius**2,
        shape * (float(mechanism.spread) / 2.0**NOISE_BITS * radius) ** 2,
        shape * (float(mechanism.cover) * step / radius) ** 2,
    )


@dataclass(frozen=True)
class _Newton:
    """The Newton step that takes the penalty away: `wanted`, and as it was taken."""

    wanted: Array
    taken: Array
    noise: float
    kept: float


def _newton(releases: Sequence[Release], facts: MinimiserFacts, found: Found) -> _Newton:
    release = next(one for one in releases if str(decode.step_of(one)) == "curvature 1")
    reading = decode.read_gram(release, facts.radius, decode.rows_of(releases))
    first = shrunk(
        reading.value, reading.noise, largest=decode.curvature_bound(release), curvature=True
    )
    wanted = found.sigma * found.penalty / decode.rows_of(releases) * first.inverse @ found.theta
    taken = decode.trusted(wanted, LONGEST_STEP * float(np.linalg.norm(found.theta)))
    return _Newton(wanted, taken, first.noise, first.kept)


def unpenalised(releases: Sequence[Release], facts: MinimiserFacts) -> Array:
    """β after the Newton step."""
    found = minimiser_of(releases, facts)
    step = _newton(releases, facts, found)
    return np.asarray(found.back @ (found.theta + step.taken))


@dataclass(frozen=True, repr=False)
class PerturbedResult(RegressionResult):
    """A private fit by one perturbed minimiser.

    Verbs are those of `RegressionResult`; where no curvature was released, those that need a
    covariance are refused and say so. `predict` takes rows of the user's columns, or a frame (or
    mapping) of the data's own columns.

    Method.    One noisy gradient at the optimum; the penalty is taken away by one Newton step with
               a released curvature (without one, coefficients are the penalised ones).
    Validity.  Independent rows (or units); the penalty small enough beside the curvature of all
               rows that one Newton step undoes it.
    """

    facts: MinimiserFacts  # type: ignore[assignment]

    @property
    def has_intervals(self) -> bool:
        """Whether curvature was released."""
        return bool(self._steps("curvature"))

    @functools.cached_property
    def fitted(self) -> Estimate:
        """Estimate and covariance in the scaled columns."""
        if not self.has_intervals:
            raise NoTheorem(
                "standard errors, intervals and tests of this fit",
                "no curvature was released",
                "pure noise on a matrix grows with the number of its entries, and the hinge has "
                "hardly any curvature",
                "use loss='logistic' or 'huber' with dp.GDP(mu), dp.ZCDP(rho) or dp.ApproxDP",
            )
        return self._estimate()

    def _estimate(self) -> Estimate:
        found = minimiser_of(self.releases, self.facts)
        step = _newton(self.releases, self.facts, found)
        second, scored = self._steps("curvature")[-1], self._one("scores 1")
        rows, radius, size = self.rows, self.facts.radius, len(found.theta)
        read, read_scores = (
            decode.read_gram(release, radius, rows) for release in (second, scored)
        )
        largest = decode.curvature_bound(second)
        curvature = shrunk(read.value, read.noise, largest=largest, curvature=True)
        scores = shrunk(
            read_scores.value,
            read_scores.noise,
            largest=decode.curvature_bound(scored),
            curvature=False,
        )
        sigma2, inverse = found.sigma**2, curvature.inverse
        effective = max(rows - size, rows / 4) / second.neighbors.rows
        stretch = np.eye(size) + found.sigma * found.penalty / rows * inverse
        own = found.cover * stretch @ stretch.T
        bent = (
            max(step.kept, 0.2)
            * step.noise**2
            / 2
            * inverse
            @ (step.taken @ step.taken * np.eye(size) + np.outer(step.taken, step.taken))
            @ inverse
        )
        miss = step.wanted - step.taken
        further = own + bent + np.outer(miss, miss)
        resolved = bool(np.trace(read.value) >= UNRESOLVED * read.noise * np.sqrt(size))
        if not resolved:
            further = (
                further
                + sigma2
                * (scores.matrix / effective + found.linear / rows**2 * np.eye(size))
                / (PESSIMISTIC * largest) ** 2
            )
        linear = found.linear / rows**2
        return Estimate(
            np.asarray(found.back @ (found.theta + step.taken)),
            found.back,
            sigma2 * inverse @ (scores.matrix / effective) @ inverse,
            linear * sigma2 * inverse @ inverse,
            further,
            _redrawn(curvature, scores, sigma2, effective, linear) + further,
            True,
            resolved,
            curvature,
            scores,
        )

    @property
    def params(self) -> NamedVector:
        """Coefficients on the user's scale."""
        return self._named(self._scale[1] @ self.beta + self._scale[2])

    @property
    def beta(self) -> Array:
        """Coefficients of the columns as their declared ranges scale them."""
        if self.has_intervals:
            return self.fitted.beta
        return minimiser_of(self.releases, self.facts).beta

    @property
    def penalty(self) -> float:
        """The total penalty Λ, in the metric's units: as it acts, which is more than was asked for
        where the spend pays for no smaller one.
        """
        return minimiser_of(self.releases, self.facts).penalty

    @property
    def scale(self) -> float:
        """The residuals' scale σ, in the response's own units; 1 for yes/no."""
        return decode.scale_at(self._last_gradient) * self._half

    @property
    def converged(self) -> bool:
        """Always: the minimiser's gradient is certified before anything is released."""
        return True

    @property
    def resolved(self) -> dict[str, bool]:
        """For each model column, whether its spread stood clear of the noise; for a pure spend,
        where no spread is looked at, nothing.
        """
        return super().resolved if self._steps("metric") else {}

    @property
    def level_moments(self) -> SecondMoments | None:
        """Second moments from which shares of levels can be read; none for a pure spend."""
        return super().level_moments if self._steps("metric") else None

    @property
    def condition_number(self) -> float:
        """Of the columns' second moment as learnt privately; NaN for a pure spend."""
        return super().condition_number if self._steps("metric") else math.nan

    @property
    def trajectory(self) -> Array:
        """The minimiser and the estimate, on the user's scale."""
        matrix, shift = self._scale[1:]
        first = minimiser_of(self.releases, self.facts).beta
        return np.array([matrix @ beta + shift for beta in (first, self.beta)])

    @plain.called
    def predict(self, rows: Any, level: float = 0.95) -> Array:
        """(estimate, low, high) of the mean response, or (without intervals) the estimate alone;
        for the hinge the margin, whose sign is the class.

        `rows` are values of the user's columns (rows × coefficients, 1 for the intercept), or a
        frame or mapping with the data's own columns.
        """
        names = getattr(rows, "columns", rows if isinstance(rows, Mapping) else ())
        needed = {component.column for column in self._columns for component in column.components}
        if needed and needed <= {str(name) for name in names}:
            along = self._from_frame(rows, needed) @ np.linalg.pinv(self._scale[1])
        else:
            along = new_rows(rows, self.names)
        if self.has_intervals:
            return super().predict(along, level)
        return mean_response(self.family, along @ np.asarray(self.params))

    def _from_frame(self, frame: Any, needed: set[str]) -> Array:
        """The scaled model columns of a frame's rows."""
        given = {name: np.asarray(frame[name]) for name in needed}
        count = len(next(iter(given.values())))
        codes: dict[Any, Any] = {}
        for column in self._columns:
            for component in column.components:
                values = given[component.column]
                if isinstance(component, LevelComponent):
                    places = {
                        level_text(level): place
                        for place, level in enumerate(self.facts.levels[component.column])
                    }
                    codes[component] = np.array(
                        [places.get(_text(value), -1) for value in values.tolist()]
                    )
                else:
                    grid = component.factor.encoding
                    moved = (values.astype(float) - grid.center) * grid.per_unit
                    codes[component] = np.clip(
                        np.floor(np.nan_to_num(moved) + 0.5), grid.low, grid.high
                    ).astype(np.int64)
        return model_matrix(self._columns, codes, count) / UNIT

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Tidy rows, one a coefficient."""
        return super().records(level) if self.has_intervals else point_records(self)

    def summary(self, level: float = 0.95) -> Summary:
        """A table to print: coefficients, where curvature was released their errors and intervals,
        and how the fit went.
        """
        level, notes = checked_level(level), tuple(self._notes())
        if self.has_intervals:
            return dataclasses.replace(fit_summary(self, level), notes=notes)
        return point_summary(self, "Private minimiser", notes)

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: coefficients, what they cost, what was asked."""
        return super().lines() if self.has_intervals else point_lines(self.summary())

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return fit_to_json(self.releases, self.facts.to_dict(), layout=(FORMAT, VERSION))

    @property
    def _last_gradient(self) -> Release:
        return self._one("minimiser 1")

    def _notes(self) -> list[str]:
        facts, first = self.facts, self.releases[0]
        mechanism = as_kind(self._last_gradient.mechanism, PerturbedMinimiser)
        known = first.public_rows is not None and not self._steps("count")
        counted = "public" if known else "noisy count" if self._steps("count") else "private"
        notes = [] if self.has_intervals else [NO_INTERVALS]
        rows = f"{self.rows:.0f} rows" if counted != "private" else "number of rows"
        notes += [
            (
                f"Spent {statement.asked(facts.spend)} in {len(self.releases)} releases, "
                f"neighbours {first.neighbors}."
            ),
            (
                f"The minimiser of a {self.family.kind} loss with a total penalty of "
                f"{decimal_text(self.penalty)} and {WAYS[mechanism.way]} ({mechanism.law}); "
                f"{rows} ({counted})."
            ),
        ]
        if facts.penalty is not None and self.penalty > facts.penalty * (1 + 1e-9):
            notes.append(
                f"A penalty of {decimal_text(facts.penalty)} was asked for and acts as "
                f"{decimal_text(self.penalty)}: with a smaller one a single row could bend the "
                "objective further than this spend pays for."
            )
        if self.has_intervals and not self.fitted.resolved:
            notes.append(
                "NOT RESOLVED: the curvature is lost in noise; intervals assume 5 % of its largest "
                "possible value."
            )
        if not self.has_intervals:
            notes.append("Coefficients are those of the penalised loss: the penalty pulls them in.")
        lost = [name for name, seen in self.resolved.items() if not seen]
        if lost:
            notes.append(f"Spread lost in noise: {', '.join(lost)}.")
        filled = filter_notes(self) if counted != "private" else data_notes(*self.releases)
        notes += [*filled, *clip_notes(self), *base_notes(self)]
        return [*notes, *closing_notes(self)]


def _text(value: Any) -> str:
    return level_text(value) if isinstance(value, (str, int, bool)) else str(value)


def perturbed_from_json(text: str) -> PerturbedResult | None:
    """The result that `PerturbedResult.to_json` wrote; None where the text is something else."""
    return fit_from_json(text, PerturbedResult, _facts_from_dict, layout=(FORMAT, VERSION))
