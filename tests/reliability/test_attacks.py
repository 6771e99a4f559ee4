"""Cases 36–46: attacks that must fail, through what the public functions hand out."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import math
import pickle
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from reliability_cases import ESTIMATORS, RELATIONS, SCHEMA, SPENDS
from tests.chance import without_chance

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.estimators import questions
from discreet.exact import fraction_text, stored_fraction
from discreet.inference.means.means import decode_means
from discreet.inference.results.decode import to_float
from discreet.inference.results.stored import release_from_json
from discreet.schema import Schema
from discreet.sensitivity import L1
from discreet.testing import epsilon_seen_in_low_bits, seeded_session
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import secure_source
from discreet.trusted.release import Description, PublicFacts

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


SECRETS = ("planted-4417", "person-5561", "7.31957", "731957")
PLANTED = {
    "x": [7.319573125] * 3,
    "k": [5] * 3,
    "b": [True] * 3,
    "c": ["planted-4417"] * 3,
    "id": ["person-5561"] * 3,
}
PLAIN = {"x": [1.0] * 3, "k": [2] * 3, "b": [False] * 3, "c": ["N"] * 3, "id": ["person-0"] * 3}


def texts_of(columns: dict[str, Any], neighbors: Any, break_engine: bool) -> list[str]:
    """Everything that is said about a data set:
    errors of every kind, reprs, warnings and log lines.
    """
    data = dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors)
    session = seeded_session(data, dp.GDP(1), 3)
    if break_engine:

        def fail(*_: Any) -> Any:
            raise ValueError(f"cannot read {columns}")

        session._engine.sums = session._engine.fold = fail
    texts = [repr(data), repr(session.public), repr(session).rsplit("head", 1)[0]]
    for ask in (
        lambda: dp.mean(session, "x", spend=dp.GDP(9)),
        lambda: dp.mean(session, "planted", spend=dp.GDP(0.1)),
        lambda: dp.table(session, by="x", spend=dp.GDP(0.1)),
        lambda: dp.mean(session, "c", spend=dp.GDP(0.1)),
        lambda: dp.histogram(session, "x", bins=[1, 0], spend=dp.GDP(0.1)),
        lambda: dp.mean(session, "x", spend=dp.GDP(0.1), key="fixed"),
    ):
        try:
            ask()
            texts.append("an answer")
        except dp.DiscreetError as error:
            texts.append(f"{type(error).__name__} {error} {error.__cause__} {error.__context__}")
    return texts


@pytest.mark.parametrize("break_engine", [False, True])
@pytest.mark.parametrize("relation", ["replace", "add_remove", "units", "replaced units"])
def test_case_44_texts_do_not_depend_on_the_data(relation, break_engine, caplog, capfd):
    """The same texts for planted and for plain data of one size,
    also where the engine fails with the data in its message.
    """
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        said = [
            texts_of(columns, RELATIONS[relation], break_engine) for columns in (PLANTED, PLAIN)
        ]
    assert said[0] == said[1]
    assert ("ReleaseFailed" in said[0][-1]) is break_engine
    assert not caught
    assert not caplog.records
    assert capfd.readouterr() == ("", "")
    assert not any(secret in text for text in said[0] for secret in SECRETS)


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
def test_case_44_what_is_handed_out_holds_no_planted_value(relation):
    # the digits of secure noise hold six given ones now and then
    session = seeded_session(
        dp.from_arrays(PLANTED, schema=SCHEMA, neighbors=RELATIONS[relation]), dp.GDP(10), relation
    )
    handed_out = [
        str(dp.preview(session, dp.mean, "x", spend=dp.GDP(0.1), assume=dp.Assumptions(rows=3)))
    ]
    for ask in ESTIMATORS.values():
        result = ask(session, dp.GDP(0.1))
        handed_out += [
            pickle.dumps(result).decode("latin-1"),
            result.to_json(),
            str(result),
            repr(result),
            result._repr_html_(),
            str(result.to_frame()),
        ]
    handed_out += [str(entry) for entry in session.ledger.entries()] + [str(session.ledger)]
    assert not any(
        secret in without_chance(text, session.ledger) for text in handed_out for secret in SECRETS
    )


def damaged(path, damage):
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    else:
        pq.write_table(pl.DataFrame({"planted-4417": ["person-5561"]}).to_arrow(), path)


def test_case_44_a_source_that_breaks_after_the_debit_says_nothing(tmp_path, monkeypatch):
    """A file that is gone, cut or exchanged after a debit: one text, the debit stands, and a retry
    on the file declared again is not charged again.
    """
    path = tmp_path / "data.parquet"
    texts = set()
    for damage in ("gone", "cut", "other"):
        pl.DataFrame(PLANTED).write_parquet(path)
        session = dp.read_parquet(path, schema=SCHEMA, neighbors=dp.AddRemove()).open(
            budget=dp.GDP(1)
        )
        damaged(path, damage)
        with monkeypatch.context() as patch:
            looks = iter([True])  # it breaks between the look before the debit and the pass
            patch.setattr(
                type(session._engine), "unchanged", lambda engine, looks=looks: next(looks, False)
            )
            with pytest.raises(dp.ReleaseFailed) as caught:
                dp.mean(session, "x", spend=dp.GDP(0.5), key="fixed")
        assert caught.value.__context__ is None
        texts.add(str(caught.value))
        paid = session.ledger.spent()
        assert paid
        pl.DataFrame(PLANTED).write_parquet(path)
        again = dp.read_parquet(path, schema=SCHEMA, neighbors=dp.AddRemove()).open(
            ledger=session.ledger
        )
        assert dp.mean(again, "x", spend=dp.GDP(0.5), key="fixed").release.entry == 1
        assert session.ledger.spent() == paid
        # what is stored needs no file
        assert dp.mean(session, "x", spend=dp.GDP(0.5), key="fixed").release.entry == 1
    assert len(texts) == 1
    assert not any(secret in text for text in texts for secret in SECRETS)


def test_case_44_a_source_that_broke_before_a_question_costs_nothing(tmp_path):
    path = tmp_path / "data.parquet"
    texts = set()
    for damage in ("gone", "cut", "other"):
        pl.DataFrame(PLANTED).write_parquet(path)
        session = dp.read_parquet(path, schema=SCHEMA, neighbors=dp.AddRemove()).open(
            budget=dp.GDP(1)
        )
        damaged(path, damage)
        with pytest.raises(dp.SourceChanged) as caught:
            dp.mean(session, "x", spend=dp.GDP(0.5))
        texts.add(str(caught.value))
        assert not session.ledger.spent()
    assert len(texts) == 1
    assert not any(secret in text for text in texts for secret in SECRETS)


@pytest.mark.parametrize("source", ["arrays", "frame", "parquet", "csv"])
def test_case_46_a_rare_key_shows_nowhere(source, tmp_path):
    """A group-by has its declared cells, whoever is in the data;
    a row with a rare undeclared key changes no cell at all.
    """
    released = []
    for rare in (["planted-4417"], []):
        frame = pl.DataFrame({"x": [1.0] * (10 + len(rare)), "c": ["N", "é"] * 5 + rare})
        place = tmp_path / f"{len(rare)}.{source}"
        schema, neighbors = {"x": SCHEMA["x"], "c": SCHEMA["c"]}, dp.AddRemove()
        if source == "arrays":
            data = dp.from_arrays(
                frame.to_dict(as_series=False), schema=schema, neighbors=neighbors
            )
        elif source == "frame":
            data = dp.from_frame(frame, schema=schema, neighbors=neighbors)
        elif source == "csv":
            frame.write_csv(place)
            data = dp.read_csv(place, schema=schema, neighbors=neighbors)
        else:
            frame.write_parquet(place)
            data = dp.read_parquet(place, schema=schema, neighbors=neighbors)
        session = seeded_session(data, dp.GDP(10), 11)
        results = [
            dp.table(session, by="c", spend=dp.GDP(0.5)),
            dp.table(session, "x", by="c", spend=dp.GDP(0.5)),
            dp.histogram(session, "c", spend=dp.GDP(0.5)),
        ]
        assert all(
            [label for (label,) in result.labels] == ["N", "é", "0", "a\0b"] for result in results
        )
        assert not any("planted" in str(result) + result.to_json() for result in results)
        released.append([result.release.integers for result in results])
        for ask in (
            lambda session=session: dp.count(
                session, where={"c": "planted-4417"}, spend=dp.GDP(0.1)
            ),
            lambda session=session: dp.proportion(
                session, "c", level="planted-4417", spend=dp.GDP(0.1)
            ),
        ):
            with pytest.raises(dp.InvalidParameter):
                ask()
    assert released[0] == released[1]


# ── texts that nobody wrote ─────────────────────────────────────────────────────────────────────


def _places(record: Any) -> list[tuple[Any, Any]]:
    """Every holder and name of a value in a JSON record."""
    pairs = record.items() if isinstance(record, dict) else enumerate(record)
    found: list[tuple[Any, Any]] = []
    for name, held in list(pairs):
        found.append((record, name))
        found += _places(held) if isinstance(held, (dict, list)) else []
    return found


@pytest.mark.parametrize("name", ["count", "median", "mean"])
def test_hostile_texts_are_refused_and_fill_no_memory(name: str) -> None:
    session = small_data(0.5, dp.AddRemove()).open(budget=dp.GDP(3))
    asked = {
        "count": lambda: dp.count(session, spend=dp.GDP(1)),
        "mean": lambda: dp.mean(session, "x", spend=dp.GDP(1)),
        "median": lambda: dp.median(session, "x", spend=dp.GDP(1)),
    }
    text, tried, refused = asked[name]().to_json(), 0, 0
    for place in range(len(_places(json.loads(text)))):
        for hostile in ("1e200000000", "1/0", "9" * 5000, "0.5", "1_0", None, [], {}, -1, 1.5):
            record = json.loads(text)
            holder, key = _places(record)[place]
            holder[key] = hostile
            tried += 1
            try:  # the text of a label may be anything
                dp.from_json(json.dumps(record))
            except InvalidParameter:
                refused += 1
    assert refused > tried / 2


@pytest.mark.parametrize("text", ["[" * 200_000, '{"format":' * 50_000, "[[]]", "null", "1"])
def test_texts_of_any_depth_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        dp.from_json(text)
    nested = '{"format": "discreet-release", "version": 1, "asked": %s}' % (
        "[" * 100_000 + "]" * 100_000
    )
    with pytest.raises(InvalidParameter):
        dp.from_json(nested)


def test_a_stored_fraction_is_what_was_written_and_nothing_else() -> None:
    for number in (Fraction(3, 7), Fraction(-2), Fraction(10**2000, 7)):
        assert stored_fraction(fraction_text(number)) == number
    for text in ("1e9", "0.5", "1_0", " 1", "1/0", "1/-2", "+1", "", "٣", "1" * 5000, 0.5, None):
        with pytest.raises(ValueError, match="stored fraction"):
            stored_fraction(text)


def test_a_release_of_a_procedure_without_a_step_is_read_again() -> None:
    session = small_data(0.5, dp.AddRemove()).open(budget=dp.GDP(3))
    question = questions.count_question(session.public, spend=dp.GDP(1), where={"b": True})
    described = dataclasses.replace(question, description=Description("ols"))
    release = session.release(described)
    assert release_from_json(release.to_json()) == release
