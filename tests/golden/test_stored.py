"""What an earlier version wrote is read by this one with the same meaning.

Kept ledgers (tests/golden/stored/<version>) are intact, hold what they held, and repeat their
answers for free; kept results, releases and reports come back with the same figures.
`golden_compare` says how floats are compared.

A fit asks its later questions where floats led it, and their specifications hold such floats: on
another machine than the one that wrote the ledger, a last bit makes another question, which the key
then refuses. Such a refusal of a fit is a failure in exact mode alone; every single request of its
history is asked again, word by word, in both.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_compare import differences
from golden_stored import (
    KINDS,
    data_set,
    kept,
    ledger_facts,
    questions,
    replay_facts,
    result_facts,
    unpacked,
    versions,
)

import discreet as dp
from discreet import client, local

VERSIONS = versions()
RESULTS = {version: kept(version, "results.json.gz") for version in VERSIONS}
# what kept results say otherwise by now, and are meant to: CHANGELOG.md says what and why
TOLD_SINCE = {version: kept(version, "told_since.json.gz") for version in VERSIONS}
LEDGERS = [(version, name) for version in VERSIONS for name in kept(version, "ledgers.json")]
QUICK = 16  # of so many results one is among the quick ones
KEYS = [
    pytest.param(version, key, marks=[pytest.mark.slow] if number % QUICK else [])
    for version in VERSIONS
    for number, key in enumerate(RESULTS[version])
]
LOCAL = [
    (version, name)
    for version in VERSIONS
    for name in kept(version, "local.json")
    if name != "descent"
]
EACH_LEDGER = pytest.mark.parametrize(("version", "name"), LEDGERS)


def reopened(version: str, name: str, folder: Path) -> Any:
    return dp.Ledger.open(None, path=unpacked(version, name, folder))


def parsed(result: Any) -> Any:
    return json.loads(result.to_json())


# ── ledgers ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.few(2)
@EACH_LEDGER
def test_a_kept_ledger_is_intact_and_holds_what_it_held(
    version: str, name: str, tmp_path: Path
) -> None:
    facts = kept(version, "ledgers.json")[name]
    ledger = reopened(version, name, tmp_path)
    assert ledger.verify().ok, str(ledger.verify())
    found = ledger_facts(ledger)
    assert not differences({field: facts[field] for field in found}, found)
    assert dp.Ledger.open(None, path=tmp_path / f"{name}.ledger", expected_head=facts["head"])


@pytest.mark.few(2)
@EACH_LEDGER
def test_a_kept_ledger_opens_with_its_budget_and_no_other(
    version: str, name: str, tmp_path: Path
) -> None:
    path, kind = unpacked(version, name, tmp_path), KINDS[name]
    assert dp.Ledger.open(kind.budget, path=path, **dict(kind.split)).budget == kind.budget
    with pytest.raises(dp.LedgerRefused):
        dp.Ledger.open(dp.GDP(0.125), path=path)


@pytest.mark.slow
@EACH_LEDGER
def test_other_accountants_price_a_kept_history_alike(
    version: str, name: str, tmp_path: Path
) -> None:
    facts = kept(version, "ledgers.json")[name]
    assert not differences(facts["replays"], replay_facts(reopened(version, name, tmp_path)))


@pytest.mark.slow
@EACH_LEDGER
def test_every_paid_request_repeats_its_answer(version: str, name: str, tmp_path: Path) -> None:
    ledger = reopened(version, name, tmp_path)
    head, entries = ledger.head, ledger.entries()
    answers = {entry.key: entry.body for entry in entries if entry.kind == "answer"}
    for entry in entries:
        if entry.kind == "debit":
            again = ledger.debit(key=entry.key, request=entry.request, price=entry.amounts.exact())
            assert not again.fresh
            assert again.answer == answers.get(entry.key)
    assert ledger.head == head


@pytest.mark.slow
@EACH_LEDGER
def test_the_same_question_with_its_key_is_free(version: str, name: str, tmp_path: Path) -> None:
    ledger, kind = reopened(version, name, tmp_path), KINDS[name]
    session, head = data_set(version, kind).open(ledger=ledger), ledger.head
    asked, refused = 0, list[str]()
    for key, ask, spend in questions(kind):
        record = RESULTS[version].get(f"{name}/{key}")
        if record is None:
            continue
        try:
            result = ask(session, spend, key=key)
        except (dp.LedgerRefused, dp.BudgetExceeded):
            # asked otherwise since: another question under a paid key, or (a fit whose first step
            # is another one) out of a reservation that is closed
            refused.append(key)
            continue
        assert not differences(unfilled(json.loads(record["json"])), unfilled(parsed(result)))
        asked += 1
    assert asked > len(refused), refused
    assert ledger.head == head
    assert asked > 30  # of units, fewer: their spread is asked for beside means, shares and tables


@pytest.mark.few(2)
@EACH_LEDGER
def test_a_debit_that_was_never_answered_is_finished_for_free(
    version: str, name: str, tmp_path: Path
) -> None:
    ledger, kind = reopened(version, name, tmp_path), KINDS[name]
    first = kept(version, "ledgers.json")[name]["unfinished"]
    spent, entries = ledger.spent(), len(ledger.entries())
    session = data_set(version, kind).open(ledger=ledger)
    ask, spend = next((ask, spend) for key, ask, spend in questions(kind) if key == first)
    if name.endswith("-unit") and first == "count/gdp":
        with pytest.raises(dp.LedgerRefused):  # asked otherwise since: nothing is spent on it
            ask(session, spend, key=f"{first} unfinished")
        assert (ledger.spent(), len(ledger.entries())) == (spent, entries)
        return
    result = ask(session, spend, key=f"{first} unfinished")
    assert result.release.key == f"{first} unfinished"
    assert ledger.spent() == spent
    assert len(ledger.entries()) == entries + 1
    assert ledger.verify().ok


@pytest.mark.few(2)
@EACH_LEDGER
def test_kept_reservations_can_be_closed(version: str, name: str, tmp_path: Path) -> None:
    ledger = reopened(version, name, tmp_path)
    free, aside = ledger.remaining().exact(), ledger.reserved().exact()
    for reservation in ledger.open_reservations():
        ledger.close_reservation(reservation)
    assert ledger.open_reservations() == []
    assert ledger.remaining().exact() == free + aside
    assert ledger.verify().ok


# ── results and reports ───────────────────────────────────────────────────────────────────────────


def unfilled(record: Any) -> Any:
    """A record without what later versions say of cells that were filled in and of the levels that
    categories leave out, and without the stated guarantee, which is now the least float.
    """
    if isinstance(record, dict):
        return {
            name: unfilled(part)
            for name, part in record.items()
            if name not in ("filled", "bases", "guarantee")
        }
    return [unfilled(part) for part in record] if isinstance(record, list) else record


@pytest.mark.few(3)
@pytest.mark.parametrize(("version", "key"), KEYS)
def test_a_kept_result_comes_back(version: str, key: str) -> None:
    record = RESULTS[version][key] | TOLD_SINCE[version].get(key, {})
    result = dp.from_json(record["json"])
    assert not differences(json.loads(record["json"]), parsed(result))
    if "figures" in record:  # how it is printed may change, what it says may not
        assert not differences(record["figures"], result_facts(result)["figures"])


@pytest.mark.parametrize(("version", "name"), LOCAL)
def test_a_kept_local_result_comes_back(version: str, name: str) -> None:
    record = kept(version, "local.json")[name]
    result = dp.from_json(record["json"])
    assert not differences(json.loads(record["json"]), parsed(result))
    facts = result_facts(result)
    assert not differences({field: record[field] for field in facts}, facts)
    if "reports" not in record:
        return
    spec = client.read_spec(record["spec"])
    assert json.dumps(spec.to_dict()) == record["spec"]
    assert spec.id == record["id"]
    assert str(local.guarantee(spec)) == record["guarantee"]
    collected = local.collect(spec, record["reports"])
    assert collected.to_json() == record["collected"]
    assert local.Collected.from_json(record["collected"]) == collected
    kind = np.uint8 if isinstance(record["answers"][0], list) else np.int64
    answers = np.array(record["answers"], dtype=kind)
    assert local.collect(spec, answers).to_json() == record["collected answers"]


@pytest.mark.parametrize("version", VERSIONS)
def test_kept_gradient_reports_are_averaged_alike(version: str) -> None:
    record = kept(version, "local.json")["descent"]
    asked = record["request"]
    request = client.GradientRequest(
        asked["round"], tuple(asked["theta"]), asked["loss"], asked["clip"], asked["c"]
    )
    assert request.to_dict() == asked
    reports = [json.loads(text) for text in record["reports"]]
    mean = local.mean_gradient(reports, request)
    found = {"gradient": mean.gradient.tolist(), "noise": mean.noise, "reports": mean.reports}
    assert not differences(record["mean"], found)
    following = local.next_request(reports, request, step_size=1.0)
    assert not differences(record["next"], following.to_dict())


# ── controls: a change is noticed ─────────────────────────────────────────────────────────────────


@EACH_LEDGER
def test_a_changed_byte_of_a_ledger_is_noticed(version: str, name: str, tmp_path: Path) -> None:
    path = unpacked(version, name, tmp_path)
    content = path.read_bytes()
    place = content.rindex(b'"integers":') + len(b'"integers": ["')
    digit = content[place : place + 1]
    other = b"7" if digit != b"7" else b"3"
    path.write_bytes(content[:place] + other + content[place + 1 :])
    assert _noticed(path)


@EACH_LEDGER
def test_a_debit_taken_out_of_a_ledger_is_noticed(version: str, name: str, tmp_path: Path) -> None:
    path = unpacked(version, name, tmp_path)
    with sqlite3.connect(path) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall()
        changed = 0
        for (table,) in tables:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            if {"kind", "key"} <= set(columns):
                for (trigger,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'trigger'"
                ).fetchall():
                    connection.execute(f"DROP TRIGGER {trigger}")
                rows = f"DELETE FROM {table} WHERE kind = 'debit' AND key LIKE '%reserved'"
                changed += connection.execute(rows).rowcount
    connection.close()
    assert changed == 1
    assert _noticed(path)


def _noticed(path: Path) -> bool:
    try:
        return not dp.Ledger.open(None, path=path).verify().ok
    except dp.LedgerRefused:
        return True


@pytest.mark.parametrize("version", VERSIONS)
def test_a_changed_number_of_a_result_is_noticed(version: str) -> None:
    record = RESULTS[version]["gdp/mean/gdp"]
    text = json.loads(record["json"])
    whole = [int(number) for number in text["integers"]]
    text["integers"][0] = str(whole[0] + max(map(abs, whole)) // 500)
    facts = result_facts(dp.from_json(json.dumps(text)))
    assert differences({field: record[field] for field in facts}, facts)
    assert differences(json.loads(record["json"]), text)
    assert differences(json.loads(record["json"]), text, iterative=True)
    assert not differences(text, text)


def test_comparisons_see_what_they_should() -> None:
    assert differences({"a": 1.0}, {"a": 1.0 + 2.0**-52}, exact=True)
    assert not differences({"a": 1.0}, {"a": 1.0 + 2.0**-52}, exact=False)
    assert differences({"a": 1.0}, {"a": 1.0 + 1e-8}, exact=False)
    assert differences({"a": 1}, {"a": 2}, exact=False)
    assert differences({"a": "12"}, {"a": "13"}, exact=False)
    assert differences({"text": "mean 1.25"}, {"text": "mean 1.27"}, exact=False)
    assert not differences({"text": "mean 1.25"}, {"text": "mean 1.26"}, exact=False)
    assert differences({"text": "mean 1.25"}, {"text": "mode 1.25"}, exact=False)
    assert differences({"a": [1, 2]}, {"a": [1]}, exact=False)
    assert differences({"a": 1}, {"b": 1}, exact=False)
    assert not differences({"a": float("nan")}, {"a": float("nan")}, exact=True)
