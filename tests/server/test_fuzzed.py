"""Mutated questions and calls of every route: nothing breaks, nothing invalid is debited."""

from __future__ import annotations

import contextlib
import copy
import functools
import operator
from pathlib import Path
from typing import Any

import pytest
from curators import Curator, curator, write_survey
from mutations import ask_mutated, asks, call_every_route, places, recorded

import discreet as dp
from discreet.errors import DiscreetError
from discreet.inference.results.stored import question_from_dict


def prepared(
    folder: Path, clock: Any = None
) -> tuple[Curator, dict[str, Any], list[dict[str, Any]]]:
    """A service with the survey of all kinds of columns, a study and questions to mutate."""
    columns = asks.survey(rows=60)
    columns["joined"] = [str(day) for day in columns["joined"]]
    (folder / "data").mkdir()
    write_survey(folder / "data" / "survey.csv", columns)
    here = curator(folder, clock=clock)
    schema = dp.Schema(asks.SCHEMA).to_dict()
    made = here.register(schema=schema, budget={"mu": 60.0})
    study = here.study(made["id"], budget={"mu": 50.0})
    return here, study, recorded(here, "survey", "wages")


def require_right(here: Curator, study: dict[str, Any], found: Any, before: set[str]) -> None:
    assert not found.broken, found.broken[:3]
    entries = here.desk.office.trees.node(study["dataset"], study["seat"]["node"]).entries()
    debits = {one.key.partition("/")[0] for one in entries if one.kind == "debit"} - before
    assert debits <= found.paid, "what was refused was not debited"
    assert here.desk.office.trees.problems(study["dataset"]) == []


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return prepared(tmp_path_factory.mktemp("fuzzed"))


@pytest.mark.slow
def test_mutated_questions(made: Any) -> None:
    here, study, bases = made
    assert len(bases) >= 8
    entries = here.desk.office.trees.node(study["dataset"], study["seat"]["node"]).entries()
    before = {one.key.partition("/")[0] for one in entries}
    found = ask_mutated(here, study["id"], bases, 600)
    require_right(here, study, found, before)
    assert found.statuses[422] > 300
    assert found.statuses[200] > 5, "some are still right, so that they reach the ledger"


@pytest.mark.slow
def test_every_route_with_hostile_bodies(made: Any) -> None:
    here, study, _ = made
    ids = {"dataset": study["dataset"], "study": study["id"], "node": study["seat"]["node"]}
    found = call_every_route(here, ids, 4)
    assert not found.broken, found.broken[:3]
    assert sum(found.statuses.values()) > 150
    assert here.desk.office.trees.problems(study["dataset"]) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [1 << 63, (1 << 33) + 1, -1], ids=str)
def test_no_whole_number_in_a_question_makes_it_fail_otherwise(made: Any, number: int) -> None:
    """Each of a question's numbers, at its turn, is refused in words or still a question."""
    here, study, bases = made
    office, seat = here.desk.office, study["seat"]["node"]
    node = office.trees.node(study["dataset"], seat)
    with office.database.read() as rows:
        version = rows.one("SELECT version FROM datasets WHERE id = ?", study["dataset"])["version"]
        session = office.session(rows, study["dataset"], version, node)
    asked = 0
    for base in bases:
        for at in places(base):
            *inner, last = at or [None]
            changed = copy.deepcopy(base)
            within = functools.reduce(operator.getitem, inner, changed)
            one = within[last] if at else None
            if isinstance(one, str) and one.lstrip("-").isdigit():
                within[last] = str(number)
            elif isinstance(one, (int, float)) and not isinstance(one, bool):
                within[last] = number
            else:
                continue
            asked += 1
            with contextlib.suppress(DiscreetError):
                session._checked(question_from_dict(changed))
    assert asked > 400
