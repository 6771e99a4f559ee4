"""The tables of a budget tree, in SQLite and PostgreSQL: numbered migrations, never edited.

CHECK constraints repeat the invariants; triggers forbid changing or deleting a line.
"""

from __future__ import annotations

from discreet.errors import ledger as refusals
from discreet.trusted.ledger.units import COORDINATES
from discreet.trusted.tree.records import KINDS, Aside, Line, Meter, columns

NUMBERS = {"depth", "number", "entries", "frozen", "stopped", "closed", "is_open"}
MIGRATIONS_TABLE = "CREATE TABLE IF NOT EXISTS tree_migrations (number BIGINT PRIMARY KEY)"


def _columns(kind: type[Meter] | type[Line] | type[Aside]) -> str:
    counted = {name for name in columns(kind) if name in NUMBERS or name.endswith(COORDINATES)}
    return ", ".join(
        f"{name} BIGINT NOT NULL CHECK ({name} >= 0)"
        if name in counted
        else f"{name} TEXT NOT NULL"
        for name in columns(kind)
    )


def _each(rule: str) -> str:
    return ", ".join(f"CHECK ({rule.format(name=name)})" for name in COORDINATES)


_KINDS = ", ".join(f"'{kind}'" for kind in KINDS)
_TABLES = (
    f"""CREATE TABLE tree_nodes ({_columns(Meter)}, PRIMARY KEY (id), UNIQUE (parent, key),
        CHECK (kind IN ('root', 'carved', 'pooled')), CHECK (frozen <= stopped),
        {_each("spent_{name} + reserved_{name} <= box_{name}")})""",
    f"""CREATE TABLE tree_lines ({_columns(Line)}, PRIMARY KEY (chain, number),
        UNIQUE (node, kind, key), UNIQUE (chain, previous), CHECK (kind IN ({_KINDS})))""",
    f"""CREATE TABLE tree_reservations ({_columns(Aside)}, PRIMARY KEY (node, owner, key),
        CHECK (is_open <= 1), {_each("used_{name} <= {name}")})""",
)
_SQLITE_NEVER = tuple(
    f"CREATE TRIGGER tree_lines_never_{change.lower()} BEFORE {change} ON tree_lines BEGIN "
    "SELECT RAISE(ABORT, 'a chain is append-only'); END"
    for change in ("UPDATE", "DELETE")
)
_POSTGRESQL_NEVER = (
    "CREATE FUNCTION tree_lines_never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "RAISE EXCEPTION 'a chain is append-only' USING ERRCODE = 'check_violation'; END $$",
    "CREATE TRIGGER tree_lines_never BEFORE UPDATE OR DELETE OR TRUNCATE ON tree_lines "
    "FOR EACH STATEMENT EXECUTE FUNCTION tree_lines_never()",
)

# the number of a migration is its place, from 1; what was applied is never changed
SQLITE = ((*_TABLES, *_SQLITE_NEVER),)
POSTGRESQL = ((*_TABLES, *_POSTGRESQL_NEVER),)
STORED_MIGRATIONS_TABLE = MIGRATIONS_TABLE.replace("IF NOT EXISTS ", "")


def missing(done: list[int], migrations: tuple[tuple[str, ...], ...]) -> range:
    """The numbers of migrations that are still to be applied."""
    if done != [*range(1, len(done) + 1)] or len(done) > len(migrations):
        raise refusals.not_a_ledger(
            f"its tables are of migration {max(done)}, and this version knows {len(migrations)}"
        )
    return range(len(done) + 1, len(migrations) + 1)
