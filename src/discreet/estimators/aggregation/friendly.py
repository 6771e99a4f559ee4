"""dp.friendly_mean: the mean of rows most of which lie near each other, wherever they lie.

*Method* and *Validity*: `discreet.inference.aggregation.friendly.FriendlyMeanResult`. Noise grows
with the radius and not with the declared range. With a `key`, asking again returns the stored
answers at no cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import rows_asked
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.asking.steps import Steps
from discreet.errors import InvalidParameter
from discreet.estimators.aggregation.points import (
    MEAN,
    Points,
    checked_columns,
    checked_radius,
    grid_of,
    refined_by_steps,
    refuse_early,
)
from discreet.estimators.basic import _open
from discreet.estimators.classical_quantiles import needed_delta
from discreet.inference.aggregation.friendly import FriendlyMeanResult
from discreet.specs.aggregation.friends import MOST_POINTS, require_replaced_row
from discreet.trusted.release import PublicFacts


@plain.door
def friendly_mean(
    session: Session,
    columns: str | Sequence[str],
    *,
    radius: float,
    spend: Guarantee,
    delta: float = 1e-8,
    refine: bool = True,
    key: str | None = None,
) -> FriendlyMeanResult:
    """The mean of points of which most lie within `radius` of each other:
    ``dp.friendly_mean(session, ["x1", "x2"], radius=2.5, spend=dp.ApproxDP(1, 1e-6))``.

    `radius` is the distance, over all columns together, that nearly all pairs of rows keep; it
    sets the noise, the declared ranges do not. Rows far from the others have no weight, and where
    fewer than half are near each other nothing is released but that. It fails to protect with
    probability `delta`. `refine` spends three quarters of μ² on the mean of all rows clipped about
    the friendly mean: less noise, and the spread of the rows is released beside it.

    Formula.
            mean = Σ wᵢ·xᵢ / Σ wᵢ + Z

            wᵢ  rises with the share of rows within `radius` of row i; 0 where that is half or less
            Z   noise in proportion to the radius

    Validity. Most rows lie within `radius` of each other, and the number of rows is public. Without
              `refine` the sampling error is an upper bound.
    Price.    The spend, once a key; the probability `delta` of no protection is charged as δ₀.
    Example.
            session = dp.load_census().open(budget=dp.ApproxDP(epsilon=2, delta=1e-6))
            both = dp.friendly_mean(
                session, ["age", "hours"], radius=90, spend=dp.ApproxDP(epsilon=1, delta=1e-7)
            )
            print(both.summary())
    See also. `dp.unbounded_mean`, `dp.friendly_clusters`; docs/how-to/friendly.md.
    """
    points, failure = points_of_rows(_open(session).public, columns, radius, spend, delta)
    if type(refine) is not bool:
        raise InvalidParameter(
            "refine=",
            "neither True nor False",
            "it says whether rows are clipped about a first mean",
            "pass refine=True or refine=False",
        )
    if not refine:
        question = points.centre_question(MEAN, spend, failure)
        return FriendlyMeanResult(_open(session).release(question, key=key))
    refuse_early(points, spend, failure)
    with Steps(_open(session), spend, key, delta=failure) as steps:
        return refined_by_steps(points, spend, failure, steps.ask)


def points_of_rows(
    public: PublicFacts, columns: object, radius: object, spend: Guarantee, delta: object
) -> tuple[Points, Fraction]:
    """The rows as points, and the δ₀ of their friendly mean; refused where no theorem holds."""
    names = checked_columns(columns, "a friendly mean")
    require_replaced_row(public.neighbors)
    if public.rows is not None and public.rows > MOST_POINTS:
        raise InvalidParameter(
            "a friendly mean",
            f"there are {public.rows} rows, more than {MOST_POINTS}",
            "distances of all pairs of rows are looked at",
            "take parts of the data: dp.subsample with several outputs",
        )
    factors, codes = grid_of(public.schema, names, checked_radius(radius), "a friendly mean")
    failure = needed_delta(require_spend(spend), delta, "a friendly mean")
    keys = rows_asked(public.schema, None, *names).keys
    return Points(public, factors, keys, codes, names), failure
