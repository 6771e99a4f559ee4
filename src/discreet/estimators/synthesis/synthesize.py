"""dp.synthesize: synthetic data from noisy tables, in three releases under one spend.

    one-way tables   every column alone                                        a tenth of the spend
    distances        of every pair of columns from independence                a tenth
    tables           those of declared analyses, and pairs worth their noise   the rest

of μ² where noise is Gaussian, of ε where the spend is pure: geometric noise then, and of the
distances nothing but the order of the largest is released (`TopChoices`).

Theorem.  All releases together cost no more than the spend.
Proof.    Their parts add up to it (`step_spend`, rounded down), and each is debited out of a
          reservation of the whole, which refuses what exceeds it (asking/steps.py). Which tables
          are asked third depends on released numbers alone, and the ledger is valid for adaptive
          questions.
Checked.  tests/estimators/test_synthesis.py::test_it_costs_the_spend_and_no_more
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import plain
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.asking.steps import Steps, step_spend
from discreet.errors import InvalidParameter
from discreet.estimators.basic import _open
from discreet.estimators.synthesis.columns import (
    declared_tables,
    domain_of,
    require_pairs,
    require_tree,
)
from discreet.estimators.synthesis.selection import (
    LARGEST_TREE,
    Loads,
    chosen_tables,
    gaussian_loads,
    pure_candidates,
    pure_loads,
    weights_of,
)
from discreet.exact import float_down, rational
from discreet.inference.synthesis.domain import Domain
from discreet.inference.synthesis.reading import (
    DISTANCES,
    ONE_WAY,
    TABLES,
    noisy_tables,
    released_distances,
)
from discreet.inference.synthesis.results import Synthesis, SynthesisFacts
from discreet.inference.synthesis.trees import Clique
from discreet.inference.synthesis.unbiased import NoisyTables
from discreet.neighbors import Neighbors
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.specs.mechanisms.selection import TopChoices
from discreet.specs.queries.marginals import LARGEST_GUESS, Axis, Discrepancies, Marginals
from discreet.trusted.release import Description, PublicFacts, Question, Release

SHARES = {ONE_WAY: Fraction(1, 10), DISTANCES: Fraction(1, 10), TABLES: Fraction(8, 10)}
CHOICES = 2  # pairs that a pure spend chooses, for each column


@plain.door
def synthesize(
    session: Session,
    columns: Sequence[str],
    *,
    bins: Mapping[str, object] | None = None,
    analyses: Sequence[str] = (),
    spend: Guarantee,
    key: str | None = None,
) -> Synthesis:
    """Synthetic data that statistics may be done with:
    ``dp.synthesize(session, ["income", "sex", "age"], bins={"age": [18, 35, 60, 90]},
    analyses=["income ~ sex + age"], spend=dp.ApproxDP(1, 1e-6))``.

    `columns` have declared levels, or `bins` that cover their declared range. A cell without a
    value is a level of its own where the schema names nothing for it. `analyses` are formulas,
    "hours by education", or lists of columns: what they read is measured together, so that their
    intervals come from tables and not from the model.

    Formula.
            P(cell) ∝ exp(Σ θ(cell's part in T) over the measured tables T)

            θ  fitted to the noisy tables; answers come from the tables themselves

    Method.    Noisy tables in three releases; a log-linear model of them gives rows (`frame`), and
               answers come from the tables (`share`, `table`, `mean`, `fit`).
    Validity.  As `Synthesis`.

    Price.    The spend, once a key, for three releases. Everything that is asked of the synthesis
              afterwards is free.
    Example.
            session = dp.load_census().open(budget=dp.ApproxDP(epsilon=2, delta=1e-6))
            synth = dp.synthesize(
                session,
                ["sex", "education", "region"],
                analyses=["sex + education"],
                spend=dp.ApproxDP(epsilon=1, delta=1e-7),
            )
            print(synth.frame().head())
            print(synth.share({"sex": "female", "education": "degree"}))
    See also. `dp.mwem`, `dp.table`; docs/how-to/synthesis.md, docs/deciding/synthetic-rows.md.
    """
    opened = _open(session)
    plan = plan_of(opened.public, columns, bins, analyses, spend)
    with Steps(opened, plan.spend, key) as steps:
        first = steps.ask(plan.one_way(), ONE_WAY)
        second = steps.ask(plan.distances(noisy_tables(first)), DISTANCES)
        steps.ask(plan.tables(plan.chosen(first, second)), TABLES)
    words = tuple(one if isinstance(one, str) else " + ".join(one) for one in analyses)
    return Synthesis(tuple(steps.releases), SynthesisFacts(plan.domain, words, plan.spend))


@dataclass(frozen=True)
class SynthesisPlan:
    """The three questions of a synthesis, each made from public facts and earlier answers."""

    public: PublicFacts
    domain: Domain
    axes: tuple[Axis, ...]
    declared: tuple[Clique, ...]
    spend: Guarantee

    @property
    def pure(self) -> bool:
        return isinstance(self.spend, PureDP)

    @property
    def pairs(self) -> tuple[Clique, ...]:
        """All pairs of columns."""
        return tuple(itertools.combinations(range(len(self.axes)), 2))

    @property
    def singles(self) -> tuple[Clique, ...]:
        """All columns, each alone."""
        return tuple((place,) for place in range(len(self.axes)))

    def one_way(self) -> Question:
        """Every column alone."""
        return self.measured(self.singles, ONE_WAY)

    def tables(self, chosen: Sequence[Clique]) -> Question:
        """The declared and chosen tables; where there are none, the columns once more."""
        return self.measured(tuple(chosen) or self.singles, TABLES)

    def measured(self, tables: Sequence[Clique], step: str) -> Question:
        """Tables at a step's share of the spend."""
        weights = weights_of(self.domain.sizes, tables, pure=self.pure)
        query = Marginals(self.axes, tuple(tables), weights)
        part = step_spend(self.spend, SHARES[step])
        noise = table_noise(query, self.public.neighbors, part)
        return Question(_described(step), query, noise, part)

    def distances(self, first: NoisyTables) -> Question:
        """How far every pair is from independence, as the first tables say."""
        guesses = tuple(guess_of(first, pair) for pair in self.pairs)
        query = Discrepancies(self.axes, self.pairs, guesses)
        part = step_spend(self.spend, SHARES[DISTANCES])
        _, l2, linf = query.sensitivity(self.public.neighbors)
        if isinstance(part, PureDP):
            count = min(CHOICES * len(self.axes), len(self.pairs))
            each = rational(part.epsilon, "epsilon") / (count * linf.span)
            choice = TopChoices(linf, Fraction(float_down(each)), count)
            return Question(_described(DISTANCES), query, choice, part)
        noise = gaussian_noise(l2, spend_mu_squared(part))
        return Question(_described(DISTANCES), query, noise, part)

    def chosen(self, first: Release, second: Release) -> tuple[Clique, ...]:
        """Declared tables, then the pairs that are worth their noise."""
        found = released_distances(second)
        if self.pure:
            order = [self.pairs[place] for place in second.integers]
            found = pure_candidates(order, noisy_tables(first).rows)
        return chosen_tables(self.domain.sizes, self.declared, found, self.loads)

    @property
    def loads(self) -> Loads:
        """How the third release's tables share its noise."""
        part = step_spend(self.spend, SHARES[TABLES])
        one = Marginals(self.axes, (self.pairs[0],), (1,)).sensitivity(self.public.neighbors)
        if isinstance(part, PureDP):
            return pure_loads(float(one[0].value), float(rational(part.epsilon, "epsilon")))
        return gaussian_loads(float(one[1].value), float(spend_mu_squared(part)) ** 0.5)


def plan_of(
    public: PublicFacts,
    columns: Sequence[str],
    bins: Mapping[str, object] | None,
    analyses: Sequence[str],
    spend: Guarantee,
) -> SynthesisPlan:
    """The plan of a synthesis; refused from public facts alone."""
    paid = require_spend(spend)
    domain, axes = domain_of(public.schema, columns, bins)
    if isinstance(analyses, str) or not isinstance(analyses, (list, tuple)):
        raise InvalidParameter(
            "analyses=",
            f"a {type(analyses).__name__} is no list of analyses",
            "the columns of each are measured together",
            'pass a list: analyses=["income ~ sex + age", "hours by education"]',
        )
    declared = declared_tables(domain, analyses)
    require_pairs(domain, declared)
    require_tree(domain, declared, LARGEST_TREE)
    plan = SynthesisPlan(public, domain, axes, declared, paid)
    empty = NoisyTables(domain.sizes, {}, 0)
    for question in (plan.one_way(), plan.distances(empty), plan.tables(declared)):
        assert question.spend is not None  # what can be refused is refused here, before the debit
    return plan


def table_noise(query: Marginals, neighbors: Neighbors, part: Guarantee) -> AdditiveNoise:
    """The noise of tables at a step's spend."""
    first, second = query.sensitivity(neighbors)
    if isinstance(part, PureDP):
        return geometric_noise(first, rational(part.epsilon, "epsilon"))
    return gaussian_noise(second, spend_mu_squared(part))


def guess_of(first: NoisyTables, pair: Clique) -> tuple[int, ...]:
    """Whole counts of a pair under independence: n̂·p̂_i·p̂_j, rounded."""
    shares = [_share(first, place) for place in pair]
    counts = np.rint(min(first.rows, LARGEST_GUESS) * np.outer(*shares))
    return tuple(int(count) for count in counts.ravel())


def _share(first: NoisyTables, place: int) -> np.ndarray:
    """A column's shares, negative counts as 0; all alike where nothing is left."""
    size = first.sizes[place]
    if (place,) not in first.measured:
        return np.full(size, 1 / size)
    counts = np.maximum(first.measured[place,].values, 0.0)
    total = float(counts.sum())
    return counts / total if total > 0 else np.full(size, 1 / size)


def _described(step: str) -> Description:
    return Description("synthesize", step)
