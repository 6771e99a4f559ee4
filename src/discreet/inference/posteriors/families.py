"""Families of rows with a proper prior: what a posterior is about.

    BetaBinomial(column, prior=(a, b), level=None)    share of a level       θ ~ Beta(a, b)
    DirichletMultinomial(column, prior=1)             shares of all levels   θ ~ Dirichlet(prior)
    GammaPoisson(column, prior=(shape, rate))         Poisson counts         λ ~ Gamma(shape, rate)
    NormalModel(column, prior=None)                   normal numbers
        prior (mean, rows, shape, scale): variance ~ Inverse-Gamma(shape, scale),
        mean | variance ~ N(mean, variance/rows)
    LinearModel(formula, prior=None)                  y given x, (x, y) jointly normal
        prior (slope, place, spread, factor), see `LinearModel`

A prior is public: it is written down before anybody looks at the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter, shown

LARGEST_PRIOR, SMALLEST_PRIOR = 1e9, 1e-3
MOST_LEVELS = 1000
LINEAR_PRIOR = (1.0, 0.5, 0.25, 2.0)
_PROPER = "a posterior of a prior that is not proper need not exist, above all where noise is large"


@plain.kept()
@dataclass(frozen=True, slots=True)
class BetaBinomial:
    """The share θ of rows that are True (of a Boolean column) or have a level (of a Category one);
    θ ~ Beta(a, b), rows independent.

    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            family = dp.BetaBinomial("sex", prior=(5, 5), level="female")
            print(dp.posterior(session, family, spend=dp.GDP(0.2)))
    See also. `dp.posterior`, `dp.DirichletMultinomial`.
    """

    column: str
    prior: tuple[float, float] = (1.0, 1.0)
    level: Any = None
    kind: ClassVar[str] = "beta-binomial"

    def __post_init__(self) -> None:
        _named(self.column)
        object.__setattr__(self, "prior", _positive(self.prior, 2, "(a, b), for example (1, 1)"))
        if not isinstance(self.level, (str, int, bool, float, type(None))):
            raise InvalidParameter(
                "level=",
                f"{shown(self.level)} is no level",
                "a share is of one declared level",
                "pass a declared level of the column",
            )

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "column": self.column,
            "prior": list(self.prior),
            "level": self.level,
        }


@plain.kept()
@dataclass(frozen=True, slots=True)
class DirichletMultinomial:
    """The shares of all levels of a Category or Boolean column; θ ~ Dirichlet(prior), one number
    for every level or one for all of them.

    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.posterior(session, dp.DirichletMultinomial("region"), spend=dp.GDP(0.2)))
    See also. `dp.posterior`, `dp.BetaBinomial`.
    """

    column: str
    prior: float | tuple[float, ...] = 1.0
    kind: ClassVar[str] = "dirichlet-multinomial"

    def __post_init__(self) -> None:
        _named(self.column)
        wanted = "a positive number, or one for each level"
        if isinstance(self.prior, (list, tuple)):
            size = min(max(len(self.prior), 1), MOST_LEVELS)
            object.__setattr__(self, "prior", _positive(self.prior, size, wanted))
        else:
            object.__setattr__(self, "prior", _positive((self.prior,), 1, wanted)[0])

    def concentrations(self, levels: int) -> tuple[float, ...]:
        """One number for each level; refused where there are others."""
        if not isinstance(self.prior, tuple):
            return (self.prior,) * levels
        if len(self.prior) != levels:
            raise InvalidParameter(
                "prior=",
                f"{len(self.prior)} numbers for {levels} levels",
                "every declared level has a share",
                "pass one number for each declared level, in order, or one for all",
            )
        return self.prior

    def to_dict(self) -> dict[str, Any]:
        prior = list(self.prior) if isinstance(self.prior, tuple) else self.prior
        return {"kind": self.kind, "column": self.column, "prior": prior}


@plain.kept()
@dataclass(frozen=True, slots=True)
class GammaPoisson:
    """The rate λ of an Integer column whose rows are Poisson counts, clamped to the declared range;
    λ ~ Gamma(shape, rate), of mean shape/rate.

    Example.
            import numpy as np

            calls = np.random.default_rng(1).poisson(2.5, 3000)
            data = dp.from_arrays(
                {"calls": calls}, schema={"calls": dp.Integer(0, 12)}, neighbors=dp.Replace()
            )
            session = data.open(budget=dp.GDP(1))
            print(dp.posterior(session, dp.GammaPoisson("calls", prior=(2, 1)), spend=dp.GDP(0.5)))
    See also. `dp.posterior`, `dp.poisson`.
    """

    column: str
    prior: tuple[float, float] | None = None
    kind: ClassVar[str] = "gamma-poisson"

    def __post_init__(self) -> None:
        _named(self.column)
        wanted = "(shape, rate), for example (2, 1) for a rate of about 2"
        object.__setattr__(self, "prior", _positive(self.prior, 2, wanted))

    @property
    def shape_and_rate(self) -> tuple[float, float]:
        assert self.prior is not None  # refused above
        return self.prior

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "column": self.column, "prior": list(self.shape_and_rate)}


@plain.kept()
@dataclass(frozen=True, slots=True)
class NormalModel:
    """Mean and standard deviation of a number column whose rows are normal, clamped to the declared
    range. Without a prior: the middle of the range with the weight of a quarter of a row, and a
    variance of about a quarter of the squared half range, Inverse-Gamma(2, ·).

    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.posterior(session, dp.NormalModel("age"), spend=dp.GDP(0.3)))
    See also. `dp.posterior`, `dp.mean`.
    """

    column: str
    prior: tuple[float, float, float, float] | None = None
    kind: ClassVar[str] = "normal"

    def __post_init__(self) -> None:
        _named(self.column)
        if self.prior is None:
            return
        wanted = "(mean, rows, shape, scale), the last three positive"
        members = _numbers(self.prior, 4, wanted)
        if abs(members[0]) > 1e60 or members[3] <= 0 or members[3] > 1e120:
            raise _improper(self.prior, wanted)
        _positive(members[1:3], 2, wanted)
        object.__setattr__(self, "prior", members)

    def to_dict(self) -> dict[str, Any]:
        prior = None if self.prior is None else list(self.prior)
        return {"kind": self.kind, "column": self.column, "prior": prior}

    def in_half_ranges(self, center: float, half: float) -> tuple[float, float, float, float]:
        """The prior of (column − center)/half."""
        if self.prior is None:
            return 0.0, 0.25, 2.0, 0.25
        mean, rows, shape, scale = self.prior
        return (mean - center) / half, rows, shape, scale / half**2


@plain.kept()
@dataclass(frozen=True, slots=True)
class LinearModel:
    """Intercept, slopes and residual standard deviation of a line, where predictors and response
    are jointly normal: "y ~ x" or "y ~ a + b", number columns as they are.

    prior (slope, place, spread, factor), in half ranges of the columns (y per x for slopes):
    slopes ~ N(0, slope²); the predictors' means and the response at the middle of their ranges
    ~ N(0, place²); standard deviations (of predictors given those before them, and of residuals)
    log-normal with median `spread` and log-deviation ln `factor`; regressions of a predictor on
    those before it ~ N(0, 1). By default (1, 0.5, 0.25, 2).

    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.posterior(session, dp.LinearModel("income ~ age"), spend=dp.GDP(0.5)))
    See also. `dp.posterior`, `dp.ols`.
    """

    formula: str
    prior: tuple[float, float, float, float] | None = None
    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        if not isinstance(self.formula, str):
            raise InvalidParameter(
                "LinearModel",
                f"{shown(self.formula)} is no formula",
                "it names the response and its predictors",
                'pass for example dp.LinearModel("y ~ x")',
            )
        if self.prior is None:
            return
        wanted = "(slope, place, spread, factor), all positive and the factor above 1"
        prior = _positive(self.prior, 4, wanted)
        if not 1.01 <= prior[3] <= 1e3 or max(prior) > 1e3:
            raise _improper(self.prior, wanted)
        object.__setattr__(self, "prior", prior)

    @property
    def scales(self) -> tuple[float, ...]:
        """The prior's four numbers."""
        return LINEAR_PRIOR if self.prior is None else self.prior

    def to_dict(self) -> dict[str, Any]:
        prior = None if self.prior is None else list(self.prior)
        return {"kind": self.kind, "formula": self.formula, "prior": prior}


Family = BetaBinomial | DirichletMultinomial | GammaPoisson | NormalModel | LinearModel
FAMILIES: tuple[type[Any], ...] = (
    BetaBinomial,
    DirichletMultinomial,
    GammaPoisson,
    NormalModel,
    LinearModel,
)


def family_from_dict(record: dict[str, Any]) -> Family:
    """The family that `to_dict` wrote."""
    kinds = {kind.kind: kind for kind in FAMILIES}
    fields = {
        name: tuple(given) if isinstance(given, list) else given
        for name, given in record.items()
        if name != "kind"
    }
    made: Family = kinds[record["kind"]](**fields)
    return made


def require_family(family: object) -> Family:
    """`family` if it is one, else the error that shows how to write one."""
    if plain.among(type(family), FAMILIES):
        return family  # type: ignore[return-value]
    raise InvalidParameter(
        "family",
        f"a {plain.kind_name(family)} is none",
        "a posterior needs a law of rows and a prior",
        'pass for example dp.BetaBinomial("member", prior=(1, 1)) or dp.LinearModel("y ~ x")',
    )


def _named(column: object) -> None:
    if not isinstance(column, str):
        raise InvalidParameter(
            "a family's column",
            f"{shown(column)} is no name",
            "a family is about one declared column",
            'pass for example dp.NormalModel("age")',
        )


def _positive(given: object, size: int, wanted: str) -> tuple[Any, ...]:
    numbers = _numbers(given, size, wanted)
    if not all(SMALLEST_PRIOR <= number <= LARGEST_PRIOR for number in numbers):
        raise _improper(given, f"{wanted}, each from {SMALLEST_PRIOR:g} to {LARGEST_PRIOR:g}")
    return numbers


def _numbers(given: object, size: int, wanted: str) -> tuple[Any, ...]:
    if not isinstance(given, (list, tuple)) or len(given) != size:
        raise _improper(given, wanted)
    if any(isinstance(one, bool) or not isinstance(one, (int, float)) for one in given):
        raise _improper(given, wanted)
    numbers = tuple(plain.number(one, "prior=") for one in given)
    if not all(math.isfinite(number) for number in numbers):
        raise _improper(given, wanted)
    return numbers


def _improper(given: object, wanted: str) -> InvalidParameter:
    return InvalidParameter(
        "prior=", f"{shown(given)} is no proper prior", _PROPER, f"pass {wanted}"
    )
