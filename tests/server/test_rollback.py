"""Older copies of a service's ledgers are noticed, whatever was put back: by pins at the start, by
receipts at the first call that shows one; that data set freezes and all others go on.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from curators import Curator, curator
from tests.trusted.scale.postgresql import program, server
from typer.testing import CliRunner

import discreet as dp
from discreet.cli.commands import app
from discreet.errors import DiscreetError, LedgerRefused
from discreet.server.desk.desk import require_verified
from discreet.server.desk.histories import FORGOTTEN
from discreet.server.refusals import status_of

pytestmark = pytest.mark.slow

MEAN = {"estimator": "mean", "column": "income", "spend": {"mu": 0.1}}


def asked(here: Curator, study: str, key: str, status: str = "answered") -> dict[str, Any]:
    told = here.desk.named.ask(here.person("anna"), study, asked=MEAN, key=key)
    assert told["status"] == status
    return told


def two_surveys(here: Curator) -> dict[str, dict[str, Any]]:
    """Two data sets with a study and an answer each."""
    made = {}
    for name in ("survey", "other"):
        data = here.register(name)
        study = here.study(data["id"], name=f"study of {name}")
        made[name] = {"data": data["id"], "study": study["id"]}
        asked(here, study["id"], "before")
    return made


def ledger(here: Curator, dataset: str) -> Path:
    return here.folder / "state" / "budgets" / f"{dataset}.db"


def put_back(copy: Path, place: Path) -> None:
    for end in ("-wal", "-shm"):
        Path(f"{place}{end}").unlink(missing_ok=True)
    shutil.copyfile(copy, place)


def backed_up(here: Curator, name: str) -> Path:
    """What `discreet curator backup` writes."""
    to = here.folder / name
    state = str(here.folder / "state")
    done = CliRunner().invoke(app, ["curator", "backup", str(to), "--state", state])
    assert done.exit_code == 0, done.output
    return to


def restored(here: Curator, made: dict[str, Any], backup: Path) -> None:
    put_back(backup / "budgets" / f"{made['data']}.db", ledger(here, made["data"]))


def all_restored(here: Curator, made: dict[str, Any], backup: Path) -> None:
    restored(here, made, backup)
    here.desk.office.database._local.held[1].close()  # as a service that was stopped
    put_back(backup / "service.db", here.folder / "state" / "service.db")


def replaced(here: Curator, made: dict[str, Any], backup: Path) -> None:
    other = next(
        one for one in ledger(here, "x").parent.glob("*.db") if made["data"] not in one.name
    )
    put_back(other, ledger(here, made["data"]))


def emptied(here: Curator, made: dict[str, Any], backup: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{ledger(here, made['data'])}{end}").unlink(missing_ok=True)


def overwritten(here: Curator, made: dict[str, Any], backup: Path) -> None:
    put_back(Path(__file__), ledger(here, made["data"]))


LOSSES: dict[str, Callable[..., None]] = {
    "one ledger restored": restored,
    "all of it restored": all_restored,
    "another data set's ledger": replaced,
    "removed": emptied,
    "no ledger at all": overwritten,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_an_older_copy_is_noticed_at_the_start(loss: str, tmp_path: Path) -> None:
    here = curator(tmp_path)
    made = two_surveys(here)
    backup = backed_up(here, "monday")
    assert not list(backup.rglob("*.pins")), "pins that went back too would tell nothing"
    asked(here, made["survey"]["study"], "after")
    here.desk.office.trees.let_go()  # it stops
    LOSSES[loss](here, made["survey"], backup)
    again, said = curator(tmp_path), list[str]()
    if loss == "no ledger at all":
        with pytest.raises(LedgerRefused, match="does not verify"):
            require_verified(again.desk.office)
        state = str(tmp_path / "state")
        told = CliRunner().invoke(app, ["curator", "verify", "--freeze", "--state", state])
        assert told.exit_code == 1
        assert "shut now" in told.output
    require_verified(again.desk.office, said.append)
    with again.desk.office.database.read() as rows:
        states = {row["id"]: row["state"] for row in rows.run("SELECT id, state FROM datasets")}
    assert states[made["survey"]["data"]] == "frozen"
    assert states[made["other"]["data"]] == "open"
    with pytest.raises(DiscreetError) as refused:
        asked(again, made["survey"]["study"], "afterwards")
    assert status_of(refused.value) == 423
    asked(again, made["other"]["study"], "afterwards")


def test_removed_lines_do_not_start_and_are_shut_by_themselves(tmp_path: Path) -> None:
    here = curator(tmp_path)
    made = two_surveys(here)
    raw = sqlite3.connect(ledger(here, made["survey"]["data"]))
    for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {name}")
    raw.execute("DELETE FROM tree_lines WHERE kind = 'debit'")
    raw.commit()
    raw.close()
    again = curator(tmp_path)
    with pytest.raises(LedgerRefused, match="does not verify"):
        require_verified(again.desk.office)
    state = str(tmp_path / "state")
    told = CliRunner().invoke(app, ["curator", "verify", "--freeze", "--state", state])
    assert told.exit_code == 1
    require_verified(again.desk.office)
    with pytest.raises(DiscreetError, match="frozen"):
        asked(again, made["survey"]["study"], "afterwards")
    asked(again, made["other"]["study"], "afterwards")


def test_receipts_tell_what_pins_forgot(tmp_path: Path) -> None:
    """The whole state was put back, pins too: the first receipt from later freezes the data set,
    and recovery counts what it is of as spent.
    """
    here = curator(tmp_path)
    made = two_surveys(here)
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    connection = here.connection("anna")
    session = connection.open("survey", study="study of survey")
    dp.mean(session, "income", spend=dp.GDP(0.1), key="seen")
    header = connection._service.receipts.header()
    assert header
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "copy").rename(tmp_path / "state")
    again = curator(tmp_path)
    require_verified(again.desk.office)
    anna = again.client("anna")
    assert anna.get("/v1/studies").status_code == 200, "nothing shows yet"
    assert anna.get("/v1/studies", headers=header).status_code == 423
    data = again.desk.datasets.one(again.person("olga"), made["survey"]["data"])
    assert (data["state"], data["reason"]) == ("frozen", FORGOTTEN)
    owner = again.client("olga")
    thaw = owner.post(f"/v1/datasets/{made['survey']['data']}/thaw")
    assert thaw.status_code == 409, "an owner cannot take it back"
    asked(again, made["other"]["study"], "afterwards")
    state = str(tmp_path / "state")
    words = ["curator", "recover", made["survey"]["data"], "--state", state]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    last = curator(tmp_path)
    require_verified(last.desk.office)
    boxes = last.desk.studies.one(last.person("anna"), made["survey"]["study"])["seat"]["boxes"]
    assert set(boxes[0]["left"].values()) == {"0"}, "what was forgotten counts as spent"
    with pytest.raises(dp.errors.BudgetExceeded):
        asked(last, made["survey"]["study"], "no more")
    anna = last.client("anna")
    assert anna.get("/v1/studies", headers=header).status_code == 200, "it is no news any more"
    data = last.desk.datasets.one(last.person("olga"), made["survey"]["data"])
    assert data["state"] == "open"


def test_a_study_that_was_forgotten_costs_all_of_its_data_set(tmp_path: Path) -> None:
    """State and pins were put back to before the study: its receipt freezes what its holder has a
    part in, and recovery leaves nothing of that to spend.
    """
    here = curator(tmp_path)
    made = two_surveys(here)
    owner = here.person("olga")
    data = here.register("ben's", source="data/survey.csv")
    here.study(data["id"], login="ben", name="first", budget={"mu": 0.5})
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    here.study(data["id"], login="ben", name="second", budget={"mu": 0.5})
    connection = here.connection("ben")
    dp.mean(connection.open("ben's", study="second"), "income", spend=dp.GDP(0.1))
    header = connection._service.receipts.header()
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "copy").rename(tmp_path / "state")
    again = curator(tmp_path)
    ben = again.client("ben")
    assert ben.get("/v1/studies", headers=header).status_code == 423
    assert again.desk.datasets.one(owner, data["id"])["state"] == "frozen"
    assert again.desk.datasets.one(owner, made["survey"]["data"])["state"] == "open"
    again.desk.histories.recover(data["id"])
    box = again.desk.office.trees.box(data["id"], data["node"])
    assert not box.left, "nothing is left of it"
    assert curator(tmp_path).client("ben").get("/v1/studies", headers=header).status_code == 200


def test_a_receipt_that_is_none_changes_nothing(tmp_path: Path) -> None:
    here = curator(tmp_path)
    made = two_surveys(here)
    connection = here.connection("anna")
    session = connection.open("survey", study="study of survey")
    dp.mean(session, "income", spend=dp.GDP(0.1))
    anna = here.client("anna")
    known = connection._service.receipts.header()["Discreet-Receipt"]
    for header in (known, "x", "e30=", "W10=", known[:-8], "A" * 3000, "bnVsbA=="):
        answer = anna.get("/v1/studies", headers={"Discreet-Receipt": header})
        assert answer.status_code == 200
    data = here.desk.datasets.one(here.person("olga"), made["survey"]["data"])
    assert data["state"] == "open"


def test_an_older_replica_of_a_postgresql(tmp_path: Path) -> None:
    """What `pg_dump` wrote is put back below a service that was answering meanwhile."""
    with server() as address:
        here = curator(tmp_path, database=address)
        made = two_surveys(here)
        dump = tmp_path / "monday.dump"
        subprocess.run([program("pg_dump"), "-Fc", "-f", str(dump), address], check=True)
        asked(here, made["survey"]["study"], "after")
        words = [program("pg_restore"), "--clean", "--if-exists", "-d", address, str(dump)]
        subprocess.run(words, check=True)
        with pytest.raises(DiscreetError, match="frozen"):
            asked(here, made["survey"]["study"], "at once")
        asked(here, made["other"]["study"], "others go on")
        again = curator(tmp_path, database=address)
        require_verified(again.desk.office)
        with pytest.raises(DiscreetError, match="frozen"):
            asked(again, made["survey"]["study"], "afterwards")
        asked(again, made["other"]["study"], "others still go on")


@pytest.mark.parametrize("moment", ["look", "thaw"])
def test_what_is_noticed_while_a_freeze_is_taken_back_stays(moment: str, tmp_path: Path) -> None:
    """An older copy is noticed while its owner registers other rows: nothing is opened again."""
    here = curator(tmp_path)
    made = two_surveys(here)["survey"]
    place: Any = here.workers if moment == "look" else here.desk.office.trees
    usual = getattr(place, moment)

    def meanwhile(*words: Any) -> Any:
        told = usual(*words)
        here.desk.histories.shut(made["data"], FORGOTTEN)
        return told

    setattr(place, moment, meanwhile)
    owner = here.person("olga")
    with pytest.raises(DiscreetError):
        here.desk.datasets.new_version(owner, made["data"], source="data/survey.csv")
    delattr(place, moment)
    data = here.desk.datasets.one(owner, made["data"])
    assert (data["state"], data["reason"]) == ("frozen", FORGOTTEN)
    with pytest.raises(DiscreetError, match="frozen"):
        asked(here, made["study"], "afterwards")
    assert here.desk.office.trees.problems(made["data"]) == []
