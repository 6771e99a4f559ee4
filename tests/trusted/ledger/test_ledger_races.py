"""64 processes on one file: never overspent, one debit and one answer a key."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.accounting.guarantees import PureDP
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.losses.pricing import Price

Run = Callable[..., Any]


@pytest.mark.slow
def test_64_processes_race_for_the_last_unit_and_one_wins(
    ledger_file: Path, run_process: Run
) -> None:
    ledger = Ledger.open(None, path=ledger_file)
    ledger.debit(key="before", request={}, price=Price(epsilon=Fraction(9, 10)))
    won = run_process("last_unit", ledger_file, 1)
    assert sorted(won) == [0] * 63 + [1]
    assert ledger.spent().exact() == Price(epsilon=Fraction(1))
    assert ledger.verify().ok


@pytest.mark.slow
def test_64_processes_race_for_more_than_there_is(tmp_path: Path, run_process: Run) -> None:
    ledger = Ledger.open(PureDP(10), path=tmp_path / "test.ledger")
    won = run_process("last_unit", tmp_path / "test.ledger", 3)
    assert len(won) == 64
    assert sum(won) == 100
    assert not ledger.remaining()
    assert ledger.verify().ok


@pytest.mark.slow
def test_64_processes_with_one_key_make_one_debit_and_one_answer(
    ledger_file: Path, run_process: Run
) -> None:
    outcomes = run_process("one_key", ledger_file)
    assert len(outcomes) == 64
    assert sum(fresh for fresh, _ in outcomes) == 1
    assert len({answer for _, answer in outcomes}) == 1
    ledger = Ledger.open(None, path=ledger_file)
    assert [entry.kind for entry in ledger.entries()] == ["open", "debit", "answer"]
    assert ledger.entries()[-1].answer == outcomes[0][1]


@pytest.mark.slow
def test_64_processes_create_one_ledger(tmp_path: Path, run_process: Run) -> None:
    assert len(set(run_process("created", tmp_path / "new.ledger"))) == 1
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".new")] == []


@pytest.mark.slow
def test_the_race_does_overspend_a_store_that_checks_before_it_writes(
    tmp_path: Path, run_process: Run
) -> None:
    """The control: if this store survived, the races above would prove nothing."""
    assert sum(run_process("naive", tmp_path / "naive.db")) > 1
