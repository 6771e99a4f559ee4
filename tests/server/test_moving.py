"""A ledger file that moves into a data set: one promise for what was asked from either."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from curators import SCHEMA, Curator, curator
from typer.testing import CliRunner

import discreet as dp
from discreet.cli.commands import app
from discreet.errors import DiscreetError
from discreet.server.desk.moving import move_ledger
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.tree.node import Node

pytestmark = pytest.mark.slow

COLUMNS = {
    "income": dp.Real(0, 100),
    "age": dp.Integer(18, 90),
    "region": dp.Category(SCHEMA["region"]["levels"]),
}


def asked_from_a_file(here: Curator, budget: Any) -> Path:
    """A ledger that a mean and a reservation were paid from."""
    path = here.folder / "survey.ledger"
    data = dp.read_csv(here.folder / "data" / "survey.csv", schema=COLUMNS, neighbors=dp.Replace())
    session = data.open(budget=budget, ledger=path)
    dp.mean(session, "income", spend=dp.GDP(0.3))
    session.reserve(dp.GDP(0.4))
    return path


def left(here: Curator, dataset: str) -> str:
    olga = here.person("olga")
    return str(here.desk.datasets.one(olga, dataset)["box"]["left"]["mu_squared"])


def test_what_a_file_gave_away_counts_and_nothing_more_can_be_asked(tmp_path: Path) -> None:
    here = curator(tmp_path)
    path = asked_from_a_file(here, dp.GDP(1))
    made = here.register(budget={"mu": 1.0})
    state = str(tmp_path / "state")
    words = ["curator", "move", str(path), made["id"], "--state", state]
    for _ in range(2):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        assert json.loads(done.output.partition("spent ")[2])["mu_squared"] == "0.25"
        assert left(here, made["id"]) == "0.75", "once"
    ledger = Ledger.open(None, path=path)
    assert not ledger.remaining()
    assert ledger.verify()
    assert here.desk.office.trees.problems(made["id"]) == []
    entries = here.desk.ledgers.entries(here.person("olga"), made["node"])["entries"]
    assert [one["kind"] for one in entries] == ["open", "debit", "answer", "note"]
    study = here.study(made["id"], budget={"mu": 0.8})
    assert study["state"] == "open"


@pytest.mark.parametrize("step", [(Ledger, "debit"), (Ledger, "store"), (Node, "debit")])
def test_it_goes_on_after_a_crash(
    step: tuple[type, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = curator(tmp_path)
    path = asked_from_a_file(here, dp.ApproxDP(4, 1e-6))
    made = here.register(budget={"epsilon": 4.0, "delta": 1e-6})
    owner, name = step
    usual = getattr(owner, name)

    def killed(*places: Any, **words: Any) -> Any:
        usual(*places, **words)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, killed)
        with pytest.raises(KeyboardInterrupt):
            move_ledger(here.desk.office, made["id"], path)
    again = move_ledger(here.desk.office, made["id"], path)
    assert again == move_ledger(here.desk.office, made["id"], path)
    box = here.desk.office.trees.box(made["id"], made["node"])
    ledger = Ledger.open(None, path=path)
    assert not ledger.remaining().mu_squared
    assert box.spent.mu_squared == 250_000_000_000
    assert here.desk.office.trees.problems(made["id"]) == []


def test_without_room_or_of_another_relation_nothing_moves(tmp_path: Path) -> None:
    here = curator(tmp_path)
    path = asked_from_a_file(here, dp.GDP(1))
    before = Ledger.open(None, path=path).head
    small = here.register("small", budget={"mu": 0.4})
    other = here.register("other", neighbors="add_remove")
    for dataset, why in ((small, "no room"), (other, "one row"), ({"id": "ds_x"}, "nothing")):
        with pytest.raises(DiscreetError):
            move_ledger(here.desk.office, dataset["id"], path)
        assert Ledger.open(None, path=path).head == before, why
