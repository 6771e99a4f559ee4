"""Contribution bounding: which rows of a unit count."""

from __future__ import annotations

import math
import random
from decimal import Decimal

import numpy as np
import pytest
from engine_kinds import make_engine

from discreet.neighbors import AddRemove
from discreet.schema import Boolean, Real, Schema
from discreet.specs.queries.keys import Bins
from discreet.specs.queries.plans import SumsPlan
from discreet.specs.queries.sums import number_factor
from discreet.trusted.engines.cells import seed_text, unit_key

SCHEMA = Schema({"x": Real(0, 1)})
TOTALS = SumsPlan((), ((), (number_factor(SCHEMA, "x", "a sum"),)))


def engine_of(kind, columns, folder, schema=SCHEMA, max_rows=2):
    types = {
        "x": "float",
        "flag": "boolean",
        "id": "text" if isinstance(columns["id"][0], str) else "integer",
    }
    return make_engine(
        kind, columns, types, schema, AddRemove(unit="id", max_rows=max_rows), folder
    )


@pytest.mark.parametrize("kind", ["arrays", "parquet"])
def test_one_unit_with_many_rows_counts_max_rows_times(kind, tmp_path):
    columns = {"id": ["one"] * 100_000 + ["two"], "x": [row / 100_000 for row in range(100_001)]}
    assert engine_of(kind, columns, tmp_path, max_rows=5).sums(TOTALS)[0, 0] == 6


@pytest.mark.parametrize("kind", ["arrays", "parquet"])
def test_kept_rows_are_a_fair_sample(kind, tmp_path):
    """20 000 units with rows {no, no, yes}, one kept:
    a third of the kept ones are 'yes' (five standard errors).
    """
    units = 20_000
    schema = Schema({"flag": Boolean(), "x": Real(0, 1)})
    columns = {
        "id": [unit for unit in range(units) for _ in range(3)],
        "flag": [False, False, True] * units,
        "x": [0.25] * (3 * units),
    }
    plan = SumsPlan((Bins("flag", (0.0, 0.5, 1.0)),), ((),))
    _no, yes = engine_of(kind, columns, tmp_path, schema, max_rows=1).sums(plan)[:, 0]
    assert abs(yes - units / 3) < 5 * math.sqrt(units * 2 / 9)
    # counting distinct contents alone would give a half
    assert abs(yes - units / 2) > 5 * math.sqrt(units / 4)


def test_the_kept_mean_is_not_biased():
    """Values 0 … 99 over 99 in every unit, three kept:
    their mean is that of the values (five standard errors).
    """
    units, per_unit, kept = 3000, 100, 3
    columns = {
        "id": np.repeat(np.arange(units), per_unit),
        "x": np.tile(np.arange(per_unit) / (per_unit - 1), units),
    }
    engine = engine_of(
        "arrays", {name: cells.tolist() for name, cells in columns.items()}, None, max_rows=kept
    )
    count, total = engine.sums(TOTALS)[0]
    encoding = SCHEMA["x"].encoding()
    mean = float(encoding.value(0) + total * encoding.step / count)
    spread = np.std(columns["x"][:per_unit])
    assert count == units * kept
    assert abs(mean - 0.5) < 5 * spread / math.sqrt(count)


@pytest.mark.parametrize("kind", ["arrays", "lists", "parquet"])
def test_rows_with_equal_codes_and_different_values_do_not_depend_on_order(kind, tmp_path):
    """Values a hair apart share a code, but a bin edge runs between them."""
    edge = 0.5
    values = [math.nextafter(edge, 0.0), edge, math.nextafter(edge, 1.0), edge] * 5
    plan = SumsPlan((Bins("x", (0.0, edge, 1.0)),), ((),))
    answers = set()
    for seed in range(5):
        shuffled = random.Random(seed).sample(values, len(values))
        answers.add(
            str(
                engine_of(kind, {"id": ["a"] * len(values), "x": shuffled}, tmp_path, max_rows=7)
                .sums(plan)
                .tolist()
            )
        )
    assert len(answers) == 1


def test_rows_without_an_id_count_nowhere_and_numbers_compare_by_value(tmp_path):
    for kind in ("lists", "objects"):
        columns = {"id": [None, math.nan, None, 1, 1.0, True, "1", 2**70, 2**70], "x": [0.5] * 9}
        neighbors = AddRemove(unit="id", max_rows=1)
        assert make_engine(kind, columns, {}, SCHEMA, neighbors, tmp_path).sums(TOTALS)[0, 0] == 3


@pytest.mark.parametrize("cells", [["5", 5, 5.0, Decimal(5), "5"], ["-17", -17.0, "-17", -17]])
def test_a_table_put_together_of_text_and_numbers_keeps_a_person_one_unit(cells, tmp_path):
    columns = {"id": [*cells, "05", "5.0", "+5"], "x": [0.5] * (len(cells) + 3)}
    neighbors = AddRemove(unit="id", max_rows=1)
    engine = make_engine("objects", columns, {}, SCHEMA, neighbors, tmp_path)
    assert engine.sums(TOTALS)[0, 0] == 4  # the three other texts are ids of their own


def test_ids_of_text_have_the_same_seeds_in_an_object_column_as_in_a_text_column():
    largest = "9" * 38
    for text in ("0", "5", "-17", "05", "-0", "1e3", "5.0", "٥", largest, "-" + largest, "1" * 39):
        assert seed_text(unit_key(text)) == text


def test_ids_of_any_python_kind_are_total():
    cells = [10**5000, -(10**5000), math.inf, object(), [1], b"x", 1e300, -0.0, 2.5]
    keys = [unit_key(cell) for cell in cells]
    assert [None if key is None else seed_text(key) for key in keys] == [
        "large",
        "large",
        "large",
        None,
        None,
        None,
        "large",
        "0",
        "2",
    ]
