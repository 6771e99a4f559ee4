"""Tails fitted to counts: what they say without noise, and where they clip."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from discreet.search.tails import Seen, Tail, best_distances, choices, posterior

ROWS = 10_000.0


def tail_of(beyond: object, reach: float, distances: list[float], deviation: float = 2.0) -> Tail:
    seen = tuple(Seen(d, float(beyond(d)), deviation) for d in distances)  # type: ignore[operator]
    return Tail(ROWS, ROWS / 2, reach, reach, 0.06 * ROWS, 7.0, seen)


def test_a_normal_tail_is_read_from_its_counts() -> None:
    reach = float(ndtri(0.94))
    tail = tail_of(lambda d: ROWS * ndtr(-d), reach, [1.0, 1.6, 2.0, 2.4, 2.8])
    fitted = posterior(tail)
    rows = float(fitted.beyond(2.6) @ fitted.weight)
    lost = float(fitted.excess(np.array([2.6]))[0][0] @ fitted.weight)
    exact = np.exp(-(2.6**2) / 2) / np.sqrt(2 * np.pi) - 2.6 * ndtr(-2.6)
    assert rows == pytest.approx(ROWS * ndtr(-2.6), rel=0.3)
    assert lost == pytest.approx(exact, rel=0.4)
    assert fitted.weight.sum() == pytest.approx(1.0)


def test_an_edge_is_read_from_its_counts() -> None:
    tail = tail_of(lambda d: 1000.0 if d < 2.0 else 0.0, 1.9, [1.0, 1.8, 1.97, 2.03, 2.5])
    fitted = posterior(tail)
    assert float(fitted.beyond(2.02) @ fitted.weight) < 20
    assert float(fitted.beyond(1.9) @ fitted.weight) > 500
    low, high = best_distances([choices(tail, 1e9), choices(tail, 1e9)], ROWS, 1.0)
    assert 1.9 <= low <= 3.1
    assert 1.9 <= high <= 3.1


def test_more_noise_clips_more_and_nothing_known_clips_at_the_centre() -> None:
    scale = 1e6
    tail = tail_of(
        lambda d: ROWS * ndtr(-d / scale),
        float(ndtri(0.94)) * scale,
        [1.0 * scale, 1.6 * scale, 2.0 * scale, 2.4 * scale, 2.8 * scale],
    )
    widths = [
        sum(best_distances([choices(tail, 1e12)] * 2, ROWS, noise)) / scale
        for noise in (0.3, 1.0, 3.0, 10.0)
    ]
    assert all(a >= b for a, b in itertools.pairwise(widths))
    assert widths[0] > widths[-1]
    assert 4.5 < widths[1] < 7.5
    assert best_distances([choices(replace(tail, seen=(), extent=0.0), 9.0)] * 2, ROWS, 1.0) == (
        0.0,
        0.0,
    )
