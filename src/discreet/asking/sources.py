"""One reader for every kind of source, which chooses the engine by public facts and says why.

What is looked at: the type of what was given, and whether a limit of memory was. Neither rows nor
their number, nor the size of a file, decide anything, so that the choice tells nothing of them; and
what identifies data in a ledger never depends on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import narwhals as nw

from discreet import plain
from discreet.asking.declarations import ENDINGS
from discreet.errors import InvalidParameter, shown
from discreet.neighbors import Neighbors
from discreet.schema import Column
from discreet.trusted.cluster.spark import from_spark
from discreet.trusted.datasets import Dataset, from_frame, read_csv, read_parquet
from discreet.trusted.scale.sources import from_batches

ENGINES = ("auto", "memory", "files", "stream", "spark")
_WHY = "each engine reads some kinds of sources, and all give the same integers"


@plain.called
def read(
    source: Any,
    *,
    schema: Mapping[str, Column],
    neighbors: Neighbors | None = None,
    name: str | None = None,
    engine: str = "auto",
    memory_limit: str | int | None = None,
    cache: str | Path | None = "temporary",
) -> Dataset:
    """A data set in whatever holds it; `data.engine` says what reads it, and why.

    | source                                               | ``engine="auto"``                  |
    |------------------------------------------------------|------------------------------------|
    | a path, a pattern, a folder or a list of paths       | files, in batches                  |
    | a pandas, polars or Arrow table, a mapping of arrays | memory                             |
    | a lazy frame (polars, DuckDB, Ibis)                  | memory: carried out once, here; a  |
    |                                                      | stream where `memory_limit` is set |
    | a function that gives readers                        | a stream (`from_batches`)          |
    | a Spark frame                                        | Spark, where the rows are          |

    Another `engine` is refused where it cannot read the source: "stream" reads every table, "files"
    paths alone. CSV files are read in their plainest dialect; `read_csv` takes another.
    `name`, `memory_limit` and `cache` are as in the reader that is chosen.

    Price.    None: as for the reader that is chosen.
    Example.
            data = dp.read(
                {"hours": [38, 40, 20]}, schema={"hours": dp.Integer(0, 80)}, neighbors=dp.Replace()
            )
            print(data.engine)
    See also. `dp.from_frame`, `dp.read_parquet`, `dp.from_batches`, `dp.from_spark`;
              docs/how-to/large-data.md.
    """
    if engine not in ENGINES:
        raise InvalidParameter(
            f"engine={shown(engine)}", "no engine has that name", _WHY, f"one of {ENGINES}"
        )
    wanted = plain.text(engine, "engine=")
    told: dict[str, Any] = {"schema": schema, "neighbors": neighbors}
    found, why, possible = _chosen(source, memory_limit is not None)
    if wanted not in ("auto", *possible):
        raise InvalidParameter(
            f"engine={wanted!r}", f"{why}, which it does not read", _WHY, f"one of {possible}"
        )
    if wanted != "auto":
        found, why = wanted, "it was asked for"
    scale: dict[str, Any] = {"memory_limit": memory_limit, "cache": cache}
    if found == "files":
        data = _of_files(source, told | scale, name)
    elif found == "stream":
        reader = source if _gives_readers(source) else _reader_of(source)
        data = from_batches(reader, name=name, **told, **scale)
    else:
        data = (from_spark if found == "spark" else from_frame)(source, name=name, **told)
    data._chosen = f"{found}: {why}"
    return data


def _chosen(source: Any, limited: bool) -> tuple[str, str, tuple[str, ...]]:
    """The engine of a source, why, and all that can read it: of its type, and of whether a limit of
    memory was given.
    """
    if _is_paths(source):
        return "files", "paths were given", ("files",)
    if hasattr(source, "mapInArrow"):
        return "spark", "a Spark frame was given", ("spark",)
    if _gives_readers(source):
        return "stream", "a function that gives readers was given", ("stream",)
    if isinstance(source, Mapping):
        return "memory", "a mapping of arrays was given", ("memory",)
    lazy = isinstance(nw.from_native(source, pass_through=True), nw.LazyFrame)
    if lazy and limited:
        return "stream", "a lazy frame and a limit of memory were given", ("memory", "stream")
    kind = "a lazy frame, which is carried out once," if lazy else "a table in memory"
    return "memory", f"{kind} was given", ("memory", "stream")


def _is_paths(source: Any) -> bool:
    listed = source if type(source) in (list, tuple) else (source,)
    return bool(listed) and all(isinstance(one, (str, os.PathLike)) for one in listed)


def _gives_readers(source: Any) -> bool:
    """Whether it is a program, and no table that can be called besides."""
    return callable(source) and not hasattr(source, "columns")


def _reader_of(table: Any) -> Callable[[list[str]], Any]:
    """A fresh reader over a table's columns for every pass."""
    frame = nw.from_native(table)

    def reader(columns: list[str]) -> Any:
        some = frame.select(columns)
        if isinstance(some, nw.LazyFrame):
            native = some.to_native()
            return native if hasattr(native, "__arrow_c_stream__") else some.collect("pyarrow")
        return some.to_arrow().to_reader()

    return reader


def _of_files(source: Any, told: dict[str, Any], name: str | None) -> Dataset:
    if name is not None:
        raise InvalidParameter(
            "name=",
            "files go by their paths",
            "a ledger binds keys to what the data are called",
            "leave name= out",
        )
    listed = source if type(source) in (list, tuple) else [source]
    endings = {ENDINGS.get(Path(plain.path(one, "source")).suffix.lower()) for one in listed}
    reader = read_csv if endings == {"csv"} else read_parquet
    return reader(source, **told)
