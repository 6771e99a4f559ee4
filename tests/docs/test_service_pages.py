"""The command lines of the pages on the service name what there is: commands, options, routes."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from discreet.cli.commands import app
from discreet.cli.serve import _provider
from discreet.server.api.app import make_app
from discreet.server.desk.desk import open_desk
from discreet.server.settings import Settings
from discreet.server.work.connections import Connections

DOCS = Path(__file__).parents[2] / "docs"
DEPLOY = (DOCS / "how-to" / "service.md").read_text("utf-8")
CALLS = (DOCS / "how-to" / "service-api.md").read_text("utf-8")
TOML = re.findall(r"```toml\n(.*?)```", DEPLOY, re.DOTALL)
LINE = re.compile(r"(?:^|ExecStart=\S*/)(discreet (?:serve|work|curator)[^\n`]*)", re.MULTILINE)
LINES = [*LINE.findall(DEPLOY), *re.findall(r"`(discreet (?:serve|work|curator)[^`]*)`", DEPLOY)]


def options_of(words: list[str]) -> set[str]:
    """The options of a command."""
    command = get_command(app)
    for word in words:
        below = getattr(command, "commands", {}).get(word)
        if below is None:
            break
        command = below
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)}


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_has_options_that_there_are(line: str) -> None:
    words = shlex.split(line)[1:]
    known = options_of(words)
    used = {word for word in words if word.startswith("--")}
    assert known, line
    assert used <= known, used - known


def test_there_are_enough_of_them() -> None:
    assert len(LINES) >= 8
    assert "--worker-user" in DEPLOY


def test_the_provider_file_is_one_that_is_read(tmp_path: Path) -> None:
    text = next(one for one in TOML if "issuer" in one)
    (tmp_path / "provider.toml").write_text(text)
    assert _provider(tmp_path / "provider.toml") == tomllib.loads(text)


def test_the_file_of_connections_is_one_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "connections.toml").write_text(next(one for one in TOML if "[clinic]" in one))
    listed = Connections(str(tmp_path / "connections.toml"), b"k" * 32).listed()
    assert {one["source"]: one["format"] for one in listed} == {
        "clinic/visits": "database",
        "clinic/public.people": "database",
        "events/today": "stream",
    }


def test_every_call_of_the_table_is_a_route(tmp_path: Path) -> None:
    desk = open_desk(Settings(state=str(tmp_path)))
    paths = make_app(desk)._app.openapi()["paths"]
    shape = {re.sub(r"\{[^}]*\}", "{}", path) for path in paths}
    table = re.findall(r"^\| (`(?:GET|POST|DELETE).*?) \|", CALLS, re.MULTILINE)
    named = [word for row in table for word in re.findall(r"(/[a-z/{}]+)", row)]
    assert len(named) > 20
    for word in named:
        asked = "/v1" + re.sub(r"\{[^}]*\}", "{}", word)
        if not word.startswith(("/versions", "/freeze", "/thaw", "/close", "/amend", "/verify")):
            known = asked in shape or any(
                one.endswith(re.sub(r"\{.*?\}", "{}", word)) for one in shape
            )
            assert known, word
        else:
            assert any(one.endswith(word) for one in shape), word
