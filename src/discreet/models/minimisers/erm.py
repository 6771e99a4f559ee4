"""dp.erm: empirical risk minimisation by formula, with noise in the objective or on its minimiser.

    dp.erm(session, "default ~ age + income", loss="huber-hinge", spend=dp.PureDP(1))
    dp.erm(session, "default ~ age", loss="logistic", spend=dp.GDP(0.5), method="output")

One noisy gradient, at the optimum itself, takes the whole budget: there are no step sizes, and
separated classes have a finite answer (docs/theory/perturbed-minimisers.md).
"""

from __future__ import annotations

from collections.abc import Callable

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import Where, cells_where, rows_asked
from discreet.asking.formula import design_of
from discreet.asking.noise_choice import require_spend
from discreet.errors import InvalidParameter, shown
from discreet.estimators.basic import _open
from discreet.inference.minimisers.results import PerturbedResult
from discreet.models.m_estimate import user_model
from discreet.models.minimisers.fit import Asked, fit_minimiser
from discreet.models.procedure import Regression
from discreet.schema import Schema
from discreet.specs.estimating.families import Family, Huber, HuberHinge, Logistic
from discreet.specs.estimating.model import Model

LOSSES: dict[str, Family] = {
    "logistic": Logistic(),
    "huber-hinge": HuberHinge(),
    "huber": Huber(1.345),
}
METHODS = ("objective", "output")


@plain.door
def erm(
    session: object,
    formula: str,
    *,
    spend: Guarantee,
    loss: str = "logistic",
    penalty: float | None = None,
    method: str = "objective",
    psi: Callable[[float], float] | None = None,
    mean: Callable[[float], float] | None = None,
    reach: int | None = None,
    where: Where | None = None,
    key: str | None = None,
) -> PerturbedResult:
    """The minimiser of a convex loss with a penalty: ``loss="logistic"``, ``"huber-hinge"`` (a
    support vector machine) of a yes/no column or a level, or ``"huber"`` of a number.

    ``loss="psi"`` and ``loss="mean"`` take a function of your own, as dp.m_estimate does; one that
    falls somewhere is refused. `penalty` is the total Λ of (Λ/2)‖θ‖², not multiplied by the rows;
    None is the one that the spend makes sensible. ``method="output"`` puts the noise on the
    minimiser instead of into its objective.

    Method.    Objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011, with a smaller
               correction), or output perturbation; the minimiser is certified in whole numbers.
               A GDP, zCDP or (ε, δ) spend learns a metric first and pays for intervals.
    Validity.  As `PerturbedResult`. A pure spend and the hinge give coefficients alone.

    Formula.
            θ = argmin Σ loss(xᵢ, yᵢ; θ) + (Λ/2)‖θ‖² + noise'θ

            Λ  `penalty`

    Price.    The spend, once a key.
    Example.
            session = dp.load_visits().open(budget=dp.GDP(1))
            machine = dp.erm(session, "urgent ~ hours", loss="huber-hinge", spend=dp.PureDP(0.5))
            print(machine.summary())
    See also. `dp.logistic`, `dp.accuracy`; docs/how-to/which-learner.md.
    """
    opened = _open(session)
    schema = opened.public.schema
    model, family = erm_model(schema, formula, loss, psi, mean, reach, where)
    regression = Regression(
        opened, model, "erm", require_spend(spend), key, cells_where(schema, where).where
    )
    return fit_minimiser(regression, asked_of(family, method, penalty))


def asked_of(family: Family, method: object, penalty: object) -> Asked:
    """What is minimised and how; refused where a number or a word is none."""
    if method not in METHODS:
        raise InvalidParameter(
            "method=",
            f"{shown(method)} is not known",
            "each has its own theorem",
            f"use one of {', '.join(map(repr, METHODS))}",
        )
    if penalty is not None and (isinstance(penalty, bool) or not isinstance(penalty, (int, float))):
        raise InvalidParameter(
            "penalty=",
            f"{shown(penalty)} is not a number",
            "it bounds how far one row can move the minimiser",
            "leave it out, or use a positive number",
        )
    return Asked(family, str(method), None if penalty is None else _size(penalty))


def _size(penalty: float) -> float:
    number = plain.number(penalty, "penalty=")
    if not 0 < number <= 1e12:
        raise InvalidParameter(
            "penalty=",
            f"{shown(penalty)} is not a positive number up to 1e12",
            "it bounds how far one row can move the minimiser",
            "leave it out, or use a number of about the size of the model's columns",
        )
    return number


def erm_model(
    schema: Schema,
    formula: str,
    loss: str,
    psi: Callable[[float], float] | None,
    mean: Callable[[float], float] | None,
    reach: int | None,
    where: Where | None,
) -> tuple[Model, Family]:
    """The model of a formula and the family of a loss; refused where they do not fit."""
    if callable(loss):
        raise InvalidParameter(
            "loss=",
            "a function",
            "what one row can do to a minimiser is proven loss by loss",
            "pass loss='psi', psi=the loss's derivative, or loss='mean', mean=the mean function",
        )
    loss = plain.text(loss, "loss=")
    own = {"psi": psi, "mean": mean}
    if loss in own:
        given = {name: function if loss == name else None for name, function in own.items()}
        model, _, tabulated = user_model(schema, formula, given["psi"], given["mean"], reach, where)
        return model, tabulated
    if loss not in LOSSES or psi is not None or mean is not None or reach is not None:
        raise InvalidParameter(
            "loss=",
            f"{shown(loss)} is not known, or a function was given beside it",
            "what one row can do to a minimiser is proven loss by loss",
            f"use one of {', '.join(map(repr, (*LOSSES, *own)))}{_near(loss)}",
        )
    family = LOSSES[loss]
    design = design_of(formula, schema, counts=not family.residual)
    if (design.response.level is None) != family.residual:
        raise InvalidParameter(
            f"response {design.response_name!r}",
            "it is yes/no" if family.residual else "it is a number",
            "classes have margins, and numbers have residuals",
            "use loss='huber' for a number, 'logistic' or 'huber-hinge' for yes/no",
        )
    return design.model(rows_asked(schema, where, *design.reads).keys), family


def _near(loss: str) -> str:
    """The smooth loss that a name from elsewhere stands for."""
    meant = {"hinge": "huber-hinge", "svm": "huber-hinge", "log": "logistic", "squared": "huber"}
    return f"; the nearest is {meant[loss]!r}" if loss in meant else ""
