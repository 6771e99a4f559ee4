"""dp.network: a small network, trained by noisy stochastic gradient descent in whole numbers.

    count 1   where the number of rows is private
    sgd 1     the whole descent, charged (μ, δ₀) by its privacy loss distribution

Theorem.  Both together satisfy the spend. *Proof.*  Each is a release of `Session.release` at its
share of μ², and shares add up to 1; a row adds a vector of norm at most C to every sum, whatever
its batch (specs/estimating/networks.py), so that a descent costs what `NoisySGD` costs.
Checked.  tests/models/test_network.py::test_a_network_costs_its_spend_and_nothing_else
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet import plain
from discreet.accounting.calibration.sgd import LARGEST_MULTIPLIER, sgd_multiplier, too_many_steps
from discreet.accounting.guarantees import GDP, Guarantee
from discreet.asking.cells import Where, cells_where, rows_asked
from discreet.asking.formula import design_of
from discreet.asking.preview import Assumptions
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter, NoTheorem, shown
from discreet.estimators.basic import _open
from discreet.exact import float_up, sqrt_up
from discreet.inference.networks.results import NetworkFacts, NetworkResult
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told
from discreet.inference.simulation.streams import Stream
from discreet.models.learners.pure_sgd import require_law
from discreet.models.procedure import LEDGER_GRAIN, Fitting, Regression, budget_of, rows_of
from discreet.models.sgd import Batches, batches_of, needed_delta
from discreet.models.solvers import SGD
from discreet.models.tuning import COUNT_SHARE
from discreet.schema import Category, Schema
from discreet.specs.estimating.layers import (
    ACTIVATIONS,
    LARGEST_WEIGHTS,
    MOST_CLASSES,
    MOST_LAYERS,
    MOST_UNITS,
    Network,
)
from discreet.specs.estimating.model import Model
from discreet.specs.estimating.networks import NORM_BITS, NetworkGradients
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.trusted.losses.pricing import price_of_spend, spend_box
from discreet.trusted.release import Question, Step

# steps along a mean gradient, by its noise s in units of the clip norm: RATE·s^−POWER, as trials on
# made-up data of 2000 to 50 000 rows ask for; a number's loss is steeper
RATE, POWER, LARGEST_RATE, NUMBER_RATE = 0.0083, 0.7, 1.6, 1 / 3
MOMENTUM = 0.9
AVERAGED = 4  # the last quarter of the iterates
FINE_BITS, COARSE_BITS, MOST_FINE = 22, 20, 1 << 13  # of weights, and how many are on the fine grid
START = "network"  # the name of the public numbers that first weights come from


@plain.door
def network(
    session: Session,
    formula: str,
    *,
    hidden: tuple[int, ...] = (32,),
    spend: Guarantee,
    solver: SGD | None = None,
    activation: str = "relu",
    clip: float = 1.0,
    where: Where | None = None,
    key: str | None = None,
) -> NetworkResult:
    """A network of `hidden` layers for the response of a formula: a level of a Category or Boolean
    column, or a number.

    Formula.
            weights ← weights − rate·(Σ clipped gradients of a batch + Z) / rows of a batch

            Z  Gaussian noise in proportion to `clip`

    Method.    Whole numbers throughout, so that a row's gradient is a function of that row; rows
               are clipped to the norm `clip`; noisy sums over secret batches move the weights with
               momentum, and the last quarter of the iterates is averaged. `solver` sets steps,
               batch and, as `step_size`, a factor of the learning rate, which follows from the
               noise.
    Validity.  There are no intervals for weights, since the model is not identified. Ask
               `dp.accuracy` of rows that were not fitted for how often it is right.

    Price.    The spend, once a key, for all steps together (a loss distribution adds them up).
    Example.
            session = dp.load_census().open(budget=dp.ApproxDP(epsilon=4, delta=1e-5))
            net = dp.network(
                session,
                "sex ~ income + hours",
                hidden=(4,),
                spend=dp.ApproxDP(epsilon=2, delta=1e-6),
                solver=dp.SGD(steps=50, batch=512),
            )
            print(net.summary())
    See also. `dp.accuracy`, `dp.logistic`, `dp.SGD`; docs/how-to/which-learner.md.
    """
    opened = _open(session)
    chosen = SGD() if solver is None else solver
    model, shape = network_model(opened.public.schema, formula, hidden, activation, where)
    words = cells_where(opened.public.schema, where).where
    regression = Regression(opened, model, "network", spend, key, words)
    mu_squared, delta = _budget(regression, chosen)
    norm = _clip(clip)
    releases, facts = regression.asked(
        lambda fitting: _ask(fitting, shape, chosen, (norm, delta)), mu_squared, delta
    )
    return NetworkResult(releases, facts)


def network_model(
    schema: Schema, formula: str, hidden: object, activation: object, where: Where | None
) -> tuple[Model, Network]:
    """The model and the shape of a network; refused from public facts."""
    design = design_of(formula, schema, classes=True)
    columns = tuple(column for column in design.columns if column.components)
    if not columns:
        raise InvalidParameter(
            "a network",
            "its formula has no columns beside the intercept",
            "a network without inputs says the same of every row",
            "name columns on the right side",
        )
    response, outcome, outputs = design.response, "number", 1
    if response.level is not None:
        column, outcome = schema[response.column], "yes/no"
        if isinstance(column, Category) and design.several:
            outcome, outputs = "classes", len(column.levels)
            if not 2 <= outputs <= MOST_CLASSES:
                raise InvalidParameter(
                    f"response {response.column!r}",
                    f"it has {outputs} levels",
                    f"a network tells 2 to {MOST_CLASSES} classes apart",
                    f'ask for one level against the others: C({response.column}, base="…") ~ …',
                )
    model = Model(columns, response, rows_asked(schema, where, *design.reads).keys)
    widths = _hidden(hidden)
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise InvalidParameter(
            "activation=",
            f"{shown(activation)} is neither 'relu' nor 'tanh'",
            "activations are tables of whole numbers",
            "leave it out for 'relu'",
        )
    shape = Network(len(columns), widths, activation, outcome, outputs, FINE_BITS)
    if shape.size > MOST_FINE:
        shape = Network(len(columns), widths, activation, outcome, outputs, COARSE_BITS)
    return model, shape


def _hidden(hidden: object) -> tuple[int, ...]:
    if isinstance(hidden, (tuple, list)):
        widths = tuple(hidden)
        if 1 <= len(widths) <= MOST_LAYERS and all(
            type(units) is int and 1 <= units <= MOST_UNITS for units in widths
        ):
            return widths
    raise InvalidParameter(
        "hidden=",
        f"{shown(hidden)} is not 1 to {MOST_LAYERS} layers of 1 to {MOST_UNITS} units",
        "every weight is released with noise of its own; without a layer it is dp.logistic or "
        "dp.ols, which have intervals",
        "pass for example hidden=(32, 16)",
    )


def _clip(clip: object) -> int:
    if isinstance(clip, (int, float)) and not isinstance(clip, bool) and 2**-10 <= clip <= 64:
        return round(float(clip) * (1 << NORM_BITS))
    raise InvalidParameter(
        "clip=",
        f"{shown(clip)} is not between 1/1024 and 64",
        "it is the most that one row adds to a gradient",
        "leave it out for 1",
    )


def _budget(regression: Regression, solver: SGD) -> tuple[Fraction, Fraction]:
    """(μ², δ₀) of the steps; refused, from public facts, where there is no theorem."""
    session, spend = regression.session, regression.spend
    if type(solver) is not SGD:
        raise InvalidParameter(
            "solver=",
            f"a {plain.kind_name(solver)} is not dp.SGD",
            "a network is trained by stochastic gradients",
            "pass solver=dp.SGD(steps=2000, batch=1024), or leave it out",
        )
    if solver.law == "laplace":
        raise NoTheorem(
            "a network with law='laplace'",
            "its rows are clipped in the Euclidean norm",
            "Laplace noise on so many weights would drown them",
            "leave law= out, and spend dp.ApproxDP(epsilon, delta)",
        )
    require_law(solver, spend)
    budget_of(spend, session.public.neighbors.rows)
    delta = needed_delta(session, solver, spend)
    box = spend_box(spend, delta)
    left = (box.mu_squared or 2 * box.rho) - 4 * LEDGER_GRAIN
    if 4 * solver.steps > left * Fraction(LARGEST_MULTIPLIER) ** 2:
        raise too_many_steps()
    return left, delta


def _ask(
    fitting: Fitting, shape: Network, solver: SGD, priced: tuple[int, Fraction]
) -> NetworkFacts:
    """The count where it is private, and the descent; gives the fit's public facts."""
    (clip, delta), public = priced, fitting.public
    rows = rows_of(fitting)
    share = 1 - COUNT_SHARE if public.rows is None or fitting.optional else Fraction(1)
    batches = batches_of(public, solver, rows)
    query = NetworkGradients(
        fitting.model,
        shape,
        clip,
        fitting.optional,
        public.rows if batches.gap is None else None,
    )
    mu_squared = fitting.mu_squared * share
    multiplier = sgd_multiplier(mu_squared, delta, batches.rate, batches.scheme, solver.steps)
    mechanism, rate = _descent(query, batches, solver, (multiplier, rows, delta), public)
    step, spend = Step("sgd"), GDP(float_up(sqrt_up(mu_squared)))
    fitting.asked(step, Question(fitting.described(step), query, mechanism, spend, delta))
    schema = public.schema
    columns = {name: schema[name] for name in fitting.model.reads}
    return NetworkFacts(fitting.regression.spend, batches.size, rate, columns, float(delta))


def _descent(
    query: NetworkGradients,
    batches: Batches,
    solver: SGD,
    priced: tuple[float, float, Fraction],
    public: Any,
) -> tuple[NoisySGD, float]:
    multiplier, rows, delta = priced
    sensitivity, shape = query.sensitivity(public.neighbors), query.network
    counted = batches.size * min(1.0, max(1.0, rows) / batches.rows)  # of a batch, on average
    spread = Fraction(float_up(sqrt_up(sensitivity.moved_squared * Fraction(multiplier) ** 2)))
    rate = solver.step_size * learning_rate(shape, float(spread) / query.clip / counted)
    return NoisySGD(
        sensitivity,
        spread,
        batches.gap,
        batches.fixed,
        solver.steps,
        rate * 2.0 ** (shape.weight_bits - NORM_BITS) / counted,
        first_weights(shape),
        LARGEST_WEIGHTS,
        solver.steps,
        max(1, solver.steps // AVERAGED),
        delta,
        momentum=MOMENTUM,
    ), rate


def learning_rate(shape: Network, noise: float) -> float:
    """The step for a mean gradient whose coordinates have this noise, in units of the clip norm."""
    usual = min(LARGEST_RATE, RATE * math.pow(max(noise, 1e-9), -POWER))
    return usual * (NUMBER_RATE if shape.outcome == "number" else 1.0)


def first_weights(shape: Network) -> tuple[int, ...]:
    """Where a descent starts: public, normal with variance 2/inputs (relu) or 1/inputs (tanh), and
    0 in the last layer and for constants.
    """
    source = Stream(START)
    gain = 2.0 if shape.activation == "relu" else 1.0
    weights = []
    for place, (units, width) in enumerate(shape.shapes):
        normal = ndtri(source.uniforms((units, width), f"layer {place}"))
        layer = normal * math.sqrt(gain / (width - 1))
        layer[:, -1] = 0.0
        weights.append(layer.ravel() * (place < len(shape.hidden)))
    whole = np.rint(np.concatenate(weights) * 2.0**shape.weight_bits)
    return tuple(int(weight) for weight in whole)


@dataclass(frozen=True, slots=True, repr=False)
class NetworkPreview(Told):
    """What a network would cost, and how noisy its gradients would be: free, made without data."""

    network: Network
    multiplier: float
    batch: int
    steps: int
    price: str
    how_many: int

    def summary(self) -> Summary:
        noise = self.multiplier / self.batch
        cells = (
            "–".join(str(width) for width in self.network.widths),
            str(self.network.size),
            f"{self.multiplier:.3g}",
            f"{noise:.2g}",
        )
        note = (
            f"{self.steps} steps over batches of about {self.batch}. Price: {self.price}. About "
            f"{self.how_many} like this fit in what is left."
        )
        header = ("units", "weights", "noise / row", "noise of a mean gradient / clip")
        return Summary("Preview of network", header, (cells,), (note,))


def network_preview(
    session: Session,
    formula: str,
    *,
    spend: Guarantee,
    assume: Assumptions,
    level: float,
    hidden: tuple[int, ...] = (32,),
    solver: SGD | None = None,
    activation: str = "relu",
    clip: float = 1.0,
    where: Where | None = None,
) -> NetworkPreview:
    """The forecast of dp.network."""
    chosen, public = SGD() if solver is None else solver, session.public
    model, shape = network_model(public.schema, formula, hidden, activation, where)
    regression = Regression(session, model, "network", spend, "preview")
    mu_squared, delta = _budget(regression, chosen)
    _clip(clip)
    rows = public.rows if public.rows is not None else assume.rows
    if rows is None:
        raise InvalidParameter(
            "preview",
            "the number of rows is private here",
            "the share of the rows in a batch decides the noise",
            "pass assume=dp.Assumptions(rows=…) with your own guess",
        )
    batches = batches_of(public, chosen, float(rows))
    multiplier = sgd_multiplier(mu_squared, delta, batches.rate, batches.scheme, chosen.steps)
    price = price_of_spend(spend, box=session.ledger.box, delta=delta)
    return NetworkPreview(
        shape,
        multiplier,
        batches.size,
        chosen.steps,
        str(price),
        session.ledger.how_many(price),
    )
