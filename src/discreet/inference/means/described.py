"""The result of dp.describe: one table of many columns, from several releases."""

from __future__ import annotations

from math import ceil, floor
from typing import Any, ClassVar

import numpy as np

from discreet.inference.counts.missing import MissingResult
from discreet.inference.means.results import MeanResult
from discreet.inference.means.standard_deviations import StdResult
from discreet.inference.means.unbounded import Procedure
from discreet.inference.quantiles.quantiles import QuantilesResult
from discreet.inference.results.decode import as_kind
from discreet.inference.results.held import cautions, left_out
from discreet.inference.results.laws import Noise, half_width
from discreet.inference.results.results import Quantity, checked_level, checked_target
from discreet.inference.results.summary import Summary, value_text
from discreet.specs.queries.cell_states import STATES, CellStates

QUARTILES = (0.25, 0.5, 0.75)
LOCATED = ("mean", "lower quartile", "median", "upper quartile")  # dates where the column is
HEADS = {
    "n": "n",
    "missing": "missing",
    "mean": "mean",
    "standard deviation": "std. dev.",
    "lower quartile": "25%",
    "median": "50%",
    "upper quartile": "75%",
}
STEPS = 3  # releases of a column: mean, standard deviation, quartiles


class DescribeResult(Procedure):
    """n, missing cells, mean, standard deviation and quartiles of every column.

    *Method*, *Validity*: those of `dp.mean`, `dp.std`, `dp.quantiles` and `dp.missing`, each with
    its part of the spend; intervals are for one number at a time. n and missing are of this data
    set: rows with and without a readable value.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private description"
    about: ClassVar[str] = (
        "n, missing: of this data set, rows with and without a readable value. Intervals are for "
        "one number at a time."
    )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are described."""
        return self.release.description.labels[0]

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        level, target = checked_level(level), checked_target(target)
        means, spreads, quartiles = (self.before[place::STEPS] for place in range(STEPS))
        ordered = [QuantilesResult(one).quantities(level, target=target)[0] for one in quartiles]
        cut = [[_cell(one, place) for one in ordered] for place in range(len(QUARTILES))]
        return (
            *self._counts(level),
            _joined(
                "standard deviation",
                [StdResult(one).quantities(level, target=target)[0] for one in spreads],
            ),
            *(_joined(name, parts) for name, parts in zip(LOCATED[1:], cut, strict=True)),
            _joined("mean", [MeanResult(one).quantities(level, target=target)[0] for one in means]),
        )

    def _counts(self, level: float) -> tuple[Quantity, Quantity]:
        """Rows with a readable value, and those without one; privacy error alone."""
        found = MissingResult(self.release).statistics()
        counts = found.count.reshape(-1, len(STATES))[:, :2].sum(axis=1)
        total = found.rows[0]
        both = found.noise + found.noise
        counted = as_kind(self.release.query, CellStates).count
        most = np.inf if counted else total
        held = both + (found.noise if counted else Noise(0.0))

        def quantity(name: str, value: Any, noise: Noise) -> Quantity:
            half = half_width(level, 0.0 * value, noise)
            low, high = (np.clip(value + side * half, 0.0, most) for side in (-1, 1))
            return Quantity(name, value, low, high, 0.0 * value, noise.variance + 0.0 * value)

        return quantity("n", total - counts, held), quantity("missing", counts, both)

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print, three lines a column; renders in a notebook too."""
        level = checked_level(level)
        by_name = {one.name: one for one in self.quantities(level, target=target)}
        rows: list[tuple[str, ...]] = []
        for place, column in enumerate(self.columns):
            origin = self.before[STEPS * place].description.origin
            cells = [_texts(by_name[name], place, origin) for name in HEADS]
            estimates, lows, highs = zip(*cells, strict=True)
            rows += [
                (column, "estimate", *estimates),
                ("", f"{100 * level:g}% from", *lows),
                ("", "to", *highs),
            ]
        header = ("column", "", *HEADS.values())
        return Summary(
            f"{self.title} of {len(self.columns)} columns", header, tuple(rows), self._told()
        )

    def _told(self) -> tuple[str, ...]:
        release = self.release
        notes = [
            f"Privacy of these {len(self.releases)} releases together: {self.guarantee}, "
            f"neighbours {release.neighbors}.",
            self.about,
        ]
        if release.public_rows is not None:
            notes.append(f"{release.public_rows} rows (public).")
        absent = dict.fromkeys(name for one in self.before for name in left_out(one))
        if absent:
            notes.append(
                f"Rows without a value are left out, column by column: {', '.join(absent)}."
            )
        filled = dict.fromkeys(pair for one in self.before for pair in one.filled)
        notes += [f"A cell of {name} without a value counts as {value}." for name, value in filled]
        if release.neighbors.rows > 1:
            notes.append(
                "Rows of one unit may be fully alike in these intervals (sampling variance × "
                "max_rows), but those of means."
            )
        notes += cautions(*self.releases)
        return tuple(notes)

    def plot(
        self,
        level: float = 0.95,
        *,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """A box a column: quartiles, median and mean with their intervals, each on its own scale;
        saved if a path is given.
        """
        from discreet.plots.described import plot_described

        return plot_described(self, checked_level(level), ax=ax, title=title, path=path)


def _texts(quantity: Quantity, place: int, origin: str) -> tuple[str, str, str]:
    """Estimate and both ends of one number."""
    error = float(quantity.std_error[place])
    dated = origin if quantity.name in LOCATED else ""
    estimate, low, high = (
        float(values[place]) for values in (quantity.estimate, quantity.low, quantity.high)
    )
    return (
        value_text(estimate, error, dated),
        value_text(low, error, dated, floor),
        value_text(high, error, dated, ceil),
    )


def _cell(quantity: Quantity, place: int) -> Quantity:
    """One cell of a quantity, as a quantity."""
    return _joined(quantity.name, [quantity], slice(place, place + 1))


def _joined(name: str, parts: list[Quantity], cells: slice = slice(None)) -> Quantity:
    """Some quantities as one, cell after cell."""
    fields = ("unprojected", "low", "high", "sampling_variance", "privacy_variance")
    estimate, low, high, sampling, privacy = (
        np.concatenate([getattr(part, field)[cells] for part in parts]) for field in fields
    )
    return Quantity(name, estimate, low, high, sampling, privacy)
