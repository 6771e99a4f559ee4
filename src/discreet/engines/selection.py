"""The query of a plan: source → read → clamp → bound contributions → encode → sum, as nested SELECTs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discreet.engines.bounding import FINAL_ROUNDS, PRIME, mix_sql, step_sql
from discreet.engines.engine import needed_columns
from discreet.engines.sql import (
    Source,
    boolean_sql,
    category_sql,
    clamp_sql,
    code_sql,
    key_sql,
    level_types,
    number_sql,
    open_sql,
    term_sql,
    unit_sql,
)
from discreet.neighbors import Neighbors
from discreet.queries import Factor, GramPlan, Key, Levels, OpenPlan, Split, Subset, SumsPlan, TallyPlan
from discreet.queries.model import Model
from discreet.schema import Boolean, Category, Open, Schema


@dataclass(frozen=True, slots=True)
class Selection:
    """Builds the queries over one source, whose columns are s0, s1, … in the order of `needed_columns`.

    Declared column i, by sorted name, is n{i} as read and v{i} once clamped or coded. Names given by people
    appear in no query of this class, so they cannot clash with each other (DuckDB ignores case) or with these.
    """

    source: str
    kinds: Mapping[str, Source]
    schema: Schema
    neighbors: Neighbors

    def setup(self, plan: SumsPlan | GramPlan | TallyPlan | OpenPlan | Model) -> list[tuple[str, list[str] | list[float]]]:
        """The statements to run before a plan's query: the types in which levels are looked up."""
        return [
            statement for name in ((plan.reads if isinstance(plan, Model) else plan.columns) if self.neighbors.unit is None else self._names())
            if isinstance(column := self.schema[name], Category) for statement in level_types(column, self.kinds[name], self._cell_name(name))
        ]

    def sums(self, plan: SumsPlan) -> str:
        """One row a non-empty cell: the cell, then the exact sum of each term (no keys: the single cell 0)."""
        factors = list(dict.fromkeys(factor for term in plan.terms for factor in term))
        names = {factor: f"f{position}" for position, factor in enumerate(factors)}
        chosen = [f"{self._cell(plan.keys)} AS cell", *(f"{self._code(factor)} AS {name}" for factor, name in names.items())]
        totals = ", ".join(["cell", *(term_sql(term, names) for term in plan.terms)])
        return f"SELECT {totals} FROM (SELECT {', '.join(chosen)} FROM ({self._rows(plan.columns)})) GROUP BY cell"

    def codes(self, plan: GramPlan) -> str:
        """One row a counted row: the code of each factor."""
        chosen = ", ".join(f"{self._code(factor)} AS f{position}" for position, factor in enumerate(plan.factors))
        return f"SELECT {chosen} FROM ({self._rows(plan.columns)})"

    def tally(self, plan: TallyPlan) -> str:
        """One row an occupied cell of the grid, in order: the cell, then how many rows it holds."""
        chosen = f"(CAST({self._code(plan.factor)} AS BIGINT) - ({plan.factor.encoding.low})) // {plan.stride} AS place, {self._cell(plan.keys)} AS cell"
        return f"SELECT place, count(*) FROM (SELECT {chosen} FROM ({self._rows(plan.columns)})) WHERE cell = 0 GROUP BY place ORDER BY place"

    def keys(self, plan: OpenPlan) -> str:
        """One row a key: the texts of its open columns, its declared cell, then how many rows hold it."""
        assert all(isinstance(self.schema[name], Open) for name in plan.open), "a plan reads keys of a column that is not open"
        names = [f"k{place}" for place in range(len(plan.open))]
        chosen = [*(f"{self._value(column)} AS {name}" for column, name in zip(plan.open, names, strict=True)), f"{self._cell(plan.keys)} AS cell"]
        grouped = ", ".join([*names, "cell"])
        known = " AND ".join(f"{name} IS NOT NULL" for name in (*names, "cell"))
        return f"SELECT {grouped}, count(*) FROM (SELECT {', '.join(chosen)} FROM ({self._rows(plan.columns)})) WHERE {known} GROUP BY {grouped}"

    def model(self, model: Model, factors: Sequence[Factor], levels: Sequence[str]) -> str:
        """One row a kept row: the codes of `factors`, then the level codes of `levels` (−1: none)."""
        chosen = [f"{self._code(factor)} AS f{place}" for place, factor in enumerate(factors)]
        chosen += [f"CAST(coalesce({self._value(name)}, -1) AS INTEGER) AS l{place}" for place, name in enumerate(levels)]
        return f"SELECT * EXCLUDE (cell) FROM (SELECT {', '.join([*chosen, f'{self._cell(model.keys)} AS cell'])} FROM ({self._rows(model.reads)})) WHERE cell = 0"

    def _names(self) -> list[str]:
        return sorted(self.schema)

    def _cell_name(self, name: str) -> str:
        return f"s{needed_columns(self.schema, self.neighbors).index(name)}"

    def _value(self, name: str) -> str:
        return f"v{self._names().index(name)}"

    def _code(self, factor: Factor) -> str:
        return code_sql(self._value(factor.column), factor, self.schema[factor.column])

    def _cell(self, keys: tuple[Key, ...]) -> str:
        cell = "0"
        for key in keys:
            value = self._value(key.column)
            if isinstance(key, (Levels, Split, Subset)) and isinstance(self.schema[key.column], Boolean):
                value = f"CAST({value} AS INTEGER)"
            here = key_sql(key, value)
            cell = here if cell == "0" else f"({cell}) * {key.size} + ({here})"
        return cell

    def _rows(self, columns: tuple[str, ...]) -> str:
        """The counted rows with the clamped values and level codes of `columns`."""
        if self.neighbors.unit is None:
            return self._clamped(list(columns), [])
        unit, seed = unit_sql(self._cell_name(self.neighbors.unit), self.kinds[self.neighbors.unit])
        rows = self._clamped(self._names(), [f"{unit} AS unit", f"CAST(md5_number_lower({seed}) % {PRIME} AS BIGINT) AS h"])
        return self._bounded(f"SELECT * FROM ({rows}) WHERE unit IS NOT NULL")

    def _clamped(self, names: list[str], others: list[str]) -> str:
        read, clamped = list(others), [other.rsplit(" AS ", 1)[1] for other in others]
        for name in names:
            place, column, cell, kind = self._names().index(name), self.schema[name], self._cell_name(name), self.kinds[name]
            if isinstance(column, Category):
                read.append(f"{category_sql(cell, kind, column)} AS n{place}")
                clamped.append(f"n{place} AS v{place}")
            elif isinstance(column, Boolean):
                read.append(f"{boolean_sql(cell, kind, column)} AS n{place}")
                clamped.append(f"CAST(n{place} AS DOUBLE) AS v{place}")
            elif isinstance(column, Open):
                read.append(f"{open_sql(cell, kind)} AS n{place}")
                clamped.append(f"n{place} AS v{place}")
            else:
                read.append(f"{number_sql(cell, kind)} AS n{place}")
                clamped.append(f"{clamp_sql(f'n{place}', column)} AS v{place}")
        return f"SELECT {', '.join(clamped) or '1'} FROM (SELECT {', '.join(read) or '1'} FROM ({self.source}))"

    def _bounded(self, rows: str) -> str:
        """At most max_rows rows a unit, in the order of `bounding.kept_rows`."""
        content = [f"coalesce({self._value(name)}, '')" if isinstance(self.schema[name], Open) else self._value(name) for name in self._names()]
        for name in self._names():
            rows = f"SELECT * REPLACE ({mix_sql(step_sql('h', self._hashed(name)))} AS h) FROM ({rows})"
        rows = f"SELECT *, row_number() OVER (PARTITION BY unit, {', '.join(content)}) - 1 AS occurrence FROM ({rows})"
        rows = f"SELECT * REPLACE ({mix_sql(step_sql('h', 'occurrence'))} AS h) FROM ({rows})"
        for _ in range(FINAL_ROUNDS):
            rows = f"SELECT * REPLACE ({mix_sql('h')} AS h) FROM ({rows})"
        order = ", ".join(["h", *content])
        return f"SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY unit ORDER BY {order}) AS place FROM ({rows})) WHERE place <= {self.neighbors.rows}"

    def _hashed(self, name: str) -> str:
        column = self.schema[name]
        if isinstance(column, Category):
            return f"(coalesce({self._value(name)}, -1) + 1)"
        if isinstance(column, Open):
            return f"coalesce(CAST(md5_number_lower({self._value(name)}) % {PRIME} AS BIGINT) + 1, 0)"
        grid = column.encoding()
        return f"(CAST({code_sql(self._value(name), Factor(name, grid), column)} AS BIGINT) - ({grid.low}))"
