"""The test of one proportion: asked, previewed and planned."""

from __future__ import annotations

from fractions import Fraction

from discreet import plain
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.asking.canonical import cut_noise, with_tulap
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter
from discreet.estimators.basic import _open
from discreet.estimators.questions import proportion_question
from discreet.exact import rational
from discreet.inference.counts.binomial import checked_alternative
from discreet.inference.counts.power import ProportionPlan
from discreet.inference.counts.results import ProportionResult
from discreet.inference.counts.tulap import ReleasedNoise, checked_share, released_noise
from discreet.inference.results.hypothesis import HypothesisTest, checked_alpha
from discreet.sensitivity import L1, L2
from discreet.trusted.release import PublicFacts, Question


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

    Formula.
            p-value = P(X' + Z at least as far out as X + Z | share = null),   X' binomial

    Price.    The spend, once a key; other null values cost nothing more.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            test = dp.proportion_test(session, "education", 0.3, level="degree", spend=dp.GDP(0.1))
            print(test)
    See also. `dp.proportion`, `dp.compare`, `dp.power`; docs/how-to/ab-tests.md.
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


def proportion_plan(
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
        epsilon = rational(spend.epsilon, "epsilon")  # type: ignore[union-attr]
        return ReleasedNoise("tulap", float(geometric_noise(L1(Fraction(1)), epsilon).spread))
    return released_noise(gaussian_noise(L2(Fraction(1)), spend_mu_squared(spend)))
