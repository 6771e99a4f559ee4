"""Noisy stochastic gradient descent for a regression: one release, charged (μ, δ₀) by its privacy
loss distribution (reference.md E3, E8).

Batches are Poisson samples under AddRemove and of a fixed size under row-level Replace; sums are
divided by a public number of rows. Huber's scale is found first, by a few full gradients whose
scale rides along.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.calibration.sgd import sgd_multiplier
from discreet.accounting.guarantees import GDP, ApproxDP, Guarantee
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter, NoTheorem, cluster
from discreet.exact import float_up, rational, sqrt_up
from discreet.models.preconditioned import Descent
from discreet.models.solvers import SGD
from discreet.neighbors import Replace
from discreet.specs.estimating.batches import (
    BETA_BITS,
    ETA_BITS,
    LARGEST_BETA,
    SUM_BITS,
    SampledGradients,
)
from discreet.specs.estimating.components import RESPONSE_BITS
from discreet.specs.estimating.families import Family
from discreet.specs.estimating.model import Point
from discreet.specs.estimating.tables import GRID
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.trusted.extensions.sgd.loss import poisson_rate
from discreet.trusted.release import PublicFacts, Question, Step

if TYPE_CHECKING:
    from discreet.models.classical import ClassicalSteps

SCALE_STEPS = 5
SCALE_SHARE = Fraction(1, 10)
SMALLEST_BATCH, BATCHES = 256, 20


def needed_delta(session: Session, solver: SGD, spend: Guarantee) -> Fraction:
    """δ₀ as given or a tenth of an (ε, δ) spend's own;
    refused, from public facts, where sampling has no theorem.
    """
    require_sampling(session)
    if solver.delta is not None:
        delta = rational(solver.delta, "delta")
        if not Fraction(1, 10**15) <= delta < Fraction(1, 10):
            raise InvalidParameter(
                "delta=",
                "it is not between 1e-15 and 0.1",
                "a loss distribution is truncated where it has become this unlikely",
                "use one far below one over the number of people, for example 1e-8",
            )
        return delta
    if isinstance(spend, ApproxDP):
        return rational(spend.delta, "delta") / 10
    raise InvalidParameter(
        "delta=",
        "none was given for sampled steps",
        "sampled steps are priced by their loss distribution, whose far tail is only known to be "
        "rare",
        "pass solver=dp.SGD(delta=1e-8), or spend dp.ApproxDP(epsilon, delta)",
    )


def require_sampling(session: Session) -> None:
    """Refuses, from public facts, relations and data sets for which sampling has no theorem."""
    if getattr(session, "sums_only", False):
        raise cluster.rows_stay()
    neighbors = session.public.neighbors
    if neighbors.unit is not None or neighbors.rows != 1:
        raise NoTheorem(
            "batches of rows, of units with several rows",
            f"the relation is {neighbors}",
            "batches sample rows one by one, and a unit's rows would be in them more often than "
            "one row is",
            "fit a regression by solver=None, 'gradient' or 'newton', which read all rows",
        )
    if session.public.rows == 0:
        raise InvalidParameter(
            "batches of rows",
            "the data set has no rows",
            "batches of a fixed size are drawn from them",
            "fit a regression by solver=None, which answers for an empty data set too",
        )


@dataclass(frozen=True, slots=True)
class Batches:
    """How rows are sampled, from public numbers: about `size` of `rows`, Poisson with `gap` where
    rows come and go, else exactly so many.
    """

    rows: int
    size: int
    gap: Fraction | None

    @property
    def rate(self) -> float:
        """The share of the rows in a batch, rounded up."""
        if self.gap is None:
            return float_up(Fraction(self.size, self.rows))
        return poisson_rate(self.gap)

    @property
    def scheme(self) -> str:
        return "fixed" if self.gap is None else "poisson"

    @property
    def fixed(self) -> int | None:
        """The size of a batch where it is fixed."""
        return self.size if self.gap is None else None


def batches_of(public: PublicFacts, solver: SGD, rows: float) -> Batches:
    """Batches of a solver, for a public or released number of rows."""
    known = max(1, public.rows) if public.rows is not None else int(max(1.0, rows))
    usual = max(1, min(max(SMALLEST_BATCH, known // BATCHES), known // 4))
    size = min(known, usual if solver.batch is None else solver.batch)
    fixed = isinstance(public.neighbors, Replace)
    return Batches(known, size, None if fixed else Fraction(float_up(_gap(size, known))))


def run_sgd(
    descent: ClassicalSteps, here: Descent, solver: SGD, share: Fraction, delta: Fraction
) -> tuple[Descent, int, int]:
    """Asks for the descent; gives its estimate,
    the batch size and how many iterates were averaged.
    """
    if descent.family.residual:
        here = descent.gradients(
            here,
            1 / descent.largest,
            [Step("scale", number + 1) for number in range(SCALE_STEPS)],
            SCALE_SHARE,
        )
        share -= SCALE_SHARE
    fitting, public = descent.fitting, descent.fitting.public
    batches = batches_of(public, solver, descent.rows)
    point = grid_point(descent.family, here)
    query = SampledGradients(
        fitting.model,
        descent.metric,
        descent.family,
        point,
        fitting.optional,
        public.rows if batches.gap is None else None,
    )
    sensitivity = query.sensitivity(public.neighbors)
    mu_squared = fitting.mu_squared * share
    multiplier = sgd_multiplier(mu_squared, delta, batches.rate, batches.scheme, solver.steps)
    spread = Fraction(float_up(sqrt_up(sensitivity.moved_squared * Fraction(multiplier) ** 2)))
    # of a batch, on average
    counted = batches.size * min(1.0, max(1.0, descent.rows) / batches.rows)
    move = solver.step_size / descent.largest * here.sigma * 2.0 ** (BETA_BITS - SUM_BITS) / counted
    averaged = max(1, solver.steps // 2)
    mechanism = NoisySGD(
        sensitivity,
        spread,
        batches.gap,
        batches.fixed,
        solver.steps,
        move,
        point.beta,
        LARGEST_BETA,
        -(-solver.steps // solver.shown),
        averaged,
        delta,
    )
    step, spend = Step("sgd"), GDP(float_up(sqrt_up(mu_squared)))
    question = Question(fitting.described(step), query, mechanism, spend, delta)
    release = fitting.asked(step, question)
    mean = np.array([float(value) for value in release.integers[-len(point.beta) :]]) / (
        1 << BETA_BITS
    )
    return Descent(mean, here.sigma), batches.size, averaged


def grid_point(family: Family, here: Descent) -> Point:
    """Coefficients on the fixed grid of a descent, and the scale."""
    beta = here.beta * min(1.0, 4000.0 / max(float(np.abs(here.beta).sum()), 1e-300))
    whole = tuple(int(value) for value in np.rint(beta * (1 << BETA_BITS)))
    if family.residual:
        bits = ETA_BITS - RESPONSE_BITS
        return Point(whole, bits, GRID / (here.sigma * 2.0**RESPONSE_BITS * 2.0**bits))
    return Point(whole, ETA_BITS, GRID / 2.0**ETA_BITS)


def _gap(batch: int, rows: int) -> Fraction:
    """The gap whose rate 1 − exp(−1/gap) is batch/rows, at most 1 − e⁻⁸."""
    if batch >= rows:
        return Fraction(1, 8)
    return Fraction(max(1 / 8, -1 / math.log1p(-batch / rows)))
