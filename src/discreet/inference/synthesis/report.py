"""What a synthesis measured and how near its model is: line by line for tables, and for every pair
of columns the error to be expected.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet.inference.results.laws import Array
from discreet.inference.results.summary import Summary, number_text
from discreet.inference.synthesis.domain import Domain
from discreet.inference.synthesis.model import Model
from discreet.inference.synthesis.trees import Clique, cell_count
from discreet.inference.synthesis.unbiased import NoisyTables

FOLD = math.sqrt(2 / math.pi)  # E|N(0, 1)|
MOST_LINES = 200
ABOUT_ERRORS = (
    "Errors are half the ℓ₁ distance of shares (0: the same, 1: nothing in common). Of measured "
    "tables: of the model from what was released, and what noise alone would give. Of other pairs: "
    "the distance from independence that was released, with that of the model from it."
)


@dataclass(frozen=True, slots=True)
class PairError:
    """The expected error of the model's table of two columns."""

    columns: Clique
    measured: bool
    error: float


def pair_errors(
    tables: NoisyTables,
    model: Model,
    distances: Mapping[Clique, float],
    guesses: Mapping[Clique, Array],
) -> list[PairError]:
    """The expected error of every pair.

    Method. A measured pair: the mean absolute noise of its best unbiased table, ½·Σ E|noise|/n. A
            pair that no table holds: |x − model| ≤ |x − guess| + |guess − model|, the first as it
            was released, the second exact.
    """
    found = []
    for pair in itertools.combinations(range(len(tables.sizes)), 2):
        cells = cell_count(tables.sizes, pair)
        if tables.supports(pair):
            deviation = math.sqrt(float(tables.cell_variance(pair, 1 / cells)))
            error = min(0.5 * FOLD * cells * deviation / tables.rows, 1.0)
            found.append(PairError(pair, True, error))
            continue
        law, guess = model.table(pair), guesses.get(pair)
        error = max(distances.get(pair, math.nan), 0.0) / (2 * tables.rows)
        if guess is not None:
            error += 0.5 * float(np.abs(law - guess / max(guess.sum(), 1.0)).sum())
        found.append(PairError(pair, False, min(error, 1.0)))
    return found


def report_table(
    domain: Domain, tables: NoisyTables, model: Model, pairs: list[PairError]
) -> Summary:
    """Measured tables beside the model's, then the pairs that no table holds."""
    rows = []
    for columns, noisy in tables.measured.items():
        apart = 0.5 * float(np.abs(noisy.values / tables.rows - model.table(columns)).sum())
        noise = 0.5 * FOLD * noisy.values.size * noisy.sigma / tables.rows
        words = domain.words(columns), str(noisy.values.size)
        numbers = (number_text(one, one / 10) for one in (noisy.sigma, apart, noise))
        rows.append((*words, "measured", *numbers))
    for one in sorted(pairs, key=lambda one: -one.error):
        if not one.measured:
            cells = str(cell_count(tables.sizes, one.columns))
            error = "–" if math.isnan(one.error) else number_text(one.error, one.error / 10)
            rows.append((domain.words(one.columns), cells, "model alone", "–", "–", error))
    shown = rows[:MOST_LINES]
    more = (f"The first {MOST_LINES} of {len(rows)} tables.",) if len(rows) > MOST_LINES else ()
    header = ("columns", "cells", "from", "noise s.d.", "model − released", "expected error")
    return Summary("Tables of a synthesis", header, tuple(shown), (ABOUT_ERRORS, *more))
