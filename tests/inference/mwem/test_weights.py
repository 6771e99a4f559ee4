"""Multiplicative weights against the definition on dense tables, and stored values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import discreet as dp
from discreet.inference.mwem.fitting import Learner
from discreet.inference.mwem.weights import Weights
from discreet.inference.mwem.workload import RANGES, Box, Workload
from discreet.inference.synthesis.domain import Cut, Domain
from discreet.specs.queries.keys import Levels
from discreet.specs.queries.marginals import Axis

EIGHT = np.array([10, 0, 5, 5, 1, 0, 8, 3])
PREFIXES = [np.arange(8) < end for end in range(1, 8)]


def test_the_noiseless_run_has_its_stored_tables() -> None:
    """Five rounds, each with the query that is missed most; computed with mpmath."""
    weights, numbers, tables, selected = Weights(8, EIGHT.sum()), {}, [], []
    for _ in range(5):
        table = weights.table()
        missed = [abs(table[mask].sum() - EIGHT[mask].sum()) for mask in PREFIXES]
        chosen = int(np.argmax(missed))
        selected.append(chosen)
        if chosen not in numbers:
            numbers[chosen] = weights.add(PREFIXES[chosen])
        weights.update(numbers[chosen], float(EIGHT[PREFIXES[chosen]].sum()))
        tables.append(weights.table())
    assert selected == [0] * 5
    assert tables[-1] == pytest.approx([5.693796908806336] + [3.7580290130276666] * 7, abs=1e-10)
    assert np.mean(tables, axis=0) == pytest.approx(
        [5.020580830181748] + [3.8542027385454647] * 7, abs=1e-10
    )


def test_patterns_are_the_dense_table() -> None:
    """Against the update written out cell by cell, for queries that cut each other."""
    rng, cells, total = np.random.default_rng(1), 60, 500.0
    masks = [rng.random(cells) < share for share in (0.5, 0.1, 0.9, 0.3, 0.5)]
    weights, dense = Weights(cells, total), np.full(cells, total / cells)
    for mask in masks:
        weights.add(mask)
    for turn in range(40):
        query, measured = turn % 5, float(rng.uniform(-50, 600))
        assert weights.value(query) == pytest.approx(dense[masks[query]].sum())
        weights.update(query, measured)
        off = measured - dense[masks[query]].sum()
        dense = dense * np.where(masks[query], np.exp(off / (2 * total)), 1.0)
        dense *= total / dense.sum()
        assert weights.table() == pytest.approx(dense, rel=1e-9)


def test_replay_settles_on_counts_that_fit_together() -> None:
    weights = Weights(8, 32.0)
    for mask in PREFIXES[:3]:
        weights.add(mask)
    counts = [float(EIGHT[mask].sum()) for mask in PREFIXES[:3]]
    for _ in range(30):
        weights.replay(counts)
    for query, count in enumerate(counts):
        assert weights.value(query) == pytest.approx(count, abs=0.3)
    assert weights.table().sum() == pytest.approx(32)


def test_extreme_counts_keep_a_table_finite() -> None:
    weights = Weights(8, 1.0)
    weights.add(PREFIXES[2])
    for count in (1e12, -1e12, 1e12):
        weights.update(0, count)
        table = weights.table()
        assert np.isfinite(table).all()
        assert table.sum() == pytest.approx(1)


# -- workloads -------------------------------------------------------------------------------------


def domain_and_axes() -> tuple[Domain, tuple[Axis, ...]]:
    sizes = {"a": 2, "b": 3, "c": 4}
    cuts = tuple(
        Cut(name, dp.Category([*range(size)], missing=0), tuple(map(str, range(size))))
        for name, size in sizes.items()
    )
    return Domain(cuts), tuple(Axis(Levels(name, size), False) for name, size in sizes.items())


def test_every_number_is_the_box_that_is_compared() -> None:
    """The count of a box in a table is what its distance is taken from."""
    domain, axes = domain_and_axes()
    pairs = tuple(itertools.combinations(range(3), 2))
    own = (Box(((0, (1,)), (2, (1, 2)))),)
    table = np.random.default_rng(2).integers(0, 50, (2, 3, 4)).astype(float)
    for workload in (
        Workload(domain, axes, pairs, own),
        Workload(domain, axes, ((0, 1, 2),)),
        Workload(domain, axes, ((0,), (1,), (2,)), of=RANGES),
    ):
        query = workload.query(0 * table)
        counts = [
            table.sum(axis=tuple(set(range(3)) - set(one))).ravel().astype(np.int64)
            for one in workload.tables
        ]
        counts += [np.array([int(box.count(table))]) for box in workload.boxes]
        distances = query.assemble(counts)
        assert len(distances) == workload.size == query.size
        for place, distance in enumerate(distances):
            box = workload.box(place)
            assert distance == box.count(table)
            assert table.ravel()[box.mask(domain.sizes)].sum() == distance


def test_guesses_are_whole_and_near() -> None:
    domain, axes = domain_and_axes()
    table = np.random.default_rng(3).uniform(0, 9, (2, 3, 4))
    for of, tables in ((RANGES, ((0,), (1,), (2,))), ("cells", ((0, 1), (0, 2)))):
        workload = Workload(domain, axes, tables, of=of)
        query = workload.query(table)
        zeros = [np.zeros(len(guess), dtype=np.int64) for guess in query.guesses]
        for place, distance in enumerate(query.assemble(zeros)):
            assert abs(distance - workload.box(place).count(table)) <= (1 if of == RANGES else 0.5)


def test_a_box_of_its_own_is_left_out_once_it_was_measured() -> None:
    domain, axes = domain_and_axes()
    boxes = (Box(((0, (1,)),)), Box(((1, (2,)),)))
    workload = Workload(domain, axes, (), boxes)
    after = workload.without(boxes[0])
    assert after.boxes == boxes[1:]
    assert after.without(boxes[1]).boxes == boxes[1:]  # something is left to ask


def test_the_lecture_averages_and_replay_does_not() -> None:
    box, other = Box(((0, (1,)),)), Box(((1, (0, 2)),))
    learners = {name: Learner((2, 3), 60.0, name) for name in ("replay", "lecture")}
    for learner in learners.values():
        learner.learn(box, 50.0)
        first = learner.table
        learner.learn(other, 10.0)
        learner.learn(box, 40.0)
    assert learners["replay"].answer == pytest.approx(learners["replay"].table)
    assert box.count(learners["replay"].answer) == pytest.approx(45, abs=1)
    assert other.count(learners["replay"].answer) == pytest.approx(10, abs=2)
    lecture = learners["lecture"]
    assert lecture.answer != pytest.approx(lecture.table)
    assert lecture.answer.sum() == pytest.approx(60)
    assert lecture.measured[box] == (45.0, 2)
    assert first.shape == (2, 3)
