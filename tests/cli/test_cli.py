"""The command line: the demo, and looking at ledgers, intact, damaged and missing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.survey import open_session, survey
from typer.testing import CliRunner

import discreet as dp
from discreet.cli.commands import app

RUNNER = CliRunner()


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    path = tmp_path / "survey.ledger"
    declared = {"schema": {"income": dp.Real(0, 100)}, "neighbors": dp.Replace()}
    data = dp.from_arrays(survey(), **declared, name="survey")
    session = data.open(budget=dp.GDP(1), ledger=path)
    dp.mean(session, "income", spend=dp.GDP(0.5), key="the-mean")
    dp.histogram(session, "income", spend=dp.GDP(0.1), key="the-histogram")
    session.reserve(dp.GDP(0.1), key="aside")
    return path


def test_show(ledger_file: Path) -> None:
    shown = RUNNER.invoke(app, ["ledger", "show", str(ledger_file)], env={"COLUMNS": "160"})
    assert shown.exit_code == 0
    for words in (
        "μ² (Gaussian)",
        "26.0%",
        "mean of income",
        "histogram of income",
        "answered",
        "reserve",
        "the-mean",
        "head ",
        "6 entries in all",
    ):
        assert words in shown.output
    last = RUNNER.invoke(
        app, ["ledger", "show", str(ledger_file), "--entries", "1"], env={"COLUMNS": "160"}
    )
    assert "aside" in last.output
    assert "the-mean" not in last.output


def test_verify(ledger_file: Path) -> None:
    verified = RUNNER.invoke(app, ["ledger", "verify", str(ledger_file)])
    assert verified.exit_code == 0
    assert "6 entries" in verified.output
    assert "intact" in verified.output
    head = dp.Ledger.open(None, path=ledger_file).head
    assert (
        RUNNER.invoke(
            app, ["ledger", "verify", str(ledger_file), "--expected-head", head]
        ).exit_code
        == 0
    )
    other = RUNNER.invoke(app, ["ledger", "verify", str(ledger_file), "--expected-head", "0" * 64])
    assert other.exit_code == 1
    assert "does not know it" in other.output


def test_replay(ledger_file: Path) -> None:
    head = dp.Ledger.open(None, path=ledger_file).head
    shown = RUNNER.invoke(
        app, ["ledger", "replay", str(ledger_file), "--delta", "1e-6"], env={"COLUMNS": "160"}
    )
    assert shown.exit_code == 0, shown.output
    for words in (
        "history by pld",
        "spent, by the ledger's box",
        "promised, the whole box",
        "ε at δ = 1e-06",
        "never gives budget back",
    ):
        assert words in shown.output
    several = RUNNER.invoke(
        app,
        [
            "ledger",
            "replay",
            str(ledger_file),
            "--delta",
            "1e-6",
            "--accountant",
            "gdp",
            "--accountant",
            "rdp",
        ],
        env={"COLUMNS": "160"},
    )
    assert several.exit_code == 0
    assert "history by gdp" in several.output
    assert "history by rdp" in several.output
    for bad in (["--delta", "2"], ["--delta", "1e-6", "--accountant", "moments"]):
        refused = RUNNER.invoke(app, ["ledger", "replay", str(ledger_file), *bad])
        assert refused.exit_code == 1
        assert "What to do" in refused.output
    assert dp.Ledger.open(None, path=ledger_file).head == head


def tables_with_text(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    names = [
        row[0]
        for row in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    ]
    return [
        (name, column[1])
        for name in names
        for column in connection.execute(f"PRAGMA table_info({name})")
        if column[1] == "body"
    ]


def test_a_changed_answer_is_found(ledger_file: Path) -> None:
    connection = sqlite3.connect(ledger_file)
    ((table, column),) = tables_with_text(connection)
    triggers = [
        row[0]
        for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    ]
    for trigger in triggers:
        connection.execute(f"DROP TRIGGER {trigger}")
    changed = connection.execute(
        f"UPDATE {table} SET {column} = replace({column}, '\"secure\":', '\"Secure\":') WHERE "
        f"{column} LIKE '%integers%'"
    ).rowcount
    if not changed:
        changed = connection.execute(
            f"UPDATE {table} SET {column} = {column} || ' ' WHERE {column} LIKE '%integers%'"
        ).rowcount
    connection.commit()
    connection.close()
    assert changed == 2
    verified = RUNNER.invoke(app, ["ledger", "verify", str(ledger_file)])
    assert verified.exit_code == 1
    assert "intact" not in verified.output.replace("NOT intact", "")
    assert RUNNER.invoke(app, ["ledger", "show", str(ledger_file)]).exit_code == 1


@pytest.mark.parametrize("command", ["show", "verify"])
def test_files_that_are_no_ledger(tmp_path: Path, command: str) -> None:
    missing = RUNNER.invoke(app, ["ledger", command, str(tmp_path / "nothing")])
    assert missing.exit_code == 1
    assert "there is no file" in missing.output
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "text").write_text("hello")
    foreign = RUNNER.invoke(app, ["ledger", command, str(tmp_path / "text")])
    assert foreign.exit_code == 1
    assert "What to do" in foreign.output
    assert RUNNER.invoke(app, ["ledger", command, str(tmp_path)]).exit_code == 1


@pytest.mark.slow
def test_the_demo_twice(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    first = RUNNER.invoke(app, ["demo", "--output", str(folder)], env={"COLUMNS": "160"})
    assert first.exit_code == 0, first.output
    for words in (
        "Preview of mean of income",
        "Private mean of income",
        "Private table of income by schooling",
        "Private histogram of income",
        "noise %",
        "29501 rows (public)",
        "fit in what is left",
    ):
        assert words in first.output
    assert (folder / "census.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "census.png").stat().st_size > 20_000
    ledger = dp.Ledger.open(None, path=folder / "census.ledger")
    spent, head = ledger.spent(), ledger.head
    second = RUNNER.invoke(app, ["demo", "--output", str(folder)], env={"COLUMNS": "160"})
    assert second.exit_code == 0
    assert "nothing more was spent" in second.output
    assert "nothing more was spent" not in first.output
    assert ledger.spent() == spent
    assert ledger.head == head
    table = "Private table"
    assert (
        first.output.split(table)[1].split("Ledger:")[0]
        == second.output.split(table)[1].split("Ledger:")[0]
    )


def test_the_demo_is_right(tmp_path: Path) -> None:
    """The released mean is within seven standard errors of the census's own."""
    import pyarrow.parquet

    from discreet.cli.demo import census_file

    income = pyarrow.parquet.read_table(census_file(tmp_path))["income"].to_numpy().clip(0, 4000)
    session = open_session(data={**survey(rows=len(income)), "income": income / 40})
    preview = dp.preview(session, dp.mean, "income", spend=dp.GDP(0.05))
    assert len(income) == 29501
    assert (
        abs(dp.mean(session, "income", spend=dp.GDP(0.05)).estimate - income.mean() / 40)
        < 7 * preview.noise + 0.01
    )


@pytest.mark.slow
def test_the_module_runs_as_a_program(ledger_file: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "discreet", *words], capture_output=True, text=True, check=False
        )

    assert "intact" in run("ledger", "verify", str(ledger_file)).stdout
    missing = run("ledger", "verify", str(ledger_file) + "x")
    assert missing.returncode == 1
    assert "there is no file" in missing.stderr
    assert "Traceback" not in missing.stderr
    assert "demo" in run("--help").stdout


@pytest.mark.slow
def test_account_prints_certified_and_approximate_epsilons_apart(tmp_path: Path) -> None:
    picture = tmp_path / "account.png"
    result = CliRunner().invoke(
        app,
        [
            "account",
            "--sampling-rate",
            "0.01",
            "--sigma",
            "1",
            "--steps",
            "1000",
            "--delta",
            "1e-6",
            "--plot",
            str(picture),
        ],
    )
    assert result.exit_code == 0, result.output
    found = {line.split("  ")[0].strip(): line for line in result.output.splitlines()}
    assert "2.124" in found["loss distribution (PLD)"]
    assert "2.43" in found["Rényi (RDP)"]
    assert "approximation" in found["central limit (CLT)"]
    assert picture.stat().st_size > 5000
