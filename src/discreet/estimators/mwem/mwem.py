"""dp.mwem: multiplicative weights with the exponential mechanism, on a dense table of all columns.

    rows      how many there are, where their number is private     a twentieth of the spend
    choice    the query that the table misses most, about           half of a round
    count     of the rows that it keeps, with noise                 half of a round

Scores are |q(data) − q(table)| in whole numbers: the table's counts are public, and rounded.

Theorem.  All releases together cost no more than the spend.
Proof.    Their parts add up to it (`step_spend`, rounded down), and each is debited out of a
          reservation of the whole (asking/steps.py). A choice is an exponential choice among
          distances that one unit moves by k at most (`Discrepancies`), a count moves by k; which
          count is taken, and what the next distances are from, follows from released numbers.
Checked.  tests/estimators/test_mwem.py::test_it_costs_the_spend_and_no_more
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet import plain
from discreet.accounting.calibration.selection import exponential_choice
from discreet.accounting.guarantees import Guarantee
from discreet.asking.noise_choice import count_noise, require_spend
from discreet.asking.sessions import Session
from discreet.asking.steps import Steps, step_spend
from discreet.errors import InvalidParameter, shown
from discreet.estimators.basic import _open
from discreet.estimators.synthesis.columns import domain_of
from discreet.inference.mwem.fitting import REPLAY, VARIANTS, Learner
from discreet.inference.mwem.results import Mwem, MwemFacts, released_count
from discreet.inference.mwem.workload import CELLS, RANGES, Box, Workload, box_of
from discreet.inference.results.laws import Array
from discreet.inference.synthesis.domain import Domain
from discreet.inference.synthesis.trees import cell_count
from discreet.specs.queries.keys import LARGEST_CELLS
from discreet.specs.queries.marginals import Axis
from discreet.specs.queries.sums import Sum
from discreet.trusted.release import Description, PublicFacts, Question

PAIRS = "pairs"
LARGEST_DENSE = 1 << 22  # cells of the table of all columns
MOST_ROUNDS = 1 << 10
MOST_BOXES = 1 << 9
ROWS_SHARE = Fraction(1, 20)
Queries = str | Sequence[Sequence[str] | Mapping[str, object]]


@plain.door
def mwem(
    session: Session,
    columns: Sequence[str],
    *,
    bins: Mapping[str, object] | None = None,
    queries: Queries = PAIRS,
    rounds: int = 10,
    spend: Guarantee,
    variant: str = REPLAY,
    key: str | None = None,
) -> Mwem:
    """Synthetic rows by multiplicative weights (MWEM): ``dp.mwem(session, ["income", "sex"],
    queries="pairs", rounds=10, spend=dp.PureDP(1))``.

    `queries` is what the rows should get right: all cells of all "pairs" of columns, all "ranges"
    of each column, or a list whose members are lists of columns (all cells of their table) or
    conditions ({"age": (18, 35), "sex": "F"}); a condition is measured once. In each of `rounds`
    one of them is chosen and measured. With "replay" all counts are learnt again in every round;
    "lecture" uses each once and averages the rounds' tables, as the method was published.

    Formula.
            weight of a cell ← weight · exp(q(cell)·(measured − expected) / (2N))

            q         the query that was chosen in this round, 0 or 1 in each cell
            expected  what the weights of the round before say
            N         the number of rows

    Method.    Hardt, Ligett and McSherry (2012), in exact whole numbers.
    Validity.  As `Mwem`: measured counts have intervals, all other answers are marked.

    Price.    The spend, once a key, for all rounds.
    Example.
            schema = {
                "sex": dp.Category(["female", "male"], missing="female"),
                "education": dp.Category(["school", "vocational", "degree"], missing="school"),
            }
            data = dp.from_frame(dp.load_census().frame, schema=schema, neighbors=dp.Replace())
            session = data.open(budget=dp.PureDP(2))
            weights = dp.mwem(session, ["sex", "education"], rounds=2, spend=dp.PureDP(1))
            print(weights.report())
    See also. `dp.synthesize`; docs/how-to/mwem.md.
    """
    opened = _open(session)
    plan = plan_of(opened.public, columns, bins, queries, rounds, spend, variant)
    boxes: list[Box] = []
    with Steps(opened, plan.spend, key) as steps:
        rows = plan.public.rows
        counted = released_count(steps.ask(plan.rows(), "rows")) if rows is None else float(rows)
        learner, workload = Learner(plan.domain.sizes, counted, variant), plan.workload
        for number in range(1, rounds + 1):
            chosen = steps.ask(plan.choice(workload, learner.table, number), f"choice {number}")
            box = workload.box(chosen.integers[0])
            count = steps.ask(plan.count(box, number), f"count {number}")
            learner.learn(box, released_count(count))
            workload = workload.without(box)
            boxes.append(box)
    facts = MwemFacts(plan.domain, plan.words, variant, tuple(boxes), plan.spend)
    return Mwem(tuple(steps.releases), facts)


@dataclass(frozen=True)
class MwemPlan:
    """The questions of all rounds, each made from public facts and earlier answers."""

    public: PublicFacts
    domain: Domain
    workload: Workload
    words: str
    rounds: int
    spend: Guarantee

    @property
    def share(self) -> Fraction:
        """Of the spend, for one choice or one count."""
        left = 1 if self.public.rows is not None else 1 - ROWS_SHARE
        return Fraction(left) / (2 * self.rounds)

    def rows(self) -> Question:
        """How many rows there are."""
        query, part = Sum((), (), optional=False), step_spend(self.spend, ROWS_SHARE)
        noise = count_noise(query, self.public.neighbors, part)
        return Question(Description("mwem", "rows"), query, noise, part)

    def choice(self, workload: Workload, table: Array, number: int) -> Question:
        """Which query a table misses most."""
        query, part = workload.query(table), step_spend(self.spend, self.share)
        choice = exponential_choice(query.sensitivity(self.public.neighbors)[2], part)
        return Question(Description("mwem", f"choice {number}"), query, choice, part)

    def count(self, box: Box, number: int) -> Question:
        """How many rows a query keeps."""
        query = Sum(box.keys(self.domain), (), optional=True)
        part = step_spend(self.spend, self.share)
        noise = count_noise(query, self.public.neighbors, part)
        return Question(Description("mwem", f"count {number}"), query, noise, part)


def plan_of(
    public: PublicFacts,
    columns: Sequence[str],
    bins: Mapping[str, object] | None,
    queries: Queries,
    rounds: int,
    spend: Guarantee,
    variant: str,
) -> MwemPlan:
    """The plan of a run; refused from public facts alone."""
    paid = require_spend(spend)
    domain, axes = domain_of(public.schema, columns, bins)
    _require_values(domain)
    _require_dense(domain)
    workload, words = _workload(domain, axes, queries)
    if variant not in VARIANTS:
        raise InvalidParameter(
            "variant=",
            f"{shown(variant)} is not known",
            "it says how measured counts are used",
            f"pass one of {', '.join(map(repr, VARIANTS))}",
        )
    _require_rounds(rounds, workload)
    plan = MwemPlan(public, domain, workload, words, rounds, paid)
    even = np.full(domain.sizes, 1.0)
    asked = [plan.choice(workload, even, 1), plan.count(workload.box(0), 1)]
    for question in asked if public.rows is not None else [plan.rows(), *asked]:
        assert question.spend is not None  # what can be refused is refused here, before the debit
    return plan


def _workload(domain: Domain, axes: tuple[Axis, ...], queries: object) -> tuple[Workload, str]:
    places = range(len(domain.cuts))
    if isinstance(queries, str) and queries == PAIRS:
        made = Workload(domain, axes, tuple(itertools.combinations(places, 2)))
        return _few(made), "cells of pairs"
    if isinstance(queries, str) and queries == RANGES:
        return _few(Workload(domain, axes, tuple((one,) for one in places), of=RANGES)), RANGES
    if isinstance(queries, str) or not isinstance(queries, (list, tuple)) or not queries:
        raise InvalidParameter(
            "queries=",
            f"{shown(queries)} is not known",
            "they are what the synthetic rows should get right",
            "pass 'pairs', 'ranges', or a list of lists of columns and of conditions",
        )
    boxes = [box_of(domain, one) for one in queries if isinstance(one, Mapping)]
    listed = [one for one in queries if not isinstance(one, Mapping)]
    tables = [tuple(sorted(domain.places(one))) for one in listed]
    if len({*boxes}) != len(boxes) or len({*tables}) != len(tables) or len(boxes) > MOST_BOXES:
        raise InvalidParameter(
            "queries=",
            f"one stands there twice, or there are more than {MOST_BOXES} conditions",
            "each is compared with the data in every round",
            "name each once; many conditions on few columns are cells of their table",
        )
    made = Workload(domain, axes, tuple(tables), tuple(boxes), CELLS)
    return _few(made), f"{made.size} listed queries"


def _few(workload: Workload) -> Workload:
    if workload.size > LARGEST_CELLS:
        raise InvalidParameter(
            "queries=",
            f"there are {workload.size}",
            f"at most {LARGEST_CELLS} are compared in one round",
            "use fewer columns or bins, or list the tables that matter",
        )
    return workload


def _require_values(domain: Domain) -> None:
    absent = [cut.name for cut in domain.cuts if cut.absent]
    if absent:
        raise InvalidParameter(
            "columns",
            f"{', '.join(absent)}: their declaration does not say what a missing value counts as",
            "every row has a cell in the table of all columns",
            "declare them with missing=, or use dp.synthesize, which knows no value as a level",
        )


def _require_dense(domain: Domain) -> None:
    cells = cell_count(domain.sizes, range(len(domain.cuts)))
    if cells <= LARGEST_DENSE:
        return
    dropped, left = [], cells
    for cut in sorted(domain.cuts, key=lambda cut: -cut.size):
        if left <= LARGEST_DENSE:
            break
        dropped.append(f"{cut.name} ({cut.size} cells)")
        left = math.ceil(left / cut.size)
    raise InvalidParameter(
        "columns",
        f"the table of all of them has {cells} cells",
        f"every cell has a weight, and at most {LARGEST_DENSE} fit",
        f"leave out {', '.join(dropped)}, use fewer bins, or use dp.synthesize, which keeps no "
        "table of all columns",
    )


def _require_rounds(rounds: object, workload: Workload) -> None:
    most = MOST_ROUNDS if workload.tables else min(MOST_ROUNDS, len(workload.boxes))
    if type(rounds) is not int or not 1 <= rounds <= most:
        raise InvalidParameter(
            "rounds=",
            f"{shown(rounds)} is not a whole number from 1 to {most}",
            "one query is measured in each, and each has its share of the spend",
            f"pass for example rounds={min(10, most)}",
        )
