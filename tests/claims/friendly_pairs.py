"""Random neighbours for friendly means, and what a filter of friends does to them: shared by the
claims (some) and by benchmarks/aggregation.py (10^5).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from discreet.trusted.aggregation.friends.rows import friend_counts, labelled, whole_weights

Weights = Callable[[np.ndarray, int], np.ndarray]  # of friends and the number of rows, times n − 1


@dataclass(frozen=True)
class Pair:
    """Two data sets of shape (rows, centres, coordinates) that differ in one row, and a radius."""

    first: np.ndarray
    second: np.ndarray
    radius: int


@dataclass
class Worst:
    """The worst that was seen over pairs: of Σ|Δw| over 3, of the distance of rows with weight of
    one label over 2r, of the mean's move over 8r√k/max(W, W′), and of W where W′ = 0 over 3.
    """

    weights: float = 0.0
    apart: float = 0.0
    mean: float = 0.0
    lone: float = 0.0
    names: float = 0.0  # 2 where labels that the second gives differ in more than their names

    @property
    def most(self) -> float:
        return max(self.weights, self.apart, self.mean, self.lone, self.names)


def random_pairs(random: np.random.Generator, count: int, centres: int = 1) -> Iterator[Pair]:
    """Few rows on a small grid, so that most pairs are at the edge of something; tuples of centres
    that are about six radii apart, in any order.
    """
    for _ in range(count):
        rows, width = int(random.integers(2, 12)), int(random.integers(1, 3))
        radius = int(random.integers(1, 6))
        if centres == 1:
            data = random.integers(0, 9, (rows + 1, 1, width))
            data *= random.choice([1, 1000], size=(1, 1, 1))
            data[random.random(rows + 1) < 0.3] = data[0]
        else:
            data = _tuples(random, (rows + 1, centres, width), radius)
        first, second = data[:-1], np.concatenate([data[-1:], data[1:-1]])
        yield Pair(first.astype(np.int64), second.astype(np.int64), radius)


def _tuples(random: np.random.Generator, shape: tuple[int, int, int], radius: int) -> np.ndarray:
    rows, centres, width = shape
    gap = int(random.integers(radius, 9 * radius + 1))
    base = np.zeros((1, centres, width), dtype=np.int64)
    base[0, :, 0] = gap * np.arange(centres)
    data = base + random.integers(-radius, radius + 1, shape)
    if random.random() < 0.5:  # rows whose centres drift together, most of them in the middle
        data = np.repeat(base, rows, axis=0)
        data[:, :, 0] += radius * random.choice([0, 1, 1, 1, 2], size=(rows, 1))
    for row in data:
        random.shuffle(row, axis=0)
    return data


def seen(
    pairs: Iterator[Pair],
    *,
    weigh: Weights = whole_weights,
    friends: Callable[[np.ndarray, int], np.ndarray] = friend_counts,
) -> Worst:
    """The worst over pairs for a filter (the library's own, or a control)."""
    worst = Worst()
    for pair in pairs:
        _look(pair, worst, weigh, friends)
    return worst


def _look(pair: Pair, worst: Worst, weigh: Weights, friends: Callable[..., np.ndarray]) -> None:
    rows, centres, width = pair.first.shape
    both = [weigh(friends(data, pair.radius), rows) for data in (pair.first, pair.second)]
    whole = max(rows - 1, 1)
    totals = [float(weights.sum()) / whole for weights in both]
    worst.weights = max(worst.weights, float(np.abs(both[0] - both[1]).sum()) / whole / 3)
    if not all(totals):
        worst.lone = max(worst.lone, max(totals) / 3)
        return
    kept = [
        data[weights > 0] for data, weights in zip((pair.first, pair.second), both, strict=True)
    ]
    named = labelled(np.concatenate(kept)).reshape(-1, centres, width)  # by one row for both
    gaps = ((named[:, None] - named) ** 2).sum(axis=3)
    worst.apart = max(worst.apart, math.sqrt(gaps.max()) / (2 * pair.radius))
    parts = named[: len(kept[0])], named[len(kept[0]) :]
    own = labelled(kept[1]).reshape(-1, centres, width)
    orders = map(list, itertools.permutations(range(centres)))
    if not any((own[:, order] == parts[1]).all() for order in orders):
        worst.names = 2.0
    means = [
        np.tensordot(weights[weights > 0], part, axes=1) / weights.sum()
        for weights, part in zip(both, parts, strict=True)
    ]
    bound = 8 * pair.radius * math.sqrt(centres) / max(totals)
    worst.mean = max(worst.mean, float(np.linalg.norm(means[0] - means[1])) / bound)


# -- controls: filters that the theorems do not hold for ----------------------------------------


def printed(friends: np.ndarray, rows: int) -> np.ndarray:
    """The filter as the lectures print it: (c − n/2)/n, and 1 at n; times n − 1."""
    weights = np.where(friends > rows / 2, (friends - rows / 2) / rows, 0.0)
    return np.where(friends >= rows, 1.0, weights) * max(rows - 1, 1)


def figured(friends: np.ndarray, rows: int) -> np.ndarray:
    """The filter of the lectures' figure: clip(2c/n − 1, 0, 1); times n − 1."""
    return np.clip(2 * friends / rows - 1, 0, 1) * max(rows - 1, 1)


def unseparated(points: np.ndarray, radius: int) -> np.ndarray:
    """Friends among tuples some centres of which may be near each other."""
    gaps = ((points[:, None, :, None] - points[None, :, None]) ** 2).sum(axis=4)
    return (gaps <= radius**2).any(axis=3).all(axis=2).sum(axis=1)
