"""A guarantee in words: what an attacker who knows everyone else can still find out about one
person (reference.md A5, A6).

The attacker must tell two neighbouring data sets apart: with and without a person's data
(AddRemove), or with one of two values for them (Replace). Nothing is said about what may be learnt
about people in general, with or without the person's data.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet import plain
from discreet.accounting.parameters import failure_probability, probability
from discreet.enclosure import enclose, upper_float
from discreet.errors import InvalidParameter
from discreet.exact import float_down, float_up, rational, readings

if TYPE_CHECKING:
    from discreet.accounting.profile import PrivacyProfile

_LARGEST_LOG = 600


@plain.door
def explain(
    guarantee: PrivacyProfile,
    *,
    false_alarm: float = 0.05,
    prior: float | None = None,
    delta: float = 1e-6,
) -> str:
    """Sentences for people, each a theorem with its numbers rounded against us.

        false_alarm  how often the attacker may accuse wrongly
        prior        the attacker's probability, before the release, that the person is in the data
                     (or has the value in question)
        delta        the probability that the statement about odds may fail with (twice this);
                     not used for pure guarantees

    Theorem.  `power_bound`, `guess_bound` and `odds_bound`.
    Checked.  tests/accounting/test_explain.py::test_every_sentence_holds_for_randomised_response

    Example.
            print(dp.explain(dp.ApproxDP(epsilon=1, delta=1e-6), prior=0.5))
    See also. `dp.GDP`, `dp.ApproxDP`; docs/deciding/choosing.md.
    """
    if isinstance(guarantee, type) or not hasattr(guarantee, "tradeoff"):
        raise InvalidParameter(
            "explain",
            f"a {plain.kind_name(guarantee)} is not a guarantee",
            "every sentence is a theorem about one",
            "pass for example dp.GDP(0.5), dp.ApproxDP(1, 1e-6) or result.release.guarantee",
        )
    rate = probability(false_alarm, "false_alarm")
    sentences = [
        f"Guarantee: {guarantee}.",
        f"An attacker who knows everyone else's data and accepts {_exactly(rate)} false alarms "
        "detects a person with probability at most "
        f"{percent_up(power_bound(guarantee, false_alarm))}"
        f" (guessing blindly: {_exactly(rate)}).",
    ]
    if prior is not None:
        sentences.append(_guess_sentence(guarantee, prior))
    sentences.append(_odds_sentence(guarantee, prior, delta))
    return "\n".join(sentences)


def power_bound(guarantee: PrivacyProfile, false_alarm: float) -> float:
    """The most powerful test's power at a false-alarm rate:
    1 − f(α), rounded up (reference.md A5, A6).
    """
    probability(false_alarm, "false_alarm")
    missed = guarantee.tradeoff(false_alarm)
    return min(1.0, float_up(1 - readings(missed)[0]))


def guess_bound(guarantee: PrivacyProfile, prior: float) -> float:
    """The probability of the best guess after the release, rounded up.

    Theorem.  With prior π, every rule that guesses "in" or "out" from the release is right with
              probability at most max(π, 1−π) + min(π, 1−π)·δ(|ln(π/(1−π))|), and this is attained
              where the δ(ε) curve is.
    Proof.    Let π ≤ ½ and guess "in" on E: right with probability 1−π + π(P(E) − e^ε Q(E)),
              e^ε = (1−π)/π, and the bracket is at most δ(ε). For π > ½ exchange the two, which the
              guarantee allows because it holds in both orders.
    Checked.  tests/accounting/test_explain.py::test_best_guess_by_enumeration
    """
    chance = _open_probability(prior)
    small = min(chance, 1 - chance)
    odds = (1 - small) / small
    # a smaller ε has a larger δ
    epsilon = max(0.0, float_down(enclose(lambda ball: ball(odds).log())[0])) if odds > 1 else 0.0
    return min(
        1.0,
        float_up(1 - small + small * min(Fraction(1), readings(guarantee.delta_at(epsilon))[1])),
    )


def odds_bound(guarantee: PrivacyProfile, delta: float) -> tuple[float, float]:
    """(factor, failure): the release multiplies the odds by at most `factor`, except with
    probability `failure`; both rounded up.

    Theorem.  ε-DP: by at most e^ε, always. (ε, δ)-DP: by at most 2e^ε, except with probability 2δ,
              whichever of the two data sets is true.
    Proof.    By Bayes's rule the factor is the likelihood ratio e^L. For pure DP |L| ≤ ε. Else
              δ ≥ δ(ε) ≥ E_P(1−e^{ε−L})₊ ≥ ½·P(L > ε + ln 2), and Q(L > ε + ln 2) is e^{−ε}/2 times
              that at most.
    Checked.  tests/accounting/test_explain.py::test_odds_bound_by_enumeration
    """
    pure = guarantee.pure_epsilon()
    if pure is not None:
        return _exp_up(pure), 0.0
    allowed = failure_probability(delta)
    epsilon = guarantee.epsilon_at(delta)
    if not math.isfinite(epsilon):
        return math.inf, 1.0
    failure = min(1.0, float_up(2 * allowed))
    if epsilon > _LARGEST_LOG:
        return math.inf, failure
    return float_up(2 * Fraction(_exp_up(readings(epsilon)[1]))), failure


def posterior_bound(epsilon: Fraction, prior: float) -> tuple[float, float]:
    """(least, greatest) probability after the release under ε-DP:
    odds change by a factor in [e^−ε, e^ε]; rounded outward.
    """
    chance = _open_probability(prior)
    if epsilon > _LARGEST_LOG:
        return 0.0, 1.0
    low = enclose(
        lambda ball: ball(chance) / (ball(chance) + ball(1 - chance) * ball(epsilon).exp())
    )
    high = enclose(
        lambda ball: ball(chance) / (ball(chance) + ball(1 - chance) * (-ball(epsilon)).exp())
    )
    return max(0.0, float_down(low[0])), min(1.0, upper_float(high))


def _guess_sentence(guarantee: PrivacyProfile, prior: float) -> str:
    chance = _open_probability(prior)
    return (
        f"An attacker who gave it a probability of {_exactly(chance)} beforehand guesses right "
        f"with probability at most {percent_up(guess_bound(guarantee, prior))}"
        f" after the release ({_exactly(max(chance, 1 - chance))} without it)."
    )


def _odds_sentence(guarantee: PrivacyProfile, prior: float | None, delta: float) -> str:
    factor, _ = odds_bound(guarantee, delta)
    pure = guarantee.pure_epsilon()
    if pure is not None:
        finite = math.isfinite(factor)
        most = _number_up(rational(factor, "factor")) if finite else f"e^{_number_up(pure)}"
        text = f"Whatever is released, the attacker's odds change by a factor of at most {most}"
        if prior is None:
            return text + "."
        low, high = posterior_bound(pure, prior)
        return text + (
            f": a probability of {_exactly(_open_probability(prior))} stays between "
            f"{percent_down(low)} and {percent_up(high)}."
        )
    chance = _number_up(2 * rational(delta, "delta"))
    if not math.isfinite(factor):
        return (
            "This guarantee gives no useful bound on the attacker's odds that fails with "
            f"probability at most {chance}."
        )
    return (
        f"Except with probability {chance}, the release multiplies the attacker's odds by at most "
        f"{_number_up(rational(factor, 'factor'))}."
    )


def percent_up(value: float) -> str:
    """A probability, itself rounded up, as a percentage of three digits (more above 99 %),
    rounded up.
    """
    return f"{_three(100 * rational(value, 'probability'), ROUND_CEILING)} %"


def percent_down(value: float) -> str:
    """A probability, itself rounded down, as a percentage of three digits, rounded down."""
    return f"{_three(100 * rational(value, 'probability'), ROUND_FLOOR)} %"


def _number_up(value: Fraction) -> str:
    return _three(value, ROUND_CEILING)


def _three(value: Fraction, side: str) -> str:
    """Three significant digits (more above 99 % and for whole numbers), rounded to a side."""
    if value == 0:
        return "0"
    # 28 digits, then one step to the safe side
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    exact = exact.next_plus() if side == ROUND_CEILING else exact.next_minus()
    if Decimal(99) <= exact < Decimal(100):
        digits = 100 - exact
        step = Decimal(1).scaleb(max(-15, digits.adjusted() - 1))
    else:
        step = Decimal(1).scaleb(exact.adjusted() - 2)
    if Fraction(exact.quantize(step)) == value:
        return _plain(exact.quantize(step))
    return _plain(exact.quantize(step, rounding=side))


def _plain(number: Decimal) -> str:
    text = (
        f"{number:f}" if Decimal("1e-3") <= abs(number) < Decimal("1e6") else f"{number:e}".lower()
    )
    if "e" in text:
        digits, exponent = text.split("e")
        return (
            f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}e"
            f"{exponent.replace('+', '')}"
        )
    return text.rstrip("0").rstrip(".") if "." in text else text


def _exactly(value: Fraction) -> str:
    """A probability that a person wrote, as they wrote it."""
    return f"{float(100 * value):.6g} %"


def _exp_up(epsilon: Fraction) -> float:
    return (
        upper_float(enclose(lambda ball: ball(epsilon).exp()))
        if epsilon <= _LARGEST_LOG
        else math.inf
    )


def _open_probability(value: float) -> Fraction:
    number = probability(value, "prior")
    if number in (0, 1):
        raise InvalidParameter(
            "prior",
            "it is 0 or 1",
            "an attacker who is certain learns nothing",
            "pass a number between 0 and 1",
        )
    return number
