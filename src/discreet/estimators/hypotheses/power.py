"""dp.power: how often a test will reject, before anything is spent; and the rows, the effect or the
spend at which it has the power that is wanted.

Each test's record says what plans it and what its effect is (asking/records.py).
"""

from __future__ import annotations

import decimal
import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.accounting.guarantees import GDP, ApproxDP, Guarantee, PureDP
from discreet.asking.records import RECORDS, Record, record_of, resolve
from discreet.errors import InvalidParameter, shown
from discreet.exact import rational
from discreet.inference.counts.power import PowerResult, ProportionPlan, checked_rows
from discreet.inference.counts.solved_power import LeastSpend, SmallestEffect
from discreet.inference.counts.tulap import checked_share
from discreet.inference.tables.power import PlannedPower

# an effect of parts, in standard deviations a row, and an ε or μ: nobody needs more
LARGEST_EFFECT, LEAST_LOSS, MOST_LOSS = 100.0, 1e-4, 100.0
EFFECT_DIGITS, LOSS_DIGITS = 4, 3  # of an answer, rounded to the side on which it holds
HALVINGS = 44


@plain.door
def power(
    test: Callable[..., Any],
    *,
    rows: int,
    spend: Guarantee,
    alternative: str = "two-sided",
    alpha: float = 0.05,
    **assumed: Any,
) -> PowerResult:
    """How often a test will reject: ``dp.power(dp.proportion_test, rows=500, null=0.5, share=0.56,
    spend=dp.PureDP(0.5)).power``.

    What is assumed depends on the test. `proportion_test`: ``null``, ``share``
    (and ``noise="tulap"``). `compare`: ``baseline``, ``share`` of two groups, and perhaps
    ``allocation``, the share of all rows in the second (default: half). `mean_test`,
    `paired_test`: ``difference`` from the null, ``standard_deviation`` (of pairs: of their
    differences), ``low``, ``high`` as declared. `compare_means`: the same, and perhaps
    ``allocation`` and ``mean``, about which the two means lie (default: the middle of the range,
    where noise is least).
    `independence_test`, `rank_test`: ``table``, the shares of all cells (ranks: groups by bins).
    `goodness_of_fit`: ``expected`` (the null) and ``shares`` (the truth). `subsample_test`:
    ``effect``, where the test's normal statistic has mean effect·√n on n rows.

    Method.   Exact for a proportion, from the binomial law at the assumed `share` and the law of
              the noise (row-level Replace); a normal or χ² approximation with the variance of the
              noise for all others, but parts, whose number of rejections is binomial. `plot()`
              shows it by rows and by ε.
    Validity. Nothing is read or spent. Independent rows, as assumed.

    `dp.sample_size`, `dp.smallest_effect` and `dp.spend_needed` find the rows, the effect and the
    spend at which the power is the one that is wanted.

    Price.    None: no data are read.
    Example.
            planned = dp.power(dp.compare, rows=8000, baseline=0.10, share=0.125, spend=dp.GDP(0.1))
            print(planned)
            planned.plot()
    See also. `dp.sample_size`, `dp.smallest_effect`, `dp.spend_needed`.
    """
    return _planned(_plan(test, spend, alternative, alpha, assumed), checked_rows(rows), spend)


@plain.door
def sample_size(
    test: Callable[..., Any],
    *,
    spend: Guarantee,
    power: float = 0.8,
    alternative: str = "two-sided",
    alpha: float = 0.05,
    **assumed: Any,
) -> PowerResult:
    """The least number of rows (`rows` of the answer) at which a test has the power asked for:
    ``dp.sample_size(dp.proportion_test, null=0.5, share=0.56, spend=dp.PureDP(1)).rows``.

    Validity. As of `dp.power`.
    Price.    None: no data are read.
    Example.
            print(dp.sample_size(dp.compare, baseline=0.10, share=0.125, spend=dp.GDP(0.1)).rows)
    See also. `dp.power`, `dp.rows_needed`.
    """
    plan = _plan(test, spend, alternative, alpha, assumed)
    return _planned(plan, plan.rows_for(_wanted(power, plan.alpha)), spend)


@plain.door
def smallest_effect(
    test: Callable[..., Any],
    *,
    rows: int,
    spend: Guarantee,
    power: float = 0.8,
    alternative: str = "two-sided",
    alpha: float = 0.05,
    **assumed: Any,
) -> SmallestEffect:
    """The smallest effect (`effect` of the answer) that a test finds with the power asked for:
    ``dp.smallest_effect(dp.compare, rows=12_000, baseline=0.1, spend=dp.GDP(0.1)).effect``.

    What is assumed is as for `dp.power`, without the effect itself: the ``share`` of a proportion
    or of a group (the nearest one above the null or baseline, below it for ``alternative="less"``),
    the ``difference`` of means, the ``effect`` of `subsample_test`. It is rounded to four digits,
    away from the null.

    Validity. As of `dp.power`.
    Price.    None: no data are read.
    Example.
            print(dp.smallest_effect(dp.compare, rows=12_000, baseline=0.1, spend=dp.GDP(0.1)))
    See also. `dp.power`, `dp.sample_size`.
    """
    record, build = _planning(test)
    name, count = record.effect, checked_rows(rows)
    if not name:
        raise InvalidParameter(
            f"the smallest effect of dp.{record.name}",
            "it is assumed as a whole table",
            "a table has no single effect",
            "pass other tables to dp.power, or use one of "
            + ", ".join(f"dp.{known.name}" for known in RECORDS if known.effect),
        )
    _check_assumed(record, build, assumed, without=name)
    start, end = _span_of_effect(name, alternative, assumed)

    def planned(value: float) -> PowerResult:
        given = {**assumed, name: value}
        plan = build(spend=spend, alternative=alternative, alpha=alpha, **given)
        return _planned(plan, count, spend)

    wanted = _wanted(power, planned(end).plan.alpha)
    if planned(end).power < wanted:
        raise InvalidParameter(
            "smallest_effect",
            f"no {name} up to {end:g} is found with power {wanted:g}",
            "noise and chance hide effects of every size at these rows and this spend",
            "plan more rows, spend more, or accept less power",
        )
    side, most = (1.0, end - start) if end > start else (-1.0, start - end)
    found = _least(lambda apart: planned(start + side * apart).power >= wanted, 0.0, most)
    apart = min(_rounded_up(found, EFFECT_DIGITS), most)
    effect = float(f"{start + side * apart:.12g}")
    return SmallestEffect(planned(effect), name, effect)


@plain.door
def spend_needed(
    test: Callable[..., Any],
    *,
    rows: int,
    power: float = 0.8,
    kind: str = "GDP",
    delta: float | None = None,
    alternative: str = "two-sided",
    alpha: float = 0.05,
    **assumed: Any,
) -> LeastSpend:
    """The least spend (`spend` of the answer) at which a test has the power asked for:
    ``dp.spend_needed(dp.compare, rows=12_000, baseline=0.1, share=0.125).spend``.

    `kind` is "GDP" (the least μ), "PureDP" (the least ε, of pure privacy), or "ApproxDP" with
    `delta` (the least ε at that δ). It is rounded up to three digits. What is assumed is as for
    `dp.power`.

    Validity. As of `dp.power`.
    Price.    None: no data are read.
    Example.
            print(dp.spend_needed(dp.compare, rows=12_000, baseline=0.1, share=0.125))
    See also. `dp.power`, `dp.sample_size`.
    """
    record, build = _planning(test)
    make, count = _spends(kind, delta), checked_rows(rows)
    _check_assumed(record, build, assumed)

    def planned(loss: float) -> PowerResult:
        spend = make(loss)
        plan = build(spend=spend, alternative=alternative, alpha=alpha, **assumed)
        return _planned(plan, count, spend)

    most = planned(MOST_LOSS)
    wanted = _wanted(power, most.plan.alpha)
    if most.power < wanted:
        raise InvalidParameter(
            "spend_needed",
            f"without privacy the power is {most.nonprivate:.3g} at {count} rows",
            "no spend gives more power than the test has without noise",
            "plan more rows (dp.sample_size), assume a larger effect, or accept less power",
        )
    if planned(LEAST_LOSS).power >= wanted:
        found = LEAST_LOSS
    else:
        found = _least(lambda loss: planned(loss).power >= wanted, LEAST_LOSS, MOST_LOSS)
    loss = _rounded_up(found, LOSS_DIGITS)
    return LeastSpend(planned(loss), make(loss))


def _least(enough: Callable[[float], bool], low: float, high: float) -> float:
    """The least number from low (not enough) to high (enough), from above, by bisection."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _rounded_up(value: float, digits: int) -> float:
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_UP)
    return float(context.create_decimal_from_float(value))


def _span_of_effect(name: str, alternative: str, assumed: dict[str, Any]) -> tuple[float, float]:
    """The null value of an effect, and the farthest that can be on the alternative's side."""
    side = -1.0 if alternative == "less" else 1.0
    if name == "share":
        known = "null" if "null" in assumed else "baseline"
        return checked_share(assumed[known], known), 1.0 if side > 0 else 0.0
    if name == "effect":
        return 0.0, side * LARGEST_EFFECT
    low, high = (float(rational(assumed[end], end)) for end in ("low", "high"))
    room = high - low
    if assumed.get("mean") is not None:
        mean = float(rational(assumed["mean"], "mean"))
        room = 2 * min(mean - low, high - mean)
    return 0.0, side * max(room, 0.0) * (1 - 1e-9)


def _spends(kind: object, delta: object) -> Callable[[float], Guarantee]:
    """The family of spends that is searched, by its loss."""
    if kind == "ApproxDP" and delta is not None:
        failure = float(rational(delta, "delta"))
        return lambda loss: ApproxDP(loss, failure)
    if delta is None and kind in ("GDP", "PureDP"):
        return GDP if kind == "GDP" else PureDP
    raise InvalidParameter(
        "kind=",
        f"{shown(kind)} with delta={shown(delta)}",
        "the answer is a spend of one kind, and (ε, δ) alone has a δ",
        "pass kind='GDP', kind='PureDP', or kind='ApproxDP' with delta=",
    )


def _wanted(power: float, alpha: float) -> float:
    wanted = rational(power, "power")
    if not Fraction(alpha) < wanted < 1:
        raise InvalidParameter(
            "power=",
            "it is not between alpha and 1",
            "a test without data already rejects with probability alpha",
            "pass for example 0.8",
        )
    return float(wanted)


def _planned(plan: Any, rows: int, spend: Guarantee) -> PowerResult:
    return (
        PowerResult(plan, rows, str(spend))
        if isinstance(plan, ProportionPlan)
        else PlannedPower(plan, rows, str(spend))
    )


def _plan(
    test: object, spend: Guarantee, alternative: str, alpha: float, assumed: dict[str, Any]
) -> Any:
    record, build = _planning(test)
    _check_assumed(record, build, assumed)
    return build(spend=spend, alternative=alternative, alpha=alpha, **assumed)


def _planning(test: object) -> tuple[Record, Callable[..., Any]]:
    """A test's record, and what plans it."""
    record = record_of(test)
    if record is None or not record.plan:
        raise InvalidParameter(
            "power",
            "this is not a test that can be planned",
            "power needs the law of its statistic",
            "pass one of " + ", ".join(f"dp.{known.name}" for known in RECORDS if known.plan),
        )
    return record, resolve(record.plan)


def _check_assumed(
    record: Record, build: Callable[..., Any], assumed: dict[str, Any], *, without: str = ""
) -> None:
    """Refuses other values than a plan needs, `without` the one that is looked for."""
    names, optional = assumptions_of(build)
    names = [name for name in names if name != without]
    if set(assumed) - set(optional) != set(names):
        raise InvalidParameter(
            f"the power of dp.{record.name}",
            f"assumed were {', '.join(f'{name}=' for name in sorted(assumed)) or 'no values'}",
            "power is computed at assumed values, and of these alone",
            "pass "
            + ", ".join(f"{name}=" for name in names)
            + "".join(f" and perhaps {name}=" for name in optional),
        )


def assumptions_of(build: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """What must and what may be assumed: the parameters of a plan beside those of every test,
    without and with a default.
    """
    own = [
        parameter
        for name, parameter in inspect.signature(build).parameters.items()
        if name not in ("spend", "alternative", "alpha")
    ]
    return [one.name for one in own if one.default is one.empty], [
        one.name for one in own if one.default is not one.empty
    ]
