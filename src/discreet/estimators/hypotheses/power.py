"""dp.power and dp.sample_size: how often a test will reject, before anything is spent.

Each test's record says what plans it (asking/records.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.records import RECORDS, record_of, resolve
from discreet.errors import InvalidParameter
from discreet.exact import rational
from discreet.inference.counts.power import PowerResult, ProportionPlan, checked_rows
from discreet.inference.tables.power import PlannedPower


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
    (and ``noise="tulap"``). `compare`: ``baseline``, ``share`` of two equal groups. `mean_test`,
    `paired_test`: ``difference`` from the null, ``standard_deviation`` (of pairs: of their
    differences), ``low``, ``high`` as declared. `compare_means`: the same, for two equal groups,
    and perhaps ``mean``, about which the two means lie (default: the middle of the range, where
    noise is least).
    `independence_test`, `rank_test`: ``table``, the shares of all cells (ranks: groups by bins).
    `goodness_of_fit`: ``expected`` (the null) and ``shares`` (the truth). `subsample_test`:
    ``effect``, where the test's normal statistic has mean effect·√n on n rows.

    Method.   Exact for a proportion, from the binomial law at the assumed `share` and the law of
              the noise (row-level Replace); a normal or χ² approximation with the variance of the
              noise for all others, but parts, whose number of rejections is binomial. `plot()`
              shows it by rows and by ε.
    Validity. Nothing is read or spent. Independent rows, as assumed.
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
    """
    plan = _plan(test, spend, alternative, alpha, assumed)
    wanted = rational(power, "power")
    if not plan.alpha < wanted < 1:
        raise InvalidParameter(
            "power=",
            "it is not between alpha and 1",
            "a test without data already rejects with probability alpha",
            "pass for example 0.8",
        )
    return _planned(plan, plan.rows_for(float(wanted)), spend)


def _planned(plan: Any, rows: int, spend: Guarantee) -> PowerResult:
    return (
        PowerResult(plan, rows, str(spend))
        if isinstance(plan, ProportionPlan)
        else PlannedPower(plan, rows, str(spend))
    )


def _plan(
    test: object, spend: Guarantee, alternative: str, alpha: float, assumed: dict[str, Any]
) -> Any:
    record = record_of(test)
    if record is None or not record.plan:
        raise InvalidParameter(
            "power",
            "this is not a test that can be planned",
            "power needs the law of its statistic",
            "pass one of " + ", ".join(f"dp.{known.name}" for known in RECORDS if known.plan),
        )
    build = resolve(record.plan)
    names, optional = assumptions_of(build)
    if set(assumed) - set(optional) != set(names):
        raise InvalidParameter(
            f"the power of dp.{record.name}",
            f"assumed were {', '.join(f'{name}=' for name in sorted(assumed)) or 'no values'}",
            "power is computed at assumed values, and of these alone",
            "pass "
            + ", ".join(f"{name}=" for name in names)
            + "".join(f" and perhaps {name}=" for name in optional),
        )
    return build(spend=spend, alternative=alternative, alpha=alpha, **assumed)


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
