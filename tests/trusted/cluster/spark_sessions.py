"""Runs in a process of its own: a Spark session, what is asked of it, and how it answered.

    python spark_sessions.py hand|connect|cluster FOLDER

Writes one line of JSON a check: its name, and what is wrong (empty: nothing).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as parquet
from native_cells import asked, differing, odd_cells
from pyspark.sql import SparkSession, functions
from test_cluster_engine import BUDGET, CANARY, ROWS, SCHEMA, UNITS, crowded, integers

import discreet as dp
from discreet.testing import seeded_session
from discreet.testing.engines import check_engine
from discreet.testing.odd_tables import UNIT, odd_tables
from discreet.trusted.cluster import spark as spark_frames
from discreet.trusted.cluster import tasks
from discreet.trusted.cluster.spark import SparkEngine
from discreet.trusted.scale import progress

TABLES = {odd.name: odd for odd in odd_tables(40)}
EVERYWHERE = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.io.encryption.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",  # a plan is made once, not after every stage
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
}
# of a few rows: to compile a query takes longer than to run it; `native_cells` does both
COMPILING = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
NOT = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
EVERYWHERE |= NOT
spark_frames.PROBES = 2
NEAR = dp.AddRemove()
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def session(**more):
    builder = SparkSession.builder
    for key, value in (EVERYWHERE | more).items():
        builder = builder.config(key, value)
    return builder


def expected(neighbors, rows=ROWS):
    return integers(dp.from_frame(rows, schema=SCHEMA, neighbors=neighbors)._engine, neighbors)


def differs(found, neighbors, rows=ROWS):
    return "" if found == expected(neighbors, rows) else "other integers"


def narrowed(table):
    """Without the types that Spark does not have."""
    for place, field in enumerate(table.schema):
        if field.type == pa.uint64():
            table = table.set_column(place, field.name, table[field.name].cast(pa.decimal128(20)))
        elif pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table[field.name].cast(pa.string()))
    return table


def conformance(spark, name, relations):
    def make(table, schema, neighbors):
        frame = spark.createDataFrame(narrowed(table))
        return dp.from_spark(frame, schema=schema, neighbors=neighbors)

    found = check_engine(make, tables=[TABLES[name]], relations=relations)
    return "" if found.passed else str(found)


def native_cells(spark, folder=None, every=1):
    """Each row's codes by Spark's own expressions, of a file with compiled loops or of a frame at
    hand without, with and without ANSI mode; nothing of it is answered in Python.
    """
    frame = spark.createDataFrame(odd_cells())
    if folder:
        parquet.write_table(odd_cells(), Path(folder) / "odd.parquet")
        frame = spark.read.parquet(str(Path(folder) / "odd.parquet"))
    made = []

    def engine(schema):
        columns = (f"{name} AS s{place}" for place, name in enumerate(schema))
        spark.conf.set("spark.sql.ansi.enabled", "true" if len(made) % 2 else "false")
        made.append(SparkEngine(frame.selectExpr(*columns), schema, dp.AddRemove(), None))
        made[-1]._mapped = None
        return made[-1]

    configured(spark, COMPILING if folder else NOT)
    found = "; ".join(differing(engine, [*asked()][::every]))
    spark.conf.unset("spark.sql.ansi.enabled")
    configured(spark, NOT)
    return found or ("" if made else "nothing was asked")


def configured(spark, settings):
    for name, value in settings.items():
        spark.conf.set(name, value)


def refused(frame, said, **named):
    try:
        dp.from_spark(frame, **{"schema": SCHEMA, "neighbors": dp.AddRemove()} | named)
    except dp.DiscreetError as error:
        return "" if said in str(error) else str(error)
    return "not refused"


def others_each_time(spark):
    """Frames that may give other rows each time, and some that do not."""
    frame = spark.createDataFrame(ROWS)
    wrong = {
        "rand()": frame.withColumn("x", functions.rand() * 5),
        "uuid()": frame.filter(functions.expr("uuid() < 'a'")),
        "GlobalLimit": frame.limit(5),
        "Sample": frame.sample(0.5),
        "monotonically_increasing_id()": frame.withColumn(
            "x", functions.monotonically_increasing_id()
        ),
        "Repartition": frame.repartition(3),
    }
    found = [refused(given, said) for said, given in wrong.items()]
    frame.createOrReplaceTempView("seen")
    right = (
        frame.repartition("id").sort("x"),
        spark.sql("SELECT s.* FROM seen s JOIN (SELECT DISTINCT id FROM seen) USING (id)"),
        frame.union(frame).filter("x < 3"),
    )
    for given in right:
        dp.from_spark(given, schema=SCHEMA, neighbors=dp.AddRemove())
    return "; ".join(filter(None, found))


def parted(spark, parts, neighbors):
    frame = spark.createDataFrame(ROWS).repartition(parts, "x", "g", "id")
    return dp.from_spark(frame, schema=SCHEMA, neighbors=neighbors)


def partitionings(spark):
    rows = dp.AddRemove()
    many, one = (parted(spark, parts, rows)._engine for parts in (5, 1))
    found = [as_in_memory(many), as_in_memory(one)]
    return "; ".join([*filter(None, found), *bounded_units(spark)])


def bounded_units(spark):
    """A table and a fit of units, of which one has half of the rows."""
    asks = (
        lambda account: dp.table(account, "x", by="g", spend=dp.GDP(1)).release.integers,
        lambda account: [
            one.integers for one in dp.ols(account, "x ~ g", spend=dp.GDP(1)).releases
        ],
    )
    memory = dp.from_frame(ROWS, schema=SCHEMA, neighbors=UNITS)
    accounts = [seeded_session(data, BUDGET, seed=5) for data in (memory, parted(spark, 4, UNITS))]
    for ask in asks:
        if len({str(ask(account)) for account in accounts}) > 1:
            yield "other integers of units"


def changed_source(spark, folder):
    """A table that is written anew between two passes."""
    path = Path(folder) / "table.parquet"
    parquet.write_table(ROWS, path)
    kept = path.with_suffix(".kept")
    shutil.copy(path, kept)
    data = dp.from_spark(spark.read.parquet(str(path)), schema=SCHEMA, neighbors=dp.Replace())
    account = seeded_session(data, BUDGET, seed=5)
    dp.mean(account, "x", spend=dp.GDP(1))
    parquet.write_table(crowded(seed=9), path)
    ask = {"spend": dp.GDP(1), "key": "asked again"}
    with contextlib.suppress(dp.ReleaseFailed):
        dp.median(account, "x", **ask)
        return "not noticed"
    shutil.copy(kept, path)
    dp.median(account, "x", **ask)
    paid = [entry.key for entry in account.ledger.entries() if entry.kind == "debit"]
    return "" if len(paid) == 2 else "paid twice"


def failing_task(spark):
    """A task that fails on a cell: its name is in the logs, and the cell is not."""
    frame = spark.createDataFrame([(CANARY,)], "s0 string")
    engine = SparkEngine(frame, SCHEMA, dp.AddRemove(), None)

    def quoting(reading, batches):
        raise ValueError(next(batches).to_pylist())
        yield

    try:
        engine._mapped(frame, quoting, None, "place long").collect()
    except Exception as error:
        return "a cell in an error" if CANARY in str(error) else ""
    return "it did not fail"


def told_progress(spark, folder):
    """A pass of eight tasks, of which half wait until it was told that others are done."""
    frame = spark.createDataFrame(ROWS).repartition(8, "id").selectExpr("x s0", "g s1")
    told, place = [], str(Path(folder) / "told")

    def waiting(batches):
        from pyspark import TaskContext

        ends = time.monotonic() + 60
        while TaskContext.get().partitionId() > 3 and time.monotonic() < ends:
            if os.path.exists(place):
                break
            time.sleep(0.05)
        yield from batches

    def tell(share, *_):
        told.append(share)
        Path(place).touch()

    engine = SparkEngine(frame.mapInArrow(waiting, "s0 double, s1 string"), SCHEMA, NEAR, None)
    patch = {"watching": lambda: True, "wipe": lambda: None, "QUIET": 0.0, "BETWEEN": 0.05}
    with contextlib.ExitStack() as stack:
        for name, given in (patch | {"tell": tell}).items():
            stack.enter_context(mock.patch.object(progress, name, given))
        wrong = as_in_memory(engine)
    right = told and min(told) > 0 and max(told) < 1
    return wrong or ("" if right else f"told {told}")


def refused_questions(spark):
    account = seeded_session(parted(spark, 2, dp.AddRemove()), BUDGET, seed=5)
    with contextlib.suppress(dp.InvalidParameter):
        dp.robust(account, "x ~ g", spend=dp.GDP(1), solver=dp.SGD(delta=1e-8))
        return "answered"
    return "" if len(account.ledger.entries()) == 1 else "paid"


def other_version(spark):
    frame, ours = spark.createDataFrame(ROWS), tasks.VERSION
    tasks.VERSION = "0.0.0"
    try:
        return refused(frame, "some executor does not run discreet 0.0.0")
    finally:
        tasks.VERSION = ours


def not_encrypted(spark):
    """A session with this setting off is refused; it is read where the frame comes from."""

    class Open:
        conf = {"spark.io.encryption.enabled": "false"}  # noqa: RUF012
        sparkSession = SimpleNamespace(conf=conf)  # noqa: N815
        isStreaming = False  # noqa: N815

        def __getattr__(self, name):
            return getattr(spark.createDataFrame(ROWS), name)

    return refused(Open(), "spark.io.encryption.enabled=true")


def at_hand(folder):
    spark = session().master("local[2]").getOrCreate()
    near = (dp.AddRemove(), dp.Replace(unit=UNIT, max_rows=2))
    return {
        "partitionings": lambda: partitionings(spark),
        "numbers": lambda: conformance(spark, "numbers", near[:1]),
        "native cells": lambda: native_cells(spark, folder),
        "texts": lambda: conformance(spark, "texts", near[1:]),
        "times": lambda: conformance(spark, "times", near[:1]),
        "odd names": lambda: conformance(spark, "odd names", near[:1]),
        "no rows": lambda: conformance(spark, "numbers, no rows", near[1:]),
        "a giant unit": lambda: conformance(spark, "one giant unit", near[1:]),
        "other rows each time": lambda: others_each_time(spark),
        "a changed source": lambda: changed_source(spark, folder),
        "a failing task": lambda: failing_task(spark),
        "progress": lambda: told_progress(spark, folder),
        "refused questions": lambda: refused_questions(spark),
        "another version": lambda: other_version(spark),
        "no encryption": lambda: not_encrypted(spark),
    }


def connected(folder):
    often = {"spark.connect.progress.reportInterval": "200ms"}
    spark = session(**often).remote("local[2]").getOrCreate()
    return {
        "a giant unit": lambda: conformance(
            spark, "one giant unit", [dp.Replace(unit=UNIT, max_rows=2)]
        ),
        "native cells": lambda: native_cells(spark, every=4),
        "progress": lambda: told_progress(spark, folder),
        "fits": lambda: differs(
            integers(parted(spark, 3, dp.AddRemove())._engine, dp.AddRemove()), dp.AddRemove()
        ),
        "other rows each time": lambda: others_each_time(spark),
    }


# ── faults of a cluster ───────────────────────────────────────────────────────────────────────────


def watched(log, fault):
    """A step that notes each attempt of each task, and at first does what `fault` says."""

    def step(batches):
        from pyspark import TaskContext

        here = TaskContext.get()
        first = here.attemptNumber() == 0 and not os.path.exists(log)
        with open(log, "a") as file:
            file.write(f"{here.partitionId()} {here.attemptNumber()} {here.taskAttemptId()}\n")
        if first and fault == "kill":
            os.kill(os.getpid(), 9)
        if first and fault == "slow":
            time.sleep(20)
        yield from batches

    return step


def under_watch(spark, folder, name, fault):
    """An engine whose rows come through that step, and the file of its attempts."""
    log = str(Path(folder) / f"{name}.log")
    cells = spark.createDataFrame(ROWS).repartition(4, "id").selectExpr("x s0", "g s1")
    cells = cells.mapInArrow(watched(log, fault), "s0 double, s1 string")
    return SparkEngine(cells, SCHEMA, dp.AddRemove(), None), log


def attempts(log):
    return [line.split() for line in Path(log).read_text().splitlines()]


def one_mean(engine):
    from discreet.trusted.datasets import Dataset

    account = seeded_session(Dataset(engine, SCHEMA, dp.AddRemove()), BUDGET, seed=5)
    release = dp.table(account, "x", by="g", spend=dp.GDP(1)).release
    return release.integers, [entry.kind for entry in account.ledger.entries()]


def as_in_memory(engine):
    memory = dp.from_frame(ROWS, schema=SCHEMA, neighbors=dp.AddRemove())._engine
    return "" if one_mean(engine) == one_mean(memory) else "other integers, or another debit"


def killed_worker(spark, folder):
    engine, log = under_watch(spark, folder, "killed", "kill")
    wrong = as_in_memory(engine)
    again = [attempt for _, attempt, _ in attempts(log) if attempt != "0"]
    return wrong or ("" if again else "there was no second attempt")


def slow_worker(spark, folder):
    engine, log = under_watch(spark, folder, "slow", "slow")
    wrong = as_in_memory(engine)
    copies = [part for part, _, _ in attempts(log)]
    return wrong or ("" if len(copies) > len(set(copies)) else "there was no speculative copy")


def executors():
    found = []
    for place in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            line = (place / "cmdline").read_bytes() if place.name.isdigit() else b""
            if EXECUTOR.encode() in line and MARK.encode() in line:
                found.append(int(place.name))
    return found


MARK = f"discreet.mark={os.getpid()}"


def killed_executor(spark, folder):
    """An executor goes while a fit runs over blocks that it holds."""
    engine, log = under_watch(spark, folder, "executor", "none")
    seen, ended = {}, threading.Event()

    def kill():
        while not ended.is_set():
            if engine._model is not None and Path(log).exists() and len(attempts(log)) >= 4:
                time.sleep(1)
                seen["before"], seen["killed"] = len(attempts(log)), executors()[0]
                os.kill(seen["killed"], 9)
                return
            time.sleep(0.05)

    killer = threading.Thread(target=kill)
    killer.start()
    wrong = differs(integers(engine, dp.AddRemove()), dp.AddRemove())
    ended.set()
    killer.join()
    if "killed" not in seen:
        return "no executor was killed"
    return wrong or ("" if len(attempts(log)) > seen["before"] else "no block was made anew")


@contextlib.contextmanager
def standalone(folder):
    """A master on 127.0.0.1 and a worker on 127.0.0.1 and on 127.0.0.2."""
    import pyspark

    home = Path(pyspark.__file__).parent
    deploy = "org.apache.spark.deploy"
    named = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    env = os.environ | named
    started = []

    def start(name, *given):
        log = Path(folder) / f"{len(started)}.out"
        with open(log, "w") as out:
            command = [str(home / "bin" / "spark-class"), f"{deploy}.{name}", *given]
            started.append(subprocess.Popen(command, env=env, stdout=out, stderr=out))
        return log

    try:
        log = start("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        place = waited(lambda: _word(log.read_text(), "spark://"))
        for host in ("127.0.0.1", "127.0.0.2"):
            given = ("--host", host, "--cores", "1", "--memory", "1g", "--webui-port", "0")
            log = start("worker.Worker", *given, "--work-dir", str(Path(folder) / host), place)
            waited(lambda log=log: "Successfully registered" in log.read_text())
        yield place
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def _word(text, start):
    return next((word for word in text.split() if word.startswith(start)), None)


def waited(look, seconds=120):
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise TimeoutError("a process of the cluster did not start")


def on_cluster(folder, stack):
    place = stack.enter_context(standalone(folder))
    spark = (
        session(
            **{
                "spark.executor.cores": "1",
                "spark.executor.memory": "512m",
                "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "spark.executor.extraJavaOptions": f"-D{MARK}",
                "spark.speculation": "true",
                "spark.speculation.interval": "200ms",
                "spark.speculation.multiplier": "1.5",
                "spark.speculation.quantile": "0.5",
                "spark.speculation.minTaskRuntime": "3s",
            }
        )
        .master(place)
        .getOrCreate()
    )
    stack.callback(spark.stop)
    waited(lambda: len(executors()) == 2)
    return {
        "a worker killed": lambda: killed_worker(spark, folder),
        "a speculative copy": lambda: slow_worker(spark, folder),
        "an executor killed": lambda: killed_executor(spark, folder),
    }


def main(kind, folder):
    warnings.simplefilter("ignore")  # pandas' age
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    with contextlib.ExitStack() as stack:
        if kind == "cluster":
            checks = on_cluster(folder, stack)
        else:
            checks = (at_hand if kind == "hand" else connected)(folder)
        for name, check in checks.items():
            start = time.monotonic()
            try:
                found = check()
            except Exception as error:
                found = f"{type(error).__name__}: {error}"[:2000]
            took = round(time.monotonic() - start, 1)
            print(json.dumps({"check": name, "found": found, "seconds": took}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
