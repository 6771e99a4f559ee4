"""The shell commands of the README and of the page on the command line run as they stand, in an
empty folder, twice; and the declaration that the page shows is the one that Python writes.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from test_examples import ROOT, examples
from typer.testing import CliRunner

import discreet as dp
from discreet.asking.declarations import read_declaration
from discreet.cli.commands import app

PAGE, README = ROOT / "docs" / "how-to" / "command-line.md", ROOT / "README.md"
BLOCK = re.compile(r"^```(?P<kind>toml|sh)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_COMMANDS = 5


def written_files(page: Path, folder: Path) -> None:
    """Each TOML block, under the name in its first line."""
    for block in BLOCK.finditer(page.read_text()):
        if block["kind"] == "toml":
            tomllib.loads(block["text"])
            (folder / block["text"].split("\n")[0].removeprefix("# ")).write_text(block["text"])


def commands(page: Path) -> list[list[str]]:
    lines = [
        line
        for block in BLOCK.finditer(page.read_text())
        if block["kind"] == "sh"
        for line in block["text"].splitlines()
    ]
    return [shlex.split(line) for line in lines]


def run(words: list[str]) -> str:
    assert words[0].endswith("discreet")
    done = CliRunner().invoke(app, words[1:])
    assert done.exit_code == 0, (words, done.output)
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, PAGE], ids=lambda page: page.name)
def test_the_commands_run_twice(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dp.load_census().frame.to_csv("survey.csv", index=False)
    written_files(page, tmp_path)
    asked = [words for words in commands(page) if words != ["make", "setup"]]
    assert len(asked) >= 3
    first = [run(words) for words in asked]
    head = dp.Ledger.open(None, path="survey.ledger").head
    second = [run(words) for words in asked]
    assert dp.Ledger.open(None, path="survey.ledger").head == head
    answers = [number for number, words in enumerate(asked) if words[1] not in ("preview", "plan")]
    assert [first[number] for number in answers if "show" not in asked[number]] == [
        second[number] for number in answers if "show" not in asked[number]
    ]


def test_few_commands_lead_to_a_regression() -> None:
    words = commands(README)
    assert words[0] == ["make", "setup"]
    assert len(words) <= MOST_COMMANDS
    assert any(one[1:2] == ["regression"] for one in words)


def test_the_declaration_by_hand_is_the_one_that_python_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = examples(PAGE.read_text())[0][1]
    exec(compile(first, str(PAGE), "exec"), {})
    python = read_declaration("survey.toml")
    written_files(PAGE, tmp_path)
    assert read_declaration("survey.toml") == python
