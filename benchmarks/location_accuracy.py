"""How exact the default median and the unbounded mean are.

    python benchmarks/location_accuracy.py           # the full run, within 15 minutes on 2 cores
    python benchmarks/location_accuracy.py --quick   # a small one

(a) median   n × spend × law of the grid below; mean over draws of |estimate − sample median| on
             declared ranges that are not centred at the median. The ratio is (error of
             dp.median + grid step) / (least error of the four methods exponential, smooth, ptr and
             inverse at full spend + grid step). ⊥ counts as the middle of the declared range;
             η of propose-test-release is the default, which public facts decide. All methods answer
             on the same samples; the error of a choice (exponential, inverse, the default) is its
             exact expectation given the sample.
(b) mean     n = 1000, μ = 1, declared ranges of 10² … 10⁹ standard deviations. The mean absolute
             error of dp.unbounded_mean against the sample mean (the harder of the two: sampling
             error hides nothing), over that of a clipped mean that knows the best bounds for this
             law, n and μ and spends everything on the mean; both on the same samples, noise by its
             expectation. The ratio to the population mean is printed too; for symmetric heavy tails
             its oracle clips so much that it is no mean any more but a robust location
             (dp.location), so it is not judged.

Last line: worst_median_ratio= worst_mean_ratio=
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

import stored
from discreet.accounting.guarantees import GDP, Guarantee, PureDP
from discreet.asking.records import result_class
from discreet.errors import DiscreetError
from discreet.estimators.classical_quantiles import METHODS
from discreet.estimators.quantiles import median_question
from discreet.neighbors import Replace
from discreet.schema import Integer, Real, Schema
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.specs.mechanisms.quantiles import QuantileChoice
from discreet.specs.statistics import Histogram, histogram_of_cells
from discreet.trusted.engines.kernels import encode, places
from discreet.trusted.extensions.data_dependent.order_statistics import rank_losses
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.noise.samplers import apply
from discreet.trusted.noise.source import secure_source
from discreet.trusted.release import PublicFacts, Question, Release

sys.path.insert(0, str(Path(__file__).parent))
from unbounded_draws import LAWS, Law, MeanDraws, declared

SIZES = (100, 300, 1000, 10_000, 100_000)
SPENDS: tuple[Guarantee, ...] = (
    PureDP(0.1),
    PureDP(0.3),
    PureDP(1.0),
    PureDP(3.0),
    GDP(0.25),
    GDP(1.0),
)
DELTA = Fraction(1, 10**6)  # of propose-test-release
WIDTHS = (1e2, 1e3, 1e5, 1e7, 1e9)
LARGEST_RATIO, LARGEST_MEAN_RATIO = 1.2, 1.3
# declared ranges of the medians' laws: wide, and not centred at the median;
# counts are declared as whole numbers
COLUMNS: dict[str, Real | Integer] = {
    "normal": Real(-4.0, 9.0),
    "lognormal": Real(0.0, 30.0),
    "student t3": Real(-25.0, 40.0),
    "poisson 3": Integer(0, 40),
    "bimodal": Real(-10.0, 16.0),
}


@dataclass(frozen=True)
class Cell:
    """One row of the table of medians: the mean absolute error of every method, of the default,
    and their ratio.
    """

    law: str
    rows: int
    spend: str
    errors: dict[str, float]
    default: float
    step: float
    doubt: float  # standard error of the ratio, relative

    @property
    def ratio(self) -> float:
        return (self.default + self.step) / (min(self.errors.values()) + self.step)


def median_cells(law: Law, rows: int, samples: int, answers: int, seed: int) -> list[Cell]:
    rng = np.random.default_rng(seed)
    column = COLUMNS[law.name]
    public = PublicFacts(Schema({"x": column}), Replace(), rows)
    data = [np.clip(law.sample(rng, (rows,)), column.low, column.high) for _ in range(samples)]
    truth = [float(np.median(values)) for values in data]
    cells = []
    for spend in SPENDS:
        questions = {"default": median_question(public, "x", spend=spend)} | {
            name: one for name in METHODS if (one := asked(name, public, spend)) is not None
        }
        histograms: dict[object, list[Histogram]] = {}
        errors: dict[str, np.ndarray] = {}
        for name, question in questions.items():
            factor = question.query.factor
            if factor not in histograms:
                histograms[factor] = [
                    histogram_of_cells(
                        question.query.size,
                        places(
                            encode(values, factor.encoding),
                            factor.encoding.low,
                            question.query.plan().stride,
                        ),
                    )
                    for values in data
                ]
            pairs = zip(histograms[factor], truth, strict=True)
            choice = choice_of(question)
            if choice is not None:
                errors[name] = np.array(
                    [
                        expected_error(choice, question, histogram, middle)
                        for histogram, middle in pairs
                    ]
                )
            else:
                errors[name] = np.array(
                    [
                        np.mean(
                            [
                                abs(answered(question, histogram, public) - middle)
                                for _ in range(answers)
                            ]
                        )
                        for histogram, middle in pairs
                    ]
                )
        cells.append(
            _cell(law.name, rows, str(spend), errors, float(questions["default"].query.step))
        )
    return cells


def choice_of(question: Question) -> QuantileChoice | None:
    """The choice that an estimate is, alone or before a search for its interval."""
    mechanism = (
        question.mechanism.stages[0]
        if isinstance(question.mechanism, InTurn)
        else question.mechanism
    )
    return mechanism if isinstance(mechanism, QuantileChoice) else None


def expected_error(
    choice: QuantileChoice, question: Question, histogram: Histogram, middle: float
) -> float:
    """E|estimate − sample median| of a choice, exactly: over runs of cells of equal loss,
    P ∝ size·exp(−rate·loss), uniform within a run.
    """
    runs = rank_losses(choice, histogram)
    gaps = runs.losses - runs.losses.min()
    weights = runs.sizes * np.exp(-float(choice.rate) * gaps)
    first = question.query.value(0) + question.query.step * runs.starts
    last = first + question.query.step * (runs.sizes - 1)
    inside = np.clip(middle, first, last)
    below, above = inside - first, last - inside
    width = np.where(runs.sizes > 1, last - first, 1.0)
    spread = np.where(runs.sizes > 1, (below**2 + above**2) / (2 * width), 0.0)
    distance = np.abs(middle - inside)
    return float(weights @ (distance + spread) / weights.sum())


def asked(name: str, public: PublicFacts, spend: Guarantee) -> Question | None:
    """A method's question at full spend; None where it has no theorem for the spend."""
    try:
        return (
            METHODS[name](public, "x", Fraction(1, 2), spend=spend, delta=DELTA)
            if name == "ptr"
            else METHODS[name](public, "x", Fraction(1, 2), spend=spend)
        )
    except DiscreetError:
        return None


def answered(question: Question, histogram: Histogram, public: PublicFacts) -> float:
    """The estimate; the middle of the declared range where there is none."""
    answer = apply(question.mechanism, histogram, secure_source())
    release = Release(
        question.description,
        question.query,
        question.mechanism,
        answer.integers,
        public.neighbors,
        question.spend,
        guarantee_of_once(question),
        public.count,
        "draw",
        0,
        "",
        delta=question.delta,
    )
    value = float(
        result_class(question.description.estimator)(release).quantities(0.95)[-1].estimate[0]
    )
    column = public.schema["x"]
    return value if np.isfinite(value) else (column.low + column.high) / 2


_GUARANTEES: dict[int, Guarantee] = {}


def guarantee_of_once(question: Question) -> Guarantee:
    return (
        _GUARANTEES.setdefault(id(question.mechanism), guarantee_of(question.mechanism))
        if id(question.mechanism) not in _GUARANTEES
        else _GUARANTEES[id(question.mechanism)]
    )


def _cell(law: str, rows: int, spend: str, errors: dict[str, np.ndarray], step: float) -> Cell:
    means = {name: float(error.mean()) for name, error in errors.items()}
    default = means.pop("default")
    best = min(means, key=means.__getitem__)
    difference = errors["default"] / (default + step) - errors[best] / (means[best] + step)
    return Cell(
        law, rows, spend, means, default, step, float(difference.std() / np.sqrt(len(difference)))
    )


@dataclass(frozen=True)
class MeanRow:
    """One row of the table of means: ratios of mean absolute errors to those of the oracle."""

    law: str
    width: float
    sample_ratio: float
    population_ratio: float
    error: float
    clipped: tuple[float, float]


def mean_rows(
    law: Law, rows: int, mu: float, samples: int, widths: tuple[float, ...], seed: int
) -> list[MeanRow]:
    rng = np.random.default_rng(seed)
    data = law.sample(rng, (samples, rows))
    oracle = oracle_errors(law, data, mu)
    found = []
    for width in widths:
        draws = MeanDraws(declared(law, width), rows, GDP(mu))
        ranges = draws.ranges(data, rng)
        means, noise = draws.clipped(data, ranges).mean(axis=1), draws.noise_deviation(ranges)
        errors = [mean_distance(means - target, noise) for target in (data.mean(axis=1), law.mean)]
        outside = (
            float((data < ranges.low[:, None]).sum(axis=1).mean()),
            float((data > ranges.high[:, None]).sum(axis=1).mean()),
        )
        found.append(
            MeanRow(
                law.name, width, errors[0] / oracle[0], errors[1] / oracle[1], errors[0], outside
            )
        )
    return found


def mean_distance(bias: np.ndarray, noise: np.ndarray | float) -> float:
    """The mean of E|bias + noise·Z| over draws, Z standard normal."""
    return float(
        np.mean(
            noise * np.sqrt(2 / np.pi) * np.exp(-((bias / noise) ** 2) / 2)
            + bias * (1 - 2 * ndtr(-bias / noise))
        )
    )


def oracle_errors(law: Law, data: np.ndarray, mu: float) -> tuple[float, float]:
    """The least mean absolute errors, against the sample mean and the population's, of a clipped
    mean with fixed bounds and all of the spend.
    """
    rows, means = data.shape[1], data.mean(axis=1)
    shares = np.array(
        [0, 0.0001, 0.0003, 0.0006, 0.001, 0.002, 0.004, 0.006, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1]
    )
    pooled = data[: max(1, 400_000 // rows)].ravel()
    best = [np.inf, np.inf]
    for low in np.unique(np.quantile(pooled, shares)):
        above = np.maximum(data, low)
        for high in np.unique(np.quantile(pooled, 1 - shares)):
            if low < high:
                clipped, noise = (
                    np.minimum(above, high).mean(axis=1),
                    float((high - low) / (rows * mu)),
                )
                best = [
                    min(old, mean_distance(clipped - target, noise))
                    for old, target in zip(best, (means, law.mean), strict=True)
                ]
    return best[0], best[1]


def jobs(quick: bool) -> Iterator[tuple[Callable[..., list[object]], tuple[object, ...]]]:
    for index in range(len(LAWS)):
        for rows in SIZES[:3] if quick else SIZES:
            yield (
                median_cells,
                (
                    index,
                    rows,
                    60 if quick else (250 if rows <= 1000 else 100),
                    4,
                    100 * index + rows,
                ),
            )
        for part in range(1 if quick else 5):
            yield (
                mean_rows,
                (
                    index,
                    1000,
                    1.0,
                    100 if quick else 400,
                    WIDTHS[:2] if quick else WIDTHS[part : part + 1],
                    7000 + index,
                ),
            )


def work(job: tuple[Callable[..., list[object]], tuple[object, ...]]) -> list[object]:
    function, (index, *arguments) = job
    return function(LAWS[index], *arguments)  # type: ignore[index]


def store(medians: list[Any], means: list[Any]) -> None:
    """Medians by law and number of rows, means by law and range."""
    asked: dict[tuple[str, int], list[Any]] = {}
    for cell in medians:
        asked.setdefault((cell.law, cell.rows), []).append(cell)
    stored.table(
        "location_accuracy_median",
        about="accuracy",
        title="The default median beside the best of four methods",
        says="Mean error of the default over the least error of the exponential, smooth, "
        "propose-test-release and inverse methods at the same spend.",
        columns=[
            stored.column("law"),
            stored.column("rows"),
            stored.column("cells", "spends"),
            stored.column("middle", "median ratio", digits=3),
            stored.column("worst", "largest ratio", digits=3, target=f"≤ {LARGEST_RATIO}"),
        ],
        rows=[
            {
                "law": law,
                "rows": rows,
                "cells": len(found),
                "middle": float(np.median([cell.ratio for cell in found])),
                "worst": stored.measured(
                    max(found, key=lambda cell: cell.ratio).ratio,
                    max(found, key=lambda cell: cell.ratio).doubt,
                ),
            }
            for (law, rows), found in asked.items()
        ],
        notes=["± is the standard error of the ratio."],
    )
    stored.table(
        "location_accuracy_mean",
        about="accuracy",
        title="Means whose declared range is far too wide",
        says="Mean absolute error of dp.unbounded_mean beside that of an oracle that knows the "
        "best range, 1000 rows at μ = 1.",
        columns=[
            stored.column("law"),
            stored.column("width", "declared range / s.d."),
            stored.column("error", "error", digits=4),
            stored.column("ratio", "/ oracle", digits=3, target=f"≤ {LARGEST_MEAN_RATIO}"),
        ],
        rows=[
            {"law": row.law, "width": row.width, "error": row.error, "ratio": row.sample_ratio}
            for row in means
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few draws and sizes")
    parser.add_argument("--workers", type=int, default=2)
    stored.option(parser)
    arguments = parser.parse_args()
    start, medians, means = time.perf_counter(), [], []
    with ProcessPoolExecutor(arguments.workers) as pool:
        for done in pool.map(work, jobs(arguments.quick)):
            for row in done:
                (medians if isinstance(row, Cell) else means).append(row)
    print(
        f"{'median':12s} {'n':>7s} {'spend':24s} {'default':>9s} {'best':>9s} {'method':12s} "
        f"{'ratio':>6s} {'±':>5s}"
    )
    for cell in medians:
        best = min(cell.errors, key=cell.errors.__getitem__)
        print(
            f"{cell.law:12s} {cell.rows:7d} {cell.spend:24s} {cell.default:9.4g} "
            f"{cell.errors[best]:9.4g} {best:12s} {cell.ratio:6.3f} "
            f"{cell.doubt:5.3f}{'  FAILS' if cell.ratio > LARGEST_RATIO else ''}"
        )
    print(
        f"{'mean':12s} {'range/s.d.':>10s} {'error':>9s} {'to sample':>9s} {'to population':>13s} "
        f"{'rows clipped':>14s}"
    )
    for row in means:
        print(
            f"{row.law:12s} {row.width:10.0e} {row.error:9.4g} {row.sample_ratio:9.3f} "
            f"{row.population_ratio:13.3f} "
            f"{row.clipped[0]:7.1f}{row.clipped[1]:7.1f}"
            f"{'  FAILS' if row.sample_ratio > LARGEST_MEAN_RATIO else ''}"
        )
    if arguments.store:
        store(medians, means)
    worst = max(cell.ratio for cell in medians), max(row.sample_ratio for row in means)
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)
    print(f"worst_median_ratio={worst[0]:.3f} worst_mean_ratio={worst[1]:.3f}")
    sys.exit(1 if worst[0] > LARGEST_RATIO or worst[1] > LARGEST_MEAN_RATIO else 0)


if __name__ == "__main__":
    main()
