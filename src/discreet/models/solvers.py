"""Which of the classical solvers a regression uses, with public numbers that are checked before
anything is spent (reference.md G3–G5, E8).

    solver="gradient"        dp.GradientDescent()         noisy gradient descent
    solver="newton"          dp.Newton()                  noisy Newton, full steps
    solver="damped newton"   dp.Newton(12, damping=0.5)   noisy Newton, half steps
    solver="sgd"             dp.SGD()                     noisy stochastic gradient descent
    solver=None              Algorithm A (discreet.models.preconditioned),
                             the default and the most accurate

Columns are scaled by their declared ranges, weights are min(1, R²/‖x‖²) with a fixed public
`radius` R (None: `plain_radius`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet import plain
from discreet.errors import InvalidParameter, shown
from discreet.specs.estimating.components import LevelComponent
from discreet.specs.estimating.model import Model
from discreet.specs.mechanisms.sgd import LARGEST_PURE, LAWS

LARGEST_STEPS = 2000
LARGEST_SGD_STEPS = 200_000
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
            "it bounds what one row adds, in half-ranges of the columns",
            "leave it out, or use about the square root of the number of columns",
        )


@plain.kept()
@dataclass(frozen=True, slots=True)
class GradientDescent:
    """θ ← θ − η(mean gradient + noise), `steps` times; η = step_size/λ, λ the largest curvature
    that the weights allow (reference.md G3, G4).
    """

    steps: int = 300
    step_size: float = 1.0
    radius: float | None = None

    def __post_init__(self) -> None:
        _whole("steps", self.steps, LARGEST_STEPS)
        _between(
            "step_size",
            self.step_size,
            0.0,
            2.0,
            "steps of 2 or more over the largest curvature need not converge",
        )
        _radius(self.radius)


@plain.kept()
@dataclass(frozen=True, slots=True)
class Newton:
    """θ ← θ − η·H̃⁻¹(mean gradient + noise) with a fresh noisy curvature H̃ a step;
    damping η = 1 is pure (reference.md G5).
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


@plain.kept()
@dataclass(frozen=True, slots=True)
class SGD:
    """Noisy gradient steps over secret batches of about `batch` rows; the estimate is the mean of
    the last half of the iterates (reference.md E8).

    Batches are Poisson samples under AddRemove and have a fixed size under Replace. `delta` is δ₀
    (None: a tenth of an (ε, δ) spend's own). `batch` None is a twentieth of the rows, at least 256,
    at most a quarter of them. `law` "laplace" is for pure spends (reference.md E5): rows are
    weighed by min(1, R/‖x‖₁), and there is no δ₀.
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
