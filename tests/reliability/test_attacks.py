"""Cases 36–46: attacks that must fail, through what the public functions hand out."""

from __future__ import annotations

import copy
import json
import math
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from reliability_cases import ESTIMATORS, RELATIONS, SCHEMA, SPENDS

import discreet as dp
from discreet.estimators import questions
from discreet.inference.means.means import decode_means
from discreet.inference.results.decode import to_float
from discreet.schema import Schema
from discreet.sensitivity import L1
from discreet.testing import epsilon_seen_in_low_bits, seeded_session
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import secure_source
from discreet.trusted.release import PublicFacts

DRAWS = 1_000_000
ROWS = 7
SMALL = Schema({"x": dp.Real(-1, 3), "b": dp.Boolean()})


def small_data(value: float, neighbors: Any) -> Any:
    return dp.from_arrays(
        {"x": [0.3] * (ROWS - 1) + [value], "b": [False] * (ROWS - 1) + [value > 0]},
        schema=SMALL,
        neighbors=neighbors,
    )


class ManyReleases:
    """What dp.mean, dp.sum or dp.count would release of two neighbours, many times over: the same
    question, statistic, noise and decoding.
    """

    def __init__(self, name: str, spend: Any) -> None:
        self.neighbors = dp.Replace()
        public = PublicFacts(SMALL, self.neighbors, ROWS)
        asked = {
            "mean": lambda: questions.mean_question(public, "x", spend=spend),
            "sum": lambda: questions.sum_question(public, "x", spend=spend),
            "count": lambda: questions.count_question(public, spend=spend, where={"b": True}),
        }
        self.name, self.question = name, asked[name]()

    def statistic(self, value: float) -> list[int]:
        engine = memory_engine_from_arrays(
            {"x": [0.3] * (ROWS - 1) + [value], "b": [False] * (ROWS - 1) + [value > 0]},
            SMALL,
            self.neighbors,
        )
        return self.question.query.assemble(engine.sums(self.question.query.plan()))

    def steps(self, value: float, count: int, source: Any) -> np.ndarray:
        """Released integers, of shape (coordinates, count)."""
        mechanism, statistic = self.question.mechanism, self.statistic(value)
        noise = draw(mechanism, count * len(statistic), source).reshape(count, len(statistic)).T
        return np.array(statistic)[:, None] * (1 << mechanism.refinement) + noise

    def decoded(self, steps: np.ndarray) -> np.ndarray:
        query, mechanism = self.question.query, self.question.mechanism
        if self.name == "count":
            return to_float(mechanism, steps[0], 1.0)
        statistics = decode_means(query, mechanism, steps, public_rows=ROWS, cluster=1)
        center, worth = (
            query.factor.encoding.center,
            query.factor.encoding.high * float(query.factor.encoding.step),
        )
        return (
            center + worth * statistics.mean
            if self.name == "mean"
            else (center / worth * statistics.count + statistics.first) * worth
        )

    def __call__(self, value: float, count: int) -> np.ndarray:
        return self.decoded(self.steps(value, count, secure_source()))


ATTACKED = [
    (name, spend) for name in ("mean", "sum", "count") for spend in (dp.PureDP(1), dp.GDP(0.5))
]
ASK = {
    "mean": lambda session, spend: dp.mean(session, "x", spend=spend),
    "sum": lambda session, spend: dp.sum(session, "x", spend=spend),
    "count": lambda session, spend: dp.count(session, where={"b": True}, spend=spend),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "spend"), ATTACKED, ids=str)
def test_case_36_low_bits_of_estimates_tell_nothing(name, spend):
    """PureDP(1) promises ε = 1.

    For GDP the bound is its ε at δ = 1e-6,
    plus what δ adds to an event of the least probability that counts.
    """
    release = ManyReleases(name, spend)
    promised = (
        spend.epsilon
        if isinstance(spend, dp.PureDP)
        else math.log(math.exp(spend.epsilon_at(1e-6)) + 0.05)
    )
    assert epsilon_seen_in_low_bits(release, -1.0, 3.0, DRAWS) <= promised


@pytest.mark.parametrize(("name", "spend"), ATTACKED, ids=str)
def test_case_36_the_attacked_releases_are_the_public_ones(name, spend):
    """The adapter reads as the public function does:
    the same released integers give the same float.
    """
    release = ManyReleases(name, spend)
    budget = dp.PureDP(1) if isinstance(spend, dp.PureDP) else dp.GDP(1)
    for value in (-1.0, 3.0):
        result = ASK[name](seeded_session(small_data(value, dp.Replace()), budget, value), spend)
        assert result.release.mechanism == release.question.mechanism
        assert release.decoded(np.array(result.release.integers)[:, None])[0] == pytest.approx(
            result.unprojected[0], rel=1e-15
        )
        noise = np.array(result.release.integers) - np.array(release.statistic(value)) * (
            1 << result.release.mechanism.refinement
        )
        again = ASK[name](seeded_session(small_data(-value, dp.Replace()), budget, value), spend)
        assert (
            np.array(again.release.integers)
            - np.array(release.statistic(-value)) * (1 << result.release.mechanism.refinement)
            == noise
        ).all()


@pytest.mark.slow
def test_case_36_the_same_attack_breaks_naive_estimates():
    def naive(value: float, count: int) -> np.ndarray:
        return (0.3 * (ROWS - 1) + value + np.random.default_rng().laplace(0.0, 4.0, count)) / ROWS

    def naive_count(value: float, count: int) -> np.ndarray:
        return float(value > 0) + np.random.default_rng().laplace(0.0, 1.0, count)

    assert (
        max(epsilon_seen_in_low_bits(release, -1.0, 3.0, DRAWS) for release in (naive, naive_count))
        > 4.0
    )


def distance(first: Any, second: Any) -> Any:
    """How far two seeded releases with the same noise are apart,
    in the norm of their sensitivity (ℓ₂: squared).
    """
    cut = 1 << first.release.mechanism.refinement
    moved = [
        abs(a - b) for a, b in zip(first.release.integers, second.release.integers, strict=True)
    ]
    # the noise is the same, so what is left is the statistic
    assert all(step % cut == 0 for step in moved)
    whole = [step // cut for step in moved]
    return (
        sum(whole)
        if isinstance(first.release.mechanism.sensitivity, L1)
        else sum(step * step for step in whole)
    )


def largest(result: Any) -> Any:
    sensitivity = result.release.mechanism.sensitivity
    return sensitivity.value if isinstance(sensitivity, L1) else sensitivity.squared


def never_moved_by_more(columns: dict[str, Any], changed: dict[str, Any], neighbors: Any) -> float:
    """The greatest share of the claimed sensitivity that a pair of neighbours reaches,
    over all estimators.
    """
    reached = []
    for amount, budget in SPENDS.values():
        sessions = [
            seeded_session(dp.from_arrays(cells, schema=SCHEMA, neighbors=neighbors), budget, 7)
            for cells in (columns, changed)
        ]
        for name, ask in ESTIMATORS.items():
            first, second = (ask(session, amount) for session in sessions)
            share = float(distance(first, second) / largest(first))
            assert share <= 1, name
            reached.append(share)
    return max(reached)


FLOAT_CELLS = [
    1e16,
    1.0,
    -1e16,
    2.0**53,
    0.1,
    5e-324,
    -0.0,
    1e308,
    float("inf"),
    float("nan"),
    9.999999999999998,
    -1e-17,
]


@pytest.mark.slow
def test_case_37_float_sums_of_neighbours():
    """Cells whose float sums depend on order and lose rows: the released statistics of neighbours
    differ by no more than claimed.
    """
    rows = 3 * len(FLOAT_CELLS)
    base = {
        "x": FLOAT_CELLS * 3,
        "k": FLOAT_CELLS * 3,
        "b": [True] * rows,
        "c": ["N"] * rows,
        "id": list(range(rows)),
    }
    generator, reached = np.random.default_rng(1), []
    for place in range(0, rows, 3):
        for value in (-10.0, 10.0, 1e16, float("nan")):
            order = generator.permutation(rows)
            changed = {name: [cells[row] for row in order] for name, cells in base.items()}
            changed["x"][place] = changed["k"][place] = value
            changed["b"][place], changed["c"][place] = False, "é"
            original = {name: list(cells) for name, cells in changed.items()}
            original |= {
                "x": [base["x"][row] for row in order],
                "k": [base["k"][row] for row in order],
                "b": base["b"],
                "c": base["c"],
            }
            shuffled = generator.permutation(rows)
            reached.append(
                never_moved_by_more(
                    {name: [cells[row] for row in shuffled] for name, cells in original.items()},
                    changed,
                    dp.Replace(),
                )
            )
    assert max(reached) > 0.9  # the attack does move the statistics


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64])
def test_case_38_integer_overflow_of_neighbours(dtype):
    """One row from the least to the greatest machine integer among many extremes: no sum wraps."""
    least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    rows = 70_000  # more than a block
    reached = []
    for fill in (least, greatest):
        cells = np.full(rows, fill, dtype=dtype)
        changed = cells.copy()
        changed[17] = greatest if fill == least else least
        columns = [
            {
                "x": column,
                "k": column,
                "b": np.ones(rows, bool),
                "c": np.full(rows, "N"),
                "id": np.arange(rows),
            }
            for column in (cells, changed)
        ]
        reached.append(never_moved_by_more(*columns, dp.Replace()))
    assert min(reached) > 0.3


FORKS = """
import json, os, sys
import discreet as dp
declared = {"schema": {"x": dp.Real(0, 2)}, "neighbors": dp.AddRemove()}
data = dp.from_arrays({"x": [1.0] * 5}, **declared, name="five")
session, memory = data.open(budget=dp.GDP(5), ledger=sys.argv[1]), data.open(budget=dp.GDP(5))
dp.histogram(session, "x", spend=dp.GDP(0.1))
for child in range(4):
    reader, writer = os.pipe()
    if os.fork() == 0:
        answer = [str(step) for step in dp.histogram(session, "x", \
spend=dp.GDP(0.1)).release.integers]
        try:
            dp.mean(memory, "x", spend=dp.GDP(0.1))
            refused = ""
        except dp.LedgerRefused as error:
            refused = error.remedy
        os.write(writer, json.dumps([answer, refused]).encode())
        os._exit(0)
    os.close(writer)
    print(os.read(reader, 65536).decode())
    os.wait()
print(json.dumps([[str(step) for step in dp.histogram(session, "x", \
spend=dp.GDP(0.1)).release.integers], "parent"]))
"""


@pytest.mark.slow
def test_case_39_no_noise_repeats_after_a_fork_or_in_another_process(tmp_path):
    lines = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", FORKS, str(tmp_path / "test.ledger")],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        lines += [json.loads(line) for line in done.stdout.splitlines()]
    answers = [tuple(answer) for answer, _ in lines]
    assert len(set(answers)) == len(answers) == 10
    assert all(refused for _, refused in lines)  # the memory ledger does not go on in a child
    ledger = dp.Ledger.open(None, path=tmp_path / "test.ledger")
    assert sum(entry.kind == "debit" for entry in ledger.entries()) == 12
    assert ledger.verify().ok


@pytest.mark.few(2)
@pytest.mark.parametrize("relation", RELATIONS)
def test_case_40_replay_gives_the_same_answer_and_a_new_key_a_new_debit(relation):
    data = dp.from_arrays(
        {"x": [1.0, 2.0], "k": [1, 2], "b": [True, False], "c": ["N", "é"], "id": [1, 2]},
        schema=SCHEMA,
        neighbors=RELATIONS[relation],
    )
    session = data.open(budget=dp.GDP(10))
    for name in ("x", "k"):
        first = dp.mean(session, name, spend=dp.GDP(0.5), key=name)
        paid = session.ledger.spent()
        again = [dp.mean(session, name, spend=dp.GDP(0.5), key=name) for _ in range(20)]
        assert all(other == first for other in again)
        assert session.ledger.spent() == paid
        averaged = dp.mean(session, name, spend=dp.GDP(0.5), key=name + " again")
        assert averaged.release.integers != first.release.integers
        assert session.ledger.spent().mu_squared - paid.mu_squared == pytest.approx(
            0.25e12, rel=1e-9
        )
    before = session.ledger.entries()
    for call in (
        lambda: dp.mean(session, "x", spend=dp.GDP(0.4), key="x"),
        lambda: dp.mean(session, "k", spend=dp.GDP(0.5), key="x"),
        lambda: dp.sum(session, "x", spend=dp.GDP(0.5), key="x"),
        lambda: dp.mean(session, "x", spend=dp.GDP(0.5), where={"b": True}, key="x"),
    ):
        with pytest.raises(dp.LedgerRefused):
            call()
    other = dp.from_arrays(
        {"x": [9.0, 9.0], "k": [1, 2], "b": [True, False], "c": ["N", "é"], "id": [1, 2]},
        schema=SCHEMA,
        neighbors=RELATIONS[relation],
    ).open(ledger=session.ledger)
    with pytest.raises(dp.LedgerRefused):  # other data under a used key
        dp.mean(other, "x", spend=dp.GDP(0.5), key="x")
    assert session.ledger.entries() == before


@pytest.mark.parametrize("granted", [1, 10])
def test_case_41_64_threads_spend_the_last_unit_once(granted):
    data = dp.from_arrays(
        {"x": [1.0, 2.0], "k": [1, 2], "b": [True, False], "c": ["N", "é"], "id": [1, 2]},
        schema=SCHEMA,
        neighbors=dp.AddRemove(),
    )
    session = data.open(budget=dp.PureDP(granted))
    start = threading.Barrier(64)

    def spend(_: int) -> Any:
        start.wait()
        try:
            return dp.count(session, spend=dp.PureDP(1)).release.integers
        except dp.BudgetExceeded as error:
            return error

    with ThreadPoolExecutor(64) as pool:
        outcomes = list(pool.map(spend, range(64)))
    assert sum(isinstance(outcome, tuple) for outcome in outcomes) == granted
    assert sum(isinstance(outcome, dp.BudgetExceeded) for outcome in outcomes) == 64 - granted
    assert session.ledger.spent().exact().epsilon == granted
    assert not session.ledger.remaining()
    assert session.ledger.verify().ok


@pytest.mark.slow
def test_case_41_64_threads_with_one_key_get_one_answer():
    session = dp.from_arrays(
        {"x": [1.0]}, schema={"x": SCHEMA["x"]}, neighbors=dp.AddRemove()
    ).open(budget=dp.PureDP(1))
    start = threading.Barrier(64)

    def ask(_: int) -> Any:
        start.wait()
        return dp.mean(session, "x", spend=dp.PureDP(1), key="one").release.integers

    with ThreadPoolExecutor(64) as pool:
        assert len(set(pool.map(ask, range(64)))) == 1
    assert [entry.kind for entry in session.ledger.entries()] == ["open", "debit", "answer"]


def test_case_42_nothing_that_can_spend_is_copied(tmp_path):
    declared = {"schema": {"x": SCHEMA["x"]}, "neighbors": dp.AddRemove()}
    data = dp.from_arrays({"x": [1.0]}, **declared, name="one")
    for place in (None, tmp_path / "test.ledger"):
        session = data.open(budget=dp.PureDP(1), ledger=place)
        reservation = session.reserve(dp.PureDP(0.1))
        before = session.ledger.entries()
        for thing in (data, session, session.ledger, reservation):
            for clone in (
                copy.deepcopy,
                pickle.dumps,
                lambda one: pickle.dumps(one, protocol=2),
                lambda one: copy.deepcopy([one]),
            ):
                with pytest.raises(dp.LedgerRefused) as caught:
                    clone(thing)
                assert caught.value.remedy
        for thing in (data, session, session.ledger):
            with pytest.raises(dp.LedgerRefused):
                copy.copy(thing)
        assert session.ledger.entries() == before


def test_case_43_user_code_is_refused_and_never_run():
    """No question takes code: what is callable is refused, uncalled."""
    session = dp.from_arrays(
        {"x": [1.0], "k": [1], "b": [True], "c": ["N"]}, schema=SCHEMA, neighbors=dp.AddRemove()
    ).open(budget=dp.PureDP(1))
    called = []

    def spy(*arguments: Any, **options: Any) -> bool:
        called.append(arguments)
        return True

    spend = dp.PureDP(0.1)
    for ask in (
        lambda: dp.count(session, where=spy, spend=spend),
        lambda: dp.count(session, where={"x": spy}, spend=spend),
        lambda: dp.count(session, where={"c": spy}, spend=spend),
        lambda: dp.mean(session, spy, spend=spend),
        lambda: dp.histogram(session, "x", bins=spy, spend=spend),
        lambda: dp.table(session, by=spy, spend=spend),
        lambda: dp.table(session, by={"x": spy}, spend=spend),
        lambda: dp.mean(session, "x", spend=spy),
        lambda: dp.preview(session, spy, spend=spend),
        lambda: dp.proportion(session, "c", level=spy, spend=spend),
        lambda: dp.proportion(session, "b", level=spy, spend=spend),
        lambda: dp.mean(session, "x", spend=spend, key=spy),
    ):
        with pytest.raises(dp.DiscreetError):
            ask()
    assert not called
    assert not session.ledger.spent()
