"""The estimate of Algorithm A and its covariance,
from the numbers of its releases (regression.md §3).

With H and Q the regularised curvature and score matrices,
s_g² the noise of the pooled gradients and ω their weights,

    V = σ²H⁻¹(Q/n + s_g²I)H⁻¹ + t₁(s₁²/2)·H⁻¹(tr(C)I + C)H⁻¹,   C = σ²(c_G s_g² + ω₁²s_b²)H⁻²

in the metric; the second term is the noise of the first curvature times the noise of the points it
was applied to (for symmetric noise, E[EvvᵀE] = (s²/2)(‖v‖²I + vvᵀ)). Where the curvature does not
stand clear of its noise, intervals are as wide as if it were 5 % of its largest possible value;
steps that were cut short, a last gradient that stands clear of its noise, and up to a tenth of the
slopes for each unit by which a yes/no predictor's standard deviation exceeds 4 are added. All is
linear in the sums: the number of rows cancels (but for the degrees of freedom n − p), so a noisy
one does no harm.

Validity.   Independent rows (or units, whose rows may be alike: the sampling part is multiplied by
            the rows of a unit); the noise small enough that the last point lies where the
            estimating equation is nearly linear, which the convergence check looks at.
Reference.  Huber 1981 §7; reference.md G1, G5, H3; simulations in benchmarks/coverage.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.inference.regression.curvature import Shrunk, draws_for, redrawn, shrunk
from discreet.inference.regression.decode import Reading, trusted
from discreet.inference.results.laws import Array

UNRESOLVED = 2.5  # standard deviations of noise below which the curvature's level counts as lost
PESSIMISTIC = 0.05  # of the largest curvature: what is then assumed
# the predictor's standard deviation above which yes/no outcomes count as nearly separated
SEPARATED = 4.0
# what each unit beyond adds to the slopes' relative error, in full from this noise index on
SEPARATED_ERROR, SEPARATED_NOISE = 0.1, 0.02
# of the terms of a variance: what cancels below it is not known, and counts as there
ROUNDING = 2.0**-50
# the check's distance from its mean, in standard deviations of a chi-square, beside a constant
NOT_CONVERGED = 4.0


@dataclass(frozen=True)
class Moves:
    """A funded gradient and the β at which it was taken."""

    beta: Array
    reading: Reading


@dataclass(frozen=True)
class Numbers:
    """All that the estimate depends on: `back` maps θ to β (β = Aᵀθ is back @ θ);
    `largest` are the public bounds of ψ′ and ψ².
    """

    back: Array
    sigma: float
    rows: float
    cluster: int
    residual: bool
    trust: float
    moves: tuple[Moves, ...]
    burn_noise: float
    first: Reading
    second: Reading
    scores: Reading
    largest: tuple[float, float]
    noise_index: float
    # the β of a predictor of 1, where outcomes can be separated (a bounded mean)
    constant: Array | None = None


@dataclass(frozen=True)
class Estimate:
    """β with the parts of its covariance in the metric, and what the releases might have said
    instead (`redraws` of the leading part).
    """

    beta: Array
    back: Array
    sampling: Array
    noise: Array
    further: Array
    redraws: Array
    converged: bool
    resolved: bool
    curvature: Shrunk
    scores: Shrunk
    spread: float = 0.0  # of the predictor, where outcomes can be separated
    unbounded: bool = False  # nothing bounds how far off β is: privacy variances are infinite

    @property
    def separated(self) -> bool:
        """Whether the predictor spreads so far that outcomes are nearly separated."""
        return self.spread > SEPARATED

    def variances(self, along: Array) -> tuple[Array, Array]:
        """(sampling, privacy) variances of along @ β, one for each row of `along`."""
        moved = along @ self.back
        rest = self.noise + self.further
        sampling, privacy = (
            np.einsum("ij,jk,ik->i", moved, part, moved) for part in (self.sampling, rest)
        )
        unsure = [
            ROUNDING * np.einsum("ij,jk,ik->i", np.abs(moved), np.abs(part), np.abs(moved))
            for part in (self.sampling, rest)
        ]
        if self.unbounded:
            return np.maximum(sampling, unsure[0]), np.full_like(privacy, np.inf)
        return np.maximum(sampling, unsure[0]), np.maximum(privacy, unsure[1])

    def covariance(self, along: Array) -> Array:
        moved = along @ self.back
        return np.asarray(moved @ (self.sampling + self.noise + self.further) @ moved.T)

    def ratios(self, along: Array) -> Array:
        """Standard errors that other noise would have given, relative to the reported ones:
        shape (draws, rows of `along`).
        """
        moved = along @ self.back
        reported = sum(self.variances(along))
        drawn = ((moved @ self.redraws) * moved).sum(axis=2)
        return np.asarray(np.sqrt(np.maximum(drawn, 0.0) / np.maximum(reported, 1e-300)))

    def redrawn_covariances(self, along: Array) -> Array:
        moved = along @ self.back
        return np.asarray(moved @ self.redraws @ moved.T)


def estimated(numbers: Numbers) -> Estimate:
    """The estimate and its covariance."""
    size = numbers.back.shape[1]
    first = shrunk(
        numbers.first.value, numbers.first.noise, largest=numbers.largest[0], curvature=True
    )
    steps = _pooled_steps(numbers, first)
    read = _pooled_curvature(numbers)
    curvature = shrunk(read.value, read.noise, largest=numbers.largest[0], curvature=True)
    scores = shrunk(
        numbers.scores.value, numbers.scores.noise, largest=numbers.largest[1], curvature=False
    )
    inverse, sigma2 = curvature.inverse, numbers.sigma**2
    # the usual degrees of freedom; rows of a unit may be alike
    effective = max(numbers.rows - size, numbers.rows / 4) / numbers.cluster
    further = _curvature_noise(numbers, steps, first, inverse)
    redraws = _redrawn(curvature, scores, sigma2, effective, steps.noise)
    resolved = bool(np.trace(read.value) >= UNRESOLVED * read.noise * np.sqrt(size))
    if not resolved:
        lost = (
            sigma2
            * (scores.matrix / effective + steps.noise * np.eye(size))
            / (PESSIMISTIC * numbers.largest[0]) ** 2
        )
        further, redraws = further + lost, redraws + lost
    converged = _has_converged(numbers, steps)
    slopes = _slopes(numbers, steps.beta)
    spread = float(np.linalg.norm(slopes))
    for miss in _misses(numbers, steps, inverse, slopes, spread, converged=converged):
        further, redraws = further + np.outer(miss, miss), redraws + np.outer(miss, miss)
    return Estimate(
        steps.beta,
        numbers.back,
        sigma2 * inverse @ (scores.matrix / effective) @ inverse,
        steps.noise * sigma2 * inverse @ inverse,
        further,
        redraws,
        converged,
        resolved,
        curvature,
        scores,
        spread,
    )


@dataclass(frozen=True)
class _Steps:
    """The steps that the funded gradients ask for, pooled by their precision: `wanted` and, no
    longer than the trust region, `taken`; `noise` is s_g².
    """

    weights: Array
    wanted: Array
    taken: Array
    beta: Array
    noise: float


def _pooled_steps(numbers: Numbers, first: Shrunk) -> _Steps:
    weights = np.array([1 / move.reading.noise**2 for move in numbers.moves])
    weights /= weights.sum()
    wanted = np.array(
        [numbers.sigma * first.inverse @ move.reading.value for move in numbers.moves]
    )
    taken = np.array([trusted(step, numbers.trust) for step in wanted])
    beta = weights @ np.array([move.beta for move in numbers.moves]) - numbers.back @ (
        weights @ taken
    )
    noise = 1 / sum(1 / move.reading.noise**2 for move in numbers.moves)
    return _Steps(weights, wanted, taken, np.asarray(beta), noise)


def _curvature_noise(numbers: Numbers, steps: _Steps, first: Shrunk, inverse: Array) -> Array:
    """The second term of V: the first curvature's noise times that of the points it was
    applied to.
    """
    weights, identity = steps.weights, np.eye(len(inverse))
    before = np.cumsum(weights)
    growth = float(sum(weights[k] ** 2 / before[k - 1] for k in range(1, len(weights))))
    error = (
        numbers.sigma**2
        * (growth * steps.noise + weights[0] ** 2 * numbers.burn_noise**2)
        * inverse
        @ inverse
    )
    return np.asarray(
        max(first.kept, 0.2)
        * first.noise**2
        / 2
        * inverse
        @ (np.trace(error) * identity + error)
        @ inverse
    )


def _redrawn(
    curvature: Shrunk, scores: Shrunk, sigma2: float, effective: float, noise: float
) -> Array:
    """The first term of V with the matrices that other noise would have given."""
    draws = draws_for(curvature, scores)
    inverse = np.linalg.inv(redrawn(curvature, "curvature", draws))
    middle = redrawn(scores, "scores", draws) / effective + noise * np.eye(len(curvature.matrix))
    return np.asarray(sigma2 * inverse @ middle @ inverse)


def _has_converged(numbers: Numbers, steps: _Steps) -> bool:
    """Whether the last gradient is no larger than its noise explains."""
    last, weight, size = numbers.moves[-1].reading, steps.weights[-1], numbers.back.shape[1]
    limit = (
        last.noise**2
        * (1 + weight / max(1 - weight, 1e-12))
        * (size + NOT_CONVERGED * np.sqrt(2 * size) + 8)
    )
    return bool(last.value @ last.value <= limit)


def _misses(
    numbers: Numbers,
    steps: _Steps,
    inverse: Array,
    slopes: Array,
    spread: float,
    *,
    converged: bool,
) -> list[Array]:
    """How far the estimate may be off beside its noise: steps cut short, a last gradient that
    stands clear of its noise, slopes that separate outcomes.
    """
    missed = [steps.weights @ (steps.wanted - steps.taken)]
    if not converged:
        missed.append(numbers.sigma * inverse @ numbers.moves[-1].reading.value)
    if spread > SEPARATED:
        missed.append(
            SEPARATED_ERROR
            * min(1.0, numbers.noise_index / SEPARATED_NOISE)
            * (spread - SEPARATED)
            * slopes
        )
    return missed


def _slopes(numbers: Numbers, beta: Array) -> Array:
    """The estimate in the metric, without its constant part;
    0 where outcomes cannot be separated.
    """
    if numbers.constant is None:
        return np.zeros(len(beta))
    theta, constant = (
        np.linalg.solve(numbers.back, beta),
        np.linalg.solve(numbers.back, numbers.constant),
    )
    return np.asarray(
        theta - constant * (constant @ theta) / max(float(constant @ constant), 1e-300)
    )


def _pooled_curvature(numbers: Numbers) -> Reading:
    """The curvature for inference: both releases, weighted by precision, where the scale fixes it
    (Huber); the one at the estimate otherwise.
    """
    first, second = numbers.first, numbers.second
    if not numbers.residual:
        return second
    one, two = 1 / first.noise**2, 1 / second.noise**2
    return Reading(
        np.asarray((one * first.value + two * second.value) / (one + two)),
        float((one + two) ** -0.5),
    )
