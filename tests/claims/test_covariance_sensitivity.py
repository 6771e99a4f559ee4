"""The reach of the joint moments of several columns: exact over all pairs of rows of a grid,
attacked for many columns, attained.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.encoding import Encoding
from discreet.estimators.matrices import covariance_question
from discreet.neighbors import AddRemove, Replace
from discreet.specs.mechanisms.symmetric import off_diagonal
from discreet.specs.queries import pairs
from discreet.specs.queries.pairs import COUNT_WEIGHTS, PairMoments, replacement_bound, row_bound
from discreet.specs.queries.plans import Factor
from discreet.trusted.engines.execution import execute


def query_of(columns, height, count, optional=False):
    return PairMoments(
        (),
        tuple(Factor(f"x{j}", Encoding(0.0, 1.0, -height, height)) for j in range(columns)),
        count,
        optional,
    )


def contributions(query, rows):
    """What each row of codes adds to the statistic, as integers: one line a row."""
    rows = np.asarray(rows, dtype=object)
    sums = {
        term: np.prod(rows[:, list(term)], axis=1) if term else np.full(len(rows), 1, dtype=object)
        for term in query.terms()
    }
    return np.array(query.arrange(sums), dtype=object).T


def weights(query):
    """2 for an entry off the diagonal, which stands in the matrix twice, else 1."""
    triangle = [2 if off else 1 for off in off_diagonal(query.order)]
    return np.array(triangle + [1] * (query.size - len(triangle)), dtype=object)


def squares(query, vectors):
    return (vectors**2 * weights(query)).sum(axis=1)


GRIDS = [(1, 12), (2, 3), (3, 1), (3, 2)]


@pytest.mark.parametrize(("columns", "height"), GRIDS)
@pytest.mark.parametrize("count", COUNT_WEIGHTS.values())
def test_one_row_reaches_as_far_as_claimed_and_no_further(columns, height, count):
    query = query_of(columns, height, count)
    grid = list(itertools.product(range(-height, height + 1), repeat=columns))
    worst = max(squares(query, contributions(query, grid)))
    assert Fraction(int(worst), height**8) == row_bound(columns, count)
    assert query.sensitivity(AddRemove()).squared == worst


@pytest.mark.parametrize(("columns", "height"), GRIDS)
def test_a_replaced_row_moves_no_further_than_claimed_and_nearly_as_far(columns, height):
    query = query_of(columns, height, 0)
    rows = contributions(
        query, list(itertools.product(range(-height, height + 1), repeat=columns))
    ).astype(float)
    worst = max(
        float((((rows - row) ** 2) * weights(query).astype(float)).sum(axis=1).max())
        for row in rows
    )
    claimed = float(query.sensitivity(Replace()).squared)
    assert worst <= claimed
    assert worst >= {1: 0.92, 2: 0.95, 3: 0.98}[columns] * claimed


def test_claims_a_little_lower_are_refuted():
    """Control: 2 % less for three columns is exceeded,
    and so is the claim of AddRemove under Replace.
    """
    query = query_of(3, 1, 0)
    first, second = contributions(query, [(1, 1, 1), (1, -1, -1)])
    moved = int(squares(query, (first - second)[None])[0])
    assert moved > Fraction(98, 100) * query.sensitivity(Replace()).squared
    assert moved > query.sensitivity(AddRemove()).squared


@pytest.mark.parametrize("columns", [2, 3])
def test_heavier_fourth_moments_would_be_found_out(columns, monkeypatch):
    """Control: with K = 7 instead of 4 some row reaches further than claimed."""
    monkeypatch.setattr(pairs, "FOURTH_WEIGHT", 7)
    query = query_of(columns, 2, 0)
    grid = list(itertools.product(range(-2, 3), repeat=columns))
    assert max(squares(query, contributions(query, grid))) > query.sensitivity(AddRemove()).squared


def test_the_inequalities_of_the_proof_hold_exactly():
    """b(e, f) ≤ e + f − ef for a pair, e²(1−e)(2−e) ≤ e(1−e) for a column, on a grid of Fractions;
    and what they are used for.
    """
    grid = [Fraction(k, 24) for k in range(25)]
    for e, f in itertools.product(grid, grid):
        pair = (1 - e) * f**2 + (1 - f) * e**2 + (1 - e) * (1 - f) * (e**2 + f**2) + e**2 * f**2
        assert pair <= e + f - e * f
        assert e**2 * (1 - e) * (2 - e) <= e * (1 - e)
    a, b, k = pairs.MEAN_WEIGHT, pairs.PAIR_WEIGHT, pairs.FOURTH_WEIGHT
    assert k <= b
    assert 2 * a**2 >= b**2
    assert 2 * a**2 + b**2 >= 2 * k**2


@pytest.mark.few(2)
@pytest.mark.parametrize("columns", [4, 8, 30])
def test_many_columns_attacked_by_random_and_extreme_rows(columns):
    """Rows at the corners (all inner products), inside, at 0 and mixed:
    neither bound is passed, and both are nearly met.
    """
    rng, height = np.random.default_rng(columns), 4
    corners = np.ones((columns + 1, columns), dtype=int)
    corners[np.tril_indices(columns + 1, -1, columns)] = -1
    inside = rng.integers(-height, height + 1, (40, columns))
    mixed = np.where(
        rng.random((40, columns)) < 0.5, height * rng.choice([-1, 1], (40, columns)), inside
    )
    rows = np.concatenate([height * corners, inside, mixed, np.zeros((1, columns), dtype=int)])
    query = query_of(columns, height, COUNT_WEIGHTS["add"])
    vectors = contributions(query, rows).astype(float)
    scale, weight = float(height**8), weights(query).astype(float)
    alone = (vectors**2 * weight).sum(axis=1).max() / scale
    apart = (
        max((((vectors - vector) ** 2) * weight).sum(axis=1).max() for vector in vectors) / scale
    )
    assert alone == pytest.approx(float(row_bound(columns, COUNT_WEIGHTS["add"])), rel=1e-12)
    assert 0.98 * float(replacement_bound(columns)) <= apart <= float(replacement_bound(columns))


RELATIONS = [
    Replace(),
    AddRemove(),
    Replace(unit="id", max_rows=3),
    AddRemove(unit="id", max_rows=3),
]
SCHEMA = {
    "x": dp.Real(-1, 3),
    "k": dp.Integer(0, 6),
    "b": dp.Boolean(),
    "g": dp.Category(["p", "q"]),
}
OTHERS = {
    "id": ["u1", "u2", None],
    "x": [0.2, float("nan"), 9.0],
    "k": [1, None, 4],
    "b": [True, None, False],
    "g": ["p", "zzz", "q"],
}
EXTREMES = [
    {"x": x, "k": k, "b": b, "g": g}
    for x in (-5, 1, 3)
    for k in (0, 2, 6)
    for b in (True, False)
    for g in ("p", "q")
]


def statistic(question, rows, neighbors):
    table = {
        name: [*cells, *(row[name] if name != "id" else "mine" for row in rows)]
        for name, cells in OTHERS.items()
    }
    data = dp.from_arrays(table, schema=SCHEMA, neighbors=neighbors)
    return np.array(
        question.query.assemble(execute(data._engine, question.query.plan())), dtype=object
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("where", [None, {"g": "p"}], ids=["all", "filtered"])
def test_no_neighbour_moves_the_released_statistic_further(neighbors, where):
    """Through the public question and the engine: units full of equal rows, missing cells,
    a filter that a row may pass or not.
    """
    public = (
        dp.from_arrays(OTHERS, schema=SCHEMA, neighbors=neighbors).open(budget=dp.GDP(1)).public
    )
    question = covariance_question(public, ["x", "k", "b"], spend=dp.GDP(1), where=where)
    bound = question.mechanism.sensitivity.squared
    assert bound == question.query.sensitivity(neighbors).squared
    vectors = [statistic(question, [row] * neighbors.rows, neighbors) for row in EXTREMES]
    if isinstance(neighbors, AddRemove):
        empty = statistic(question, [], neighbors)
        changes = np.array([vector - empty for vector in vectors])
    else:
        changes = np.array([first - second for first, second in itertools.combinations(vectors, 2)])
    worst = max(squares(question.query, changes))
    assert worst <= bound
    assert worst >= Fraction(90, 100) * bound
