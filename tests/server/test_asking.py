"""What the service answers is what a session at hand answers; keys, approvals, time, crashes."""

from __future__ import annotations

import importlib.util
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from curators import SCHEMA, Clock, Curator, curator, write_survey

import discreet as dp
from discreet.errors import NotAnswered, ServiceRefused
from discreet.estimators.classical_quantiles import exponential_question
from discreet.server.desk.times import public_cost
from discreet.testing import seeded_session

_PLACE = Path(__file__).parents[1] / "remote" / "remote_asks.py"
_SPEC = importlib.util.spec_from_file_location("remote_asks", _PLACE)
assert _SPEC is not None
assert _SPEC.loader is not None
asks = importlib.util.module_from_spec(_SPEC)
sys.modules.setdefault("remote_asks", asks)
_SPEC.loader.exec_module(asks)

MEAN = {"estimator": "mean", "column": "income", "spend": {"mu": 0.1}}
PROCEDURES = ("mean", "table", "median", "describe", "robust", "select", "histogram")


def key(name: str) -> dict[str, str]:
    return {"Idempotency-Key": name}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator(tmp_path_factory.mktemp("asking"))


def test_a_fine_grid_keeps_nobody_waiting() -> None:
    """Its cells are too many to be counted one by one: the values that are there are, at most the
    declared number of rows.
    """
    schema = {"coarse": dp.Real(0, 1, bits=16), "fine": dp.Real(0, 1, bits=32)}
    neighbors, no_rows = dp.AddRemove(), {"coarse": [], "fine": []}
    public = (
        dp.from_arrays(no_rows, schema=schema, neighbors=neighbors).open(budget=dp.GDP(1)).public
    )
    asked = {
        column: exponential_question(public, column, Fraction(1, 2), spend=dp.PureDP(0.1))
        for column in schema
    }
    for rows in (1_000, 1_000_000):
        cost = {column: public_cost(one, rows) for column, one in asked.items()}
        assert cost["coarse"] < 0.1 * (1 + rows / 1e6)
        assert cost["fine"] == pytest.approx(rows * 2.02e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:solver=:UserWarning")
@pytest.mark.parametrize("name", PROCEDURES)
def test_by_http_as_at_hand(name: str, tmp_path: Path) -> None:
    """The same seed gives the same integers and the same JSON, up to keys and hashes."""
    columns = asks.survey(rows=120)
    data = tmp_path / "data"
    data.mkdir()
    columns["joined"] = [str(day) for day in columns["joined"]]
    write_survey(data / "survey.csv", columns)
    schema = dp.Schema(asks.SCHEMA)
    behind = curator(tmp_path, seed="the same")
    made = behind.register(schema=schema.to_dict(), budget={"mu": 4.0})
    behind.study(made["id"], budget={"mu": 2.0})
    there = behind.connection("anna").open("survey", study="wages")
    rows = dp.read_csv(data / "survey.csv", schema=schema, neighbors=dp.Replace())
    at_hand = seeded_session(rows, dp.Ledger.open(dp.GDP(2)), "the same")
    ask = asks.ASKS[name]
    found = [asks.told(ask(session, dp.GDP(0.9), key="asked once")) for session in (there, at_hand)]
    for told in found:
        for record in asks._records(told):
            record.pop("entry", None)  # the service's own chain has other lines between
    assert found[0] == found[1]


def test_a_key_is_one_question_and_one_answer(here: Curator) -> None:
    study = here.study(here.register("keys")["id"])
    anna, path = here.client("anna"), f"/v1/studies/{study['id']}/questions"
    first = anna.post(path, json=MEAN, headers=key("a%20b"))
    assert first.status_code == 200
    assert first.json()["key"] == "a b"
    assert anna.post(path, json=MEAN, headers=key("a b")).json() == first.json()
    assert anna.get(f"/v1/answers/{first.json()['answer']}").json() == first.json()
    again = anna.post(path, json=MEAN, headers=key("another")).json()
    assert again["release"]["integers"] != first.json()["release"]["integers"]
    box = here.desk.studies.one(here.person("anna"), study["id"])["seat"]["boxes"][0]
    assert box["spent"]["mu_squared"].startswith("0.02")
    history = anna.get(f"/v1/studies/{study['id']}/answers").json()["answers"]
    assert {line["key"] for line in history} == {"a b", "another"}
    table = anna.get(f"/v1/answers/{first.json()['answer']}.csv")
    assert table.text.splitlines()[0].startswith("mean,")
    stored = anna.get(f"/v1/answers/{first.json()['answer']}.json").text
    assert dp.from_json(stored).release.key == "a b"


def test_a_procedure_by_name_goes_on_where_it_stopped(here: Curator) -> None:
    study = here.study(here.register("procedures")["id"])
    anna, path = here.client("anna"), f"/v1/studies/{study['id']}/questions"
    words = {"estimator": "describe", "columns": ["income"], "spend": {"mu": 0.2}}
    told = anna.post(path, json=words, headers=key("d")).json()
    done = anna.get(f"/v1/answers/{told['answer']}", params={"wait": 20}).json()
    assert done["status"] == "answered"
    assert len(done["result"]["releases"]) > 2
    with here.desk.office.database.write() as rows:  # the process died before it noted the end
        rows.changed(
            "UPDATE questions SET state = 'asked', result = NULL, finished_at = NULL WHERE id = ?",
            told["answer"],
        )
    again = anna.get(f"/v1/answers/{told['answer']}", params={"wait": 20}).json()
    assert again["result"]["releases"] == done["result"]["releases"]
    far = {**words, "spend": {"mu": 3.0}}
    assert anna.post(path, json=far, headers=key("far")).status_code == 409


def test_an_answer_leaves_at_its_time_and_a_late_one_at_a_later_slot(tmp_path: Path) -> None:
    clock = Clock(1_000.2)
    timed = curator(tmp_path, tick=10.0, clock=clock)
    study = timed.study(timed.register()["id"])
    anna, path = timed.client("anna"), f"/v1/studies/{study['id']}/questions"
    told = anna.post(path, json=MEAN, headers=key("on time"))
    assert told.status_code == 202, "it is there, and its time has not come"
    assert told.json()["ready_at"] == 1010.0
    assert "release" not in told.json()
    clock.now = 1010.0
    assert anna.get(f"/v1/answers/{told.json()['answer']}").status_code == 200
    timed.workers.paused = True
    late = anna.post(path, json=MEAN, headers=key("late")).json()
    assert late["ready_at"] == 1020.0
    clock.now = 1031.0
    timed.workers.go_on()
    look = anna.get(f"/v1/answers/{late['answer']}").json()
    assert (look["status"], look["ready_at"]) == ("pending", 1050.0), "10, 20, 40 after admission"
    clock.now = 1050.0
    assert anna.get(f"/v1/answers/{late['answer']}").json()["status"] == "answered"


def test_a_question_above_a_price_waits_undebited(here: Curator) -> None:
    study = here.study(here.register("asks")["id"], ask_above={"mu": 0.2})
    session = here.connection("anna").open("asks", study="wages")
    assert dp.mean(session, "income", spend=dp.GDP(0.2), key="small").release.key == "small"
    with pytest.raises(NotAnswered):
        dp.mean(session, "income", spend=dp.GDP(0.3), key="large")
    here.clock.now += 1
    with pytest.raises(NotAnswered):
        dp.mean(session, "income", spend=dp.GDP(0.3), key="too large")
    assert session.ledger.spent().exact().mu_squared < 0.05, "nothing was debited for them"
    waiting = here.client("olga").get("/v1/requests").json()["questions"]
    assert len(waiting) == 2
    olga = here.client("olga")
    first, second = (one["answer"] for one in waiting)
    assert olga.post(f"/v1/answers/{first}/decision", json={"decision": "approve"}).is_success
    body = {"decision": "decline", "reason": "the mean of all is enough"}
    assert olga.post(f"/v1/answers/{second}/decision", json=body).is_success
    assert dp.mean(session, "income", spend=dp.GDP(0.3), key="large").release.key == "large"
    with pytest.raises(ServiceRefused, match="the mean of all is enough"):
        dp.mean(session, "income", spend=dp.GDP(0.3), key="too large")
    kinds = [
        line["kind"] for line in olga.get(f"/v1/ledger/{study['seat']['node']}").json()["entries"]
    ]
    assert kinds.count("note") == 2, "decisions stand in the chain"


def test_a_crash_between_debit_and_answer_is_finished_once(here: Curator) -> None:
    study = here.study(here.register("crash")["id"])
    anna, path = here.client("anna"), f"/v1/studies/{study['id']}/questions"
    here.workers.paused = True
    told = anna.post(path, json=MEAN, headers=key("k"))
    assert told.status_code == 202
    here.workers.waiting.clear()  # whoever took it died
    here.workers.paused = False
    answer = told.json()["answer"]
    assert anna.get(f"/v1/answers/{answer}").status_code == 202
    assert here.workers.room.finish(answer) == "answered"
    first = anna.get(f"/v1/answers/{answer}").json()
    assert here.workers.room.finish(answer) == "answered", "done twice, it is the same"
    assert anna.post(path, json=MEAN, headers=key("k")).json() == first
    node = here.desk.office.trees.node(study["dataset"], study["seat"]["node"])
    assert [entry.kind for entry in node.entries()] == ["open", "debit", "answer"]


def test_a_failure_after_the_debit_has_one_body_and_the_same_key_goes_on(tmp_path: Path) -> None:
    behind = curator(tmp_path)
    study = behind.study(behind.register()["id"])
    anna, path = behind.client("anna"), f"/v1/studies/{study['id']}/questions"
    opened = behind.workers.room._engine

    behind.workers.room._engine = _fails  # type: ignore[method-assign]
    told = anna.post(path, json=MEAN, headers=key("k")).json()
    assert told["status"] == "failed"
    assert set(told) == {"answer", "key", "study", "ready_at", "status"}
    behind.workers.room._engine = opened  # type: ignore[method-assign]
    again = anna.post(path, json=MEAN, headers=key("k")).json()
    assert again["status"] == "answered"
    node = behind.desk.office.trees.node(study["dataset"], study["seat"]["node"])
    assert [entry.kind for entry in node.entries()] == ["open", "debit", "answer"]


def test_a_changed_source_freezes_and_a_new_version_spends_the_same_box(tmp_path: Path) -> None:
    behind = curator(tmp_path)
    made = behind.register()
    study = behind.study(made["id"])
    anna, olga = behind.client("anna"), behind.client("olga")
    path = f"/v1/studies/{study['id']}/questions"
    kept = anna.post(path, json=MEAN, headers=key("before")).json()
    write_survey(tmp_path / "data" / "survey.csv", rows=150)
    failed = anna.post(path, json=MEAN, headers=key("after")).json()
    assert failed["status"] == "failed"
    assert olga.get(f"/v1/datasets/{made['id']}").json()["state"] == "frozen"
    assert anna.post(path, json=MEAN, headers=key("then")).status_code == 423
    body = {"source": "data/survey.csv"}
    told = olga.post(f"/v1/datasets/{made['id']}/versions", json=body).json()
    assert (told["version"], told["state"], told["public_count"]) == (2, "open", 150)
    assert anna.post(path, json=MEAN, headers=key("then")).json()["status"] == "answered"
    assert anna.post(path, json=MEAN, headers=key("before")).json() == kept
    box = behind.desk.studies.one(behind.person("anna"), study["id"])["seat"]["boxes"][0]
    assert box["spent"]["mu_squared"].startswith("0.03"), "three debits in one box"


def test_sources_lead_nowhere_else(tmp_path: Path) -> None:
    behind = curator(tmp_path)
    (tmp_path / "secret.csv").write_text("income,age,region\n1,20,N\n")
    (tmp_path / "data" / "link.csv").symlink_to(tmp_path / "secret.csv")
    olga = behind.client("olga")
    words = {"name": "x", "schema": SCHEMA, "neighbors": "replace", "budget": {"mu": 1.0}}
    found = set()
    for source in (
        "data/../secret.csv",
        "data/link.csv",
        "data/nothing.csv",
        "data/*.csv",
        "/etc/passwd",
        "state/service.db",
        str(tmp_path / "data" / "survey.csv"),
        "http://169.254.169.254/latest.csv",
    ):
        answer = olga.post("/v1/datasets", json={**words, "source": source, "format": "csv"})
        assert answer.status_code == 422, source
        found.add(answer.text)
    assert len(found) == 1, "whatever is not right, the words are the same"
    listed = olga.get("/v1/sources").json()["sources"]
    assert [one["source"] for one in listed] == ["data/survey.csv"]


def test_made_up_rows_come_from_the_schema_alone(here: Curator, tmp_path: Path) -> None:
    other = curator(tmp_path)
    write_survey(tmp_path / "data" / "survey.csv", rows=7)
    first, second = (c.register("dummy")["id"] for c in (here, other))
    told = here.client("anna").get(f"/v1/datasets/{first}/dummy?rows=50&seed=3").json()
    assert told["made_up"] is True
    assert other.client("anna").get(f"/v1/datasets/{second}/dummy?rows=50&seed=3").json() == told
    assert here.client("anna").get(f"/v1/datasets/{first}/dummy?rows=0").status_code == 422
    here.study(first)
    session = here.connection("anna").open("dummy", study="wages", dummy=True)
    result = dp.mean(session, "income", spend=dp.GDP(0.5))
    assert "MADE-UP" in str(result)


def test_what_is_seen_before_an_answer_leaves_is_the_same_for_all_rows(tmp_path: Path) -> None:
    """Few rows and many, rare filters and common ones, a failure too: the same bytes, up to ids,
    until a time that follows from what was declared; and one body for every failure.
    """
    clock = Clock(1003.0)
    here = curator(tmp_path, tick=10.0, clock=clock)
    for name, rows in (("few", 20), ("many", 3000)):
        write_survey(tmp_path / "data" / f"{name}.csv", rows=rows)
    seen, bodies = [], []
    for name, where in (("few", None), ("many", {"region": "E"}), ("many", {"age": [90, 90]})):
        data = here.register(
            f"{name} {where}",
            source=f"data/{name}.csv",
            neighbors="add_remove",
            rows_at_most=10_000,
        )
        study = here.study(data["id"], name=f"{name} {where}")
        anna, path = here.client("anna"), f"/v1/studies/{study['id']}/questions"
        asked = MEAN if where is None else {**MEAN, "where": where}
        told = anna.post(path, json=asked, headers=key("right")).json()
        usual = here.workers.room._engine
        here.workers.room._engine = _fails  # type: ignore[method-assign]
        failed = anna.post(path, json=asked, headers=key("fails")).json()
        here.workers.room._engine = usual  # type: ignore[method-assign]
        for one in (told, failed):
            early = anna.get(f"/v1/answers/{one['answer']}")
            assert early.status_code == 202
            ids = {"answer": "", "study": "", "key": ""}
            seen.append((sorted(one.keys()), {**one, **ids}, {**early.json(), **ids}))
        clock.now = 1020.0
        over = anna.get(f"/v1/answers/{failed['answer']}").json()
        bodies.append({**over, "answer": "", "study": ""})
        clock.now = 1003.0
    assert all(one == seen[0] for one in seen)
    assert all(one == bodies[0] for one in bodies)
    assert bodies[0]["status"] == "failed"


def _fails(*_: object) -> None:
    raise MemoryError
