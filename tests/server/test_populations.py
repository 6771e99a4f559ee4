"""Populations: one promise for several data sets about the same people, on files and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from curators import Curator, curator, write_survey
from test_pages import browser
from tests.trusted.scale.postgresql import server

import discreet as dp
from discreet.server.desk.desk import require_verified
from discreet.server.desk.histories import FORGOTTEN

pytestmark = pytest.mark.slow

PEOPLE = {"relation": "replace", "unit": "person", "max_rows": 2}
MEAN = {"estimator": "mean", "column": "income", "spend": {"mu": 0.2}}


@pytest.fixture(params=["sqlite", "postgresql"])
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Curator]:
    if request.param == "sqlite":
        yield curator(tmp_path)
        return
    with server() as address:
        yield curator(tmp_path, database=address)


def population(here: Curator, **changes: Any) -> dict[str, Any]:
    told = {"name": "people", "neighbors": "replace", "budget": {"mu": 0.5}} | changes
    return here.desk.populations.make(here.person("olga"), **told)


def ask(here: Curator, study: dict[str, Any], name: str) -> Any:
    return here.desk.named.ask(here.person("anna"), study["id"], asked=MEAN, key=name)


def test_what_data_sets_spend_together_is_what_their_population_holds(here: Curator) -> None:
    above = population(here)
    assert population(here)["id"] == above["id"], "the same words, the same population"
    first = here.register("first", population=above["id"], budget={"mu": 0.4})
    with pytest.raises(dp.errors.BudgetExceeded):
        here.register("second", population=above["id"], budget={"mu": 0.4})
    second = here.register("second", population=above["id"], budget={"mu": 0.3})
    for made in (first, second):
        study = here.study(made["id"], name=f"of {made['name']}", budget={"mu": 0.25})
        assert ask(here, study, "k")["status"] == "answered"
        with pytest.raises(dp.errors.BudgetExceeded):
            ask(here, study, "no room")
        here.desk.datasets.close(here.person("olga"), made["id"])
    told = here.desk.populations.one(here.person("olga"), above["id"])
    assert [one["name"] for one in told["datasets"]] == ["first", "second"]
    assert told["box"]["spent"]["mu_squared"] == "0.08", "what was not spent went back"
    assert told["box"]["reserved"]["mu_squared"] == "0"
    third = here.register("third", population=above["id"], budget={"mu": 0.41})
    assert here.desk.office.trees.problems(third["id"]) == []
    node = told["node"]
    verdict = here.client("ada").post(f"/v1/ledger/{node}/verify").json()
    assert (verdict["ok"], verdict["problems"]) == (True, [])
    assert here.client("otto").get(f"/v1/ledger/{node}").status_code == 404


def test_a_population_is_of_one_relation_and_of_its_owner(tmp_path: Path) -> None:
    rows: dict[str, Any] = {"income": [30.0] * 8, "age": [20] * 8, "region": ["N"] * 8}
    (tmp_path / "data").mkdir()
    write_survey(tmp_path / "data" / "survey.csv", rows | {"person": [*"aabbccdd"]})
    here = curator(tmp_path)
    above = population(here, neighbors=PEOPLE)
    with pytest.raises(dp.errors.InvalidParameter, match="something else"):
        here.register(population=above["id"])
    with pytest.raises(dp.errors.DiscreetError, match="declared otherwise"):
        population(here, budget={"mu": 5.0})
    with pytest.raises(dp.errors.InvalidParameter, match="share"):
        here.register(population=above["id"], neighbors=PEOPLE, pure=0.1)
    body = {"name": "x", "neighbors": "replace", "budget": {"mu": 1.0}}
    for login, status in (("anna", 403), ("ada", 403), ("op", 403), ("otto", 201)):
        assert here.client(login).post("/v1/populations", json=body).status_code == status
    assert [one["name"] for one in here.desk.populations.listed(here.person("otto"))] == ["x"]
    told: Any = {"budget": {"mu": 0.1}, "schema": {"age": {"kind": "integer", "low": 0, "high": 9}}}
    for of in (above["id"], "po_00000000000000000000", "x"):
        answer = here.client("otto").post(
            "/v1/datasets",
            json=told
            | {"name": "n", "source": "data/survey.csv", "neighbors": "replace", "population": of},
        )
        assert answer.status_code == 404


def test_an_older_copy_of_a_population_shuts_all_that_stands_in_it(tmp_path: Path) -> None:
    here = curator(tmp_path)
    above = population(here)
    made = [
        here.register(name, population=above["id"], budget={"mu": 0.25})
        for name in ("first", "second")
    ]
    apart = here.register("apart")
    study = here.study(made[0]["id"], budget={"mu": 0.25})
    here.desk.office.trees.let_go()
    file = tmp_path / "state" / "budgets" / f"{above['id']}.db"
    copy = file.read_bytes()
    assert ask(here, study, "forgotten")["status"] == "answered"
    here.desk.office.trees.let_go()
    file.write_bytes(copy)
    again = curator(tmp_path)
    require_verified(again.desk.office)
    olga = again.person("olga")
    states = [again.desk.datasets.one(olga, one["id"]) for one in (*made, apart)]
    assert [one["state"] for one in states] == ["frozen", "frozen", "open"]
    assert states[0]["reason"] == FORGOTTEN
    for one in made:
        again.desk.histories.recover(one["id"])
    assert again.desk.datasets.one(olga, made[1]["id"])["state"] == "open"
    with pytest.raises(dp.errors.BudgetExceeded):
        ask(again, study, "after it counted as spent")
    other = again.study(made[1]["id"], name="other", budget={"mu": 0.25})
    assert ask(again, other, "k")["status"] == "answered"


def test_a_population_by_the_page(tmp_path: Path) -> None:
    here = curator(tmp_path)
    owner = browser(here, "olga")
    form = {"name": "people", "relation": "replace", "budget_kind": "mu", "budget_amount": "1"}
    unsure = owner.post("/populations", data=form)
    assert (unsure.status_code, 'value="people"' in unsure.text) == (422, True)
    assert owner.post("/populations", data=form | {"sure": "yes"}).status_code == 303
    made = here.desk.populations.listed(here.person("olga"))[0]
    here.register("first", population=made["id"], budget={"mu": 0.25})
    shown = owner.get("/populations").text
    assert "first" in shown
    assert f'value="{made["id"]}"' in owner.get("/datasets/new").text
    assert browser(here, "anna").get("/populations").status_code == 403
    assert made["id"] not in browser(here, "otto").get("/populations").text
