"""What cells hold, counted: states by their definition, and how far one unit moves the counts."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from decimal import Decimal

import numpy as np
import pandas
import pytest

import discreet as dp
from discreet.schema import Schema
from discreet.specs.queries.cell_states import CellStates
from discreet.testing import seeded_session
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.extensions import unit_buckets

SCHEMA = Schema({"x": dp.Real(0, 10), "b": dp.Boolean(missing=False), "g": dp.Category(["p", ""])})
STATES = {
    "x": {
        "missing": [
            *(None, math.nan, "", "  ", Decimal("nan"), np.float32("nan"), np.longdouble("nan")),
            *(pandas.NA, pandas.NaT),
        ],
        "unreadable": ["ten", b"1", [1], object()],
        "outside": [-1, 11, math.inf, "1e9", Decimal(-3)],
        "fine": [0, 10, "5", 3.5, True],
    },
    "b": {
        "missing": [None, "", math.nan],
        "unreadable": ["perhaps", 2, b"1"],
        "fine": [True, "true"],
    },
    "g": {"missing": [None, " "], "unreadable": ["z", 7], "fine": ["p", ""]},
}
RELATIONS = (
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="id", max_rows=2),
    dp.AddRemove(unit="id", max_rows=2),
)


DAY = Schema({"day": dp.Date("2024-01-01", "2024-12-31")})
DAYS = {
    "missing": [None, "", " ", np.datetime64("NaT"), pandas.NaT, math.nan],
    "unreadable": ["01.03.2024", "soon", 5, [1]],
    "outside": ["2031-01-01", datetime.date(1999, 1, 1), np.datetime64("2031-01-01")],
    "fine": ["2024-03-01", datetime.date(2024, 3, 1), np.datetime64("2024-03-01", "ns")],
}


def counts(columns, neighbors, *, count=True):
    query = CellStates(("x", "b", "g"), count)
    made = memory_engine_from_arrays(columns, SCHEMA, neighbors)
    return query.assemble(execute(made, query.plan()))


@pytest.mark.parametrize("name", STATES)
def test_every_cell_is_in_its_state(name):
    for state, cells in STATES[name].items():
        for cell in cells:
            columns = {"x": [1.0], "b": [True], "g": ["p"]} | {name: [cell]}
            found = counts(columns, dp.Replace())
            place = 1 + 3 * "xbg".index(name)
            wanted = [int(state == one) for one in ("missing", "unreadable", "outside")]
            assert found[place : place + 3] == wanted, (name, state, cell)
            assert sum(found) == 1 + sum(wanted)


@pytest.mark.parametrize("state", DAYS)
def test_a_date_that_cannot_be_read_is_told_from_one_that_is_not_there(state):
    query, wanted = CellStates(("day",), True), [int(state == one) for one in list(DAYS)[:3]]
    columns = [[cell] for cell in DAYS[state]]
    if state in ("missing", "outside", "fine"):  # a typed column has no other cells
        times = {"missing": "NaT", "outside": "2031-01-01", "fine": "2024-03-01"}
        columns.append(np.array([times[state]], dtype="datetime64[s]"))
    for column in columns:
        engine = memory_engine_from_arrays({"day": column}, DAY, dp.Replace())
        assert query.assemble(execute(engine, query.plan()))[1:] == wanted, column
    seen = str(dp.from_arrays({"day": columns[-1]}, schema=DAY, neighbors=dp.Replace()).check())
    assert (state if state != "fine" else "Every cell") in seen
    assert state != "outside" or "2031-01-01" in seen


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_no_unit_moves_the_counts_further_than_claimed(neighbors):
    rows = [(1.0, True, "p"), (None, None, None), ("?", "?", "?"), (99, "?", None)]
    query = CellStates(("x", "b", "g"), not neighbors.row_count_is_public)
    sizes = (1,) if neighbors.unit is None else (1, 2)
    tables = [list(one) for size in sizes for one in itertools.product(rows, repeat=size)]
    if isinstance(neighbors, dp.AddRemove):
        pairs = [([], table) for table in tables]
    else:
        pairs = list(itertools.combinations(tables, 2))

    def value(table):
        columns = {name: [row[place] for row in table] for place, name in enumerate("xbg")}
        columns["id"] = ["one"] * len(table)
        return counts(columns, neighbors, count=query.count)

    for sensitivity, norm in zip(query.sensitivity(neighbors), (1, 2), strict=True):
        bound = sensitivity.value if norm == 1 else sensitivity.squared
        moved = max(
            sum(abs(a - b) ** norm for a, b in zip(value(first), value(second), strict=True))
            for first, second in pairs
        )
        assert moved == bound


def stored(columns, path):
    """The columns as text in a CSV file, as an engine over it."""
    lines = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines))
    return FileEngine(path, "csv", SCHEMA, dp.AddRemove(unit="id", max_rows=2))


def test_rows_that_tie_are_kept_by_their_own_unit_alone(tmp_path, monkeypatch):
    """Clamped, 10 and 11 are one value, and text that is none is as good as nothing: which of such
    rows count must depend neither on their order nor on other units.
    """
    query = CellStates(("x", "b", "g"), True)
    choose = random.Random(1)
    crowd = [(choose.choice(["10", "11"]), choose.choice(["", "?"])) for _ in range(24)]
    other = [("10", "?"), ("11", "")]

    def value(rows, kind):
        columns = {
            "x": [row[0] for _, row in rows],
            "b": ["true"] * len(rows),
            "g": [row[1] for _, row in rows],
            "id": [unit for unit, _ in rows],
        }
        if kind == "file":
            engine = stored(columns, tmp_path / "cells.csv")
        else:
            engine = memory_engine_from_arrays(columns, SCHEMA, dp.AddRemove(unit="id", max_rows=2))
        return query.assemble(execute(engine, query.plan()))

    mine, theirs = [("u", row) for row in crowd], [("a", row) for row in other]
    monkeypatch.setattr(unit_buckets, "HELD_BYTES", 500)
    for kind in ("memory", "file"):
        added, alone = value(theirs, kind), value(mine, kind)
        for turn in range(6):
            shuffled = choose.sample(mine, len(mine))
            place = choose.randrange(len(mine))
            both = [*shuffled[:place], *theirs, *shuffled[place:]]
            assert value(shuffled, kind) == alone, (kind, turn)
            moved = [a - b for a, b in zip(value(both, kind), alone, strict=True)]
            assert moved == added, (kind, turn)


@pytest.mark.few(2)
@pytest.mark.parametrize("spend", [dp.GDP(50), dp.PureDP(400)], ids=str)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_shares_come_out_with_intervals_and_come_back_from_json(neighbors, spend):
    n = 400
    columns = {
        "x": [None, "?", 50, 5] * (n // 4),
        "b": ["", True] * (n // 2),
        "g": ["p"] * n,
        "id": np.arange(n),
    }
    session = seeded_session(
        dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors), spend, "states"
    )
    result = dp.missing(session, spend=spend)
    shares = dict(zip(result.labels, np.asarray(result.params), strict=True))
    for state in ("missing", "unreadable", "outside"):
        assert shares["x", state] == pytest.approx(0.25, abs=0.02)
    assert shares["b", "missing"] == pytest.approx(0.5, abs=0.02)
    low, high = result.confidence_interval()[0]
    assert low < 0.25 < high
    again = dp.from_json(result.to_json())
    assert str(again.summary()) == str(result.summary())


def test_the_holder_sees_exact_counts_and_cells_and_nothing_else_does():
    data = dp.from_arrays(
        {"x": [1, None, "ten", 99], "b": [True] * 4, "g": ["p", "z", "z", None]},
        schema=SCHEMA,
        neighbors=dp.Replace(),
    )
    check = data.check()
    text = str(check)
    assert text.startswith("NOT PRIVATE")
    for told in ("x: 1 missing (25 %)", "'ten'", "x: 1 outside (25 %): 99", "g: 2 undeclared"):
        assert told in text
    assert not hasattr(check, "to_json")
    assert not hasattr(check, "__dict__")
    import copy
    import pickle

    for way_out in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(dp.DiscreetError):
            way_out(check)
