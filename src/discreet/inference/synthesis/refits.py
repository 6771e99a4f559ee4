"""What would have been released again: models fitted to tables with fresh sampling and fresh noise.

Each refit takes the released tables, adds a fresh sample of rows from the model less its mean, and
fresh noise, and fits the model anew from where it is. The spread of refits is that of the release
as far as the model is right; rows drawn from refits carry it into software that knows nothing of
noise.

Reference.  The combining rule is Rubin's for synthetic data (Raghunathan, Reiter and Rubin 2003),
            with sets drawn from refits: T = (1 + 1/m)·b − ū, b the variance of the estimates and ū
            the mean of their variances, at least ū, with m − 1 degrees of freedom.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream
from discreet.inference.synthesis.model import Model, Noisy, fitted_model
from discreet.inference.synthesis.rows import Codes, drawn_codes
from discreet.inference.synthesis.trees import Clique, cell_count
from discreet.inference.synthesis.unbiased import NoisyTables

SETS = 20
REFIT_ITERATIONS = 120


def refitted(model: Model, tables: NoisyTables, cluster: int, stream: Stream) -> Model:
    """The model of one release that might have been."""
    rows = max(1, round(tables.rows))
    fresh = drawn_codes(model, rows, stream, rounded=False)
    moved: dict[Clique, Noisy] = {}
    for columns, noisy in tables.measured.items():
        sampled = counted(fresh, columns, tables.sizes) - rows * model.table(columns)
        noise = ndtri(stream.uniforms(noisy.values.shape, f"noise of {columns}"))
        values = noisy.values + math.sqrt(cluster) * sampled + noisy.sigma * noise
        moved[columns] = Noisy(values, noisy.sigma)
    total = replace(tables, measured=moved).rows
    return fitted_model(model, moved, total, REFIT_ITERATIONS)


def shown(places: Sequence[int]) -> Iterable[int]:
    """The refits that are still to be made; on a terminal a line says how many are done."""
    if len(places) < 2 or not sys.stderr.isatty():
        return places
    from rich.console import Console
    from rich.progress import track

    return track(places, "Models", console=Console(stderr=True), transient=True)


def counted(codes: Codes, columns: Clique, sizes: Sequence[int]) -> Array:
    """The table of some columns of drawn rows."""
    cells = np.zeros(len(codes), dtype=np.int64)
    for column in columns:
        cells = cells * sizes[column] + codes[:, column]
    counts = np.bincount(cells, minlength=cell_count(sizes, columns))
    return counts.reshape([sizes[column] for column in columns]).astype(float)


def combined(estimates: Array, variances: Array) -> tuple[Array, Array, Array]:
    """(estimate, mean variance, total variance) of an analysis of m sets, shape (m, k) each."""
    sets = len(estimates)
    within, between = variances.mean(axis=0), estimates.var(axis=0, ddof=1)
    total = np.maximum((1 + 1 / sets) * between - within, within)
    return estimates.mean(axis=0), within, total
