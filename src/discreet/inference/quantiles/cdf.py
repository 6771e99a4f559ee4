"""The result of `dp.ecdf`: a distribution function with pointwise and simultaneous bands."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidParameter
from discreet.inference.quantiles.cumulative import (
    Cumulative,
    cumulative_of,
    share_bounds,
    tree_counts,
)
from discreet.inference.quantiles.simultaneous import band
from discreet.inference.quantiles.tree_quantiles import TreeQuantiles, checked_quantiles, invert
from discreet.inference.results.laws import Array
from discreet.inference.results.results import Quantity, Result, checked_level, checked_target
from discreet.inference.results.summary import Summary, number_text, summarise

BANDS = ("pointwise", "simultaneous")
SHOWN = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


class EcdfResult(Result):
    """A distribution function F at the points that separate the leaves of a tree of counts.

    *Validity*: rows are independent draws; values outside the declared range count as the nearest
    bound. `unprojected` and `cdf` are unbiased where the number of rows is public and may leave
    [0, 1] or fall; `params` stay inside their intervals, and ``consistent=True`` repairs both, at
    the price of a bias.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private distribution function"
    about: ClassVar[str] = (
        "Intervals are for one point at a time; band(kind='simultaneous') holds everywhere at once."
    )

    @property
    def points(self) -> Array:
        """Where F is estimated: the upper ends of all leaves but the last,
        in the units of the data.
        """
        return self.edges[1:-1]

    @property
    def edges(self) -> Array:
        """The ends of all leaves on the grid: rows up to an edge are in the leaves before it.

        The first lies below all values.
        """
        query: Any = self.release.query
        exact = query.factor.encoding.is_exact
        inside = -(-query.cells // query.width)
        inner = query.value(np.arange(1, inside) * query.width - 1) + (
            0.0 if exact else query.step / 2
        )
        return np.concatenate(
            [
                [query.value(0) - query.step / (1 if exact else 2)],
                inner,
                [query.value(query.cells - 1)],
            ]
        )

    @property
    def labels(self) -> list[tuple[str, ...]]:
        return [(f"≤ {point:.6g}",) for point in self.points]

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        cumulative = cumulative_of(self.release)
        inner, rows = cumulative.inner, cumulative.rows
        low, high = share_bounds(cumulative, inner, level, target=target)
        estimate = cumulative.prefix[inner] / rows
        share = np.clip(estimate, 0.0, 1.0)
        sampling = (
            cumulative.sampling_variance(share) / rows**2 if target == "population" else 0.0 * share
        )
        return (
            Quantity(
                "F",
                estimate,
                low,
                high,
                sampling,
                cumulative.noise_at(inner, share).variance / rows**2,
            ),
        )

    def band(
        self, level: float = 0.95, *, kind: str = "simultaneous", target: str = "population"
    ) -> npt.NDArray[np.float64]:
        """A band at `points`, of shape (points, 2): ``kind="pointwise"`` for one point at a time,
        ``"simultaneous"`` for all x at once.
        """
        level, target = checked_level(level), checked_target(target)
        cumulative = cumulative_of(self.release)
        return np.stack(_band(cumulative, level, checked_kind(kind), target), axis=1)

    def cdf(self, x: Any, *, consistent: bool = False) -> Array:
        """F̂ at any points: between `points` interpolated, or a step where every value of the
        column is a grid cell of its own.

        ``consistent=True`` never falls and stays within [0, 1] (isotonic least squares); it is
        biased where noise exceeds the counts.
        """
        cumulative = cumulative_of(self.release)
        counts = cumulative.consistent if consistent else cumulative.prefix
        values = np.concatenate([[0.0], counts[cumulative.inner] / cumulative.rows, [1.0]])
        edges, x = self.edges, np.asarray(x, dtype=float)
        if self._is_step():
            return np.asarray(values[_position(edges, x)])
        return np.asarray(np.where(x < edges[0], 0.0, np.interp(x, edges, values)))

    def cdf_interval(
        self, x: Any, level: float = 0.95, *, kind: str = "pointwise", target: str = "population"
    ) -> npt.NDArray[np.float64]:
        """Intervals for F at any points, of shape (points, 2): between two `points` from the lower
        end of the one to the upper end of the other.
        """
        bounds = self.band(level, kind=kind, target=target)
        low, high = (
            np.concatenate([[0.0], bounds[:, 0], [1.0]]),
            np.concatenate([[0.0], bounds[:, 1], [1.0]]),
        )
        edges, x = self.edges, np.atleast_1d(np.asarray(x, dtype=float))
        left = _position(edges, x)
        right = (
            left
            if self._is_step()
            else np.minimum(np.searchsorted(edges, x, side="left"), len(edges) - 1)
        )
        right = np.where(x < edges[0], 0, np.maximum(right, left))
        return np.stack([low[left], high[right]], axis=-1)

    def counts(self, *, consistent: bool = False) -> Array:
        """Estimated counts of the leaves; ``consistent=True``: not negative, adding up to the
        number of rows (itself estimated where it is private).
        """
        cumulative = cumulative_of(self.release)
        prefix = cumulative.consistent if consistent else cumulative.prefix
        return np.asarray(np.diff(prefix)[: cumulative.inside])

    def quantiles(
        self, q: Any, level: float = 0.95, *, target: str = "population"
    ) -> TreeQuantiles:
        """Quantiles with intervals, each on its own,
        read from the same release at no further cost.
        """
        return invert(
            cumulative_of(self.release),
            tree_counts(self.release),
            checked_quantiles(q),
            checked_level(level),
            target=checked_target(target),
        )

    def records(self, level: float = 0.95, *, target: str = "population") -> list[dict[str, Any]]:
        """The tidy rows as dictionaries, one a point."""
        named = self.release.description.column or "x"
        return [
            row | {named: float(point)}
            for row, point in zip(
                Result.records(self, level, target=target), self.points, strict=True
            )
        ]

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """The quantiles of the distribution, with intervals, as a table."""
        level, target = checked_level(level), checked_target(target)
        whole = summarise(self, level, target)
        found = self.quantiles(SHOWN, level, target=target)
        wide = np.maximum((found.high - found.low) / 4, tree_counts(self.release).step / 2)
        rows = tuple(
            (
                f"{100 * q:g}%",
                number_text(float(value), float(error)),
                (
                    f"{number_text(float(low), float(error))} … "
                    f"{number_text(float(high), float(error))}"
                ),
                f"{100 * noise:.0f}",
            )
            for q, value, low, high, error, noise in zip(
                found.q, found.estimate, found.low, found.high, wide, found.noise_share, strict=True
            )
        )
        header = ("share below", "quantile", f"{100 * level:g}% interval", "noise %")
        about = (
            f"F is estimated at {len(self.points)} points: cdf(x), band(), counts(), quantiles(q), "
            "to_frame()."
        )
        return Summary(
            whole.title,
            header,
            rows,
            (*(note for note in whole.notes if not note.startswith("The first ")), about),
        )

    def plot(
        self,
        level: float = 0.95,
        *,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """A matplotlib figure of F with its pointwise and its simultaneous band;
        saved if a path is given.
        """
        from discreet.plots.distributions import plot_ecdf

        return plot_ecdf(self, level, ax=ax, title=title, path=path)

    def _is_step(self) -> bool:
        query: Any = self.release.query
        return bool(query.factor.encoding.is_exact and query.width == 1)


def checked_kind(kind: object) -> str:
    if kind not in BANDS:
        raise InvalidParameter(
            "kind=",
            "neither 'pointwise' nor 'simultaneous'",
            "it decides whether the band holds for one point or for all",
            "pass kind='pointwise' or kind='simultaneous'",
        )
    return str(kind)


def _band(cumulative: Cumulative, level: float, kind: str, target: str) -> tuple[Array, Array]:
    if kind == "pointwise":
        return share_bounds(cumulative, cumulative.inner, level, target=target)
    return band(cumulative, cumulative.inner, level, target=target)


def _position(edges: Array, x: Array) -> Any:
    """The last edge at or below x; 0 for what lies before the first."""
    return np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 1)
