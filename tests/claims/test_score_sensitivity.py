"""Claim: scores of candidates move by no more than their sensitivity, on all small neighbours."""

from __future__ import annotations

import itertools

import pytest

import discreet as dp
from discreet.specs.queries.keys import Between, Levels, Subset
from discreet.specs.queries.scores import CandidateGroup, CandidateScores
from discreet.specs.queries.sums import number_factor
from discreet.trusted.engines.execution import execute

# -- how far scores move ---------------------------------------------------------------------------

SCHEMA = {"x": dp.Integer(-1, 2), "y": dp.Integer(1, 3), "g": dp.Category(["a", "b"])}
ROWS = [(x, y, g) for x, y in ((-1, 1), (2, 3), (0, 2)) for g in ("a", "b", "?")]


def queries():
    schema = dp.Schema(SCHEMA)
    x, y = number_factor(schema, "x", "a sum"), number_factor(schema, "y", "a sum")
    filters = (
        (Subset("g", (0,)),),
        (Between("x", 0.0, 2.0),),
        (Subset("g", (1,)), Between("y", 1.0, 2.0)),
    )
    yield (
        "counts of overlapping filters",
        CandidateScores(tuple(CandidateGroup(keys) for keys in filters)),
    )
    yield "counts of levels", CandidateScores((CandidateGroup((Levels("g", 2),)),))
    yield "sums over levels", CandidateScores((CandidateGroup((Levels("g", 2),), x),))
    yield (
        "positive sums over filters",
        CandidateScores(tuple(CandidateGroup(keys, y) for keys in filters)),
    )
    yield "sums of two columns", CandidateScores((CandidateGroup((), x), CandidateGroup((), y)))


def scores_of(query, rows, relation):
    """The scores of a table, by the engine that runs."""
    columns = {name: [row[place] for row in rows] for place, name in enumerate(("x", "y", "g"))} | {
        "id": [row[3] for row in rows]
    }
    data = dp.from_arrays(columns, schema=SCHEMA, neighbors=relation)
    return query.assemble(execute(data._engine, query.plan()))


def naive(query, rows):
    """The scores by their definition, in the units of the data."""
    levels = {"a": 0, "b": 1}

    def counts(key, row):
        if isinstance(key, Between):
            return key.low <= row[("x", "y").index(key.column)] <= key.high
        return levels.get(row[2], -1) in key.codes

    found = []
    for part in query.groups:
        for cell in range(part.size):
            kept = [
                row
                for row in rows
                if (
                    levels.get(row[2], -1) == cell
                    if part.keys and isinstance(part.keys[0], Levels)
                    else all(counts(key, row) for key in part.keys)
                )
            ]
            found.append(
                len(kept)
                if part.factor is None
                else sum(row[("x", "y").index(part.factor.column)] for row in kept)
            )
    return found


def pairs_of(relation):
    """All pairs of neighbouring small tables."""
    some = [(-1, 1, "a"), (2, 3, "b"), (2, 3, "a"), (0, 2, "?")] if relation.unit else ROWS
    base, one = (-1, 1, "b", 0), [(*row, 1) for row in some]
    units = [[row] for row in one] + (
        [list(pair) for pair in itertools.combinations_with_replacement(one, 2)]
        if relation.unit
        else []
    )
    if isinstance(relation, dp.Replace):
        return [
            ([base, *first], [base, *second]) for first, second in itertools.combinations(units, 2)
        ]
    return [([base], [base, *unit]) for unit in units]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "relation",
    [
        dp.Replace(),
        dp.AddRemove(),
        dp.Replace(unit="id", max_rows=2),
        dp.AddRemove(unit="id", max_rows=2),
    ],
    ids=str,
)
def test_score_sensitivity_is_never_exceeded(relation):
    for name, query in queries():
        claimed, largest, known = query.sensitivity(relation), 0, {}
        for tables in pairs_of(relation):
            first, second = (
                known.setdefault(tuple(rows), scores_of(query, rows, relation)) for rows in tables
            )
            moves = [two - one for one, two in zip(first, second, strict=True)]
            largest = max(largest, *map(abs, moves))
            assert largest <= claimed.value, name
            assert not claimed.one_way or min(moves) >= 0 or max(moves) <= 0, name
        assert largest == claimed.value, name  # attained
        for rows, scores in list(known.items())[:20]:
            assert [float(score * query.unit) for score in scores] == naive(query, rows), name


def test_scores_that_do_not_belong_together_are_refused():
    schema = dp.Schema(SCHEMA | {"z": dp.Real(0, 1)})
    x, z = number_factor(schema, "x", "a sum"), number_factor(schema, "z", "a sum")
    for parts in (
        (),
        (CandidateGroup((), x), CandidateGroup((), z)),
        (CandidateGroup((), x), CandidateGroup(())),
        ("x",),
    ):
        with pytest.raises(dp.InvalidParameter, match="candidates"):
            CandidateScores(parts)
