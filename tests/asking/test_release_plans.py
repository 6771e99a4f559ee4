"""A plan is checked whole before anything is spent, runs under its names, and replays."""

from __future__ import annotations

from pathlib import Path

import pytest

import discreet as dp
from discreet.testing import seeded_session

DATA = {
    "income": [1000.0 * (k % 100) for k in range(1200)],
    "age": [18 + k % 70 for k in range(1200)],
    "region": ["ENSW"[k % 4] for k in range(1200)],
}
SCHEMA = {
    "income": dp.Real(0, 200_000),
    "age": dp.Integer(18, 90),
    "region": dp.Category(list("ENSW")),
}
PLAN = """
budget = { epsilon = 1, delta = 1e-6 }
assume = { standard_deviation = 30_000 }

[questions.mean-income]
estimator = "mean"
column = "income"
where = { age = [20, 50] }
share = 1

[questions.by-region]
estimator = "table"
column = "income"
by = ["region"]
share = 2

[questions.wages]
estimator = "ols"
formula = "income ~ age"
share = 3

[questions.quarter]
estimator = "quantile"
column = "income"
q = 0.25
share = 1

[questions.largest]
estimator = "mode"
column = "region"
share = 1
"""
ONE = '[questions.one]\nestimator = "mean"\ncolumn = "income"\nspend = { mu = 0.1 }\n'


def opened(budget=dp.ApproxDP(1, 1e-6), neighbors=dp.Replace()) -> dp.Session:  # noqa: B008
    data = dp.from_arrays(DATA, schema=SCHEMA, neighbors=neighbors)
    return seeded_session(data, budget, "plans")


def plan(folder: Path, text: str) -> dp.ReleasePlan:
    path = folder / "plan.toml"
    path.write_text(text)
    return dp.read_plan(path)


def test_a_plan_fills_its_budget_and_replays(tmp_path) -> None:
    planned, session = plan(tmp_path, PLAN), opened()
    shown = dp.preview(session, planned)
    assert session.ledger.spent() == dp.Ledger.open(dp.GDP(1)).spent()
    assert len(shown.forecasts) == 5
    assert "mean(income, where=age: [20, 50])" in str(shown.summary())
    first = planned.run(session)
    assert list(first) == ["mean-income", "by-region", "wages", "quarter", "largest"]
    assert 0 <= session.ledger.remaining().mu_squared <= 100  # units of 1e-12
    again, head = planned.run(session), session.ledger.head
    assert planned.preview(session).replayed == tuple(first)
    assert session.ledger.head == head
    assert all(again[name].to_json() == first[name].to_json() for name in first)
    assert first["wages"].releases[0].key.startswith("wages/")


def test_a_plan_that_does_not_fit_spends_nothing(tmp_path) -> None:
    planned, session = plan(tmp_path, PLAN), opened(dp.ApproxDP(0.9, 1e-6))
    for asked in (planned.preview, planned.run):
        with pytest.raises(dp.BudgetExceeded, match="whole plan"):
            asked(session)
    assert not session.ledger.spent()


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ('column = "incom"', dp.UndeclaredColumn),
        ('column = "region"', dp.WrongColumnKind),
        ('column = "income"\nwhere = { agee = [1, 2] }', dp.UndeclaredColumn),
    ],
)
def test_one_bad_question_stops_a_plan_before_the_first(tmp_path, bad, error) -> None:
    text = ONE + ONE.replace("one", "two").replace('column = "income"', bad)
    session = opened()
    with pytest.raises(error):
        plan(tmp_path, text).run(session)
    assert not session.ledger.spent()


def test_a_bad_formula_stops_a_plan_before_the_first(tmp_path) -> None:
    text = ONE + (
        '[questions.two]\nestimator = "ols"\nformula = "income ~ agee"\nspend = { mu = 0.1 }\n'
    )
    for neighbors in (dp.Replace(), dp.AddRemove()):
        session = opened(neighbors=neighbors)
        with pytest.raises(dp.UndeclaredColumn):
            plan(tmp_path, text).run(session)
        assert not session.ledger.spent()


def test_a_name_keeps_its_question(tmp_path) -> None:
    session = opened()
    plan(tmp_path, ONE).run(session)
    spent = session.ledger.spent()
    changed = ONE.replace('"income"', '"age"') + ONE.replace("one", "two")
    with pytest.raises(dp.LedgerRefused, match="another question"):
        plan(tmp_path, changed).run(session)
    assert session.ledger.spent() == spent


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no questions"),
        ("questions = 3", "no questions"),
        ("[questions]\none = 3", "no table"),
        ("budget = {", "no TOML"),
        (ONE + "[other]\n", "says 'other'"),
        (ONE.replace('"mean"', '"meen"'), "did you mean 'mean'"),
        (ONE.replace('"mean"', '"watch"'), "estimator = 'watch'"),
        (ONE.replace('"mean"', "3"), "estimator = 3"),
        (ONE.replace("column", "colum"), "did you mean 'column'"),
        (ONE.replace('column = "income"\n', ""), "lacks column"),
        (ONE.replace("spend = { mu = 0.1 }", ""), "has not one of spend and share"),
        (ONE.replace("spend = { mu = 0.1 }", "spend = 0.1"), "is no guarantee"),
        (ONE.replace("mu = 0.1", "mu = 0.1, rho = 1"), "is no guarantee"),
        (ONE.replace("mu = 0.1", "mu = -1"), "mu"),
        (ONE.replace("spend = { mu = 0.1 }", "share = 1"), "no budget"),
        (ONE + "assume = { spread = 3 }", "spread"),
        (ONE + "assume = 3", "assume = 3"),
        (ONE.replace("questions.one", 'questions."a/b"'), "no name"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path, text, told) -> None:
    with pytest.raises(dp.InvalidParameter, match=told):
        plan(tmp_path, text)


def test_a_missing_file_is_refused(tmp_path) -> None:
    with pytest.raises(dp.InvalidParameter, match="no file"):
        dp.read_plan(tmp_path / "none.toml")


def test_a_preview_reads_no_cell(tmp_path) -> None:
    class Unread(list[float]):
        def __iter__(self):
            raise AssertionError("a cell was read")

        __getitem__ = __iter__

    columns = {name: Unread(cells) for name, cells in DATA.items()}
    data = dp.from_arrays(columns, schema=SCHEMA, neighbors=dp.Replace())
    session = seeded_session(data, dp.ApproxDP(1, 1e-6), "plans")
    shown = plan(tmp_path, PLAN).preview(session)
    assert len(shown.forecasts) == 5
    assert not session.ledger.spent()
    with pytest.raises(dp.ReleaseFailed):  # the control: a question does read them
        dp.mean(session, "income", spend=dp.GDP(0.01))
