"""Claim: a statistic leaves only through `Session.release`, with noise of its own sensitivity,
       after it was paid for, and nothing else leaves.

Every forged question is refused before the debit and before a cell is read;
every failure after the debit says the same.
"""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from tests.chance import without_chance

import discreet as dp
from discreet.errors import (
    DiscreetError,
    InsecureNoise,
    InvalidParameter,
    LedgerRefused,
    ReleaseFailed,
)
from discreet.estimators import questions
from discreet.schema import Schema
from discreet.testing import SeededSource, seeded_session
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.noise.source import secure_source
from discreet.trusted.session import Session

SECRET = 7_315_928.625  # no other number in these tests has these digits
SCHEMA = Schema(
    {
        "x": dp.Real(0, 1e7),
        "g": dp.Category(["a", "b"]),
        "h": dp.Category(["p", "q"], missing="p"),
        "b": dp.Boolean(),
    }
)
DATA = {
    "x": [SECRET, 5.0, 9e6],
    "g": ["a", "b", "zebra-7315"],
    "h": ["p", "q", "p"],
    "b": [True, False, True],
    "id": ["anna-7315", "bob", "cleo"],
}


class Watched:
    """An engine that counts how often it is read, and can be told to fail with a private text."""

    def __init__(self, neighbors, columns=DATA, text=""):
        self._inner = memory_engine_from_arrays(columns, SCHEMA, neighbors)
        self.schema, self.neighbors, self.reads, self.text = SCHEMA, neighbors, 0, text
        self.remembered = {}

    def sums(self, plan):
        self.reads += 1
        if self.text:
            raise ValueError(f"could not read {self.text}")
        return self._inner.sums(plan)

    def gram(self, plan):
        self.reads += 1
        return self._inner.gram(plan)

    def histogram(self, plan):
        self.reads += 1
        return self._inner.histogram(plan)

    def fold(self, *asked, **options):
        self.reads += 1
        return self._inner.fold(*asked, **options)

    def public_count(self):
        return self._inner.public_count()

    def unchanged(self):
        return True

    def data_id(self):
        return self._inner.data_id()

    def describe(self):
        return self._inner.describe()


def watched_session(neighbors, *, budget=None, **options):
    engine = Watched(neighbors, **options)
    return Session(
        engine,
        SCHEMA,
        neighbors,
        Ledger.open(budget or dp.ApproxDP(1e6, 0.1), pure=5e5),
        secure_source(),
    ), engine


# -- failures after the debit ----------------------------------------------------------------------


def failure(text):
    session, engine = watched_session(dp.Replace(), text=text)
    with pytest.raises(ReleaseFailed) as caught:
        dp.mean(session, "x", spend=dp.GDP(0.1), key="k")
    return caught.value, session, engine


def test_a_failure_after_the_debit_tells_nothing_and_the_debit_stands():
    errors = [failure(text) for text in ("anna-7315", "a much longer cell\n of another kind")]
    assert len({(type(error), str(error), repr(error.args)) for error, _, _ in errors}) == 1
    for error, session, engine in errors:
        assert error.__context__ is None
        assert error.__cause__ is None
        paid = session.ledger.spent()
        assert paid
        engine.text = ""
        assert dp.mean(session, "x", spend=dp.GDP(0.1), key="k").release.integers
        assert session.ledger.spent() == paid


class Raises:
    """A cell that fights back."""

    @property
    def __class__(self):
        raise ValueError("anna-7315")

    def __eq__(self, other):
        raise ValueError("anna-7315")

    __hash__ = None


@pytest.mark.parametrize(
    "neighbors", [dp.Replace(), dp.AddRemove(), dp.Replace(unit="id", max_rows=2)], ids=str
)
def test_no_python_object_in_a_cell_can_make_a_session_or_a_release_fail(neighbors):
    odd = Raises()
    columns = {
        "x": [odd, 1.0],
        "g": [odd, "a"],
        "h": [odd, "p"],
        "b": [odd, True],
        "id": [odd, "u"],
    }
    session = dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors).open(budget=dp.GDP(1.0))
    for result in (
        dp.mean(session, "x", spend=dp.GDP(0.1)),
        dp.histogram(session, "g", spend=dp.GDP(0.1)),
        dp.proportion(session, "b", spend=dp.GDP(0.1)),
    ):
        assert result.release.integers


# -- what can be seen without paying ---------------------------------------------------------------


def test_public_counts_are_the_same_for_neighbours():
    """Row-level Replace: rows.

    Replace of units: units, each of which has a row before and after. AddRemove: nothing.
    """
    longer = {name: [*cells, cells[-1]] for name, cells in DATA.items()}  # cleo has two rows now
    renamed = {**longer, "id": ["anna-7315", "bob", "dora", "dora"]}
    for neighbors, expected in (
        (dp.Replace(unit="id", max_rows=2), 3),
        (dp.AddRemove(unit="id", max_rows=2), None),
        (dp.AddRemove(), None),
    ):
        sessions = [
            dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors).open(budget=dp.GDP(1.0))
            for columns in (DATA, longer, renamed)
        ]
        assert [session.public.count for session in sessions] == [expected] * 3
        assert [session.public.rows for session in sessions] == [None] * 3
    assert (
        dp.from_arrays(DATA, schema=SCHEMA, neighbors=dp.Replace())
        .open(budget=dp.GDP(1.0))
        .public.rows
        == 3
    )


def private_texts():
    return ("7315928", "anna", "zebra", "bob", "cleo")


@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove(unit="id", max_rows=2)], ids=str)
def test_texts_requests_and_pickles_hold_no_cell(neighbors):
    data = dp.from_arrays(
        {name: list(cells) for name, cells in DATA.items()}, schema=SCHEMA, neighbors=neighbors
    )
    session = seeded_session(data, dp.GDP(1.0), "texts")  # so that the bytes of noise spell no word
    results = [
        dp.mean(session, "x", spend=dp.GDP(0.1), key="m"),
        dp.table(session, "x", by="g", spend=dp.GDP(0.1)),
    ]
    preview = dp.preview(session, dp.mean, "x", spend=dp.GDP(0.1), assume=dp.Assumptions(rows=100))
    texts = [
        repr(data),
        repr(session),
        str(session),
        repr(session.public),
        repr(session.ledger),
        str(session.ledger),
        str(preview),
        repr(preview),
        data._engine.data_id(),
        json.dumps(data._engine.describe()),
    ]
    texts += [entry.body for entry in session.ledger.entries() if entry.kind != "answer"]
    texts += [str(result.summary()) + repr(result) + repr(result.release) for result in results]
    texts += [
        pickle.dumps(thing).decode("latin-1")
        for thing in (*results, *(result.release for result in results), session.public, preview)
    ]
    for text in texts:
        assert not [
            word for word in private_texts() if word in without_chance(text, session.ledger)
        ]
    # control
    assert [word for word in private_texts() if word in pickle.dumps(DATA).decode("latin-1")] == [
        "anna",
        "zebra",
        "bob",
        "cleo",
    ]


@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove(unit="id", max_rows=2)], ids=str)
def test_sessions_and_data_sets_cannot_be_copied(neighbors):
    data = dp.from_arrays(DATA, schema=SCHEMA, neighbors=neighbors)
    session = data.open(budget=dp.GDP(1.0))
    for thing in (data, session, session.ledger, session._source):
        for duplicate in (
            copy.copy,
            copy.deepcopy,
            pickle.dumps,
            lambda one: pickle.dumps(one, protocol=0),
        ):
            with pytest.raises(DiscreetError):
                duplicate(thing)


# -- keys, ledgers, reservations -------------------------------------------------------------------


def test_one_key_is_one_question_on_one_data_set():
    ledger = Ledger.open(dp.GDP(1.0))
    one, two = (
        dp.from_arrays(DATA, schema=SCHEMA, neighbors=dp.Replace()).open(ledger=ledger)
        for _ in range(2)
    )
    first = dp.mean(one, "x", spend=dp.GDP(0.1), key="k")
    assert dp.mean(one, "x", spend=dp.GDP(0.1), key="k").release == first.release
    for ask in (
        lambda: dp.mean(two, "x", spend=dp.GDP(0.1), key="k"),
        lambda: dp.mean(one, "x", spend=dp.GDP(0.2), key="k"),
        lambda: dp.mean(one, "x", spend=dp.GDP(0.1), key="k", where={"g": "a"}),
    ):
        with pytest.raises(LedgerRefused, match="another request"):
            ask()
    assert ledger.spent().exact().mu_squared == Fraction(1, 100)
    dp.mean(two, "x", spend=dp.GDP(0.1), key="K")  # both data sets are charged to the one ledger
    assert ledger.spent().exact().mu_squared == Fraction(2, 100)
    with pytest.raises(LedgerRefused, match="neighbours"):
        dp.mean(
            dp.from_arrays(DATA, schema=SCHEMA, neighbors=dp.AddRemove()).open(ledger=ledger),
            "x",
            spend=dp.GDP(0.1),
        )


@pytest.mark.parametrize("persistent", [False, True])
def test_odd_keys_are_refused_or_kept_apart(persistent, tmp_path):
    session = dp.from_arrays(DATA, schema=SCHEMA, neighbors=dp.Replace(), name="keys").open(
        budget=dp.GDP(1.0), ledger=tmp_path / "l" if persistent else None
    )
    head = session.ledger.head
    for wrong in ("", "x" * 201, "a\0b", "a\nb", "\ud800", 5, b"k", True):
        with pytest.raises(InvalidParameter):
            dp.mean(session, "x", spend=dp.GDP(0.1), key=wrong)
    assert session.ledger.head == head
    keys = [
        "k",
        "K",
        " k",
        "k ",
        "é",
        "e\u0301",
        "'; DROP TABLE entries; --",
        "%",
        '"',
        "\U0001f600",
        "ｋ",
    ]
    seen = [dp.mean(session, "x", spend=dp.GDP(0.1), key=key).release for key in keys]
    assert len({release.integers for release in seen}) == len(keys)
    assert [dp.mean(session, "x", spend=dp.GDP(0.1), key=key).release for key in keys] == seen
    assert session.ledger.spent().exact().mu_squared == Fraction(len(keys), 100)
    assert session.ledger.verify()


def test_a_reservation_pays_for_what_is_released_under_it_and_for_no_more():
    session, engine = watched_session(dp.Replace(), budget=dp.ApproxDP(1e6, 0.1))
    question = questions.mean_question(session.public, "x", spend=dp.GDP(0.3))
    with session.reserve(dp.GDP(0.4)) as reservation:
        session.release(question, key="step", reservation=reservation)
        session.release(question, key="step", reservation=reservation)  # a retry costs nothing
        with pytest.raises(dp.BudgetExceeded):
            session.release(question, key="next", reservation=reservation)
    assert engine.reads == 1
    with pytest.raises(dp.BudgetExceeded, match="closed"):
        session.release(question, key="later", reservation=reservation)
    other = watched_session(dp.Replace())[0].reserve(dp.GDP(0.4))
    with pytest.raises(LedgerRefused, match="reservation"):
        session.release(question, key="foreign", reservation=other)
    assert session.ledger.spent().exact().mu_squared == Fraction(9, 100)
    assert not session.ledger.reserved()


# -- noise -----------------------------------------------------------------------------------------


def test_seeded_noise_is_marked_and_refused_by_files(tmp_path):
    engine = memory_engine_from_arrays(DATA, SCHEMA, dp.Replace())
    marked = Session(engine, SCHEMA, dp.Replace(), Ledger.open(dp.GDP(1.0)), SeededSource(1))
    assert not dp.mean(marked, "x", spend=dp.GDP(0.1)).release.secure
    kept = Session(
        engine, SCHEMA, dp.Replace(), Ledger.open(dp.GDP(1.0), path=tmp_path / "l"), SeededSource(1)
    )
    head = kept.ledger.head
    with pytest.raises(InsecureNoise):
        dp.mean(kept, "x", spend=dp.GDP(0.1))
    assert kept.ledger.head == head


FORK = """
import json, os, sys
import discreet as dp
declared = {"schema": {"x": dp.Real(0, 100)}, "neighbors": dp.AddRemove()}
data = dp.from_arrays({"x": []}, **declared, name="none")
session = data.open(budget=dp.GDP(1.0), ledger=sys.argv[1])
memory = data.open(budget=dp.GDP(1.0))
dp.histogram(session, "x", bins=100, spend=dp.GDP(0.01))  # the source has buffered words now
read, write = os.pipe()
child = os.fork()
refused = ""
if child == 0:
    try:
        dp.count(memory, spend=dp.GDP(0.01))
    except dp.LedgerRefused:
        refused = "refused"
seen = dp.histogram(session, "x", bins=100, spend=dp.GDP(0.01)).release.integers
if child == 0:
    os.write(write, json.dumps([refused, seen]).encode())
    os._exit(0)
os.close(write)
os.waitpid(child, 0)
with os.fdopen(read, "rb") as pipe:
    print(json.dumps([json.loads(pipe.read()), seen, len(session.ledger.entries())]))
"""


@pytest.mark.slow
def test_a_forked_session_draws_other_noise_and_both_are_charged(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORK, str(tmp_path / "fork.ledger")],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    (refused, child), parent, entries = json.loads(done.stdout)
    assert refused == "refused"  # a ledger in memory does not go on in a child
    assert np.count_nonzero(np.equal(child, parent)) < 20
    assert entries == 1 + 3 * 2
