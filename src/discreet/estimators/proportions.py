"""The test of one proportion: asked, previewed and planned."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.asking.canonical import cut_noise, with_tulap
from discreet.asking.noise_choice import require_spend
from discreet.errors import InvalidParameter
from discreet.estimators.basic import _open
from discreet.estimators.questions import proportion_question
from discreet.exact import rational
from discreet.inference.counts.binomial import checked_alternative
from discreet.inference.counts.power import PowerResult, ProportionPlan, checked_rows
from discreet.inference.counts.results import ProportionResult
from discreet.inference.counts.tulap import ReleasedNoise, checked_share, released_noise
from discreet.inference.results.hypothesis import HypothesisTest, checked_alpha
from discreet.sensitivity import L1, L2
from discreet.trusted.release import Question
from discreet.trusted.session import PublicFacts, Session


@plain.door
def proportion_test(
    session: Session,
    column: str,
    null: float,
    *,
    spend: Guarantee,
    alternative: str = "two-sided",
    level: object = None,
    noise: str | None = None,
    key: str | None = None,
) -> HypothesisTest:
    """Test whether the share of rows that are True (or have `level`) is `null`:
    ``dp.proportion_test(session, "member", 0.5, spend=dp.PureDP(1)).p_value``.

    Method.    One noisy count. Where the number of rows is public, pure spends draw Tulap noise
               (the uniform part secretly, with the noise) and all others Gaussian noise:
               the canonical noise of each, so that one-sided tests are uniformly most powerful.
               Two-sided tests have equal tails. Where it is private, the share of two noisy counts
               and the score test. `result` has the estimate, intervals and any other test.
               ``noise="tulap"`` with ``spend=dp.ApproxDP(ε, δ)`` draws cut Tulap noise, the
               canonical noise of (ε, δ)-DP, from a ledger with as much ε and δ₀.
    Validity.  Independent rows. Exact size where the number of rows is public.
    Reference. reference.md M3; Awan and Slavković (2018, 2020), Awan and Vadhan (2023).
    """
    checked_share(null, "null")
    checked_alternative(alternative)
    question = proportion_test_question(
        _open(session).public, column, null, spend=spend, level=level, noise=noise
    )
    return ProportionResult(_open(session).release(question, key=key)).test(
        null, alternative=alternative
    )


def proportion_test_question(
    public: PublicFacts,
    column: str,
    null: float = 0.5,
    *,
    spend: Guarantee,
    alternative: str = "two-sided",
    level: object = None,
    noise: str | None = None,
) -> Question:
    """The question behind the test: that of the proportion,
    with Tulap instead of geometric noise where one count is asked for.
    """
    return with_tulap(proportion_question(public, column, spend=spend, level=level, noise=noise))


def _proportion_plan(
    *,
    spend: Guarantee,
    alternative: str,
    alpha: float,
    null: float,
    share: float,
    noise: str | None = None,
) -> ProportionPlan:
    if noise not in (None, "tulap"):
        raise InvalidParameter(
            "noise=",
            "it is not known",
            "it decides the law of the noise",
            "pass noise='tulap', or leave it out",
        )
    return ProportionPlan(
        checked_share(null, "null"),
        checked_share(share, "share"),
        checked_alternative(alternative),
        checked_alpha(alpha),
        _count_law(spend, noise),
    )


def _count_law(spend: Guarantee, noise: str | None) -> ReleasedNoise:
    """The noise that a spend puts on a count that one row changes by one."""
    if noise == "tulap" and not isinstance(require_spend(spend), PureDP):
        return released_noise(cut_noise(spend, L1(Fraction(1))))
    if isinstance(require_spend(spend), PureDP):
        return ReleasedNoise(
            "tulap",
            float(geometric_noise(L1(Fraction(1)), rational(spend.epsilon, "epsilon")).spread),  # type: ignore[union-attr]
        )
    return released_noise(gaussian_noise(L2(Fraction(1)), spend_mu_squared(spend)))


# test → its plan (with power(rows), rows_for(power)), what must and what may be assumed
_PLANS: dict[Callable[..., Any], tuple[Callable[..., Any], tuple[str, ...], tuple[str, ...]]] = {
    proportion_test: (_proportion_plan, ("null", "share"), ("noise",)),
}


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
    from discreet.inference.tables.power import PlannedPower

    return (
        PowerResult(plan, rows, str(spend))
        if isinstance(plan, ProportionPlan)
        else PlannedPower(plan, rows, str(spend))
    )


def _plan(
    test: object, spend: Guarantee, alternative: str, alpha: float, assumed: dict[str, Any]
) -> Any:
    from discreet.estimators import test_plans  # noqa: F401  (adds the plans of the other tests)

    if not callable(test) or test not in _PLANS:
        raise InvalidParameter(
            "power",
            "this is not a test that can be planned",
            "power needs the law of its statistic",
            "pass one of " + ", ".join(f"dp.{known.__name__}" for known in _PLANS),
        )
    build, names, optional = _PLANS[test]
    if set(assumed) - set(optional) != set(names):
        raise InvalidParameter(
            f"the power of dp.{getattr(test, '__name__', '')}",
            f"assumed were {', '.join(f'{name}=' for name in sorted(assumed)) or 'no values'}",
            "power is computed at assumed values, and of these alone",
            "pass "
            + ", ".join(f"{name}=" for name in names)
            + "".join(f" and perhaps {name}=" for name in optional),
        )
    return build(spend=spend, alternative=alternative, alpha=alpha, **assumed)
