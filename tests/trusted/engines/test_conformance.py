"""One suite for every input kind: the same data, nasty cells included,
give identical integers everywhere.
"""

from __future__ import annotations

import functools
import math
import random
from decimal import Decimal

import pytest
from engine_kinds import AS_TEXT, IN_MEMORY, KINDS, counts_in, make_engine, write_cell
from engine_reference import (
    bounded,
    reference_gram,
    reference_histogram,
    reference_keys,
    reference_sums,
)

from discreet.neighbors import AddRemove, Replace
from discreet.schema import Boolean, Category, Integer, Open, Real, Schema
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.keys import Between, Bins, Held, Levels, Split, Subset
from discreet.specs.queries.open_keys import OpenPlan
from discreet.specs.queries.plans import GramPlan, SumsPlan
from discreet.specs.queries.sums import number_factor
from discreet.trusted.engines.engine import Engine
from discreet.trusted.engines.execution import execute

LARGEST = 1.7976931348623157e308
FLOATS = [
    0.0,
    -0.0,
    1.5,
    -3.25,
    99.99999,
    100.0,
    100.00001,
    1e300,
    -1e300,
    LARGEST,
    math.inf,
    -math.inf,
    math.nan,
    None,
    5e-324,
    50.0,
    33.3,
    1e-9,
    0.1 + 0.2,
]
WHOLE = [0, 1, -1, 17, 90, 91, -(2**63), 2**63 - 1, 2**53 + 1, 2**31, -(2**31) - 1, None, 45, 46]
UNSIGNED = [0, 1, 5, 2**64 - 1, 2**63, 2**53 + 1, None, 7, 3]
TEXTS = [
    "N",
    "S",
    "é",
    "é",
    "n",
    " N",
    "N ",
    None,
    "",
    "O'Brien",
    'a"b; drop',
    "日本",
    "true",
    "1",
    "unseen",
    "😀",
    "\t",
]
NUMBER_TEXTS = [
    "1",
    " 2.5 ",
    "1e3",
    "1E400",
    "-1e400",
    "1e-400",
    "nan",
    "inf",
    "Infinity",
    "1_000",
    "0x10",
    "abc",
    "",
    None,
    "5.",
    ".5",
    "+7",
    "--3",
    "٣",
    "1,5",
    "9" * 400,
    "1e",
    ".",
    "\u22123",
    "1e\u22121",
    "3\u2212",
]
BOOLEAN_TEXTS = ["true", "FALSE", " True ", "1", "0", "yes", "", None, "2", "t", "false", "1.0"]
BOOLEAN_TEXTS += ["No", " n ", "Y", "F", "0.0", "-0", "\u22120", "1e0", "yes!", "TRUE"]
LEVEL_TEXTS = ["1", "1.0", " 1", "1e0", "01", "+1", "3.0", "\u22122", "-2.0", "3.5", "0", "-0"]
LEVEL_TEXTS += ["True", "FALSE", " true", "yes", "", None, "abc", "1e400", "9007199254740993"]
KEY_TEXTS = [
    *TEXTS,
    "é",
    "e\u0301",
    "x" * 200,
    "x" * 201,
    "é" * 200,
    "😀" * 200,
    "😀" * 201,
    "a\nb",
    "3",
    "3.0",
    '["x", 1]',
    "ß",
    "SS",
    "\u200b",
    "\ufffd",
]
WHOLE_FLOATS = [*FLOATS, 3.0, -7.0, 2.0**53, 2.0**53 - 1, -(2.0**53) + 1, 2.0**63, 3.5]
WHOLE_DECIMALS = [
    Decimal("3.0000"),
    Decimal("-3"),
    Decimal("0.0000"),
    Decimal("-0.0001"),
    Decimal("9" * 34),
    Decimal("-" + "9" * 34),
    None,
    Decimal("12.5000"),
]
DECIMALS = [
    Decimal("0.1000"),
    Decimal("-99999999999999999999999999.1234"),
    None,
    Decimal("12.3456"),
    Decimal("33.3333"),
]

SCHEMA = Schema(
    {
        "real": Real(-5, 100),
        "fine": Real(-1e6, 1e6, bits=32, missing=-0.25),
        "age": Integer(18, 90),
        "huge": Integer(-(2**30), 2**30 - 1),
        "unsigned": Integer(0, 100),
        "typed": Real(0, 10),
        "flag": Boolean(),
        "yes": Boolean(missing=True),
        "worded": Boolean(missing=True),
        "decimal": Real(-50, 50),
        "region": Category(["N", "S", "é", "O'Brien", 'a"b; drop', "日本", "😀", "true"]),
        "kept": Category(["N", "other", "é"], missing="other"),
        "number": Category([45, "46", 1, True, "90"]),
        "consecutive": Category(list(range(-1, 60))),
        "truth": Category([True, False]),
        "spelled": Category(["01", 3, "1", -2, "3.5", False, "TRUE"]),
        "spelled_kept": Category([3, 1, 2, "abc"], missing=2),
        "word": Open(),
        "whole": Open(),
        "point": Open(),
        "truthful": Open(),
        "exact": Open(),
        "natural": Open(),
        'odd "name"; --': Real(-5, 100),
        "floaty": Category([0, "1.5", "1e300", "50", "33.3", "5e-324"]),
        "signed": Category(["100", -1, 0], missing=-1),
    }
)
TYPES = {
    "real": "float",
    "fine": "float",
    "age": "integer",
    "huge": "integer",
    "unsigned": "unsigned",
    "typed": "text",
    "flag": "boolean",
    "yes": "float",
    "worded": "text",
    "decimal": "decimal",
    "region": "text",
    "kept": "text",
    "number": "integer",
    "consecutive": "integer",
    "truth": "boolean",
    "spelled": "text",
    "spelled_kept": "text",
    'odd "name"; --': "float",
    "floaty": "float",
    "signed": "float",
    "person": "text",
    "number_id": "integer",
    "word": "text",
    "whole": "integer",
    "point": "float",
    "truthful": "boolean",
    "exact": "decimal",
    "natural": "unsigned",
}
POOLS = {
    "real": FLOATS,
    "fine": FLOATS,
    "age": WHOLE,
    "huge": WHOLE,
    "unsigned": UNSIGNED,
    "typed": NUMBER_TEXTS,
    "flag": [True, False, None],
    "yes": [0.0, 1.0, -0.0, 2.0, math.nan, None, math.inf],
    "worded": BOOLEAN_TEXTS,
    "decimal": DECIMALS,
    "region": TEXTS,
    "kept": TEXTS,
    "number": WHOLE,
    "consecutive": WHOLE,
    "truth": [True, False, None],
    "spelled": LEVEL_TEXTS,
    "spelled_kept": LEVEL_TEXTS,
    'odd "name"; --': FLOATS,
    "floaty": FLOATS,
    "signed": FLOATS,
    "word": KEY_TEXTS,
    "whole": WHOLE,
    "point": WHOLE_FLOATS,
    "truthful": [True, False, None],
    "exact": WHOLE_DECIMALS,
    "natural": UNSIGNED,
    "person": ["ann", "bob", "é", None, "17"],
    "number_id": [17, 2**63 - 1, -4, None, 0],
}
BY_PERSON = (Replace(unit="person", max_rows=3), AddRemove(unit="number_id", max_rows=2))


def random_columns(rows, seed):
    choose = random.Random(seed)
    return {name: [choose.choice(pool) for _ in range(rows)] for name, pool in POOLS.items()}


def factor(name, bits=None):
    return number_factor(SCHEMA, name, "a sum", bits)


def plans():
    numbers = [name for name, column in SCHEMA.items() if not isinstance(column, (Category, Open))]
    yield SumsPlan((), ((), *((factor(name),) for name in numbers)))
    yield SumsPlan(
        (),
        (
            (factor("real"), factor("real")),
            (factor("fine", 16), factor("real")),
            (factor("huge"), factor("age")),
            (factor("huge"), factor("flag")),
        ),
    )
    for name, column in SCHEMA.items():
        if isinstance(column, Category):
            yield SumsPlan((Levels(name, len(column.levels)),), ((), (factor("real"),)))
    yield SumsPlan(
        (Levels("flag", 2), Levels("region", 3), Bins("age", (18.0, 40.0, 45.5, 90.0))),
        ((), (factor("fine"),), (factor("real"), factor("age"))),
    )
    yield SumsPlan(
        (Bins("real", (-5.0, 0.0, 1.5, 33.3, 100.0)), Subset("kept", (1, 2))),
        ((), (factor("huge"),)),
    )
    yield SumsPlan(
        (Between("fine", 0.0, 0.30000000000000004), Subset("worded", (1,))),
        ((), (factor('odd "name"; --'),)),
    )
    yield SumsPlan((Between("flag", 0.5, 1.0),), ((), (factor("age"),)))
    yield SumsPlan((Subset("region", ()),), ((),))
    yield SumsPlan((Split("region", (1,)), Split("flag", (1,))), ((), (factor("age"),)))
    for name, column in SCHEMA.items():
        if not isinstance(column, Open):
            yield SumsPlan((Held(name),), ((),))
    yield SumsPlan((Held("real"), Held("flag"), Subset("kept", (1, 2))), ((), (factor("real"),)))
    yield SumsPlan((Levels("flag", 2), Levels("region", 3)), ((),), absent=True)
    yield SumsPlan((Bins("real", (0.0, 1.5, 33.3)), Levels("kept", 3)), ((),), absent=True)
    yield SumsPlan((Split("region", (1,)), Held("region"), Held("age")), ((), (factor("age"),)))
    yield SumsPlan((Bins("fine", tuple(float(edge) for edge in range(-300, 300, 3))),), ((),))


def histogram_plans():
    numbers = [name for name, column in SCHEMA.items() if not isinstance(column, (Category, Open))]
    yield from (HistogramPlan((), factor(name)) for name in numbers)
    yield HistogramPlan((), factor("fine", 16))
    yield HistogramPlan((), factor("huge", 16))
    yield HistogramPlan(
        (Between("fine", -1.0, 0.30000000000000004), Subset("worded", (1,))), factor("age")
    )
    yield HistogramPlan((Subset("region", ()),), factor("real"))
    yield HistogramPlan((Held("real"), Held("flag")), factor("real"))


def open_plans():
    for name, column in SCHEMA.items():
        if isinstance(column, Open):
            yield OpenPlan((name,), ())
    yield OpenPlan(("word",), (Subset("flag", (1,)), Between("real", -1.0, 60.0)))
    yield OpenPlan(("word",), (Subset("region", ()),))
    yield OpenPlan(
        ("truthful",),
        (Levels("flag", 2), Bins("age", (18.0, 40.0, 90.0)), Between("real", -5.0, 60.0)),
    )
    yield OpenPlan(("word", "whole", "point"), ())
    yield OpenPlan(("truthful", "word"), (Levels("region", 3),))


GRAM = GramPlan(
    (factor("real"), factor("age"), factor("flag"), factor("typed"), factor("fine", 16))
)


@functools.cache
def expected(rows, neighbors, as_text):
    """The plain reading's answers to all plans on random rows, and how many units there are.

    The rows that count are the same for every plan: they are chosen once.
    """
    columns = random_columns(rows, seed=rows + 1)
    # in CSV all cells are text
    read = (
        {name: [write_cell(cell) or None for cell in cells] for name, cells in columns.items()}
        if as_text
        else columns
    )
    listed = [dict(zip(read, row, strict=True)) for row in zip(*read.values(), strict=True)]
    counted, alone = bounded(listed, SCHEMA, neighbors), Replace()
    units = {cell for cell in read.get(neighbors.unit or "", []) if cell is not None}
    return {
        "sums": [reference_sums(counted, plan, SCHEMA, alone) for plan in plans()],
        "histograms": [
            reference_histogram(counted, plan, SCHEMA, alone) for plan in histogram_plans()
        ],
        "gram": reference_gram(counted, GRAM, SCHEMA, alone),
        "keys": [[*reference_keys(counted, plan, SCHEMA, alone).items()] for plan in open_plans()],
        "units": len({cell for cell in units if cell == cell}),
    }


@pytest.mark.few(8)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighbors", [Replace(), *BY_PERSON], ids=str)
@pytest.mark.parametrize(
    "rows", [12, *(pytest.param(rows, marks=pytest.mark.slow) for rows in (0, 1, 90))]
)
def test_every_engine_gives_the_reference_integers(kind, neighbors, rows, tmp_path):
    columns = random_columns(rows, seed=rows + 1)
    right = expected(rows, neighbors, kind in AS_TEXT)
    engine = make_engine(kind, columns, TYPES, SCHEMA, neighbors, tmp_path)
    assert isinstance(engine, Engine)
    for plan, sums in zip(plans(), right["sums"], strict=True):
        answer = engine.sums(plan)
        assert answer.shape == (plan.cells, len(plan.terms))
        assert all(type(entry) is int for entry in answer.flat)
        assert answer.tolist() == sums, plan
    for plan, counts in zip(histogram_plans(), right["histograms"], strict=True):
        histogram = engine.histogram(plan)
        assert histogram.cells == plan.cells
        found = counts_in(histogram)
        assert found == counts, plan
        assert [*found] == sorted(found)
    assert engine.gram(GRAM).tolist() == right["gram"]
    for plan, keys in zip(open_plans(), right["keys"], strict=True):
        assert [*counts_in(execute(engine, plan)).items()] == keys, plan
    assert engine.public_count() == (
        rows
        if neighbors == Replace()
        else right["units"]
        if isinstance(neighbors, Replace)
        else None
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_rows_in_another_order_give_the_same_integers(kind, tmp_path):
    columns = random_columns(120, seed=7)
    order = random.Random(3).sample(range(120), 120)
    crossed = list(open_plans())[-2:]
    shuffled = {name: [cells[row] for row in order] for name, cells in columns.items()}
    for neighbors in BY_PERSON:
        first = make_engine(kind, columns, TYPES, SCHEMA, neighbors, tmp_path)
        answers = [first.sums(plan).tolist() for plan in plans()]
        found = [[*counts_in(execute(first, plan)).items()] for plan in crossed]
        second = make_engine(kind, shuffled, TYPES, SCHEMA, neighbors, tmp_path)
        assert answers == [second.sums(plan).tolist() for plan in plans()]
        assert found == [[*counts_in(execute(second, plan)).items()] for plan in crossed]


def test_describe_and_data_id_are_public_and_stable(tmp_path):
    columns = random_columns(5, seed=2)
    for kind in KINDS:
        engine = make_engine(kind, columns, TYPES, SCHEMA, Replace(), tmp_path)
        other = make_engine(kind, random_columns(9, seed=4), TYPES, SCHEMA, Replace(), tmp_path)
        assert engine.describe() == other.describe()
        assert engine.data_id() == engine.data_id()
        assert (engine.data_id() == other.data_id()) == (kind not in IN_MEMORY)
