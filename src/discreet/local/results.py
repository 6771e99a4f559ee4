"""What all results from reports share: the library's verbs over collected counts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.accounting.guarantees import Guarantee
from discreet.errors import InvalidParameter
from discreet.inference.results.named import Entry, NamedVector
from discreet.inference.results.null_law import chi_square_law
from discreet.inference.results.results import (
    Quantity,
    _frame,
    checked_level,
    checked_target,
    entry_of,
)
from discreet.inference.results.summary import SHOWN_CELLS, Summary, number_text
from discreet.inference.results.told import Told, answers_line, share_text
from discreet.local.collected import Collected
from discreet.trusted.losses.pricing import guarantee_of

Array = npt.NDArray[np.float64]
RESULT_FORMAT = "local result/1"
ALTERNATIVES = ("two-sided", "greater", "less")


@dataclass(frozen=True, slots=True)
class FitTest:
    """The answer of a test of all shares at once: X², its degrees of freedom and the p-value."""

    statistic: float
    freedom: int
    p_value: float

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """The null law with the observed value; the p-value is shaded."""
        from discreet.plots.nulls import plot_null

        law = chi_square_law(self.statistic, self.freedom) if self.freedom else None
        words = (self.p_value, "Shares from randomised reports", "other shares")
        return plot_null(law, *words, ax=ax, title=title, path=path)

    def __str__(self) -> str:
        return (
            f"X² = {self.statistic:.4g} on {self.freedom} degree{'s' if self.freedom != 1 else ''} "
            f"of freedom, p {'< 1e-15' if self.p_value < 1e-15 else f'= {self.p_value:.4g}'}"
        )


@dataclass(frozen=True, slots=True, repr=False)
class LocalResult(Told):
    """Estimates from randomised reports; see `params`, `std_errors`, `confidence_interval`,
    `summary`, `to_frame`, `plot`.
    """

    collected: Collected
    what: ClassVar[str] = ""
    title: ClassVar[str] = ""
    about: ClassVar[str] = ""

    @property
    def labels(self) -> list[str]:
        """One label for each estimate."""
        raise NotImplementedError

    def quantity(
        self,
        level: float = 0.95,
        *,
        target: str = "population",
        simultaneous: bool = False,
        method: str = "exact",
    ) -> Quantity:
        """Estimates, intervals and both variances."""
        raise NotImplementedError

    @property
    def unbiased(self) -> Array:
        """The unbiased estimates; they may lie outside their range."""
        raise NotImplementedError

    @property
    def unprojected(self) -> NamedVector:
        """The unbiased estimates, by name or position."""
        return NamedVector(self.unbiased, self.labels)

    @property
    def params(self) -> NamedVector:
        """The estimates, by name or position, each within its range and its interval."""
        return NamedVector(self.quantity().estimate, self.labels)

    @property
    def std_errors(self) -> NamedVector:
        """Standard errors, sampling and privacy together."""
        return NamedVector(self.quantity().std_error, self.labels)

    @property
    def noise_share(self) -> NamedVector:
        """The share of each variance that privacy cost (1 without reports)."""
        return NamedVector(_noise_share(self.quantity()), self.labels)

    def entry(self, name: Any, level: float = 0.95, *, target: str = "population") -> Entry:
        """One estimate with its interval, by name or position."""
        found = self.quantity(checked_level(level), target=checked_target(target))
        return entry_of(found, tuple(self.labels), name, level)

    def __getitem__(self, name: Any) -> Entry:
        return self.entry(name)

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: estimates with their intervals, what they cost, what was asked."""
        found, names = self.quantity(), tuple(self.labels)
        entries = (entry_of(found, names, place, 0.95) for place in range(len(names)))
        return (
            answers_line(self.title, entries, many=len(names) != 1),
            f"Privacy: {self.guarantee} for one report; {share_text(_noise_share(found))}.",
            f"Asked: {self.what} by {self.collected.spec.kind}; {self.collected.reports} reports. "
            "summary() says more.",
        )

    @property
    def guarantee(self) -> Guarantee:
        """What one report promises to the person who sent it."""
        return guarantee_of(self.collected.spec)

    def confidence_interval(
        self,
        level: float = 0.95,
        *,
        target: str = "population",
        simultaneous: bool = False,
        method: str = "exact",
    ) -> Array:
        """Intervals as an array of shape (estimates, 2), inside the parameter's range.

        ``target="data"`` is for the same statistic of the people who reported (privacy error
        alone); ``simultaneous=True`` covers all at once (Bonferroni); ``method="score"`` takes
        score intervals where exact ones are the default.
        """
        found = self.quantity(
            checked_level(level),
            target=checked_target(target),
            simultaneous=simultaneous,
            method=checked_method(method),
        )
        return np.stack([found.low, found.high], axis=1)

    def records(self, level: float = 0.95, *, target: str = "population") -> list[dict[str, Any]]:
        """The tidy rows as dictionaries."""
        found = self.quantity(checked_level(level), target=checked_target(target))
        columns = {
            "estimate": found.estimate,
            "std_error": found.std_error,
            "low": found.low,
            "high": found.high,
            "noise_share": _noise_share(found),
        }
        return [
            {"value": label} | {name: float(column[place]) for name, column in columns.items()}
            for place, label in enumerate(self.labels)
        ]

    def to_frame(
        self, level: float = 0.95, *, target: str = "population", backend: str = "pandas"
    ) -> Any:
        """A tidy data frame, one row an estimate (`backend` is pandas, polars or pyarrow)."""
        records = self.records(level, target=target)
        return _frame({name: [record[name] for record in records] for name in records[0]}, backend)

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print; renders in a notebook too."""
        rows = []
        for record in self.records(level, target=target)[:SHOWN_CELLS]:
            error = record["std_error"]
            interval = f"{number_text(record['low'], error)} … {number_text(record['high'], error)}"
            rows.append(
                (
                    record["value"],
                    number_text(record["estimate"], error),
                    number_text(error, error),
                    interval,
                    f"{100 * record['noise_share']:.0f}",
                )
            )
        return Summary(
            self.title,
            ("", self.what, "std. error", f"{100 * level:g}% interval", "noise %"),
            tuple(rows),
            self._notes(target),
        )

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
        from discreet.plots.results import plot_local

        return plot_local(self, checked_level(level), ax=ax, title=title, path=path)

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return json.dumps(
            {"discreet": RESULT_FORMAT, "what": self.what, "collected": self.collected.to_dict()}
        )

    def _notes(self, target: str) -> tuple[str, ...]:
        made = self.collected
        notes = [
            (
                f"{made.reports} reports ({made.spec.kind}); each was randomised on its device: "
                f"{self.guarantee} for one report. noise % is the share of the variance that "
                "privacy cost."
            ),
            self.about
            if target == "population"
            else "Intervals are for the people who reported: privacy error alone.",
        ]
        if made.invalid:
            notes.append(f"{made.invalid} invalid reports were counted and left out.")
        if len(self.labels) > SHOWN_CELLS:
            notes.append(
                f"The first {SHOWN_CELLS} of {len(self.labels)} values; to_frame() has all."
            )
        return tuple(notes)


def _noise_share(found: Quantity) -> Array:
    return (
        found.noise_share
        if np.all(np.isfinite(found.privacy_variance))
        else np.ones(found.privacy_variance.shape)
    )


def checked_method(method: object) -> str:
    if method not in ("exact", "score"):
        raise InvalidParameter(
            "method=",
            "neither 'exact' nor 'score'",
            "it decides how an interval is made",
            "pass method='exact' (covers at every share) or method='score'",
        )
    return str(method)


def checked_alternative(alternative: object) -> str:
    if alternative not in ALTERNATIVES:
        raise InvalidParameter(
            "alternative=",
            "it is not known",
            "it decides which side counts against the hypothesis",
            f"pass one of {', '.join(map(repr, ALTERNATIVES))}",
        )
    return str(alternative)
