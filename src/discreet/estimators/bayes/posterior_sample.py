"""dp.posterior_sample: exact draws from a tempered posterior on a declared grid.

*Method*    One exponential choice a draw, with log-likelihoods as scores and the prior as public
            offsets: P(θ_j) ∝ prior(θ_j)·likelihood(θ_j)^λ, exactly, for whole-number likelihoods in
            units of 2⁻¹⁰. λ is what the spend affords, at most 1 (reference.md J3, B6).
*Validity*  The law of the draws is exact for every data set; it is the posterior itself where
            λ = 1, and wider where λ < 1. Values are clamped to the declared range before their
            likelihood is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.accounting.calibration.selection import exponential_choice
from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import Where
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.asking.steps import Steps, step_spend
from discreet.errors import InvalidParameter, shown
from discreet.estimators.basic import _open
from discreet.estimators.bayes.likelihoods import candidates_of, checked_grid, parameter_names
from discreet.estimators.bayes.posterior import require_independent
from discreet.inference.posteriors.families import Family, require_family
from discreet.inference.posteriors.samples import PosteriorSampleResult, SampleFacts
from discreet.specs.likelihoods import UNIT_BITS, LikelihoodScores
from discreet.specs.mechanisms.selection import ExponentialChoice
from discreet.trusted.release import Description, PublicFacts, Question

MOST_SAMPLES = 1000
ONE = Fraction(1, 1 << UNIT_BITS)  # the rate at which λ = 1
LARGEST_OFFSET = 1 << 190


@dataclass(frozen=True)
class Sampling:
    """A question for each draw, and what a result says of all of them."""

    question: Question
    facts: SampleFacts
    spend: Guarantee


@plain.door
def posterior_sample(
    session: Session,
    family: Family,
    *,
    grid: Sequence[Any],
    samples: int = 1,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> PosteriorSampleResult:
    """Draws from prior × likelihood^λ on a declared grid: ``dp.posterior_sample(session,
    dp.BetaBinomial("member"), grid=[0.1, 0.2, 0.3], spend=dp.PureDP(1))``.

    A point of the grid is a number, or a tuple of the family's parameters: (mean, sd), shares of
    all levels, (intercept, slopes …, sigma). `samples` draws share the spend. The temper λ is what
    the spend affords, at most 1; a spend that affords more is not used up.

    Formula.
            P(θ) ∝ prior(θ)·likelihood(rows | θ)^λ,   θ in the grid

            λ  the temper that the spend affords

    Validity. Each draw is a draw, not an estimate; λ below 1 makes the law of the draws wider than
              the posterior.
    Price.    The spend, once a key, for all draws together.
    Example.
            session = dp.load_census().open(budget=dp.PureDP(2))
            family = dp.BetaBinomial("education", level="degree")
            grid = [place / 50 for place in range(1, 50)]
            print(dp.posterior_sample(session, family, grid=grid, spend=dp.PureDP(1)))
    See also. `dp.posterior`.
    """
    sampling = sampling_of(
        _open(session).public, family, grid=grid, samples=samples, spend=spend, where=where
    )
    if samples == 1:
        releases = (_open(session).release(sampling.question, key=key),)
        return PosteriorSampleResult(releases, sampling.facts)
    with Steps(_open(session), spend, key) as steps:
        for draw in range(samples):
            steps.ask(sampling.question, f"draw {draw + 1}")
    return PosteriorSampleResult(tuple(steps.releases), sampling.facts)


def sampling_of(
    public: PublicFacts,
    family: Family,
    *,
    grid: Sequence[Any],
    samples: int = 1,
    spend: Guarantee,
    where: Where | None = None,
) -> Sampling:
    """The question of each draw, from public facts alone."""
    family, count = require_family(family), _samples(samples)
    require_independent(public)
    each = require_spend(spend) if count == 1 else step_spend(spend, Fraction(1, count))
    names = parameter_names(public, family)
    points = checked_grid(family, names, grid)
    found = candidates_of(public, family, points, where)
    query = LikelihoodScores(
        found.keys, found.factors, found.rows, (0,) * len(points), found.optional
    )
    sensitivity = query.sensitivity(public.neighbors)
    rate = min(exponential_choice(sensitivity, each).rate, ONE)
    query = replace(query, offsets=_offsets(found.prior, rate))
    asked = Description("posterior_sample", found.column, where=found.where)
    question = Question(asked, query, ExponentialChoice(sensitivity, rate), each)
    return Sampling(question, SampleFacts(family, points, names, spend), each)


def _offsets(prior: tuple[float, ...], rate: Fraction) -> tuple[int, ...]:
    """Whole numbers that the mechanism's rate turns into the prior's weights, to a unit of it."""
    best = max(prior)
    offsets = [round((Fraction(one) - Fraction(best)) / rate) for one in prior]
    return tuple(max(offset, -LARGEST_OFFSET) for offset in offsets)


def _samples(samples: object) -> int:
    if (
        isinstance(samples, bool)
        or not isinstance(samples, int)
        or not 1 <= samples <= MOST_SAMPLES
    ):
        raise InvalidParameter(
            "samples=",
            f"{shown(samples)} is no whole number from 1 to {MOST_SAMPLES}",
            "each draw is paid for with its part of the spend",
            "pass for example samples=1",
        )
    return samples
