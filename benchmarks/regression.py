"""Speed and memory of private regression, against numpy, diffprivlib and Opacus, all in this
process and interleaved; the best of several repeats counts.

    make bench NAME=regression [ARGS="--rows 1000000 --columns 50 --repeats 5"]

iteration   one exact weighted gradient Σ w ψ(η, y) x of a logistic regression on encoded rows
            (2 bytes a cell) / X.T @ (X @ b) in float64 numpy
logistic    dp.logistic with intervals: declare, read, encode, all releases,
            95 % intervals / diffprivlib's LogisticRegression.fit on the same arrays (its X within a
            known ball, so that nothing is read from data; it gives no intervals)
sgd         rows a second of solver="sgd", logistic, batches of 1024, over Opacus' DP-SGD with the
            same model and batch size (its Poisson sampling), on a fifth of the rows; ours is a
            whole fit of 20 000 steps with its pricing and intervals, theirs steps alone
growth      seconds a row of the whole fit at all rows / at a tenth of them (at 1 the cost is
            linear; fixed costs make it less)
memory      the most that a whole fit allocates at once beside the arrays it is given / 2 bytes a
            cell of the model (tracemalloc)

A peer that is not installed gives "nan". The machine's load is printed: threads of ours and of BLAS
share its processors with everything else.
"""

from __future__ import annotations

import argparse
import math
import os
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import discreet as dp
import stored
from discreet.models.points import point_at
from discreet.specs.estimating.components import UNIT
from discreet.specs.estimating.families import Logistic
from discreet.specs.estimating.tables import PSI
from discreet.trusted.extensions.estimating.kernels import ModelData, gradient_sums

BATCH = 1024


def best(functions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The least seconds of each function, run in turn."""
    least = dict.fromkeys(functions, math.inf)
    for _ in range(repeats):
        for name, function in functions.items():
            began = time.perf_counter()
            function()
            least[name] = min(least[name], time.perf_counter() - began)
    return least


def draws(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """X in −1 … 1 and a yes/no y with a logistic law."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (rows, columns))
    return x, rng.random(rows) < 1 / (
        1 + np.exp(-x @ (rng.normal(size=columns) * 3 / math.sqrt(columns)))
    )


def iteration(rows: int, columns: int, repeats: int) -> float:
    x, y = draws(rows, columns)
    b = np.linspace(-1, 1, columns)
    data = ModelData(np.round(x * UNIT).astype(np.int16), (y * PSI).astype(np.int32))
    weights = np.full(rows, 1 << 15, dtype=np.int32)
    family, point = Logistic(), point_at(b, 1.0, Logistic())
    few = ModelData(data.matrix[: rows // 10], data.response[: rows // 10])
    ours: dict[str, Callable[[], Any]] = {
        "ours": lambda: gradient_sums(data, weights, family, point),
        "numpy": lambda: x.T @ (x @ b),
        "few": lambda: gradient_sums(few, weights[: rows // 10], family, point),
    }
    best(ours, 1)  # compile
    seconds = best(ours, repeats)
    print(
        f"iteration: ours {seconds['ours']:.4f} s, numpy {seconds['numpy']:.4f} s; "
        f"{1e9 * seconds['few'] / (rows // 10):.1f} and {1e9 * seconds['ours'] / rows:.1f} ns a "
        f"row at {rows // 10} and {rows} rows"
    )
    return seconds["ours"] / seconds["numpy"]


def logistic(rows: int, columns: int, repeats: int) -> tuple[float, float, float]:
    """Our time over the peer's, our seconds a row at all rows over those at a tenth, and the peak
    of memory over 2 bytes a cell.
    """
    x, y = draws(rows, columns)
    names = [f"x{place}" for place in range(columns)]
    schema: dict[str, Any] = {name: dp.Real(-1, 1) for name in names} | {"y": dp.Boolean()}

    def ours(count: int = rows) -> None:
        arrays = {name: x[:count, place] for place, name in enumerate(names)} | {"y": y[:count]}
        session = dp.from_arrays(arrays, schema=schema, neighbors=dp.Replace()).open(
            budget=dp.GDP(1)
        )
        dp.logistic(session, "y ~ " + " + ".join(names), spend=dp.GDP(1)).confidence_interval(0.95)

    functions: dict[str, Callable[[], Any]] = {"ours": ours, "few": lambda: ours(rows // 10)}
    try:
        from diffprivlib.models import LogisticRegression

        functions["diffprivlib"] = lambda: LogisticRegression(
            epsilon=1.0, data_norm=math.sqrt(columns)
        ).fit(x, y)
    except ImportError:
        print("diffprivlib is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best(functions, 1)
        seconds = best(functions, repeats)
    tracemalloc.start()
    ours()
    memory = tracemalloc.get_traced_memory()[1] / (2 * rows * (columns + 1))
    tracemalloc.stop()
    few, all_rows = seconds.pop("few") / (rows // 10), seconds["ours"] / rows
    print(
        f"logistic fit, {rows} rows, {columns} columns: "
        + ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
        + (
            f"; ours {1e6 * few:.2f} and {1e6 * all_rows:.2f} µs a row at {rows // 10} and {rows} "
            f"rows, peak of memory {2 * memory:.2f} bytes a cell"
        )
    )
    return seconds["ours"] / seconds.get("diffprivlib", math.nan), all_rows / few, memory


def sgd(rows: int, columns: int, steps: int) -> float:
    from discreet.models.solvers import SGD

    x, y = draws(rows, columns)
    names = [f"x{place}" for place in range(columns)]
    arrays = {name: x[:, place] for place, name in enumerate(names)} | {"y": y}
    data = dp.from_arrays(
        arrays,
        schema={name: dp.Real(-1, 1) for name in names} | {"y": dp.Boolean()},
        neighbors=dp.AddRemove(),
    )
    formula = "y ~ " + " + ".join(names)
    try:
        seconds = math.inf
        for _ in range(2):
            session = data.open(budget=dp.ApproxDP(8, 1e-5))
            began = time.perf_counter()
            dp.logistic(
                session,
                formula,
                spend=dp.ApproxDP(1, 1e-6),
                solver=SGD(steps=50 * steps, batch=BATCH),
            )
            seconds = min(seconds, time.perf_counter() - began)
        our_rate = 50 * steps * BATCH / seconds
    except dp.DiscreetError as refusal:
        print(f"solver='sgd' refused: {str(refusal).splitlines()[0]}")
        return math.nan
    print(
        f"sgd: ours {our_rate:.3g} rows/s (pricing, curvature, scores and intervals in it)", end=""
    )
    theirs = opacus_rate(x, y, steps)
    print("" if math.isnan(theirs) else f", Opacus {theirs:.3g} rows/s")
    return our_rate / theirs


def opacus_rate(x: np.ndarray, y: np.ndarray, steps: int) -> float:
    """Rows a second of Opacus' DP-SGD on one linear layer, over `steps` Poisson batches."""
    try:
        import torch
        from opacus import PrivacyEngine
    except ImportError:
        print("; Opacus is not installed", end="")
        return math.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs, labels = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
        model = torch.nn.Linear(x.shape[1], 1)
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(inputs, labels), batch_size=BATCH
        )
        private, optimizer, batches = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=loader,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )
        loss, seen, began = torch.nn.BCEWithLogitsLoss(), 0, 0.0
        for step, (rows, truth) in enumerate(batches):
            if step == 2:
                seen, began = 0, time.perf_counter()
            optimizer.zero_grad()
            loss(private(rows).squeeze(1), truth).backward()
            optimizer.step()
            seen += len(rows)
            if step >= steps // 4 + 2:
                break
        return seen / (time.perf_counter() - began)


def store(found: dict[str, float], asked: argparse.Namespace) -> None:
    """What was compared, in the words of the last line."""
    about = {
        "iteration_vs_numpy": ("one exact gradient / X'(X b) in float64 numpy, time", ""),
        "logistic_vs_diffprivlib": ("a logistic fit with intervals / diffprivlib's fit, time", ""),
        "sgd_vs_opacus": ("rows a second of solver='sgd' / Opacus' DP-SGD", ""),
        "fit_growth": ("seconds a row at all rows / at a tenth of them", "about 1, or less"),
        "fit_memory": ("what a fit allocates at once / 2 bytes a cell", ""),
    }
    stored.figures(
        "regression",
        about="speed",
        title="Private regression: speed and memory",
        says=f"{asked.rows} rows, {asked.columns} columns, the best of {asked.repeats} repeats, "
        "all in one process; the sampled descent on a fifth of the rows.",
        found={
            what: (found[name], wanted)
            for name, (what, wanted) in about.items()
            if not math.isnan(found[name])  # a peer that is not installed
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400)
    stored.option(parser)
    asked = parser.parse_args()
    found = {"iteration_vs_numpy": iteration(asked.rows, asked.columns, asked.repeats)}
    found["logistic_vs_diffprivlib"], found["fit_growth"], found["fit_memory"] = logistic(
        asked.rows, asked.columns, asked.repeats
    )
    found["sgd_vs_opacus"] = sgd(asked.rows // 5, asked.columns, asked.steps)
    print(
        f"load of the machine: {' '.join(f'{one:.2f}' for one in os.getloadavg())}, "
        f"{os.cpu_count()} processors"
    )
    if asked.store:
        store(found, asked)
    order = (
        "iteration_vs_numpy",
        "logistic_vs_diffprivlib",
        "sgd_vs_opacus",
        "fit_growth",
        "fit_memory",
    )
    print(" ".join(f"{name}={found[name]:.3f}" for name in order))


if __name__ == "__main__":
    main()
