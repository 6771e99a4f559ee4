"""Laws of the privacy loss, many mechanisms of one kind at a time.

A `Law` stands for n factors of one kind in one direction. Its loss has three parts: atoms,
an infinite part, and a continuous part told by the probabilities of cells under P and Q. Every
number comes with a bound of its rounding error (`slack`), which the discretisation spends on the
safe side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.loss_distributions.pairs import (
    Atoms,
    Base,
    Direction,
    Factor,
    Gaussian,
    Laplace,
    Sampled,
)

Floats = NDArray[np.float64]
UNIT = 2.0**-53  # unit roundoff
# relative error of scipy.special.ndtr, in unit roundoffs: 64 + 4x²
# (tests/accounting/test_pld_pairs.py)
_TAIL_SLACK = 64.0
_PLAIN, _REMOVE, _ADD, _FIXED = "plain", "remove", "add", "fixed"


@dataclass(frozen=True, slots=True)
class IntervalMasses:
    """Probabilities of the intervals between edges, under P and Q, with absolute error bounds."""

    p: Floats
    q: Floats
    p_slack: Floats
    q_slack: Floats

    def mixed(self, first: float | Floats, second: float | Floats) -> tuple[Floats, Floats]:
        """first·p + second·q and its slack."""
        return (
            first * self.p + second * self.q,
            first * self.p_slack
            + second * self.q_slack
            + 4 * UNIT * (first * self.p + second * self.q),
        )


@dataclass(frozen=True, slots=True)
class Law:
    """The loss of n factors of one kind: parameters are columns of shape (n, 1)."""

    kind: type
    parameter: Floats
    rate: Floats
    mode: str
    atom_losses: Floats
    atom_masses: Floats
    infinite: Floats
    spacing: float | None  # of the lattice that holds every atom, where all rows share one
    times: NDArray[np.int64]

    @property
    def rows(self) -> int:
        return int(self.times.size)

    @property
    def continuous(self) -> bool:
        return self.kind is not Atoms

    def cells(self, edges: Floats) -> IntervalMasses:
        """Cell probabilities of the continuous part;
        `edges` increase along the last axis and may be infinite.
        """
        if self.mode == _FIXED:
            upper = self._cells(np.maximum(edges, 0.0), _REMOVE)
            lower = self._cells(np.minimum(edges, 0.0), _ADD)
            return IntervalMasses(
                upper.p + lower.p,
                upper.q + lower.q,
                upper.p_slack + lower.p_slack,
                upper.q_slack + lower.q_slack,
            )
        return self._cells(edges, self.mode)

    def _cells(self, edges: Floats, mode: str) -> IntervalMasses:
        if mode == _PLAIN:
            return self._base_cells(edges)
        q = self.rate
        if mode == _REMOVE:
            base = self._base_cells(_threshold(edges, q))
            mixture, slack = base.mixed(q, 1 - q)
            return IntervalMasses(mixture, base.q, slack, base.q_slack)
        base = self._base_cells(-_threshold(-edges, q))
        mixture, slack = base.mixed(1 - q, q)
        return IntervalMasses(base.p, mixture, base.p_slack, slack)

    def _base_cells(self, edges: Floats) -> IntervalMasses:
        if self.kind is Gaussian:
            return _gaussian_cells(self.parameter, edges)
        weight = 0.5 if self.kind is Laplace else -1 / np.expm1(-self.parameter)
        return _exponential_cells(self.parameter, edges, weight)

    def span(self, tail: float) -> tuple[Floats, Floats]:
        """(low, high) losses a row, outside of which its continuous part has probability at most
        about `tail`.
        """
        # ±: the reach of the base loss under P₀ upwards, and (by symmetry) under Q₀ downwards; ∓:
        # the other ways
        if self.kind is Gaussian:
            z = _upper_quantile(tail)
            far, near = (
                self.parameter * z + self.parameter**2 / 2,
                self.parameter * z - self.parameter**2 / 2,
            )
        else:
            far = near = self.parameter
        low, high = -near, far
        if self.mode in (_REMOVE, _FIXED):
            low, high = _sampled_loss(-far, self.rate), _sampled_loss(far, self.rate)
        if self.mode in (_ADD, _FIXED):
            low = -_sampled_loss(near, self.rate)
        if self.mode == _ADD:
            high = -_sampled_loss(-far, self.rate)
        return low[:, 0], high[:, 0]

    def nodes(self, tail: float, count: int) -> tuple[Floats, Floats]:
        """A rough sample of the loss under P, (losses, weights):
        it steers the choice of the grid, nothing is proven from it.
        """
        if not self.continuous:
            return self.atom_losses, self.atom_masses
        if self.kind is Gaussian:
            z = _upper_quantile(tail)
            unit = np.linspace(-z, z, count)
            base, weight = (
                self.parameter * unit,
                np.exp(-(unit**2) / 2)
                * ((unit[1] - unit[0]) / np.sqrt(2 * np.pi))
                * np.ones_like(self.parameter),
            )
            half = self.parameter**2 / 2
            if self.mode in (_PLAIN, _ADD):
                loss = base + half
                return (
                    (loss, weight)
                    if self.mode == _PLAIN
                    else (-_sampled_loss(-loss, self.rate), weight)
                )
            q = self.rate
            loss = np.concatenate(
                [_sampled_loss(base - half, q), _sampled_loss(base + half, q)], axis=1
            )
            weights = np.concatenate([(1 - q) * weight, q * weight], axis=1)
            if self.mode == _REMOVE:
                return loss, weights
            return self._fixed_nodes(loss, weights)
        unit = (np.arange(count) + 0.5) / count
        weights_at = 0.5 if self.kind is Laplace else -1 / np.expm1(-self.parameter)
        base = self.parameter * (2 * unit - 1)
        weight = weights_at * self.parameter / count * np.exp((base - self.parameter) / 2)
        q = self.rate
        if self.mode == _ADD:
            loss, weight = -_sampled_loss(-base, q), weight
        elif self.mode == _PLAIN:
            loss = base
        else:
            loss, weight = _sampled_loss(base, q), (q + (1 - q) * np.exp(-base)) * weight
        loss = np.concatenate([loss, self.atom_losses], axis=1)
        weight = np.concatenate([weight, self.atom_masses], axis=1)
        return (loss, weight) if self.mode != _FIXED else self._fixed_nodes(loss, weight)

    def _fixed_nodes(self, loss: Floats, weight: Floats) -> tuple[Floats, Floats]:
        up = np.where(loss > 0, weight, 0.0)
        down = up * np.exp(-np.maximum(loss, 0.0))
        rest = np.maximum(1 - up.sum(1, keepdims=True) - down.sum(1, keepdims=True), 0.0)
        return np.concatenate([loss, -loss, np.zeros_like(rest)], axis=1), np.concatenate(
            [up, down, rest], axis=1
        )


def law_of(factors: Sequence[Factor], times: Sequence[int], direction: Direction) -> Law:
    """One law for factors of one kind (see `kind_of`)."""
    base: list[Base] = [
        factor.base if isinstance(factor, Sampled) else factor for factor in factors
    ]
    sampled = factors[0] if isinstance(factors[0], Sampled) else None
    mode = _PLAIN if sampled is None else (_FIXED if sampled.scheme == "fixed" else direction)
    rate = np.array([factor.rate if isinstance(factor, Sampled) else 1.0 for factor in factors])[
        :, None
    ]
    counts = np.array(times, dtype=np.int64)
    kind = type(base[0])
    if isinstance(base[0], Atoms):
        return _atoms_law(
            [item for item in base if isinstance(item, Atoms)], rate, mode, direction, counts
        )
    parameter = np.array(
        [
            item.mu if isinstance(item, Gaussian) else item.epsilon
            for item in base
            if not isinstance(item, Atoms)
        ]
    )[:, None]
    spacing = None
    if kind is Laplace:
        losses = np.concatenate([-parameter, parameter], axis=1)
        heavy, light = np.full_like(parameter, 0.5), 0.5 * np.exp(-parameter)
        p, q = np.concatenate([light, heavy], axis=1), np.concatenate([heavy, light], axis=1)
        losses, masses = _sampled_atoms(losses, p, q, rate, mode)
        if mode == _PLAIN and np.ptp(parameter) == 0:
            spacing = 2 * float(parameter[0, 0])
    else:
        losses, masses = np.zeros((len(factors), 0)), np.zeros((len(factors), 0))
    law = Law(kind, parameter, rate, mode, losses, masses, np.zeros(len(factors)), spacing, counts)
    return _with_atom_at_zero(law) if mode == _FIXED else law


def kind_of(factor: Factor) -> tuple[object, ...]:
    """Factors with equal kinds can share a law."""
    base = factor.base if isinstance(factor, Sampled) else factor
    return (
        type(base),
        factor.scheme if isinstance(factor, Sampled) else "",
        len(base.losses) if isinstance(base, Atoms) else 0,
    )


def _atoms_law(
    atoms: list[Atoms], rate: Floats, mode: str, direction: Direction, times: NDArray[np.int64]
) -> Law:
    oriented = (
        [item.reversed() for item in atoms] if direction == "add" and mode == _PLAIN else atoms
    )
    losses, p, q = (
        np.array([getattr(item, name) for item in oriented]) for name in ("losses", "p", "q")
    )
    p_only = np.array([item.p_only for item in oriented])
    q_only = np.array([item.q_only for item in oriented])
    spacings = {item.spacing() for item in oriented}
    spacing = spacings.pop() if mode == _PLAIN and len(spacings) == 1 else None
    infinite = p_only
    if mode == _REMOVE:
        extra = (np.log1p(-rate), (1 - rate) * q_only[:, None])
        losses, masses = _sampled_atoms(losses, p, q, rate, mode)
        losses, masses = (
            np.concatenate([losses, extra[0]], axis=1),
            np.concatenate([masses, extra[1]], axis=1),
        )
        infinite = rate[:, 0] * p_only
    elif mode == _ADD:
        losses, masses = _sampled_atoms(losses, p, q, rate, mode)
        losses = np.concatenate([losses, -np.log1p(-rate)], axis=1)
        masses = np.concatenate([masses, q_only[:, None]], axis=1)
        infinite = np.zeros_like(q_only)
    elif mode == _FIXED:
        losses, masses = _sampled_atoms(losses, p, q, rate, mode)
        # outcomes of Q alone have losses that the other order decides, and none of its mass
        infinite = rate[:, 0] * p_only
    else:
        masses = p
    law = Law(
        Atoms, np.zeros((len(atoms), 1)), rate, mode, losses, masses, infinite, spacing, times
    )
    return _with_atom_at_zero(law) if mode == _FIXED else law


def _sampled_atoms(
    losses: Floats, p: Floats, q: Floats, rate: Floats, mode: str
) -> tuple[Floats, Floats]:
    if mode == _PLAIN:
        return losses, p
    up, mixture = _sampled_loss(losses, rate), rate * p + (1 - rate) * q
    if mode == _REMOVE:
        return up, mixture
    if mode == _ADD:
        return -up, q
    # the base is symmetric: "add" below 0 mirrors "remove" above 0, with Q's masses
    above = losses > 0
    return np.concatenate([up, -up], axis=1), np.concatenate(
        [np.where(above, mixture, 0.0), np.where(above, q, 0.0)], axis=1
    )


def _with_atom_at_zero(law: Law) -> Law:
    edges = np.array([-np.inf, 0.0, np.inf]) if law.continuous else None
    rest = 1 - law.atom_masses.sum(1, keepdims=True) - law.infinite[:, None]
    if edges is not None:
        cells = law.cells(np.broadcast_to(edges, (law.rows, 3)))
        rest = rest - (cells.p - cells.p_slack).sum(1, keepdims=True)
    rest = np.maximum(rest + 16 * UNIT, 0.0)
    return Law(
        law.kind,
        law.parameter,
        law.rate,
        law.mode,
        np.concatenate([law.atom_losses, np.zeros_like(rest)], axis=1),
        np.concatenate([law.atom_masses, rest], axis=1),
        law.infinite,
        None,
        law.times,
    )


def _threshold(edges: Floats, rate: Floats) -> Floats:
    """The base loss t with ln(1−r+r·e^t) = edge; −∞ where the edge is below every loss."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.expm1(np.minimum(edges, 700.0)) / rate
        return np.where(
            ratio > -1,
            np.where(
                edges > 700,
                np.where(np.isinf(edges), edges, edges - np.log(rate)),
                np.log1p(np.maximum(ratio, -1.0)),
            ),
            -np.inf,
        )


def _sampled_loss(loss: Floats, rate: Floats) -> Floats:
    """ln(1−r+r·e^loss), stable for large losses."""
    large = loss > 30
    low = np.log1p(rate * np.expm1(np.where(large, 0.0, loss)))
    return np.where(
        large,
        loss + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.where(large, loss, 0.0))),
        low,
    )


def _upper_quantile(tail: float) -> float:
    from scipy.special import ndtri

    return float(-ndtri(max(tail, 1e-290)))


def _gaussian_cells(mu: Floats, edges: Floats) -> IntervalMasses:
    x = edges / mu + mu / 2
    q, q_slack = _normal_cells(x)
    p, p_slack = _normal_cells(x - mu)
    return IntervalMasses(p, q, p_slack, q_slack)


def _normal_cells(x: Floats) -> tuple[Floats, Floats]:
    """P(x_i < Z ≤ x_{i+1}), as differences of the smaller tails, and their slack."""
    from scipy.special import ndtr

    tail = ndtr(-np.abs(x))
    left, right = tail[..., :-1], tail[..., 1:]
    crossing = (x[..., :-1] < 0) & (x[..., 1:] >= 0)
    mass = np.where(crossing, 1 - left - right, np.abs(right - left))
    error = tail * ((_TAIL_SLACK + 4 * np.minimum(x * x, 1500.0)) * UNIT)
    slack = error[..., :-1] + error[..., 1:] + np.where(crossing, 2 * UNIT, 0.0)
    return mass, np.where(x[..., 1:] == x[..., :-1], 0.0, slack)  # an empty cell is exactly empty


def _exponential_cells(epsilon: Floats, edges: Floats, weight: Any) -> IntervalMasses:
    """Laws with density ∝ e^(x/2) of the loss x on [−ε, ε] under P:
    Laplace between its atoms, bounded range.
    """
    clipped = np.clip(edges, -epsilon, epsilon)
    left, gap = clipped[..., :-1], np.diff(clipped, axis=-1)
    p = weight * np.exp((left - epsilon) / 2) * np.expm1(gap / 2)
    q = -weight * np.exp(-(left + epsilon) / 2) * np.expm1(-gap / 2)
    # the differences of neighbouring floats are exact;
    # where an edge lies is allowed for in lattice.py
    rounding = (32 + np.abs(epsilon)) * UNIT
    return IntervalMasses(p, q, rounding * p, rounding * q)
