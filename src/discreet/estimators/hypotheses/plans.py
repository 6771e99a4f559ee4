"""What `dp.power` and `dp.sample_size` need to know of each test of tables, means,
ranks and parts (row-level Replace).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.asking.noise_choice import norm_of, require_spend
from discreet.errors import InvalidParameter
from discreet.exact import rational
from discreet.inference.counts.binomial import checked_alternative
from discreet.inference.counts.part_tests import best_split, planned_power
from discreet.inference.counts.tulap import ReleasedNoise, checked_share, released_noise
from discreet.inference.results.hypothesis import checked_alpha
from discreet.inference.tables.power import Distance, TestPlan
from discreet.inference.tables.table_tests import fit_statistic
from discreet.inference.tables.tables import NoisyTables, chi_square, kruskal_wallis
from discreet.neighbors import Replace
from discreet.sensitivity import L1, L2
from discreet.specs.queries.moments import mean_design

TURNS = 4  # between the mean that unequal groups have in common and its variances
_MEAN_ASSUMED = ("difference", "standard_deviation", "low", "high")


def count_law(spend: Guarantee, moved: int = 2) -> ReleasedNoise:
    """The noise of a count in a table, `moved` of whose cells one row changes by one."""
    if isinstance(require_spend(spend), PureDP):
        return released_noise(
            geometric_noise(
                L1(Fraction(moved)),
                rational(spend.epsilon, "epsilon"),  # type: ignore[union-attr]
            )
        )
    return released_noise(gaussian_noise(L2(Fraction(moved)), spend_mu_squared(spend)))


def _plan(
    name: str,
    assumed: str,
    distance: Distance,
    freedom: int,
    alternative: str,
    alpha: float,
    noise: ReleasedNoise,
    effect: tuple[str, float] = ("", 0.0),
) -> TestPlan:
    """`effect`: the assumption that has a side, and how far it lies on it."""
    if freedom != 1 and alternative != "two-sided":
        raise InvalidParameter(
            "alternative=",
            f"{alternative!r} for {name}",
            "a test of several groups or cells has no direction",
            "leave it out",
        )
    if (alternative == "greater" and effect[1] < 0) or (alternative == "less" and effect[1] > 0):
        raise InvalidParameter(
            effect[0],
            "it is no case of the alternative",
            "the test hardly ever rejects there",
            "assume something on the alternative's side, or pass the other alternative=",
        )
    return TestPlan(
        name,
        assumed,
        distance,
        freedom,
        checked_alternative(alternative),
        checked_alpha(alpha),
        noise,
    )


def _scaled(noise: ReleasedNoise, scale: float) -> ReleasedNoise:
    return replace(noise, spread=max(noise.spread * scale, 1e-6), step=0.0)


def _table_plan(
    name: str,
    assumed: str,
    shares: Any,
    statistic: Any,
    freedom: int,
    spend: Guarantee,
    alternative: str,
    alpha: float,
    effect: tuple[str, float] = ("", 0.0),
) -> TestPlan:
    noise = count_law(spend)

    def distance(rows: int, scale: float) -> float:
        return float(
            statistic(NoisyTables(rows * shares, _scaled(noise, scale), np.asarray(float(rows))))
        )

    return _plan(name, assumed, distance, freedom, alternative, alpha, noise, effect)


def compare_plan(
    *,
    spend: Guarantee,
    alternative: str,
    alpha: float,
    baseline: float,
    share: float,
    allocation: float | None = None,
) -> TestPlan:
    """`allocation`: the share of all rows that is in the group with `share` (default: half)."""
    low, high = checked_share(baseline, "baseline"), checked_share(share, "share")
    sizes = _sizes(allocation)
    shares = np.array([[high, 1 - high], [low, 1 - low]]) * sizes[::-1, None]
    return _table_plan(
        "the comparison of two proportions",
        f"shares {low:g} and {high:g} in {_groups_text(sizes)}",
        shares,
        chi_square,
        1,
        spend,
        alternative,
        alpha,
        ("share=", high - low),
    )


def _sizes(allocation: object) -> Any:
    """The shares of all rows in the baseline and in the group."""
    part = Fraction(1, 2) if allocation is None else rational(allocation, "allocation")
    if not 0 < part < 1:
        raise InvalidParameter(
            "allocation=",
            "it is not between 0 and 1",
            "it is the share of all rows in the group; the others are in the baseline",
            "pass for example 0.2 for a fifth, or leave it out for equal groups",
        )
    return np.array([float(1 - part), float(part)])


def _groups_text(sizes: Any) -> str:
    if sizes[0] == sizes[1]:
        return "groups of equal size"
    return f"groups of {100 * sizes[0]:g} % and {100 * sizes[1]:g} % of the rows"


def _shares_table(table: Any) -> Any:
    try:
        shares = np.array(table, dtype=float)
    except (TypeError, ValueError):
        shares = np.zeros(0)
    if (
        shares.ndim != 2
        or min(shares.shape) < 2
        or not np.all(np.isfinite(shares))
        or shares.min() < 0
        or shares.max() <= 0
    ):
        raise InvalidParameter(
            "table=",
            "it is no table of at least 2 × 2 shares",
            "power is computed at assumed shares of all cells",
            "pass for example table=[[0.3, 0.2], [0.2, 0.3]]",
        )
    shares = shares / shares.max()
    return shares / shares.sum()


def independence_plan(*, spend: Guarantee, alternative: str, alpha: float, table: Any) -> TestPlan:
    shares = _shares_table(table)
    freedom = (shares.shape[0] - 1) * (shares.shape[1] - 1)
    return _table_plan(
        "the test of independence",
        f"a table of {shares.shape[0]} × {shares.shape[1]} cells",
        shares,
        chi_square,
        freedom,
        spend,
        alternative,
        alpha,
    )


def rank_plan(*, spend: Guarantee, alternative: str, alpha: float, table: Any) -> TestPlan:
    shares = _shares_table(table)
    columns = shares.sum(axis=0)
    ranks = (shares * (columns.cumsum() - columns / 2)).sum(axis=1) / np.maximum(
        shares.sum(axis=1), 1e-300
    )
    return _table_plan(
        "the rank test",
        f"{shares.shape[0]} groups in {shares.shape[1]} bins",
        shares,
        kruskal_wallis,
        shares.shape[0] - 1,
        spend,
        alternative,
        alpha,
        ("table=", float(ranks[1] - ranks[0])),
    )


def fit_plan(
    *, spend: Guarantee, alternative: str, alpha: float, expected: Any, shares: Any
) -> TestPlan:
    null, true = _shares_table([expected, expected])[0] * 2, _shares_table([shares, shares])[0] * 2
    if null.shape != true.shape:
        raise InvalidParameter(
            "shares=",
            "not as many as expected=",
            "both are shares of the same cells",
            "pass two lists of equal length",
        )
    noise = count_law(spend)

    def distance(rows: int, scale: float) -> float:
        return float(fit_statistic(rows * true, null, _scaled(noise, scale).variance, rows))

    return _plan(
        "goodness of fit", f"{null.size} cells", distance, null.size - 1, alternative, alpha, noise
    )


def _mean_laws(spend: Guarantee, groups: int) -> tuple[ReleasedNoise, tuple[float, ...]]:
    """The noise of counts, sums and spreads of c,
    and what a unit of each is worth (the count's is 0 where it is public).
    """
    norm = norm_of(require_spend(spend))
    design = mean_design(Replace(), cells=groups, optional=groups > 1, norm=norm)
    reach = design.bound(Replace(), cells=groups, optional=groups > 1)
    if norm == 1:
        spread = float(reach) / float(
            rational(spend.epsilon, "epsilon"),  # type: ignore[union-attr]
        )
        return ReleasedNoise("laplace", spread), (
            (1 / design.count) if design.count else 0.0,
            *(1 / weight for weight in design.weights),
        )
    spread = float(reach) ** 0.5 / float(spend_mu_squared(spend)) ** 0.5
    return ReleasedNoise("gaussian", spread), (
        (1 / design.count) if design.count else 0.0,
        *(1 / weight for weight in design.weights),
    )


def _mean_distance(
    law: ReleasedNoise, worths: tuple[float, ...], means: Any, deviation: float, sizes: Any
) -> Distance:
    """From groups of these shares of the rows with these means and one standard deviation, in units
    of c.
    """

    def distance(rows: int, scale: float) -> float:
        noise = _scaled(law, scale).variance if scale else 0.0
        count, middle = rows * sizes, float(means.mean())

        def variance(about: float) -> Any:
            # the test's, about the common mean
            squares = count * ((means - about) ** 2 + deviation**2)
            return squares + noise * (worths[1] ** 2 + about**2 * worths[0] ** 2)

        for _ in range(0 if sizes[0] == sizes[-1] else TURNS):
            middle = float(np.average(means, weights=count**2 / variance(middle)))
        return float(((count * (means - middle)) ** 2 / variance(middle)).sum())

    return distance


def _effect(
    difference: float, standard_deviation: float, low: float, high: float, width: float = 1.0
) -> tuple[float, float]:
    """Difference and standard deviation in units of c, of a range of (high − low)·width."""
    numbers = [
        float(rational(value, name))
        for value, name in (
            (difference, "difference"),
            (standard_deviation, "standard_deviation"),
            (low, "low"),
            (high, "high"),
        )
    ]
    half = (numbers[3] - numbers[2]) * width / 2
    if half <= 0 or numbers[1] <= 0 or numbers[1] > half or abs(numbers[0]) > 2 * half:
        raise InvalidParameter(
            "standard_deviation=",
            "it does not fit in the declared range",
            "noise is set by the range from low to high",
            "pass the column's declared bounds as low= and high=",
        )
    return numbers[0] / half, numbers[1] / half


def means_plan(
    *,
    spend: Guarantee,
    alternative: str,
    alpha: float,
    difference: float,
    standard_deviation: float,
    low: float,
    high: float,
    mean: float | None = None,
    allocation: float | None = None,
) -> TestPlan:
    """`mean`: about which the two means lie; the noise of the groups' sizes counts by its distance
    from the middle of the range. `allocation`: the share of all rows in the second group.
    """
    effect, deviation = _effect(difference, standard_deviation, low, high)
    bounds = float(rational(low, "low")), float(rational(high, "high"))
    place = sum(bounds) / 2 if mean is None else float(rational(mean, "mean"))
    middle = (2 * place - sum(bounds)) / (bounds[1] - bounds[0])
    if abs(middle) + abs(effect) / 2 > 1:
        raise InvalidParameter(
            "mean=",
            "a group's mean would lie outside the declared range",
            "means lie from low to high",
            "pass a mean at least half the difference away from both bounds",
        )
    (law, worths), sizes = _mean_laws(spend, 2), _sizes(allocation)
    means = middle + np.array([-effect / 2, effect / 2])
    return _plan(
        "the comparison of two means",
        f"a difference of {float(difference):g} about {place:g}, standard deviation "
        f"{float(standard_deviation):g}, range {bounds[0]:g} … {bounds[1]:g}, "
        f"{_groups_text(sizes)}",
        _mean_distance(law, worths, means, deviation, sizes),
        1,
        alternative,
        alpha,
        law,
        ("difference=", effect),
    )


def _one_mean(
    name: str,
    width: float,
    spend: Guarantee,
    alternative: str,
    alpha: float,
    assumed: dict[str, float],
) -> TestPlan:
    effect, deviation = _effect(**assumed, width=width)
    law, worths = _mean_laws(spend, 1)

    def distance(rows: int, scale: float) -> float:
        noise = (_scaled(law, scale).variance if scale else 0.0) * worths[1] ** 2
        return (rows * effect) ** 2 / (rows * deviation**2 + noise)

    return _plan(
        name,
        ", ".join(f"{key.replace('_', ' ')} {float(value):g}" for key, value in assumed.items()),
        distance,
        1,
        alternative,
        alpha,
        law,
        ("difference=", effect),
    )


def mean_plan(
    *,
    spend: Guarantee,
    alternative: str,
    alpha: float,
    difference: float,
    standard_deviation: float,
    low: float,
    high: float,
) -> TestPlan:
    values = (difference, standard_deviation, low, high)
    assumed = dict(zip(_MEAN_ASSUMED, values, strict=True))
    return _one_mean("the test of a mean", 1.0, spend, alternative, alpha, assumed)


def paired_plan(
    *,
    spend: Guarantee,
    alternative: str,
    alpha: float,
    difference: float,
    standard_deviation: float,
    low: float,
    high: float,
) -> TestPlan:
    values = (difference, standard_deviation, low, high)
    assumed = dict(zip(_MEAN_ASSUMED, values, strict=True))
    return _one_mean("the paired test", 2.0, spend, alternative, alpha, assumed)


def parts_plan(*, spend: Guarantee, alternative: str, alpha: float, effect: float) -> TestPlan:
    """`effect`: the mean of the test's normal statistic on n rows is effect·√n."""
    size, level = abs(float(rational(effect, "effect"))), checked_alpha(alpha)
    law = count_law(spend, 1)
    smooth = law.smoothed()

    def chance(rows: int, scale: float) -> float:
        if not scale:
            return planned_power(1, level, ReleasedNoise("tulap", 1e-6), size * rows**0.5, level)
        noise = _scaled(smooth, scale)
        return planned_power(*best_split(noise, max(1, rows // 10)), noise, size * rows**0.5, level)

    plan = _plan(
        "the test of tests",
        f"an effect of {float(effect):g} standard deviations a row",
        lambda rows, scale: 0.0,
        1,
        alternative,
        alpha,
        law,
    )
    return replace(plan, chance=chance)
