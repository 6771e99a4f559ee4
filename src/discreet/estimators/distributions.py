"""Public functions for whole distributions:
`ecdf` from a tree of counts, `density` from a histogram.
"""

from __future__ import annotations

import math

import numpy as np

from discreet import plain
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.asking.cells import Where, bin_cells, cells_where, rows_asked
from discreet.asking.noise_choice import count_noise, norm_of, require_spend
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter, WrongColumnKind
from discreet.estimators.basic import _open
from discreet.estimators.questions import counts_question
from discreet.exact import rational
from discreet.inference.quantiles.cdf import EcdfResult
from discreet.inference.quantiles.densities import DensityResult
from discreet.neighbors import Neighbors
from discreet.schema import Integer, Real
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.specs.queries.sums import Sum, number_factor
from discreet.specs.queries.trees import MOST_LEAVES, TreeCounts, mean_prefix_variance, tree_over
from discreet.trusted.release import Description, PublicFacts, Question

FEWEST_POINTS, MOST_POINTS = 64, 4096  # of a distribution function, where the caller does not say
PRIVATE_ROWS_POINTS = 1024  # where the number of rows is private
# finer leaves gain less than interpolation within them
FEWEST_QUANTILE_LEAVES, MOST_QUANTILE_LEAVES = 1 << 12, 1 << 14
# the number of rows that the default number of bins is made for, where the true one is private
PRIVATE_ROWS = 1000
MOST_BINS = 512
# ∫f′²/12 of a normal law whose declared range is eight standard deviations, that range being 1
BEND = 8.0**3 / (48 * math.sqrt(math.pi))


@plain.door
def ecdf(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    points: int | None = None,
    where: Where | None = None,
    key: str | None = None,
) -> EcdfResult:
    """The distribution function of a number column,
    with pointwise and simultaneous bands and any number of quantiles.

    `points` is the least number of points at which it is estimated, equally spaced over the
    declared range; by default about 16·√n, fewer where noise dominates, between 64 and 4096
    (1024 where n is private). More points cost little: noise grows with the logarithm of their
    number.

    *Method*: noisy counts at all levels of a tree over the column's grid, made consistent by least
    squares (docs/theory/trees.md).

    Formula.
            F(x) = (rows at or below x + noise) / N, consistent over a tree of counts

    Validity. Rows are independent draws; `band` holds at all points at once.
    Price.    The spend, once a key; any number of quantiles can be read off afterwards.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            income = dp.ecdf(session, "income", spend=dp.GDP(0.3))
            top = income.quantiles([0.9])
            print(top.estimate, top.low, top.high)
            income.plot()
    See also. `dp.quantiles`, `dp.density`.
    """
    return EcdfResult(
        _open(session).release(
            ecdf_question(_open(session).public, column, spend=spend, points=points, where=where),
            key=key,
        )
    )


@plain.door
def density(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    bins: object = None,
    where: Where | None = None,
    key: str | None = None,
) -> DensityResult:
    """A histogram density of a number column,
    with pointwise and simultaneous bands (reference.md F3).

    `bins` is a number of equal bins over the declared range or increasing edges; by default the
    number that minimises the expected squared error of sampling, noise and bin width together for a
    normal law that fills the declared range (`default_bins`).

    Formula.
            f = (Nₖ + Z) / (N·w)

            w  the width of the bin

    Validity. Rows are independent draws; the bands are for the histogram's own density.
    Price.    The spend, once a key, for all bins together.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            ages = dp.density(session, "age", spend=dp.GDP(0.2))
            ages.plot()
    See also. `dp.histogram`, `dp.ecdf`.
    """
    return DensityResult(
        _open(session).release(
            density_question(_open(session).public, column, spend=spend, bins=bins, where=where),
            key=key,
        )
    )


def ecdf_question(
    public: PublicFacts,
    column: str,
    *,
    spend: Guarantee,
    points: int | None = None,
    where: Where | None = None,
) -> Question:
    asked = Description("ecdf", column, (column,))
    if points is not None:
        return tree_question(
            public, asked, spend=spend, leaves=_checked_points(points) + 1, where=where
        )
    question = tree_question(
        public, asked, spend=spend, leaves=ecdf_leaves(public.rows, 0.0), where=where
    )
    query, mechanism = question.query, question.mechanism
    assert isinstance(query, TreeCounts)
    assert isinstance(mechanism, AdditiveNoise)
    noise = mechanism.variance * mean_prefix_variance(query.branching, query.levels)
    return tree_question(
        public, asked, spend=spend, leaves=ecdf_leaves(public.rows, noise), where=where
    )


def ecdf_leaves(rows: int | None, noise_variance: float) -> int:
    """Leaves for a distribution function: 8 over its standard error √(1/4n + noise/n²), up to the
    next power of two, between 64 and 4096.

    So they are fine against the error also where the data fill a sixteenth of the range, and few
    where there is nothing to be seen.
    """
    if rows is None:
        return PRIVATE_ROWS_POINTS
    error = math.sqrt(0.25 / max(rows, 1) + noise_variance / max(rows, 1) ** 2)
    return int(np.clip(1 << max(math.ceil(math.log2(8 / error)), 0), FEWEST_POINTS, MOST_POINTS))


def quantile_leaves(public: PublicFacts) -> int:
    """Leaves for quantiles: sixteen a row where their number is public, 4096 to 16384;
    16384 where it is private.
    """
    return (
        MOST_QUANTILE_LEAVES
        if public.rows is None
        else int(np.clip(16 * public.rows, FEWEST_QUANTILE_LEAVES, MOST_QUANTILE_LEAVES))
    )


def tree_question(
    public: PublicFacts,
    asked: Description,
    *,
    spend: Guarantee,
    leaves: int,
    where: Where | None = None,
) -> Question:
    """A question for the counts of a tree over `asked.column`;
    `asked` says for which estimator, and gets the filter's words.
    """
    assert asked.column is not None
    cells = rows_asked(public.schema, where, asked.column)
    factor = number_factor(public.schema, asked.column, "a distribution function")
    query = tree_over(
        cells.keys,
        factor,
        optional=cells.optional,
        leaves=leaves,
        norm=norm_of(require_spend(spend)),
    )
    named = Description(
        asked.estimator,
        asked.column,
        asked.by,
        asked.labels,
        cells.where,
        asked.edges,
        origin=asked.origin,
    )
    return Question(named, query, tree_noise(query, public.neighbors, spend), spend)


def tree_noise(query: TreeCounts, neighbors: Neighbors, spend: Guarantee) -> AdditiveNoise:
    """Noise for a tree: geometric on the integers for a pure spend, else Gaussian."""
    l1, l2 = query.sensitivity(neighbors)
    if isinstance(spend, PureDP):
        return geometric_noise(l1, rational(spend.epsilon, "epsilon"))
    return gaussian_noise(l2, spend_mu_squared(spend))


def density_question(
    public: PublicFacts,
    column: str,
    *,
    spend: Guarantee,
    bins: object = None,
    where: Where | None = None,
) -> Question:
    declared = public.schema[column]
    if not isinstance(declared, (Real, Integer)):
        raise WrongColumnKind(
            column,
            type(declared).__name__,
            "Real or Integer",
            "a density (its levels have shares: use histogram)",
        )
    cells = bin_cells(
        public.schema,
        column,
        default_edges(public, column, spend=require_spend(spend)) if bins is None else bins,
    )
    edges = cells.keys[0].edges  # type: ignore[union-attr]
    subset = cells_where(public.schema, where)
    asked = Description("density", column, (column,), cells.labels, subset.where, edges)
    question = counts_question(public, asked, cells.joined(subset), spend, shares=True)
    query = question.query
    if query.size == 1 and public.rows is not None and not query.optional:
        raise InvalidParameter(
            "bins",
            "one bin holds all rows, and their number is public",
            "it would cost budget and add noise to a known number",
            "ask for two bins or more",
        )
    return question


def default_edges(public: PublicFacts, column: str, *, spend: Guarantee) -> list[float]:
    """Equal bins over the declared range, as many as `default_bins` says; those of a whole-number
    column have widths that differ by at most 1.
    """
    declared = public.schema[column]
    assert isinstance(declared, (Real, Integer))
    noise = count_noise(
        Sum(bin_cells(public.schema, column, 2).keys, (), False), public.neighbors, spend
    )
    bins = default_bins(public.rows or PRIVATE_ROWS, noise.variance, cluster=public.neighbors.rows)
    if not isinstance(declared, Integer):
        return [float(edge) for edge in np.linspace(declared.low, declared.high, bins + 1)]
    values = declared.high - declared.low + 1
    bins = min(bins, values)
    return [declared.low - 0.5 + place * values // bins for place in range(bins + 1)]


def default_bins(rows: float, noise_variance: float, *, cluster: int = 1) -> int:
    """The number J of bins that minimises the integrated squared error of a histogram density,
    from public facts alone.

    With the declared range as unit, a normal law of standard deviation 1/8 has ∫(bias²) = BEND/J²,
    ∫(sampling variance) = cluster·J/n and ∫(noise variance) = noise_variance·J²/n². Without noise
    it is Scott's rule; noise makes fewer bins: J ≤ (BEND·n²/noise_variance)^¼.
    """
    bins = np.arange(2, MOST_BINS + 1)
    error = BEND / bins**2 + cluster * bins / rows + noise_variance * (bins / rows) ** 2
    return int(bins[np.argmin(error)])


def _checked_points(points: object) -> int:
    if isinstance(points, bool) or not isinstance(points, int) or not 1 <= points < MOST_LEAVES:
        raise InvalidParameter(
            "points=",
            f"not a whole number from 1 to {MOST_LEAVES - 1}",
            "the distribution function is estimated at so many points",
            "pass for example points=1000, or leave it out",
        )
    return points
