"""From a law of the loss to a distribution on the lattice offset + h·ℤ, above it or below it.

Above ("connect the dots", Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022): the mass of each cell
moves to the cell's two ends so that its probabilities under P and under Q both stay. In e^ε the
curve δ becomes the polygon through the exact values at the lattice points, which lies above it
because δ is convex there.

Below: the mass of each cell around a lattice point is merged into one outcome (post-processing) and
then written, with the same two probabilities, as a combination of that point and one neighbour with
a negative weight: extrapolation lies below a convex function. Negative totals are then removed by
dropping lattice points. docs/theory/pld.md has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.loss_distributions.laws import UNIT, Floats, IntervalMasses, Law

Side = Literal["above", "below"]


@dataclass(frozen=True, slots=True)
class Grading:
    """Losses beyond which the points of a lattice may be 2, 4, 8, … steps apart, above 0 and
    (as positive numbers) below it.
    """

    upper: tuple[float, ...]
    lower: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Lattice:
    """n distributions: row r has mass `mass[r, j]` at points[j]·step + offset[r], `infinite[r]` at
    +∞; rows compose `times[r]`-fold.

    `missing[r]` bounds what a lower bound of δ loses to entries that could not be kept
    (0 for upper bounds).
    """

    step: float
    points: NDArray[np.int64]
    mass: Floats
    offset: Floats
    infinite: Floats
    missing: Floats
    times: Floats

    @property
    def losses(self) -> Floats:
        return np.asarray(self.points * self.step, dtype=np.float64)


def place(
    law: Law, step: float, tail: float, side: Side, grading: Grading | None = None
) -> Lattice:
    """The law on a lattice of the given step;
    what lies outside of `law.span(tail)` is moved to the safe side.

    With a grading only some lattice points are used:
    2^k steps apart beyond the k-th pair of losses.
    """
    offset = _aligned(law, step)
    low, high = _bounds(law, tail)
    first = int(np.floor(np.min((low - offset) / step))) - 2
    last = int(np.ceil(np.max((high - offset) / step))) + 2
    points = (
        _graded(first, last, step, grading)
        if grading is not None and side == "above"
        else np.arange(first, last + 1)
    )
    knots = points * step + offset[:, None]
    if side == "above":
        widths = np.diff(points) * step
        mass, infinite = _above(law, knots, widths)
        _atoms_above(law, mass, knots, widths)
        points, mass = _trimmed(points, mass)
        # edges and points may be off by this much
        shift = 16 * UNIT * (1 + float(np.max(np.abs(knots))))
        return Lattice(
            step,
            points,
            mass,
            offset + shift,
            infinite * (1 + 8 * UNIT),
            np.zeros(law.rows),
            law.times.astype(float),
        )
    # so that an atom meant for a point never falls below it
    shift = 64 * UNIT * (1 + float(np.max(np.abs(knots))))
    knots = knots - shift
    mass = _below(law, knots, step)
    _atoms_below(law, mass, knots, offset - shift, first, step)
    missing = _without_negatives(mass, step)
    points, mass = _trimmed(points, mass)
    return Lattice(
        step,
        points,
        mass,
        offset - shift,
        law.infinite * (1 - 8 * UNIT),
        missing,
        law.times.astype(float),
    )


def _trimmed(points: NDArray[np.int64], mass: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Without the points at both ends that carry nothing."""
    used = np.flatnonzero(mass.any(axis=0))
    return points[used[0] : used[-1] + 1], mass[:, used[0] : used[-1] + 1]


def _graded(first: int, last: int, step: float, grading: Grading) -> NDArray[np.int64]:
    pieces = []
    for sign, losses, start, end in (
        (1, grading.upper, first, last),
        (-1, grading.lower, -last, -first),
    ):
        if end < 0:
            continue
        at = max(0, start)
        for k, loss in enumerate((*losses, np.inf)):
            # past the atom that may sit there
            until = end if loss >= (end - 3) * step else int(loss / step) + 3
            if until > at:
                pieces.append(sign * np.arange(at, until, 1 << k))
                at = int(abs(pieces[-1][-1])) + (1 << k)
        pieces.append(np.array([sign * end]))
    return np.unique(np.concatenate(pieces))


def _bounds(law: Law, tail: float) -> tuple[Floats, Floats]:
    low, high = (
        law.span(tail)
        if law.continuous
        else (np.full(law.rows, np.inf), np.full(law.rows, -np.inf))
    )
    if law.atom_losses.shape[1]:
        low, high = (
            np.minimum(low, law.atom_losses.min(1)),
            np.maximum(high, law.atom_losses.max(1)),
        )
    return low, high


def _aligned(law: Law, step: float) -> Floats:
    """An offset a row that puts its highest atom on the lattice."""
    if not law.atom_losses.shape[1]:
        return np.zeros(law.rows)
    top = np.where(law.atom_masses > 0, law.atom_losses, -np.inf).max(1)
    return np.asarray(top - np.rint(top / step) * step)


def _excess(cells: IntervalMasses, reference: Floats) -> tuple[Floats, Floats]:
    """E = P − e^reference·Q of each cell and its slack,
    with room for edges that are off by a few units in the last place.
    """
    growth = np.exp(reference)
    scaled = growth * cells.q
    slack = (
        cells.p_slack
        + growth * cells.q_slack
        + (16 * UNIT) * (1 + np.abs(reference)) * (cells.p + scaled)
    )
    return cells.p - scaled, slack


def _above(law: Law, knots: Floats, widths: Floats) -> tuple[Floats, Floats]:
    mass = np.zeros_like(knots)
    if not law.continuous:
        return mass, law.infinite
    ends = np.full((law.rows, 1), np.inf)
    cells = law.cells(np.concatenate([-ends, knots, ends], axis=1))
    inner = IntervalMasses(
        cells.p[:, 1:-1], cells.q[:, 1:-1], cells.p_slack[:, 1:-1], cells.q_slack[:, 1:-1]
    )
    excess, slack = _excess(inner, knots[:, :-1])
    total = inner.p + inner.p_slack
    up = np.minimum(np.maximum(excess + slack, 0.0) / -np.expm1(-widths), total)
    mass[:, :-1] = total - up
    mass[:, 1:] += up
    mass[:, 0] += cells.p[:, 0] + cells.p_slack[:, 0]
    return mass, law.infinite + cells.p[:, -1] + cells.p_slack[:, -1]


def _atom_error(law: Law) -> Floats:
    """A bound of the relative error of the atoms' masses:
    products of a few exponentials e^−x, each off by (x+4) roundoffs.
    """
    return np.asarray((32 - 4 * np.log(np.maximum(law.atom_masses, 1e-300))) * UNIT)


def _atoms_above(law: Law, mass: Floats, knots: Floats, widths: Floats) -> None:
    if not law.atom_losses.shape[1]:
        return
    rows = np.arange(law.rows)[:, None]
    # an atom meant for a point is not to fall below it
    nearly = law.atom_losses + 1e-9 * widths.min()
    offset = knots[:, :1] - knots[0, 0]
    index = np.clip(
        np.searchsorted(knots[0], nearly - offset, side="right") - 1, 0, widths.size - 1
    )
    losses = law.atom_losses + 16 * UNIT * (1 + np.abs(law.atom_losses))
    total = law.atom_masses * (1 + _atom_error(law))
    up = np.clip(
        total * -np.expm1(knots[rows, index] - losses) / -np.expm1(-widths[index]), 0.0, total
    )
    np.add.at(mass, (rows, index), total - up)
    np.add.at(mass, (rows, index + 1), up)


def _below(law: Law, knots: Floats, step: float) -> Floats:
    mass = np.zeros_like(knots)
    if not law.continuous:
        return mass
    edges = np.concatenate([knots[:, :1] - step / 2, knots + step / 2], axis=1)
    cells = law.cells(edges)
    excess, slack = _excess(cells, knots)
    lower = excess - slack
    total = np.maximum(cells.p - cells.p_slack, 0.0)
    up, down = np.maximum(-lower, 0.0) / -np.expm1(-step), np.maximum(lower, 0.0) / np.expm1(step)
    kept = up <= total  # a cell lost in its own slack is left out: that only lowers δ
    total, up, down = np.where(kept, total, 0.0), np.where(kept, up, 0.0), np.where(kept, down, 0.0)
    nothing = np.zeros_like(total[:, :1])
    # cells that cannot borrow from the point above: written from the two points below instead
    fall = np.zeros(total.shape, dtype=bool)
    for _ in range(8):
        arrives = np.concatenate([np.where(fall, total, 0.0)[:, 1:], nothing], axis=1)
        stays = np.where(fall, 0.0, total) + arrives
        more = (up > np.concatenate([stays[:, 1:], nothing], axis=1) / 3) & ~fall
        if not more.any():
            break
        fall |= more
    below = np.concatenate([nothing, stays[:, :-1]], axis=1)
    further = np.concatenate([nothing, below[:, :-1]], axis=1)
    raised = -np.expm1(-step) * (total - np.exp(-step) * up)  # E seen from the point below
    lent = np.where(fall, raised / np.expm1(step), 0.0)
    lent = np.where(lent > further / 3, 0.0, lent)
    down = np.where((down > below / 3) | fall, 0.0, down)
    up = np.where(fall, 0.0, up)
    mass += np.where(fall, 0.0, total) + up + down
    mass[:, :-1] += np.where(fall, total + lent, 0.0)[:, 1:]
    mass[:, 1:] -= up[:, :-1]
    mass[:, :-1] -= down[:, 1:]
    mass[:, :-2] -= lent[:, 2:]
    return mass


def _atoms_below(
    law: Law, mass: Floats, knots: Floats, offset: Floats, first: int, step: float
) -> None:
    if not law.atom_losses.shape[1]:
        return
    rows = np.arange(law.rows)[:, None]
    # the point above, from which the atom is extrapolated with the help of the next one; or its own
    # point, where it is (almost) on it
    index = np.ceil((law.atom_losses - offset[:, None]) / step - 1e-6).astype(np.int64) - first
    losses = law.atom_losses - 16 * UNIT * (1 + np.abs(law.atom_losses))
    total = law.atom_masses * (1 - _atom_error(law))
    up = np.maximum(total * np.expm1(knots[rows, index] - losses), 0.0) / -np.expm1(-step)
    np.add.at(mass, (rows, index), total + up)
    np.add.at(mass, (rows, index + 1), -up)


def _without_negatives(mass: Floats, step: float) -> Floats:
    """Drop lattice points of negative mass, giving it to the two neighbours that remain;
    returns what the top end loses.

    The polygon through the remaining points is the lower convex hull, hence below the true curve.
    """
    missing = np.zeros(mass.shape[0])
    for row in np.flatnonzero((mass < 0).any(axis=1)):
        values = mass[row]
        kept: list[int] = []
        weight: list[float] = []
        for j in np.flatnonzero(values).tolist():
            kept.append(j)
            weight.append(float(values[j]))
            while len(kept) > 1 and weight[-2] < 0:
                negative, at = weight.pop(-2), kept.pop(-2)
                right, left = kept[-1], kept[-2] if len(kept) > 1 else None
                if left is None:
                    weight[-1] += negative
                    continue
                share = float(np.expm1((left - at) * step) / np.expm1((left - right) * step))
                weight[-1] += negative * share
                weight[-2] += negative * (1 - share)
        # every other one is positive by now; this one has no higher neighbour
        while weight and weight[-1] < 0:
            missing[row] -= weight.pop()
            kept.pop()
        values[:] = 0.0
        values[kept] = weight
    return missing
