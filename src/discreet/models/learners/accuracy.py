"""dp.accuracy: how often a fit that decides between classes is right, as a share with its
interval.
"""

from __future__ import annotations

import numpy as np

from discreet import plain
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.asking.cells import Where, rows_asked
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter
from discreet.estimators.basic import _open
from discreet.exact import rational
from discreet.inference.counts.results import AccuracyResult
from discreet.inference.networks.results import NetworkResult
from discreet.inference.regression import decode as decode
from discreet.inference.regression.fit import RegressionResult
from discreet.inference.results.results import has_own_releases, read_of
from discreet.schema import Category, Schema
from discreet.specs.estimating.components import LevelComponent
from discreet.specs.estimating.layers import LARGEST_WEIGHTS, WEIGHT_BITS, Network
from discreet.specs.estimating.model import Model
from discreet.specs.estimating.networks import Agreement
from discreet.specs.queries.keys import may_leave_out
from discreet.trusted.release import Description, PublicFacts, Question

YES_AT_ZERO = ("logistic", "huber hinge")  # families that say yes where the predictor is above 0
Classifier = tuple[Model, Network, tuple[int, ...]]


@plain.door
def accuracy(
    session: Session,
    fit: NetworkResult | RegressionResult,
    *,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> AccuracyResult:
    """The share of the session's rows that a fit decides rightly; `fit` is what dp.network or
    dp.logistic returned.

    Method.    A count of right rows with noise; a row's decision is exact, in whole numbers, and
               reads that row alone, so that one row moves the count by at most 1.
    Validity.  The interval is about new rows where the session's rows were not fitted: open a
               session on a holdout.

    Formula.
            share = (right rows + Z) / N

    Price.    The spend, once a key: one count.
    Example.
            visits = dp.load_visits()
            session = visits.open(budget=dp.GDP(1))
            fit = dp.logistic(session, "urgent ~ hours", spend=dp.GDP(0.5))
            print(dp.accuracy(session, fit, spend=dp.GDP(0.1)))
    See also. `dp.holdout`, `dp.network`, `dp.tune`.
    """
    opened = _open(session)
    question = accuracy_question(opened.public, fit, spend=spend, where=where)
    return AccuracyResult(opened.release(question, key=key))


def accuracy_question(
    public: PublicFacts,
    fit: NetworkResult | RegressionResult,
    *,
    spend: Guarantee,
    where: Where | None = None,
) -> Question:
    model, network, weights = read_of(lambda: classifier_of(fit))
    schema = public.schema
    _require_levels(model, network, schema)
    asked = rows_asked(schema, where, *Model(model.columns, model.response).reads)
    here = Model(model.columns, model.response, asked.keys)
    optional = any(may_leave_out(key, schema) for key in asked.keys)
    both = public.rows is None or bool(asked.keys)
    query = Agreement(here, network, weights, optional, both)
    labels = ("right", "wrong") if both else ("right",)
    response = here.response.column if here.response is not None else None
    described = Description("accuracy", response, ("decision",), (labels,), asked.where)
    l1, l2 = query.sensitivity(public.neighbors)
    mechanism = (
        geometric_noise(l1, rational(spend.epsilon, "epsilon"))  # type: ignore[union-attr]
        if isinstance(require_spend(spend), PureDP)
        else gaussian_noise(l2, spend_mu_squared(spend))
    )
    return Question(described, query, mechanism, spend)


def classifier_of(fit: object) -> Classifier:
    """The model, shape and weights by which a fit decides; a logistic fit is a network without
    hidden layers, which says yes where its predictor is above 0.
    """
    own = has_own_releases(fit)
    if own and isinstance(fit, NetworkResult) and fit.network.outcome != "number":
        return fit.model, fit.network, fit.weights
    if own and isinstance(fit, RegressionResult) and fit.family.kind in YES_AT_ZERO:
        model = decode.model_query(fit._last_gradient).model
        return linear_classifier(model, np.asarray(fit.beta))
    raise InvalidParameter(
        "accuracy",
        f"a {plain.kind_name(fit)} does not decide between classes",
        "an accuracy is the share of rows whose class is decided rightly",
        "pass what dp.logistic, or dp.network of a Boolean or Category response, returned",
    )


def linear_classifier(model: Model, beta: np.typing.NDArray[np.float64]) -> Classifier:
    """The decision x'β > 0 for columns as declared ranges scale them, on the finest grid that stays
    exact; the sign does not depend on the scale.
    """
    size = float(np.abs(beta).sum())
    network = Network(len(model.columns), (), "relu", "yes/no", 1, WEIGHT_BITS[1])
    grid = (LARGEST_WEIGHTS - len(beta) - 1) / max(size, 1e-300)
    whole = np.rint(beta * min(grid, 2.0 ** WEIGHT_BITS[1]))
    return model, network, (*(int(value) for value in whole), 0)


def _require_levels(model: Model, network: Network, schema: Schema) -> None:
    """Refuses a session whose categories are declared otherwise than the fit's were."""
    parts = {part for column in model.columns for part in column.components}
    wanted = {part.column: len(part.contrast) for part in parts if isinstance(part, LevelComponent)}
    if model.response is not None and network.outcome == "classes":
        wanted[model.response.column] = network.outputs
    for name, levels in wanted.items():
        column = schema[name]
        if (len(column.levels) if isinstance(column, Category) else 2) != levels:
            raise InvalidParameter(
                "accuracy",
                f"{name!r} is declared with other levels than the fit's",
                "a fit knows levels by their place in the declaration",
                "declare the holdout as the data set of the fit",
            )
