"""Number columns as points of one exact grid, and the two questions of a friendly mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.accounting.calibration.additive import gaussian_noise
from discreet.accounting.calibration.friendly import friendly_mean as friendly_noise
from discreet.accounting.guarantees import GDP, Guarantee, spend_mu_squared
from discreet.asking.noise_choice import require_spend
from discreet.asking.steps import GRAIN, Ask
from discreet.encoding import Encoding
from discreet.errors import InvalidParameter, NoTheorem, WrongColumnKind
from discreet.exact import decimal_text, float_down, rational, sqrt_down
from discreet.inference.aggregation.friendly import FriendlyMeanResult, core_of
from discreet.schema import Integer, Real, Schema
from discreet.sensitivity import L2, Friendly
from discreet.specs.aggregation.friends import ClippedSum, Friends
from discreet.specs.queries.keys import Key
from discreet.specs.queries.plans import FLOAT_BITS, Factor
from discreet.specs.queries.query import Query
from discreet.trusted.losses.pricing import spend_box
from discreet.trusted.release import Description, PublicFacts, Question

CENTRE_SHARE = Fraction(1, 4)  # of μ², for the centre that rows are clipped about
CODE_BITS = 24  # of the finest grid
MEAN, CENTRE = "friendly mean", "friendly centre"


@dataclass(frozen=True, slots=True)
class Points:
    """What a friendly mean is asked of: points, their public number, the radius in codes.

    `asked` puts a query about points to the data: as it is, or about what a function gave on parts.
    """

    public: PublicFacts
    factors: tuple[Factor, ...]
    keys: tuple[Key, ...]
    radius: int
    names: tuple[str, ...]
    asked: Callable[[Query], Query] = lambda query: query
    words: str | None = None

    def described(self, estimator: str) -> Description:
        return Description(estimator, self.words, ("column",), (self.names,))

    def centre_question(
        self, estimator: str, spend: Guarantee, delta: Fraction, centres: int = 1
    ) -> Question:
        """The friendly mean itself."""
        query = self.asked(Friends(self.keys, self.factors, self.radius, centres))
        sensitivity = query.sensitivity(self.public.neighbors)
        assert isinstance(sensitivity, Friendly)
        count = getattr(query, "parts", self.public.rows)
        mechanism = friendly_noise(sensitivity, spend, delta, count)
        return Question(self.described(estimator), query, mechanism, spend, delta)

    def mean_question(self, centre: tuple[int, ...], radius: int, spend: Guarantee) -> Question:
        """The mean of rows that are clipped about a released centre."""
        clipped = ClippedSum(self.keys, self.factors, centre, radius, bool(self.keys))
        query = self.asked(clipped)
        sensitivity = query.sensitivity(self.public.neighbors)
        assert isinstance(sensitivity, L2)
        noise = gaussian_noise(sensitivity, spend_mu_squared(spend))
        return Question(self.described(MEAN), query, noise, spend)


def grid_of(
    schema: Schema, columns: Sequence[str], radius: Fraction, asked: str
) -> tuple[tuple[Factor, ...], int]:
    """Factors of columns with one step, as fine as distances stay exact, and the radius in codes.

    The step is a power of two; the radius is rounded up, and at most the diagonal of the grid.
    """
    declared = []
    for name in columns:
        column = schema[name]
        if not isinstance(column, Real | Integer):
            raise WrongColumnKind(name, type(column).__name__, "Real or Integer", asked)
        declared.append((name, column.low / 2 + column.high / 2, (column.high - column.low) / 2))
    widest = max(half for _, _, half in declared)
    bits = math.floor(math.log2((1 << CODE_BITS) / widest))
    while 4 * sum(_codes(half, bits) ** 2 for _, _, half in declared) >= 1 << FLOAT_BITS:
        bits -= 1
    factors = tuple(
        Factor(name, Encoding(center, 2.0**bits, -_codes(half, bits), _codes(half, bits)))
        for name, center, half in declared
    )
    diagonal = 2 * (math.isqrt(sum(factor.largest**2 for factor in factors)) + 1)
    codes = math.ceil(radius * Fraction(2) ** bits)
    if codes < 8:
        raise InvalidParameter(
            "radius=",
            f"{decimal_text(radius)} is less than eight steps of the grid on the declared range",
            "distances are counted in whole steps so that they are exact",
            "declare narrower ranges, or pass a larger radius",
        )
    return factors, min(codes, diagonal)


def _codes(half: float, bits: int) -> int:
    return max(1, math.ceil(half * 2.0**bits))


def checked_radius(radius: object) -> Fraction:
    number = rational(radius, "radius=")
    if number > 0:
        return number
    raise InvalidParameter(
        "radius=",
        f"{decimal_text(number)} is not positive",
        "rows that lie at most so far apart are friends, and the noise is in proportion to it",
        "pass the distance that nearly all pairs of rows keep, in units of the columns",
    )


def checked_columns(columns: object, asked: str) -> tuple[str, ...]:
    """The names of at least one column, each once."""
    names = (columns,) if isinstance(columns, str) else columns
    if (
        not isinstance(names, Sequence)
        or not names
        or not all(isinstance(name, str) for name in names)
        or len(set(names)) != len(names)
    ):
        raise InvalidParameter(
            "columns",
            "they are no list of different names",
            f"{asked} is about the columns that are named",
            "pass for example ['x1', 'x2']",
        )
    return tuple(names)


def part_of(spend: Guarantee, delta: Fraction, share: Fraction) -> Guarantee:
    """A share of the μ² of a spend whose δ₀ is set aside, less what a debit is rounded up by."""
    box = spend_box(spend, delta)
    whole = box.mu_squared or 2 * box.rho
    left = whole * share - GRAIN
    if box.epsilon or left <= 0:
        raise NoTheorem(
            "a friendly mean",
            f"{spend} is pure, or next to nothing",
            "its noise is Gaussian and it fails to protect with a probability delta",
            "spend an (ε, δ) guarantee, dp.ApproxDP(1, 1e-6), or dp.GDP with delta0= in the ledger",
        )
    return GDP(float_down(sqrt_down(left)))


def clip_radius(points: Points, spread: float) -> int:
    """ρ of the refined mean, in codes: ρ² = r²/2 + s²(d + 3√(2d)) + 2sr.

    A row lies about r/√2 from the mean where two lie r apart; the released centre lies about s√d
    from it, s the spread of its noise.
    """
    size, radius = len(points.factors), points.radius
    squared = radius**2 / 2 + spread**2 * (size + 3 * math.sqrt(2 * size)) + 2 * spread * radius
    return max(1, min(math.ceil(math.sqrt(squared)), _furthest(points)))


def _furthest(points: Points) -> int:
    return 2 * (math.isqrt(sum(factor.largest**2 for factor in points.factors)) + 1)


def refined_by_steps(
    points: Points, spend: Guarantee, delta: Fraction, ask: Ask
) -> FriendlyMeanResult:
    """A friendly centre, and the clipped mean about it where there is one."""
    spend = require_spend(spend)
    centre = ask(
        points.centre_question(CENTRE, part_of(spend, delta, CENTRE_SHARE), delta), "centre"
    )
    core = core_of(centre)
    if core.place is None:
        return FriendlyMeanResult(centre)
    place = tuple(
        int(np.clip(round(value), factor.encoding.low, factor.encoding.high))
        for value, factor in zip(core.place.tolist(), points.factors, strict=True)
    )
    rest = part_of(spend, delta, 1 - CENTRE_SHARE)
    question = points.mean_question(place, clip_radius(points, core.spread), rest)
    return FriendlyMeanResult(ask(question, "mean"), (centre,))


def refuse_early(points: Points, spend: Guarantee, delta: Fraction) -> None:
    """Builds both questions with the most noise, so that what cannot be asked is refused before
    anything is debited.
    """
    points.centre_question(CENTRE, part_of(spend, delta, CENTRE_SHARE), delta)
    rest = part_of(spend, delta, 1 - CENTRE_SHARE)
    points.mean_question((0,) * len(points.factors), _furthest(points), rest)
