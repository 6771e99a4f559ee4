"""Coverage of the intervals of dp.correlation and dp.variance: whole batches of repetitions through
the mechanism's exact noise and the library's inference.

Pairs are built from a bivariate normal law with correlation ρ by a rising transformation of each
margin, then clamped to the declared range; the true correlation of the clamped pair is Mehler's
series. Textbook intervals on the same draws: Fisher's z for correlations; for variances the
chi-square interval of normal data, and beside it (cells "var/adf") the one that is free of that
assumption, s² ± 1.96·√((m₄ − s⁴)/n). Sums of fourth powers of codes are rounded to 53 bits here
(a part in 10¹⁶); everything else is the integer that a session would release.

Used by coverage_location.py; by itself it prints its own cells:

    python benchmarks/coverage_pairs.py [--repetitions 2000]
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri

import discreet as dp
import stored
from discreet.estimators.matrices import correlation_question
from discreet.estimators.questions import variance_question
from discreet.inference.means.pair_decode import decode_pairs
from discreet.inference.means.pairs import correlation_estimate, correlation_interval
from discreet.inference.means.variances import decode_variance, variance_interval
from discreet.schema import Column, Integer, Real, Schema
from discreet.sensitivity import L2
from discreet.specs.mechanisms.additive import GaussianNoise
from discreet.specs.mechanisms.symmetric import off_diagonal
from discreet.testing import SeededSource
from discreet.trusted.noise.sampling import draw
from discreet.trusted.release import PublicFacts, Question

LEVEL = 0.95
CORRELATIONS = (0.0, 0.3, 0.8)
SPENDS = (0.5, 1.0)
RELATIONS = {"": dp.Replace(), "+": dp.AddRemove()}
CHUNK = 1_000_000

Row = tuple[str, int, str, float, float, float]


@dataclass(frozen=True)
class Margin:
    """A margin: its declared column and the rising function that makes it of a standard normal
    variable.
    """

    name: str
    column: Column
    of_normal: Callable[[np.ndarray], np.ndarray]

    def clamped(self, z: np.ndarray) -> np.ndarray:
        return np.clip(
            self.of_normal(z),
            float(self.column.low),
            float(self.column.high),
        )  # type: ignore[union-attr]


def _tabulated(quantile: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """A smooth quantile function of Φ(z), interpolated on a fine grid of z:
    the same function for draws and for the truth.
    """
    grid = np.linspace(-6.5, 6.5, 1 << 16)
    values = quantile(ndtr(grid))
    return lambda z: np.interp(z, grid, values)


def _two_modes(u: np.ndarray) -> np.ndarray:
    grid = np.linspace(-9, 9, 1 << 17)
    return np.interp(u, 0.5 * ndtr((grid + 2) / 0.7) + 0.5 * ndtr((grid - 2) / 0.7), grid)


MARGINS = (
    Margin("normal", Real(-4, 4), lambda z: z),
    Margin("lognormal", Real(0, 12), lambda z: np.exp(0.75 * z)),
    Margin("Student t3", Real(-8, 8), _tabulated(lambda u: stats.t.ppf(u, 3))),
    Margin("six values", Integer(0, 5), lambda z: np.floor(6 * ndtr(z) ** 1.3)),
    Margin("bimodal", Real(-5, 5), _tabulated(_two_modes)),
)


@functools.cache
def truth(margin: Margin, rho: float) -> tuple[float, float]:
    """(correlation, variance) of the clamped pair:
    Σ ρᵏ aₖ² over Σ aₖ², aₖ the Hermite coefficients of the margin.
    """
    z = ndtri((np.arange(1 << 20) + 0.5) / (1 << 20))
    values = margin.clamped(z)
    variance = float(values.var())
    previous, current, total = np.zeros_like(z), np.ones_like(z), 0.0
    for k in range(1, 90):
        previous, current = current, (z * current - np.sqrt(k - 1) * previous) / np.sqrt(k)
        total += rho**k * float(np.mean(values * current)) ** 2
    return total / variance, variance


@dataclass
class Draws:
    """What a batch of repetitions needs: sums of products of codes for both questions, and the
    textbook intervals' hits and widths.
    """

    pairs: dict[tuple[int, ...], np.ndarray]
    powers: np.ndarray
    fisher: tuple[np.ndarray, np.ndarray]
    chi_square: tuple[np.ndarray, np.ndarray]
    free: tuple[np.ndarray, np.ndarray]


def _codes(values: np.ndarray, grid: Any) -> np.ndarray:
    codes = values - grid.center
    codes *= grid.per_unit
    codes += 0.5
    return np.floor(codes, out=codes)


def _products(x: np.ndarray, y: np.ndarray, terms: tuple[tuple[int, ...], ...]) -> list[np.ndarray]:
    made = {(1, 0): x, (0, 1): y, (2, 0): x * x, (0, 2): y * y, (1, 1): x * y}
    sums = []
    for term in terms:
        r, s = term.count(0), term.count(1)
        if r + s <= 2:
            sums.append(made[r, s].sum(axis=1) if term else np.full(len(x), float(x.shape[1])))
        else:
            first = (2, 0) if r >= 2 else (1, 1) if (r, s) != (0, s) and s < 2 else (0, 2)
            sums.append(np.einsum("ij,ij->i", made[first], made[r - first[0], s - first[1]]))
    return sums


def simulate(
    margin: Margin,
    rho: float,
    n: int,
    repetitions: int,
    rng: np.random.Generator,
    pairs: Question,
    alone: Question,
) -> Draws:
    found: list[list[np.ndarray]] = [[] for _ in range(8)]
    true_rho, true_variance = truth(margin, rho)
    z_level = stats.norm.ppf(0.5 + LEVEL / 2)
    chi = stats.chi2.ppf([(1 + LEVEL) / 2, (1 - LEVEL) / 2], n - 1)
    query: Any = pairs.query
    single: Any = alone.query
    for start in range(0, repetitions, max(1, CHUNK // n)):
        count = min(max(1, CHUNK // n), repetitions - start)
        z = rng.standard_normal((2, count, n))
        x, y = margin.clamped(z[0]), margin.clamped(rho * z[0] + np.sqrt(1 - rho**2) * z[1])
        found[0].append(
            np.array(
                _products(
                    *(
                        _codes(v, factor.encoding)
                        for v, factor in zip((x, y), query.factors, strict=True)
                    ),
                    query.terms(),
                )
            )
        )
        c = _codes(x, single.factor.encoding)
        square = c * c
        found[1].append(
            np.array(
                [
                    np.full(count, float(n)),
                    c.sum(axis=1),
                    square.sum(axis=1),
                    np.einsum("ij,ij->i", c, square),
                    np.einsum("ij,ij->i", square, square),
                ]
            )
        )
        x -= x.mean(axis=1, keepdims=True)
        y -= y.mean(axis=1, keepdims=True)
        xx, yy, xy = (np.einsum("ij,ij->i", a, b) for a, b in ((x, x), (y, y), (x, y)))
        r, s2 = xy / np.sqrt(xx * yy), xx / (n - 1)
        ends = np.tanh(np.arctanh(r) + z_level / np.sqrt(n - 3) * np.array([[-1], [1]]))
        found[2].append((ends[0] <= true_rho) & (true_rho <= ends[1]))
        found[3].append(ends[1] - ends[0])
        ends = xx / chi[:, None]
        found[4].append((ends[0] <= true_variance) & (true_variance <= ends[1]))
        found[5].append(ends[1] - ends[0])
        x *= x
        half = z_level * np.sqrt(np.maximum(np.einsum("ij,ij->i", x, x) / n - s2**2, 0) / n)
        found[6].append(np.abs(s2 - true_variance) <= half)
        found[7].append(2 * half)
    sums, powers, *rest = (np.concatenate(part, axis=-1) for part in found)
    return Draws(
        dict(zip(query.terms(), sums, strict=True)),
        powers,
        (rest[0], rest[1]),
        (rest[2], rest[3]),
        (rest[4], rest[5]),
    )


def add_noise(
    statistic: np.ndarray, mechanism: Any, order: int, source: SeededSource
) -> np.ndarray:
    """Statistics of shape (numbers, repetitions) with the exact noise of a mechanism, in its steps;
    `order` 0 where no number is off a diagonal.
    """
    off = np.zeros(len(statistic), dtype=bool)
    triangle = off_diagonal(order)
    off[: len(triangle)] = triangle
    released = statistic * 2.0**mechanism.refinement
    for here, spread in (
        (off, getattr(mechanism, "off_spread", mechanism.spread)),
        (~off, mechanism.spread),
    ):
        law = GaussianNoise(L2(Fraction(1)), spread, mechanism.refinement)
        released[here] += draw(law, int(here.sum()) * statistic.shape[1], source).reshape(
            int(here.sum()), statistic.shape[1]
        )
    return released


def correlation_intervals(
    question: Question,
    sums: dict[tuple[int, ...], np.ndarray],
    public_rows: int | None,
    source: SeededSource,
) -> tuple[np.ndarray, np.ndarray]:
    query: Any = question.query
    released = add_noise(np.array(query.arrange(sums)), question.mechanism, query.order, source)
    statistics = decode_pairs(
        query, question.mechanism, released, public_rows=public_rows, cluster=1
    )
    return correlation_interval(
        correlation_estimate(statistics.pair(0, 1)), LEVEL, target="population"
    )


def variance_intervals(
    question: Question, powers: np.ndarray, public_rows: int | None, source: SeededSource
) -> tuple[np.ndarray, np.ndarray]:
    """In the units of the column, as VarianceResult has them."""
    query: Any = question.query
    grid = query.factor.encoding
    exact = np.array(query.assemble(powers.T), dtype=float).reshape(query.size, -1)
    statistics = decode_variance(
        query,
        question.mechanism,
        add_noise(exact, question.mechanism, 0, source),
        public_rows=public_rows,
        cluster=1,
    )
    rounding = 0.0 if grid.is_exact else float(grid.step) ** 2 / 12
    low, high = (
        np.maximum(end * float(grid.high * grid.step) ** 2 - rounding, 0)
        for end in variance_interval(statistics, LEVEL)
    )
    return low, high


def rows(margin: Margin, rho: float, n: int, repetitions: int, seed: int) -> Iterator[Row]:
    """(case, n, label, private coverage, textbook coverage, ratio of mean widths) of one margin and
    correlation at one n.
    """
    rng = np.random.default_rng((seed, MARGINS.index(margin), round(10 * rho), n))
    source = SeededSource(f"pairs {margin.name} {rho} {n} {seed}")
    schema = Schema({"x": margin.column, "y": margin.column})
    true_rho, true_variance = truth(margin, rho)
    drawn: Draws | None = None
    for mark, relation in RELATIONS.items():
        public = PublicFacts(schema, relation, n if relation.row_count_is_public else None)
        for mu in SPENDS:
            pairs, alone = (
                correlation_question(public, ["x", "y"], spend=dp.GDP(mu)),
                variance_question(public, "x", spend=dp.GDP(mu)),
            )
            drawn = drawn or simulate(margin, rho, n, repetitions, rng, pairs, alone)
            assert pairs.query.height in (2045, 2047), (  # type: ignore[attr-defined]
                "the codes must be those of the draws, whatever the relation and the spend"
            )
            low, high = correlation_intervals(pairs, drawn.pairs, public.rows, source)
            yield _row(margin, n, f"ρ={rho:g}{mark} μ={mu:g}", (low, high), true_rho, drawn.fisher)
            if rho == 0:
                low, high = variance_intervals(alone, drawn.powers, public.rows, source)
                yield _row(
                    margin, n, f"var{mark} μ={mu:g}", (low, high), true_variance, drawn.chi_square
                )
                yield _row(
                    margin, n, f"var/adf{mark} μ={mu:g}", (low, high), true_variance, drawn.free
                )


def _row(
    margin: Margin,
    n: int,
    label: str,
    interval: tuple[np.ndarray, np.ndarray],
    target: float,
    textbook: tuple[np.ndarray, np.ndarray],
) -> Row:
    low, high = interval
    return (
        margin.name,
        n,
        label,
        float(np.mean((low <= target) & (target <= high))),
        float(np.mean(textbook[0])),
        float(np.mean(high - low) / np.mean(textbook[1])),
    )


def store(cells: list[tuple[str, int, str, float, float, float]], repetitions: int) -> None:
    """The cells by quantity and number of rows."""
    asked: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for _, n, label, private, textbook, ratio in cells:
        asked.setdefault((label.split(" ")[0], n), []).append((private, textbook, ratio))
    stored.table(
        "coverage_pairs",
        about="coverage",
        title="Correlations, covariances and variances",
        says="Coverage of nominal 95 % intervals over margins, correlations, relations and spends, "
        "beside the textbook interval on the same samples without privacy.",
        columns=[
            stored.column("asked"),
            stored.column("rows"),
            stored.column("cells", "settings"),
            stored.column("middle", "median coverage", digits=3),
            stored.column("lowest", "lowest coverage", digits=3, target="≥ 0.94"),
            stored.column("textbook", "lowest of the textbook", digits=3),
            stored.column("width", "median width / textbook", digits=2),
        ],
        rows=[
            {
                "asked": kind,
                "rows": n,
                "cells": len(found),
                "middle": stored.share(
                    float(np.median([one[0] for one in found])) * repetitions, repetitions
                ),
                "lowest": stored.share(min(one[0] for one in found) * repetitions, repetitions),
                "textbook": stored.share(min(one[1] for one in found) * repetitions, repetitions),
                "width": float(np.median([one[2] for one in found])),
            }
            for (kind, n), found in sorted(asked.items())
        ],
        runs=repetitions,
        error="the standard error of a share of the runs",
        notes=[
            "The textbook's interval falls short itself where margins have heavy tails or two "
            "values; ours may there by a point more.",
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 10_000])
    stored.option(parser)
    options = parser.parse_args()
    kept = []
    for n in options.sizes:
        for margin in MARGINS:
            for rho in CORRELATIONS:
                for name, size, label, private, textbook, ratio in rows(
                    margin, rho, n, options.repetitions, 4
                ):
                    kept.append((name, size, label, private, textbook, ratio))
                    short = private < (0.94 if textbook >= 0.945 else textbook - 0.01) or (
                        size >= 1000 and private > 0.99
                    )
                    print(
                        f"{name:12} {size:6d} {label:14} {private:8.4f} {textbook:9.4f} "
                        f"{ratio:12.3f}{'  OUTSIDE' if short else ''}",
                        flush=True,
                    )
    if options.store:
        store(kept, options.repetitions)


if __name__ == "__main__":
    main()
