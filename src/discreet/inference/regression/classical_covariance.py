"""Noise propagation of the classical solvers: what the noise of every step has become in the
estimate (reference.md H3–H5), from released numbers alone.

In the eigenvectors of the released curvature H (eigenvalues λ), with σ_k the scale and s_k the
noise of the k-th of K mean gradients:

    gradient   θ ← θ − ησg   Cov = Σ_k (ησ_k s_k)² (1−ηλ)^(2(K−k))   (H4, the finite sum)
    newton     θ ← θ − ησH̃⁻¹g   Cov = Σ_k (ησ_k s_k)² (1−η)^(2(K−k)) λ⁻²   (H5, the finite sum)
    sgd        mean of the last W of T iterates;  Cov_kl = V_kl Σ_j c_j(λ_k) c_j(λ_l),
               c_j(λ) = ((1−ηλ)^max(0, T−W+1−j) − (1−ηλ)^(T+1−j))/(Wλ), V the covariance of one
               noisy batch mean: noise and the choice of the batch, s²I + (1−rate)Q/m

Beside it stand what is left of the start, (1−ηλ)^K of the distance to it, and for Newton the noise
of the matrices, E[EvvᵀE] = (s_H²/2)(‖v‖²I + vvᵀ).

Validity.   The estimating equation is nearly linear over the last steps;
            0 < ηλ < 2, which the public step size ensures.
Reference.  reference.md H3–H6, E8; tests/models/test_classical.py compares with simulations of the
            procedures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.inference.regression.covariance import (
    NOT_CONVERGED,
    PESSIMISTIC,
    UNRESOLVED,
    Estimate,
)
from discreet.inference.regression.curvature import (
    DRAWS,
    Shrunk,
    draws_for,
    floored,
    redrawn,
    shrunk,
)
from discreet.inference.regression.decode import Reading
from discreet.inference.results.laws import Array

SMALLEST_CURVATURE = 1e-3  # of the largest possible one
CLEAR, LOWER = 4.0, 2.0  # an eigenvalue within 4 s of 0 is taken 2 s lower
LARGEST_TRACE = 1e8  # coefficients are clamped, so no error is larger
LEAST_LEFT = 1e-3
FADE = 0.25  # what a curvature of one step before weighs, for mean families
MOST_TERMS = 2e7  # of all redraws of an sgd fit together


@dataclass(frozen=True)
class Path:
    """How an estimate came about: `sizes` are σ_k and `noises` s_k of the gradients, in order;
    `start` and `end` the first and last coefficients, of columns as the solver scales them.

    sgd: one σ and s; `steps` T, `averaged` W, `batch` m, `rate` the share of the rows in a batch.
    newton: `matrix_noises` are the s_H of the curvatures used.
    """

    solver: str
    step: float
    sizes: Array
    noises: Array
    start: Array
    end: Array
    matrix_noises: Array
    steps: int = 0
    averaged: int = 0
    batch: float = 1.0
    rate: float = 0.0
    last: Array | None = None  # the last gradient, where convergence is checked by it


@dataclass(frozen=True)
class Released:
    """The matrices at the estimate: mean curvature and mean outer product of scores, with the
    public bounds of one row's ψ′ and ψ².
    """

    curvature: Reading
    scores: Reading
    largest: tuple[float, float]
    sigma: float
    rows: float
    cluster: int
    white: bool = False  # in columns that a learnt metric made white

    @property
    def effective(self) -> float:
        """Rows less the coefficients; those of a unit may be alike."""
        return max(self.rows - len(self.curvature.value), self.rows / 4) / self.cluster


def lecture_estimate(path: Path, released: Released, back: Array) -> Estimate:
    """The estimate with sampling variance (sandwich, H3) and the exact propagation of all noise;
    β = back·θ.
    """
    size = len(path.end)
    curvature, resolved = _curvature(released)
    scores = _scores(released)
    values, vectors = np.linalg.eigh(curvature.matrix)
    noise = _turned(vectors, propagated(path, values, _turned_into(vectors, scores.matrix)))
    further, miss = _further(path, values, vectors)
    sampling = _sandwich(released, curvature.inverse, scores.matrix)
    draws = draws_for(curvature, scores) if released.white else DRAWS
    if path.solver == "sgd":
        draws = min(draws, max(8, int(MOST_TERMS / (size * path.steps))))
    others_drawn = redrawn(curvature, "curvature", draws)
    other_values, other_vectors = np.linalg.eigh(others_drawn)
    other_scores = redrawn(scores, "scores", draws)[: len(others_drawn)]
    others = np.array(
        [
            _turned(turn, propagated(path, value, _turned_into(turn, score)))
            for value, turn, score in zip(other_values, other_vectors, other_scores, strict=True)
        ]
    )
    if not resolved and released.white:
        further = further + _lost(path, released, scores.matrix)
    still = _is_still(path, released.sigma, values, vectors)
    if not still and path.last is not None:
        gap = released.sigma * curvature.inverse @ path.last
        further = further + np.outer(gap, gap)
    redraws = (
        _sandwich(released, np.asarray(np.linalg.inv(others_drawn)), other_scores)
        + others
        + further
    )
    converged = bool((miss**2 <= 0.25 * np.diag(sampling + noise)).all()) and still
    return Estimate(
        np.asarray(back @ path.end),
        back,
        sampling,
        noise,
        further,
        redraws,
        converged,
        resolved,
        curvature,
        scores,
        # what is left lies where the curvature (and a metric) is lost in noise
        unbounded=not converged,
    )


def _is_still(path: Path, sigma: float, values: Array, vectors: Array) -> bool:
    """Whether the last gradient is no larger than its own noise and that of the steps before it
    explain.
    """
    if path.last is None:
        return True
    before = replace(path, sizes=path.sizes[:-1], noises=path.noises[:-1])
    # the noise of the point before the last step, as its gradient shows it
    there = np.diag(propagated(before, values, np.eye(len(values)))) * (values / sigma) ** 2
    expected = path.noises[-1] ** 2 + there
    size, turned = len(values), vectors.T @ path.last
    limit = size + NOT_CONVERGED * np.sqrt(2 * size) + 8
    return bool((turned**2 / expected).sum() <= limit)


def _lost(path: Path, released: Released, scores: Array) -> Array:
    """What is added where the curvature does not stand clear of its noise: as if it were 5 % of its
    largest possible value.
    """
    spread = scores / released.effective + path.noises.min() ** 2 * np.eye(len(scores))
    return np.asarray(released.sigma**2 * spread / (PESSIMISTIC * released.largest[0]) ** 2)


def pooled(readings: list[Reading], *, residual: bool) -> Reading:
    """The curvatures so far as one, weighted by precision; a mean family's changes from point to
    point, so that each step back counts a quarter.
    """
    fade = 1.0 if residual else FADE
    weights = np.array(
        [fade**age / reading.noise**2 for age, reading in enumerate(reversed(readings))]
    )[::-1]
    weights = weights / weights.sum()
    value = sum(weight * reading.value for weight, reading in zip(weights, readings, strict=True))
    noises = np.array([reading.noise for reading in readings])
    return Reading(np.asarray(value), float(np.sqrt(((weights * noises) ** 2).sum())))


def steady_inverse(curvature: Shrunk) -> Array:
    """What a Newton step is taken with: eigenvalues are raised to the reach of their noise, at most
    to half the mean one. White columns have about one curvature; a step with less than half of it
    would overshoot, and the next one further.
    """
    reach = curvature.noise * np.sqrt(2 * len(curvature.matrix))
    return np.asarray(np.linalg.inv(floored(curvature.matrix, min(reach, curvature.level / 2))))


def propagated(path: Path, values: Array, scores: Array) -> Array:
    """Covariance of the estimate, given the data, in the eigenvectors of the curvature;
    `scores` is Q there (sgd alone reads it).
    """
    eta = path.step
    if path.solver == "sgd":
        spread = np.eye(len(values)) * path.noises[0] ** 2 + (1 - path.rate) * scores / path.batch
        weights = _mean_weights(_shrink(eta, values), values, path.steps, path.averaged)
        return np.asarray(path.sizes[0] ** 2 * spread * (weights.T @ weights))
    moved = (eta * path.sizes * path.noises) ** 2
    ages = np.arange(len(moved))[::-1]
    if path.solver == "gradient":
        return np.diag(
            (moved[:, None] * _shrink(eta, values)[None, :] ** (2 * ages[:, None])).sum(axis=0)
        )
    return np.diag(float((moved * (1 - eta) ** (2.0 * ages)).sum()) / values**2)


def lecture_correction(path: Path, released: Released) -> Array:
    """The covariance that the lectures print, H4, "Lectures say" and its Newton form, 8η²B²K/(nμ²)
    in place of the sum: it under-covers. A contrast for benchmarks.
    """
    curvature, _ = _curvature(released)
    inverse = curvature.inverse
    sandwich = _sandwich(released, inverse, _scores(released).matrix)
    last = (path.step * released.sigma * path.noises[-1]) ** 2
    if path.solver == "newton":
        return np.asarray(sandwich + last * inverse @ inverse)
    return np.asarray(sandwich + 2 * last * np.eye(len(inverse)))


def _curvature(released: Released) -> tuple[Shrunk, bool]:
    """H, and whether it stood clear of its noise. In white columns it is shrunk as for Algorithm A;
    else, and where it is clearly less in some direction than its floor there (columns that the
    metric could not part), eigenvalues near 0 are taken lower and then floored, so that what noise
    hides makes intervals wide.
    """
    if released.white:
        read, largest, size = released.curvature, released.largest[0], len(released.curvature.value)
        found = shrunk(read.value, read.noise, largest=largest, curvature=True)
        reach = read.noise * (np.sqrt(2 * size) + 1)
        if float(np.linalg.eigvalsh(read.value)[0]) + reach >= found.floor:
            return found, bool(np.trace(read.value) >= UNRESOLVED * read.noise * np.sqrt(size))
    reading, floor = released.curvature, SMALLEST_CURVATURE * released.largest[0]
    values, vectors = np.linalg.eigh(reading.value)
    near = values < CLEAR * reading.noise
    used = np.maximum(np.where(near, values - LOWER * reading.noise, values), floor)
    matrix = _turned(vectors, np.diag(used))
    return Shrunk(matrix, 0.0, np.ones_like(matrix), floor, reading.noise), not bool(near.any())


def _scores(released: Released) -> Shrunk:
    """Q: shrunk as for Algorithm A in white columns, else floored."""
    read, largest = released.scores, released.largest[1]
    if released.white:
        return shrunk(read.value, read.noise, largest=largest, curvature=False)
    floor = 1e-4 * largest
    return Shrunk(
        floored(read.value, floor), 0.0, np.ones_like(read.value), floor, released.scores.noise
    )


def _sandwich(released: Released, inverse: Array, scores: Array) -> Array:
    if not released.white:
        return np.asarray(
            released.cluster * released.sigma**2 * inverse @ (scores / released.rows) @ inverse
        )
    return np.asarray(released.sigma**2 * inverse @ (scores / released.effective) @ inverse)


def _further(path: Path, values: Array, vectors: Array) -> tuple[Array, Array]:
    """(covariance, coordinates) of what is left of the start,
    and for Newton what the matrices' noise adds.
    """
    gap = vectors.T @ (path.start - path.end)
    eta = path.step
    if path.solver == "newton":
        left = np.full(len(values), abs(1 - eta) ** len(path.noises))
    elif path.solver == "gradient":
        left = np.abs(_shrink(eta, values)) ** len(path.noises)
    else:
        shrink = (
            np.abs(_shrink(eta, values))[None, :]
            ** np.arange(path.steps - path.averaged + 1, path.steps + 1)[:, None]
        )
        left = shrink.mean(axis=0)
    miss = vectors @ (left * gap / np.maximum(1 - left, LEAST_LEFT))
    further = np.outer(miss, miss)
    if path.solver == "newton":
        further = further + _matrix_noise(path, values, vectors, gap)
    return further, miss


def _matrix_noise(path: Path, values: Array, vectors: Array, gap: Array) -> Array:
    """What the noise of the curvatures adds, by the recursion of the error's second moment;
    the linear part is left out.
    """
    eta, inverse = path.step, 1 / values
    whole, plain = np.outer(gap, gap), np.zeros((len(values), len(values)))
    first = plain + whole
    for size, noise, matrix in zip(path.sizes, path.noises, path.matrix_noises, strict=True):
        fresh = np.eye(len(values)) * (size * noise) ** 2
        stirred = matrix**2 / 2 * (np.trace(whole) * np.eye(len(values)) + whole)
        whole = (1 - eta) ** 2 * whole + eta**2 * inverse[:, None] * (fresh + stirred) * inverse[
            None, :
        ]
        plain = (1 - eta) ** 2 * plain + eta**2 * inverse[:, None] * fresh * inverse[None, :]
        first = (1 - eta) ** 2 * first
        whole = whole * min(1.0, LARGEST_TRACE / max(float(np.trace(whole)), 1e-300))
    added = whole - plain - first
    values_added, turn = np.linalg.eigh(added)
    return np.asarray(_turned(vectors @ turn, np.diag(np.maximum(values_added, 0.0))))


def _mean_weights(shrink: Array, values: Array, steps: int, averaged: int) -> Array:
    """c_j(λ)/η·η for every step j (rows) and eigenvalue (columns): how much of the j-th step's
    error is in the mean of the last iterates.
    """
    place = np.arange(1, steps + 1)[:, None]
    early = np.maximum(0, steps - averaged + 1 - place)
    return np.asarray(
        (shrink[None, :] ** early - shrink[None, :] ** (steps + 1 - place))
        / (averaged * values[None, :])
    )


def _shrink(step: float, values: Array) -> Array:
    """1 − ηλ, what a step leaves of an error; never below −1, since ηλ < 2 for every mean curvature
    that the weights allow: beyond it a reading is noise.
    """
    return np.maximum(1 - step * values, -1.0)


def _turned(vectors: Array, matrix: Array) -> Array:
    return np.asarray(vectors @ matrix @ vectors.T)


def _turned_into(vectors: Array, matrix: Array) -> Array:
    return np.asarray(vectors.T @ matrix @ vectors)
