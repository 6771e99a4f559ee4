"""Least squares from one release: the second moments of (x, y) in the box of declared ranges
(regression.md §5, "moments").

Exact least squares where the noise allows it: nothing is clipped and no row is weighted, so n must
be large. Algorithm A (the default of dp.ols) needs far fewer rows: at n = 4000, p = 4, μ = 1 its
intervals are 1.1 times as wide as without privacy, these 3.6 times.

Theorem.  The release satisfies the spend. *Proof.*  It is a `WeightedGram` in the metric I with
radius R: √2·R² bounds what one row exchanged moves (specs/estimating/model.py); the public R is so
large that every weight is 1 for rows in the box, which is where all rows are.
Checked.  tests/models/test_moments_fit.py::test_every_weight_is_one
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from fractions import Fraction

import numpy as np

from discreet.accounting.guarantees import Guarantee
from discreet.asking.bases import BaseChoice
from discreet.asking.sessions import Session
from discreet.inference.regression.bases import base_levels
from discreet.inference.regression.decode import step_of
from discreet.inference.regression.facts import FitFacts
from discreet.inference.regression.moments_fit import MomentsResult
from discreet.models.points import metric_on_grid
from discreet.models.preconditioned import augmented
from discreet.models.procedure import Fitting, Regression, budget_of, require_response, rows_of
from discreet.models.tuning import COUNT_SHARE, noise_index
from discreet.specs.estimating.components import LevelComponent, ModelColumn, NumberComponent
from discreet.specs.estimating.equations import WeightedGram
from discreet.specs.estimating.model import Model
from discreet.trusted.release import Step

MARGIN = 1 + 2.0**-10  # rounding of columns to their grid, and of norms, must not cost weight


def fit_moments(
    session: Session,
    model: Model,
    *,
    spend: Guarantee,
    key: str | None = None,
    where: str = "",
    choice: BaseChoice | None = None,
) -> MomentsResult:
    """The least-squares fit of a model from one release of second moments (two where the number of
    rows is private).
    """
    mu_squared = budget_of(spend, session.public.neighbors.rows)
    require_response(session, model, "ols")
    return MomentsResult(
        *Regression(session, model, "ols", spend, key, where, choice).asked(
            lambda fitting: ask_moments(fitting, spend), mu_squared
        )
    )


def ask_moments(fitting: Fitting, spend: Guarantee) -> FitFacts:
    rows = rows_of(fitting)
    query, radius = moments_query(fitting.model, optional=fitting.optional)
    counted = any(step_of(release) == Step("count") for release in fitting.releases)
    fitting.ask(Step("moments"), query, 1 - COUNT_SHARE if counted else Fraction(1))
    return moments_facts(
        fitting.model,
        radius,
        spend,
        noise_index(
            len(fitting.model.columns),
            rows,
            math.sqrt(fitting.mu_squared),
            fitting.public.neighbors,
        ),
        base_levels(fitting.model.columns, fitting.public.schema),
    )


def moments_query(model: Model, *, optional: bool) -> tuple[WeightedGram, float]:
    """The second moments of (x, y), and the radius that leaves every row its whole weight."""
    wide = augmented(model)
    radius = math.sqrt(largest_square(wide.columns) * MARGIN)
    return WeightedGram(
        wide, metric_on_grid(np.eye(len(wide.columns)), radius), "metric", optional
    ), radius


def moments_facts(
    model: Model,
    radius: float,
    spend: Guarantee,
    index: float,
    bases: tuple[tuple[str, str], ...] = (),
) -> FitFacts:
    assert model.response is not None
    return FitFacts(
        "ols",
        spend,
        len(model.columns),
        radius,
        radius,
        0.0,
        index,
        (0.0,) * (len(model.columns) + 1),
        model.response.middle,
        model.response.half,
        bases=bases,
    )


def largest_square(columns: Sequence[ModelColumn]) -> float:
    """A public bound of ‖x‖² over all rows: 1 a column; levels of one category count together, as a
    row has one of them, and so do the functions of one spline, whose values sum to at most 1.
    """
    total, levels, splines = 0.0, defaultdict[str, list[tuple[int, ...]]](list), set[Hashable]()
    for column in columns:
        component = column.components[0] if len(column.components) == 1 else None
        if isinstance(component, LevelComponent):
            levels[component.column].append(component.contrast)
        elif isinstance(component, NumberComponent) and component.transform == "spline":
            splines.add((component.factor, component.knots))
        else:
            total += 1.0
    return (
        total
        + len(splines)
        + sum(
            max(
                sum(contrast[code] ** 2 for contrast in contrasts)
                for code in range(len(contrasts[0]))
            )
            for contrasts in levels.values()
        )
    )
