"""Case 40a: hostile subclasses of text, numbers, mappings, specifications, in every parameter."""

from __future__ import annotations

import dataclasses
import inspect
from types import MappingProxyType

import hostile_newer
import hostile_trials
import pytest
from hostile_objects import hostile as made_hostile
from hostile_trials import Counts, Trial

import discreet as dp
import hostile
from discreet import plain
from discreet.plain.kinds import KEPT
from discreet.specs.mechanisms.local import LOCAL
from discreet.specs.registry import PROVEN_MECHANISMS, PROVEN_QUERIES
from discreet.trusted.release import Question
from discreet.trusted.session import Session

STRIDE = 9
DATA_FUNCTIONS = {
    "declare",
    "from_arrays",
    "from_frame",
    "load_census",
    "load_visits",
    "read_csv",
    "read_parquet",
    "read_plan",
    "from_json",
    "write_declaration",
}  # data and texts are read by rules of their own


def judged(trials: list[Trial]) -> Counts:
    counts = Counts()
    for trial in trials:
        hostile_trials.judge(trial, counts)
    return counts


@pytest.mark.slow
def test_no_hostile_object_changes_an_answer_its_price_or_what_is_kept() -> None:
    counts = judged(list(hostile_trials.some(hostile.quick_calls(), STRIDE)))
    assert counts.sound, "\n".join(counts.notes[:20])
    assert counts.objects > 900
    assert (
        counts.refused < counts.objects / 2
    )  # most are right values in odd clothes, and go on working


@pytest.mark.slow
def test_no_hostile_object_changes_what_newer_functions_answer() -> None:
    calls = hostile_newer.newer_quick_calls()
    specifications = [hostile_newer.made(one) for one in hostile_newer.newer_specifications()]
    counts = judged(list(hostile_trials.some([*calls, *specifications], STRIDE)))
    assert counts.sound, "\n".join(counts.notes[:20])
    assert counts.objects > 100


def test_every_public_name_is_walked_or_has_a_reason() -> None:
    calls = [
        *hostile.quick_calls(),
        *hostile.slow_calls(),
        *hostile_newer.newer_quick_calls(),
        *hostile_newer.newer_slow_calls(),
    ]
    walked = {call.name for call in calls}
    walked |= {type(one).__name__ for one in hostile_newer.newer_specifications()}
    public = {
        name
        for name in dp.__all__
        if not (inspect.isclass(getattr(dp, name)) and issubclass(getattr(dp, name), BaseException))
    }
    assert public - walked == set(hostile_newer.NOT_WALKED) & public
    assert set(hostile_newer.NOT_WALKED) <= public


def test_every_public_function_is_a_door() -> None:
    functions = {
        name: getattr(dp, name) for name in dp.__all__ if inspect.isfunction(getattr(dp, name))
    }
    assert not [
        name
        for name, function in functions.items()
        if not hasattr(function, "__wrapped__") and name not in DATA_FUNCTIONS
    ]


def test_every_specification_is_kept() -> None:
    kinds = [
        *PROVEN_MECHANISMS,
        *PROVEN_QUERIES,
        *LOCAL,
        *(type(one) for one in hostile.specifications()),
    ]
    assert [kind.__name__ for kind in kinds if id(kind) not in KEPT] == []


def test_a_specification_rebuilt_is_the_same() -> None:
    for one in hostile.specifications():
        again = plain.rebuilt(one)
        assert again == one
        assert type(again) is type(one)
        assert hostile_trials.settled(again) == hostile_trials.settled(one)


@pytest.mark.parametrize("value", ["a", 5, 2.5, [1, "a"], ("a", 2.0), {"a": [1]}], ids=repr)
def test_values_are_rebuilt_from_what_the_built_in_type_stores(value: object) -> None:
    for name, make in made_hostile(value):
        try:
            read = plain.value(make())
        except dp.InvalidParameter:
            continue
        assert hostile_trials.settled(read) == hostile_trials.settled(value), name


def test_what_holds_itself_or_has_no_end_is_refused() -> None:
    import itertools

    endless: list[object] = []
    endless.append(endless)
    for value in (endless, {"a": endless}, itertools.count()):
        with pytest.raises(dp.InvalidParameter):
            plain.value(value)


# -- the checker catches what it is for ----------------------------------------


def trials_of(names: set[str], parameters: set[str]) -> list[Trial]:
    calls = [call for call in hostile.quick_calls() if call.name in names]
    for call in calls:
        hostile_trials._right(call)
    return [trial for trial in hostile_trials.trials(calls) if trial.parameter in parameters]


@pytest.mark.slow
def test_a_door_that_passes_values_on_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = trials_of({"mean", "Levels", "Ledger.debit"}, {"column", "where", "request"})
    assert judged(trials).sound
    for module in (plain.values,):
        monkeypatch.setattr(
            module,
            "plain_value",
            lambda given, place: dict(given) if type(given) is MappingProxyType else given,
        )
    counts = judged(trials)
    assert counts.leaks
    assert not counts.sound


def test_a_session_that_keeps_the_class_of_a_question_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked = Session._checked

    def keeps_the_class(self: Session, question: Question) -> Question:
        exact = Question(
            *(
                object.__getattribute__(question, field.name)
                for field in dataclasses.fields(Question)
            )
        )
        checked(self, exact)
        return dataclasses.replace(question)

    trials = [
        trial
        for trial in trials_of({"Session.release"}, {"question"})
        if trial.behaviour.startswith("a subclass")
    ]
    assert judged(trials).sound
    monkeypatch.setattr(Session, "_checked", keeps_the_class)
    counts = judged(trials)
    assert counts.leaks + counts.raw_errors + counts.double_answers > 0


def test_a_key_check_that_keeps_the_key_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = trials_of({"Session.release", "Ledger.debit"}, {"key"})
    assert judged(trials).sound
    monkeypatch.setattr("discreet.trusted.session.asked_key", lambda key: key)
    monkeypatch.setattr("discreet.trusted.ledger.core.checked_key", lambda key, name="key": key)
    counts = judged(trials)
    assert not counts.sound
    assert counts.overspent + counts.double_answers > 0
