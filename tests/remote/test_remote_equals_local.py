"""A remote session answers every procedure as one at hand does: the same integers and the same
JSON, and refuses what sees rows.
"""

from __future__ import annotations

from typing import Any

import pytest
from remote_asks import ASKS, REFUSED, RELATIONS, SCHEMA, SOME, survey, told

import discreet as dp
from discreet.asking.records import RECORDS
from discreet.remote.dummy import HereSeat
from discreet.remote.session import RemoteSession
from discreet.testing import seeded_session

pytestmark = pytest.mark.filterwarnings("ignore:solver=:UserWarning")
COLUMNS = survey()
BOX = {"pure": 100, "delta0": 0.1}
CASES = {
    **{
        f"{name}, {relation}, {spend}": (ask, relation, spend)
        for name, ask in ASKS.items()
        for relation, spend in (
            (RELATIONS[0], dp.GDP(0.9)),
            (RELATIONS[1], dp.PureDP(1.25)),
            (RELATIONS[2], dp.ApproxDP(1.5, 1e-4)),
            (RELATIONS[3], dp.GDP(0.9)),
        )
        # what the relation or the spend does not allow is refused alike (see below)
    },
    **SOME,
}
QUICK = ("mean, ", "open table", "quantiles, ", "describe, ", "robust, replace")


def session_of(relation: Any, seed: str = "remote") -> dp.Session:
    data = dp.from_arrays(COLUMNS, schema=SCHEMA, neighbors=relation)
    return seeded_session(data, dp.Ledger.open(dp.ApproxDP(900, 0.5), **BOX), seed)


def outcome(session: Any, ask: Any, spend: Any) -> Any:
    """What a procedure gives: its JSON, or its refusal."""
    try:
        return told(ask(session, spend, key="asked once"))
    except dp.DiscreetError as error:
        return type(error).__name__, str(error)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "name",
    [
        name if name.startswith(QUICK) else pytest.param(name, marks=pytest.mark.slow)
        for name in CASES
    ],
)
def test_a_procedure_gives_the_same_integers_and_the_same_json(name: str) -> None:
    ask, relation, spend = CASES[name]
    here = session_of(relation)
    behind = session_of(relation)
    there = RemoteSession(HereSeat(behind))
    assert outcome(there, ask, spend) == outcome(here, ask, spend)
    assert behind.ledger.spent() == here.ledger.spent()
    assert not behind.ledger.open_reservations()


def test_most_cases_are_answers_and_not_refusals() -> None:
    """The comparison above would hold of refusals too."""
    answered = [name for name in ASKS if name in ("mean", "count", "table", "select")]
    for name in answered:
        for relation in RELATIONS:
            there = RemoteSession(HereSeat(session_of(relation)))
            assert isinstance(outcome(there, ASKS[name], dp.GDP(0.9)), dict), (name, relation)
    ask, relation, spend = SOME["open table"]
    assert isinstance(outcome(RemoteSession(HereSeat(session_of(relation))), ask, spend), dict)


def test_every_estimator_is_asked_or_refused_here() -> None:
    words = {"own psi": "m_estimate", "independence": "independence_test"}
    words["goodness of fit"] = "goodness_of_fit"
    asked = {words.get(name, name.replace(" ", "_")) for name in (*ASKS, *SOME, *REFUSED)}
    assert [record.name for record in RECORDS if record.name not in asked] == []


@pytest.mark.few(2)
@pytest.mark.parametrize("name", list(REFUSED))
def test_what_sees_rows_is_refused_and_says_what_works(name: str) -> None:
    ask, instead = REFUSED[name]
    behind = session_of(dp.Replace())
    with pytest.raises(dp.InvalidParameter, match="it cannot be asked from afar") as refused:
        ask(RemoteSession(HereSeat(behind)), dp.GDP(0.9))
    assert instead in refused.value.remedy
    assert not [entry for entry in behind.ledger.entries() if entry.kind == "debit"]
    assert not behind.ledger.open_reservations(), "nothing stays set aside"


def test_previews_plans_and_what_is_left_are_the_same() -> None:
    here, behind = session_of(dp.Replace()), session_of(dp.Replace())
    there = RemoteSession(HereSeat(behind))
    for session in (here, there):
        dp.mean(session, "income", spend=dp.GDP(0.3), key="first")
        dp.describe(session, ["income"], spend=dp.GDP(0.3), key="second")
    assert str(there.remaining()) == str(here.remaining())
    assert there.ledger.holds("first")
    assert not there.ledger.holds("third")
    assert there.ledger.box == here.ledger.box
    for estimator, given, options in (
        (dp.mean, ("income",), {}),
        (dp.table, ("income",), {"by": "region"}),
        (dp.robust, ("income ~ after + arm",), {}),
        (dp.describe, (["income", "age"],), {}),
        (dp.select, ({"young": {"age": (18, 30)}, "old": {"age": (60, 90)}},), {}),
    ):
        made = [
            str(dp.preview(session, estimator, *given, spend=dp.GDP(0.2), **options))
            for session in (here, there)
        ]
        assert made[0] == made[1]


def test_a_key_is_asked_once_and_another_question_is_refused() -> None:
    behind = session_of(dp.Replace())
    there = RemoteSession(HereSeat(behind))
    first = dp.mean(there, "income", spend=dp.GDP(0.3), key="once")
    spent = behind.ledger.spent()
    assert dp.mean(there, "income", spend=dp.GDP(0.3), key="once").release == first.release
    assert behind.ledger.spent() == spent
    with pytest.raises(dp.LedgerRefused):
        dp.mean(there, "age", spend=dp.GDP(0.3), key="once")
