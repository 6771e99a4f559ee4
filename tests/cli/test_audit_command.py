"""`discreet audit`: what it prints, what it refuses, and how it ends where a claim is refuted."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import discreet as dp
from discreet.cli import audit as command
from discreet.cli.commands import app

RUNNER = CliRunner()


def test_a_procedure_that_keeps_its_claim_ends_well() -> None:
    ended = RUNNER.invoke(app, ["audit", "count", "--mu", "3", "--method", "exact"])
    assert ended.exit_code == 0, ended.output
    assert "No violation was found, which proves nothing" in " ".join(ended.output.split())


@pytest.mark.parametrize(
    "words", [["mean", "--spend", "1"], ["no such thing", "--mu", "1"], [], ["mean", "--all"]]
)
def test_what_is_not_said_plainly_is_refused(words: list[str]) -> None:
    ended = RUNNER.invoke(app, ["audit", *words])
    assert isinstance(ended.exception, dp.InvalidParameter), ended.output
    assert ended.exception.remedy


def test_a_refuted_claim_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    refuted = dp.audit(lambda value: value, pair=(0.0, 1.0), claim=dp.PureDP(1), runs=400)
    assert refuted.violated
    monkeypatch.setattr(command, "audit", lambda name, **options: refuted)
    assert RUNNER.invoke(app, ["audit", "count", "--mu", "3"]).exit_code == 1
    assert RUNNER.invoke(app, ["audit", "--all"]).exit_code == 1
