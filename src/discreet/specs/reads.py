"""Which kinds of columns the parts of a query read: one rule for every query.

*Theorem.*  In a query that passes, every part reads a column in the one way that its kind has:
levels of columns with declared levels, numbers of number columns, undeclared keys of open columns,
and no code, size or level beyond the declared ones.
*Proof.*  All parts are gone through, whatever query holds them. A part that names a column has a
rule in `_RULES`, or is refused. *Checked.* tests/claims/test_rows_say_nothing.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_args

from discreet import plain
from discreet.schema import Boolean, Category, Column, Integer, Open, Real, Schema
from discreet.specs.aggregation.part_outputs import PartOutputs
from discreet.specs.estimating.components import LevelComponent, NumberComponent, Response
from discreet.specs.estimating.networks import Agreement, NetworkGradients
from discreet.specs.holdout.surprises import RowFunction
from discreet.specs.queries.cell_states import CellStates
from discreet.specs.queries.keys import Between, Bins, Cycle, Held, Key, Levels, Split, Subset
from discreet.specs.queries.open_keys import OpenCounts
from discreet.specs.queries.parts import PartRejections
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.query import Query


def misread(query: Query, schema: Schema) -> str | None:
    """Why a query cannot read columns so declared; None where it can."""
    if not all(plain.among(type(key), get_args(Key)) for key in query.keys):
        return "a key of its query is none"
    for part in _parts(query):
        rule = _RULES.get(type(part))
        if rule is None:
            if hasattr(part, "column"):
                return "a part of its query reads a column, and no rule says how"
        elif not rule(part, schema):
            return "its query reads a column as one of another kind, or codes that it does not have"
    return None


def _parts(held: Any) -> Iterator[Any]:
    """A specification and all specifications in it, but for what reads other columns: the outputs
    of a function, about which the rehearsal asks by itself.
    """
    if type(held) is PartOutputs:
        yield held
        yield from _parts(held.keys)
    elif type(held) is tuple:
        for member in () if plain.all_atoms(held) else held:
            yield from _parts(member)
    elif plain.is_kept(held):
        yield held
        for name in type(held).__slots__:
            yield from _parts(getattr(held, name))


def _is_number(column: Column) -> bool:
    return isinstance(column, (Real, Integer, Boolean))


def _levels(column: Column) -> int:
    """How many levels are declared; 0 for a column without."""
    if isinstance(column, Category):
        return len(column.levels)
    return 2 if isinstance(column, Boolean) else 0


def _has_classes(query: NetworkGradients | Agreement, schema: Schema) -> bool:
    """Whether there are levels for all classes of a network."""
    response = query.model.response
    levels = 0 if response is None else _levels(schema[response.column])
    return query.network.outcome != "classes" or query.network.outputs <= levels


def _has_codes(codes: tuple[int, ...], column: Column) -> bool:
    return bool(_levels(column)) and all(0 <= code < _levels(column) for code in codes)


def _has_plain_values(function: RowFunction, schema: Schema) -> bool:
    """Whether all its columns have values that are no patterns for text: pure_functions.py."""
    columns = [schema[name] for name in function.columns]
    levels = [level for column in columns for level in getattr(column, "levels", ())]
    return not any(isinstance(column, Open) for column in columns) and "%" not in str(levels)


_RULES: dict[type[Any], Callable[[Any, Schema], bool]] = {
    Levels: lambda key, schema: 1 <= key.size <= _levels(schema[key.column]),
    Subset: lambda key, schema: _has_codes(key.codes, schema[key.column]),
    Split: lambda key, schema: _has_codes(key.codes, schema[key.column]),
    Bins: lambda key, schema: _is_number(schema[key.column]),
    Between: lambda key, schema: _is_number(schema[key.column]),
    Cycle: lambda key, schema: isinstance(schema[key.column], Integer),
    Held: lambda key, schema: not isinstance(schema[key.column], Open),
    Factor: lambda factor, schema: _is_number(schema[factor.column]),
    NumberComponent: lambda component, schema: _is_number(schema[component.column]),
    LevelComponent: lambda component, schema: _levels(schema[component.column]) > 0,
    Response: lambda response, schema: (
        response.level is None or _has_codes(response.level[1:], schema[response.column])
    ),
    NetworkGradients: _has_classes,
    Agreement: _has_classes,
    OpenCounts: lambda query, schema: all(isinstance(schema[name], Open) for name in query.open),
    CellStates: lambda query, schema: all(name in schema for name in query.names),
    RowFunction: _has_plain_values,
    **dict.fromkeys(
        (PartRejections, PartOutputs),
        lambda query, schema: not any(isinstance(schema[name], Open) for name in query.columns),
    ),
}
