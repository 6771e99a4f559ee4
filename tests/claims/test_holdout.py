"""The reusable holdout: what one unit moves, the law of what it answers, and controls that must be
caught.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.claims.test_selection import geometric, threshold_law

import discreet as dp
import discreet.trusted.extensions.selection as samplers
import discreet.trusted.noise.additive as additive
from discreet.accounting.calibration.holdout import thresholdout as calibrated
from discreet.errors import DiscreetError, InvalidParameter
from discreet.sensitivity import L1, L2, LInf
from discreet.specs.estimating.components import ModelColumn, NumberComponent, Response
from discreet.specs.estimating.layers import WEIGHT_BITS, Network
from discreet.specs.estimating.model import Model
from discreet.specs.estimating.networks import Agreement
from discreet.specs.holdout.surprises import Kept, Product, Right, RowFunction, Surprise, stand_in
from discreet.specs.holdout.thresholdout import Thresholdout
from discreet.specs.mechanisms.additive import GaussianNoise, GeometricNoise
from discreet.specs.mechanisms.selection import AboveThreshold
from discreet.specs.queries.keys import Between, Subset
from discreet.specs.queries.sums import number_factor
from discreet.testing import seeded_session
from discreet.trusted.aggregation.holdout.threshold import thresholdout
from discreet.trusted.engines.execution import execute
from discreet.trusted.losses.losses import loss_of
from discreet.trusted.losses.pricing import guarantee_of, within_spend

SCHEMA = dp.Schema(
    {
        "x": dp.Real(-1, 3, missing=0),
        "y": dp.Integer(0, 4, missing=0),
        "c": dp.Boolean(missing=False),
    }
)
ROWS = [(-1.0, 4, True), (3.0, 4, False), (0.3, 0, True), (3.0, 0, True), (-1.0, 1, False)]
UNITED = {"unit": "u", "max_rows": 2}
RELATIONS = [dp.Replace(), dp.AddRemove(), dp.Replace(**UNITED), dp.AddRemove(**UNITED)]
STEPS, TOLERANCE = 8, 2


def parts(bits: int = 4) -> dict[str, object]:
    x, y = (number_factor(SCHEMA, name, "a test", bits) for name in "xy")
    column = ModelColumn("x", (NumberComponent(x),))
    model = Model((column,), Response(level=("c", 1)))
    agreement = Agreement(
        model, Network(1, (), "relu", "yes/no", 1, WEIGHT_BITS[1]), (1, 0), False, True
    )
    return {
        "a filter": Kept((Subset("c", (1,)), Between("x", 0.0, 3.0))),
        "a column": Product((x,)),
        "a product": Product((x, y)),
        "a square": Product((x, x)),
        "a function": RowFunction(
            ("x", "c"), "f", 12, lambda row: row["x"] / 2 if row["c"] else 1 - row["x"]
        ),
        "right": Right(agreement),
    }


def table(rows: list[tuple[int, float, int, bool]], relation: dp.neighbors) -> object:
    columns = (
        dict(zip("uxyc", zip(*rows, strict=True), strict=True))
        if rows
        else dict.fromkeys("uxyc", ())
    )
    arrays = {
        "u": np.array(columns["u"], dtype=np.int64),
        "x": np.array(columns["x"], dtype=np.float64),
        "y": np.array(columns["y"], dtype=np.int64),
        "c": np.array(columns["c"], dtype=bool),
    }
    return dp.from_arrays(arrays, schema=SCHEMA, neighbors=relation)


def neighbours(relation) -> list[tuple[list, list]]:
    """Pairs of tables that differ in one unit's rows, with two rows of others beside."""
    beside = [(7, *ROWS[0]), (8, *ROWS[2])]
    most = relation.max_rows or 1
    of_unit = [
        [(1, *row) for row in rows]
        for count in range(most + 1)
        for rows in itertools.combinations_with_replacement(ROWS, count)
    ]
    if isinstance(relation, dp.AddRemove):
        pairs = [([], rows) for rows in of_unit]
    elif relation.unit is None:
        alone = [rows for rows in of_unit if rows]
        pairs = list(itertools.product(alone, alone))
    else:
        pairs = [(one, two) for one, two in itertools.product(of_unit, of_unit) if one and two]
    return [(beside + one, beside + two) for one, two in pairs]


def statistics(part, relation, training) -> dict[tuple, list[int]]:
    """Of all tables, by their rows."""
    query = Surprise(part, training, TOLERANCE, STEPS)
    found = {}
    for rows in itertools.chain(*neighbours(relation)):
        if tuple(rows) not in found:
            answer = execute(table(rows, relation)._engine, query.plan())
            found[tuple(rows)] = query.assemble(answer)
    return found


@pytest.mark.few(3)
@pytest.mark.parametrize("name", parts())
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_no_neighbour_moves_a_surprise_further(name, relation) -> None:
    part = parts()[name]
    farthest = [0, 0, 0]
    for training in (0, 3, STEPS):
        stated = Surprise(part, training, TOLERANCE, STEPS).sensitivity(relation).value
        found = statistics(part, relation, training)
        for one, two in neighbours(relation):
            moved = np.abs(np.subtract(found[tuple(one)], found[tuple(two)]))
            assert (moved <= stated).all(), (one, two, moved)
            farthest = np.maximum(farthest, moved)
    if relation == dp.Replace() and name not in ("right", "a square"):
        assert farthest[0] == stated  # attained
    if relation.row_count_is_public:
        assert farthest[2] == 0


def test_a_sensitivity_without_the_tolerance_is_caught() -> None:
    """Where rows come and go they move the number of rows, and with it what is tolerated."""
    rows = [(unit, 3.0, 4, True) for unit in range(10)]
    query = Surprise(parts()["a filter"], STEPS - 1, TOLERANCE, STEPS)
    before, after = (
        query.assemble(execute(table(found, dp.AddRemove())._engine, query.plan()))[0]
        for found in (rows, [*rows, (10, -1.0, 0, False)])
    )
    assert before - after == STEPS - 1 + TOLERANCE > STEPS


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_files_give_the_same_numbers_as_memory(relation, tmp_path) -> None:
    rows = [(unit, *row) for unit, row in enumerate(ROWS * 3)]
    arrays = dict(zip("uxyc", zip(*rows, strict=True), strict=True))
    pyarrow.parquet.write_table(pyarrow.table(arrays), tmp_path / "rows.parquet")
    files = dp.read_parquet(tmp_path / "rows.parquet", schema=SCHEMA, neighbors=relation)
    for part in parts().values():
        query = Surprise(part, 3, TOLERANCE, STEPS)
        one, two = (
            query.assemble(execute(data._engine, query.plan()))
            for data in (table(rows, relation), files)
        )
        assert one == two


def test_the_numbers_are_those_of_the_rows() -> None:
    rows = [(unit, *row) for unit, row in enumerate(ROWS)]
    engine = table(rows, dp.AddRemove())._engine
    wanted = {
        "a filter": np.mean([c and x >= 0 for x, _, c in ROWS]),
        "a column": np.mean([(x + 1) / 4 for x, _, _ in ROWS]),
        "a product": np.mean([(x * y + 4) / 16 for x, y, _ in ROWS]),
        "a function": np.mean([min(max(x / 2 if c else 1 - x, 0), 1) for x, _, c in ROWS]),
        "right": np.mean([(x > 0) == c for x, _, c in ROWS]),
    }
    for name, mean in wanted.items():
        query = Surprise(parts(14)[name], 0, 0, 1 << 20)
        score, beyond, rows_in_steps = query.assemble(execute(engine, query.plan()))
        assert rows_in_steps == len(ROWS) << 20
        assert score == beyond
        assert beyond / rows_in_steps == pytest.approx(mean, abs=1e-3)


# -- the law that runs -----------------------------------------------------------------------------

REACH, QUESTIONS = 7, 7
noise_law = functools.cache(geometric)


def mechanism_of(moved: int = 1, *, count: bool = False) -> Thresholdout:
    sensitivity = LInf(Fraction(moved), False)
    answer = GeometricNoise(L1(Fraction(moved)), Fraction(5, 4), 0)
    above = AboveThreshold(sensitivity, 0, 1, Fraction(3, 2), Fraction(2), False)
    return Thresholdout(above, answer, answer if count else None)


def law_of(mechanism, statistic, monkeypatch, sampler=thresholdout) -> dict[tuple, float]:
    """The law of the sampler that runs, by all draws that it makes within a reach."""
    script: list[int] = []

    def scripted(law, size, source):
        taken = [script.pop(0) for _ in range(size)]
        chances.extend(noise_law(law.spread)[step] for step in taken)
        return np.array(taken)

    chances: list[float] = []
    monkeypatch.setattr(samplers, "draw", scripted)
    monkeypatch.setattr(additive, "draw", scripted)
    found: dict[tuple, float] = defaultdict(float)
    for noise in itertools.product(range(-REACH, REACH + 1), repeat=3):
        script[:], chances[:] = noise, []
        answer = sampler(mechanism, list(statistic), None)
        if script and script[0]:
            continue  # a draw that was not made: counted once, at 0
        found[answer] += math.prod(chances)
    return found


def worst_sequence(mechanism, moved: int) -> float:
    """The largest log-ratio between neighbours over the answers to some questions, each score and
    number moved by so much: the threshold's law, and an answer's noise at every 1.
    """
    middle, largest = threshold_law(mechanism.above, (0,) * QUESTIONS), 0.0
    for moves in itertools.product((-moved, moved), repeat=QUESTIONS):
        other = threshold_law(mechanism.above, moves)
        for answers, chance in middle.items():
            told = sum(answers) * moved / float(mechanism.answer.spread)
            largest = max(largest, abs(math.log(chance / other[answers])) + told)
    return largest


def test_the_sampler_is_a_threshold_and_then_fresh_noise(monkeypatch) -> None:
    mechanism, law = mechanism_of(), geometric(Fraction(5, 4))
    for score, number in ((0, 0), (2, -1), (-3, 4)):
        found = law_of(mechanism, (score, number, 5), monkeypatch)
        total = sum(found.values())
        above = threshold_law(mechanism.above, (score,))[(1,)]
        assert found[(0,)] / total == pytest.approx(1 - above, abs=0.01)
        for step in range(-4, 5):
            wanted = above * law[step]
            assert found[(1, number + step)] / total == pytest.approx(wanted, abs=0.01, rel=0.02)
            assert wanted != pytest.approx(above * geometric(Fraction(13, 8))[step], rel=0.02)


def test_all_answers_keep_epsilon() -> None:
    mechanism = mechanism_of()
    epsilon = guarantee_of(mechanism).epsilon
    assert epsilon == pytest.approx(1 / 1.5 + 2 / 2 + 1 / 1.25)
    assert 0.85 * epsilon < worst_sequence(mechanism, 1) <= epsilon


def test_answers_that_are_not_paid_for_are_caught() -> None:
    mechanism = mechanism_of()
    assert worst_sequence(mechanism, 1) > 1.1 * float(loss_of(mechanism.above).epsilon)


def test_noise_for_half_the_sensitivity_is_caught() -> None:
    mechanism = mechanism_of()
    assert worst_sequence(mechanism, 2) > 1.5 * guarantee_of(mechanism).epsilon


@pytest.mark.slow
def test_an_answer_without_noise_is_caught(monkeypatch) -> None:
    """Neighbours then give different answers."""

    def exact(own, statistic, source):
        run = samplers.ThresholdRun(own.above, source)
        return (1, statistic[1]) if run.above(statistic[0]) else (0,)

    laws = [law_of(mechanism_of(), (1, place, 5), monkeypatch, exact) for place in (2, 3)]
    assert laws[0].keys() != laws[1].keys()
    noisy = [law_of(mechanism_of(), (1, place, 5), monkeypatch) for place in (2, 3)]
    assert len(noisy[0].keys() & noisy[1].keys()) > 2 * REACH


def test_small_tables_keep_epsilon(monkeypatch) -> None:
    """All tables of three rows of 0 and 1 under Replace: real statistics, the law that runs."""
    schema = {"b": dp.Boolean(missing=False)}
    part, steps = Kept((Subset("b", (1,)),)), 2
    mechanism = Thresholdout(
        AboveThreshold(LInf(Fraction(steps), False), 0, 1, Fraction(3), Fraction(6), False),
        GeometricNoise(L1(Fraction(steps)), Fraction(4), 0),
    )
    laws = {}
    for bits in itertools.product((False, True), repeat=2):
        data = dp.from_arrays({"b": np.array(bits)}, schema=schema, neighbors=dp.Replace())
        query = Surprise(part, 1, 1, steps)
        assert query.sensitivity(dp.Replace()) == mechanism.sensitivity
        statistic = query.assemble(execute(data._engine, query.plan()))
        laws[bits] = law_of(mechanism, statistic, monkeypatch)
    epsilon = guarantee_of(mechanism).epsilon
    for one, two in itertools.combinations(laws, 2):
        if sum(a != b for a, b in zip(one, two, strict=True)) != 1:
            continue
        for answer in laws[one].keys() & laws[two].keys():
            if len(answer) == 1 or abs(answer[1]) <= REACH - 2 * steps:
                assert abs(math.log(laws[one][answer] / laws[two][answer])) <= epsilon + 1e-9


# -- what is charged, and what a mechanism must be ------------------------------------------------


def test_all_parts_are_charged() -> None:
    sensitivity = LInf(Fraction(4), False)
    answer = GaussianNoise(L2(Fraction(16)), Fraction(2048), 0)
    above = AboveThreshold(sensitivity, 0, 3, Fraction(64), Fraction(128), True)
    loss = loss_of(Thresholdout(above, answer, answer))
    assert loss.pure == (Fraction(4, 64) + Fraction(8, 128),) * 3
    assert loss.mu_squared == 4 * Fraction(16, 2048**2)


@pytest.mark.few(3)
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize(
    "spend", [dp.GDP(0.5), dp.PureDP(0.5), dp.ApproxDP(0.5, 1e-6), dp.ZCDP(0.125)], ids=str
)
def test_what_is_calibrated_fits_its_spend(relation, spend) -> None:
    sensitivity = stand_in(1 << 15).sensitivity(relation)
    for answers in (1, 30):
        made = calibrated(
            sensitivity, spend, answers=answers, rows_are_public=relation.row_count_is_public
        )
        assert within_spend(made, spend)
        assert Thresholdout.from_dict(made.to_dict()) == made
        assert (made.count is None) == relation.row_count_is_public


def test_noises_of_different_sensitivities_are_refused() -> None:
    good = mechanism_of(2)
    for noise in (
        GeometricNoise(L1(Fraction(1)), Fraction(2), 0),
        GaussianNoise(L2(Fraction(1)), Fraction(2048), 0),
        good.above,
        None,
    ):
        with pytest.raises(InvalidParameter):
            Thresholdout(good.above, noise)
    with pytest.raises(InvalidParameter):
        Thresholdout(good.above, good.answer, GeometricNoise(L1(Fraction(1)), Fraction(2), 0))
    with pytest.raises(InvalidParameter):
        Thresholdout(good.answer, good.answer)


def test_a_question_of_another_grid_is_refused() -> None:
    data = table([(unit, *row) for unit, row in enumerate(ROWS)], dp.AddRemove())
    holdout = dp.holdout(
        seeded_session(data, dp.GDP(100), 1), threshold=0.1, answers=2, spend=dp.GDP(1)
    )
    noisy, tolerance = holdout._noisy, holdout.facts.tolerance
    for query in (
        Surprise(Kept(()), 0, tolerance + 1),
        Surprise(Kept(()), 0, tolerance, 1 << 21),
        Kept(()),
        None,
    ):
        with pytest.raises(DiscreetError, match="no mean on the holdout's own grid"):
            noisy.answer(query)
    assert noisy.left == 2


def test_the_number_of_rows_is_drawn_once() -> None:
    data = table([(unit, *row) for unit, row in enumerate(ROWS * 20)], dp.AddRemove())
    holdout = dp.holdout(
        seeded_session(data, dp.GDP(100), 1), threshold=0.1, answers=2, spend=dp.GDP(0.1)
    )
    assert len({holdout._noisy.rows() for _ in range(20)}) == 1
    public = dp.holdout(
        seeded_session(table([(1, *ROWS[0])], dp.Replace()), dp.GDP(100), 1),
        threshold=0.1, answers=2, spend=dp.GDP(0.1),
    )  # fmt: skip
    with pytest.raises(InvalidParameter, match="public"):
        public._noisy.rows()
