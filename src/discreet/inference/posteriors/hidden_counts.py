"""The posterior of shares from noisy counts: an exact mixture over the counts that were hidden.

Given the hidden counts x of a Dirichlet-multinomial sample, shares are Dirichlet(prior + x). What
is released is y = x + noise, so the posterior is the mixture of these laws with weights

    P(x) ∏ P(noise = y − x)     P(x) ∝ T(Σx)·∏ Γ(α_i + x_i)/(Γ(α_i) x_i!)

where T lets only Σx = n through where the number of rows is public, and is Σx! Γ(A)/Γ(A + Σx),
A = Σα, where it is private: every number of rows is believed alike beforehand.

The weight is a product over cells given the sum, so the law of (x_1, …, x_k) is drawn exactly by
adding cells one after another (convolutions) and going back; no chain has to converge. With two
cells and a public number the mixture is a list of n + 1 atoms. Where noise spreads over more counts
than a lattice has points, counts are taken in bins of equal width. Convolutions are sums of
products as they stand: a Fourier transform would lose the tails that the total picks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.posteriors.laws import SharesLaw, chosen, mixed, normalised
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream

LATTICE_OF_TWO = 1 << 13  # points of a list of atoms
LATTICE, LATTICES, LEAST_LATTICE = 1 << 11, 1 << 14, 1 << 6  # of a cell, of all cells together
FAR = {"gaussian": 8.0, "laplace": 32.0, "geometric": 32.0, "tulap": 32.0}  # spreads
TURNS = 60
DRAWS = 4000
BLOCK = 1 << 21  # numbers of a table that is held at once


@dataclass(frozen=True)
class NoisyCounts:
    """Released counts with the law of their noise. `total` is the number of rows where it is
    public; `most` a public bound of it; `absent` a noisy count of `most` less the number of rows.
    """

    counts: Array
    noise: ReleasedNoise
    total: int | None = None
    most: int | None = None
    absent: float | None = None


def log_noise(noise: ReleasedNoise, off: Array) -> Array:
    """log P(noise = off) up to a constant, of the law on its grid.

    A cell of a normal law's grid of step s at z spreads holds φ(z)(1 + (z² − 1)h²/24 + O(h⁴)) of
    it, h = s/spread ≤ 2⁻¹⁰. A Laplace law's cells away from 0 hold e^(−|off|/b) times a constant.
    """
    at = np.abs(off) / noise.spread
    if noise.kind == "gaussian":
        cell = (noise.step / noise.spread) ** 2 / 24
        return np.asarray(-0.5 * at * at + np.log1p(cell * np.minimum(at * at, 1e4)))
    return np.asarray(-at)


def shares_law(released: NoisyCounts, prior: Array, seed: str, *, shown: int) -> SharesLaw:
    """The posterior of the shares; the first `shown` are its parameters. A last cell that was not
    counted (one more prior number than counts) is the rest of a public total.
    """
    if released.total is not None and len(prior) == 2:
        return _of_two(released, prior, released.total, shown)
    return _drawn(released, prior, seed, shown)


def exact_counts_law(counts: Array, prior: Array, *, shown: int) -> SharesLaw:
    """As if the noisy counts were the counts: the naive posterior."""
    atoms = (prior + np.maximum(counts, 0.0))[None]
    return SharesLaw(atoms, np.ones(1), shown)


# ── two cells, a public number of rows ────────────────────────────────────────────────────────────


def _of_two(released: NoisyCounts, prior: Array, total: int, shown: int) -> SharesLaw:
    low, step, size = _lattice(released, float(released.counts[0]), LATTICE_OF_TWO)
    first: Any = low + step * np.arange(size)
    last = np.minimum(first + step - 1, total)
    inside, middle = last - first + 1, (first + last) / 2
    logs = _prior_of(prior[0], first, last) + _prior_of(prior[1], total - last, total - first)
    logs = logs - np.log(inside) + log_noise(released.noise, released.counts[0] - middle)
    if len(released.counts) > 1:
        logs = logs + log_noise(released.noise, released.counts[1] - (total - middle))
    atoms = prior + np.stack([middle, total - middle], axis=1)
    return mixed(atoms, logs, shown)


# ── any number of cells ───────────────────────────────────────────────────────────────────────────


def _drawn(released: NoisyCounts, prior: Array, seed: str, shown: int) -> SharesLaw:
    """Atoms that are drawn from their exact law."""
    lows, sizes, step = _lattices(released)
    cells = len(prior)
    logs = [
        _binned(prior[place], lows[place], sizes[place], step)
        + log_noise(
            released.noise, released.counts[place] - _middles(lows[place], sizes[place], step)
        )
        for place in range(cells)
    ]
    ratio = _tilt(logs, [_middles(*each, step) for each in zip(lows, sizes, strict=True)], prior)
    logs = [
        each + _middles(lows[place], sizes[place], step) * np.log(ratio)
        for place, each in enumerate(logs)
    ]
    weights = [np.exp(each - np.max(each)) for each in logs]
    sums = [weights[0]]
    for each in weights[1:]:
        joined = np.convolve(sums[-1], each)
        sums.append(joined / joined.max())
    totals: Any = float(sum(lows)) + step * np.arange(len(sums[-1])) + cells * (step - 1) / 2
    with np.errstate(divide="ignore"):
        last = np.log(sums[-1]) + _total_weights(released, prior, totals, ratio, step)
    if not np.any(np.isfinite(last)):  # beyond what floats hold: the nearest total that they do
        wanted = float(np.sum(released.counts)) if released.total is None else released.total
        held = np.where(sums[-1] > 0, np.abs(totals - wanted), np.inf)
        last = np.where(np.arange(len(last)) == int(np.argmin(held)), 0.0, -1e9)
    stream = Stream(seed)
    at = chosen(normalised(last), stream.uniforms((DRAWS,), "total"))
    found = np.empty((DRAWS, cells))
    for place in range(cells - 1, 0, -1):
        picked = _picked(weights[place], sums[place - 1], at, stream.uniforms((DRAWS,), f"{place}"))
        found[:, place] = lows[place] + step * picked + (step - 1) / 2
        at = at - picked
    found[:, 0] = lows[0] + step * at + (step - 1) / 2
    atoms = prior + np.maximum(found, 0.0)
    return SharesLaw(atoms, np.full(DRAWS, 1 / DRAWS), shown)


def _total_weights(
    released: NoisyCounts, prior: Array, totals: Array, ratio: float, step: int
) -> Array:
    """log T of the sum, without the tilt."""
    if released.total is not None:
        return np.where(np.abs(totals - released.total) < step / 2 + 0.25, 0.0, -np.inf)
    whole = float(np.sum(prior))
    rows = np.maximum(totals, 0.0)
    logs = gammaln(rows + 1) + gammaln(whole) - gammaln(whole + rows) - rows * np.log(ratio)
    if released.most is not None:
        logs = np.where(totals <= released.most + step, logs, -np.inf)
        if released.absent is not None:
            logs = logs + log_noise(released.noise, released.absent - (released.most - rows))
    return np.asarray(logs)


def _lattices(released: NoisyCounts) -> tuple[list[int], list[int], int]:
    """The lattice of each cell's hidden count, of one step; wider ones where a public total cannot
    be reached by those about the noisy counts.
    """
    wider = 1.0
    points = min(LATTICE, max(LATTICES // len(released.counts), LEAST_LATTICE))
    while True:
        found = [_lattice(released, float(count), points, wider) for count in released.counts]
        step = max(each[1] for each in found)
        lows = [low for low, _, _ in found]
        sizes = [-(-one * size // step) for _, one, size in found]
        most = sum(low + step * size - 1 for low, size in zip(lows, sizes, strict=True))
        total = released.total
        whole = all(low == 0 for low in lows) and (total is None or wider > 4.0 * (total + 1))
        if total is None or whole or sum(lows) <= total <= most:
            return lows, sizes, step
        wider *= 4


def _tilt(logs: list[Array], middles: list[Array], prior: Array) -> float:
    """r, so that weights times rˣ have their sum S where T(S)·r^(−S) is flat: r = S/(A + S). No
    weight depends on it; it keeps sums where floats are exact.
    """
    whole = float(np.sum(prior))
    low, high = -40.0, 40.0  # of ln(S/A)
    for _ in range(TURNS):
        middle = (low + high) / 2
        log = -np.log1p(np.exp(-middle))  # ln r
        total = 0.0
        for each, at in zip(logs, middles, strict=True):
            total += float(normalised(each + at * log) @ at)
        low, high = (middle, high) if total > whole * np.exp(middle) else (low, middle)
    return float(1 / (1 + np.exp(-(low + high) / 2)))


def _middles(low: int, size: int, step: int) -> Array:
    return np.asarray(low + step * np.arange(size) + (step - 1) / 2)


def _picked(weights: Array, before: Array, sums: Any, uniforms: Array) -> Any:
    """For each sum s, a place k with P(k) ∝ weights[k]·before[s − k]."""
    known, which = np.unique(sums, return_inverse=True)
    order = np.argsort(which, kind="stable")
    found = np.empty(len(sums), dtype=np.int64)
    size, block = len(weights), max(1, BLOCK // len(weights))
    padded = np.concatenate([np.zeros(size), before, np.zeros(size)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, size)[:, ::-1]
    for start in range(0, len(known), block):
        rows = known[start : start + block]
        table = weights * windows[rows + 1]  # in column k: before[s − k], 0 beyond its ends
        steps = np.cumsum(table, axis=1)
        lost = np.flatnonzero(steps[:, -1] <= 0)  # beyond what floats hold: any place that is one
        steps[lost] = np.cumsum(_inside(rows[lost], size, len(before)), axis=1)
        flat = (steps / steps[:, -1:] + np.arange(len(rows))[:, None]).ravel()
        first, last = np.searchsorted(which, [start, start + len(rows)], sorter=order)
        draws = order[first:last]
        row = which[draws] - start
        places = np.searchsorted(flat, row + uniforms[draws], side="right") - row * size
        found[draws] = np.clip(places, 0, size - 1)
    return found


def _inside(sums: Any, size: int, before: int) -> Array:
    """1 for the places k of which both k and s − k are on their lattices."""
    at = sums[:, None] - np.arange(size)
    return np.where((at >= 0) & (at < before), 1.0, 0.0)


# ── lattices ──────────────────────────────────────────────────────────────────────────────────────


def _lattice(
    released: NoisyCounts, count: float, points: int, wider: float = 1.0
) -> tuple[int, int, int]:
    """(low, step, size): the hidden counts that a noisy one may stand for, in bins of one width."""
    most = released.total if released.total is not None else released.most
    center = max(count, 0.0) if most is None else min(max(count, 0.0), float(most))
    reach = wider * FAR[released.noise.kind] * released.noise.spread + 2
    low = int(max(np.floor(center - reach), 0.0))
    high = int(np.ceil(center + reach))
    if most is not None:
        high = min(high, most)
    size = high - low + 1
    step = -(-size // points)
    return low, step, -(-size // step)


def _prior_of(alpha: float, first: Array, last: Array) -> Array:
    """log Σ Γ(α + x)/(Γ(α) x!) over first ≤ x ≤ last.

    Over all x ≤ m it is Γ(α + m + 1)/(Γ(α + 1) m!).
    """
    one = gammaln(alpha + first) - gammaln(alpha) - gammaln(first + 1.0)
    if np.all(first == last):
        return np.asarray(one)
    upper = gammaln(alpha + last + 1) - gammaln(alpha + 1) - gammaln(last + 1.0)
    before = np.maximum(first - 1, 0)
    lower = gammaln(alpha + before + 1) - gammaln(alpha + 1) - gammaln(before + 1.0)
    with np.errstate(divide="ignore"):
        apart = upper + np.log(-np.expm1(np.minimum(lower - upper, 0.0)))
    apart = np.where(first == 0, upper, apart)
    middle = gammaln(alpha + (first + last) / 2) - gammaln(alpha) - gammaln((first + last) / 2 + 1)
    flat = middle + np.log(last - first + 1.0)  # where the difference is lost in rounding
    return np.asarray(np.where(upper - lower > 1e-7, apart, np.where(first == 0, apart, flat)))


def _binned(alpha: float, low: int, size: int, step: int) -> Array:
    first = low + step * np.arange(size, dtype=float)
    return _prior_of(alpha, first, first + step - 1)
