"""Spark: tasks answer plans over their parts of a frame, and Spark adds whole numbers by place.

Theorem.  A pass gives the integers of all rows in memory, however the frame is parted and however
          often a task runs.
Proof.    A task's answer is that of its rows (tasks.py); Spark takes the rows of one attempt of
          each task, and the sum of decimals of 38 digits is exact or fails. Places below 0 hold
          keyed sums of what was read: where an attempt, or a later pass, reads other rows, they
          differ but with probability about 2**-64, and the pass fails.
Checked.  tests/trusted/cluster/

What stays on the cluster (blocks of a model, rows of units that count, what is shuffled) is
encrypted by Spark on its disks; a session without spark.io.encryption.enabled is refused.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from discreet import plain
from discreet.errors import MissingExtra, cluster, data
from discreet.neighbors import Neighbors, require_neighbors
from discreet.schema import Column, Schema
from discreet.seclusion import Failed, aside
from discreet.specs.aggregation.friends import ClippedPlan, FriendsPlan
from discreet.specs.aggregation.part_outputs import OutputsPlan
from discreet.specs.estimating.model import EstimatingPlan, Model
from discreet.specs.estimating.networks import NetworkPlan
from discreet.specs.estimating.residuals import ResidualPlan
from discreet.specs.queries.cell_states import StatesPlan
from discreet.specs.queries.open_keys import OpenPlan
from discreet.specs.queries.parts import PartsPlan
from discreet.trusted.cluster.answers import counted_names, put_together
from discreet.trusted.cluster.native import hashes, native
from discreet.trusted.cluster.plans import another_each_time
from discreet.trusted.cluster.progress import shown
from discreet.trusted.datasets import LONGEST_NAME, Dataset
from discreet.trusted.engines.engine import needed_columns, require_columns
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.rehearsal import made_up
from discreet.trusted.later import later

_ANSWERING = later("discreet.trusted.cluster.tasks", "answering")
_OF_BLOCKS = later("discreet.trusted.cluster.tasks", "of_blocks")
ROWS_THEMSELVES = (PartsPlan, OutputsPlan, FriendsPlan, ClippedPlan)
PARTS_WITH_ROWS = ("rows", "absolute rows", "minimand")
TYPES: tuple[str, ...] = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
TYPES += ("boolean", "string", "char", "varchar", "date", "timestamp", "timestamp_ntz", "binary")
TYPES += ("void",)
TIMES = ("date", "timestamp", "timestamp_ntz", "void")
PROBES = 16  # tasks that are asked which version they have


class SparkEngine:
    """Plans over a Spark frame, of which column number i of the needed ones is named s‹i›;
    `carried` is called in place of what needs rows here.
    """

    def __init__(self, frame: Any, schema: Schema, neighbors: Neighbors, name: str | None) -> None:
        self.schema, self.neighbors, self.scale = schema, neighbors, None
        self.remembered: dict[type[Any], Any] = {}
        self._frame = frame
        self._key, self._lock = secrets.token_bytes(32), threading.RLock()
        self._seen: dict[tuple[str, ...], int] = {}
        self._model: tuple[Model, Any] | None = None
        self._units: Any = None
        self._types: dict[str, str] | None = None
        self._name, self.has_name = name, name is not None
        self._token = secrets.token_hex(16)
        self._held: list[Any] = []
        weakref.finalize(self, _let_go, self._held)

    def sums(self, plan: Any) -> Any:
        """Σ of each term over the rows of each cell."""
        return self.carried(plan)

    def gram(self, plan: Any) -> Any:
        """Σ of all pairwise products of the factors."""
        return self.carried(plan)

    def histogram(self, plan: Any) -> Any:
        """How many rows hold each value of a factor's grid."""
        return self.carried(plan)

    def fold(self, *_: Any, **__: Any) -> NoReturn:
        """Rows are not looked at here."""
        raise cluster.rows_stay()

    def whole(self) -> NoReturn:
        """Rows are not looked at here."""
        raise cluster.rows_stay()

    def require(self, plan: Any) -> None:
        """Refuses a plan that reads rows one by one, or in random parts."""
        if (
            isinstance(plan, ROWS_THEMSELVES)
            or (isinstance(plan, NetworkPlan) and plan.weights is None)
            or getattr(plan, "part", None) in PARTS_WITH_ROWS
        ):
            raise cluster.rows_stay()

    def carried(self, plan: Any) -> Any:
        """The answer of a plan: one job, and for a model's first one another that encodes it."""
        self.require(plan)
        with self._lock, shown(self._frame):
            if isinstance(plan, (EstimatingPlan, ResidualPlan, NetworkPlan)):
                frame, reading = self._blocks(plan.model)
                totals = self._added(frame, _OF_BLOCKS(plan), reading)
            else:
                states = plan.columns if isinstance(plan, StatesPlan) else ()
                totals = self._answered(plan, plan.columns, states)
        if isinstance(plan, OpenPlan):
            return counted_names(totals)
        none = execute(made_up(self.schema, self.neighbors), plan)
        return put_together(none, totals)

    def public_count(self) -> int | None:
        """Rows under row-level Replace, distinct units under Replace(unit=),
        None under AddRemove.
        """
        if not self.neighbors.unit_count_is_public:
            return None
        with self._lock, shown(self._frame):
            return self._answered(None, (), ()).get(0, 0)

    def unchanged(self) -> bool:
        """Whether rows changed is seen where they are read."""
        return True

    def describe(self) -> dict[str, Any]:
        """Public facts only."""
        return {"kind": "spark", "source": self._name or "", "columns": sorted(self.schema)}

    def data_id(self) -> str:
        """The name that the holder gave, or one that was made with the engine."""
        return f"spark:named:{self._name}" if self.has_name else f"spark:{self._token}"

    # ── frames ────────────────────────────────────────────────────────────────────────────────────

    def _reading(self, names: Sequence[str], *, kept: bool = False) -> Any:
        from discreet.trusted.cluster.tasks import Reading

        return Reading(self.schema, self.neighbors, tuple(names), self._key, kept)

    def _rows(self, columns: Sequence[str], states: Sequence[str]) -> tuple[Any, Any]:
        """The frame of some columns: as it is, or of the rows of units that count."""
        needed, unit = needed_columns(self.schema, self.neighbors), self.neighbors.unit
        if unit is None:
            reading = self._reading([name for name in needed if name in columns] or needed[:1])
            places = reading.places()
            return self._frame.selectExpr(*places, *hashes(self._key, places)), reading
        reading = self._reading([name for name in needed if name in (*columns, unit)], kept=True)
        if states:
            return self._bounded(tuple(states)).select("words", *reading.places()), reading
        if self._units is None:
            self._units = self._kept(self._bounded(()))
        return self._units.select("words", *reading.places()), reading

    def _bounded(self, states: tuple[str, ...]) -> Any:
        """Tables of the rows of whole units that count (units.py)."""
        from discreet.trusted.cluster import tasks

        reading = self._reading(needed_columns(self.schema, self.neighbors))
        cells = ", ".join(f"{field.name} {_sql(field)}" for field in self._frame.schema.fields)
        tabled = ", ".join(f"{place} binary" for place in reading.places())
        few = self._mapped(
            self._frame, tasks.together(states), reading, f"{cells}, copies long, spread long"
        ).repartition("spread")
        least = self._mapped(
            few, tasks.few_of_units(states), reading, f"{cells}, least long, home long"
        ).repartition("home")
        return self._mapped(least, tasks.kept_of_units(states), reading, f"words binary, {tabled}")

    def _blocks(self, model: Model) -> tuple[Any, Any]:
        """The encoded rows of a model, which stay on the cluster until another model comes."""
        from discreet.trusted.cluster import tasks

        frame, reading = self._rows(model.reads, ())
        if self._model is None or self._model[0] != model:
            if self._model is not None:
                self._model[1].unpersist()
                self._held.remove(self._model[1])
                self._model = None
            blocks = self._kept(self._mapped(frame, tasks.encoding(model), reading, tasks.BLOCK))
            self._model = (plain.twin(model), blocks)
        return self._model[1], reading

    def _kept(self, frame: Any) -> Any:
        kept = frame.persist()  # in memory, and on disk where there is no room
        self._held.append(kept)
        return kept

    def _mapped(self, frame: Any, task: Any, reading: Any, schema: str) -> Any:
        from discreet.trusted.cluster.tasks import VERSION, in_task

        return frame.mapInArrow(in_task(task, reading, VERSION), schema)

    def _answered(self, plan: Any, columns: Any, states: Any) -> dict[Any, int]:
        """Totals by place, of Spark's own expressions where they are memory's, else of tasks."""
        frame, reading = self._rows(columns, states)
        asked = None if reading.kept else self._native(plan, reading)
        if asked is None:
            named = isinstance(plan, OpenPlan)
            return self._added(frame, _ANSWERING(plan), reading, named=named, states=states)
        totals, told = asked(frame)
        self._same_rows(reading, told, ())
        return dict(totals)

    def _native(self, plan: Any, reading: Any) -> Any:
        """The question in Spark's own expressions, if that is proven."""
        if self._types is None:
            self._types = {field.name: _sql(field) for field in self._frame.schema.fields}
        return native(plan, reading, self._types)

    def _added(
        self, frame: Any, task: Any, reading: Any, *, named: bool = False, states: Any = ()
    ) -> dict[Any, int]:
        """Totals by place, of rows that earlier passes read too."""
        schema = f"place {'binary' if named else 'long'}, total decimal(38,0)"
        mapped = self._mapped(frame, task, reading, schema)
        found = mapped.groupBy("place").agg({"total": "sum"}).collect()
        totals = {bytes(row[0]) if named else row[0]: int(row[1]) for row in found}
        told = [
            totals.pop(b"\xff%d" % place if named else -1 - place, 0)
            for place in range(reading.summed)
        ]
        self._same_rows(reading, told, states)
        return totals

    def _same_rows(self, reading: Any, told: list[int], states: Any) -> None:
        """Refuses sums of other rows than earlier passes read."""
        now = {
            about: word % (1 << 64) for about, word in zip(reading.about(states), told, strict=True)
        }
        if any(self._seen.get(key, word) != word for key, word in now.items()):
            raise ValueError("other rows than in an earlier pass")
        self._seen |= now  # of passes that came to their end, and of no other


def _let_go(held: list[Any]) -> None:
    for frame in held:
        with contextlib.suppress(Exception):  # the session may have ended
            frame.unpersist()


def _type_of(frame: Any, name: str) -> str:
    return _sql(next(field for field in frame.schema.fields if field.name == name))


def _is_nothing(frame: Any, name: str) -> bool:
    """Whether cells of a column's type are none that are read."""
    return _type_of(frame, name).partition("(")[0] not in TYPES


def _sql(field: Any) -> str:
    return str(field.dataType.simpleString())


def _cells(frame: Any, name: str) -> Any:
    from pyspark.sql import functions

    if _is_nothing(frame, name):
        return functions.lit(None).cast("string")
    return functions.col("`" + name.replace("`", "``") + "`")


def _require_session(frame: Any) -> None:
    """Refuses what would not give the same rows again, or would leave them open on a disk."""
    session = frame.sparkSession
    if frame.isStreaming:
        raise cluster.another_each_time("a stream")
    if session.conf.get("spark.io.encryption.enabled", "false") != "true":
        raise cluster.not_encrypted()
    found = aside(lambda: another_each_time(_explained(frame)) or _says_so(frame))
    if isinstance(found, Failed):
        found = "a step that Spark does not explain"
    if found is not None:
        raise cluster.another_each_time(found)
    ours = version_here()
    versions = aside(lambda: _versions(session))
    if isinstance(versions, Failed) or versions != {ours}:
        raise cluster.other_executors(ours)


def _says_so(frame: Any) -> str | None:
    """What Spark at hand says of functions of one's own, which say it themselves."""
    if hasattr(frame, "_jdf") and not frame._jdf.queryExecution().analyzed().deterministic():
        return "a function that is not deterministic"
    return None


def _explained(frame: Any) -> str:
    """The plan of a frame, as Spark explains it, whole."""
    session, fields = frame.sparkSession, "spark.sql.debug.maxToStringFields"
    before = session.conf.get(fields)
    session.conf.set(fields, str(1 << 30))
    try:
        if hasattr(frame, "_jdf"):
            jvm = session.sparkContext._jvm
            return str(jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "extended"))
        return str(frame._explain_string(extended=True))
    finally:
        session.conf.set(fields, before)


def version_here() -> str:
    """The version of this package."""
    from discreet.trusted.cluster.tasks import VERSION

    return VERSION


def _versions(session: Any) -> set[str]:
    """The version of this package in some tasks, or the empty text where there is none."""

    def version(batches: Any) -> Any:
        import pyarrow

        try:
            from discreet.trusted.cluster.tasks import VERSION

            found = VERSION
        except Exception:
            found = ""
        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"found": [found]})

    probe = session.range(0, PROBES, 1, PROBES).mapInArrow(version, "found string")
    return {row[0] for row in probe.distinct().collect()}


@plain.called
def from_spark(
    frame: Any,
    *,
    schema: Mapping[str, Column],
    neighbors: Neighbors | None = None,
    name: str | None = None,
) -> Dataset:
    """A data set in a Spark frame, of a session at hand or of Spark Connect; its rows stay on the
    cluster, where tasks answer with whole numbers that Spark adds.

    The executors need this version of the package, and the session
    ``spark.io.encryption.enabled=true``, because rows and sums of them reach Spark's disks. The
    frame must give the same rows each time: samples, limits, random numbers and functions of one's
    own are refused; write such a frame to a table first. Questions that look at rows one by one
    (``solver="sgd"``, tests on random parts) are refused before their debit. `name` says which data
    these are, as in `from_frame`.

    Price.    None: names and types alone are read, and the executors' versions.
    Example.
            def wages(spark):
                return dp.from_spark(
                    spark.table("survey.wages"),
                    schema={"wage": dp.Real(0, 500)},
                    neighbors=dp.Replace(unit="person", max_rows=12),
                    name="wages 2024",
                )
    See also. `dp.from_batches`, `dp.read_parquet`; docs/how-to/spark.md.
    """
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise MissingExtra("pyspark", "spark", "reading Spark frames") from None
    if not hasattr(frame, "mapInArrow"):
        raise cluster.no_frame()
    declared, relation = Schema(schema), require_neighbors(neighbors)
    known = None if name is None else plain.text(name, "name=", longest=LONGEST_NAME)
    cells = _declared(frame, declared, relation)
    return Dataset(SparkEngine(cells, declared, relation, known), declared, relation)


def _declared(frame: Any, schema: Schema, neighbors: Neighbors) -> Any:
    """The needed columns of a frame that can be asked."""
    require_columns(schema, neighbors, frame.columns)
    unit = neighbors.unit
    if unit is not None and (_is_nothing(frame, unit) or _type_of(frame, unit) in TIMES):
        raise data.unit_without_ids(unit, _type_of(frame, unit))
    _require_session(frame)
    needed = needed_columns(schema, neighbors)
    return frame.select(
        *(_cells(frame, name).alias(f"s{place}") for place, name in enumerate(needed))
    )
