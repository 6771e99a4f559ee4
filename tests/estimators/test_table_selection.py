"""Which tables a synthesis takes, and how they share noise: against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet.estimators.synthesis.selection import (
    FOLD,
    chosen_tables,
    gaussian_loads,
    pure_candidates,
    pure_loads,
    weights_of,
)
from discreet.inference.synthesis.trees import cell_count, tree_cells

SIZES = (3, 10, 2, 6, 4)
TABLES = ((0,), (1,), (0, 1), (2, 3, 4))


@pytest.mark.parametrize(("pure", "norm"), [(False, 2), (True, 1)])
def test_no_other_weights_give_less_noise_at_the_same_cost(pure, norm):
    """The expected noise Σ cells/a at the cost Σ aᵖ = 1, p = 2 or 1, within what whole weights
    cost."""
    cells = np.array([cell_count(SIZES, table) for table in TABLES], dtype=float)

    def noise(weights):
        scaled = np.asarray(weights, dtype=float)
        scaled = scaled / (scaled**norm).sum() ** (1 / norm)
        return float((cells / scaled).sum())

    found = noise(weights_of(SIZES, TABLES, pure=pure))
    rng = np.random.default_rng(1)
    others = [noise(rng.gamma(2.0, size=4)) for _ in range(2000)]
    others += [noise(np.ones(4)), noise(cells), noise(np.sqrt(np.sqrt(cells)))]
    assert found < 1.002 * min(others)
    power = 1 / 2 if pure else 1 / 3
    assert found < 1.002 * noise(cells**power)


def test_weights_are_whole_and_at_most_256():
    weights = weights_of(SIZES, TABLES, pure=False)
    assert max(weights) == 256
    assert all(type(weight) is int and weight >= 1 for weight in weights)
    assert weights_of((1, 2), ((0,), (1,)), pure=True) == (182, 256)


@pytest.mark.parametrize("loads", [gaussian_loads(2**0.5, 0.3), pure_loads(2.0, 0.5)])
def test_loads_add_up_to_the_expected_noise_of_all_tables(loads):
    pure = loads.growth == 2.0
    weights = np.array(weights_of(SIZES, TABLES, pure=pure), dtype=float)
    cells = np.array([cell_count(SIZES, table) for table in TABLES], dtype=float)
    spread = 2 * weights.sum() / 0.5 if pure else (2 * (weights**2).sum()) ** 0.5 / 0.3
    wanted = (1.0 if pure else FOLD) * (cells * spread / weights).sum()  # E|Laplace(b)| = b
    load = added = 0.0
    for table in TABLES:
        more = loads.of(cell_count(SIZES, table))
        added += loads.added(load, more)
        load += more
    assert added == pytest.approx(wanted, rel=0.01)


def test_pairs_are_taken_while_they_are_worth_their_noise():
    loads = gaussian_loads(1.0, 1.0)
    pairs = list(itertools.combinations(range(5), 2))
    assert chosen_tables(SIZES, (), dict.fromkeys(pairs, 0.0), loads) == ()
    far = dict.fromkeys(pairs, 0.0) | {(0, 2): 1e6, (1, 3): 500.0}
    assert chosen_tables(SIZES, (), far, loads) == ((0, 2), (1, 3))
    first, second = (loads.of(cell_count(SIZES, pair)) for pair in ((0, 2), (1, 3)))
    edge = loads.added(first, second)
    for distance, taken in ((edge * 0.999, 1), (edge * 1.001, 2)):
        near = far | {(1, 3): distance}
        assert len(chosen_tables(SIZES, (), near, loads)) == taken
    # what a declared table holds is measured already
    assert chosen_tables(SIZES, ((0, 1, 2),), far, loads) == ((0, 1, 2), (1, 3))


def test_the_tree_of_all_tables_stays_within_its_limit():
    loads = gaussian_loads(1.0, 1.0)
    far = dict.fromkeys(itertools.combinations(range(5), 2), 1e9)
    whole = math.prod(SIZES)
    assert len(chosen_tables(SIZES, (), far, loads)) == 10
    for limit in (whole - 1, 400, 100, sum(SIZES)):
        chosen = chosen_tables(SIZES, (), far, loads, limit=limit)
        assert tree_cells(SIZES, chosen) <= limit
        assert len(chosen) < 10


def test_an_order_alone_is_kept():
    order = [(0, 1), (2, 3), (0, 4)]
    found = pure_candidates(order, 1000.0)
    assert list(found) == order
    values = list(found.values())
    assert values == sorted(values, reverse=True)
    assert values[0] == pytest.approx(100)
