"""Draws of the unbounded mean and of the Huber location without a session:
the estimators' own steps on given values.

`draw_mean` and `draw_location` run everything, with secure noise. `MeanDraws` is for many thousand
draws: the same conversations, shares, grids and intervals, with numpy's normal noise in place of
the exact sampler's, and the means of all draws read at once.

Used by location_accuracy.py and coverage_location.py; prints nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import stats

from discreet.accounting.guarantees import GDP, Guarantee
from discreet.encoding import Encoding
from discreet.estimators.unbounded import (
    Search,
    begun,
    location_by_steps,
    mean_by_steps,
    mean_shares,
    noise_of_width,
    zoomed,
)
from discreet.inference.means.clipping import LeftOut, left_out, widened
from discreet.inference.means.means import MeanStatistics, mean_interval
from discreet.inference.means.unbounded import LocationResult, UnboundedMeanResult
from discreet.inference.results.decode import noise_of
from discreet.inference.results.laws import Noise
from discreet.neighbors import Neighbors, Replace
from discreet.schema import Real, Schema
from discreet.search.ranges import Bulk, Purse, Talk, all_of_it, find_bulk, find_ends, nothing_found
from discreet.specs.queries.histograms import GridCounts
from discreet.specs.queries.moments import Moments
from discreet.specs.queries.plans import Factor
from discreet.specs.statistics import histogram_of_cells
from discreet.trusted.engines.kernels import encode, places
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.noise.samplers import apply
from discreet.trusted.noise.source import secure_source
from discreet.trusted.release import PublicFacts, Question, Release


@dataclass(frozen=True)
class Law:
    """A distribution with its mean, its standard deviation,
    and its centre of symmetry if it has one.
    """

    name: str
    sample: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    mean: float
    deviation: float
    center: float | None = None


LAWS = (
    Law("normal", lambda rng, size: rng.standard_normal(size), 0.0, 1.0, 0.0),
    Law(
        "lognormal",
        lambda rng, size: np.exp(rng.standard_normal(size)),
        float(np.exp(0.5)),
        float(np.sqrt((np.e - 1) * np.e)),
    ),
    Law("student t3", lambda rng, size: rng.standard_t(3, size), 0.0, float(np.sqrt(3)), 0.0),
    Law(
        "poisson 3", lambda rng, size: rng.poisson(3.0, size).astype(float), 3.0, float(np.sqrt(3))
    ),
    Law(
        "bimodal",
        lambda rng, size: rng.standard_normal(size) + np.where(rng.random(size) < 0.4, -4.0, 4.0),
        0.8,
        float(np.sqrt(1 + 64 * 0.24)),
    ),
)


def declared(law: Law, width: float) -> Real:
    """A range of `width` standard deviations that is not centred at the mean."""
    low = law.mean - 0.37 * width * law.deviation
    return Real(low, low + width * law.deviation)


def search_for(
    column: Real, rows: int, spend: Guarantee, neighbors: Neighbors | None = None
) -> Search:
    public = PublicFacts(
        Schema({"x": column}),
        neighbors or Replace(),
        rows if neighbors is None or neighbors.row_count_is_public else None,
    )
    return begun(public, "x", spend=spend, where=None, asked="a draw")


def answering(search: Search, values: np.ndarray) -> Callable[[Question, str], Release]:
    """Releases a question about these values, as a session would, without ledger and engine."""
    inside = np.clip(values, search.declared.low, search.declared.high)

    def step(question: Question, name: str) -> Release:
        query = question.query
        if isinstance(query, GridCounts):
            grid = query.factor.encoding
            statistic: object = histogram_of_cells(
                query.size, places(encode(inside, grid), grid.low, query.plan().stride)
            )
        elif isinstance(query, Moments):
            codes = encode(inside, query.factor.encoding).astype(np.int64)
            statistic = query.assemble(
                np.array([[len(codes), int(codes.sum()), int((codes * codes).sum())]], dtype=object)
            )
        else:
            key = query.keys[-1]
            statistic = [
                int(
                    ((inside >= key.low) & (inside <= key.high)).sum(),
                )
            ]  # type: ignore[union-attr]
        answer = apply(question.mechanism, statistic, secure_source())
        public = search.public
        return Release(
            question.description,
            query,
            question.mechanism,
            answer.integers,
            public.neighbors,
            question.spend,
            guarantee_of(question.mechanism),
            public.count,
            name,
            0,
            "",
        )

    return step


def draw_mean(search: Search, values: np.ndarray) -> UnboundedMeanResult:
    return mean_by_steps(search, answering(search, values))


def draw_location(search: Search, values: np.ndarray) -> LocationResult:
    return location_by_steps(search, answering(search, values))


@dataclass(frozen=True)
class Told:
    """A noisy count."""

    value: float
    deviation: float
    share: int


@dataclass
class Ranges:
    """What the searches of many draws found: the ranges, and what each side leaves out."""

    low: np.ndarray
    high: np.ndarray
    sides: list[tuple[LeftOut, LeftOut]]


class MeanDraws:
    """Unbounded means of many samples of n rows under row-level Replace and a Gaussian spend."""

    def __init__(self, column: Real, rows: int, spend: Guarantee, level: float = 0.95) -> None:
        self.search, self.rows, self.level = search_for(column, rows, spend), rows, level
        first, second, last = mean_shares(self.search)
        self.opening = self.search.bulk_question(first)
        self.wide = self.opening.query
        self.noise = noise_of_width(self.search, last)
        self.purses = [self._purse(first), self._purse(second)]
        self.moments = self.search.moments("unbounded mean", 0.0, 1.0, last)

    def _purse(self, share: Fraction) -> Purse:
        mechanism = self.search.bulk_question(share).mechanism
        return Purse(
            self.wide.size, mechanism.units, mechanism.noise(1).variance ** 0.5, mechanism.law
        )

    def ranges(self, samples: np.ndarray, rng: np.random.Generator) -> Ranges:
        found = [
            self._range(np.clip(values, self.search.declared.low, self.search.declared.high), rng)
            for values in samples
        ]
        return Ranges(
            np.array([one[0] for one in found]),
            np.array([one[1] for one in found]),
            [one[2] for one in found],
        )

    def _range(
        self, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[float, float, tuple[LeftOut, LeftOut]]:
        bulk = self._talk(
            find_bulk(self.purses[0], self.rows),
            self.wide.factor.encoding,
            values,
            self.purses[0],
            rng,
        ) or nothing_found(self.wide.size, self.rows)
        grid, left, right = zoomed(bulk, self.wide)
        query = GridCounts((), Factor("x", grid), False)
        purse = Purse(
            query.size, self.purses[1].units, self.purses[1].deviation, self.purses[1].law
        )
        ends = self._talk(
            find_ends(purse, Bulk(bulk.rows, left, right), self.noise), grid, values, purse, rng
        ) or all_of_it(query.size, bulk)
        column = self.search.declared
        low, high = (
            min(max(query.value(place) - query.step / 2, column.low), column.high)
            for place in (ends.low, ends.high)
        )
        if not low < high:
            low, high = low - query.step, high + query.step
        sides = (
            left_out(
                ends.left, float(left.place - ends.low), query.step, low - column.low, self.level
            ),
            left_out(
                ends.right,
                float(ends.high - right.place),
                query.step,
                column.high - high,
                self.level,
            ),
        )
        return low, high, sides

    @staticmethod
    def _talk(
        talk: Talk, grid: Encoding, values: np.ndarray, purse: Purse, rng: np.random.Generator
    ) -> object:
        codes = np.sort(encode(values, grid)).astype(np.int64) - grid.low
        with np.errstate(all="ignore"):
            try:
                place, share = next(talk)
                while True:
                    deviation = purse.deviation / np.sqrt(share)
                    place, share = talk.send(
                        Told(
                            float(np.searchsorted(codes, place))
                            + deviation * rng.standard_normal(),
                            deviation,
                            share,
                        )
                    )
            except StopIteration as end:
                return end.value
            except (ArithmeticError, ValueError, IndexError):
                return None

    def clipped(self, samples: np.ndarray, found: Ranges) -> np.ndarray:
        return np.clip(samples, found.low[:, None], found.high[:, None])

    def noise_deviation(self, found: Ranges) -> np.ndarray:
        """The standard deviation of the noise in each mean."""
        return self.noise * (found.high - found.low) / self.rows

    def intervals(
        self,
        samples: np.ndarray,
        found: Ranges,
        rng: np.random.Generator,
        *,
        target: str = "population",
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(estimate, low, high) of every draw."""
        query, mechanism = self.moments.query, self.moments.mechanism
        center, worth = (found.low + found.high) / 2, (found.high - found.low) / 2
        codes = (
            np.floor(
                np.clip((samples - center[:, None]) / worth[:, None], -1, 1) * query.height + 0.5
            )
            / query.height
        )
        worths = query.unit_values()
        deviation = np.sqrt(mechanism.variance)
        noise = [deviation * one * rng.standard_normal(len(samples)) for one in worths]
        statistics = MeanStatistics(
            np.full(len(samples), float(self.rows)),
            codes.sum(axis=1) + noise[0],
            (1 - codes**2).sum(axis=1) + noise[1],
            Noise(0.0),
            noise_of(mechanism, worths[0]),
            noise_of(mechanism, worths[1]),
        )
        low, high = mean_interval(statistics, self.level, target=target)
        sides = [widened(*side, self.level, target) for side in found.sides]
        step = worth / query.height / 2
        down, up = (np.array([side[end] for side in sides]) for end in (0, 1))
        return (
            center + worth * statistics.mean,
            center + worth * low - step + down,
            center + worth * high + step + up,
        )


def coverage_rows(
    law: Law, rows: int, repetitions: int, seed: int, *, width: float = 1e6, level: float = 0.95
) -> list[tuple[str, int, str, float, float, float]]:
    """Coverage of the unbounded mean's interval at μ = 0.5 and 1, beside Student's t on the same
    draws; the rows of coverage_location.py.

    The ratio of widths is that of medians:
    a search that fails says so with an interval as wide as the declared range.
    """
    rng = np.random.default_rng((seed, rows, *law.name.encode()))
    spends = {mu: MeanDraws(declared(law, width), rows, GDP(mu), level) for mu in (0.5, 1.0)}
    usual: list[np.ndarray] = []
    found: dict[float, list[np.ndarray]] = {mu: [] for mu in spends}
    for start in range(0, repetitions, 250):
        data = law.sample(rng, (min(250, repetitions - start), rows))
        half = stats.t.ppf(0.5 + level / 2, rows - 1) * data.std(axis=1, ddof=1) / np.sqrt(rows)
        usual.append(np.stack([data.mean(axis=1) - half, data.mean(axis=1) + half]))
        for mu, draws in spends.items():
            _, low, high = draws.intervals(data, draws.ranges(data, rng), rng)
            found[mu].append(np.stack([low, high]))
    textbook = np.concatenate(usual, axis=1)
    cells = []
    for mu, parts in found.items():
        private = np.concatenate(parts, axis=1)
        covers = [
            float(np.mean((ends[0] <= law.mean) & (law.mean <= ends[1])))
            for ends in (private, textbook)
        ]
        widths = [float(np.median(ends[1] - ends[0])) for ends in (private, textbook)]
        cells.append(
            (f"{law.name}", rows, f"mean μ={mu:g}", covers[0], covers[1], widths[0] / widths[1])
        )
    return cells
