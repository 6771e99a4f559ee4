"""How long this tree takes for what another tree of this project takes: a ratio a piece of work.

    python benchmarks/against.py --tree PATH [--cases logistic,groups] [--repeats 7]

PATH is a checkout of another version (``git worktree add PATH COMMIT``). Each tree has a process of
its own, which does a piece of work when it is asked to; the two are asked in turns, so that what
else the machine does falls on both. What counts is the least CPU time of a process and its threads,
first calls (imports, compiled loops) left out. A module that moved is found under either name.

    noise              a million draws: Gaussian, Laplace, geometric
    groups             counts and means in 1000 groups of a Parquet file, with intervals
    accounting         three questions about losses (see accounting.py)
    quantiles          median, 99 quantiles, smooth median; the `bare` one has no interval, as in
                       trees in which smooth medians had none
    logistic           a whole fit with intervals, 50 columns
    small              20 means and counts of 100 rows with intervals, each on a data set of its
                       own; 20 means of one open session; a fit of 100 rows

No cell of `logistic` and `small` can be missing: columns name a `missing` value. `logistic default`
leaves that out: older trees filled cells in, newer ones leave rows out and release how many stay.

Prints a line a piece; then one of ratios, this tree / the other ("nan": one of them cannot do it).
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[1]
GROUPS, COLUMNS, SMALL = 1000, 50, 100
Work = Callable[[], object]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tree", required=True, help="a checkout of the other version")
    parser.add_argument(
        "--cases", default="", help="pieces to do, or the first words of their names"
    )
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    wanted = tuple(word for word in options.cases.split(",") if word)
    names = [name for name in CASES if not wanted or name.startswith(wanted)]
    if options.worker:
        answer(options.rows)
        return 0
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        trees = [Tree(path, folder, options.rows) for path in (HERE, Path(options.tree))]
        for name in names:
            ratios[name] = compared(name, trees, options.repeats)
        for tree in trees:
            tree.end()
    print(" ".join(f"{name.replace(' ', '_')}={ratio:.3f}" for name, ratio in ratios.items()))
    return 0


def compared(name: str, trees: list[Tree], repeats: int) -> float:
    """The ratio of the least CPU times, after one call of each that does not count."""
    least, pairs = [math.inf, math.inf], []
    for repeat in range(repeats + 1):
        pair = [tree.seconds(name) for tree in trees]
        if math.isnan(sum(pair)):
            return math.nan
        if repeat:
            least = [min(both) for both in zip(least, pair, strict=True)]
            pairs.append(pair[0] / pair[1])
    print(
        f"{name:21s} {1e3 * least[0]:9.2f} ms {1e3 * least[1]:9.2f} ms  {least[0] / least[1]:.3f}"
        f"  (median of pairs {statistics.median(pairs):.3f})",
        flush=True,
    )
    return least[0] / least[1]


class Tree:
    """A process with one version of the library, that does a piece of work when it is asked."""

    def __init__(self, path: Path, folder: str, rows: int) -> None:
        source = (path / "src").resolve()
        if not (source / "discreet").is_dir():
            raise SystemExit(f"{path} is no checkout of this project: it has no src/discreet")
        environment = os.environ | {"PYTHONPATH": str(source), "AGAINST_FOLDER": folder}
        for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            environment[threads] = "1"
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--worker", "--tree", str(path), "--rows", str(rows)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, name: str) -> float:
        """CPU seconds of one call; NaN where this version cannot do it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(name, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def end(self) -> None:
        """Closes its input; the process then ends by itself."""
        self._process.communicate()


def answer(rows: int) -> None:
    """The worker: names of pieces in, CPU seconds out."""
    warnings.simplefilter("ignore")
    made: dict[str, Work | None] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in made:
            try:
                made[name] = CASES[name](rows)
            except (ImportError, AttributeError):
                made[name] = None
        work = made[name]
        seconds = math.nan
        if work is not None:
            try:
                seconds = timed(work)
            except TypeError as refused:  # a parameter that this version does not have
                print(f"{name}: {refused}", file=sys.stderr)
                made[name] = None
        print(seconds, flush=True)


def timed(work: Work) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def found(name: str, *modules: str) -> Any:
    """A name of the library, in the first of these modules that exists and has it."""
    for module in modules:
        try:
            return getattr(importlib.import_module(f"discreet.{module}"), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(name)


# -- noise and accounting ---------------------------------------


def noise(kind: str, sensitivity: str, refinement: int) -> Callable[[int], Work]:
    def made(rows: int) -> Work:
        mechanism = found(kind, "specs.mechanisms.additive", "mechanisms.additive")
        bound = found(sensitivity, "sensitivity")(Fraction(1))
        draw = found("draw", "trusted.noise.sampling", "noise")
        source = found("secure_source", "trusted.noise.source", "noise")()
        spec = mechanism(bound, Fraction(100), refinement)
        return lambda: draw(spec, rows, source)

    return made


def losses(name: str) -> Any:
    build = "accounting.loss_distributions.build", "accounting.pld"
    return found(
        name,
        *build,
        "accounting.loss_distributions.curve",
        "accounting.loss_distributions.calibration",
    )


def accounting_sgd(rows: int) -> Work:
    gaussian, sampled = losses("gaussian_pld"), losses("poisson_subsampled")
    return lambda: sampled(gaussian(1.0), 0.01).self_compose(10_000).epsilon_at(1e-5)


def accounting_sigma(rows: int) -> Work:
    calibrate = losses("calibrate_sigma")
    return lambda: calibrate(2.0, 1e-5, steps=10_000, sampling_rate=0.01)


def accounting_mixed(rows: int) -> Work:
    gaussian, laplace, sampled, all_of = map(
        losses, ("gaussian_pld", "laplace_pld", "poisson_subsampled", "compose_all")
    )
    spread = [index / 250 for index in range(250)]

    def work() -> object:
        parts = [gaussian(1 / (60 + 60 * s)) for s in spread]
        parts += [laplace(1 / (50 + 60 * s)) for s in spread]
        parts += [sampled(gaussian(1 / (1 + s)), 0.002 + 0.008 * s) for s in spread]
        parts += [sampled(laplace(1 / (1 + s)), 0.002 + 0.006 * s) for s in spread]
        return all_of([(part, 1) for part in parts]).epsilon_at(1e-6)

    return work


# -- the public way ---------------------------------------


def groups(by: str) -> Callable[[int], Work]:
    def made(rows: int) -> Work:
        import discreet as dp

        schema = {
            "g": dp.Category([f"g{level:04d}" for level in range(GROUPS)]),
            "number": dp.Category(range(GROUPS)),
            "x": dp.Real(0, 100, missing=50),
        }
        path = os.path.join(os.environ["AGAINST_FOLDER"], "groups.parquet")
        if not os.path.exists(path):
            write_groups(path, rows)
        data = dp.read_parquet(path, schema=schema, neighbors=dp.Replace())
        session = data.open(budget=dp.GDP(100))
        return lambda: dp.table(session, "x", by=by, spend=dp.GDP(0.5)).quantities()

    return made


def write_groups(path: str, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(3)
    number = rng.integers(0, GROUPS, rows)
    names = pa.DictionaryArray.from_arrays(number, [f"g{level:04d}" for level in range(GROUPS)])
    columns = {"g": names.cast(pa.string()), "number": number, "x": rng.uniform(0, 100, rows)}
    pq.write_table(pa.table(columns), path)


def quantile(name: str, **options: Any) -> Callable[[int], Work]:
    """A question about a million values on a data set that nobody has read before."""

    def made(rows: int) -> Work:
        import discreet as dp

        values = np.random.default_rng(20).normal(47.0, 10.0, rows)
        schema = {"x": dp.Real(0, 100, missing=50)}
        every = [Fraction(percent, 100) for percent in range(1, 100)]

        def work(given: dict[str, Any] = options) -> object:
            data = dp.from_arrays({"x": values}, schema=schema, neighbors=dp.Replace())
            session = data.open(budget=dp.PureDP(100))
            if name == "quantiles":
                many = dp.quantiles(session, "x", every, spend=dp.PureDP(1))
                return many.confidence_interval(0.95)
            one = dp.median(session, "x", spend=dp.PureDP(1), **given)
            return one.estimate if options else one.confidence_interval(0.95)

        if options.get("interval_share") == 0:
            try:
                work()
            except (TypeError, ValueError):  # a version without the option has no interval
                return lambda: work({"method": options["method"]})
        return work

    return made


def logistic(*, filled: bool, rows: int | None = None) -> Callable[[int], Work]:
    def made(asked: int) -> Work:
        import discreet as dp

        count, width = (asked, COLUMNS) if rows is None else (rows, 2)
        rng = np.random.default_rng(1)
        x = rng.uniform(-1, 1, (count, width))
        slopes = rng.normal(size=width) * 3 / math.sqrt(width)
        y = rng.random(count) < 1 / (1 + np.exp(-x @ slopes))
        names = [f"x{place}" for place in range(width)]
        real, truth = ({"missing": 0.0}, {"missing": False}) if filled else ({}, {})
        schema: dict[str, Any] = {name: dp.Real(-1, 1, **real) for name in names}
        schema["y"] = dp.Boolean(**truth)
        arrays = {name: x[:, place] for place, name in enumerate(names)} | {"y": y}
        formula = "y ~ " + " + ".join(names)

        def work() -> object:
            data = dp.from_arrays(arrays, schema=schema, neighbors=dp.Replace())
            session = data.open(budget=dp.GDP(1))
            return dp.logistic(session, formula, spend=dp.GDP(1)).confidence_interval(0.95)

        return work

    return made


def small(question: str) -> Callable[[int], Work]:
    """Twenty answers about 100 rows."""

    def made(rows: int) -> Work:
        import discreet as dp

        values = np.random.default_rng(4).uniform(0, 100, SMALL)
        schema = {"x": dp.Real(0, 100, missing=50), "k": dp.Boolean(missing=False)}
        arrays = {"x": values, "k": values > 50}

        def opened() -> Any:
            data = dp.from_arrays(arrays, schema=schema, neighbors=dp.Replace())
            return data.open(budget=dp.GDP(10))

        def once() -> object:
            session, spend = opened(), dp.GDP(0.5)
            if question == "count":
                return dp.count(session, where={"k": True}, spend=spend).confidence_interval(0.95)
            return dp.mean(session, "x", spend=spend).confidence_interval(0.95)

        def answers() -> object:
            session = opened()
            return [dp.mean(session, "x", spend=dp.GDP(0.5)) for _ in range(20)]

        return answers if question == "answers" else lambda: [once() for _ in range(20)]

    return made


CASES: dict[str, Callable[[int], Work]] = {
    "noise gaussian": noise("GaussianNoise", "L2", 10),
    "noise laplace": noise("LaplaceNoise", "L1", 10),
    "noise geometric": noise("GeometricNoise", "L1", 0),
    "groups number": groups("number"),
    "groups text": groups("g"),
    "accounting sgd": accounting_sgd,
    "accounting sigma": accounting_sigma,
    "accounting mixed": accounting_mixed,
    "quantiles median": quantile("median"),
    "quantiles 99": quantile("quantiles"),
    "quantiles smooth": quantile("median", method="smooth"),
    "quantiles smooth bare": quantile("median", method="smooth", interval_share=0),
    "logistic": logistic(filled=True),
    "logistic default": logistic(filled=False),
    "small mean": small("mean"),
    "small count": small("count"),
    "small answers": small("answers"),
    "small logistic": logistic(filled=True, rows=SMALL),
}

if __name__ == "__main__":
    raise SystemExit(main())
