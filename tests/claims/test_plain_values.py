"""Claim: only plain values pass the door.

Each test is a hole that was open once: an object with behaviour of its own got past a check.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
import os
import pickle
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PosixPath

import numpy as np
import pytest

import discreet as dp
from discreet import client, plain
from discreet.encoding import Encoding
from discreet.errors import DiscreetError, InsecureNoise, InvalidParameter, LedgerRefused
from discreet.estimators import questions
from discreet.estimators.selection_questions import watch_question
from discreet.schema import Schema
from discreet.specs.mechanisms.additive import GaussianNoise
from discreet.specs.mechanisms.gradient_requests import GradientRequest
from discreet.specs.queries.scores import CandidateGroup, CandidateScores
from discreet.testing import SeededSource, seeded_session
from discreet.trusted.engines.cells import PlainTexts
from discreet.trusted.extensions.local.gradients import LocalGradients
from discreet.trusted.extensions.local.values import codes_of
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.losses.pricing import Price
from discreet.trusted.noise.source import SecureSource, secure_source
from discreet.trusted.release import Description, Question
from discreet.trusted.session import Session

SCHEMA = {"x": dp.Real(0, 100), "g": dp.Category(["a", "b"])}
COLUMNS = {"x": [1.5, 60.25, 99.0], "g": ["a", "b", "a"]}


def data(neighbors: object = None) -> dp.Dataset:
    return dp.from_arrays(
        COLUMNS,
        schema=SCHEMA,
        neighbors=dp.Replace() if neighbors is None else neighbors,
        name="three",
    )


class Restless(str):
    """Text that is never twice the same key: not in a dict, not in SQLite."""

    __slots__ = ()
    turns = 0

    def __hash__(self):
        Restless.turns += 1
        return Restless.turns

    def __eq__(self, other):
        return False

    def __conform__(self, protocol):
        Restless.turns += 1
        return f"other-{Restless.turns}"


# -- keys ----------------------------------------


@pytest.mark.parametrize("persistent", [False, True])
def test_a_key_of_a_subclass_of_text_is_one_key(persistent, tmp_path):
    """It used to give 300 fresh answers for one debit in memory, and 40 in SQLite."""
    session = data().open(budget=dp.GDP(1.0), ledger=tmp_path / "l" if persistent else None)
    key = Restless("k")
    answers = {dp.mean(session, "x", spend=dp.GDP(0.1), key=key).release.integers for _ in range(8)}
    answers.add(dp.mean(session, "x", spend=dp.GDP(0.1), key="k").release.integers)
    assert len(answers) == 1
    assert session.ledger.spent().exact().mu_squared == Fraction(1, 100)
    assert session.ledger.verify()


@pytest.mark.parametrize("persistent", [False, True])
def test_a_reservation_named_by_a_subclass_of_text_is_closed_once(persistent, tmp_path):
    """It used to hand its budget back each time: "spent 0.05 of 0.01"."""
    ledger = Ledger.open(dp.GDP(0.1), path=tmp_path / "l" if persistent else None)
    for turn in range(5):
        ledger.reserve(Price(mu_squared=Fraction(1, 100)), key="r")
        ledger.close_reservation(Restless("r"))
        for debit in (
            lambda: ledger.debit(
                key=Restless("d"), request={"q": 1}, price=Price(mu_squared=Fraction(1, 100))
            ),
            lambda turn=turn: ledger.debit(
                key=f"other {turn}",
                request={"q": 1},
                price=Price(mu_squared=Fraction(1, 100)),
                reservation=Restless("r"),
            ),
        ):
            try:
                debit()
            except DiscreetError:
                continue
    assert ledger.spent().exact().mu_squared <= Fraction(1, 100)
    assert not ledger.reserved()
    assert all(
        type(entry.key) is str and type(entry.reservation) is str for entry in ledger.entries()
    )
    assert ledger.verify()


# -- questions ----------------------------------------


class Swapped(Question):
    """A question that shows one mechanism to the check and another to the draw."""

    __slots__ = ()
    quiet: object = None
    turns = 0

    def __getattribute__(self, name):
        if name == "mechanism":
            Swapped.turns += 1
            if Swapped.turns > 3:
                return Swapped.quiet
        return object.__getattribute__(self, name)


def test_a_subclass_of_question_is_refused_before_the_debit():
    """It used to release a sum without noise for mu² = 1e-6."""
    session = data().open(budget=dp.GDP(1.0))
    honest = questions.sum_question(session.public, "x", spend=dp.GDP(0.001))
    Swapped.quiet = questions.sum_question(session.public, "x", spend=dp.GDP(1000)).mechanism
    fields = {field.name: getattr(honest, field.name) for field in dataclasses.fields(Question)}
    head = session.ledger.head
    with pytest.raises(InvalidParameter, match="exactly a Question"):
        session.release(Swapped(**fields))
    assert session.ledger.head == head


def test_what_is_smuggled_into_a_frozen_question_does_not_survive():
    session = data().open(budget=dp.GDP(1.0))
    honest = questions.sum_question(session.public, "x", spend=dp.GDP(0.1))
    quiet = questions.sum_question(session.public, "x", spend=dp.GDP(1000)).mechanism
    for name, value in (("spread", quiet.spread), ("spread", Fraction(1, 2)), ("refinement", 60)):
        question = dataclasses.replace(honest, mechanism=plain.rebuilt(honest.mechanism))
        object.__setattr__(question.mechanism, name, value)
        with pytest.raises(InvalidParameter):
            session.release(question)
    question = dataclasses.replace(honest)
    object.__setattr__(question, "description", dataclasses.replace(honest.description))
    object.__setattr__(question.description, "where", Restless("everywhere"))
    object.__setattr__(question.description, "labels", [[Restless("a")]])
    release = session.release(question)
    assert type(release.description) is Description
    assert type(release.description.where) is str
    assert release.description.labels == (("a",),)
    assert release.mechanism == honest.mechanism
    assert pickle.loads(pickle.dumps(release)) == release


def test_a_guarantee_that_changes_is_read_once():
    class Cheap(dp.GDP):
        pass

    class Growing(float):
        turns = 0

        def __float__(self):
            Growing.turns += 1
            return 1000.0 if Growing.turns > 1 else 0.1

        __repr__ = __str__ = lambda self: "0.1"

    session = data().open(budget=dp.GDP(1.0))
    with pytest.raises(InvalidParameter):
        dp.mean(session, "x", spend=Cheap(0.1))
    spend = dp.GDP(Growing(0.2))
    assert type(spend.mu) is float
    assert spend.mu == 0.2
    smuggled = dp.GDP(0.1)
    object.__setattr__(smuggled, "mu", Growing(0.1))
    release = dp.mean(session, "x", spend=smuggled).release
    assert release.spend == dp.GDP(0.1)
    assert type(release.spend.mu) is float


# -- what cannot be assigned ----------------------------------------


def test_what_a_promise_depends_on_cannot_be_assigned():
    declared = data()
    session = declared.open(budget=dp.GDP(1.0))
    other = Ledger.open(dp.GDP(1000))
    for thing, name, value in (
        (session, "ledger", other),
        (session, "public", None),
        (session, "extra", 1),
        (declared, "schema", Schema(SCHEMA)),
        (declared, "neighbors", dp.AddRemove()),
        (declared.schema, "_columns", {}),
        (LocalGradients(1.0, 2), "mechanism", None),
    ):
        with pytest.raises(AttributeError):
            setattr(thing, name, value)
    with pytest.raises(TypeError):
        declared.schema._columns["x"] = dp.Real(0, 1)


def test_facts_that_were_handed_out_are_not_what_is_checked():
    session = data(dp.AddRemove()).open(budget=dp.GDP(1.0))
    object.__setattr__(session.public, "neighbors", dp.Replace())
    object.__setattr__(session.public.schema["x"], "high", 1e-3)
    assert session._neighbors == dp.AddRemove()
    assert session._schema["x"].high == 100
    assert session._engine.schema["x"].high == 100
    with pytest.raises(InvalidParameter):  # calibrated to the relation that was smuggled in
        dp.histogram(session, "g", spend=dp.GDP(0.1))


def test_a_schema_is_rebuilt_and_a_subclass_of_a_column_is_refused():
    class Wide(dp.Real):
        pass

    with pytest.raises(InvalidParameter):
        Schema({"x": Wide(0, 1)})
    with pytest.raises(InvalidParameter):
        Schema(type("Other", (Schema,), {})(SCHEMA))
    column = dp.Category([Restless("a"), np.str_("b")])
    assert [type(level) for level in column.levels] == [str, str]
    schema = Schema({Restless("x"): column})
    object.__setattr__(column, "levels", ("z",))
    assert type(next(iter(schema))) is str
    assert schema["x"].levels == ("a", "b")
    assert pickle.loads(pickle.dumps(schema)) == schema


# -- ledgers, sources, paths ----------------------------------------


def test_a_ledger_holds_debits_for_one_kind_of_noise():
    ledger = Ledger.open(dp.GDP(1.0))
    dp.mean(data().open(ledger=ledger), "x", spend=dp.GDP(0.1))
    with pytest.raises(InsecureNoise, match="secure noise"):
        dp.mean(seeded_session(data(), ledger, 1), "x", spend=dp.GDP(0.1))
    seeded = Ledger.open(dp.GDP(1.0))
    dp.mean(seeded_session(data(), seeded, 1), "x", spend=dp.GDP(0.1))
    with pytest.raises(InsecureNoise, match="seeded noise"):
        dp.mean(data().open(ledger=seeded), "x", spend=dp.GDP(0.1))
    with pytest.raises(InvalidParameter, match="'secure'"):
        ledger.debit(key="k", request={"secure": False}, price=Price(mu_squared=Fraction(1, 100)))


def test_a_source_is_secure_by_its_type_and_not_by_its_word():
    class Derived(SecureSource):
        __slots__ = ()

    class Claims(SeededSource):
        secure = True

    engine = data()._engine
    for source in (Derived(), Claims(1)):
        session = Session(engine, Schema(SCHEMA), dp.Replace(), Ledger.open(dp.GDP(1.0)), source)
        assert not dp.mean(session, "x", spend=dp.GDP(0.1)).release.secure
    assert dp.mean(
        Session(engine, Schema(SCHEMA), dp.Replace(), Ledger.open(dp.GDP(1.0)), secure_source()),
        "x",
        spend=dp.GDP(0.1),
    ).release.secure


def test_ledgers_and_paths_of_other_classes(tmp_path):
    class Free(Ledger):
        pass

    class Moving(PosixPath):
        turns = 0

        def __fspath__(self):
            Moving.turns += 1
            return f"{tmp_path}/ledger-{Moving.turns}"

        __str__ = __fspath__

    with pytest.raises(DiscreetError):
        data().open(ledger=Free.open(dp.GDP(1.0)))
    session = data().open(budget=dp.GDP(1.0), ledger=Moving("x"))
    dp.mean(session, "x", spend=dp.GDP(0.1))
    assert [one.name for one in Path(tmp_path).glob("ledger-?")] == ["ledger-1"]


def test_a_request_that_shows_different_items_is_bound_once():
    class Shifting(dict):
        turns = 0

        def items(self):
            Shifting.turns += 1
            return [("q", Shifting.turns)]

        def __getitem__(self, name):
            return "else"

        get = keys = __iter__ = lambda self, *rest: iter(())

    ledger, price = Ledger.open(dp.GDP(1.0)), Price(mu_squared=Fraction(1, 100))
    ledger.debit(key="k", request=Shifting(q="mean"), price=price)
    assert ledger.entries()[-1].request == {"q": "mean"}
    assert not ledger.debit(key="k", request={"q": "mean"}, price=price).fresh
    cheap = Price(mu_squared=Fraction(1, 100))
    object.__setattr__(cheap, "mu_squared", Restless("0"))
    with pytest.raises(InvalidParameter):
        ledger.debit(key="other", request={"q": 1}, price=cheap)
    with pytest.raises(InvalidParameter):
        ledger.debit(
            key="other",
            request={"q": 1},
            price=type("Gift", (Price,), {})(mu_squared=Fraction(1, 100)),
        )


# -- devices, watches, grids, lengths ----------------------------------------


def test_a_forked_local_account_answers_nothing():
    device, (read, write) = LocalGradients(1.0, 3), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            device.report([1.0], 1.0, GradientRequest(1, (0.0,)))
            os.write(write, b"answered")
        except LedgerRefused:
            os.write(write, b"refused")
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"refused"
    assert device.report([1.0], 1.0, GradientRequest(1, (0.0,)))["round"] == 1


def test_a_gradient_request_of_another_class_is_refused_and_each_round_is_answered_once():
    class Again(GradientRequest):
        pass

    class One(int):
        __hash__ = Restless.__hash__

        def __eq__(self, other):
            return False

    device = LocalGradients(1.0, 3)
    with pytest.raises(InvalidParameter):
        device.report([1.0], 1.0, Again(1, (0.0,)))
    device.report([1.0], 1.0, GradientRequest(One(1), (0.0,)))
    with pytest.raises(LedgerRefused):
        device.report([1.0], 1.0, GradientRequest(One(1), (0.0,)))


def test_a_watch_is_not_run_a_second_time_under_its_key():
    session = data(dp.AddRemove()).open(budget=dp.GDP(10.0))
    question = watch_question(session.public, 2, spend=dp.GDP(1.0))
    noisy = session.open_threshold(question)
    (key,) = [entry.key for entry in session.ledger.entries() if entry.kind == "debit"]
    for asked in (question, noisy.question):
        with pytest.raises(LedgerRefused):
            session.release(asked, key=key)
        with pytest.raises(LedgerRefused):
            session.release(asked)
    # nor under a description that a release may have
    described = dataclasses.replace(question, description=Description("above_threshold"))
    with pytest.raises(InvalidParameter):
        session.open_threshold(described)
    with pytest.raises(LedgerRefused):
        session.release(described, key=key)
    assert sum(entry.kind == "debit" for entry in session.ledger.entries()) == 1
    assert not any(entry.kind == "answer" for entry in session.ledger.entries())


def test_a_watch_hands_out_a_copy_of_what_was_paid_for():
    session = data(dp.AddRemove()).open(budget=dp.GDP(10.0))
    noisy = session.open_threshold(watch_question(session.public, 2, spend=dp.GDP(1.0)))
    before = noisy._question.mechanism
    shown = noisy.question
    assert shown == noisy._question
    for name in ("mechanism", "query", "spend", "description"):
        assert getattr(shown, name) is not getattr(noisy._question, name)
    object.__setattr__(shown.mechanism, "threshold", -(10**9))
    assert noisy.question.mechanism == before
    noisy.above(CandidateScores((CandidateGroup(()),)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": -4.5},
        {"high": 5.0},
        {"high": True},
        {"center": "0"},
        {"per_unit": None},
        {"low": "-5"},
    ],
    ids=str,
)
def test_the_bounds_of_a_grid_are_whole_numbers(wrong):
    with pytest.raises(InvalidParameter):
        Encoding(**{"center": 0.0, "per_unit": 1.0, "low": -5, "high": 5} | wrong)
    assert type(Encoding(0, np.float64(1.0), np.int64(-5), 5).center) is float


@pytest.mark.parametrize(
    "neighbors", [dp.Replace(), dp.AddRemove(), dp.AddRemove(unit="g", max_rows=2)], ids=str
)
def test_columns_of_different_lengths_are_named_without_their_lengths(neighbors):
    with pytest.raises(dp.DataShapeRefused, match="different lengths") as caught:
        dp.from_arrays({"x": [0.5] * 7315, "g": ["a"] * 4417}, schema=SCHEMA, neighbors=neighbors)
    assert "x" in str(caught.value)
    assert not any(length in str(caught.value) for length in ("7315", "4417"))


def test_friendly_subclasses_go_on_working():
    class Region(enum.StrEnum):
        A = "a"

    session, again = (seeded_session(data(), dp.GDP(10.0), 1) for _ in range(2))
    for one, two in (
        (
            dp.histogram(session, np.str_("x"), bins=np.int64(4), spend=dp.GDP(np.float64(0.5))),
            dp.histogram(again, "x", bins=4, spend=dp.GDP(0.5)),
        ),
        (
            dp.count(session, where={"g": Region.A}, spend=dp.GDP(0.5)),
            dp.count(again, where={"g": "a"}, spend=dp.GDP(0.5)),
        ),
        (
            dp.histogram(session, "x", bins=np.array([0.0, 10, 100]), spend=dp.GDP(0.5)),
            dp.histogram(again, "x", bins=[0.0, 10.0, 100.0], spend=dp.GDP(0.5)),
        ),
    ):
        assert one.release.integers == two.release.integers
        assert one.release.description == two.release.description


def test_mechanisms_hold_plain_numbers():
    honest = questions.sum_question(
        data().open(budget=dp.GDP(1.0)).public, "x", spend=dp.GDP(0.1)
    ).mechanism
    assert isinstance(honest, GaussianNoise)

    class Half(Fraction):
        pass

    noise = GaussianNoise(honest.sensitivity, Half(honest.spread), np.int64(honest.refinement))
    assert (type(noise.spread), type(noise.refinement)) == (Fraction, int)
    assert noise == honest


def test_a_ledger_is_kept_by_stores_of_this_package_alone():
    """A store that forgets granted 300 answers for one."""

    class Forgetful:
        name, persistent = "a store", True

        def read(self):
            raise AssertionError

        write = read

    with pytest.raises(InvalidParameter, match="no store of this package"):
        Ledger(Forgetful())


def test_an_array_of_a_class_of_its_own_is_read_as_numpy_holds_it():
    class Wild(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            return np.full(3, 10**9)

        def __array_function__(self, function, types, args, kwargs):
            return np.full(3, 10**9)

        def astype(self, *args, **options):
            return np.full(3, 1e9)

    column = client.Real(0, 1)
    given = np.array([0.0, 0.5, 1.0]).view(Wild)
    assert codes_of(column, given).tolist() == codes_of(column, np.array([0.0, 0.5, 1.0])).tolist()
    spec = client.LaplaceResponse(column, 50)
    assert np.abs(client.reports(spec, given)).max() < 10**6


@pytest.mark.slow
def test_what_never_ends_or_is_far_too_large_is_refused(monkeypatch):
    """Read up to the limit, whatever it is: a lower one shows the same, sooner."""
    assert plain.values.MOST_MEMBERS < 10**7
    monkeypatch.setattr(plain.values, "MOST_MEMBERS", 1 << 14)
    doubled = [0.5]
    for _ in range(28):
        doubled = [doubled, doubled]

    class Endless(Mapping):
        def __getitem__(self, name):
            return 1

        def __len__(self):
            return 1

        def __iter__(self):
            return itertools.count()

        def items(self):
            return ((str(number), itertools.count()) for number in itertools.count())

    class Hashed(Decimal):
        def __hash__(self):
            return 1

    for given in (
        doubled,
        Endless(),
        np.broadcast_to(0.5, (10**13,)),
        np.array(0.5),
        {Hashed("sNaN"): 1},
    ):
        with pytest.raises(InvalidParameter):
            plain.value(given)


def test_a_stored_answer_that_is_none_is_refused():
    session = dp.from_arrays(
        {"x": [1.0]}, schema={"x": dp.Real(0, 2)}, neighbors=dp.AddRemove()
    ).open(budget=dp.GDP(9))
    question = questions.mean_question(session.public, "x", spend=dp.GDP(0.1))
    checked = session._checked(question)
    for number, text in enumerate(
        (
            "nonsense",
            "7",
            "[]",
            '{"integers": 3}',
            '{"integers": ["x"], "found": [], "secure": true}',
        )
    ):
        session._debit(checked, f"k{number}")
        session.ledger.store(f"k{number}", lambda text=text: text)
        with pytest.raises(LedgerRefused):
            session.release(question, key=f"k{number}")


@pytest.mark.parametrize("path", ["x\ud800", "x" * 5000, "\0"])
def test_a_path_that_no_file_system_has_is_refused(path, tmp_path):
    declared = {"schema": {"x": dp.Real(0, 2)}, "neighbors": dp.AddRemove()}
    data = dp.from_arrays({"x": [1.0]}, **declared, name="one")
    for budget in (dp.GDP(1), None):
        with pytest.raises(dp.DiscreetError):
            data.open(ledger=str(tmp_path) + "/" + path, budget=budget)


def test_no_part_of_a_question_can_change_between_the_check_and_the_ledger():
    """A class of the package's own that is no specification held a list of the caller's: checked,
    written and released were three labels.
    """
    turns = itertools.count()

    class Shifting(list):
        def __iter__(self):
            return iter([f"label-{next(turns)}"])

    session = dp.from_arrays(
        {"x": [1.0]}, schema={"x": dp.Real(0, 2)}, neighbors=dp.AddRemove()
    ).open(budget=dp.GDP(9))
    question = questions.mean_question(session.public, "x", spend=dp.GDP(0.1))
    held = PlainTexts(Shifting())
    for asked in (
        lambda: Description("mean", "x", ("g",), (held,)),
        lambda: Description("mean", "x", (held,)),
    ):
        with pytest.raises(InvalidParameter):
            session.release(dataclasses.replace(question, description=asked()), key="k")


def test_a_request_may_hold_numbers_of_numpy():
    ledger = Ledger.open(dp.PureDP(1))
    for key, request in (("a", {"x": np.float64(1.5)}), ("b", {"x": 1.5})):
        ledger.debit(key=key, request=request, price=Price(Fraction(1, 10)))
    assert [entry.body for entry in ledger.entries()][1:] == ['{"x":1.5}'] * 2
