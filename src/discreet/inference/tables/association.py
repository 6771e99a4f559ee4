"""How far a noisy table is from the nearest independent one,
on a scale whose law hardly depends on what noise hides.

Independent tables are the matrices λ = a·b′ of rank one, with Σλ = n where the number of rows is
public. They are a curved surface: where noise is as large as the table, a distance to its tangent
plane (Pearson's χ², and χ² with noise in its weights) has a law that depends on where on the
surface the truth is, which is what nobody can see. The distance to the surface itself, weighed by
its curvature, does not (docs/theory/tests.md; sizes: benchmarks/tests_size.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.inference.results.laws import Array
from discreet.inference.tables.rank_one import (
    DEEP,
    Nearest,
    curvature_power,
    curvatures,
    evidence,
    nearest_rank_one,
    normal_scale,
)
from discreet.inference.tables.tables import NoisyTables, chi_square, kept_difference

# of the fourth cumulant: with it the gamma law has the 0.95 quantile of one squared Laplace
# variable, 4.49
ONE_DEGREE = 0.38
# what is counted of it in larger tables: with a public total;
# where noise hides a table with a private one, times kept²
HELD_MORE, HIDDEN_MORE = 1.4, 0.8
# of the noise's variance: fitted means below 0 make up for those that are too large, so that
# variances are right on average
FLOOR = 0.5


def nearest_independent(tables: NoisyTables) -> Nearest:
    """The matrix of rank one, with the public total where there is one, that minimises
    Σ(X − λ)²/variance (`nearest_rank_one`).

    Method. λ may be negative: cut at 0 the surface would have edges. A cell's variance is λ + v at
            the fit, found along with it; in 2 × 2 tables at even margins of a first fit
            (`_even_means`), because there an error of the fit turns the one direction of the
            residual. Margins of the table itself would do worse: they move with the residual,
            so that one side seems nearer than the other.
    """
    known, noise = tables.known, max(tables.noise.variance, 1e-9)

    def variance(means: Array) -> Array:
        return np.asarray(np.maximum(tables.cluster * means + noise, noise * FLOOR))

    if known.shape[-2:] != (2, 2):
        return nearest_rank_one(
            known, np.full(known.shape, noise), total=tables.total, follow=variance
        )
    means = known
    for _ in range(2):
        fit = nearest_rank_one(
            known, variance(_even_means(means, noise, tables.cluster)), total=tables.total
        )
        means = fit.means
    return fit


def _even_means(table: Array, noise: float, cluster: int) -> Array:
    """Means of 2 × 2 cells that variances are read off: both margins, each drawn to ½ as far as its
    error explains, and a row more.

    Method. The square of a noisy difference of two margins is too large, so p(1−p) is read too
            small, and most where p is ½ (`kept_difference`). With variances at the fit itself, not
            drawn in, 50 rows with shares of ½ are rejected 0.057 for 0.05.
    """
    rows = np.maximum(table.sum(axis=(-2, -1)), 0.0)

    def shares(margin: Array) -> Array:
        first = 0.5 + kept_difference(margin, 2 * noise, cluster) * (
            margin[..., 0] - margin[..., 1]
        ) / (2 * (rows + 1))
        return np.stack([first, 1 - first], axis=-1)

    p, q = shares(table.sum(axis=-1)), shares(table.sum(axis=-2))
    return np.asarray(rows[..., None, None] * p[..., :, None] * q[..., None, :])


def association(tables: NoisyTables, fit: Nearest | None = None) -> Array:
    """Evidence against independence: the squared distance to the nearest independent table, on the
    scale of χ² with (r−1)(c−1) degrees of freedom.

    Method.    Q = Σ(X − λ)²/(λ + v). Its mean is m = (r−1)(c−1) and its variance 2m + Σ kept²·κ₄,
               fourth cumulants of Poisson counts and of Laplace noise as far as the fit does not
               follow it (`_tail_share`): the tail of the gamma law with these moments gives a
               distance x on the normal scale. Given the nearest point and the direction, x has
               density ∝ x^(m−1)·e^(−x²/2)·Π(1 − κx)^γ, γ = 1 where nothing is seen and ½ for a
               table that can be seen; the upper tail beyond x is the evidence, turned into a
               quantile of χ². Larger tables with Gaussian noise: the mean of that and of the
               distance to the tangent plane (`chi_square`). Where noise hides a table, the nearest
               matrix of rank one follows an association too, and the plane does not: at 50 rows,
               μ = 0.25 it finds 0.16 where the surface finds 0.11, critical values known for both.
               But it rejects too many tables with empty corners, where the surface rejects too few.
               With Laplace noise its tail moves too much (0.10 for 0.05), and it is left out.
    Validity.  A statistic, not a p-value: its law is simulated (`table_p_value`),
               and near χ² where noise is small.
    Reference. Weyl (1939) for the volume of tubes; Cox and Reid (1987) for the power ½; Choi,
               Taylor and Tibshirani (2017) for singular values given the first;
               docs/theory/tests.md.
    """
    fit = nearest_independent(tables) if fit is None else fit
    bent, kept = curvatures(fit)
    noise, cluster = max(tables.noise.variance, 1e-9), tables.cluster
    heavy = 0.0 if tables.noise.kind == "gaussian" else 3 * noise**2 * _tail_share(fit, kept)
    excess = (kept**2 * (heavy + cluster**3 * np.maximum(fit.means, 0.0)) / fit.variance**2).sum(
        axis=(-2, -1)
    )
    found = evidence(
        fit,
        normal_scale(fit.squared, fit.freedom, 2 * fit.freedom + excess),
        bent,
        _curvature_power(fit),
    )
    if tables.noise.kind == "gaussian" and fit.freedom > 1:
        found = (found + chi_square(tables)) / 2
    # without rows nothing is told
    return (
        found
        if tables.total is None
        else np.asarray(np.where(np.asarray(tables.total) > 0, found, 0.0))
    )


def _curvature_power(fit: Nearest) -> Array:
    """`curvature_power`; where a public total holds the fit of a larger table, 1 up to ¾ of the
    edge and steeply down from there: with that the tail moves least between tables with full and
    with empty corners.
    """
    if not fit.held or fit.means.shape[-2:] == (2, 2):
        return curvature_power(fit)
    return np.asarray(
        (1 + np.exp(-np.minimum(np.maximum(fit.seen / fit.edge - 0.75, 0.0) * 4, DEEP))) / 2
    )


def _tail_share(fit: Nearest, kept: Array) -> Any:
    """How much of the fourth cumulant of a cell's Laplace noise is counted, apart from kept².

    Method. With one degree of freedom what gives the 0.95 quantile of one squared variable
            (`ONE_DEGREE`), else all of it, the variance of a quadratic form: the more are summed,
            the nearer is the gamma law. But an outlier in one cell is itself a table of rank one:
            where noise hides the table and the total is private, the fit follows the outlier
            instead, and a share of kept² is left of it. A public total keeps the fit from
            following; that more than all of it is counted then has no derivation, it makes the tail
            move least between tables with full and with empty corners.
    """
    if fit.means.shape[-2:] == (2, 2):
        return ONE_DEGREE
    if fit.held:
        return HELD_MORE
    hidden = np.minimum(1.0, (fit.edge / (2 * np.maximum(fit.seen, 1e-9))) ** 4)[..., None, None]
    return 1 - hidden + hidden * HIDDEN_MORE * kept**2


def signed_association(tables: NoisyTables) -> Array:
    """Of 2 × 2 tables: the root of `association`,
    positive where the share of the first column is larger in the first row.

    Method. Independent tables have determinant 0 and part all others in two: the sign of the
            determinant is the side of the table, wherever the nearest independent one lies.
            (The sign of one cell's residual is not: where noise makes a factor of the fit negative,
            it points the wrong way, and one-sided sizes at 50 rows and ε = 0.1 are .031 and .067.)
    """
    x = tables.known
    side = np.sign(x[..., 0, 0] * x[..., 1, 1] - x[..., 0, 1] * x[..., 1, 0])
    return np.asarray(side * np.sqrt(np.maximum(association(tables), 0.0)))
