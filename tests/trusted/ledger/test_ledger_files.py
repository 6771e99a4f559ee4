"""Ledger files: opening again, refusing what is not understood, noticing what was changed."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.accounting.guarantees import GDP, ApproxDP, PureDP
from discreet.errors import InsecureNoise, InvalidParameter, LedgerRefused
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.ledger.opening import verify_file
from discreet.trusted.ledger.sqlite import FORMAT, SCHEMA
from discreet.trusted.losses.pricing import Price

TENTH = Price(epsilon=Fraction(1, 10))
TABLES = {"entries": "number", "balance": "only_row", "reservations": "key"}


@pytest.fixture
def story(tmp_path: Path) -> Path:
    """A file with every kind of entry in it."""
    path = tmp_path / "story.ledger"
    ledger = Ledger.open(PureDP(1), path=path)
    ledger.debit(key="first", request={"query": "count"}, price=TENTH)
    ledger.store("first", lambda: '{"value":3}')
    with ledger.reserve(Price(epsilon=Fraction(3, 10)), key="done") as reservation:
        reservation.debit(key="step", request={"query": "sum"}, price=TENTH)
    ledger.reserve(TENTH, key="left open")
    ledger.debit(key="last", request={"query": "mean"}, price=TENTH)
    return path


def edit(path: Path, *statements: tuple[str, tuple[object, ...]]) -> None:
    """Change a file behind the library's back,
    with its constraints and triggers out of the way and put back.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute("PRAGMA synchronous = OFF")  # nothing is lost here but time
    triggers = [sql for sql in SCHEMA if sql.startswith("CREATE TRIGGER")]
    for trigger in triggers:
        connection.execute(f"DROP TRIGGER {trigger.split()[2]}")
    for statement, values in statements:
        connection.execute(statement, values)
    for trigger in triggers:
        connection.execute(trigger)
    connection.close()


def cells(path: Path) -> list[tuple[str, object, str, object]]:
    connection = sqlite3.connect(path)
    found = []
    for table, identity in TABLES.items():
        cursor = connection.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in cursor.description]
        for row in cursor:
            record = dict(zip(names, row, strict=True))
            found += [(table, record[identity], name, value) for name, value in record.items()]
    connection.close()
    return found


@pytest.mark.slow
def test_every_cell_of_every_row_is_guarded(story: Path, tmp_path: Path) -> None:
    copy, everything = tmp_path / "copy.ledger", cells(story)
    assert verify_file(story).ok
    assert len(everything) > 100
    for table, identity, column, value in everything:
        changed = (
            [value + 1000, "text"]
            if isinstance(value, int)
            else [value[:-1] + chr(ord(value[-1]) ^ 1) if value else "x", 7]  # type: ignore[index]
        )
        for other in changed:
            shutil.copy(story, copy)
            if column in ("number", "only_row") and other == "text":
                continue  # SQLite has no way to store it
            edit(
                copy,
                (f"UPDATE {table} SET {column} = ? WHERE {TABLES[table]} = ?", (other, identity)),
            )
            assert not verify_file(copy).ok, (table, identity, column, other)
            with pytest.raises(LedgerRefused, match="does not verify"):
                Ledger.open(PureDP(1), path=copy)


def test_every_row_is_guarded(story: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.ledger"
    for table, identity, column, _ in cells(story):
        if column == TABLES[table]:
            shutil.copy(story, copy)
            edit(copy, (f"DELETE FROM {table} WHERE {column} = ?", (identity,)))
            assert not verify_file(copy).ok, (table, identity)


@pytest.mark.slow
def test_a_changed_byte_is_noticed_or_changes_nothing(story: Path, tmp_path: Path) -> None:
    """Bytes that SQLite does not use may change; what the ledger says may not."""
    copy, original, told = (
        tmp_path / "copy.ledger",
        story.read_bytes(),
        Ledger.open(None, path=story).entries(),
    )
    pick, noticed = random.Random(7), 0
    for _ in range(150):
        damaged = bytearray(original)
        place = pick.choice([pick.randrange(100), pick.randrange(len(original))])
        damaged[place] ^= pick.randrange(1, 256)
        copy.write_bytes(damaged)
        try:
            entries = Ledger.open(None, path=copy).entries()
        except LedgerRefused:
            noticed += 1
        else:
            assert entries == told, place
        for suffix in ("-wal", "-shm", "-journal"):
            copy.with_name(copy.name + suffix).unlink(missing_ok=True)
    assert noticed > 10


@pytest.mark.parametrize(
    "statement",
    ["UPDATE entries SET body = 'x' WHERE number = 1", "DELETE FROM entries WHERE number = 1"],
)
def test_the_file_itself_refuses_to_change_history(story: Path, statement: str) -> None:
    connection = sqlite3.connect(story)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


def test_the_file_itself_refuses_to_overspend(story: Path) -> None:
    connection = sqlite3.connect(story)
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        connection.execute("UPDATE balance SET spent_epsilon = box_epsilon + 1")
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        connection.execute("UPDATE balance SET reserved_epsilon = box_epsilon - spent_epsilon + 1")
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        connection.execute("UPDATE reservations SET used_epsilon = epsilon + 1")
    connection.close()


def test_a_dropped_trigger_is_noticed(story: Path) -> None:
    connection = sqlite3.connect(story)
    connection.execute("DROP TRIGGER entries_never_change")
    connection.close()
    assert not verify_file(story).ok


def test_a_restored_older_file_is_caught_by_its_head_only(story: Path, tmp_path: Path) -> None:
    older = tmp_path / "older.ledger"
    shutil.copy(story, older)
    ledger = Ledger.open(None, path=story)
    before = ledger.head
    ledger.debit(key="later", request={}, price=TENTH)
    assert Ledger.open(None, path=story, expected_head=before).head == ledger.head
    assert Ledger.open(None, path=older).verify().ok  # the file alone cannot tell
    with pytest.raises(LedgerRefused, match="older copy"):
        Ledger.open(None, path=older, expected_head=ledger.head)


def test_a_file_replaced_while_in_use_is_refused(story: Path, tmp_path: Path) -> None:
    older = tmp_path / "older.ledger"
    shutil.copy(story, older)
    ledger = Ledger.open(None, path=story)
    ledger.debit(key="later", request={}, price=TENTH)
    os.replace(older, story)
    for use in (
        lambda: ledger.debit(key="more", request={}, price=TENTH),
        ledger.spent,
        ledger.verify,
    ):
        with pytest.raises(LedgerRefused, match="replaced"):
            use()


@pytest.mark.parametrize("went_on", [False, True], ids=["older", "another history"])
def test_another_ledger_written_into_the_file_is_refused(
    went_on: bool, story: Path, tmp_path: Path
) -> None:
    """File and log stay those that were opened; their entries do not."""
    copy = tmp_path / "copy.ledger"
    shutil.copy(story, copy)
    ledger = Ledger.open(None, path=story)
    ledger.debit(key="later", request={}, price=TENTH)
    if went_on:
        Ledger.open(None, path=copy).debit(key="another", request={}, price=TENTH)
    with closing(sqlite3.connect(copy)) as source, closing(sqlite3.connect(story)) as target:
        source.backup(target)
    for use in (lambda: ledger.debit(key="more", request={}, price=TENTH), ledger.spent):
        with pytest.raises(LedgerRefused, match="replaced"):
            use()


def test_a_log_that_was_taken_away_is_noticed(story: Path) -> None:
    """Otherwise debits would go on in a log that nobody else can find."""
    ledger = Ledger.open(None, path=story)
    ledger.debit(key="later", request={}, price=TENTH)
    Path(f"{story}-wal").unlink()
    for _ in range(2):
        with pytest.raises(LedgerRefused, match="replaced"):
            ledger.debit(key="more", request={}, price=TENTH)


def test_a_ledger_that_is_let_go_is_one_file(story: Path) -> None:
    """Its log is in the file: a copy of that alone is the whole ledger."""
    assert sorted(story.parent.glob("*")) == [story]
    ledger = Ledger.open(None, path=story)
    assert Path(f"{story}-wal").exists()
    del ledger
    assert sorted(story.parent.glob("*")) == [story]


def test_a_ledger_goes_on_where_it_stopped(story: Path) -> None:
    first, again = Ledger.open(PureDP(1), path=story), Ledger.open(None, path=str(story))
    assert again.budget == PureDP(1)
    assert again.spent().exact() == Price(epsilon=Fraction(3, 10))
    assert again.debit(key="first", request={"query": "count"}, price=TENTH).answer == '{"value":3}'
    again.debit(key="new", request={}, price=TENTH)
    assert first.spent() == again.spent()


def test_the_file_is_readable_by_its_owner_only(story: Path) -> None:
    assert story.stat().st_mode & 0o777 == 0o600


def test_a_budget_or_split_that_differs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "split.ledger"
    Ledger.open(ApproxDP(1, 1e-6), path=path, pure=0.2)
    Ledger.open(ApproxDP(1, 1e-6), path=path, pure=0.2)
    for budget, split in [
        (ApproxDP(1, 1e-6), {}),
        (ApproxDP(2, 1e-6), {"pure": 0.2}),
        (ApproxDP(1, 1e-6), {"pure": 0.2, "delta0": 2e-7}),
        (GDP(1), {}),
        (PureDP(1), {}),
    ]:
        with pytest.raises(LedgerRefused, match="never re-split"):
            Ledger.open(budget, path=path, **split)
    with pytest.raises(InvalidParameter):
        Ledger.open(None, path=path, pure=0.2)


def test_a_box_larger_than_its_budget_is_noticed(tmp_path: Path) -> None:
    """Even where someone rewrote the chain to fit."""
    from dataclasses import replace

    path = tmp_path / "larger.ledger"
    first = Ledger.open(ApproxDP(1, 1e-6), path=path).entries()[0]
    grown = replace(
        first, amounts=replace(first.amounts, mu_squared=first.amounts.mu_squared + 10**6)
    ).after(0, first.previous)
    edit(
        path,
        ("UPDATE entries SET mu_squared = ?, hash = ?", (grown.amounts.mu_squared, grown.hash)),
        ("UPDATE balance SET box_mu_squared = ?, head = ?", (grown.amounts.mu_squared, grown.hash)),
    )
    assert verify_file(path).problems == (
        f"entry 0: its box {grown.amounts} is larger than ε = 1, δ = 1e-06 allows",
    )


def test_a_new_ledger_needs_a_budget_and_has_no_history(tmp_path: Path) -> None:
    path = tmp_path / "new.ledger"
    with pytest.raises(LedgerRefused, match="budget="):
        Ledger.open(None, path=path)
    with pytest.raises(LedgerRefused, match="older copy"):
        Ledger.open(PureDP(1), path=path, expected_head="0" * 64)
    with pytest.raises(LedgerRefused, match="budget="):
        Ledger.open(None)
    with pytest.raises(LedgerRefused, match="no history"):
        Ledger.open(PureDP(1), expected_head="0" * 64)
    with pytest.raises(LedgerRefused):
        Ledger.open(PureDP(1), path=tmp_path / "missing" / "new.ledger")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["", ":memory:", "file:x?mode=memory"])
def test_a_path_names_a_file(path: str) -> None:
    with pytest.raises(LedgerRefused, match="file"):
        Ledger.open(PureDP(1), path=path)


def test_foreign_and_newer_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    text, empty, other, newer, older = (
        tmp_path / name for name in ("text", "empty", "other", "newer", "older")
    )
    text.write_text("not a database, but longer than a header of one hundred bytes" * 4)
    empty.touch()
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    for path, version in ((newer, FORMAT + 1), (older, FORMAT - 1)):
        Ledger.open(PureDP(1), path=path)
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        with pytest.raises(
            LedgerRefused, match=f"has format {version}, and this version reads format {FORMAT}"
        ):
            verify_file(path)
    foreign = tmp_path / "foreign"
    Ledger.open(PureDP(1), path=foreign)
    connection = sqlite3.connect(foreign)
    connection.execute("PRAGMA application_id = 0")
    connection.close()
    for path in (text, empty, other, newer, older, foreign):
        before = path.read_bytes()
        with pytest.raises(LedgerRefused):
            Ledger.open(PureDP(1), path=path)
        assert path.read_bytes() == before


def test_seeded_noise_is_refused_by_a_file_and_marked_in_memory(story: Path) -> None:
    with pytest.raises(InsecureNoise, match="memory"):
        Ledger.open(None, path=story).debit(key="seeded", request={}, price=TENTH, secure=False)
    memory = Ledger.open(PureDP(1))
    memory.debit(key="seeded", request={"query": "count"}, price=TENTH, secure=False)
    assert memory.entries()[1].request == {"query": "count", "secure": False}
    with pytest.raises(LedgerRefused):
        memory.debit(key="seeded", request={"query": "count"}, price=TENTH)


def test_a_relative_path_stays_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.open(PureDP(1), path="with space #1?.ledger")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert ledger.debit(key="asked", request={}, price=TENTH).fresh
    assert str(tmp_path) not in str(ledger) + repr(ledger)


def test_a_file_that_went_on_otherwise_is_refused(story: Path, tmp_path: Path) -> None:
    """As many entries, the same balance, another history."""
    other = tmp_path / "other.ledger"
    shutil.copy(story, other)
    ledger = Ledger.open(None, path=story)
    ledger.debit(key="later", request={}, price=TENTH)
    Ledger.open(None, path=other).debit(key="else", request={}, price=TENTH)
    os.replace(other, story)
    with pytest.raises(LedgerRefused, match="replaced"):
        ledger.debit(key="more", request={}, price=TENTH)
    with pytest.raises(LedgerRefused, match="replaced"):
        ledger.spent()
