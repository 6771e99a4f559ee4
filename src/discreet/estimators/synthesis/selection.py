"""Which tables are worth their noise, and how they share it: decided from released numbers alone.

Weights.  With one noise of spread σ for all tables, table r has σ/a_r. The expected ℓ₁ noise of all
          tables is in proportion to Σ cells_r/a_r. At a given ℓ₂ cost Σ a_r² it is least for a_r in
          proportion to cells_r^(1/3), at a given ℓ₁ cost Σ a_r for cells_r^(1/2) (Lagrange).
          Weights are whole numbers, the greatest 256.
Choice.   With these weights the ℓ₁ noise of all tables is in proportion to S^(3/2), S the load
          Σ cells_r^(2/3) (pure: to S², S = Σ cells_r^(1/2)). A pair of columns is taken, the best
          for its load first, where its released distance from independence is more than what it
          adds to that noise, and while the junction tree of all tables stays within its limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from discreet.inference.synthesis.trees import Clique, cell_count, tree_cells

LARGEST_TREE = 10**6  # cells of all nodes
FINEST_WEIGHT = 1 << 8
FOLD = math.sqrt(2 / math.pi)  # E|N(0, 1)|


@dataclass(frozen=True, slots=True)
class Loads:
    """How tables share one noise: `power` of the cells in the load of a table, `growth` of the
    whole load in the noise; `unit` is the expected ℓ₁ noise at load 1.
    """

    power: float
    growth: float
    unit: float

    def of(self, cells: int) -> float:
        return float(math.pow(cells, self.power))

    def added(self, load: float, more: float) -> float:
        """What a table of load `more` adds to the noise of all."""
        return self.unit * (math.pow(load + more, self.growth) - math.pow(load, self.growth))


def gaussian_loads(delta: float, mu: float) -> Loads:
    """Of Gaussian noise: `delta` is the ℓ₂ sensitivity of one table, μ the guarantee of all."""
    return Loads(2 / 3, 3 / 2, FOLD * delta / mu)


def pure_loads(delta: float, epsilon: float) -> Loads:
    """Of geometric noise: `delta` is the ℓ₁ sensitivity of one table."""
    return Loads(1 / 2, 2.0, delta / epsilon)


def weights_of(sizes: Sequence[int], tables: Sequence[Clique], *, pure: bool) -> tuple[int, ...]:
    """The whole-number weight of each table."""
    shares = [cell_count(sizes, table) ** (1 / 2 if pure else 1 / 3) for table in tables]
    return tuple(math.ceil(FINEST_WEIGHT * share / max(shares) - 1e-9) for share in shares)


def chosen_tables(
    sizes: Sequence[int],
    declared: Sequence[Clique],
    candidates: Mapping[Clique, float],
    loads: Loads,
    *,
    limit: int = LARGEST_TREE,
) -> tuple[Clique, ...]:
    """The declared tables, then the pairs that are worth their noise; `candidates` are the pairs
    with their released distances. A pair within a declared table is measured already.
    """
    chosen = list(declared)
    load = sum(loads.of(cell_count(sizes, table)) for table in chosen)
    order = sorted(
        candidates, key=lambda pair: (-candidates[pair] / loads.of(cell_count(sizes, pair)), pair)
    )
    for pair in order:
        more = loads.of(cell_count(sizes, pair))
        if any(set(pair) <= set(table) for table in declared):
            continue
        if candidates[pair] > loads.added(load, more) and _fits(sizes, [*chosen, pair], limit):
            chosen.append(pair)
            load += more
    return tuple(chosen)


def _fits(sizes: Sequence[int], tables: Sequence[Clique], limit: int) -> bool:
    return tree_cells(sizes, tables) <= limit


def pure_candidates(
    order: Sequence[Clique], rows: float, share: Callable[[int], float] = lambda _: 0.1
) -> dict[Clique, float]:
    """Distances to take for pairs whose order alone was released, the first the furthest: each is
    worth a tenth of the rows, and falls a little, so that the order is kept.
    """
    return {
        pair: rows * share(place) * (1 - place / (100 * len(order)))
        for place, pair in enumerate(order)
    }
