"""Adversarial tables for the file engine: every type, every writer, every question that the public
functions ask, and neighbours.

`engine_fuzz_tables` makes random columns of random Arrow types with cells that are easily read
wrongly, and Parquet files by random writers with random settings; `questions` are the queries of
all public procedures, caught as they are asked. The engine over the file must give what the engine
in memory gives, memory must give what a plain reading cell by cell gives, and one row (or unit)
exchanged, added or removed must move no statistic of the file engine by more than its sensitivity.
"""

from __future__ import annotations

import contextlib
import json
import math
import uuid
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
from engine_fuzz_tables import (
    random_cells,
    random_columns,
    random_types,
    random_writer,
    table_of,
    write,
)
from engine_kinds import counts_in
from engine_reference import (
    bounded,
    reference_gram,
    reference_histogram,
    reference_keys,
    reference_sums,
)

import discreet as dp
from discreet.models.trials.scores import score_question
from discreet.schema import Schema
from discreet.sensitivity import L1, L2, Friendly, Frobenius, LInf, OneRow, RowLoss, Rows
from discreet.specs.aggregation.friends import FriendlyCore
from discreet.specs.aggregation.part_outputs import PartOutputs
from discreet.specs.estimating.minimand import Minimand
from discreet.specs.holdout.surprises import Kept, Product, RowFunction, Surprise
from discreet.specs.mechanisms.friendly import WEIGHT_BITS
from discreet.specs.queries.cell_states import CellStates
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.keys import Between, Bins, Levels, Subset
from discreet.specs.queries.marginals import Axis, Discrepancies, Marginals, sizes_of
from discreet.specs.queries.open_keys import OpenPlan
from discreet.specs.queries.parts import PartRejections
from discreet.specs.queries.plans import GramPlan, SumsPlan
from discreet.specs.queries.scores import ScoresPlan
from discreet.specs.queries.sums import GramMatrix, number_factor
from discreet.testing import seeded_session
from discreet.trusted.engines import batches
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays, memory_engine_from_frame
from discreet.trusted.extensions import unit_buckets
from discreet.trusted.extensions.open_keys import counts as open_key_counts
from discreet.trusted.learning.minimiser.rows import SUM_BITS
from discreet.trusted.scale import parquet_files
from discreet.trusted.session import Session

SCHEMA = Schema(
    {
        "x": dp.Real(-5, 100),
        "y": dp.Real(0, 50, missing=0),
        "n": dp.Integer(18, 90),
        "b": dp.Boolean(),
        "c": dp.Category(["N", "S", "é", "7"]),
        "k": dp.Open(),
        "z": dp.Real(-1e6, 1e6, bits=32),
    }
)
RELATIONS = (
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="id", max_rows=2),
    dp.AddRemove(unit="id", max_rows=2),
)
PUBLIC_ROWS = 24  # under row-level Replace every table has as many, because some queries say so


# ── questions ─────────────────────────────────────────────────────────────────────────────────────


def _asked(session, neighbors):
    """Every public procedure, once or in its variants."""
    spend, pure = dp.GDP(3), dp.PureDP(3)
    yield lambda: dp.count(session, spend=spend, where={"c": ["N", "7"], "n": (20, 60)})
    for column in ("x", "n", "z", "b"):
        yield lambda column=column: dp.sum(session, column, spend=spend)
        yield lambda column=column: dp.mean(session, column, spend=spend)
    yield lambda: dp.mean(session, "x", spend=spend, where={"b": True, "y": (0, 40)})
    yield lambda: dp.mean(session, "y", spend=pure)
    yield lambda: dp.variance(session, "x", spend=spend)
    yield lambda: dp.missing(session, spend=spend)
    yield lambda: dp.proportion(session, "b", spend=spend)
    yield lambda: dp.proportion(session, "c", level="é", spend=pure)
    yield lambda: dp.histogram(session, "x", bins=[-5, 0, 1.5, 33.3, 100], spend=spend)
    yield lambda: dp.histogram(session, "c", spend=pure)
    yield lambda: dp.table(session, "x", by="c", spend=spend)
    yield lambda: dp.table(
        session, by={"c": None, "n": [18, 40, 90]}, spend=spend, where={"b": False}
    )
    yield lambda: dp.table(session, by="k", spend=spend, delta=1e-3)
    yield lambda: dp.table(session, by=["k", "c"], spend=spend, delta=1e-3)
    yield lambda: dp.median(session, "x", spend=spend)
    yield lambda: dp.median(session, "z", spend=pure, where={"b": True})
    yield lambda: dp.quantiles(session, "n", [0.25, 0.75], spend=spend)
    yield lambda: dp.ecdf(session, "y", spend=spend)
    yield lambda: dp.density(session, "x", spend=spend)
    yield lambda: dp.covariance(session, ["x", "y", "n"], spend=spend)
    yield lambda: dp.iqr(session, "x", spend=spend)
    yield lambda: dp.mad(session, "x", spend=spend)
    yield lambda: dp.mode(session, "c", spend=pure)
    yield lambda: dp.top(session, "c", 2, spend=spend)
    yield lambda: dp.unbounded_mean(session, "x", spend=dp.GDP(6))
    yield lambda: dp.location(session, "x", spend=dp.GDP(6))
    yield lambda: dp.truncated_mean(session, "x", bound=30, spend=spend)
    yield lambda: dp.above_threshold(session, [{"c": "N"}, {"b": True}], 3, spend=pure)
    yield lambda: dp.paired_test(session, "x", "y", spend=spend)
    yield lambda: dp.rank_test(session, "x", by="b", spend=spend)
    yield lambda: dp.independence_test(session, "b", "c", spend=spend)
    yield lambda: dp.subsample_test(
        session, _mean_below, columns=["x", "n"], parts=4, inner=0.3, spend=spend
    )
    yield lambda: dp.subsample(
        session, _part_mean, columns=["x", "n"], output=dp.Real(0, 1), parts=2, spend=spend
    )
    if neighbors.unit is None:
        family = dp.BetaBinomial("b", prior=(1, 1))
        yield lambda: dp.posterior_sample(session, family, grid=[0.1, 0.5, 0.8], spend=pure)
    if neighbors == dp.Replace():
        friendly = {"radius": 60.0, "spend": dp.GDP(6), "delta": 1e-3}
        yield lambda: dp.friendly_mean(session, ["x", "n"], **friendly)
    fit = dp.GDP(20)
    yield lambda: dp.ols(session, "x ~ n + c", spend=fit)
    yield lambda: dp.ols(session, "x ~ n + y", spend=fit, method="moments")
    yield lambda: dp.robust(session, "y ~ x + b", spend=fit)
    yield lambda: dp.logistic(session, "b ~ x + c", spend=fit)
    yield lambda: dp.accuracy(session, dp.logistic(session, "b ~ x", spend=fit), spend=spend)
    yield lambda: _score(session, dp.logistic(session, "b ~ x", spend=fit), "log-loss")
    yield lambda: _score(session, dp.ols(session, "x ~ n", spend=fit), "squared error")
    yield lambda: dp.logistic(session, "b ~ x", method="output", spend=fit)
    yield lambda: dp.poisson(session, "n ~ x", spend=fit)
    yield lambda: dp.residuals(session, dp.ols(session, "x ~ n", spend=fit), spend=spend)
    if neighbors.unit is None:
        yield lambda: dp.logistic(session, "b ~ x", spend=dp.ApproxDP(5, 1e-3), solver=dp.SGD())
        small = dp.SGD(steps=2, batch=4)
        private = dp.ApproxDP(5, 1e-3)
        yield lambda: dp.network(session, "b ~ x + n", hidden=(3,), spend=private, solver=small)


def _score(session, fit, score):
    return session.release(score_question(session.public, fit, score, dp.GDP(3)))


def _mean_below(x, n):
    return 0.1 if len(x) and float(np.mean(x)) < float(np.mean(n)) else 0.9


def _part_mean(x, n):
    return min(1.0, max(0.0, float(np.mean(x)) / 100)) if len(x) else 0.5


def questions(neighbors):
    """The different queries that the public procedures ask, caught on a small tame data set."""
    rng = np.random.default_rng(3)
    rows = PUBLIC_ROWS
    data = {
        "x": rng.uniform(0, 90, rows),
        "y": rng.uniform(0, 50, rows),
        "z": rng.normal(0, 1e5, rows),
        "n": rng.integers(18, 91, rows),
        "b": rng.random(rows) < 0.5,
        "c": rng.choice(["N", "S", "é", "7"], rows),
        "k": rng.choice(["p", "q"], rows),
        "id": np.arange(rows),
    }
    session = seeded_session(
        dp.from_arrays(data, schema=SCHEMA, neighbors=neighbors), dp.ApproxDP(1e5, 0.5), seed=1
    )
    found, release, failed = {}, Session.release, []

    def caught(self, question, **options):
        found[json.dumps(question.query.to_dict(), sort_keys=True)] = question.query
        return release(self, question, **options)

    Session.release = caught
    try:
        for place, ask in enumerate(_asked(session, neighbors)):
            try:
                ask()
            except dp.DiscreetError as error:
                failed.append((place, str(error)[:200]))
    finally:
        Session.release = release
    gram = GramMatrix(
        tuple(number_factor(SCHEMA, name, "a sum", 16) for name in ("x", "y", "n", "b"))
    )
    axes = (
        Axis(Levels("c", len(SCHEMA["c"].levels)), True),
        Axis(Levels("b", 2), True),
        Axis(Bins("n", (18.0, 40.0, 90.0)), True),
        Axis(Bins("x", (-5.0, 30.0, 90.0)), False),
    )
    tables = ((0,), (1, 2), (0, 1, 3))
    counted = Marginals(axes, tables, (3, 2, 1))
    guesses = tuple((2,) * cells for cells in sizes_of(counted.plan()))
    apart = [Discrepancies(axes, tables, guesses, of) for of in ("tables", "cells")]
    claimed = [Surprise(part, 1 << 18, 1 << 15) for part in _averaged()]
    return [*found.values(), gram, counted, *apart, *claimed], failed


def _averaged():
    """What a holdout takes means of."""
    yield Kept((Subset("c", (0, 2)), Between("n", 20.0, 60.0)))
    yield Product(tuple(number_factor(SCHEMA, name, "a mean", 16) for name in ("x", "y")))
    yield RowFunction(("x", "n", "b", "c"), "row function", function=_of_a_row)


def _of_a_row(row):
    return row["x"] / 200 + row["n"] / 200 if row["b"] else row["c"] == "é"


# ── statistics and how far they move ──────────────────────────────────────────────────────────────


PARTED = (PartRejections, PartOutputs)
GRADIENT_BITS = 24  # of the gradients of minimised losses that are compared


class PlacedWords:
    """Words by their place alone: rows and units are put into parts by their place,
    so that two engines can be compared.
    """

    secure = False

    def uint64(self, count):
        return (np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)


def statistic(query, engine):
    """What a query's mechanism would read, in plain Python."""
    found = query.assemble(execute(engine, query.plan(), PlacedWords()))
    if hasattr(found, "pieces"):
        return counts_in(found)
    if isinstance(found, FriendlyCore):
        return [found.weight, found.total, *found.sums]
    if isinstance(query, Minimand):
        return _gradient_of(query, found)
    if hasattr(found, "gradient"):
        beta = np.array([(-1) ** place * (3 + place) * 2.0**20 for place in range(query.size)])
        return [int(value) for value in found.gradient(np.arange(found.count), beta)]
    return [int(value) for value in np.asarray(found, dtype=object).ravel()]


def _gradient_of(query, found):
    """The gradient of a minimised loss at some coefficients, in 2**-GRADIENT_BITS."""
    theta = [Fraction((-1) ** place * (3 + place), 2) for place in range(query.size)]
    sums, error, _ = found.gradient(theta)
    assert error < Fraction(1, 1 << (GRADIENT_BITS + 1))
    unit = Fraction(1 << GRADIENT_BITS) / (query.metric.bound * (1 << SUM_BITS))
    return [round(int(value) * unit) for value in query.metric.matrix @ sums]


def ratio(query, neighbors, before, after):
    """How far the statistic moved over how far it may:
    the largest over the sensitivities that the query states.
    """
    stated = query.sensitivity(neighbors)
    return max(
        _ratio(one, before, after) for one in (stated if isinstance(stated, tuple) else (stated,))
    )


def _ratio(sensitivity, before, after):
    if isinstance(sensitivity, Rows):
        change = Counter(after)
        change.subtract(before)
        come, gone = (
            sum(value for value in change.values() if value > 0),
            -sum(value for value in change.values() if value < 0),
        )
        broken = (sensitivity.change == "replaced" and come != gone) or (
            sensitivity.change == "added or removed" and min(come, gone)
        )
        return math.inf if broken else max(come, gone) / sensitivity.rows
    if isinstance(sensitivity, Friendly):
        return _friendly_ratio(sensitivity, before, after)
    change = [int(second) - int(first) for first, second in zip(before, after, strict=True)]
    if isinstance(sensitivity, L1):
        return float(Fraction(sum(map(abs, change))) / sensitivity.value)
    if isinstance(sensitivity, LInf):
        one_way = not sensitivity.one_way or min(change) >= 0 or max(change) <= 0
        return float(Fraction(max(map(abs, change))) / sensitivity.value) if one_way else math.inf
    if isinstance(sensitivity, Frobenius):
        order, weights = sensitivity.order, []
        for row in range(order):
            weights += [1] + [2] * (order - row - 1)
        weights += [1] * (len(change) - len(weights))
        return math.sqrt(
            Fraction(
                sum(weight * value * value for weight, value in zip(weights, change, strict=True))
            )
            / sensitivity.squared
        )
    if isinstance(sensitivity, RowLoss):  # both gradients are rounded, and within their error
        length = math.sqrt(sum(value * value for value in change)) - 2 * math.sqrt(len(change))
        return length / float(sensitivity.moves * sensitivity.steepness * (1 << GRADIENT_BITS))
    squared = sensitivity.moved_squared if isinstance(sensitivity, OneRow) else sensitivity.squared
    assert isinstance(sensitivity, (L2, OneRow))
    return math.sqrt(Fraction(sum(value * value for value in change)) / squared)


def _friendly_ratio(sensitivity, before, after):
    """How far the mean of friends moved, over 8r√k/max(W, W'); and W over 3 where the neighbour has
    no friends.
    """
    weights = [Fraction(one[0], 1 << WEIGHT_BITS) for one in (before, after)]
    if not before[1] or not after[1]:
        return float(max(weights) / 3)
    first, second = ([Fraction(value, one[1]) for value in one[2:]] for one in (before, after))
    moved = math.sqrt(sum((a - b) ** 2 for a, b in zip(first, second, strict=True)))
    return moved * float(max(weights)) / (8 * math.sqrt(sensitivity.squared))


def applies(query, rows):
    """Whether a query can be asked of a table with so many rows."""
    return getattr(query, "rows", None) in (None, rows)


@contextlib.contextmanager
def sizes(choose):
    """Batches of one row or of many, units dealt out on disk or not: nothing may depend on it."""
    places = (
        (batches, "BATCH_ROWS"),
        (open_key_counts, "KEYED_ROWS"),
        (parquet_files, "TASK_ROWS"),
        (unit_buckets, "HELD_BYTES"),
    )
    before = [getattr(module, name) for module, name in places]
    rows = choose.choice([1, 4, 1 << 17])
    chosen = (rows, rows, choose.choice([1, 5, 1 << 19]), choose.choice([1, 500, 1 << 26]))
    for (module, name), size in zip(places, chosen, strict=True):
        setattr(module, name, size)
    try:
        yield
    finally:
        for (module, name), size in zip(places, before, strict=True):
            setattr(module, name, size)


# ── comparisons ───────────────────────────────────────────────────────────────────────────────────


def naive(plan, counted):
    """A plan's integers over rows that all count, by the plain reading, cell by cell; None where
    there is none.
    """
    alone = dp.Replace()
    if isinstance(plan, ScoresPlan):
        return [reference_sums(counted, part, SCHEMA, alone) for part in plan.plans]
    if isinstance(plan, SumsPlan):
        return reference_sums(counted, plan, SCHEMA, alone)
    if isinstance(plan, GramPlan):
        return reference_gram(counted, plan, SCHEMA, alone)
    if isinstance(plan, HistogramPlan):
        return reference_histogram(counted, plan, SCHEMA, alone)
    return reference_keys(counted, plan, SCHEMA, alone) if isinstance(plan, OpenPlan) else None


def plain(found):
    if isinstance(found, list):
        return [plain(one) for one in found]
    return counts_in(found) if hasattr(found, "pieces") else found.tolist()


def plain_cell(cell):
    return cell if isinstance(cell, (bool, int, float, str, Decimal, uuid.UUID)) else None


def compare(choose, path, neighbors, queries):
    """Comparisons and differences of one random table, as (number, list of texts)."""
    types, rows = (
        random_types(choose),
        PUBLIC_ROWS if neighbors.row_count_is_public else choose.choice([0, 1, 3, 12, 30]),
    )
    table = write(table_of(random_columns(choose, types, rows), types), path, random_writer(choose))
    engines = {"file": FileEngine(path, "parquet", SCHEMA, neighbors)}
    if choose.random() < 0.5:
        engines["cells"] = memory_engine_from_arrays(
            {
                name: [plain_cell(cell) for cell in table.column(name).to_pylist()]
                for name in table.column_names
            },
            SCHEMA,
            neighbors,
        )
    if choose.random() < 0.3 and all(type_is_common(field.type) for field in table.schema):
        engines["polars"] = memory_engine_from_frame(pl.read_parquet(path), SCHEMA, neighbors)
    oracle, done, wrong = memory_engine_from_frame(table, SCHEMA, neighbors), 0, []
    counted = None
    if choose.random() < 0.25:
        listed = [{name: plain_cell(row[name]) for name in row} for row in table.to_pylist()]
        counted = bounded(listed, SCHEMA, neighbors)
    with sizes(choose):
        for query in queries:
            if not applies(query, rows) or (
                isinstance(query, PARTED) and neighbors.unit is not None
            ):
                continue
            expected = statistic(query, oracle)
            for name, engine in engines.items():
                if name == "cells" and isinstance(query, CellStates):
                    continue  # a list has no type by which all its cells are unreadable
                done += 1
                if statistic(query, engine) != expected:
                    wrong.append(f"{name}: {query} on {table.schema.types}")
            if counted is not None and (reading := naive(query.plan(), counted)) is not None:
                done += 1
                if plain(execute(oracle, query.plan())) != reading:
                    wrong.append(f"naive: {query} on {table.schema.types}")
    return done, wrong


def type_is_common(kind):
    """Types that other readers of Parquet read as what they are."""
    return kind in (
        pa.float64(),
        pa.float32(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.uint8(),
        pa.uint64(),
        pa.bool_(),
        pa.string(),
        pa.large_string(),
        pa.date32(),
    )


def neighbouring(choose, columns, types, neighbors):
    """The columns after one row (or unit) was exchanged, or removed;
    None where there is none to remove.
    """
    rows = len(next(iter(columns.values())))
    fresh = {name: random_cells(choose, name, kind, 6) for name, kind in types.items()}
    if neighbors.unit is None:
        return (
            {
                name: [*cells[:-1], *(fresh[name][:1] if isinstance(neighbors, dp.Replace) else [])]
                for name, cells in columns.items()
            }
            if rows
            else None
        )
    ids = [cell for cell in columns["id"] if cell is not None and cell == cell]
    if not ids:
        return None
    one = choose.choice(ids)
    kept = [row for row in range(rows) if columns["id"][row] is None or columns["id"][row] != one]
    more = choose.randrange(1, 6) if isinstance(neighbors, dp.Replace) else 0
    return {
        name: [
            *(cells[row] for row in kept),
            *([one] * more if name == "id" else fresh[name][:more]),
        ]
        for name, cells in columns.items()
    }


def neighbours(choose, path, neighbors, queries):
    """Neighbours compared, the worst ratio of a change to its sensitivity, and what exceeded it,
    on the file engine alone.
    """
    types, rows = (
        random_types(choose),
        PUBLIC_ROWS if neighbors.row_count_is_public else choose.choice([1, 3, 12, 30]),
    )
    columns, writers = random_columns(choose, types, rows), random_writer(choose)
    changed = neighbouring(choose, columns, types, neighbors)
    if changed is None:
        return 0, 0.0, []
    seen = []
    for given in (columns, changed):
        write(table_of(given, types), path, writers)
        engine = FileEngine(path, "parquet", SCHEMA, neighbors)
        count = len(next(iter(given.values())))
        with sizes(choose):
            seen.append(
                {
                    place: statistic(query, engine)
                    for place, query in enumerate(queries)
                    if applies(query, count)
                    and not (
                        isinstance(query, (PartRejections, PartOutputs))
                        and neighbors.unit is not None
                    )
                }
            )
    done, worst, wrong = 0, 0.0, []
    for place in seen[0].keys() & seen[1].keys():
        moved = ratio(queries[place], neighbors, seen[0][place], seen[1][place])
        done, worst = done + 1, max(worst, moved)
        if moved > 1 + 1e-12:
            wrong.append(f"{moved}: {queries[place]} under {neighbors} with {types}")
    return done, worst, wrong
