"""One account, one answer a key: retries, crashes, reservations, budgets and what is public."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.survey import ASKS, RELATIONS, SCHEMA, data_set, open_session, survey

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.estimators.questions import mean_question
from discreet.inference.results.stored import question_from_dict
from discreet.testing import seeded_session
from discreet.trusted.engines.memory import MemoryEngine
from discreet.trusted.release import Question

SPEND = dp.GDP(0.5)


def debits(session: dp.Session) -> int:
    return sum(entry.kind == "debit" for entry in session.ledger.entries())


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────

KEYED = {
    "count": lambda session, **more: dp.count(session, spend=SPEND, where={"member": True}, **more),
    "sum": lambda session, **more: dp.sum(session, "income", spend=SPEND, **more),
    "mean": lambda session, **more: dp.mean(session, "income", spend=SPEND, **more),
    "variance": lambda session, **more: dp.variance(session, "income", spend=SPEND, **more),
    "proportion": lambda session, **more: dp.proportion(session, "member", spend=SPEND, **more),
    "histogram": lambda session, **more: dp.histogram(session, "region", spend=SPEND, **more),
    "table": lambda session, **more: dp.table(session, "income", by="region", spend=SPEND, **more),
}


@pytest.mark.parametrize("name", KEYED)
def test_the_same_key_gives_the_same_answer_at_no_cost(name: str) -> None:
    # two secure draws of one count are equal once in 4000 times
    session = seeded_session(data_set(), dp.GDP(1000), name)
    first = KEYED[name](session, key="k")
    spent = session.ledger.spent()
    assert KEYED[name](session, key="k") == first
    assert session.ledger.spent() == spent
    assert debits(session) == 1
    other = KEYED[name](session)
    assert other.release.integers != first.release.integers
    assert debits(session) == 2


def test_another_question_under_a_key_is_refused_and_costs_nothing() -> None:
    session = open_session()
    dp.mean(session, "income", spend=SPEND, key="k")
    spent = session.ledger.spent()
    others = [
        lambda: dp.mean(session, "age", spend=SPEND, key="k"),
        lambda: dp.sum(session, "income", spend=SPEND, key="k"),
        lambda: dp.mean(session, "income", spend=dp.GDP(0.4), key="k"),
        lambda: dp.mean(session, "income", spend=dp.GDP(0.6), key="k"),
        lambda: dp.mean(session, "income", spend=SPEND, where={"member": True}, key="k"),
    ]
    for ask in others:
        with pytest.raises(dp.LedgerRefused):
            ask()
    assert session.ledger.spent() == spent


def test_a_key_belongs_to_one_data_set() -> None:
    ledger = dp.Ledger.open(dp.GDP(5))
    first, second = (
        dp.from_arrays(survey(seed), schema=SCHEMA, neighbors=dp.Replace()).open(ledger=ledger)
        for seed in (1, 2)
    )
    dp.mean(first, "income", spend=SPEND, key="k")
    with pytest.raises(dp.LedgerRefused):
        dp.mean(second, "income", spend=SPEND, key="k")


@pytest.mark.parametrize("key", ["", "x" * 201, 3, b"k"])
def test_bad_keys_are_refused_before_the_debit(key: object) -> None:
    session = open_session()
    with pytest.raises(dp.InvalidParameter, match="key"):
        dp.mean(session, "income", spend=SPEND, key=key)  # type: ignore[arg-type]
    assert debits(session) == 0


# ── a crash between debit and answer ──────────────────────────────────────────────────────────────

SECRET = 87.65432101


def test_a_failure_after_the_debit_says_nothing_and_is_finished_for_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = MemoryEngine.sums

    def failing(self: MemoryEngine, plan: object) -> object:
        monkeypatch.setattr(MemoryEngine, "sums", whole)
        raise RuntimeError(f"cannot add {SECRET} in row 17")

    data = data_set(data={**survey(), "income": np.full(1000, SECRET)})
    # the question is rehearsed on made-up rows before the fault is there
    dp.mean(seeded_session(data, dp.GDP(1000), "rehearsal"), "income", spend=SPEND)
    session = seeded_session(data, dp.GDP(1000), "failure")
    monkeypatch.setattr(MemoryEngine, "sums", failing)
    with pytest.raises(dp.ReleaseFailed) as caught:
        dp.mean(session, "income", spend=SPEND, key="k")
    text, spent = str(caught.value), session.ledger.spent()
    assert str(SECRET) not in text
    assert "row 17" not in text
    assert "key='k'" in text
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert debits(session) == 1
    assert spent != dp.Ledger.open(dp.GDP(1)).spent()
    result = dp.mean(session, "income", spend=SPEND, key="k")
    assert session.ledger.spent() == spent
    assert debits(session) == 1
    assert dp.mean(session, "income", spend=SPEND, key="k") == result
    low, high = result.confidence_interval(0.999999)[0]
    assert low <= SECRET <= high


def test_a_crash_is_finished_by_another_process_of_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = parquet(tmp_path)
    session = data.open(budget=dp.GDP(1), ledger=tmp_path / "l")
    monkeypatch.setattr(type(session._engine), "sums", lambda self, plan: 1 / 0)
    with pytest.raises(dp.ReleaseFailed):
        dp.mean(session, "income", spend=SPEND, key="k")
    monkeypatch.undo()
    later = parquet(tmp_path).open(budget=dp.GDP(1), ledger=tmp_path / "l")
    spent = later.ledger.spent()
    assert abs(dp.mean(later, "income", spend=SPEND, key="k").estimate - 50) < 10
    assert later.ledger.spent() == spent
    assert debits(later) == 1


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


def parquet(folder: Path) -> dp.Dataset:
    path = folder / "survey.parquet"
    if not path.exists():
        pyarrow.parquet.write_table(pyarrow.table(survey()), path)
    return dp.read_parquet(path, schema=SCHEMA, neighbors=dp.Replace())


def test_a_ledger_file_outlives_its_session(tmp_path: Path) -> None:
    first = parquet(tmp_path).open(budget=dp.GDP(1), ledger=tmp_path / "l")
    answer = dp.mean(first, "income", spend=SPEND, key="k")
    second = parquet(tmp_path).open(ledger=tmp_path / "l")  # the budget is in the file
    assert second.ledger.budget == dp.GDP(1)
    assert second.ledger.spent() == first.ledger.spent()
    assert dp.mean(second, "income", spend=SPEND, key="k") == answer
    with pytest.raises(dp.LedgerRefused):
        parquet(tmp_path).open(budget=dp.GDP(2), ledger=tmp_path / "l")
    with pytest.raises(dp.LedgerRefused):
        parquet(tmp_path).open(ledger=tmp_path / "l", expected_head="0" * 64)
    assert (
        parquet(tmp_path)
        .open(ledger=tmp_path / "l", expected_head=answer.release.entry_hash)
        .ledger.verify()
    )


def test_a_budget_is_needed_once_and_only_once(tmp_path: Path) -> None:
    data = parquet(tmp_path)
    for ledger in (None, tmp_path / "new"):
        with pytest.raises(dp.InvalidParameter, match="budget"):
            data.open(ledger=ledger)
    assert not (tmp_path / "new").exists()
    with pytest.raises(dp.InvalidParameter, match="a ledger has its budget already"):
        data.open(budget=dp.GDP(1), ledger=dp.Ledger.open(dp.GDP(1)))
    with pytest.raises(dp.DiscreetError):
        data.open(budget=1.0)  # type: ignore[arg-type]


def test_engines_agree_through_the_public_functions(tmp_path: Path) -> None:
    """The same survey in memory and in a file, with the same noise:
    the same releases, to the last step.
    """
    for name, ask in ASKS.items():
        ours, files = (
            ask(seeded_session(data, dp.GDP(1), name), SPEND).release
            for data in (data_set(), parquet(tmp_path))
        )
        assert ours.mechanism == files.mechanism, name
        assert ours.integers == files.integers, name


# ── budgets and reservations ──────────────────────────────────────────────────────────────────────


def test_the_budget_is_the_limit() -> None:
    session = open_session(budget=dp.GDP(1))
    for _ in range(4):  # 4 · 0.5² = 1
        dp.mean(session, "income", spend=SPEND)
    with pytest.raises(dp.BudgetExceeded, match="can be read again under their keys"):
        dp.mean(session, "income", spend=dp.GDP(0.01))
    smaller = open_session(budget=dp.GDP(0.3))
    with pytest.raises(
        dp.BudgetExceeded, match=r"largest spend that fits is dp.GDP\(0\.3\)|0\.29999"
    ):
        dp.mean(smaller, "income", spend=SPEND)
    assert debits(smaller) == 0


def test_a_pure_budget_takes_pure_spends_alone() -> None:
    session = open_session(budget=dp.PureDP(1))
    for spend in (dp.GDP(0.1), dp.ApproxDP(0.1, 1e-9)):
        with pytest.raises(dp.BudgetExceeded, match=r"opened no Gaussian part: spend dp.PureDP"):
            dp.mean(session, "income", spend=spend)
        with pytest.raises(dp.BudgetExceeded):
            session.reserve(spend)
    for _ in range(10):
        dp.count(session, spend=dp.PureDP(0.1), where={"member": True})  # ten tenths are one
    with pytest.raises(dp.BudgetExceeded):
        dp.count(session, spend=dp.PureDP(0.001), where={"member": True})


@pytest.mark.parametrize(
    ("budget", "more"),
    [(dp.GDP(1), {}), (dp.ApproxDP(3, 1e-6), {}), (dp.ApproxDP(3, 1e-6), {"pure": 1})],
)
def test_other_budgets_take_every_spend(
    budget: dp.GDP | dp.ApproxDP, more: dict[str, float]
) -> None:
    session = dp.from_arrays(survey(), schema=SCHEMA, neighbors=dp.Replace()).open(
        budget=budget, **more
    )
    for spend in (dp.GDP(0.1), dp.PureDP(0.1), dp.ApproxDP(0.1, 1e-9)):
        result = dp.mean(session, "income", spend=spend)
        assert spend.covers(result.release.guarantee) or isinstance(spend, dp.ApproxDP)
    box = session.ledger.spent().exact()
    assert (box.epsilon > 0) == bool(more)
    assert box.mu_squared > 0
    assert box.delta == 0


@pytest.mark.parametrize("spend", [0.1, None, "0.1", 1])
def test_a_spend_is_a_guarantee(spend: object) -> None:
    session = open_session()
    for ask in ASKS.values():
        with pytest.raises(dp.InvalidParameter, match="spend"):
            ask(session, spend)
    assert debits(session) == 0


def test_reservations_pay_for_steps_and_give_back_the_rest() -> None:
    session = open_session(budget=dp.GDP(1))
    question = dp.preview(session, dp.mean, "income", spend=dp.GDP(0.06)).question
    with session.reserve(dp.GDP(0.1)) as reservation:
        aside = session.ledger.reserved()
        assert aside.exact().mu_squared >= 0.0099
        assert session.ledger.spent().exact().mu_squared == 0
        first = session.release(question, key="step", reservation=reservation)
        assert session.release(question, key="step", reservation=reservation) == first
        session.release(question, reservation=reservation)
        with pytest.raises(dp.BudgetExceeded):  # 3 · 0.06² > 0.1²
            session.release(question, reservation=reservation)
    assert float(session.ledger.spent().exact().mu_squared) == pytest.approx(2 * 0.06**2, rel=1e-6)
    assert not session.ledger.reserved()
    assert session.ledger.open_reservations() == []
    assert float(session.ledger.remaining().exact().mu_squared) == pytest.approx(
        1 - 2 * 0.06**2, rel=1e-6
    )
    with pytest.raises(dp.BudgetExceeded, match="closed"):
        session.release(question, reservation=reservation)


def test_reserved_budget_is_out_of_reach() -> None:
    session = open_session(budget=dp.GDP(1))
    with session.reserve(dp.GDP(0.9)), pytest.raises(dp.BudgetExceeded, match="set aside"):
        dp.mean(session, "income", spend=SPEND)
    assert dp.mean(session, "income", spend=SPEND).release.secure


# ── what is public ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("neighbors", "count", "rows"),
    [
        (RELATIONS[0], 1234, 1234),
        (RELATIONS[1], None, None),
        (RELATIONS[2], 617, None),
        (RELATIONS[3], None, None),
    ],
    ids=str,
)
def test_which_counts_are_public(neighbors: object, count: int | None, rows: int | None) -> None:
    session = open_session(neighbors, data=survey(rows=1234))
    assert session.public.count == count
    assert session.public.rows == rows
    release = dp.mean(session, "income", spend=SPEND).release
    assert release.public_count == count
    assert release.public_rows == rows
    # alone, not within a hash
    shown = re.search(r"(?<![\w.])1234(?![\w.])", f"{session!r} {session.public!r} {release!r}")
    assert (shown is not None) == (rows is not None)
    if rows is None:
        assert abs(dp.count(session, spend=dp.GDP(5)).estimate - 1234) < 10
    else:
        with pytest.raises(dp.InvalidParameter, match=r"session\.public\.rows"):
            dp.count(session, spend=SPEND)
        assert abs(dp.count(session, spend=dp.GDP(5), where={"age": (18, 90)}).estimate - 1234) < 10


def test_questions_about_undeclared_or_unfit_columns_cost_nothing() -> None:
    session = open_session()
    for ask, error in (
        (lambda: dp.mean(session, "incone", spend=SPEND), dp.UndeclaredColumn),
        (lambda: dp.mean(session, "region", spend=SPEND), dp.WrongColumnKind),
        (lambda: dp.proportion(session, "income", spend=SPEND), dp.WrongColumnKind),
        (lambda: dp.proportion(session, "region", spend=SPEND), dp.InvalidParameter),
        (lambda: dp.proportion(session, "region", level="X", spend=SPEND), dp.InvalidParameter),
        (lambda: dp.table(session, by="income", spend=SPEND), dp.InvalidParameter),
        (lambda: dp.table(session, by=["region", "region"], spend=SPEND), dp.InvalidParameter),
        (lambda: dp.histogram(session, "region", bins=3, spend=SPEND), dp.InvalidParameter),
        (lambda: dp.histogram(session, "income", bins=[3, 2], spend=SPEND), dp.InvalidParameter),
        (lambda: dp.mean(session, "income", where={"age": 3}, spend=SPEND), dp.InvalidParameter),
        (lambda: dp.mean(session, "income", where={}, spend=SPEND), dp.InvalidParameter),
        (
            lambda: dp.mean(session, "income", where={"member": "yes"}, spend=SPEND),
            dp.InvalidParameter,
        ),
    ):
        with pytest.raises(error):
            ask()
    assert debits(session) == 0


def test_what_is_no_session_is_refused() -> None:
    for ask in (
        lambda: dp.mean(None, "income", spend=SPEND),  # type: ignore[arg-type]
        lambda: dp.table(5, by="region", spend=SPEND),  # type: ignore[arg-type]
        lambda: dp.count("data", spend=SPEND),  # type: ignore[arg-type]
    ):
        with pytest.raises(dp.InvalidParameter, match=r"data\.open"):
            ask()


# ── in two processes ──────────────────────────────────────────────────────────────────────────────


def asked_of(session: dp.Session) -> Question:
    return mean_question(session.public, "income", spend=SPEND)


def test_what_was_admitted_is_finished_under_its_key_without_a_second_debit() -> None:
    session = open_session()
    question = asked_of(session)
    debit = session.admit(question, key="one")
    assert debit.fresh
    assert debit.answer is None
    release = session.release(question, key="one")
    assert (release.entry, release.entry_hash) == (debit.number, debit.hash)
    assert debits(session) == 1
    again = session.admit(question, key="one")
    assert not again.fresh
    assert again.answer is not None


def test_admitting_reads_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session()
    question = asked_of(session)
    session.price(question)
    monkeypatch.setattr(dp.Session, "_aggregate", None)
    session.admit(question, key="one")
    with pytest.raises(TypeError):
        session.release(question, key="one")


def test_a_question_is_read_again_word_for_word() -> None:
    record = asked_of(open_session()).to_dict()
    written = json.loads(json.dumps(record))
    assert question_from_dict(written).to_dict() == record
    for changed in (
        {**written, "more": 1},
        {**written, "query": {**written["query"], "more": 1}},
        {**written, "delta": 0.5},
        {**written, "mechanism": {**written["mechanism"], "kind": "none"}},
        {**written, "asked": {**written["asked"], "column": ["income"]} | {"more": 0}},
        {name: held for name, held in written.items() if name != "spend"},
        [written],
    ):
        with pytest.raises(InvalidParameter):
            question_from_dict(changed)
