"""One-step estimating equations on released tables.

Theorem.  Let β* solve E ψ(X_T, β) = 0. U(β) = Σ_c x̂_T(c)·ψ_c(β) is unbiased for Σ_i ψ(x_i, β) at
          every β, with the noise covariance N of `unbiased.py`. From a start β₀ that is near β*,

              β̂ = β₀ + Ĥ⁻¹U(β₀),   Var β̂ = Ĥ⁻¹(n̂·Ω̂ + N)Ĥ⁻¹,

          Ĥ = −n̂·Σ_c p(c)·ψ′_c, Ω̂ the variance of ψ under p, is asymptotically normal about β*
          whether or not the model p is right: p stands in Ĥ and Ω̂ alone.
Proof.    docs/theory/synthesis.md.
Checked.  tests/inference/synthesis/test_equations.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit

from discreet.inference.results.laws import Array
from discreet.inference.synthesis.trees import Clique
from discreet.inference.synthesis.unbiased import Functions, NoisyTables

MOST_STEPS, MOST_HALVINGS = 60, 20
CLOSE = 1e-9  # of a coefficient: steps that are smaller are the end
RIDGE = 1e-9  # of each coefficient's own curvature, so that it can be inverted for every table
EVEN = 1e-9  # of a law's mass, spread over all cells
FURTHEST = 2.0  # that a predictor of a log-odds moves before its curvature is another
STEP = 1e-5  # of numerical derivatives
CLEAR = 4.0  # standard deviations


class Equation(Protocol):
    """Scores of every cell of a table over `columns`, flattened: ψ of shape (k, cells), and the
    curvature −Σ_c w_c·ψ′_c of weighted cells.
    """

    @property
    def columns(self) -> Clique: ...

    @property
    def start(self) -> Array: ...

    def scores(self, beta: Array) -> Array: ...

    def curvature(self, beta: Array, weights: Array) -> Array: ...

    def functions(self, beta: Array) -> Functions:
        """The scores as functions of the cells of tables that are measured."""
        ...

    def behind(self) -> Array:
        """1 for the cells that a coefficient is about, shape (k, cells)."""
        ...

    def reach(self, step: Array) -> float:
        """How far a step moves a predictor that is seen through a link; 0 where none is."""
        ...


@dataclass(frozen=True)
class Solved:
    """β̂ and both parts of its covariance; `few` marks coefficients whose rows (those of a level,
    of a group) are less than `CLEAR` times the noise in their number: one step from the model may
    not be enough there.
    """

    beta: Array
    sampling: Array
    privacy: Array
    few: tuple[bool, ...]


@dataclass(frozen=True)
class Linked:
    """ψ = held·x·(y − μ(x'β)) on the cells of one table: least squares, means and ratios with the
    identity as link, yes/no responses with the logistic one. x has shape (k, cells).
    """

    columns: Clique
    shape: tuple[int, ...]
    x: Array
    y: Array
    held: Array
    logistic: bool = False
    pieces: Callable[[Array], Functions] | None = (
        None  # of scores that need no table of all columns
    )

    @property
    def start(self) -> Array:
        return np.zeros(len(self.x))

    def scores(self, beta: Array) -> Array:
        return np.asarray(self.x * (self.held * (self.y - self._mean(beta))))

    def curvature(self, beta: Array, weights: Array) -> Array:
        w = weights * self.held
        if self.logistic:
            mean = self._mean(beta)
            w = w * mean * (1 - mean)
        return np.asarray((self.x * w) @ self.x.T)

    def functions(self, beta: Array) -> Functions:
        if self.pieces is not None:
            return self.pieces(beta)
        return {self.columns: self.scores(beta).reshape(len(self.x), *self.shape)}

    def behind(self) -> Array:
        return np.asarray((self.x != 0) * self.held)

    def reach(self, step: Array) -> float:
        return float(np.abs((step @ self.x) * self.held).max()) if self.logistic else 0.0

    def _mean(self, beta: Array) -> Array:
        eta = beta @ self.x
        return np.asarray(expit(eta)) if self.logistic else eta


@dataclass(frozen=True)
class Scored:
    """A caller's own ψ(values, β) of shape (k, cells), its curvature by differences."""

    columns: Clique
    shape: tuple[int, ...]
    psi: Callable[[Array], Array]
    begin: Array

    @property
    def start(self) -> Array:
        return self.begin

    def scores(self, beta: Array) -> Array:
        return self.psi(beta)

    def curvature(self, beta: Array, weights: Array) -> Array:
        found = np.empty((len(beta), len(beta)))
        for place in range(len(beta)):
            step = np.zeros(len(beta))
            step[place] = STEP * max(1.0, abs(float(beta[place])))
            apart = self.psi(beta + step) - self.psi(beta - step)
            found[:, place] = -(apart @ weights) / (2 * step[place])
        return found

    def functions(self, beta: Array) -> Functions:
        return {self.columns: self.scores(beta).reshape(len(beta), *self.shape)}

    def behind(self) -> Array:
        return np.ones((len(self.begin), int(np.prod(self.shape))))

    def reach(self, step: Array) -> float:
        return 0.0


def under_model(equation: Equation, probabilities: Array, start: Array | None = None) -> Array:
    """The solution of Σ_c p(c)·ψ_c(β) = 0, by Newton's method; a step is halved until the scores
    are smaller in the metric of the curvature.
    """
    weights, beta = _spread_out(probabilities), equation.start if start is None else start
    for _ in range(MOST_STEPS):
        slope, curvature = equation.scores(beta) @ weights, equation.curvature(beta, weights)
        step = solved(curvature, slope)
        size = np.sqrt(np.abs(np.diag(curvature)))
        if (np.abs(step) * size <= CLOSE * np.maximum(np.abs(beta) * size, 1e-6)).all():
            break
        before, halvings = abs(float(slope @ step)), 0
        while halvings < MOST_HALVINGS:
            after = equation.scores(beta + step) @ weights
            merit = abs(float(after @ solved(curvature, after)))
            if merit < before:
                break
            step, halvings = step / 2, halvings + 1
        beta = beta + step
    return beta


def one_step(equation: Equation, tables: NoisyTables, probabilities: Array) -> Solved:
    """The estimate and its covariance, from the model's solution by one step on the tables."""
    weights = tables.rows * _spread_out(probabilities)
    start = under_model(equation, probabilities)
    sums, _ = tables.sums(equation.functions(start))
    step = solved(equation.curvature(start, weights), sums)
    beta, reach = start + step, equation.reach(step)
    near = start + step * min(1.0, FURTHEST / reach if reach else 1.0)  # where errors are read off
    curvature = equation.curvature(near, weights)
    _, noise = tables.sums(equation.functions(near))
    spread = spread_of(equation.scores(near), weights)
    few = _few(equation, tables, weights)
    if reach > FURTHEST:
        few = (True,) * len(beta)
    return Solved(beta, sandwich(curvature, spread), sandwich(curvature, noise), few)


def _spread_out(probabilities: Array) -> Array:
    """A law with a billionth of its mass spread over all cells, so that every coefficient has a
    curvature.
    """
    law = probabilities.ravel()
    return np.asarray((1 - EVEN) * law + EVEN / law.size)


def spread_of(scores: Array, weights: Array) -> Array:
    """n·Var ψ of weighted cells."""
    mean = (scores @ weights) / weights.sum()
    return np.asarray((scores * weights) @ scores.T - weights.sum() * np.outer(mean, mean))


def _few(equation: Equation, tables: NoisyTables, weights: Array) -> tuple[bool, ...]:
    """Which coefficients are about fewer rows than can be told from noise."""
    if not tables.supports(equation.columns):
        return (False,) * len(equation.start)
    behind = equation.behind()
    shape = [tables.sizes[j] for j in equation.columns]
    _, noise = tables.sums({equation.columns: behind.reshape(len(behind), *shape)})
    clear = behind @ weights >= CLEAR * np.sqrt(np.diag(noise))
    return tuple(not one for one in clear.tolist())


def sandwich(curvature: Array, middle: Array) -> Array:
    """Ĥ⁻¹·middle·Ĥ⁻ᵀ, symmetric."""
    half = solved(curvature, middle)
    whole = solved(curvature, half.T)
    return np.asarray((whole + whole.T) / 2)


def solved(curvature: Array, right: Array) -> Array:
    """Ĥ⁻¹·right, whatever the units of the coefficients are: each is measured by the root of its
    curvature, and a little is added where a table leaves the rest singular.
    """
    size = np.sqrt(np.abs(np.diag(curvature)))
    size = np.where(size > 0, size, 1.0)
    inner = curvature / np.outer(size, size) + RIDGE * np.eye(len(size))
    return np.asarray((np.linalg.solve(inner, (right.T / size).T).T / size).T)
