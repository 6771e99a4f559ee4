"""Samples a second of noisy SGD on logistic regression (batch 1024, p = 50): exact batches, exact
sums, exact noise, no float sum anywhere.

    python benchmarks/sgd.py --rows 1000000 --steps 1000

Last line: sgd_poisson= sgd_fixed= (samples a second), and sgd_vs_peer= where --peer gives a peer's
samples a second on the same machine.
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction

import numpy as np

from discreet.sensitivity import OneRow
from discreet.specs.estimating.batches import ETA_BITS, LARGEST_BETA, plain_metric
from discreet.specs.estimating.components import UNIT
from discreet.specs.estimating.families import Logistic
from discreet.specs.estimating.model import Point
from discreet.specs.estimating.tables import GRID, PSI
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.trusted.extensions.estimating.kernels import ModelData, row_weights
from discreet.trusted.extensions.sgd.batches import RowGradients
from discreet.trusted.extensions.sgd.draw import descend
from discreet.trusted.noise.source import secure_source

BATCH, COLUMNS = 1024, 50


def rows_of(count: int) -> RowGradients:
    rng = np.random.default_rng(0)
    matrix = np.empty((count, COLUMNS), dtype=np.int16)
    for column in range(COLUMNS):
        matrix[:, column] = rng.integers(-UNIT, UNIT + 1, count)
    response = (rng.integers(0, 2, count) * PSI).astype(np.int32)
    point = Point((0,) * COLUMNS, ETA_BITS, GRID / 2.0**ETA_BITS)
    return RowGradients(
        ModelData(matrix, response),
        row_weights(matrix, plain_metric(COLUMNS, 4.0)),
        Logistic(),
        point,
    )


def measured(spec: NoisySGD, rows: RowGradients) -> float:
    """Samples a second, the best of three runs after a first one that compiles."""
    times = []
    for _ in range(4):
        start = time.perf_counter()
        descend(spec, rows, secure_source())
        times.append(time.perf_counter() - start)
    return spec.steps * BATCH / min(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--peer", type=float, default=0.0)
    options = parser.parse_args()
    rows, reach = rows_of(options.rows), Fraction(PSI * 4 * 4 * UNIT) ** 2
    common = {
        "spread": Fraction(2.0**32),
        "steps": options.steps,
        "rate": 2.0**-14,
        "start": (0,) * COLUMNS,
        "limit": LARGEST_BETA,
        "every": max(1, options.steps // 50),
        "averaged": max(1, options.steps // 2),
        "delta": Fraction(1, 10**8),
    }
    poisson = measured(
        NoisySGD(
            OneRow(reach, "added or removed", None),
            gap=Fraction(options.rows / BATCH),
            size=None,
            **common,
        ),
        rows,
    )
    fixed = measured(
        NoisySGD(OneRow(reach, "replaced", options.rows), gap=None, size=BATCH, **common), rows
    )
    against = f" sgd_vs_peer={min(poisson, fixed) / options.peer:.1f}" if options.peer else ""
    print(f"sgd_poisson={poisson:.0f} sgd_fixed={fixed:.0f}{against}")


if __name__ == "__main__":
    main()
