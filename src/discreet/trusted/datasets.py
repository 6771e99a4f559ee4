"""A declared data set, and the ways to declare one: files (Arrow), frames (narwhals) and arrays.

Only names, types and lengths are looked at here; no cell is read before a debit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.errors import questions
from discreet.neighbors import Neighbors, require_neighbors
from discreet.schema import Column, Schema
from discreet.trusted.engines.engine import Engine
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import (
    MemoryEngine,
    memory_engine_from_arrays,
    memory_engine_from_frame,
)
from discreet.trusted.later import later
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.noise.source import secure_source
from discreet.trusted.session import Session

LONGEST_NAME = 200
_LIMITS = later("discreet.trusted.scale.limits", "limits")
Paths = str | Path | Sequence[str | Path]


class Dataset:
    """Declared data that nobody can look at: open a session on it to ask questions.

    Example.
            census = dp.load_census()
            data = dp.from_frame(
                census.frame, name="census", schema=census.schema, neighbors=census.neighbors
            )
            session = data.open(budget=dp.GDP(1), ledger="census.ledger")
            print(data.neighbors, session.remaining())
    See also. `dp.from_frame`, `dp.Session`, `dp.Ledger`.
    """

    __slots__ = ("__weakref__", "_budget", "_chosen", "_engine", "_neighbors", "_schema")

    def __init__(self, engine: Engine, schema: Schema, neighbors: Neighbors) -> None:
        self._engine, self._schema = engine, Schema(schema)
        self._neighbors = require_neighbors(neighbors)
        self._budget: Guarantee | None = None
        self._chosen = f"{engine.describe()['kind']}: its own reader was called"

    @property
    def engine(self) -> str:
        """What reads the rows, and why that was chosen (`dp.read`). It is told to the holder alone:
        no release, key or ledger has it, and answers are the same integers whatever it is.
        """
        return self._chosen

    @property
    def schema(self) -> Schema:
        """The declared columns."""
        return self._schema

    @property
    def neighbors(self) -> Neighbors:
        """What is protected."""
        return self._neighbors

    def with_budget(self, budget: Guarantee) -> Dataset:
        """The same data, with the budget of sessions that are opened without another one."""
        data = Dataset(self._engine, self._schema, self._neighbors)
        data._budget, data._chosen = budget, self._chosen
        return data

    @plain.called
    def open(
        self,
        *,
        budget: Guarantee | None = None,
        ledger: Ledger | str | Path | None = None,
        pure: float | None = None,
        delta0: float | None = None,
        expected_head: str | None = None,
    ) -> Session:
        """A session that can spend `budget`, or the declared one (`with_budget`).

        `ledger` is a file that keeps the account across sessions and processes (made if new),
        a Ledger, or None for an account in memory that ends with this process. `pure` and `delta0`
        split an (ε, δ) budget (accounting.open_box). Data in memory need a name beside a file: its
        keys would otherwise mean other data in every process.
        """
        if plain.derives(type(ledger), Ledger):
            if any(given is not None for given in (budget, pure, delta0, expected_head)):
                raise questions.budget_beside_ledger()
            account: Ledger = ledger  # type: ignore[assignment]
            self._require_name(account.persistent)
        else:
            ledger = None if ledger is None else plain.path(ledger, "ledger=")
            self._require_name(ledger is not None)
            budget = self._budget if budget is None else budget
            if budget is None and (ledger is None or not os.path.exists(ledger)):
                raise questions.no_budget()
            account = Ledger.open(
                budget, path=ledger, pure=pure, delta0=delta0, expected_head=expected_head
            )
        return Session(self._engine, self._schema, self._neighbors, account, secure_source())

    def check(self, *, examples: int = 3) -> Any:
        """Exact shares of missing, unreadable, undeclared and clamped cells, with examples, for the
        holder's own eyes. **Not private**: nothing of it may be published, and neither bounds nor
        questions may be chosen by it.
        """
        from discreet.trusted.extensions.cell_states import checked

        return checked(self._engine, tuple(self._schema), plain.whole(examples, "examples="))

    def _require_name(self, persistent: bool) -> None:
        if persistent and not getattr(self._engine, "has_name", True):
            raise questions.no_name()

    def __reduce__(self) -> NoReturn:
        raise questions.not_copied("data set")

    def __repr__(self) -> str:
        return f"Dataset({', '.join(self.schema)}; {self.neighbors})"


@plain.called
def read_parquet(
    path: Paths,
    *,
    schema: Mapping[str, Column],
    neighbors: Neighbors | None = None,
    memory_limit: str | int | None = None,
    cache: str | Path | None = "temporary",
) -> Dataset:
    """A data set in one or several Parquet files, in a folder of them, or in those that a pattern
    such as ``"survey/*.parquet"`` finds; it is read in batches and never loaded whole.

    `memory_limit`, for example ``"500MB"``, bounds what passes hold beside Python and its libraries
    (1 GiB where none is given). What several passes need again (the rows of a model, the rows of
    units that count) is kept on disk while the data set is open, two bytes a cell or as it came, in
    files without a name in the folder `cache`; with ``cache=None`` nothing is kept on disk between
    questions, and the rows of a model and of random parts are in memory.

    Price.    None: the files' schema alone is read.
    Example.
            dp.load_census().frame.to_parquet("census.parquet")
            data = dp.read_parquet(
                "census.parquet", schema={"age": dp.Integer(18, 90)}, neighbors=dp.Replace()
            )
            print(dp.mean(data.open(budget=dp.GDP(1)), "age", spend=dp.GDP(0.1)))
    See also. `dp.read_csv`, `dp.from_batches`, `dp.from_database`,
              `dp.from_spark`.
    """
    return _read(path, "parquet", schema, neighbors, (memory_limit, cache))


@plain.called
def read_csv(
    path: Paths,
    *,
    schema: Mapping[str, Column],
    neighbors: Neighbors | None = None,
    separator: str = ",",
    decimal: str = ".",
    thousands: str | None = None,
    encoding: str = "utf-8",
    missing_text: Sequence[str] = (),
    memory_limit: str | int | None = None,
    cache: str | Path | None = "temporary",
) -> Dataset:
    r"""A data set in one or several CSV files with a header;
    every cell is read as text first, so no cell can fail.

    How the file is written is declared, never guessed from its rows: the mark between fields, the
    decimal mark, the mark between groups of digits, the encoding, and the texts that mean a missing
    value beside the empty one, for example ``separator=";", decimal=",", encoding="cp1252"`` for
    what Excel writes in much of Europe, and ``missing_text=("NA",)`` for what R does. Folders,
    patterns, `memory_limit` and `cache` are as in `read_parquet`.

    Price.    None: the header alone is read.
    Example.
            from pathlib import Path

            Path("survey.csv").write_text("hours;wage\n38;17,50\n40;NA\n", encoding="cp1252")
            data = dp.read_csv(
                "survey.csv",
                schema={"hours": dp.Integer(0, 80), "wage": dp.Real(0, 100)},
                neighbors=dp.Replace(),
                separator=";",
                decimal=",",
                encoding="cp1252",
                missing_text=("NA",),
            )
            print(data.check())
    See also. `dp.read_parquet`, `dp.declare`; docs/how-to/large-data.md.
    """
    from discreet.specs.dialects import Dialect

    dialect = Dialect(separator, decimal, thousands, encoding, missing_text)
    return _read(path, "csv", schema, neighbors, (memory_limit, cache), dialect)


@plain.called
def from_frame(
    frame: Any,
    *,
    schema: Mapping[str, Column],
    neighbors: Neighbors | None = None,
    name: str | None = None,
) -> Dataset:
    """A data set in a pandas, polars or Arrow table, in what gives one (a lazy frame of polars, a
    relation of DuckDB), which is carried out once, here, or in a mapping as for `from_arrays`.

    `name` is bound to every key, as the path of a file is: under the same ledger file it must
    always mean the same rows, which only the holder can know. It is public, and needed beside a
    ledger file.

    Price.    None: no cell is looked at before a question is paid for.
    Example.
            import pandas

            frame = pandas.DataFrame({"hours": [38, 40, 20], "member": [True, False, True]})
            data = dp.from_frame(
                frame,
                schema={"hours": dp.Integer(0, 80), "member": dp.Boolean()},
                neighbors=dp.Replace(),
            )
            print(data.schema)
    See also. `dp.read_parquet`, `dp.read_csv`, `dp.from_arrays`, `dp.Dataset`, `dp.declare`.
    """
    declared, relation = Schema(schema), require_neighbors(neighbors)
    made = memory_engine_from_arrays if isinstance(frame, Mapping) else memory_engine_from_frame
    return _in_memory(made(frame, declared, relation), name)


@plain.called
def from_arrays(
    arrays: Mapping[str, Any],
    *,
    schema: Mapping[str, Column],
    neighbors: Neighbors | None = None,
    name: str | None = None,
) -> Dataset:
    """A data set in a mapping from column names to arrays or lists of one length; `name` as in
    `from_frame`.

    Example.
            data = dp.from_arrays(
                {"hours": [38, 40, 20]},
                schema={"hours": dp.Integer(0, 80)},
                neighbors=dp.AddRemove(),
            )
            print(data.neighbors)
    See also. `dp.from_frame`.
    """
    declared, relation = Schema(schema), require_neighbors(neighbors)
    return _in_memory(memory_engine_from_arrays(arrays, declared, relation), name)


def _in_memory(engine: MemoryEngine, name: str | None) -> Dataset:
    if name is not None:
        engine.call(plain.text(name, "name=", longest=LONGEST_NAME))
    return Dataset(engine, engine.schema, engine.neighbors)


def _paths(path: Paths) -> str | list[str]:
    """One path or several as plain text, each asked for once."""
    if plain.derives(type(path), str) or not hasattr(type(path), "__iter__"):
        return plain.path(path, "path")
    paths = plain.members(path, "path")  # type: ignore[arg-type]
    return [plain.path(one, "path") for one in paths]


def _read(
    path: Paths,
    kind: str,
    schema: Mapping[str, Column],
    neighbors: Neighbors | None,
    scale: tuple[Any, Any],
    dialect: Any = None,
) -> Dataset:
    declared, relation = Schema(schema), require_neighbors(neighbors)
    limits = _LIMITS(*scale, len(declared))
    engine = FileEngine(_paths(path), kind, declared, relation, dialect=dialect, scale=limits)
    return Dataset(engine, declared, relation)
