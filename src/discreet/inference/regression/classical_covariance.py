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

from dataclasses import dataclass

import numpy as np

from discreet.inference.regression.covariance import Estimate
from discreet.inference.regression.curvature import Shrunk, floored, redrawn
from discreet.inference.regression.decode import Reading
from discreet.inference.results.laws import Array

SMALLEST_CURVATURE = 1e-3  # of the largest possible one
CLEAR, LOWER = 4.0, 2.0  # an eigenvalue within 4 s of 0 is taken 2 s lower
LARGEST_TRACE = 1e8  # coefficients are clamped, so no error is larger
LEAST_LEFT = 1e-3
MOST_TERMS = 2e7  # of all redraws of an sgd fit together


@dataclass(frozen=True)
class Path:
    """How an estimate came about: `sizes` are σ_k and `noises` s_k of the gradients, in order;
    `start` and `end` the first and last coefficients.

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


def lecture_estimate(path: Path, released: Released) -> Estimate:
    """The estimate with sampling variance (sandwich, H3) and the exact propagation of all noise."""
    size = len(path.end)
    curvature, resolved = _curvature(released)
    scores = Shrunk(
        floored(released.scores.value, 1e-4 * released.largest[1]),
        0.0,
        np.ones((size, size)),
        1e-4 * released.largest[1],
        released.scores.noise,
    )
    values, vectors = np.linalg.eigh(curvature.matrix)
    noise = _turned(vectors, propagated(path, values, _turned_into(vectors, scores.matrix)))
    further, miss = _further(path, values, vectors)
    sampling = _sandwich(released, curvature.inverse, scores.matrix)
    others_drawn = redrawn(curvature, "curvature")
    if path.solver == "sgd":
        others_drawn = others_drawn[: max(8, int(MOST_TERMS / (size * path.steps)))]
    other_values, other_vectors = np.linalg.eigh(others_drawn)
    other_scores = redrawn(scores, "scores")[: len(others_drawn)]
    others = np.array(
        [
            _turned(turn, propagated(path, value, _turned_into(turn, score)))
            for value, turn, score in zip(other_values, other_vectors, other_scores, strict=True)
        ]
    )
    redraws = (
        _sandwich(released, np.asarray(np.linalg.inv(others_drawn)), other_scores)
        + others
        + further
    )
    left = miss**2 <= 0.25 * np.diag(sampling + noise)
    return Estimate(
        path.end,
        np.eye(size),
        sampling,
        noise,
        further,
        redraws,
        bool(left.all()),
        resolved,
        curvature,
        scores,
    )


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
    """The variances that the lectures print, H4, "Lectures say" and its Newton form, 8η²B²K/(nμ²)
    in place of the sum: they under-cover. A contrast for benchmarks.
    """
    curvature, _ = _curvature(released)
    inverse = curvature.inverse
    sandwich = np.diag(
        _sandwich(released, inverse, floored(released.scores.value, 1e-4 * released.largest[1]))
    )
    last = (path.step * released.sigma * path.noises[-1]) ** 2
    if path.solver == "newton":
        return np.asarray(sandwich + last * np.diag(inverse @ inverse))
    return np.asarray(sandwich + 2 * last)


def _curvature(released: Released) -> tuple[Shrunk, bool]:
    """H with eigenvalues near 0 taken lower and then floored, so that what noise hides makes
    intervals wide; and whether all stood clear.
    """
    reading, floor = released.curvature, SMALLEST_CURVATURE * released.largest[0]
    values, vectors = np.linalg.eigh(reading.value)
    near = values < CLEAR * reading.noise
    used = np.maximum(np.where(near, values - LOWER * reading.noise, values), floor)
    matrix = _turned(vectors, np.diag(used))
    return Shrunk(matrix, 0.0, np.ones_like(matrix), floor, reading.noise), not bool(near.any())


def _sandwich(released: Released, inverse: Array, scores: Array) -> Array:
    return np.asarray(
        released.cluster * released.sigma**2 * inverse @ (scores / released.rows) @ inverse
    )


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
