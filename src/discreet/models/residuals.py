"""dp.residuals: a private histogram of a fit's residuals,
(y − η)/σ at the released coefficients and scale.

The fit's own releases say nothing about the shape of its errors;
this is one more release, with a spend of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from discreet import plain
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter, shown
from discreet.estimators.basic import _open
from discreet.exact import rational
from discreet.inference.counts.results import ResidualsResult
from discreet.inference.regression import decode as decode
from discreet.inference.regression.fit import RegressionResult
from discreet.inference.regression.moments_fit import MomentsResult
from discreet.inference.results.results import has_own_releases, read_of
from discreet.models.points import point_at
from discreet.specs.estimating.families import Huber
from discreet.specs.estimating.model import Model
from discreet.specs.estimating.residuals import MOST_BINS, ResidualCounts
from discreet.specs.estimating.tables import GRID
from discreet.specs.queries.keys import may_leave_out
from discreet.trusted.release import Description, PublicFacts, Question

REACH = 4  # scales to both sides that are cut into bins, unless edges are given


@plain.door
def residuals(
    session: Session,
    fit: RegressionResult,
    *,
    spend: Guarantee,
    bins: int | Sequence[float] = 16,
    key: str | None = None,
) -> ResidualsResult:
    """How many rows of the session have a residual (y − η)/σ in each bin,
    at the coefficients and the scale of a released fit.

    `bins` is a number of bins between −4 and 4 scales, or increasing edges in units of the scale;
    everything beyond is in two open cells at the ends. The rows are those of the fit's filter.

    Formula.
            countₖ = #{rows with (y − η)/σ in bin k} + Z

            η  the linear predictor at the released coefficients
            σ  the released scale

    Validity. Counts of these rows, privacy error alone; the error of the fit is in η.
    Price.    The spend, once a key, beside that of the fit.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            fit = dp.ols(session, "income ~ age + education", spend=dp.GDP(0.5))
            dp.residuals(session, fit, spend=dp.GDP(0.2)).plot()
    See also. `dp.ols`, `dp.robust`.
    """
    opened = _open(session)
    asked = read_of(lambda: residuals_question(opened.public, fit, spend=spend, bins=bins))
    return ResidualsResult(opened.release(asked, key=key))


def residuals_question(
    public: PublicFacts,
    fit: RegressionResult,
    *,
    spend: Guarantee,
    bins: int | Sequence[float] = 16,
) -> Question:
    known = isinstance(fit, RegressionResult) and has_own_releases(fit)
    if not known or not getattr(fit.family, "residual", False):
        raise InvalidParameter(
            "residuals",
            "this is not a fit with residuals",
            "logistic and Poisson fits have means, not residuals",
            "pass what dp.ols, dp.robust or dp.m_estimate(psi=…) returned",
        )
    model, edges = _model(fit), _edges(bins)
    for name in model.reads:
        public.schema[name]  # refuses what is not declared
    sigma = (
        fit.relative_scale
        if isinstance(fit, MomentsResult)
        else decode.scale_at(fit._last_gradient)
    )
    beta = np.append(fit.fitted.beta, np.zeros(len(model.columns) - len(fit.fitted.beta)))
    query = ResidualCounts(
        model,
        point_at(beta, sigma, Huber(4.0)),
        tuple(round(edge * GRID) for edge in edges),
        any(may_leave_out(key, public.schema) for key in model.keys),
    )
    first, last = f"below {edges[0]:g}", f"from {edges[-1]:g}"
    labels = (first, *(f"{low:g} … {high:g}" for low, high in itertools.pairwise(edges)), last)
    asked = Description(
        "residuals",
        fit.releases[-1].description.column,
        ("residual / scale",),
        (labels,),
        fit.releases[-1].description.where,
        tuple(edges),
    )
    l1, l2 = query.sensitivity(public.neighbors)
    mechanism = (
        geometric_noise(l1, rational(spend.epsilon, "epsilon"))  # type: ignore[union-attr]
        if isinstance(require_spend(spend), PureDP)
        else gaussian_noise(l2, spend_mu_squared(spend))
    )
    return Question(asked, query, mechanism, spend)


def _model(fit: RegressionResult) -> Model:
    """The model as the fit's last release had it, so that its rows need not be built again."""
    model: Model = fit._last_gradient.query.model  # type: ignore[attr-defined]
    return model


def _edges(bins: object) -> list[float]:
    if isinstance(bins, (list, tuple, np.ndarray)):
        edges = [float(rational(edge, "bins")) for edge in bins]
        if (
            1 <= len(edges) < MOST_BINS
            and all(low < high for low, high in itertools.pairwise(edges))
            and max(map(abs, edges)) <= 1e4
            and all(
                round(low * GRID) < round(high * GRID) for low, high in itertools.pairwise(edges)
            )
        ):
            return edges
    elif type(bins) is int and 1 <= bins <= MOST_BINS - 2:
        return [-REACH + 2 * REACH * place / bins for place in range(bins + 1)]
    raise InvalidParameter(
        "bins=",
        f"{shown(bins)} is neither a number of bins nor increasing edges",
        f"every bin is a cell with noise of its own, 1/{GRID} of a scale wide at least",
        f"pass bins=16 (up to {MOST_BINS - 2}), or edges such as [-2, -1, 0, 1, 2]",
    )
