"""ExpectedReleases rows: what stands where a session would when a regression is forecast.

It has no data to read.

Rows are drawn from public facts and the caller's assumptions: number columns are normal about the
middle of their range with a standard deviation of a quarter of it, levels are equally frequent,
columns are independent, and so is the response. Every answer is the expected statistic of that many
rows, without noise; a stochastic descent is answered with the path of its expected sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.asking.preview import Assumptions
from discreet.errors import InvalidParameter
from discreet.inference.regression.curvature import normal_draws
from discreet.inference.results.laws import Array
from discreet.inference.results.summary import grouped
from discreet.models.points import point_at
from discreet.specs.estimating.components import (
    RESPONSE_BITS,
    UNIT,
    Component,
    LevelComponent,
    NumberComponent,
    model_matrix,
)
from discreet.specs.estimating.equations import LEAN_BITS, WeightedGradient, WeightedGram
from discreet.specs.estimating.families import Family, Poisson, psi_bound, slope_bound
from discreet.specs.estimating.metric import WEIGHT_BITS, Metric
from discreet.specs.estimating.minimand import steps_a_unit
from discreet.specs.estimating.model import Model, Point
from discreet.specs.estimating.tables import GRID, PSI, PSI_BITS, clipped_rest
from discreet.specs.estimating.tabulated import TabulatedMean
from discreet.specs.mechanisms.minimiser import PerturbedMinimiser
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.specs.queries.scores import CandidateScores
from discreet.specs.queries.sums import Sum
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.release import PublicFacts, Question, Release

IMAGINED = 4000  # rows
RESIDUAL_SHARE = 1 / 8  # of the response's range: the residuals' standard deviation, unless assumed
COUNT_SHARE = 1 / 10  # of the largest count: the mean, unless assumed
MEAN_MARGIN = 1 / 10  # of a mean function's range that the mean keeps from its ends, unless assumed
MINIMISING_STEPS = 12  # of Newton
MOST_IMAGINED_STEPS = 5000  # of a descent; after them it stands still


@dataclass(frozen=True)
class ExpectedReleases:
    """Stands where a session would: answers a fit's questions with the expected statistics of
    imagined rows. It has no data to read.
    """

    public: PublicFacts
    rows: float
    family: Family
    assume: Assumptions
    # model and metric → matrix, weights, response
    kept: dict[Any, tuple[Array, Array, Array]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        low, high = self._means
        if not self.family.residual and not low <= self._mean <= high:
            raise InvalidParameter(
                "preview",
                f"a mean response of {self._mean:.4g} was assumed, and the mean function lies "
                f"between {low:.4g} and {high:.4g}",
                "no coefficients would give it",
                "assume another mean (or share), or use another mean function",
            )

    def reserve(self, spend: object, *, delta: object, key: object) -> ExpectedReleases:
        """Nothing is set aside: what is imagined costs nothing."""
        return self

    def close(self) -> None:
        """As a reservation's."""

    def release(self, question: Question, *, key: str, reservation: object) -> Release:
        mechanism: Any = question.mechanism
        if isinstance(question.query, CandidateScores):
            integers = [0]  # levels are equally frequent: the first stands for them all
        elif isinstance(mechanism, NoisySGD):
            integers = self._descent(question.query, mechanism)
        elif isinstance(mechanism, PerturbedMinimiser):
            integers = self._minimiser(question.query, mechanism)
        else:
            integers = [value << mechanism.refinement for value in self._statistic(question.query)]
        return Release(
            question.description,
            question.query,
            mechanism,
            tuple(integers),
            self.public.neighbors,
            question.spend,
            guarantee_of(mechanism),
            self.public.count,
            key,
            0,
            "",
            delta=question.delta,
        )

    def _statistic(self, query: Any) -> list[int]:
        if isinstance(query, Sum):
            return [
                round(
                    self.rows
                    * (
                        query.term[0].encoding.per_unit
                        * (self._mean - query.term[0].encoding.center)
                        if query.term
                        else 1.0
                    )
                )
            ]
        matrix, weight, response = self._drawn(query.model, query.metric)
        grow = self.rows / IMAGINED
        if isinstance(query, WeightedGradient):
            psi, _ = self._psi(query.family, query.point, matrix, response)
            total = (np.floor(weight * psi * 2.0 ** (WEIGHT_BITS - PSI_BITS)) @ matrix) * grow
            return query.assemble(
                (
                    np.array([round(value) for value in total], dtype=object),
                    round(float(psi @ psi) * grow),
                )
            )
        assert isinstance(query, WeightedGram)
        multiplier = weight
        if query.part != "metric":
            assert query.family is not None
            assert query.point is not None
            psi, slope = self._psi(query.family, query.point, matrix, response)
            multiplier = (
                weight * slope / slope_bound(query.family)
                if query.part == "curvature"
                else (weight * psi / psi_bound(query.family)) ** 2
            )
        if query.part == "unit scores":  # the rows of a unit alike
            grow = grow * self.public.neighbors.rows * (1 << LEAN_BITS)
        sums = (matrix * np.floor(multiplier * (1 << LEAN_BITS))[:, None]).T @ matrix * grow
        return query.assemble(
            np.array([[round(value) for value in row] for row in sums], dtype=object)
        )

    def _descent(self, query: Any, mechanism: NoisySGD) -> list[int]:
        """The shown iterates and the mean of the last ones, were every sum the expected one of a
        batch (specs/mechanisms/sgd.py).
        """
        matrix, weight, response = self._drawn(query.model, query.metric)
        batch = (
            mechanism.size
            if mechanism.gap is None
            else self.rows * -math.expm1(-1 / float(mechanism.gap))
        )
        beta, path = np.array(mechanism.start, dtype=np.float64), []
        for step in range(mechanism.steps):
            if step < MOST_IMAGINED_STEPS:
                psi, _ = self._psi(
                    query.family,
                    Point(
                        tuple(int(value) for value in beta),
                        query.point.eta_bits,
                        query.point.per_scale,
                    ),
                    matrix,
                    response,
                )
                moved = np.floor(
                    beta
                    - mechanism.rate
                    * float(batch or 0)
                    * (weight * psi * 2.0 ** (WEIGHT_BITS - PSI_BITS))
                    @ matrix
                    / IMAGINED
                    + 0.5
                )
                beta = moved * min(1.0, mechanism.limit / max(float(np.abs(moved).sum()), 1.0))
            path.append(beta)
        shown = [
            *path[mechanism.every - 1 :: mechanism.every],
            *([path[-1]] if mechanism.steps % mechanism.every else []),
        ]
        return [
            int(value)
            for vector in (*shown, np.mean(path[-mechanism.averaged :], axis=0))
            for value in vector
        ]

    def _minimiser(self, query: Any, mechanism: PerturbedMinimiser) -> list[int]:
        """The minimiser over the imagined rows, in steps: Newton with floats, without noise."""
        matrix, weight, response = self._drawn(query.model, query.metric)
        whitened = matrix @ np.array(query.metric.rows, dtype=np.float64).T
        z, grow = whitened / float(query.metric.bound), self.rows / IMAGINED
        a_unit = float(steps_a_unit(query.family, query.point))
        back = np.array(query.metric.rows, dtype=np.float64).T / float(query.metric.bound)
        sigma = GRID / a_unit if query.family.residual else 1.0
        theta, penalty = np.zeros(mechanism.size), float(mechanism.penalty)
        for _ in range(MINIMISING_STEPS):
            point = point_at(back @ theta * UNIT, sigma, query.family)
            psi, slope = self._psi(query.family, point, matrix, response)
            gradient = grow * (weight * psi / PSI) @ z + penalty * theta
            bend = grow * (z * (weight * slope / PSI / sigma)[:, None]).T @ z
            theta = theta - np.linalg.solve(bend + penalty * np.eye(len(theta)), gradient)
        return [round(value / float(mechanism.step)) for value in theta]

    def _drawn(self, model: Model, metric: Metric) -> tuple[Array, Array, Array]:
        """The model matrix, the weights and the response of the imagined rows;
        drawn once for a model and metric.
        """
        if (model, metric) not in self.kept:
            self.kept.clear()  # a procedure does not come back to an earlier metric
            response = self._response(model)
            matrix = model_matrix(model.columns, self._codes(model, response), IMAGINED).astype(
                np.float64
            )
            moved = matrix @ np.array(metric.rows, dtype=np.float64).T
            self.kept[model, metric] = (
                matrix,
                np.minimum(
                    1.0, float(metric.bound) ** 2 / np.maximum((moved**2).sum(axis=1), 1e-300)
                ),
                response,
            )
        return self.kept[model, metric]

    def _psi(
        self, family: Family, point: Point, matrix: Array, response: Array
    ) -> tuple[Array, Array]:
        """ψ and ψ′ of the imagined rows, in whole units."""
        tables = family.tables()
        eta = matrix @ np.array(point.beta, dtype=np.float64)
        argument = (
            np.ldexp(response * 2.0**RESPONSE_BITS, point.eta_bits) - eta
            if family.residual
            else eta
        )
        place = (
            np.clip(np.floor(argument * point.per_scale + 0.5), -tables.reach, tables.reach).astype(
                np.int64
            )
            + tables.reach
        )
        if family.residual:
            return tables.psi[place].astype(float), tables.slope[place].astype(float)
        whole = np.clip(np.floor(response * tables.unit + 0.5), 0, tables.top).astype(np.int64)
        return (tables.shift[place] - clipped_rest(tables, whole, place)).astype(
            float
        ), tables.slope[place].astype(float)

    def _codes(self, model: Model, response: Array) -> dict[Component, Any]:
        """Codes of the components; one draw a data column,
        so that a column and its square belong together.
        """
        codes: dict[Component, Any] = {}
        for column in model.columns:
            for component in column.components:
                draws = normal_draws(f"preview/{component.column}", IMAGINED)
                if isinstance(component, LevelComponent):
                    codes[component] = np.minimum(
                        (ndtr(draws) * len(component.contrast)).astype(np.int64),
                        len(component.contrast) - 1,
                    )
                    continue
                assert isinstance(component, NumberComponent)
                grid = component.factor.encoding
                if (
                    column.name == "response"
                    and model.response is not None
                    and component.column == model.response.column
                ):
                    values = response * model.response.half + model.response.middle
                    draws = (
                        (
                            (np.exp(values) if model.response.transform == "log" else values)
                            - grid.center
                        )
                        * grid.per_unit
                        / (grid.high / 2)
                    )
                codes[component] = np.clip(
                    np.floor(draws * grid.high / 2 + 0.5), grid.low, grid.high
                ).astype(np.int64)
        return codes

    def _response(self, model: Model) -> Array:
        """ExpectedReleases responses: in half-ranges from the middle (residual families), yes/no,
        or counts.
        """
        if model.response is None:
            return np.zeros(IMAGINED)
        draws = normal_draws(f"preview/response/{model.response.column}", IMAGINED)
        if self.family.residual:
            spread = (
                2 * RESIDUAL_SHARE
                if self.assume.standard_deviation is None
                else float(self.assume.standard_deviation) / model.response.half
            )
            middle = (
                0.0
                if self.assume.mean is None
                else (float(self.assume.mean) - model.response.middle) / model.response.half
            )
            return np.asarray(np.clip(middle + spread * draws, -1, 1))
        if model.response.level is not None:
            return np.asarray((draws < ndtri(self._mean)).astype(float))
        return _poisson_counts(self._mean, ndtr(draws))

    @property
    def _mean(self) -> float:
        """The assumed mean of a yes/no or count response; where nothing was assumed, one that a
        mean function of the user's reaches.
        """
        most = self.family.most if isinstance(self.family, (Poisson, TabulatedMean)) else 1.0
        low, high = self._means
        usual = min(
            max(0.5 if most == 1.0 else COUNT_SHARE * most, low + MEAN_MARGIN * (high - low)),
            high - MEAN_MARGIN * (high - low),
        )
        assumed = self.assume.share if most == 1.0 else self.assume.mean
        least = 1e-6 if most == 1.0 else 1e-3
        return min(
            max(usual if assumed is None else float(assumed), least),
            most - (least if most == 1.0 else 0.0),
        )

    @property
    def _means(self) -> tuple[float, float]:
        """The smallest and the largest mean that the family can give."""
        if isinstance(self.family, TabulatedMean):
            least, most = self.family.mean(np.array([-1e3, 1e3]))
            return float(least), float(most)
        return 0.0, self.family.most if isinstance(self.family, Poisson) else 1.0

    def words(self, model: Model) -> str:
        """The assumptions, in words."""
        texts = [
            f"{self.rows:.0f} rows",
            (
                "independent columns, numbers with a standard deviation of a quarter of their "
                "range, levels equally frequent"
            ),
        ]
        if self.family.residual and model.response is not None:
            spread = (
                2 * RESIDUAL_SHARE * model.response.half
                if self.assume.standard_deviation is None
                else float(self.assume.standard_deviation)
            )
            texts.append(f"residuals with a standard deviation of {grouped(spread, 4)}")
        else:
            texts.append(f"a mean response of {self._mean:.4g}")
        return ", ".join(texts)


def _poisson_counts(mean: float, uniform: Array) -> Array:
    """Poisson counts by inversion."""
    counts = np.arange(int(mean + 12 * math.sqrt(mean) + 30))
    mass = np.exp(
        counts * math.log(mean) - mean - np.array([math.lgamma(count + 1) for count in counts])
    )
    return np.searchsorted(np.cumsum(mass), uniform).astype(float)
