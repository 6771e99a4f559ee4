"""kill -9 at every step of a release: no debit is lost, none is made twice,
and no second answer appears.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.accounting.guarantees import PureDP
from discreet.errors import LedgerRefused
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.losses.pricing import Price

Run = Callable[..., Any]
TENTH = Price(epsilon=Fraction(1, 10))
SCRIPT = Path(__file__).with_name("processes.py")

# step → entries that must have survived, and who draws the answer that the retry returns
STEPS = {
    "before debit": (["open"], "second draw"),
    "debit: before insert": (["open"], "second draw"),
    "debit: inserted, not committed": (["open"], "second draw"),
    "after debit": (["open", "debit"], "second draw"),
    "while drawing": (["open", "debit"], "second draw"),
    "answer: before insert": (["open", "debit"], "second draw"),
    "answer: inserted, not committed": (["open", "debit"], "second draw"),
    "answer: committed": (["open", "debit", "answer"], "first draw"),
}


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_killed_release_is_finished_by_a_retry_with_its_key(
    step: str, ledger_file: Path, run_process: Run
) -> None:
    survived, drawn = STEPS[step]
    assert run_process("killed_release", ledger_file, step) == {
        "signal": signal.SIGKILL,
        "printed": "",
    }
    ledger = Ledger.open(None, path=ledger_file)
    assert [entry.kind for entry in ledger.entries()] == survived
    debit = ledger.debit(key="asked", request={"query": "count"}, price=TENTH)
    assert debit.fresh == ("debit" not in survived)
    assert ledger.store("asked", lambda: "second draw") == drawn
    assert [entry.kind for entry in ledger.entries()] == ["open", "debit", "answer"]
    assert ledger.spent().exact() == TENTH
    assert ledger.verify().ok
    assert ledger.debit(key="asked", request={"query": "count"}, price=TENTH).answer == drawn


@pytest.mark.slow
def test_an_unkilled_release_prints_its_answer(ledger_file: Path, run_process: Run) -> None:
    assert run_process("killed_release", ledger_file, "never") == "first draw"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "made"),
    [("first entry not committed", False), ("before link", False), ("after link", True)],
)
def test_a_killed_creation_leaves_a_whole_ledger_or_none(
    step: str, made: bool, tmp_path: Path, run_process: Run
) -> None:
    path = tmp_path / "new.ledger"
    assert run_process("killed_creation", path, step)["signal"] == signal.SIGKILL
    assert path.exists() == made
    assert Ledger.open(PureDP(1), path=path).verify().ok


@pytest.mark.slow
@pytest.mark.parametrize(("heard", "wait"), [(2, 0.11), (7, 0.0), (30, 0.003)])
def test_what_was_acknowledged_before_a_kill_is_in_the_ledger(
    heard: int, wait: float, ledger_file: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, str(SCRIPT), "endless", str(ledger_file)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(heard)]  # it is running now
        time.sleep(wait)
        process.kill()
        lines += process.stdout.readlines()
    ledger = Ledger.open(None, path=ledger_file)
    debits = {entry.key for entry in ledger.entries() if entry.kind == "debit"}
    answers = {entry.key: entry.answer for entry in ledger.entries() if entry.kind == "answer"}
    acknowledged = [json.loads(line) for line in lines if line.endswith("\n")]
    assert len(acknowledged) >= heard
    for said, key in acknowledged:
        assert key in debits
        assert said in ("debited", answers.get(key))
    assert len(debits) - len(answers) <= 1
    assert ledger.verify().ok


@pytest.mark.slow
def test_a_forked_memory_ledger_is_refused_and_its_owner_goes_on(run_process: Run) -> None:
    tried, spent, fresh = run_process("forked_memory")
    assert all(kind == "LedgerRefused" and "path" in remedy for kind, remedy in tried)
    assert len(tried) == 3
    assert (spent, fresh) == ("nothing", True)


def test_a_child_forked_while_an_answer_is_made_cannot_store_it(
    ledger_file: Path, run_process: Run
) -> None:
    (kind, found), answer, ok = run_process("forked_inside", ledger_file)
    assert kind == "LedgerRefused"
    assert "forked" in found
    assert (answer, ok) == ("from the owner", True)


def test_a_file_that_vanishes_is_refused_not_made_again(ledger_file: Path) -> None:
    ledger = Ledger.open(None, path=ledger_file)
    ledger_file.unlink()
    with pytest.raises(LedgerRefused):
        ledger.debit(key="asked", request={}, price=TENTH)
    assert not ledger_file.exists()
