"""Canonical noise for one count: Tulap for a pure spend,
cut Tulap for an (ε, δ) spend where it is asked for (reference.md M3).
"""

from __future__ import annotations

from dataclasses import replace

from discreet.accounting.calibration.additive import cut_tulap_noise
from discreet.accounting.guarantees import ApproxDP, Guarantee, PureDP
from discreet.errors import InvalidParameter, NoTheorem
from discreet.exact import rational
from discreet.sensitivity import L1
from discreet.specs.mechanisms.additive import TULAP_BITS, GeometricNoise, TulapNoise
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.trusted.release import Question

# beyond this spread a 32-bit uniform part would not fit 64-bit releases;
# the geometric count's own steps are then fine enough
LARGEST_TULAP = 1 << 18


def with_noise(question: Question, noise: object, l1: L1) -> Question:
    """A question about one count (or two, where the number of rows is private), with the noise that
    `noise=` names; `l1` is its sensitivity.

    "tulap" is Tulap noise for a pure spend. For ApproxDP(ε, δ) it is Tulap noise cut so that the
    release is (ε, δ)-DP, and the question spends the same in the ledger's words: ε, but for a
    failure of probability δ.
    """
    if noise is None:
        return question
    if noise != "tulap":
        raise InvalidParameter(
            "noise=",
            "it is not known",
            "it decides the law of the noise",
            "pass noise='tulap', or leave it out for the noise that suits the spend",
        )
    if question.query.size != 1:
        raise NoTheorem(
            "noise='tulap'",
            "the number of rows is private here, so that two counts are released",
            "Tulap noise is the best noise of one count",
            "leave noise= out, or ask for all rows under neighbors=Replace(), of a column whose "
            "missing= says what a cell without a value counts as",
        )
    if isinstance(question.spend, PureDP):
        return with_tulap(question)
    cut = cut_noise(question.spend, l1)
    assert isinstance(question.spend, ApproxDP)
    return replace(
        question,
        mechanism=cut,
        spend=PureDP(question.spend.epsilon),
        delta=rational(question.spend.delta, "delta"),
    )


def cut_noise(spend: Guarantee, l1: L1) -> CutTulapNoise:
    """The cut Tulap noise that an (ε, δ) spend buys."""
    if not isinstance(spend, ApproxDP):
        raise NoTheorem(
            "noise='tulap'",
            f"a spend of {spend} buys Gaussian noise",
            "that is the canonical noise of such a guarantee",
            "leave noise= out, or pass spend=dp.PureDP(...) or dp.ApproxDP(...)",
        )
    return cut_tulap_noise(l1, rational(spend.epsilon, "epsilon"), rational(spend.delta, "delta"))


def with_tulap(question: Question) -> Question:
    """Tulap instead of geometric noise, where one count is asked for and its uniform part fits."""
    noise = question.mechanism
    if (
        isinstance(noise, GeometricNoise)
        and question.query.size == 1
        and noise.spread <= LARGEST_TULAP
    ):
        return replace(question, mechanism=TulapNoise(noise.sensitivity, noise.spread, TULAP_BITS))
    return question
