"""A frame in this process with the few methods of Spark's that the engine calls, so that most of
what tasks do is tested without a cluster; tasks are pickled as Spark pickles them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from hashlib import blake2b
from types import SimpleNamespace

import pyarrow as pa
from pyspark import cloudpickle

from discreet.trusted.cluster.spark import SparkEngine
from discreet.trusted.engines.engine import needed_columns

KINDS = {"long": pa.int64(), "binary": pa.binary(), "bigint": pa.int64()}


def types_of(given, known):
    """The Arrow types of a schema in Spark's words."""
    words = [field.strip().split(" ", 1) for field in given.replace("(38,0)", "").split(", ")]
    kinds = {**KINDS, "decimal": pa.decimal128(38, 0)}
    return {name: kinds[kind] if kind in kinds else known[name] for name, kind in words}


def _as_bytes(column):
    """Text as its bytes: some is not UTF-8."""
    plain = column.cast(column.type.value_type) if hasattr(column.type, "value_type") else column
    return plain.cast(pa.binary()) if pa.types.is_string(plain.type) else plain


def _selected(part, asked):
    """Columns as they are, and 64 bits of the cells that `xxhash64(…) AS name` reads."""
    found = {}
    for text in asked:
        hashed, _, name = text.rpartition(" AS ")
        if not hashed:
            found[name] = part.column(name)
            continue
        read = sorted(set(re.findall(r"\bs\d+\b", hashed)))
        columns = [_as_bytes(part.column(one)).to_pylist() for one in read]
        rows = list(zip(*columns, strict=True))
        words = [blake2b(repr(row).encode(), digest_size=8).digest() for row in rows]
        found[name] = pa.array([int.from_bytes(word, "big", signed=True) for word in words])
        found[name] = found[name].cast(pa.int64())
    return pa.table(found)


class Frame:
    """Parts of rows; each part's batches have at most so many rows."""

    def __init__(self, parts, batch_rows=1 << 17, *, twice=False):
        self.parts, self.batch_rows, self.twice = list(parts), batch_rows, twice
        self.kept = 0

    @property
    def types(self):
        return {field.name: field.type for field in self.parts[0].schema}

    @property
    def schema(self):
        kind = SimpleNamespace(simpleString=lambda: "as it came")
        return SimpleNamespace(
            fields=[SimpleNamespace(name=name, dataType=kind) for name in self.types]
        )

    def _like(self, parts):
        return Frame(parts, self.batch_rows, twice=self.twice)

    def select(self, *names):
        return self._like([part.select(list(names)) for part in self.parts])

    def selectExpr(self, *asked):
        return self._like([_selected(part, asked) for part in self.parts])

    def mapInArrow(self, task, schema):
        sent = cloudpickle.dumps(task)
        types = types_of(schema.replace("as it came", "given"), self.types)
        shape = pa.schema(list(types.items()))
        found = []
        for part in self.parts:
            for _ in range(1 + self.twice):  # a second attempt: its rows alone count
                batches = iter(part.to_batches(self.batch_rows))
                answers = list(cloudpickle.loads(sent)(batches))
            found.append(
                pa.Table.from_batches(answers).select(shape.names).cast(shape)
                if answers
                else shape.empty_table()
            )
        return self._like(found)

    def repartition(self, name):
        whole, places = pa.concat_tables(self.parts), defaultdict(list)
        for row, value in enumerate(whole.column(name).to_pylist()):
            places[value % 3].append(row)
        return self._like([whole.take(pa.array(places[place], pa.int64())) for place in range(3)])

    def persist(self):
        self.kept += 1
        return self

    def unpersist(self):
        self.kept -= 1

    def groupBy(self, name):
        return self

    def agg(self, sums):
        return self

    def collect(self):
        totals = defaultdict(int)
        for part in self.parts:
            for row in part.to_pylist():
                totals[row["place"]] += int(row["total"])
        return list(totals.items())


class InTasks(SparkEngine):
    """All is answered in tasks: there is no Spark that has expressions."""

    def _native(self, plan, reading):
        return None


def engine_over(table, schema, neighbors, *, parts=3, **named):
    """The engine over a table that is dealt out to parts."""
    needed = needed_columns(schema, neighbors)
    cells = table.select(list(needed)).rename_columns([f"s{i}" for i in range(len(needed))])
    order = [range(place, len(cells), parts) for place in range(parts)]
    dealt = [cells.take(pa.array(list(rows), pa.int64())) for rows in order]
    return InTasks(Frame(dealt, **named), schema, neighbors, None)
