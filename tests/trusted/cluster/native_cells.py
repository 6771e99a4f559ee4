"""Odd cells of every type that Spark's own expressions answer for, and plans that show each row."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

import discreet as dp
from discreet.schema import Boolean, Category, Integer, Real, Schema
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.keys import Between, Bins, Held, Levels, Split, Subset
from discreet.specs.queries.plans import Factor, SumsPlan
from discreet.trusted.engines.execution import execute

WIDE = (0.1, -0.0, 0.0, None, math.nan, math.inf, -math.inf, 1e300, 5e-324, 2.5, 2.0**53 + 2)
WIDE += (-3.0, 100.0, 99.99999, 1.0, 0.5, -1.5, 3.0, 0.30000000000000004, 1e10)
ROWS = len(WIDE)
WHOLE = (*range(-4, 8), None, 127, -128, 100, 1, 0, 2, 3)
LARGE = (*WHOLE[:-4], 2**62, -(2**63), 2**53 + 1, 2**63 - 1)
TEXTS = ("a", "é", "", None, "A", "a ", " a", "k\0k", "ab", "'", '"', "\\", "z", "e\u0301") * 2
NUMBERS = ("double", "single", "tiny", "short", "int", "large", "flag")


def odd_cells():
    """A table whose first column numbers its rows, so that a sum by it is a row's own."""
    return pa.table(
        {
            "row": pa.array(range(ROWS), pa.int32()),
            "double": pa.array(WIDE, pa.float64()),
            "single": pa.array([1e38 if one == 1e300 else one for one in WIDE], pa.float32()),
            "tiny": pa.array(WHOLE, pa.int8()),
            "short": pa.array(WHOLE, pa.int16()),
            "int": pa.array(WHOLE, pa.int32()),
            "large": pa.array(LARGE, pa.int64()),
            "flag": pa.array(([True, False, None] * ROWS)[:ROWS]),
            "text": pa.array(TEXTS[:ROWS]),
        }
    )


ROW = Levels("row", ROWS)
KINDS = (
    Real(-3, 100),
    Real(0.1, 0.7, missing=0.3),
    Integer(-3, 5),
    Integer(0, 3, missing=2),
    Real(-1e10, 1e10, bits=32),
    Boolean(),
    Boolean(missing=True),
)
LEVELS = (Category([1, 0, "3", -4], missing=0), Category([True, False, 2]))
TEXT_LEVELS = (Category(["a", "é", "", "k\0k", "'", '"', "\\"]), Category(["x", "a"], missing="x"))


def declared(column, names):
    return Schema({"row": Category(list(range(ROWS))), **dict.fromkeys(names, column)})


def asked():
    """(schema, plan): codes of every row on the grids of a kind, and the places of every key."""
    for kind in KINDS:
        schema = declared(kind, NUMBERS)
        codes = [Factor(name, kind.encoding()) for name in NUMBERS]
        yield schema, SumsPlan((ROW,), tuple((code,) for code in codes))
        coarse = Factor("double", kind.encoding(12))
        yield schema, SumsPlan((ROW, Held("double")), ((), (coarse, coarse, coarse)), absent=True)
    edges = (-1.0, 0.0, 0.1, 0.5, 2.0, 3.0)
    for kind in KINDS[:3]:
        schema, code = declared(kind, NUMBERS), Factor("double", kind.encoding())
        yield schema, SumsPlan((ROW, Bins("double", edges)), ((),))
        yield schema, HistogramPlan((Between("single", 0.0, 2.0),), code)
    for column in (*LEVELS, *TEXT_LEVELS):
        names = NUMBERS if column in LEVELS else ("text",)
        schema, size = declared(column, names), len(column.levels)
        for start in range(0, len(names), 3):  # which code each row has in each column
            told = [Split(name, (c,)) for name in names[start : start + 3] for c in range(size)]
            yield schema, SumsPlan((ROW, *told), ((),))
        levels = Levels(names[0], size), Held(names[-1])
        yield schema, SumsPlan((ROW, *levels), ((),), absent=True)
        yield schema, SumsPlan((ROW, Levels(names[0], 1), Subset(names[-1], (0, 1))), ((),))


def same(one, other):
    if hasattr(one, "places"):
        return one.places.tolist() == other.places.tolist() and same(one.counts, other.counts)
    return np.asarray(one).tolist() == np.asarray(other).tolist()


def differing(make_engine, plans=None):
    """The plans that an engine does not answer as memory does."""
    for schema, plan in asked() if plans is None else plans:
        memory = dp.from_frame(odd_cells(), schema=schema, neighbors=dp.AddRemove())._engine
        found = execute(make_engine(schema), plan)
        if not same(found, execute(memory, plan)):
            yield f"{schema} {plan}: {found}"
