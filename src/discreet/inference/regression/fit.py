"""The result of a private regression: coefficients on the user's scale with intervals that hold
sampling and privacy error both.

Everything is a function of the fit's releases and a few public facts;
nothing here can reach data or noise.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, chdtri, expit, ndtr, ndtri

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.inference.regression import decode as decode
from discreet.inference.regression.bases import SecondMoments
from discreet.inference.regression.covariance import Estimate, Moves, Numbers, estimated
from discreet.inference.regression.facts import (
    FitFacts,
    LeastSquares,
    facts_from_dict,
    facts_to_dict,
)
from discreet.inference.regression.metric import MetricState, after_round, first_state
from discreet.inference.regression.new_rows import bases_by_text, new_rows
from discreet.inference.regression.scale import user_map
from discreet.inference.regression.wald import WaldTest
from discreet.inference.results.laws import Array
from discreet.inference.results.named import Entry, NamedVector, is_name, place_of_name
from discreet.inference.results.results import checked_level, checked_target
from discreet.inference.results.stored import fit_from_json, fit_to_json
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told
from discreet.specs.estimating.components import ModelColumn
from discreet.specs.estimating.families import Family, Logistic, Poisson
from discreet.specs.estimating.tabulated import TabulatedMean
from discreet.trusted.release import Release

FORMAT, VERSION = "discreet-fit", 1
LARGEST_MULTIPLIER = 50.0
NORMAL_INDEX, HOPELESS_INDEX = 0.1, 0.5  # limits of the noise index ν (regression.md §7)


@dataclass(frozen=True, repr=False)
class RegressionResult(Told):
    """A private regression.

    `params`, `std_errors`, `confidence_interval`, `p_values`, `summary`,
    `test` are as in any regression package; ``fit["age"].interval`` is one coefficient's.

    Method.    Algorithm A (discreet.models.preconditioned); the covariance is
               `regression_covariance`; intervals are multiplied so that they cover on average over
               what the released curvature and score matrices could have been.
    Validity.  Independent rows (or units). Coefficients are those of the weighted, clipped
               estimating equation: for ols and robust at the reported scale, the slopes are those
               of the linear model where errors are symmetric or independent of the columns.
    """

    releases: tuple[Release, ...]
    facts: FitFacts

    # ── estimates ─────────────────────────────────────────────────────────────────────────────────

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the coefficients."""
        return self._scale[0]

    @property
    def params(self) -> NamedVector:
        """Coefficients on the user's scale."""
        return self._named(self._scale[1] @ self.fitted.beta + self._scale[2])

    @property
    def beta(self) -> Array:
        """Coefficients of the columns as their declared ranges scale them."""
        return self.fitted.beta

    @property
    def unprojected(self) -> NamedVector:
        """The coefficients: they have no range, so nothing is projected."""
        return self.params

    def _named(self, values: Array) -> NamedVector:
        return NamedVector(values, self.names)

    def entry(self, name: Any, level: float = 0.95, *, target: str = "population") -> Entry:
        """One coefficient with its interval, by name or position."""
        level, names = checked_level(level), self.names
        place = place_of_name(name, names) if is_name(name) else range(len(names))[name]
        low, high = self.confidence_interval(level, target=target)[place]
        return Entry(
            names[place],
            "coefficient",
            float(self.params[place]),
            float(low),
            float(high),
            level,
            float(self.std_errors[place]),
            float(self.noise_share[place]),
            float(self.params[place]),
        )

    def __getitem__(self, name: Any) -> Entry:
        return self.entry(name)

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: coefficients with their intervals, what they cost, what was asked."""
        from discreet.inference.regression.summary import fit_lines

        return fit_lines(self)

    @property
    def cov(self) -> Array:
        """Covariance of the coefficients, sampling and privacy together."""
        if self.fitted.unbounded:
            return np.full((len(self.names), len(self.names)), np.inf)
        return self.fitted.covariance(self._scale[1])

    @property
    def std_errors(self) -> NamedVector:
        """Standard errors, sampling and privacy together."""
        return self._named(np.sqrt(sum(self.fitted.variances(self._scale[1]))))

    @property
    def sampling_errors(self) -> NamedVector:
        """The sampling part of the standard errors."""
        return self._named(np.sqrt(self.fitted.variances(self._scale[1])[0]))

    @property
    def privacy_errors(self) -> NamedVector:
        """The privacy part of the standard errors."""
        return self._named(np.sqrt(self.fitted.variances(self._scale[1])[1]))

    @property
    def noise_share(self) -> NamedVector:
        """The share of each variance that privacy cost."""
        sampling, privacy = self.fitted.variances(self._scale[1])
        known, whole = np.isfinite(privacy), np.maximum(sampling + privacy, 1e-300)
        return self._named(np.divide(privacy, whole, where=known, out=np.ones(len(whole))))

    @property
    def noise_to_signal(self) -> NamedVector:
        """The privacy part of each standard error over the size of its coefficient:
        where it passes 1, noise swamps the signal.
        """
        return self._named(self.privacy_errors / np.maximum(np.abs(self.params), 1e-300))

    @property
    def z_values(self) -> NamedVector:
        """Coefficients over their standard errors."""
        return self._named(self.params / self.std_errors)

    @property
    def p_values(self) -> NamedVector:
        """Two-sided p-values of "this coefficient is 0", which agree with the intervals."""
        size = np.abs(self.z_values)
        simulated = 2 * ndtr(-size * self.fitted.ratios(self._scale[1])).mean(axis=0)
        return self._named(np.maximum(simulated, 2 * ndtr(-size)))

    @plain.called
    def confidence_interval(
        self, level: float = 0.95, *, target: str = "population"
    ) -> npt.NDArray[np.float64]:
        """Intervals as an array of shape (coefficients, 2); ``target="data"`` is for the noiseless
        fit of this data set: privacy error alone.
        """
        along = self._scale[1]
        sampling, privacy = self.fitted.variances(along)
        error = np.sqrt(privacy if checked_target(target) == "data" else sampling + privacy)
        half = self._multipliers(along, checked_level(level)) * error
        return np.stack([self.params - half, self.params + half], axis=1)

    @property
    def scale(self) -> float:
        """The residuals' scale σ, in the response's own units; 1 for logistic and Poisson."""
        return decode.scale_at(self._last_gradient) * self._half

    # ── hypotheses, regions, predictions ──────────────────────────────────────────────────────────

    @plain.called
    def test(self, hypotheses: Any, values: Any = 0.0) -> WaldTest:
        """A joint Wald test of R·coefficients = r;
        `hypotheses` is R (one row a hypothesis) or a list of names that are all 0.

        Method.  (Rb − r)ᵀ(R V Rᵀ)⁻¹(Rb − r) against a chi-square; the p-value is averaged over the
                 covariances that other noise would have given, each as a chi-square of the mean
                 scale, and is never below the plain one.
        """
        matrix = self._hypotheses(hypotheses)
        if self.fitted.unbounded:
            return WaldTest(0.0, int(np.linalg.matrix_rank(matrix)), 1.0)
        along = matrix @ self._scale[1]
        gap = matrix @ self.params - np.broadcast_to(np.asarray(values, dtype=float), len(matrix))
        covariance = self.fitted.covariance(along)
        degrees = int(np.linalg.matrix_rank(covariance))
        inverse = np.linalg.pinv(covariance, hermitian=True)
        statistic = float(gap @ inverse @ gap)
        scales = np.trace(inverse @ self.fitted.redrawn_covariances(along), axis1=1, axis2=2) / max(
            degrees, 1
        )
        p_value = max(
            float(np.mean(chdtrc(degrees, statistic * scales))), float(chdtrc(degrees, statistic))
        )
        return WaldTest(statistic, degrees, p_value, scales)

    def ellipse(self, first: str, second: str, level: float = 0.95, *, points: int = 100) -> Array:
        """Points (shape points × 2) on the border of the joint confidence region of two
        coefficients.
        """
        matrix = self._hypotheses([first, second])
        if self.fitted.unbounded:
            return np.full((points, 2), np.inf)
        root = np.linalg.cholesky(
            self.fitted.covariance(matrix @ self._scale[1]) + 1e-300 * np.eye(2)
        )
        plain = np.sqrt(chdtri(2, 1 - checked_level(level)))
        widening = float(
            np.max(self._multipliers(matrix @ self._scale[1], level)) / ndtri(0.5 + level / 2)
        )
        angles = np.linspace(0, 2 * np.pi, points)
        return np.asarray(
            matrix @ self.params
            + plain * widening * np.stack([np.cos(angles), np.sin(angles)], axis=1) @ root.T
        )

    @plain.called
    def predict(self, rows: Any, level: float = 0.95) -> Array:
        """(estimate, low, high) of the mean response at given values of the user's columns: a
        mapping or frame with them, such as ``{"age": [30, 40], "region": ["N", "S"]}``, or an array
        (rows × coefficients, intercept included).
        """
        along = new_rows(rows, self.names, bases_by_text(self.bases, self._columns))
        error = np.sqrt(sum(self.fitted.variances(along @ self._scale[1])))
        half = self._multipliers(along @ self._scale[1], checked_level(level)) * error
        center = along @ self.params
        ends = np.stack([center, center - half, center + half], axis=1)
        return mean_response(self.family, ends)

    # ── how it went ───────────────────────────────────────────────────────────────────────────────

    @property
    def converged(self) -> bool:
        """Whether the last gradient is as small as its noise;
        if not, the distance is in the intervals.
        """
        return self.fitted.converged

    @property
    def resolved(self) -> dict[str, bool]:
        """For each model column, whether its spread stood clear of the noise when the metric was
        learnt.
        """
        names = [column.name for column in self._columns]
        return dict(
            zip(names, (bool(value) for value in self._metric_state.resolved), strict=False)
        )

    @property
    def bases(self) -> dict[str, str]:
        """The columns of levels that leave one out, and that level."""
        return dict(self.facts.bases)

    @property
    def level_moments(self) -> SecondMoments | None:
        """Second moments from which shares of levels can be read: the metric's last round."""
        last, facts = self._steps("metric")[-1], self.facts
        reading = decode.read_gram(last, facts.metric_radius, self.rows)
        matrix = decode.metric_matrix(last, facts.metric_radius)
        return SecondMoments(self._columns, matrix, reading, facts.metric_radius)

    @property
    def condition_number(self) -> float:
        """Of the columns' second moment as learnt privately, each column scaled to 1."""
        size = len(self._columns)
        moment = self._metric_state.moment[:size, :size]
        root = np.sqrt(np.diag(moment))
        values = np.linalg.eigvalsh(moment / np.outer(root, root))
        return float(values[-1] / max(values[0], 1e-12))

    @property
    def noise_class(self) -> str:
        """What the public noise index ν promises."""
        index = self.facts.noise_index
        return (
            "normal"
            if index < NORMAL_INDEX
            else "noise dominated"
            if index < HOPELESS_INDEX
            else "not resolvable at this budget"
        )

    @property
    def trajectory(self) -> Array:
        """The iterates, on the user's scale, one row a released gradient;
        the last row is the estimate.
        """
        path = [
            self._scale[1] @ decode.coefficients_at(release)[: len(self._columns)] + self._scale[2]
            for release in self._steps("burn-in", "newton", "gradient")
        ]
        return np.array([*path, self.params])

    @plain.called
    def summary(self, level: float = 0.95) -> Summary:
        """A table to print: coefficients, both parts of their errors, tests and intervals,
        and how the fit went.
        """
        from discreet.inference.regression.summary import fit_summary

        return fit_summary(self, checked_level(level))

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Tidy rows, one a coefficient."""
        columns = (
            self.params,
            self.std_errors,
            self.sampling_errors,
            self.privacy_errors,
            self.z_values,
            self.p_values,
            *self.confidence_interval(level).T,
            self.noise_share,
        )
        names = (
            "estimate",
            "std_error",
            "sampling_error",
            "privacy_error",
            "z",
            "p_value",
            "low",
            "high",
            "noise_share",
        )
        return [
            {"coefficient": name, **dict(zip(names, (float(value) for value in row), strict=True))}
            for name, row in zip(self.names, zip(*columns, strict=True), strict=True)
        ]

    @plain.called
    def to_frame(self, level: float = 0.95, *, backend: str = "pandas") -> Any:
        """A tidy data frame, one row a coefficient."""
        from discreet.inference.results.results import _frame

        records = self.records(level)
        return _frame({name: [record[name] for record in records] for name in records[0]}, backend)

    def plot(
        self,
        level: float = 0.95,
        *,
        reference: Any = None,
        intercept: bool = True,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """Intervals of the coefficients, in panels of like size; `reference` (estimate, low, high
        for each, or by name) is drawn beside them.
        """
        from discreet.plots.regression import plot_coefficients

        return plot_coefficients(
            self,
            checked_level(level),
            reference=reference,
            intercept=intercept,
            ax=ax,
            title=title,
            path=path,
        )

    def plot_ellipse(
        self,
        first: str,
        second: str,
        level: float = 0.95,
        *,
        reference: Any = None,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """The joint confidence region of two coefficients; `reference` is a point to mark."""
        from discreet.plots.regression import plot_ellipse

        return plot_ellipse(
            self,
            first,
            second,
            checked_level(level),
            reference=reference,
            ax=ax,
            title=title,
            path=path,
        )

    def plot_trajectory(
        self, *, ax: Any = None, title: str | None = None, path: str | None = None
    ) -> Any:
        """The iterates, in standard errors from the estimate."""
        from discreet.plots.regression import plot_trajectory

        return plot_trajectory(self, ax=ax, title=title, path=path)

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return fit_to_json(self.releases, facts_to_dict(self.facts), layout=(FORMAT, VERSION))

    # ── read from the releases ────────────────────────────────────────────────────────────────────

    @functools.cached_property
    def fitted(self) -> Estimate:
        """Estimate and covariance in the scaled columns (x in −1 … 1, half-ranges of the
        response).
        """
        radius, rows, one = self.facts.radius, self.rows, self._one
        gradients = self._steps("gradient")
        size = len(self._columns)
        moves = tuple(
            Moves(
                decode.coefficients_at(release)[:size], decode.read_gradient(release, radius, rows)
            )
            for release in gradients
        )
        burn = (self._steps("newton") or self._steps("burn-in"))[-1]
        first, second, scores = one("curvature 1"), one("curvature 2"), one("scores 1")
        numbers = Numbers(
            back=decode.metric_matrix(first, radius)[:, :size].T,
            sigma=decode.scale_at(gradients[0]),
            rows=rows,
            cluster=decode.cluster_of(scores),
            residual=self.family.residual,
            trust=self.facts.trust
            * (decode.scale_at(gradients[0]) if self.family.residual else 1.0),
            moves=moves,
            burn_noise=decode.read_gradient(burn, radius, rows).noise,
            first=decode.read_gram(first, radius, rows),
            second=decode.read_gram(second, radius, rows),
            scores=decode.read_gram(scores, radius, rows),
            largest=(decode.curvature_bound(first), decode.curvature_bound(scores)),
            noise_index=self.facts.noise_index,
            constant=self._constant,
        )
        return estimated(numbers)

    @property
    def rows(self) -> float:
        """The number of rows: public, or as released (at least 1)."""
        return decode.rows_of(self.releases)

    @functools.cached_property
    def _scale(self) -> tuple[tuple[str, ...], Array, Array]:
        """(names, T, shift): the user's coefficients are T·β + shift for β in the scaled
        columns.
        """
        names, matrix = user_map(self._columns)
        shift = np.zeros(len(names))
        if self.family.residual:
            matrix = matrix * self._half
            model = decode.model_query(self._last_gradient).model
            shift = self._center * np.asarray(model.constant[: len(names)], dtype=np.float64)
        return names, matrix, shift

    @property
    def _constant(self) -> Array | None:
        """The intercept's place, for families whose outcomes can be separated (0 everywhere without
        an intercept).
        """
        if self.family.kind not in ("logistic", "tabulated mean"):
            return None
        return np.array([0.0 if column.components else 1.0 for column in self._columns])

    @property
    def _half(self) -> float:
        return self.facts.response_half if self.family.residual else 1.0

    @property
    def _center(self) -> float:
        return self.facts.response_center

    @property
    def family(self) -> Family | LeastSquares:
        """The estimating function: Huber (with its c), logistic or Poisson."""
        return decode.family_of(self._last_gradient)

    @property
    def _columns(self) -> tuple[ModelColumn, ...]:
        model = decode.model_query(self._last_gradient).model
        return model.columns[: self.facts.columns]

    @property
    def _last_gradient(self) -> Release:
        return self._steps("gradient")[-1]

    @functools.cached_property
    def _metric_state(self) -> MetricState:
        rounds = self._steps("metric")
        state = first_state(len(decode.model_query(rounds[0]).metric.rows))
        for place, release in enumerate(rounds):
            reading = decode.read_gram(
                release,
                self.facts.first_radius if place == 0 else self.facts.metric_radius,
                self.rows,
            )
            state = after_round(
                state, reading.value, reading.noise, np.array(self.facts.least_moments)
            )
        return state

    def _steps(self, *kinds: str) -> list[Release]:
        return [release for release in self.releases if decode.step_of(release).name in kinds]

    def _one(self, step: str) -> Release:
        return next(release for release in self.releases if str(decode.step_of(release)) == step)

    def _multipliers(self, along: Array, level: float) -> Array:
        """m with mean(2Φ(m·r) − 1) = level over the ratios r, at least the normal quantile."""
        ratios = self.fitted.ratios(along)
        low, high = (
            np.full(len(along), float(ndtri(0.5 + level / 2))),
            np.full(len(along), LARGEST_MULTIPLIER),
        )
        for _ in range(40):
            middle = (low + high) / 2
            short = (2 * ndtr(middle * ratios) - 1).mean(axis=0) < level
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.asarray(high)

    def _hypotheses(self, hypotheses: Any) -> Array:
        if isinstance(hypotheses, str) or (
            isinstance(hypotheses, (list, tuple))
            and hypotheses
            and all(isinstance(name, str) for name in hypotheses)
        ):
            wanted = [hypotheses] if isinstance(hypotheses, str) else list(hypotheses)
            unknown = [name for name in wanted if name not in self.names]
            if unknown:
                raise InvalidParameter(
                    "a hypothesis",
                    f"{unknown[0]!r} is no coefficient",
                    f"the coefficients are {', '.join(self.names)}",
                    "name some of them, or pass a matrix",
                )
            return np.eye(len(self.names))[[self.names.index(name) for name in wanted]]
        matrix = np.atleast_2d(np.asarray(hypotheses, dtype=float))
        if matrix.shape[1] != len(self.names) or not np.isfinite(matrix).all():
            raise InvalidParameter(
                "a hypothesis",
                f"a matrix of {matrix.shape[1]} columns",
                f"there are {len(self.names)} coefficients",
                "give one column for each coefficient",
            )
        return matrix


def mean_response(family: Family | LeastSquares, predictor: Array) -> Array:
    """The mean of the response at given predictors."""
    bounded = np.clip(predictor, -700, 700)
    match family:
        case TabulatedMean():
            return family.mean(bounded)
        case Logistic():
            return np.asarray(expit(bounded))
        case Poisson():
            return np.asarray(np.exp(bounded))
        case _:
            return predictor


def regression_from_json(text: str) -> RegressionResult | None:
    """The result that `RegressionResult.to_json` wrote; None where the text is something else."""
    return fit_from_json(text, RegressionResult, facts_from_dict, layout=(FORMAT, VERSION))
