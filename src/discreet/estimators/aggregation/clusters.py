"""dp.friendly_clusters: centres that k-means finds on most secret parts of the data.

*Method*: k-means runs on each part by itself; a friendly mean of the parts' centres, labelled
alike, is released (docs/theory/aggregation.md). *Validity* is stated by
`discreet.inference.aggregation.friendly.FriendlyClustersResult`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter, WrongColumnKind, shown
from discreet.estimators.aggregation.points import checked_columns
from discreet.estimators.aggregation.subsample import on_parts
from discreet.estimators.basic import _open
from discreet.estimators.classical_quantiles import needed_delta
from discreet.inference.aggregation.friendly import FriendlyClustersResult
from discreet.schema import Integer, Real
from discreet.specs.aggregation.friends import MOST_CENTRES
from discreet.trusted.release import PublicFacts, Question

STARTS, ROUNDS = 8, 60
GOLDEN = 0.6180339887498949
CLUSTERS = "friendly clusters"
Floats = npt.NDArray[np.float64]


@plain.door
def friendly_clusters(
    session: Session,
    columns: str | Sequence[str],
    *,
    k: int,
    radius: float,
    spend: Guarantee,
    parts: int = 200,
    delta: float = 1e-8,
    key: str | None = None,
) -> FriendlyClustersResult:
    """k centres that most parts of the data agree on: ``dp.friendly_clusters(session, ["x", "y"],
    k=3, radius=0.5, spend=dp.ApproxDP(1, 1e-6))``.

    k-means runs on `parts` secret parts. Parts agree if each centre of one has a centre of the
    other within `radius`, and the centres of each lie more than six radii apart; nothing is
    released where fewer than half agree. It fails to protect with probability `delta`.

    Formula.
            centre j = friendly mean over the parts of their j-th centre

            part   a secret random part of the rows, on which k-means runs

    Validity. About what k-means finds on parts of this size; clusters nearer than six radii to each
              other are not told apart.
    Price.    The spend, once a key; `delta` as for `dp.friendly_mean`.
    Example.
            import numpy as np

            rng = np.random.default_rng(1)
            places = np.array([-40.0, 0.0, 40.0])[rng.integers(0, 3, 4000)]
            data = dp.from_arrays(
                {"x": places + rng.normal(0, 2, 4000)},
                schema={"x": dp.Real(-1000, 1000)},
                neighbors=dp.AddRemove(),
            )
            session = data.open(budget=dp.ApproxDP(epsilon=6, delta=1e-5))
            found = dp.friendly_clusters(
                session, ["x"], k=3, radius=4, parts=150, spend=dp.ApproxDP(epsilon=4, delta=1e-6)
            )
            print(found.found, found.centres.round(1).tolist())
    See also. `dp.friendly_mean`, `dp.subsample`.
    """
    public = _open(session).public
    question = friendly_clusters_question(
        public, columns, k=k, radius=radius, spend=spend, parts=parts, delta=delta
    )
    return FriendlyClustersResult(_open(session).release(question, key=key))


def friendly_clusters_question(
    public: PublicFacts,
    columns: str | Sequence[str],
    *,
    k: int,
    radius: float,
    spend: Guarantee,
    parts: int = 200,
    delta: float = 1e-8,
) -> Question:
    names = checked_columns(columns, "friendly clusters")
    if type(k) is not int or not 1 <= k <= MOST_CENTRES:
        raise InvalidParameter(
            "k=",
            f"{shown(k)} is no whole number from 1 to {MOST_CENTRES}",
            "so many centres are looked for on each part",
            "pass for example k=3",
        )
    outputs = {}
    for name in names:
        column = public.schema[name]
        if not isinstance(column, Real | Integer):
            raise WrongColumnKind(
                name, type(column).__name__, "Real or Integer", "friendly clusters"
            )
        outputs[name] = column
    on = on_parts(
        public,
        functools.partial(k_means, k=k),
        columns=names,
        output={
            f"{name} of centre {place + 1}": Real(float(one.low), float(one.high))
            for place in range(k)
            for name, one in outputs.items()
        },
        parts=parts,
        where=None,
        spend=spend,
    )
    points = replace(on, name=f"{k}-means").points(radius)
    failure = needed_delta(require_spend(spend), delta, "friendly clusters")
    question = points.centre_question(CLUSTERS, spend, failure, k)
    labels = (tuple(str(place + 1) for place in range(k)), names)
    asked = replace(question.description, column=None, by=("centre", "column"), labels=labels)
    return replace(question, description=asked)


def k_means(*columns: Floats, k: int) -> list[float]:
    """The k centres of the least sum of squares that Lloyd's rounds find from several starts, one
    after another; rows without a value are left out. A function of its arguments alone.
    """
    rows = np.column_stack(columns)
    rows = rows[~np.isnan(rows).any(axis=1)]
    found = [_lloyd(rows, _spread_start(rows, k, start / STARTS)) for start in range(STARTS)]
    return [float(value) for value in min(found, key=lambda one: one[1])[0].ravel()]


def _spread_start(rows: Floats, k: int, start: float) -> Floats:
    """Rows far from each other: each where the squared distances from those before it, summed up
    row by row, pass a share of their total. The shares are `start` and steps of the golden ratio
    from it, in place of random numbers.
    """
    places = [int(start * len(rows))]
    while len(places) < k:
        gaps = ((rows[:, None] - rows[places]) ** 2).sum(axis=2).min(axis=1)
        share = (start + len(places) * GOLDEN) % 1.0
        passed = np.searchsorted(np.cumsum(gaps), share * gaps.sum(), side="right")
        places.append(min(int(passed), len(rows) - 1))
    return np.array(rows[places])


def _lloyd(rows: Floats, centres: Floats) -> tuple[Floats, float]:
    for _ in range(ROUNDS):
        gaps = ((rows[:, None] - centres) ** 2).sum(axis=2)
        nearest = gaps.argmin(axis=1)
        moved = np.array(
            [
                rows[nearest == place].mean(axis=0) if (nearest == place).any() else centre
                for place, centre in enumerate(centres)
            ]
        )
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres, float(((rows[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum())
