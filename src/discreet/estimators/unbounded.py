"""Means without bounds: a range is found privately first, then a clipped mean; Huber-type location;
truncated means (reference.md F4, F5).

*Method*: the declared range may be absurdly wide. A part of the spend asks noisy counts of rows
below places of a 32-bit grid on it (where is the bulk?), then of a finer grid about what was found
(how far do the tails reach?); the column is encoded anew, from its original values, on the released
range, and the rest of the spend goes to the joint moments of a mean. All releases are debited
within one reservation of the spend.
*Validity* is stated by the result classes in `discreet.inference.means.unbounded`. With a `key`,
asking again returns the stored answers at no cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet import plain
from discreet.accounting.guarantees import GDP, Guarantee, PureDP, spend_mu_squared
from discreet.asking.cells import Cells, Where, rows_asked
from discreet.asking.noise_choice import count_noise, moments_noise, norm_of, require_spend
from discreet.asking.sessions import Session
from discreet.asking.steps import Ask, Steps
from discreet.encoding import Encoding
from discreet.errors import InvalidParameter, WrongColumnKind
from discreet.estimators.basic import _open
from discreet.exact import float_down, rational, sqrt_up
from discreet.inference.means.unbounded import (
    LocationResult,
    TruncatedMeanResult,
    UnboundedMeanResult,
    bulk_of,
    ends_of,
    grid_counts,
    mean_of_clipped,
)
from discreet.schema import Integer, Real
from discreet.search.policies import Policy
from discreet.search.range_policy import BulkSearch, EndsSearch
from discreet.search.ranges import Bulk, Start
from discreet.search.tails import Seen
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.queries.histograms import GridCounts
from discreet.specs.queries.keys import Between
from discreet.specs.queries.moments import Moments, mean_design
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.sums import Sum
from discreet.trusted.release import Description, PublicFacts, Question, Release

UNITS = 1 << 16
# of the spend, for both searches together
SEARCH_SHARE, PURE_SEARCH_SHARE = Fraction(18, 100), Fraction(40, 100)
# of the search: at least, where the number of rows is private, at most
BULK_SHARES = Fraction(12, 100), Fraction(1, 4), Fraction(1, 2)
# bulk, first step, rows inside, second step
LOCATION_SHARES = Fraction(20, 100), Fraction(20, 100), Fraction(12, 100), Fraction(48, 100)
# parts are rounded up one by one when they are debited; together they stay within the spend
KEPT = 1 - Fraction(1, 10**6)
CODES = (1 << 31) - 1
MEAN_CODES = (1 << 19) - 1
ZOOM = 16  # the finer grid reaches this many widths of the bulk to both sides
TUNING = 1.345  # Huber's constant: 95 % efficient for normal data
TAIL_SCORE = 1.5548  # the normal score of ranges.TAIL_SHARE
USUAL_INSIDE = 0.8  # share of rows inside, for the first step of a location


@dataclass(frozen=True, slots=True)
class Search:
    """What both procedures start from: public facts, the column, the filter,
    and how the spend is shared.
    """

    public: PublicFacts
    column: str
    cells: Cells
    spend: Guarantee

    @property
    def declared(self) -> Real | Integer:
        column = self.public.schema[self.column]
        assert isinstance(column, (Real, Integer))
        return column

    @property
    def rows(self) -> int | None:
        """The number of rows where it is public and all of them count."""
        return None if self.cells.optional else self.public.rows

    def part(self, share: Fraction) -> Guarantee:
        """A share of the spend: of ε where it is pure, else of μ²."""
        if isinstance(self.spend, PureDP):
            return PureDP(float_down(rational(self.spend.epsilon, "epsilon") * share * KEPT))
        return GDP(float_down(sqrt_up(spend_mu_squared(self.spend) * share * KEPT)))

    def amount(self, share: Fraction) -> Fraction:
        """The ε or μ² of such a part."""
        part = self.part(share)
        return (
            rational(part.epsilon, "epsilon")
            if isinstance(part, PureDP)
            else spend_mu_squared(part)
        )

    def question(
        self, estimator: str, encoding: Encoding, policy: Policy, share: Fraction
    ) -> Question:
        """A search by noisy counts on a grid of this column."""
        query = GridCounts(self.cells.keys, Factor(self.column, encoding), self.cells.optional)
        law = "laplace" if isinstance(self.spend, PureDP) else "gaussian"
        mechanism = CountSearch(
            query.sensitivity(self.public.neighbors), 1, 0, law, self.amount(share), UNITS, policy
        )
        return Question(
            Description(estimator, self.column, where=self.cells.where),
            query,
            mechanism,
            self.part(share),
        )

    def moments(self, estimator: str, low: float, high: float, share: Fraction) -> Question:
        """The joint moments of the column clipped to a range."""
        return moments_question(
            self.public,
            Description(estimator, self.column, where=self.cells.where),
            self.cells,
            (low, high),
            self.part(share),
        )

    def bulk_question(self, share: Fraction) -> Question:
        return self.question("bulk", wide_grid(self.declared), BulkSearch(self.rows), share)


def begun(
    public: PublicFacts, column: str, *, spend: Guarantee, where: Where | None, asked: str
) -> Search:
    """Refuses, before any debit, what is no number column, spend or filter."""
    declared = public.schema[column]
    if not isinstance(declared, (Real, Integer)):
        raise WrongColumnKind(column, type(declared).__name__, "Real or Integer", asked)
    return Search(public, column, rows_asked(public.schema, where, column), require_spend(spend))


def moments_question(
    public: PublicFacts,
    asked: Description,
    cells: Cells,
    ends: tuple[float, float],
    spend: Guarantee,
) -> Question:
    assert asked.column is not None
    design = mean_design(public.neighbors, cells=1, optional=cells.optional, norm=norm_of(spend))
    query = Moments(
        cells.keys, Factor(asked.column, grid_on(*ends, MEAN_CODES)), design, cells.optional
    )
    return Question(asked, query, moments_noise(query, public.neighbors, spend), spend)


def grid_on(low: float, high: float, codes: int) -> Encoding:
    """The grid of 2·codes + 1 points from low to high; never one that stands for whole numbers.

    Theorem.  Whatever low < high, a column's codes on it lie in −codes … codes and do not fall as
              the value rises.
    Proof.    Codes are clipped as integers; subtraction, multiplication by a positive number,
              addition and ⌊·⌋ in floats do not fall, and with |x| ≤ 1e60 and codes/half < 1e240
              none of them overflows (an engine could warn or fail, and only for some data).
    Checked.  tests/claims/test_unbounded.py::test_codes_on_any_range_are_monotone_and_bounded
    """
    center, half = (
        low / 2 + high / 2,
        max((high - low) / 2, math.ulp(max(abs(low), abs(high))), 1e-230),
    )
    per_unit = codes / half
    return Encoding(
        center, math.nextafter(per_unit, math.inf) if per_unit == 2.0 else per_unit, -codes, codes
    )


def wide_grid(column: Real | Integer) -> Encoding:
    """The declared range on 32 bits, whatever the column's own; whole numbers stay exact."""
    return (
        column.encoding()
        if isinstance(column, Integer)
        else grid_on(column.low, column.high, CODES)
    )


def bulk_share(search: Search, whole: Fraction) -> Fraction:
    """The share of the first search: what some 45 counts to within a tenth of the rows cost,
    from public facts alone.
    """
    least, usual, most = BULK_SHARES
    if search.rows is None:
        return usual
    amount, rows = float(search.amount(whole)), max(search.rows, 1) / search.public.neighbors.rows
    cost = (
        45 * (14 / rows) / amount
        if isinstance(search.spend, PureDP)
        else 45 * (10 / rows) ** 2 / amount
    )
    return Fraction(round(1000 * min(max(0.1 + cost, float(least)), float(most))), 1000)


@plain.door
def unbounded_mean(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> UnboundedMeanResult:
    """The mean of a number column whose declared range may be far too wide:
    a share of the spend finds a range to clip to.

    The result says how many rows lie outside the range that was found,
    and its interval allows for what they take from the mean.

    Formula.
            estimate = Σ max(low, min(x, high)) / N + noise

            low, high  a range found by noisy counts, far tighter than the declared one

    Validity. Independent rows; the interval allows for the rows outside the range that was found,
              by a noisy count of them.
    Price.    The spend, once a key. Part of it finds the range: where a tight range is public
              knowledge, `dp.mean` is more precise.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            income = dp.unbounded_mean(session, "income", spend=dp.GDP(0.5))
            print(income.summary())
            print(income.range)
    See also. `dp.trimmed_mean`, `dp.location`, `dp.friendly_mean`; docs/how-to/unbounded.md.
    """
    opened = _open(session)
    search = begun(opened.public, column, spend=spend, where=where, asked="an unbounded mean")
    refuse_early(search, mean_shares(search))
    with Steps(opened, search.spend, key) as steps:
        return mean_by_steps(search, steps.ask)


def mean_by_steps(search: Search, ask: Ask) -> UnboundedMeanResult:
    """The three releases of an unbounded mean; `ask` answers the question of a step."""
    first, second, last = mean_shares(search)
    bulk = ask(search.bulk_question(first), "bulk")
    ends = ask(ends_question(search, bulk, second, last), "ends")
    return UnboundedMeanResult(
        ask(search.moments("unbounded mean", *range_found(search, ends), last), "mean"),
        (bulk, ends),
    )


def refuse_early(search: Search, shares: tuple[Fraction, ...]) -> None:
    """Builds a question of every share on the declared range, so that what cannot be asked is
    refused before anything is debited.
    """
    search.bulk_question(min(shares))
    search.moments("mean", search.declared.low, search.declared.high, shares[-1])


def mean_shares(search: Search) -> tuple[Fraction, Fraction, Fraction]:
    """The shares of the spend: bulk, ends, mean."""
    whole = PURE_SEARCH_SHARE if isinstance(search.spend, PureDP) else SEARCH_SHARE
    first = whole * bulk_share(search, whole)
    return first, whole - first, 1 - whole


def ends_question(search: Search, release: Release, share: Fraction, last: Fraction) -> Question:
    """The second search, on a finer grid about the bulk that the first one found."""
    bulk = bulk_of(release)
    grid, left, right = zoomed(bulk, grid_counts(release))
    return search.question(
        "ends", grid, EndsSearch(bulk.rows, noise_of_width(search, last), left, right), share
    )


def zoomed(bulk: Bulk, wide: GridCounts) -> tuple[Encoding, Start, Start]:
    """The finer grid, and both sides of the bulk in its places."""
    edges = [wide.value(side.place) - wide.step / 2 for side in (bulk.left, bulk.right)]
    width = (
        max(bulk.left.extent + bulk.right.extent + bulk.right.place - bulk.left.place, 1.0)
        * wide.step
    )
    middle = edges[0] / 2 + edges[1] / 2
    grid = grid_on(middle - ZOOM * width, middle + ZOOM * width, CODES)
    factor = wide.step * grid.per_unit
    sides = [
        Start(
            min(
                max(round((edge - grid.center) * grid.per_unit + 0.5) - grid.low, 0),
                grid.high - grid.low + 1,
            ),
            side.beyond,
            side.extent * factor,
            tuple(Seen(seen.distance * factor, seen.rows, seen.deviation) for seen in side.seen),
        )
        for edge, side in zip(edges, (bulk.left, bulk.right), strict=True)
    ]
    return grid, sides[0], sides[1]


def noise_of_width(search: Search, share: Fraction) -> float:
    """The standard deviation of the noise in Σx when the range has width 1:
    half of that in Σc, c ∈ [−1, 1].
    """
    question = search.moments("unbounded mean", 0.0, 1.0, share)
    query, mechanism = question.query, question.mechanism
    assert isinstance(query, Moments)
    first = query.unit_values()[1 if query.design.count else 0]
    return math.sqrt(mechanism.variance) * first / 2  # type: ignore[attr-defined]


def range_found(search: Search, release: Release) -> tuple[float, float]:
    """The released range in the units of the column, within the declared one and never empty."""
    ends, query = ends_of(release), grid_counts(release)
    low, high = (query.value(place) - query.step / 2 for place in (ends.low, ends.high))
    declared = search.declared
    low, high = (
        min(max(low, declared.low), declared.high),
        min(max(high, declared.low), declared.high),
    )
    if not low < high:
        low, high = max(low - query.step, declared.low), min(high + query.step, declared.high)
    least = 64 * math.ulp(max(abs(low), abs(high), 1e-280))
    return (low, high) if high - low >= least else (low - least, high + least)


@plain.door
def location(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> LocationResult:
    """Huber's robust location, of a column whose declared range may be far too wide.

    Centre and scale are found by noisy counts; two steps towards the M-estimate follow, each a mean
    of values clipped to centre ± half-width.

    Formula.
            Σ ψ((xᵢ − location) / scale) = 0

            ψ      Huber's function: its argument, cut off at both sides
            scale  found privately, with the centre

    Validity. Independent rows. Of a symmetric law it is the centre; of a skewed one it is Huber's
              location, which is not the mean.
    Price.    The spend, once a key, for centre, scale and both steps.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.location(session, "income", spend=dp.GDP(0.5)))
    See also. `dp.unbounded_mean`, `dp.median`, `dp.robust`.
    """
    opened = _open(session)
    search = begun(opened.public, column, spend=spend, where=where, asked="a location")
    refuse_early(search, LOCATION_SHARES)
    with Steps(opened, search.spend, key) as steps:
        return location_by_steps(search, steps.ask)


def location_by_steps(search: Search, ask: Ask) -> LocationResult:
    """The four releases of a location."""
    first, second, third, last = LOCATION_SHARES
    bulk = ask(search.bulk_question(first), "bulk")
    center, half = centre_and_half_width(bulk)
    rough = ask(search.moments("first step", center - half, center + half, second), "first")
    center = stepped(rough, center, half, search)
    inside = ask(inside_question(search, center, half, third), "inside")
    return LocationResult(
        ask(search.moments("location", center - half, center + half, last), "second"),
        (bulk, rough, inside),
    )


def centre_and_half_width(release: Release) -> tuple[float, float]:
    """Where the first search puts the middle,
    and Huber's constant times the scale that it found.
    """
    bulk, query = bulk_of(release), grid_counts(release)
    edges = [query.value(side.place) - query.step / 2 for side in (bulk.left, bulk.right)]
    width = (
        max(bulk.left.extent + bulk.right.extent + bulk.right.place - bulk.left.place, 1.0)
        * query.step
    )
    return edges[0] / 2 + edges[1] / 2, TUNING * width / (2 * TAIL_SCORE)


def stepped(release: Release, center: float, half: float, search: Search) -> float:
    """The centre after one step with the usual share of rows inside,
    kept within a half-width and the declared range.
    """
    mean = mean_of_clipped(release)
    moved = center + min(max((mean - center) / USUAL_INSIDE, -half), half)
    return min(max(moved, search.declared.low), search.declared.high)


def inside_question(search: Search, center: float, half: float, share: Fraction) -> Question:
    """The number of rows within the half-width of the centre."""
    query = Sum(
        (*search.cells.keys, Between(search.column, center - half, center + half)), (), True
    )
    asked = Description("inside", search.column, where=search.cells.where)
    return Question(
        asked,
        query,
        count_noise(query, search.public.neighbors, search.part(share)),
        search.part(share),
    )


def truncated_mean_question(
    public: PublicFacts, column: str, *, bound: object, spend: Guarantee, where: Where | None = None
) -> Question:
    search = begun(public, column, spend=spend, where=where, asked="a truncated mean")
    size = rational(bound, "bound=")
    if size <= 0:
        raise InvalidParameter(
            "bound=",
            "it is not positive",
            "values are truncated to −bound … bound",
            "pass the largest absolute value that should count in full",
        )
    return moments_question(
        public,
        Description("truncated mean", column, where=search.cells.where),
        search.cells,
        (-float(size), float(size)),
        search.spend,
    )


@plain.door
def truncated_mean(
    session: Session,
    column: str,
    *,
    bound: float,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> TruncatedMeanResult:
    """The mean of sign(x)·min(|x|, bound), for a public bound (reference.md F4);
    values are clamped to the declared range first.

    Formula.
            estimate = Σ sign(xᵢ)·min(|xᵢ|, bound) / N + noise

            bound  public: choose it without looking at the data

    Validity. Independent rows; the interval is about the truncated mean.
    Price.    The spend, once a key; noise is in proportion to the bound, not to the declared range.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.truncated_mean(session, "income", bound=120_000, spend=dp.GDP(0.2)))
    See also. `dp.mean`, `dp.unbounded_mean`.
    """
    return TruncatedMeanResult(
        _open(session).release(
            truncated_mean_question(
                _open(session).public, column, bound=bound, spend=spend, where=where
            ),
            key=key,
        )
    )
