"""Claim: whoever is exchanged, the weights of friends move by 3, rows with weight in either data
set share a friend, means move no further than their noise says, and clipped sums by 2ρ.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas
import pytest
from scipy.stats import chi2, kstest, norm
from tests.claims.friendly_pairs import figured, printed, random_pairs, seen, unseparated

import discreet as dp
from discreet.accounting.calibration.friendly import friendly_mean, margin_for
from discreet.encoding import Encoding
from discreet.errors import DiscreetError, InvalidParameter, NoTheorem
from discreet.neighbors import AddRemove, Replace
from discreet.schema import Real, Schema
from discreet.sensitivity import Friendly, sensitivity_from_dict
from discreet.specs.aggregation.friends import FINE_BITS, ClippedSum, FriendlyCore, Friends
from discreet.specs.mechanisms.friendly import (
    FINE,
    LEAST_WEIGHT,
    WEIGHT_BITS,
    WEIGHT_MOVES,
    FriendlyMean,
)
from discreet.specs.queries.keys import Held
from discreet.specs.queries.plans import Factor
from discreet.specs.registry import mechanism_from_dict, query_from_dict
from discreet.testing.seeded import SeededSource
from discreet.trusted.aggregation.friends.draw import friendly_mean as drawn
from discreet.trusted.aggregation.friends.loss import friendly_loss
from discreet.trusted.aggregation.friends.rows import (
    clip,
    clipped_sums,
    core_of,
    friend_counts,
    whole_weights,
)
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays

ALPHA = 1e-9
SCHEMA = Schema({"x": Real(-8, 8), "y": Real(-8, 8)})
GRID = Encoding(0.0, 1.0, -8, 8)
FACTORS = (Factor("x", GRID), Factor("y", GRID))
HELD = (Held("x"), Held("y"))


# -- the filter ----------------------------------------------------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize("centres", [1, 2, 3])
def test_weights_move_by_three_and_survivors_are_friendly(centres):
    found = seen(random_pairs(np.random.default_rng(centres), 1200, centres))
    assert found.weights == 1.0  # the bound is attained
    assert found.most <= 1.0
    assert found.mean > 0.1


@pytest.mark.slow
def test_filters_that_do_not_hold_are_noticed():
    """The controls: the printed filter, that of the figure, tuples without a separation."""
    random = np.random.default_rng(0)
    assert seen(random_pairs(random, 300), weigh=printed).weights > 1.5
    assert seen(random_pairs(random, 2500), weigh=figured).apart > 2
    assert seen(random_pairs(random, 600, 3), friends=unseparated).apart > 1.05
    friends = friend_counts(np.zeros((50, 1, 1), dtype=np.int64), 1)
    spoilt = friend_counts(np.array([[[9]], *[[[0]]] * 49]), 1)
    assert np.abs(printed(friends, 50) - printed(spoilt, 50)).sum() / 49 == pytest.approx(
        26.48, abs=0.01
    )


def test_the_small_example_of_the_figure_is_safe():
    for data in ([0, 0, 1000], [1000, 0, 1000]):
        assert core_of(np.array(data).reshape(3, 1, 1), 3, 5).total == 0


def test_all_neighbours_of_a_small_grid():
    """The ℓ₁ stability of four rows of 0 … 6, every pair of neighbours."""
    weights = {
        rows: whole_weights(friend_counts(np.array(rows).reshape(4, 1, 1), 2), 4)
        for rows in itertools.product(range(7), repeat=4)
    }
    worst = max(
        np.abs(weights[rows] - weights[(other, *rows[1:])]).sum()
        for rows in weights
        for other in range(7)
    )
    assert worst == 3 * 3


def test_friends_do_not_depend_on_blocks_or_places(monkeypatch):
    random = np.random.default_rng(3)
    points = random.integers(-(2**20), 2**20, (90, 2, 8))
    points[::3] = points[0]
    whole = friend_counts(points, 2**18)
    monkeypatch.setattr("discreet.trusted.aggregation.friends.rows.BLOCK", 1000)
    order = random.permutation(90)
    assert (friend_counts(points[order], 2**18) == whole[order]).all()
    assert len(set(whole[::3])) == 1


def test_rows_without_a_value_are_nobodys_friends():
    points = np.zeros((6, 1, 2), dtype=np.int64)
    assert core_of(points, 6, 1).weight == 6 << WEIGHT_BITS
    assert core_of(points, 11, 1).weight == 0  # six of eleven: 2·6 = 11 + 1
    assert core_of(points, 10, 1).total == 6
    query = Friends(HELD, FACTORS, 1)
    for absent, total in ((5, 0), (4, 6)):
        engine = memory_engine_from_arrays(
            table([(1, 1)] * 6 + [(math.nan, 1)] * absent), SCHEMA, Replace()
        )
        assert execute(engine, query.plan()).total == total


# -- means ---------------------------------------------------------------------------------------


def mechanism_of(radius=3, size=2, centres=1, mu=1.0, delta=Fraction(1, 100), rows=40):
    return friendly_mean(
        Friendly(Fraction(centres * radius**2), size, centres), dp.GDP(mu), delta, rows
    )


def rounded(core, bits):
    whole = max(core.total, 1)
    return np.array(
        [(2 * (value << bits) + whole) // (2 * whole) for value in core.sums], dtype=float
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("centres", [1, 2])
def test_means_move_no_further_than_their_noise_says(centres):
    random, looked, most = np.random.default_rng(5), 0, 0.0
    usual = mechanism_of()
    for pair in random_pairs(random, 1500, centres):
        rows, _, width = pair.first.shape
        bound = Friendly(Fraction(centres * pair.radius**2), centres * width, centres)
        mechanism = replace(usual, sensitivity=bound)
        cores = [core_of(data, rows, pair.radius) for data in (pair.first, pair.second)]
        noisy = max(core.weight for core in cores) + mechanism.margin  # the greatest certain one
        noise = mechanism.mean_noise(noisy)
        if noise is None:
            continue
        assert all(core.total for core in cores)
        assert noise.spread >= FINE
        bits = mechanism.step_bits(noisy)
        names = itertools.permutations(range(centres))  # labels are known up to their names
        first, second = (rounded(core, bits).reshape(centres, -1) for core in cores)
        moved = min(np.linalg.norm(first - second[list(order)]) for order in names)
        most = max(most, moved / math.sqrt(noise.sensitivity.squared))
        looked += 1
    assert looked > 30
    assert 0.05 < most <= 1


def test_a_mean_follows_only_where_its_weight_is_certain():
    mechanism = mechanism_of(delta=Fraction(1, 10**6))
    for weight in (0, LEAST_WEIGHT << WEIGHT_BITS):
        core = FriendlyCore(weight, 7, (70, 70))
        follows = sum(len(drawn(mechanism, core, SeededSource(seed))) > 1 for seed in range(300))
        assert follows == 0
    edge = (LEAST_WEIGHT << WEIGHT_BITS) + mechanism.margin
    assert mechanism.mean_noise(edge) is None
    assert mechanism.mean_noise(edge + 1) is not None
    assert float(mechanism.certain_weight(edge)) == LEAST_WEIGHT


def test_the_price_is_that_of_the_theorem():
    mechanism = mechanism_of(mu=0.7, delta=Fraction(1, 10**8))
    loss = friendly_loss(mechanism)
    weight = float(WEIGHT_MOVES / mechanism.spread)
    noise = mechanism.mean_noise(mechanism.margin + (20 << WEIGHT_BITS))
    mean = math.sqrt(noise.sensitivity.squared) / float(noise.spread)
    assert float(loss.mu_squared) == pytest.approx(weight**2 + mean**2, rel=1e-9)
    assert 0.49 * 0.999 < float(loss.mu_squared) <= 0.49
    tail = norm.sf((mechanism.margin + 0.5) / float(mechanism.spread))
    assert float(loss.delta) == pytest.approx(tail, rel=1e-9)
    assert loss.delta <= Fraction(1, 10**8)
    assert norm.sf((mechanism.margin - 0.5) / float(mechanism.spread)) > 1e-8 * (1 - 1e-6)
    assert weight == pytest.approx(3 / float(mechanism.spread) * (1 << WEIGHT_BITS), rel=1e-6)


def spread_p_value(sample):
    """Two-sided, for normal numbers of standard deviation 1."""
    squares = float((np.asarray(sample) ** 2).sum())
    return 2 * min(chi2.cdf(squares, len(sample)), chi2.sf(squares, len(sample)))


@pytest.mark.slow
def test_the_answer_has_the_law_of_the_theorem():
    """Noisy weight and mean: normal with the stated spreads, and not with others by 30 %."""
    core = FriendlyCore(50 << WEIGHT_BITS, 10, (35, -20))
    mechanism = mechanism_of(delta=Fraction(1, 1000), mu=8.0)
    answers = [drawn(mechanism, core, SeededSource(seed)) for seed in range(700)]
    weights = np.array([answer[0] - core.weight for answer in answers]) / float(mechanism.spread)
    scaled = []
    for answer in answers:
        noise, step = mechanism.mean_noise(answer[0]), 2.0 ** mechanism.step_bits(answer[0])
        scaled.append((np.array(answer[1:]) - np.array([3.5, -2.0]) * step) / float(noise.spread))
    for sample in (weights, np.concatenate(scaled)):
        assert kstest(sample, "norm").pvalue > ALPHA
        assert spread_p_value(sample) > ALPHA
        assert spread_p_value(sample * 1.3) < ALPHA
        assert spread_p_value(sample / 1.3) < ALPHA


def test_centres_leave_in_an_order_that_says_nothing():
    sums = (900, 0, 0, 0, 300, 0)  # three centres of two numbers, labelled in this order
    mechanism = mechanism_of(size=6, centres=3, mu=8.0)
    answers = [
        drawn(mechanism, FriendlyCore(50 << WEIGHT_BITS, 3, sums), SeededSource(seed))[1:]
        for seed in range(30)
    ]
    for answer in answers:
        centres = [answer[start : start + 2] for start in range(0, 6, 2)]
        assert centres == sorted(centres)


def test_margins_are_least():
    for spread, delta in ((Fraction(2**20), Fraction(1, 10**9)), (Fraction(1000), Fraction(1, 4))):
        margin = margin_for(spread, delta)
        assert norm.sf((margin + 0.5) / float(spread)) <= float(delta) * (1 + 1e-9)
        assert norm.sf((margin - 0.5) / float(spread)) >= float(delta) * (1 - 1e-9)


# -- clipped sums --------------------------------------------------------------------------------


def test_clipped_rows_are_short_and_alone():
    random = np.random.default_rng(2)
    for radius in (1, 7, 1000, 2**20):
        points = random.integers(-4 * radius, 4 * radius + 1, (60, 5))
        clipped = clip(points, radius)
        assert ((clipped**2).sum(axis=1) <= radius**2).all()
        assert (np.sign(clipped) * np.sign(points) >= 0).all()
        near = (points**2).sum(axis=1) <= radius**2
        assert (clipped[near] == points[near]).all()
        assert all((clip(points[row : row + 1], radius) == clipped[row]).all() for row in range(60))
    long = clip(np.array([[2**23, 0], [3 * 2**20, 4 * 2**20]]), 2**20)
    assert (long[0] == [2**20, 0]).all()
    assert np.abs(long[1] - [3 * 2**20 / 5, 4 * 2**20 / 5]).max() <= 4


def clipped_query(radius, keys=(), centre=(0, 0)):
    return ClippedSum(keys, FACTORS, centre, radius, bool(keys))


def table(rows):
    return {name: [row[place] for row in rows] for place, name in enumerate("xy")}


def statistic(query, rows, neighbors=None):
    engine = memory_engine_from_arrays(table(rows), SCHEMA, neighbors or Replace())
    return np.array(query.assemble(execute(engine, query.plan())), dtype=float)


@pytest.mark.parametrize("keys", [(), HELD], ids=["all hold values", "some may not"])
def test_clipped_sums_move_no_further(keys):
    random, worst = np.random.default_rng(1), 0.0
    for radius in (1, 3, 9):
        query = clipped_query(radius, keys, (1, -2))
        bound = math.sqrt(query.sensitivity(Replace()).squared)
        cells = [-8, 8, -2, 1, 0, 5] + ([math.nan] if keys else [])
        for _ in range(150):
            common = [tuple(random.choice(cells, 2)) for _ in range(3)]
            ends = [[*common, tuple(random.choice(cells, 2))] for _ in range(2)]
            moved = np.linalg.norm(statistic(query, ends[0]) - statistic(query, ends[1]))
            worst = max(worst, moved / bound)
            assert moved <= bound
    assert worst > 0.8
    query = clipped_query(7, keys, (1, -2))
    ends = (statistic(query, [(one, -2)]) for one in (8, -6))
    moved = np.linalg.norm(np.subtract(*ends))
    assert 0.999 < moved / math.sqrt(query.sensitivity(Replace()).squared) <= 1


def test_clipped_sums_are_their_definition():
    query = clipped_query(5, HELD, (1, 0))
    rows = [(3, 4), (8, 0), (math.nan, 1), (1, -5)]
    sums, squares = np.zeros(2), np.zeros(2)
    for one in ((2, 4), (4, 0), (0, -5)):  # (7, 0) is drawn in to 5 − 2**-17, and cut towards 0
        sums += one
        squares += np.array(one) ** 2 / 10
    found = statistic(query, rows)
    assert (found[:2] == sums * 2**FINE_BITS).all()
    assert np.abs(found[2:4] - squares * 2**FINE_BITS).max() <= 3
    assert found[4] == 3 * query.count_weight


def test_engines_agree(tmp_path):
    random = np.random.default_rng(7)
    rows = np.round(random.normal(0, 2, (200, 2)), 3)
    rows[::17, 0], rows[5] = math.nan, (1e9, -1e9)
    pandas.DataFrame(rows, columns=["x", "y"]).to_parquet(tmp_path / "a.parquet")
    memory = memory_engine_from_arrays(table(rows), SCHEMA, Replace())
    file = FileEngine(tmp_path / "a.parquet", "parquet", SCHEMA, Replace())
    for query in (Friends(HELD, FACTORS, 4), clipped_query(3, HELD)):
        assert execute(memory, query.plan()) == execute(file, query.plan())


# -- specifications ------------------------------------------------------------------------------


def test_specifications_come_back_from_what_they_wrote():
    for query in (Friends(HELD, FACTORS, 4), clipped_query(3, HELD), clipped_query(2)):
        assert query_from_dict(query.to_dict()) == query
    pairs = tuple(Factor(name, GRID) for name in "abcd")
    query = Friends((), pairs, 4, 2)
    assert query_from_dict(query.to_dict()) == query
    bound = query.sensitivity(Replace())
    assert bound == Friendly(Fraction(32), 4, 2) == sensitivity_from_dict(bound.to_dict())
    mechanism = mechanism_of()
    assert mechanism_from_dict(mechanism.to_dict()) == mechanism


@pytest.mark.parametrize(
    "neighbors",
    [AddRemove(), Replace(unit="id", max_rows=1), AddRemove(unit="id", max_rows=2)],
    ids=str,
)
def test_other_relations_are_refused(neighbors):
    for query in (Friends((), FACTORS, 4), clipped_query(3)):
        with pytest.raises(NoTheorem, match="public number of rows"):
            query.sensitivity(neighbors)


def test_what_is_no_exact_geometry_is_refused():
    wide = Encoding(0.0, 1.0, -(2**25), 2**25)
    finer = Encoding(0.0, 2.0, -8, 8)
    for make in (
        lambda: Friends((), (), 1),
        lambda: Friends((), FACTORS, 0),
        lambda: Friends((), FACTORS, 2**26),
        lambda: Friends((), FACTORS, 1, 3),
        lambda: Friends((), (Factor("x", wide), Factor("y", wide)), 1),
        lambda: Friends((), (Factor("x", GRID), Factor("y", finer)), 1),
        lambda: ClippedSum((), FACTORS, (9, 0), 1, False),
        lambda: ClippedSum((), FACTORS, (0,), 1, False),
        lambda: ClippedSum((), FACTORS, (0, 0), 1, True),
        lambda: Friendly(Fraction(0), 1),
        lambda: Friendly(Fraction(1), 3, 2),
        lambda: FriendlyMean(Friendly(Fraction(1), 1), Fraction(2**20), 0, Fraction(1)),
        lambda: FriendlyMean(Friendly(Fraction(1), 1), Fraction(2**20), 5, Fraction(0)),
        lambda: FriendlyMean(Friendly(Fraction(2**50), 1), Fraction(2**20), 5, Fraction(1, 2**90)),
    ):
        with pytest.raises(InvalidParameter):
            make()
    with pytest.raises(DiscreetError):
        friendly_mean(Friendly(Fraction(9), 2), dp.PureDP(1), Fraction(1, 100))


def test_more_rows_than_pairs_are_looked_at_fail_without_a_look():
    with pytest.raises(ValueError, match="more rows"):
        core_of(np.zeros((0, 1, 1), dtype=np.int64), 2**16 + 1, 1)


def test_a_filter_that_is_not_whole_is_not_run():
    engine = memory_engine_from_arrays(table([]), SCHEMA, Replace())
    for query in (Friends((), FACTORS, 1), clipped_query(1)):
        execute(engine, query.plan())
    assert clipped_sums(engine, clipped_query(1).plan()) == [0] * 5
