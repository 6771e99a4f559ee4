"""Results: frozen, publishable, and functions of a Release alone.

Every result knows its estimates, standard errors, how much of each variance is sampling and how
much is privacy, and intervals at any level for the population (default) or for the data set itself
(``target="data"``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.accounting import statement
from discreet.errors import DiscreetError, InvalidParameter, MissingExtra, shown
from discreet.exact import rational
from discreet.inference.results.laws import Array
from discreet.inference.results.named import Entry, Name, NamedVector, is_name, place_of_name
from discreet.inference.results.summary import Summary, summarise, title_of
from discreet.inference.results.told import Told, answers_line, named, share_text
from discreet.trusted.release import Release

Read = TypeVar("Read")
TARGETS = ("population", "data")
LOWEST_LEVEL, HIGHEST_LEVEL = Fraction(1, 10**4), 1 - Fraction(1, 10**9)


@dataclass(frozen=True)
class Quantity:
    """One estimated quantity in every cell, in the units of the data.

    Noise can carry an estimate out of the range of what it estimates (a share below 0, a mean above
    its column's bound), where its interval does not go. `estimate` is the nearest number of the
    interval, and `unprojected` what was given. Both follow from the release and public facts.
    """

    name: str
    estimate: Array
    low: Array
    high: Array
    sampling_variance: Array
    privacy_variance: Array
    unprojected: Array = field(init=False)

    def __post_init__(self) -> None:
        raw = np.asarray(self.estimate, dtype=float)
        inside = np.fmin(np.fmax(raw, self.low), self.high)
        object.__setattr__(self, "unprojected", raw)
        object.__setattr__(self, "estimate", np.where(np.isnan(raw), raw, inside))

    @property
    def std_error(self) -> Array:
        return np.asarray(np.sqrt(self.sampling_variance + self.privacy_variance))

    @property
    def noise_share(self) -> Array:
        """The share of the variance that privacy cost."""
        total = self.sampling_variance + self.privacy_variance
        known = np.where(np.isnan(total), np.nan, 0.0)
        return np.asarray(
            np.where(total > 0, self.privacy_variance / np.where(total > 0, total, 1.0), known)
        )


@dataclass(frozen=True, slots=True, repr=False)
class Result(Told):
    """An estimate with honest uncertainty; see `params`, `std_errors`, `confidence_interval`,
    `summary`, `to_frame`, `plot`; ``result["north"].interval`` is one cell's.

    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            result = dp.mean(session, "income", spend=dp.GDP(0.1))
            print(result.estimate, result.interval, result.noise_share)
            print(result.confidence_interval(0.99, target="data"))
            print(result.to_frame())
    See also. `dp.from_json`, `dp.Release`.
    """

    release: Release
    title: ClassVar[str] = ""
    about: ClassVar[str] = ""  # what the intervals contain, and when they are right

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        """All estimated quantities; the last one is the main one (`params`)."""
        raise NotImplementedError

    @property
    def labels(self) -> list[tuple[str, ...]]:
        """The label of every cell, one part for each key."""
        return (
            list(itertools.product(*self.release.description.labels))
            if self.release.description.labels
            else [()]
        )

    def _named(self, values: Array) -> NamedVector:
        asked = self.release.description
        return NamedVector(values, named(self.labels, asked.column or asked.estimator))

    @property
    def params(self) -> NamedVector:
        """The estimates, one for each cell, by name or position; each within its interval at
        0.95, and so within the range of what it estimates.
        """
        return self._named(self._main().estimate)

    @property
    def unprojected(self) -> NamedVector:
        """The estimates before they were projected: noise may have carried them out of range.
        Sums and means of several are unbiased, where those of `params` are not.
        """
        return self._named(self._main().unprojected)

    def entry(
        self,
        name: Any,
        level: float = 0.95,
        *,
        target: str = "population",
        quantity: str | None = None,
    ) -> Entry:
        """One cell's estimate and interval, by name or position; of the main quantity, or of
        another that the table shows.
        """
        found = self.quantities(checked_level(level), target=checked_target(target))
        names = [one.name for one in found]
        if quantity is not None and quantity not in names:
            raise InvalidParameter(
                "quantity=",
                f"{shown(quantity)} is none of this result",
                "a result has one estimate of each of its quantities in a cell",
                f"pass one of {', '.join(names)}",
            )
        one = found[-1 if quantity is None else names.index(quantity)]
        return entry_of(one, self.params.names, name, level)

    def __getitem__(self, name: Any) -> Entry:
        return self.entry(name)

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: estimates with their intervals, what they cost, what was asked."""
        release, main = self.release, self._main()
        asked, names = release.description, self.params.names
        entries = (entry_of(main, names, place, 0.95) for place in range(len(names)))
        rows = "rows" if release.neighbors.unit is None else "units"
        count = "" if release.public_count is None else f"; {release.public_count} {rows} (public)"
        where = f" where {asked.where}" if asked.where else ""
        of = title_of(self).removeprefix(self.title)
        secure = "" if release.secure else " NOT PRIVATE: seeded test noise."
        secure += " MADE-UP DATA." if release.made_up else ""
        what = f"{title_of(self)}{f', {main.name}' if len(names) != 1 else ''}"
        return (
            answers_line(what, entries, many=len(names) != 1),
            f"Privacy: {self._cost()}, neighbours {release.neighbors}; "
            f"{share_text(main.noise_share)}.{secure}",
            f"Asked: {asked.estimator}{of}{where}{count}. summary() says more.",
        )

    def _cost(self) -> str:
        return statement.cost(self.release.spend, self.release.guarantee)

    @property
    def estimate(self) -> float:
        """The estimate, where there is just one."""
        return self._only("estimate").estimate

    @property
    def std_error(self) -> float:
        """The standard error, sampling and privacy together, where there is just one estimate."""
        return self._only("std_error").std_error

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the population, where there is just one estimate; others:
        `confidence_interval`.
        """
        return self._only("interval").interval

    def _only(self, asked: str) -> Entry:
        size = self.params.size
        if size != 1:
            raise InvalidParameter(
                asked,
                f"this result has {size} cells",
                "one number was asked for",
                "use params, to_frame() or summary()",
            )
        return self.entry(0)

    @property
    def std_errors(self) -> NamedVector:
        """Standard errors, sampling and privacy together."""
        return self._named(self._main().std_error)

    @property
    def noise_share(self) -> NamedVector:
        """The share of each variance that privacy cost."""
        return self._named(self._main().noise_share)

    @plain.called
    def confidence_interval(
        self, level: float = 0.95, *, target: str = "population"
    ) -> npt.NDArray[np.float64]:
        """Intervals as an array of shape (cells, 2).

        ``target="population"`` contains sampling and privacy error; ``target="data"`` is for the
        same statistic of the data set itself, so it contains privacy error alone.
        """
        main = self._main(level, target)
        return np.stack([main.low, main.high], axis=1)

    @plain.called
    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print; renders in a notebook too."""
        return summarise(self, checked_level(level), checked_target(target))

    @plain.called
    def to_frame(
        self, level: float = 0.95, *, target: str = "population", backend: str = "pandas"
    ) -> Any:
        """A tidy data frame: one row a cell and quantity (`backend` is pandas, polars or
        pyarrow).
        """
        records = self.records(level, target=target)
        columns = {name: [record[name] for record in records] for name in records[0]}
        return _frame(columns, backend)

    def records(self, level: float = 0.95, *, target: str = "population") -> list[dict[str, Any]]:
        """The tidy rows as dictionaries."""
        names = self.release.description.by
        rows: list[dict[str, Any]] = []
        for quantity in self.quantities(checked_level(level), target=checked_target(target)):
            for cell, label in enumerate(self.labels):
                row: dict[str, Any] = dict(zip(names, label, strict=True))
                row |= {
                    "quantity": quantity.name,
                    "estimate": float(quantity.estimate[cell]),
                    "std_error": float(quantity.std_error[cell]),
                    "low": float(quantity.low[cell]),
                    "high": float(quantity.high[cell]),
                    "noise_share": float(quantity.noise_share[cell]),
                }
                rows.append(row)
        return rows

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return self.release.to_json()

    def plot(
        self,
        level: float = 0.95,
        *,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """A matplotlib figure of the estimates with their intervals, which notebooks show; saved
        if a path is given. With `ax` it is drawn there, and `ax` is given back.
        """
        from discreet.plots.results import plot_result

        return plot_result(self, checked_level(level), ax=ax, title=title, path=path)

    def _main(self, level: float = 0.95, target: str = "population") -> Quantity:
        return self.quantities(checked_level(level), target=checked_target(target))[-1]


def entry_of(quantity: Quantity, names: tuple[Name, ...], key: Any, level: float) -> Entry:
    """One cell of a quantity, by name or position."""
    place = place_of_name(key, names) if is_name(key) else range(len(names))[key]
    numbers = (
        quantity.estimate,
        quantity.low,
        quantity.high,
        quantity.std_error,
        quantity.noise_share,
        quantity.unprojected,
    )
    estimate, low, high, error, share, raw = (float(one[place]) for one in numbers)
    return Entry(names[place], quantity.name, estimate, low, high, level, error, share, raw)


def checked_level(level: object) -> float:
    number = rational(level, "level")
    if not LOWEST_LEVEL <= number <= HIGHEST_LEVEL:
        raise InvalidParameter(
            "level",
            f"it is not between {float(LOWEST_LEVEL):g} and 1 − 1e-9",
            "it is a probability of coverage, and beyond these the tails are not computed",
            "pass for example 0.95",
        )
    return float(number)


def checked_target(target: object) -> str:
    if target not in TARGETS:
        raise InvalidParameter(
            "target=",
            "neither 'population' nor 'data'",
            "it decides whether sampling error belongs in the interval",
            "pass target='population' or target='data'",
        )
    return str(target)


def _frame(columns: dict[str, list[Any]], backend: str) -> Any:
    try:
        if backend == "pandas":
            import pandas

            return pandas.DataFrame(columns)
        if backend == "polars":
            import polars

            return polars.DataFrame(columns)
        if backend == "pyarrow":
            import pyarrow

            return pyarrow.table(columns)
    except ImportError:
        raise MissingExtra(backend, "files" if backend == "pyarrow" else "", "to_frame") from None
    raise InvalidParameter(
        "backend=",
        f"{backend!r} is not known",
        "frames come from another library",
        "pass 'pandas', 'polars' or 'pyarrow', or use records()",
    )


def has_own_releases(result: Any) -> bool:
    """Whether what a result was computed from is releases, and nothing was put in their place."""
    held = getattr(result, "releases", None)
    return type(held) is tuple and bool(held) and all(type(one) is Release for one in held)


def read_of(read: Callable[[], Read]) -> Read:
    """What is computed from a result that a caller hands in; a result that was changed is refused
    in words.
    """
    try:
        return read()
    except DiscreetError:
        raise
    except Exception:  # whatever was put in place of its parts
        raise InvalidParameter(
            "a result",
            "its parts do not fit together",
            "what is asked about it is computed from its releases",
            "pass what a function of this package returned, unchanged",
        ) from None
