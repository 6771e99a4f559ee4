"""Claim: one unit moves one row of the table of outputs, whatever the function does; nothing of the
function is seen but declared numbers, and no part sees another.
"""

from __future__ import annotations

import itertools
import math
import os
import pathlib
import secrets
import signal
import sys
import threading
from fractions import Fraction

import numpy as np
import pandas
import pytest

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.estimators.questions import histogram_question, mean_question
from discreet.estimators.selection_questions import mode_question
from discreet.neighbors import AddRemove, Replace
from discreet.schema import Boolean, Category, Integer, Open, Real, Schema
from discreet.sensitivity import L1, L2, LInf, Rows
from discreet.specs.aggregation.part_outputs import OutputsPlan, PartOutputs
from discreet.specs.queries.histograms import GridCounts
from discreet.specs.queries.keys import Between, Levels, Subset
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.sums import Sum
from discreet.specs.registry import query_from_dict
from discreet.trusted.aggregation import part_outputs
from discreet.trusted.aggregation.part_outputs import in_processes, output_table, read
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.engines.rehearsal import Rehearsal
from discreet.trusted.noise.source import secure_source
from discreet.trusted.release import PublicFacts

SCHEMA = Schema({"x": Integer(0, 9), "g": Category(["a", "b"]), "f": Boolean()})
TWO = Schema({"sum": Real(0, 40, missing=0.0), "level": Category(["a", "b"])})
ONE = Schema({"out": Real(0, 40, missing=17.0)})
WIDE = Schema({"out": Real(0, 255, missing=0.0)})
RELATIONS = [
    Replace(),
    AddRemove(),
    Replace(unit="id", max_rows=2),
    AddRemove(unit="id", max_rows=2),
]


def engine(rows, neighbors):
    return memory_engine_from_arrays(
        {name: [row[place] for row in rows] for place, name in enumerate(("id", "x", "g", "f"))},
        SCHEMA,
        neighbors,
    )


class FixedWords:
    """The same random word for the same unit: the coupling of the proof."""

    secure = False

    def __init__(self, by_unit):
        self._by_unit = by_unit

    def uint64(self, count):
        return np.array(self._by_unit[:count], dtype=np.uint64)


def sums(x, g):
    return [x.sum(), "b" if int(x.sum()) % 2 else "a"]


def plan(function, many=3, outputs=TWO, keys=()):
    return OutputsPlan(keys, ("x", "g"), many, outputs, function, None)


def outputs_of(data, given, source=None):
    """The table as tuples, one for each part."""
    table = output_table(data, given, source or secure_source())
    columns = [
        table.level_codes(name) if isinstance(one, Category) else table.values(name)
        for name, one in given.outputs.items()
    ]
    return [tuple(float(value) for value in row) for row in zip(*columns, strict=True)]


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_one_unit_moves_one_row_of_the_table(neighbors):
    words = [int.from_bytes(secrets.token_bytes(7), "little") for _ in range(8)]
    others = [(name, x, "a", True) for name, x in (("u1", 1), ("u1", 4), ("u2", 7), ("u3", 2))]
    mine = [
        [("me", x, "b", True)] * k
        for x, k in itertools.product(range(3), (1, 2) if neighbors.unit else (1,))
    ]
    without = [[]] if isinstance(neighbors, AddRemove) else []
    tables = [
        outputs_of(engine(others + own, neighbors), plan(sums), FixedWords(words))
        for own in mine + without
    ]
    moved = [
        sum(one != other for one, other in zip(first, second, strict=True))
        for first, second in itertools.combinations(tables, 2)
    ]
    assert all(len(table) == 3 for table in tables)
    assert max(moved) == 1


KEPT = []


def remembers(x, g):
    """Keeps what it saw, and answers with all that it ever saw."""
    KEPT.append(int(x.sum()))
    return float(sum(KEPT))


def test_no_part_sees_another():
    """The control: in one process the same function tells of every part before."""
    words = FixedWords(list(range(6)))
    data = engine([("u", x, "a", True) for x in range(6)], AddRemove())
    alone = outputs_of(data, plan(remembers, outputs=ONE), words)
    assert alone == [(3.0,), (5.0,), (7.0,)]  # 0 + 3, 1 + 4, 2 + 5
    assert not KEPT
    together = [remembers(np.array([low, low + 3]), None) for low in range(3)]
    assert together == [3.0, 8.0, 15.0]


def shared_maps(x, g):
    """How much memory is shared with other processes: the parent's, and where it answers itself."""
    threading.Event().wait(0.05)  # so that parts overlap
    return float(pathlib.Path("/proc/self/maps").read_text().count("/dev/zero"))


def test_answers_of_other_parts_are_not_in_a_part_s_memory(monkeypatch):
    """The control: without `_keep_from_forks` a part can read what running ones wrote."""
    monkeypatch.setattr(part_outputs.os, "cpu_count", lambda: 3)
    data = engine([("u", x, "a", True) for x in range(6)], AddRemove())
    before = shared_maps(None, None)
    assert outputs_of(data, plan(shared_maps, outputs=WIDE)) == [(before + 1,)] * 3
    monkeypatch.setattr(part_outputs, "_keep_from_forks", lambda shared: None)
    leaky = outputs_of(data, plan(shared_maps, outputs=WIDE))
    assert leaky == [(before + 2,), (before + 3,), (before + 4,)]


def raises(x, g):
    raise ValueError(f"a secret {x}")


def dies(x, g):
    os.kill(os.getpid(), signal.SIGKILL)


def starts_threads(x, g):
    threading.Thread(target=threading.Event().wait).start()
    return 3.0


FAILING = {
    "raises": raises,
    "sys.exit": lambda x, g: sys.exit(0),
    "os._exit": lambda x, g: os._exit(0),
    "interrupts": lambda x, g: (_ for _ in ()).throw(KeyboardInterrupt),
    "dies": dies,
    "never ends recursing": lambda x, g: FAILING["never ends recursing"](x, g),
    "nan": lambda x, g: math.nan,
    "none": lambda x, g: None,
    "text": lambda x, g: "much",
    "array": lambda x, g: np.zeros(2),
    "array of one": lambda x, g: np.zeros(1),
    "too few arguments": lambda x: 1.0,
    "complex": lambda x, g: 1j,
}


@pytest.mark.few(3)
@pytest.mark.parametrize("how", FAILING)
def test_a_function_that_gives_no_number_gives_the_missing_value(how, capfd):
    data = engine([("u", 1, "a", True)] * 6, Replace())
    found = outputs_of(data, plan(FAILING[how], outputs=ONE))
    assert found == [(17.0,)] * 3 or all(math.isnan(value) for (value,) in found)
    table = output_table(data, plan(FAILING[how], outputs=ONE), secure_source())
    factor = Factor("out", ONE["out"].encoding())
    assert table.factor_codes(factor).tolist() == [round((17 - 20) * factor.encoding.per_unit)] * 3
    assert capfd.readouterr() == ("", "")


def test_a_wrong_number_of_outputs_is_missing_in_all():
    data = engine([("u", 1, "a", True)] * 6, Replace())
    for function in (lambda x, g: [3.0], lambda x, g: [3.0, "b", 1], lambda x, g: 3.0):
        assert [level for _, level in outputs_of(data, plan(function))] == [-1.0] * 3


def test_numbers_are_read_by_the_total_rules_and_clamped():
    data = engine([("u", 1, "a", True)] * 3, Replace())
    for given, number in (
        (5, 5.0),
        (True, 1.0),
        (1e300, 40.0),
        (-math.inf, 0.0),
        (10**400, 40.0),
        (np.float32(2.5), 2.5),
        (np.array(7), 7.0),
        ("3.5", 3.5),
    ):
        assert outputs_of(data, plan(lambda x, g, it=given: it, 1, ONE)) == [(number,)]


def test_answers_are_read_in_the_process_that_gave_them():
    declared = tuple(TWO.values())
    assert read([3, "b"], declared).tolist() == [3.0, 1.0]
    assert read((np.array(2.5), "c"), declared).tolist() == [2.5, -1.0]
    assert math.isnan(read(np.zeros(1), (ONE["out"],))[0])
    for wrong in ([3], [3, "b", 1], 3):
        with pytest.raises((TypeError, ValueError)):
            read(wrong, declared)


def test_nothing_that_it_prints_is_seen(capfd):
    def loud(x, g):
        print("row", x)
        os.write(1, b"row")
        os.write(2, b"row")
        os.system("echo row; echo row >&2")
        x[:] = 0
        return 1.0

    data = engine([("u", 5, "a", True)] * 6, Replace())
    assert outputs_of(data, plan(loud, outputs=ONE)) == [(1.0,)] * 3
    assert outputs_of(data, plan(lambda x, g: x.sum(), outputs=ONE)) == [(10.0,)] * 3
    assert capfd.readouterr() == ("", "")


def test_threads_that_it_starts_do_not_keep_it():
    data = engine([("u", 5, "a", True)] * 3, Replace())
    assert outputs_of(data, plan(starts_threads, outputs=ONE)) == [(3.0,)] * 3


def test_an_interrupt_ends_all_processes(monkeypatch):
    children, fork = [], os.fork

    def noted():
        child = fork()
        children.append(child)
        return child

    class Works(list):
        def __iter__(self):
            yield lambda: threading.Event().wait()
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fork", noted)
    with pytest.raises(KeyboardInterrupt):
        in_processes(Works([None, None]), 1)
    assert len(children) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(children[0], 0)


def test_an_interrupt_at_the_fork_does_not_run_the_program_twice(monkeypatch, tmp_path):
    """A child that is interrupted before its work begins would go on with the caller's program."""
    fork, mine = os.fork, os.getpid()

    def interrupted():
        child = fork()
        if child == 0:
            os.kill(os.getpid(), signal.SIGINT)
        return child

    monkeypatch.setattr(os, "fork", interrupted)
    try:
        found = in_processes([lambda: np.array([3.0])], 1)
    except KeyboardInterrupt:
        if os.getpid() != mine:
            (tmp_path / "twice").touch()
            os._exit(1)
        raise
    assert found.tolist() == [[3.0]]
    assert not (tmp_path / "twice").exists()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def test_filters_leave_rows_out_of_their_parts():
    data = engine([("u", 5, "ab"[n % 2], True) for n in range(12)], Replace())
    keys = (Subset("g", (0,)),)
    found = outputs_of(data, plan(lambda x, g: x.sum(), 2, ONE, keys))
    assert sum(value for (value,) in found) == 30
    assert all(value % 5 == 0 for (value,) in found)


def test_empty_data_runs_the_function_on_empty_parts():
    found = outputs_of(engine([], AddRemove()), plan(lambda x, g: float(len(x)), outputs=ONE))
    assert found == [(0.0,)] * 3


def test_engines_agree(tmp_path):
    rows = pandas.DataFrame({"x": np.arange(12) % 10, "g": ["a", "b"] * 6, "f": [True] * 12})
    rows.to_parquet(tmp_path / "a.parquet")
    words = FixedWords([int(word) for word in np.random.default_rng(0).integers(0, 2**60, 12)])
    memory = memory_engine_from_arrays({name: list(rows[name]) for name in rows}, SCHEMA, Replace())
    file = FileEngine(tmp_path / "a.parquet", "parquet", SCHEMA, Replace())
    assert outputs_of(memory, plan(sums), words) == outputs_of(file, plan(sums), words)


# -- the question about the table ---------------------------------------------------------------


def asked(about, outputs=ONE, parts=6):
    return PartOutputs((), ("x",), parts, tuple(outputs), tuple(outputs.values()), about, "f", sums)


LEVELS = Schema({"level": Category(["a", "b"])})


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_sensitivities_are_those_of_a_table_of_public_length(neighbors):
    facts = PublicFacts(LEVELS, Replace(), 6)
    votes = asked(histogram_question(facts, "level", spend=dp.GDP(1)).query, LEVELS)
    assert votes.sensitivity(neighbors)[:2] == (L1(Fraction(2)), L2(Fraction(2)))
    choice = asked(mode_question(facts, "level", spend=dp.GDP(1)).query, LEVELS)
    assert choice.sensitivity(neighbors) == LInf(Fraction(1), False)
    tally = asked(GridCounts((), Factor("out", ONE["out"].encoding()), False))
    assert tally.sensitivity(neighbors) == Rows(1, "replaced")
    total = asked(Sum((), (Factor("out", ONE["out"].encoding()),), False))
    width = 2 * ONE["out"].encoding().high
    assert total.sensitivity(neighbors)[:2] == (L1(Fraction(width)), L2(Fraction(width**2)))


def test_votes_of_all_small_tables_move_as_stated():
    """Enumeration: every table of three votes (or none), every neighbour, on the running law."""
    facts = PublicFacts(LEVELS, Replace(), 3)
    query = asked(histogram_question(facts, "level", spend=dp.GDP(1)).query, LEVELS, 3)
    counts = {}
    for votes in itertools.product(("a", "b", None), repeat=3):
        table = memory_engine_from_arrays({"level": list(votes)}, LEVELS, Replace())
        counts[votes] = np.array(query.assemble(execute(table, query.about.plan())))
    moved = [
        counts[votes] - counts[(other, *votes[1:])]
        for votes in counts
        for other in ("a", "b", None)
    ]
    l1, l2, most = (max(np.linalg.norm(one, order) for one in moved) for order in (1, 2, np.inf))
    assert (l1, l2**2, most) == (2, pytest.approx(2), 1)


def most_frequent(g):
    return "a" if (g == "a").sum() > (g == "b").sum() else "b"


def law_of_votes(levels, query, rate):
    """The exact law of the level that two parts vote for, over all assignments of rows to parts."""
    chances = np.zeros(2)
    for words in itertools.product(range(2), repeat=len(levels)):
        rows = [("u", 1, level, True) for level in levels]
        table = output_table(engine(rows, AddRemove()), query.plan(), FixedWords(list(words)))
        scores = np.array(query.assemble(execute(table, query.about.plan())), dtype=float)
        weights = np.exp(rate * scores)
        chances += weights / weights.sum() / 2 ** len(levels)
    return chances


def test_the_law_of_votes_keeps_epsilon_on_a_small_domain(monkeypatch):
    """One row more or less, all tables of up to three rows: at the calibrated rate the laws of the
    chosen level are within e^ε of each other; at three times the rate they are not.
    """
    monkeypatch.setattr(
        part_outputs, "in_processes", lambda works, width: np.array([[*work()] for work in works])
    )
    question = mode_question(PublicFacts(LEVELS, Replace(), 2), "level", spend=dp.PureDP(1))
    made = PartOutputs(
        (), ("g",), 2, ("level",), (LEVELS["level"],), question.query, "f", most_frequent
    )

    def worst(times):
        rate = times * float(question.mechanism.rate)
        ratios = []
        for size in range(3):
            for levels in itertools.product("ab", repeat=size):
                fewer = law_of_votes(levels, made, rate)
                for more in "ab":
                    ratios.append(np.log(law_of_votes((*levels, more), made, rate) / fewer))
        return float(np.abs(ratios).max())

    assert worst(1) <= 1
    assert worst(3) > 1


def test_the_query_is_kept_without_its_function():
    facts = PublicFacts(ONE, Replace(), 6)
    query = asked(mean_question(facts, "out", spend=dp.GDP(1)).query)
    again = query_from_dict(query.to_dict())
    assert again == query
    assert query.plan().function is sums
    with pytest.raises(InvalidParameter, match="it is not here"):
        again.plan()


def test_the_function_is_not_rehearsed_and_the_question_about_its_outputs_is():
    rehearsal = Rehearsal(SCHEMA, Replace())
    good = asked(Sum((), (Factor("out", ONE["out"].encoding()),), False))
    rehearsal.require(good)  # `sums` would fail: it is handed one column
    for wrong in (
        asked(Sum((), (Factor("x", ONE["out"].encoding()),), False)),  # no output
        PartOutputs((), ("nobody",), 2, ("out",), (ONE["out"],), good.about, "f", sums),
    ):
        with pytest.raises(dp.DiscreetError):
            rehearsal.require(wrong)
    opened = Rehearsal(Schema({"x": Open()}), Replace())
    with pytest.raises(InvalidParameter, match="another kind"):
        opened.require(good)


def test_what_cannot_be_run_is_refused():
    about = Sum((), (), False)
    for make in (
        lambda: PartOutputs((), ("x",), 0, ("o",), (ONE["out"],), about, "f"),
        lambda: PartOutputs((), ("x",), True, ("o",), (ONE["out"],), about, "f"),
        lambda: PartOutputs((), ("x",), 2**16 + 1, ("o",), (ONE["out"],), about, "f"),
        lambda: PartOutputs((), (), 2, ("o",), (ONE["out"],), about, "f"),
        lambda: PartOutputs((), ("x",), 2, (), (), about, "f"),
        lambda: PartOutputs((), ("x",), 2, ("o", "o"), (ONE["out"],) * 2, about, "f"),
        lambda: PartOutputs((), ("x",), 2, ("o",), (Open(),), about, "f"),
        lambda: PartOutputs((), ("x",), 2, ("o",), (Real(0, 1),), about, "f"),
        lambda: PartOutputs((), ("x",), 2, ("o",), (ONE["out"],), asked(about), "f"),
    ):
        with pytest.raises(InvalidParameter):
            make()


@pytest.mark.parametrize("key", [Subset("level", (0,)), Levels("level", 1), Between("sum", 0, 5)])
def test_a_question_about_outputs_says_which_rows_count(key):
    """A replaced part can make a value vanish where a key leaves it out: with `optional` False the
    stated change is one value replaced, and the noise would be too small.
    """
    factor, rehearsal = Factor("sum", TWO["sum"].encoding()), Rehearsal(SCHEMA, Replace())
    for kind in (GridCounts, Sum):
        given = (factor,) if kind is Sum else factor
        rehearsal.require(asked(kind((key,), given, True), TWO))
        with pytest.raises(InvalidParameter, match="rows that its schema allows"):
            rehearsal.require(asked(kind((key,), given, False), TWO))
    rehearsal.require(asked(GridCounts((), factor, False), TWO))
