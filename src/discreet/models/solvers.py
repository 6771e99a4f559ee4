"""Which of the classical solvers a regression uses, with public numbers that are checked before
anything is spent (reference.md G3–G5, E8).

    solver="gradient"        dp.GradientDescent()         noisy gradient descent
    solver="newton"          dp.Newton()                  noisy Newton, full steps
    solver="damped newton"   dp.Newton(12, damping=0.5)   noisy Newton, half steps
    solver="sgd"             dp.SGD()                     noisy stochastic gradient descent
    solver=None              Algorithm A (discreet.models.preconditioned),
                             the default and the most accurate

Gradient descent and Newton go in columns made white by the metric that Algorithm A learns, SGD in
columns as their declared ranges scale them. Weights are min(1, R²/‖z‖²) with a public `radius` R
(None: Algorithm A's rule; SGD: `plain_radius`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet import plain
from discreet.errors import DiscreetError, InvalidParameter, shown
from discreet.inference.regression.fit import HOPELESS_INDEX
from discreet.specs.estimating.components import LevelComponent
from discreet.specs.estimating.model import Model
from discreet.specs.mechanisms.sgd import LARGEST_PURE, LAWS

LARGEST_STEPS = 2000
LARGEST_SGD_STEPS = 200_000
# gradient descent's own choices: what is left of the start, the largest step, and K = 14 + 2 ln n
LEFT_OF_START, LARGEST_PACE, FIRST_STEPS, MOST_ROWS = 1e-4, 0.7, 14, 1e14
MAY_BE_LEFT = 0.05  # of the start, above which a solver says that it may not converge
USUAL_SQUARE = 1 / 16  # the mean square of a column that is declared as ±4 standard deviations
# the mean square, and the mean size, of a column that is uniform on its range
NUMBER_SHARE, NUMBER_SIZE = 1 / 3, 1 / 2


def _whole(name: str, value: object, most: int) -> None:
    if type(value) is not int or not 1 <= value <= most:
        raise InvalidParameter(
            f"{name}=",
            f"{shown(value)} is not a whole number from 1 to {most}",
            "every step is paid for",
            f"pass for example {name}={min(100, most)}",
        )


def _between(
    name: str, value: object, low: float, high: float, why: str, *, closed: bool = False
) -> None:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not (low < value < high or (closed and value == high))
    ):
        raise InvalidParameter(
            f"{name}=",
            f"{shown(value)} is not between {low:g} and {high:g}",
            why,
            f"leave it out, or pass {name}={(low + high) / 2:g}",
        )


def _radius(value: object) -> None:
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, (int, float)) or not 2.0**-6 <= value <= 64
    ):
        raise InvalidParameter(
            "radius=",
            f"{shown(value)} is not between 1/64 and 64",
            "it bounds what one row adds, in units of the columns as the solver scales them",
            "leave it out, or use about the square root of the number of columns",
        )


@plain.kept()
@dataclass(frozen=True, slots=True)
class GradientDescent:
    """θ ← θ − ησ(mean gradient + noise), `steps` times, in white columns; η = step_size/h, h the
    curvature that white columns have (reference.md G3, G4).

    `steps` None is 14 + 2 ln n. `step_size` None is the one that leaves 1e-4 of the way from the
    start, at most 0.7.

    Example.
            session = dp.load_census().open(budget=dp.GDP(2))
            fit = dp.ols(session, "income ~ age", solver=dp.GradientDescent(), spend=dp.GDP(1))
            print(fit.summary())
    See also. `dp.Newton`, `dp.SGD`; docs/theory/classical-solvers.md.
    """

    steps: int | None = None
    step_size: float | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        if self.steps is not None:
            _whole("steps", self.steps, LARGEST_STEPS)
        if self.step_size is not None:
            _between(
                "step_size",
                self.step_size,
                0.0,
                2.0,
                "steps of 2 or more over the curvature need not converge",
            )
        _radius(self.radius)

    def steps_for(self, rows: float) -> int:
        """K: as given, else in proportion to the logarithm of the number of rows."""
        if self.steps is not None:
            return self.steps
        return FIRST_STEPS + math.ceil(2 * math.log(min(max(rows, 1.0), MOST_ROWS)))

    def pace(self, steps: int) -> float:
        """What share of the way to the solution a step goes, where curvature is as expected."""
        if self.step_size is not None:
            return float(self.step_size)
        return min(LARGEST_PACE, 1 - float(LEFT_OF_START ** (1 / steps)))


@plain.kept()
@dataclass(frozen=True, slots=True)
class Newton:
    """θ ← θ − ησH̃⁻¹(mean gradient + noise) with a fresh noisy curvature H̃ a step, in white
    columns; damping η = 1 is pure (reference.md G5).

    Example.
            session = dp.load_census().open(budget=dp.GDP(2))
            fit = dp.ols(session, "income ~ age", solver=dp.Newton(steps=4), spend=dp.GDP(1))
            print(fit.summary())
    See also. `dp.GradientDescent`, `dp.ols`; docs/theory/classical-solvers.md.
    """

    steps: int = 6
    damping: float = 1.0
    radius: float | None = None

    def __post_init__(self) -> None:
        _whole("steps", self.steps, LARGEST_STEPS // 10)
        _between(
            "damping", self.damping, 0.0, 1.0, "Newton steps are damped, not stretched", closed=True
        )
        _radius(self.radius)

    def steps_for(self, rows: float) -> int:
        """K, whatever the number of rows."""
        return self.steps

    def pace(self, steps: int) -> float:
        """What share of the way to the solution a step goes."""
        return float(self.damping)


@plain.kept()
@dataclass(frozen=True, slots=True)
class SGD:
    """Noisy gradient steps over secret batches of about `batch` rows; the estimate is the mean of
    the last half of the iterates (reference.md E8).

    Batches are Poisson samples under AddRemove and have a fixed size under Replace. `delta` is δ₀
    (None: a tenth of an (ε, δ) spend's own). `batch` None is a twentieth of the rows, at least 256,
    at most a quarter of them. `law` "laplace" is for pure spends (reference.md E5): rows are
    weighed by min(1, R/‖x‖₁), and there is no δ₀.

    Example.
            session = dp.load_census().open(budget=dp.ApproxDP(epsilon=4, delta=1e-5))
            fit = dp.logistic(
                session,
                "sex ~ age",
                solver=dp.SGD(steps=400, batch=1024),
                spend=dp.ApproxDP(epsilon=3, delta=1e-6),
            )
            print(fit.summary())
    See also. `dp.network`, `dp.GradientDescent`, `dp.plan`.
    """

    steps: int = 1000
    batch: int | None = None
    step_size: float = 1.0
    delta: float | None = None
    radius: float | None = None
    shown: int = 50
    law: str = "gaussian"

    def __post_init__(self) -> None:
        if type(self.law) is not str or self.law not in LAWS:
            raise InvalidParameter(
                "law=",
                f"{shown(self.law)} is neither 'gaussian' nor 'laplace'",
                "the noise decides which spends a descent can keep to",
                "leave it out, or pass law='laplace' with spend=dp.PureDP(epsilon)",
            )
        pure = self.law == "laplace"
        _whole("steps", self.steps, LARGEST_PURE if pure else LARGEST_SGD_STEPS)
        if pure and self.delta is not None:
            raise InvalidParameter(
                "delta=",
                "Laplace noise needs none",
                "its steps are pure, and nothing fails",
                "leave delta= out, or law=",
            )
        _whole("shown", self.shown, 2000)
        if self.batch is not None:
            _whole("batch", self.batch, 1 << 30)
        _between(
            "step_size",
            self.step_size,
            0.0,
            2.0,
            "steps of 2 or more over the largest curvature need not converge",
        )
        _radius(self.radius)


class MayNotConverge(DiscreetError, UserWarning):
    """A solver may stop short of its solution, as public facts alone say: a warning in the four
    parts of an error, given before anything is spent.

    Example.
            import warnings

            session = dp.load_census().open(budget=dp.GDP(2))
            few = dp.GradientDescent(steps=2, step_size=0.1)
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                dp.ols(session, "income ~ age", solver=few, spend=dp.GDP(1))
            print(found[0].category.__name__)
    See also. `dp.GradientDescent`, `dp.Newton`.
    """


def convergence_doubt(
    solver: Solver, rows: float | None, noise_index: float | None, radius: float
) -> MayNotConverge | None:
    """Why a solver may not converge, from its own numbers, the public number of rows and the noise
    index (None: private), and the radius of its columns' weights; None where nothing speaks against
    it.
    """
    if isinstance(solver, SGD):
        return _sampled_doubt(solver, radius)
    steps = solver.steps_for(rows or 1.0)
    left = abs(1 - solver.pace(steps)) ** steps
    if left > MAY_BE_LEFT:
        return MayNotConverge(
            f"solver={solver}",
            f"{steps} steps of {solver.pace(steps):g} leave {100 * left:.0f} % of the way from "
            "the start",
            "the fit may not converge, and has no intervals then",
            "take more steps, or leave out the step size; solver=None needs neither",
        )
    if noise_index is not None and noise_index >= HOPELESS_INDEX:
        return MayNotConverge(
            f"solver={solver}",
            f"the noise index is {noise_index:.2g}, beyond {HOPELESS_INDEX:g}",
            "the columns' spread is lost in noise, so that steps are too short or too long: the "
            "fit may not converge, and has no intervals then, or very wide ones",
            "spend more, use fewer columns, or more rows",
        )
    return None


def _sampled_doubt(solver: SGD, radius: float) -> MayNotConverge | None:
    """The same of secret batches, whose columns are scaled by their ranges: along one that is
    declared as ±4 standard deviations a step goes the share step_size/(16·R²) of the way.
    """
    pace = min(1.0, solver.step_size * USUAL_SQUARE / radius**2)
    first = solver.steps - max(1, solver.steps // 2)  # the estimate is the mean from there on
    kept = 1 - pace
    left = kept * (kept**first - kept**solver.steps) / (pace * (solver.steps - first))
    if left <= MAY_BE_LEFT:
        return None
    return MayNotConverge(
        f"solver={solver}",
        f"{solver.steps} steps leave {100 * left:.0f} % of the way from the start along a column "
        "that is declared as ±4 standard deviations",
        "the fit may not converge, and has no intervals then",
        "take more steps, declare tighter ranges, or use solver=None, which learns its columns' "
        "spread",
    )


Solver = GradientDescent | Newton | SGD
SOLVERS: dict[str, Solver] = {
    "gradient": GradientDescent(),
    "newton": Newton(),
    "damped newton": Newton(12, damping=0.5),
    "sgd": SGD(),
}


def chosen_solver(solver: object) -> Solver | None:
    """The solver of a name, or as given; None is Algorithm A."""
    if solver is None or type(solver) in (GradientDescent, Newton, SGD):
        return solver  # type: ignore[return-value]
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]
    raise InvalidParameter(
        "solver=",
        f"{shown(solver)} is not known",
        "each has its own releases and its own inference",
        f"use one of {', '.join(map(repr, SOLVERS))}, or dp.GradientDescent, dp.Newton, dp.SGD; "
        "or leave it out for Algorithm A",
    )


def plain_radius(model: Model) -> float:
    """R with R² = the mean of ‖x‖² for columns that are uniform on their ranges: 1 for a constant
    and for every category, ⅓ for the rest.
    """
    return math.sqrt(_mean_size(model, NUMBER_SHARE))


def absolute_radius(model: Model) -> float:
    """R = the mean of ‖x‖₁ for such columns: ½ for those that are no categories."""
    return min(64.0, _mean_size(model, NUMBER_SIZE))


def _mean_size(model: Model, number: float) -> float:
    """The sum over the columns of 1 for a constant and a category, `number` for the rest."""
    constants = sum(not column.components for column in model.columns)
    categories = {
        column.components[0].column
        for column in model.columns
        if len(column.components) == 1 and isinstance(column.components[0], LevelComponent)
    }
    rest = sum(
        bool(column.components)
        and not all(isinstance(component, LevelComponent) for component in column.components)
        for column in model.columns
    )
    return max(1.0, constants + len(categories) + number * rest)
