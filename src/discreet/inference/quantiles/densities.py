"""The result of `dp.density`: a histogram density with pointwise and simultaneous bands
(reference.md F3).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.inference.counts.results import share_statistics
from discreet.inference.counts.shares import ShareStatistics, share_interval
from discreet.inference.quantiles.cdf import checked_kind
from discreet.inference.quantiles.simultaneous import cell_level
from discreet.inference.results.laws import Array
from discreet.inference.results.results import Quantity, Result, checked_level, checked_target

SMALLEST_SHARE = 1e-11  # the end of a bisection towards 0 stands for 0


class DensityResult(Result):
    """A density that is constant on each bin: f = share of the bin / its width.

    *Validity*: rows are independent draws. The bands are for the histogram's own density, that is
    for the mean density of each bin; how far the true density bends within a bin is not in them.
    `params` may be negative; ``consistent=True`` repairs that, with a bias.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private density"
    about: ClassVar[str] = (
        "Intervals are for the mean density of one bin at a time; band(kind='simultaneous') "
        "holds for all bins at once."
    )

    @property
    def edges(self) -> Array:
        """The bins' edges."""
        return np.array(self.release.description.edges)

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        statistics, width = self._statistics(), np.diff(self.edges)
        low, high = share_interval(statistics, level, target=target)
        low = np.where(low <= SMALLEST_SHARE, 0.0, low)
        share, rows2 = np.clip(statistics.share, 0.0, 1.0), statistics.rows**2
        sampling = (
            statistics.sampling_variance(share) / rows2 if target == "population" else 0.0 * share
        )
        privacy = np.asarray(statistics.noise_at(share).variance) / rows2
        return (
            Quantity(
                "density",
                statistics.share / width,
                low / width,
                high / width,
                sampling / width**2,
                privacy / width**2,
            ),
        )

    def band(
        self, level: float = 0.95, *, kind: str = "simultaneous", target: str = "population"
    ) -> npt.NDArray[np.float64]:
        """A band for the density of the bins, of shape (bins, 2): ``kind="pointwise"`` for one bin
        at a time, ``"simultaneous"`` for all at once.
        """
        level, target = checked_level(level), checked_target(target)
        if checked_kind(kind) == "simultaneous":
            level = cell_level(self._statistics(), level, target=target)
        main = self.quantities(level, target=target)[-1]
        return np.stack([main.low, main.high], axis=1)

    def shares(self, *, consistent: bool = False) -> Array:
        """Shares of the bins; ``consistent=True``: not negative, adding up to 1 (at most 1 where
        bins leave out part of a public number of rows).

        The consistent shares are the nearest such ones (least squares). They are biased: bins with
        few rows gain, the others lose.
        """
        statistics = self._statistics()
        if not consistent:
            return statistics.share
        covers = not statistics.public_total or not self.release.query.optional
        return _nearest_shares(statistics.share, fixed=covers)

    def pdf(self, x: Any, *, consistent: bool = False) -> Array:
        """The density at any points; 0 outside the bins. The last bin is closed."""
        edges, x = self.edges, np.asarray(x, dtype=float)
        heights = self.shares(consistent=consistent) / np.diff(edges)
        place = np.where(
            x == edges[-1], len(heights) - 1, np.searchsorted(edges, x, side="right") - 1
        )
        inside = (x >= edges[0]) & (x <= edges[-1])
        return np.asarray(np.where(inside, heights[np.clip(place, 0, len(heights) - 1)], 0.0))

    def plot(
        self,
        level: float = 0.95,
        *,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """A matplotlib figure of the density with its pointwise and its simultaneous band;
        saved if a path is given.
        """
        from discreet.plots.distributions import plot_density

        return plot_density(self, level, ax=ax, title=title, path=path)

    def _statistics(self) -> ShareStatistics:
        return share_statistics(self)


def _nearest_shares(shares: Array, *, fixed: bool) -> Array:
    """The nearest shares that are not negative and add up to 1 (`fixed`), or to at most 1:
    max(share − t, 0) for one t.
    """
    kept = np.maximum(shares, 0.0)
    if not fixed and kept.sum() <= 1:
        return kept
    ordered = np.sort(shares)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, shares.size + 1)
    t = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.asarray(np.maximum(shares - t, 0.0))
