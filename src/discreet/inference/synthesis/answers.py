"""Answers from released tables: estimates with intervals that hold whether or not the model does,
and, so marked, answers under the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, stdtrit

from discreet import plain
from discreet.inference.results.laws import Array
from discreet.inference.results.named import Entry, Name, NamedVector, is_name, place_of_name
from discreet.inference.results.results import _frame, checked_level, checked_target
from discreet.inference.results.summary import SHOWN_CELLS, Summary, number_text
from discreet.inference.results.told import Told, answers_line, share_text

UNDER_MODEL = (
    "UNDER THE MODEL: no released table holds these columns together. The numbers are the fitted "
    "model's, their spread that of refits; they may be wrong by more than any interval says."
)


@dataclass(frozen=True)
class Variances:
    """The two parts of an estimate's covariance; `degrees` of freedom where they were estimated
    from refits, and the number of rows behind shares, whose sampling error Wilson's centre gives.
    """

    sampling: Array
    privacy: Array
    degrees: int | None = None
    wilson: Array | None = None


@dataclass(frozen=True, slots=True, repr=False)
class TablesAnswer(Told):
    """Estimates of one question; see `params`, `std_errors`, `confidence_interval`, `summary`,
    `to_frame`, `plot`.

    *Method.*   Best unbiased tables and one-step estimating equations (docs/theory/synthesis.md);
                sampling variances of shares at Wilson's centre.
    *Validity.* Asymptotically normal whether or not the model is right, where the noise of a
                table's cells is small beside the number of rows. `under_model` answers have no such
                promise, and say so.
    """

    title: str
    names: tuple[Name, ...]
    values: Array
    variances: Variances
    bounds: tuple[float, float] = (-np.inf, np.inf)
    notes: tuple[str, ...] = ()
    under_model: bool = False
    head: tuple[str, ...] = field(default=("",))

    @property
    def unprojected(self) -> NamedVector:
        """The estimates as the tables give them: noise may carry them out of range."""
        return NamedVector(self.values, self.names)

    @property
    def params(self) -> NamedVector:
        """The estimates by name or position, within the range of what they estimate."""
        return NamedVector(np.clip(self.values, *self.bounds), self.names)

    @property
    def estimate(self) -> float:
        """The first estimate: of a question about one number, the answer."""
        return float(self.params[0])

    @property
    def std_errors(self) -> NamedVector:
        """Standard errors, sampling and privacy together."""
        return NamedVector(np.sqrt(sum(self._parts(0.95))), self.names)

    @property
    def sampling_errors(self) -> NamedVector:
        """Standard errors of sampling alone."""
        return NamedVector(np.sqrt(self._parts(0.95)[0]), self.names)

    @property
    def privacy_errors(self) -> NamedVector:
        """Standard errors of privacy alone: what noise costs."""
        return NamedVector(np.sqrt(self._parts(0.95)[1]), self.names)

    @property
    def noise_share(self) -> NamedVector:
        """The share of each variance that privacy cost."""
        sampling, privacy = self._parts(0.95)
        return NamedVector(privacy / np.maximum(sampling + privacy, 1e-300), self.names)

    @plain.called
    def confidence_interval(
        self, level: float = 0.95, *, target: str = "population"
    ) -> npt.NDArray[np.float64]:
        """Intervals, of shape (estimates, 2): for the population, or for the data set itself
        (``target="data"``: privacy error alone).
        """
        level = checked_level(level)
        sampling, privacy = self._parts(level)
        variance = privacy + (sampling if checked_target(target) == "population" else 0.0)
        half = self._quantile(level) * np.sqrt(variance)
        ends = np.stack([self.values - half, self.values + half], axis=1)
        return np.clip(ends, *self.bounds)

    def entry(self, name: Any, level: float = 0.95) -> Entry:
        """One estimate, by name or position."""
        place = place_of_name(name, self.names) if is_name(name) else range(len(self.names))[name]
        low, high = self.confidence_interval(level)[place]
        return Entry(
            self.names[place],
            self.title,
            float(self.params[place]),
            float(low),
            float(high),
            level,
            float(self.std_errors[place]),
            float(self.noise_share[place]),
            float(self.values[place]),
        )

    def __getitem__(self, name: Any) -> Entry:
        return self.entry(name)

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Tidy rows, one an estimate."""
        ends = self.confidence_interval(level)
        return [
            {
                **dict(zip(self.head, _parts_of(name), strict=True)),
                "estimate": float(self.params[place]),
                "std_error": float(self.std_errors[place]),
                "sampling_error": float(self.sampling_errors[place]),
                "privacy_error": float(self.privacy_errors[place]),
                "low": float(ends[place, 0]),
                "high": float(ends[place, 1]),
                "noise_share": float(self.noise_share[place]),
            }
            for place, name in enumerate(self.names)
        ]

    def to_frame(self, level: float = 0.95, *, backend: str = "pandas") -> Any:
        """The tidy rows as a data frame (`backend` is pandas, polars or pyarrow)."""
        records = self.records(level)
        return _frame({name: [one[name] for one in records] for name in records[0]}, backend)

    def summary(self, level: float = 0.95) -> Summary:
        """A table to print; renders in a notebook too."""
        level = checked_level(level)
        records = self.records(level)
        header = (*self.head, "estimate", "std. error", f"{100 * level:g}% interval", "noise %")
        rows = tuple(
            (
                *_parts_of(name),
                number_text(record["estimate"], record["std_error"]),
                number_text(record["std_error"], record["std_error"]),
                _ends_text(record),
                f"{100 * record['noise_share']:.0f}",
            )
            for name, record in list(zip(self.names, records, strict=True))[:SHOWN_CELLS]
        )
        more = len(records) - len(rows)
        cut = (f"The first {len(rows)} of {len(records)}; to_frame() has all.",) if more else ()
        return Summary(self.title, header, rows, (*self._marked(), *self.notes, *cut))

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: estimates, the share of noise, what they are about."""
        entries = [self.entry(place) for place in range(len(self.names))]
        told = (*self._marked(), *self.notes, "")
        shares = f"{share_text(self.noise_share)}".capitalize()
        return answers_line(self.title, entries, many=len(entries) > 1), f"{shares}.", told[0]

    def plot(
        self,
        level: float = 0.95,
        *,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """The estimates with their intervals; saved if a path is given."""
        from discreet.plots.synthetic.tables import plot_answer

        return plot_answer(self, checked_level(level), ax=ax, title=title, path=path)

    def _marked(self) -> tuple[str, ...]:
        return (UNDER_MODEL,) if self.under_model else ()

    def _quantile(self, level: float) -> float:
        if self.variances.degrees is None:
            return float(ndtri(0.5 + level / 2))
        return float(stdtrit(self.variances.degrees, 0.5 + level / 2))

    def _parts(self, level: float) -> tuple[Array, Array]:
        """(sampling, privacy) variances of an interval at a level."""
        sampling, privacy = _diagonal(self.variances.sampling), _diagonal(self.variances.privacy)
        if self.variances.wilson is not None:
            squared = self._quantile(level) ** 2
            rows = np.maximum(self.variances.wilson, 1.0)
            share = np.clip(self.values, 0.5 / rows, 1 - 0.5 / rows)
            centre = (rows * share + squared / 2) / (rows + squared)
            sampling = sampling * (centre * (1 - centre) / rows)  # sampling: rows of a unit alike
        return np.maximum(sampling, 0.0), np.maximum(privacy, 0.0)


class TablesFit(TablesAnswer):
    """Coefficients of a regression from released tables: as `TablesAnswer`, with z and p."""

    __slots__ = ()

    @property
    def covariance(self) -> Array:
        """Of the coefficients, sampling and privacy together."""
        return self.variances.sampling + self.variances.privacy

    @property
    def z(self) -> NamedVector:
        """Estimates over their standard errors."""
        return NamedVector(self.values / np.maximum(self.std_errors, 1e-300), self.names)

    @property
    def p_values(self) -> NamedVector:
        """Two-sided p-values of coefficients being 0."""
        return NamedVector(2 * ndtr(-np.abs(self.z)), self.names)

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Tidy rows, one a coefficient."""
        return [
            {**record, "z": float(self.z[place]), "p_value": float(self.p_values[place])}
            for place, record in enumerate(TablesAnswer.records(self, level))
        ]

    def summary(self, level: float = 0.95) -> Summary:
        """Coefficients, their standard error and its two parts, z, p, interval, share of noise."""
        level = checked_level(level)
        header = (
            *("", "coef", "std err", "sampling", "privacy", "z", "p"),
            *(f"{100 * level:g}% interval", "noise %"),
        )
        rows = []
        for record in self.records(level):
            error = record["std_error"]
            parts = ("estimate", "std_error", "sampling_error", "privacy_error")
            rows.append(
                (
                    record["coefficient"],
                    *(number_text(record[part], error) for part in parts),
                    f"{record['z']:.2f}",
                    "<.001" if record["p_value"] < 0.001 else f"{record['p_value']:.3f}",
                    _ends_text(record),
                    f"{100 * record['noise_share']:.0f}",
                )
            )
        return Summary(self.title, header, tuple(rows), (*self._marked(), *self.notes))


def _diagonal(covariance: Array) -> Array:
    return np.diag(covariance) if covariance.ndim == 2 else covariance


def _parts_of(name: Name) -> tuple[str, ...]:
    return (name,) if isinstance(name, str) else name


def _ends_text(record: dict[str, Any]) -> str:
    ends = (number_text(record[end], record["std_error"]) for end in ("low", "high"))
    return " … ".join(ends)
