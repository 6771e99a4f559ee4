"""Coverage and width of private regressions:
the published robust design, harder designs, and other families.

Every repetition draws data, fits them privately (discreet.models, the real law of the noise,
seeded) and without privacy, and asks whether each interval holds the truth. Widths are medians
relative to the non-private interval: unweighted Huber, maximum likelihood or least squares, with
sandwich errors. Beside the published design runs the lectures' method: noisy gradient descent with
its own variance correction (reference.md H4, "Says").

    python benchmarks/coverage.py                          the published design at n = 200, 500,
                                                           1000, 4000
    python benchmarks/coverage.py --reps 200 --n 500,1000  smaller
    python benchmarks/coverage.py --all                    all designs and families

The last line is for machines: the worst coefficient of the published design.
"""

from __future__ import annotations

# numba looks for the package of this name, and finds this file where scripts of this folder run
if __name__ == "coverage":
    raise ImportError("this is a benchmark, not the coverage package")

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

import discreet as dp
import stored
from discreet.encoding import Encoding
from discreet.models.fit import fit_regression
from discreet.schema import Schema
from discreet.specs.estimating.components import (
    RESPONSE_BITS,
    LevelComponent,
    ModelColumn,
    NumberComponent,
    Response,
)
from discreet.specs.estimating.model import Model
from discreet.specs.queries.plans import Factor
from discreet.testing import seeded_session

REPETITIONS = 4000
SIZES = (200, 500, 1000, 4000)
LEVEL = 0.95
C = 1.345
Z = float(stats.norm.ppf(0.5 + LEVEL / 2))
Rng = np.random.Generator
Array = np.ndarray


@dataclass(frozen=True)
class Case:
    """A design: how columns (without the intercept) are drawn, their declared half-ranges
    (0: a yes/no column), coefficients, and the family.
    """

    name: str
    family: str
    draw: str
    half: tuple[float, ...]
    beta: tuple[float, ...]
    errors: str = "normal"
    sigma: float = 1.0
    middle: float = 0.0
    reach: float = 0.0  # half-range of the response
    mu: float = 1.0


def autoregressive(size: int, correlation: float) -> Array:
    return np.linalg.cholesky(
        correlation ** np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    ).T


def drawn(case: Case, n: int, rng: Rng) -> Array:
    if case.draw == "independent":
        return rng.normal(size=(n, 3)) * (np.array(case.half) / 4)
    # nine columns, correlation 0.7 to the next,
    # every other one with a spread of 0.05 of its half-range
    if case.draw == "badly scaled":
        return (
            rng.normal(size=(n, 9))
            @ autoregressive(9, 0.7)
            * np.where(np.arange(9) % 2 == 0, 0.05, 0.25)
        )
    numbers = (
        rng.normal(size=(n, 20)) @ autoregressive(20, 0.5) * np.where(np.arange(20) < 3, 0.05, 0.25)
    )
    return np.hstack([numbers, rng.random((n, 4)) < np.array([0.03, 0.1, 0.3, 0.5])])


def errors(kind: str, columns: Array, rng: Rng) -> Array:
    n = len(columns)
    if kind == "t3":
        return rng.standard_t(3, n) / math.sqrt(3)
    if kind == "skewed":
        return rng.exponential(size=n) - 1
    if kind == "heteroskedastic":
        return rng.normal(size=n) * np.exp(0.4 * columns[:, 0] / columns[:, 0].std() - 0.16)
    return rng.normal(size=n)


PUBLISHED = Case(
    "published",
    "robust",
    "independent",
    (8.0, 8.0, 8.0),
    (1.0, 1.0, 1.0, 1.0),
    sigma=2.0,
    middle=1.0,
    reach=16.0,
)
_BAD = tuple(0.5 / spread for spread in np.where(np.arange(9) % 2 == 0, 0.05, 0.25))
_BIG = (*(0.3 / spread for spread in np.where(np.arange(20) < 3, 0.05, 0.25)), 1.0, 1.0, 1.0, 1.0)
OTHERS = (
    *(
        (
            Case(
                f"published, {kind} errors",
                "robust",
                "independent",
                (8.0,) * 3,
                (1.0,) * 4,
                kind,
                2.0,
                1.0,
                16.0,
            ),
            (1000, 4000),
        )
        for kind in ("t3", "skewed", "heteroskedastic")
    ),
    (
        Case(
            "badly scaled, p = 10", "robust", "badly scaled", (1.0,) * 9, (0.5, *_BAD), reach=14.0
        ),
        (1000,),
    ),
    (
        Case("wide, p = 25", "robust", "wide", (1.0,) * 20 + (0.0,) * 4, (0.5, *_BIG), reach=14.0),
        (4000,),
    ),
    (
        Case(
            "least squares", "ols", "independent", (8.0,) * 3, (1.0,) * 4, "normal", 2.0, 1.0, 16.0
        ),
        (1000, 4000),
    ),
    (
        Case("logistic", "logistic", "independent", (4.0,) * 3, (1.5, 1.0, -1.0, 0.5)),
        (1000, 4000, 10_000),
    ),
    (
        Case(
            "logistic, mu = 0.5",
            "logistic",
            "independent",
            (4.0,) * 3,
            (1.5, 1.0, -1.0, 0.5),
            mu=0.5,
        ),
        (1000, 4000, 10_000),
    ),
    (
        Case("Poisson", "poisson", "independent", (4.0,) * 3, (0.7, 0.3, -0.3, 0.2)),
        (1000, 4000, 10_000),
    ),
)


def declared(case: Case) -> tuple[dict[str, object], Model]:
    """The schema a user would declare, and the model."""
    schema: dict[str, object] = {
        f"x{j}": dp.Real(-half, half) if half else dp.Boolean() for j, half in enumerate(case.half)
    }
    schema["y"] = (
        dp.Boolean()
        if case.family == "logistic"
        else dp.Integer(0, 20)
        if case.family == "poisson"
        else dp.Real(case.middle - case.reach, case.middle + case.reach)
    )
    known = Schema(schema)
    columns = [ModelColumn("intercept", ())]
    for j, half in enumerate(case.half):
        name = f"x{j}"
        columns.append(
            ModelColumn(
                name,
                (NumberComponent(Factor(name, known[name].encoding(16)), low=-half, high=half),)
                if half
                else (LevelComponent(name, (0, 1)),),
            )
        )
    if case.family == "logistic":
        response = Response(level=("y", 1))
    elif case.family == "poisson":
        response = Response(Factor("y", known["y"].encoding()))
    else:
        response = Response(
            Factor(
                "y",
                Encoding(
                    case.middle,
                    2**RESPONSE_BITS / case.reach,
                    -(2**RESPONSE_BITS),
                    2**RESPONSE_BITS,
                ),
            )
        )
    return schema, Model(tuple(columns), response)


def responses(case: Case, columns: Array, rng: Rng) -> Array:
    predictor = case.beta[0] + columns @ np.array(case.beta[1:])
    if case.family == "logistic":
        return rng.random(len(columns)) < 1 / (1 + np.exp(-predictor))
    if case.family == "poisson":
        return np.minimum(rng.poisson(np.exp(predictor)), 20)
    return predictor + case.sigma * errors(case.errors, columns, rng)


def huber_fit(x: Array, y: Array) -> tuple[Array, Array, float]:
    """Unweighted Huber regression with joint scale: estimates, sandwich errors, scale."""
    n = len(x)
    beta = np.linalg.lstsq(x, y, rcond=None)[0]
    scale = float(np.median(np.abs(y - x @ beta)) / 0.6745)
    for _ in range(15):
        r = (y - x @ beta) / scale
        psi = np.clip(r, -C, C)
        beta = beta + scale * np.linalg.solve(x.T @ (x * (np.abs(r) < C)[:, None]), x.T @ psi)
        scale *= math.sqrt(min(max(float(np.mean(psi**2)) / 0.7101645, 0.3), 3.0))
    r = (y - x @ beta) / scale
    inverse = np.linalg.inv(x.T @ (x * (np.abs(r) < C)[:, None]) / n)
    z = x * np.clip(r, -C, C)[:, None]
    return beta, np.sqrt(np.diag(scale**2 * inverse @ (z.T @ z / n) @ inverse / n)), scale


def likelihood_fit(x: Array, y: Array, family: str) -> tuple[Array, Array, float]:
    """Maximum likelihood with sandwich errors."""
    n, beta = len(x), np.zeros(x.shape[1])
    if family == "poisson":
        beta[0] = math.log(max(float(y.mean()), 0.01))
    for _ in range(25):
        predictor = np.clip(x @ beta, -30, 30)
        mean = 1 / (1 + np.exp(-predictor)) if family == "logistic" else np.exp(predictor)
        curvature = x.T @ (x * (mean * (1 - mean) if family == "logistic" else mean)[:, None])
        step = np.linalg.solve(curvature + 1e-9 * np.eye(len(beta)), x.T @ (y - mean))
        beta = beta + step * min(1.0, 2 / max(float(np.abs(x @ step).max()), 1e-9))
    inverse = np.linalg.inv(curvature / n)
    z = x * (y - mean)[:, None]
    return beta, np.sqrt(np.diag(inverse @ (z.T @ z / n) @ inverse / n)), 1.0


def least_squares_fit(x: Array, y: Array) -> tuple[Array, Array, float]:
    inverse = np.linalg.inv(x.T @ x)
    beta = inverse @ (x.T @ y)
    z = x * (y - x @ beta)[:, None]
    return beta, np.sqrt(np.diag(inverse @ (z.T @ z) @ inverse)), 1.0


def reference_fit(case: Case, x: Array, y: Array) -> tuple[Array, Array, float]:
    if case.family == "robust":
        return huber_fit(x, y)
    return (
        least_squares_fit(x, y)
        if case.family == "ols"
        else likelihood_fit(x, y.astype(float), case.family)
    )


def lecture_fit(
    x: Array,
    y: Array,
    mu: float,
    rng: Rng,
    *,
    start_scale: float,
    steps: int = 60,
    radius_squared: float = 2.0,
) -> tuple[Array, Array]:
    """Noisy gradient descent on (β, σ) with the lectures' correction V + (8η²B²K/(nμ²))I: estimates
    and standard errors (reference.md G3, H3, H4, "Lectures say").

    A third of μ² each for the gradients, the curvature and the scores, as H3 composes them.
    """
    n, p = x.shape
    weights = np.minimum(1.0, radius_squared / (x * x).sum(axis=1))
    bound = math.sqrt(C**2 * radius_squared + C**4 / 16)
    mu = mu / math.sqrt(3)
    noise = 2 * bound * math.sqrt(steps) / (n * mu)
    beta, scale, rate = np.zeros(p), start_scale, 1.0
    for _ in range(steps):
        psi = np.clip((y - x @ beta) / scale, -C, C)
        rate = scale / radius_squared  # 1/λ for the largest curvature R²/σ that any data can have
        beta = beta - rate * (
            -(x * (weights * psi)[:, None]).mean(axis=0) + noise * rng.normal(size=p)
        )
        scale = max(
            0.1,
            scale
            - rate
            * (float(np.mean(0.5 * weights * (0.7101645 - psi**2))) + noise * float(rng.normal())),
        )
    r = (y - x @ beta) / scale
    psi = np.clip(r, -C, C)
    sigma = 2 * radius_squared / (mu * n)
    curvature = (
        (x * (weights * (np.abs(r) < C))[:, None]).T @ x / n + symmetric(p, sigma, rng)
    ) / scale
    z = x * (weights * psi)[:, None]
    scores = z.T @ z / n + symmetric(p, sigma * C**2, rng)
    inverse = np.linalg.inv(floored(curvature))
    variance = inverse @ floored(scores) @ inverse / n + 8 * rate**2 * bound**2 * steps / (
        n * mu
    ) ** 2 * np.eye(p)
    return beta, np.sqrt(np.diag(variance))


def symmetric(p: int, sigma: float, rng: Rng) -> Array:
    upper = np.triu(rng.normal(size=(p, p))) * sigma
    return upper + np.triu(upper, 1).T


def floored(matrix: Array) -> Array:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 0.02)) @ vectors.T


@dataclass(frozen=True)
class Row:
    """Hits and half-widths of every repetition and coefficient; `plain` is the non-private
    interval, `lecture` the lectures' hits.
    """

    hits: Array
    widths: Array
    plain_hits: Array
    plain_widths: Array
    lecture: Array
    seconds: float

    @property
    def ratio(self) -> Array:
        return np.median(self.widths, axis=0) / np.median(self.plain_widths, axis=0)


def skewed_shift(case: Case, scale: float, c: float) -> float:
    """How far the Huber functional at a given scale lies from the mean of the errors."""
    if case.errors != "skewed":
        return 0.0
    grid = -np.log1p(-(np.arange(4000) + 0.5) / 4000) - 1
    return case.sigma * float(
        optimize.brentq(lambda b: np.clip((grid - b) * case.sigma / scale, -c, c).mean(), -1, 1)
    )


def one(case: Case, n: int, seed: int) -> tuple[Array, ...]:
    rng = np.random.default_rng([seed, n, sum(case.name.encode())])
    schema, model = declared(case)
    columns = drawn(case, n, rng)
    y, x = responses(case, columns, rng), np.hstack([np.ones((n, 1)), columns])
    data = {
        f"x{j}": columns[:, j] if half else columns[:, j] > 0.5 for j, half in enumerate(case.half)
    } | {"y": y}
    session = seeded_session(
        dp.from_arrays(data, schema=schema, neighbors=dp.Replace()),
        dp.GDP(case.mu),
        f"coverage/{case.name}/{n}/{seed}",
    )
    start = time.process_time()
    fit = fit_regression(session, model, case.family, spend=dp.GDP(case.mu))
    interval = fit.confidence_interval(LEVEL)
    seconds = time.process_time() - start
    plain, error, scale = reference_fit(case, x, y)
    truth, plain_truth = np.array(case.beta), np.array(case.beta)
    truth[0] += skewed_shift(case, fit.scale, getattr(fit.family, "c", C))
    plain_truth[0] += skewed_shift(case, scale, C)
    lecture = np.full(len(truth), np.nan)
    if case == PUBLISHED:
        beta, lecture_error = lecture_fit(x, y, case.mu, rng, start_scale=case.reach / 4)
        lecture = np.abs(beta - truth) <= Z * lecture_error
    return (
        (interval[:, 0] <= truth) & (truth <= interval[:, 1]),
        (interval[:, 1] - interval[:, 0]) / 2,
        np.abs(plain - plain_truth) <= Z * error,
        Z * error,
        lecture,
        np.array([seconds]),
    )


def several(job: tuple[Case, int, int, int]) -> list[tuple[Array, ...]]:
    case, n, first, last = job
    return [one(case, n, seed) for seed in range(first, last)]


def simulated(
    case: Case, n: int, repetitions: int, run: Callable[..., Iterator[list[tuple[Array, ...]]]]
) -> Row:
    jobs = [(case, n, first, min(first + 25, repetitions)) for first in range(0, repetitions, 25)]
    draws = [draw for part in run(several, jobs) for draw in part]
    columns = [np.array(column) for column in zip(*draws, strict=True)]
    return Row(*columns[:5], float(np.mean(columns[5])))


def line(case: Case, n: int, row: Row) -> str:
    coverage, plain, repetitions = row.hits.mean(axis=0), row.plain_hits.mean(axis=0), len(row.hits)
    lecture = (
        f"  lecture {row.lecture.mean():.3f} [{row.lecture.mean(axis=0).min():.3f}]"
        if case == PUBLISHED
        else ""
    )
    return (
        f"{case.name:32s} n={n:6d} mu={case.mu:g}  coverage {coverage.mean():.3f} "
        f"[{coverage.min():.3f}] ± {math.sqrt(LEVEL * (1 - LEVEL) / repetitions):.3f}"
        f"  non-private {plain.mean():.3f} [{plain.min():.3f}]  worst difference "
        f"{(coverage - plain).min():+.3f}  width {np.median(row.ratio):.3f} "
        f"[{row.ratio.max():.3f}]"
        f"{lecture}  {1000 * row.seconds:.0f} ms a fit, {repetitions} runs"
    )


def store(rows: list[tuple[Case, int, Row]]) -> None:
    """Every design and number of rows."""
    runs = min(len(row.hits) for _, _, row in rows)
    stored.table(
        "coverage_regression",
        about="coverage",
        title="Coefficients of private regressions",
        says="Coverage of nominal 95 % intervals of coefficients, beside the interval without "
        "privacy on the same samples, and the median width beside it.",
        columns=[
            stored.column("design"),
            stored.column("rows"),
            stored.column("mu", "μ"),
            stored.column("mean", "mean coverage", digits=3, target="≥ 0.94"),
            stored.column("lowest", "lowest coefficient", digits=3),
            stored.column("plain", "lowest without privacy", digits=3),
            stored.column("width", "median width / without privacy", digits=2),
        ],
        rows=[
            {
                "design": case.name,
                "rows": n,
                "mu": case.mu,
                "mean": stored.share(float(row.hits.mean()) * runs, runs),
                "lowest": stored.share(float(row.hits.mean(axis=0).min()) * runs, runs),
                "plain": stored.share(float(row.plain_hits.mean(axis=0).min()) * runs, runs),
                "width": float(np.median(row.ratio)),
            }
            for case, n, row in rows
        ],
        runs=runs,
        error="the standard error of a share of the runs",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reps", type=int, default=REPETITIONS, help="repetitions of every row")
    parser.add_argument(
        "--n", default=",".join(map(str, SIZES)), help="sizes of the published design"
    )
    parser.add_argument("--all", action="store_true", help="other designs, errors and families too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    stored.option(parser)
    arguments = parser.parse_args()
    rows: dict[int, Row] = {}
    kept: list[tuple[Case, int, Row]] = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        run = map if arguments.jobs == 1 else pool.map
        for n in [int(size) for size in arguments.n.split(",")]:
            rows[n] = simulated(PUBLISHED, n, arguments.reps, run)
            kept.append((PUBLISHED, n, rows[n]))
            print(line(PUBLISHED, n, rows[n]), flush=True)
        for case, sizes in OTHERS if arguments.all else ():
            for n in sizes:
                kept.append((case, n, simulated(case, n, arguments.reps, run)))
                print(line(*kept[-1]), flush=True)
    if arguments.store:
        store(kept)
    print(
        " ".join(
            part
            for n in (1000, 4000)
            for part in (
                f"coverage_n{n}={rows[n].hits.mean(axis=0).min():.4f}"
                if n in rows
                else f"coverage_n{n}=none",
                f"width_n{n}={rows[n].ratio.max():.4f}" if n in rows else f"width_n{n}=none",
            )
        ),
        f"lecture_coverage_n1000={rows[1000].lecture.mean(axis=0).min():.4f}"
        if 1000 in rows
        else "lecture_coverage_n1000=none",
    )
    sys.exit(0)


if __name__ == "__main__":
    main()
