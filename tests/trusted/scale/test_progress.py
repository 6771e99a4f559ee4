"""Shares of long passes on a terminal: never of short ones, never a number, never in a service."""

from __future__ import annotations

import itertools
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.trusted.engines import batches
from discreet.trusted.scale import progress
from discreet.trusted.scale.progress import About, silence, watched


@pytest.fixture
def terminal(monkeypatch):
    """What is written to a terminal, on which a second goes by between two tasks."""
    written, isatty, write = [], os.isatty, os.write
    monkeypatch.setattr(progress, "clock", itertools.count().__next__)
    monkeypatch.setattr(os, "isatty", lambda place: place == 2 or isatty(place))
    monkeypatch.setattr(
        os,
        "write",
        lambda place, text: written.append(text.decode()) if place == 2 else write(place, text),
    )
    return written


def test_shares_are_shown_from_two_seconds_on(terminal):
    assert [*watched(iter(range(5)), 5)] == [*range(5)]
    assert terminal[0] == "\r20% of a pass over the data, about 8 s left\x1b[K"
    assert [text.split("%")[0] for text in terminal[:-1]] == ["\r20", "\r40", "\r60", "\r80"]
    assert terminal[-1] == "\r\x1b[K"  # the line is cleared


def test_short_passes_and_passes_of_one_task_show_nothing(terminal, monkeypatch):
    assert [*watched(iter(range(1)), 1)] == [0]
    monkeypatch.setattr(progress, "QUIET", 10.0)
    assert [*watched(iter(range(5)), 5)] == [*range(5)]
    assert [*watched(one for one in range(5))] == [*range(5)]
    assert terminal == []


def test_more_tasks_than_were_said_are_no_more_than_the_whole(terminal):
    assert [*watched(About(iter(range(9)), 3))] == [*range(9)]
    assert [text.split("%")[0] for text in terminal[:-1]] == ["\r33", "\r67", *["\r99"] * 6]


def test_streams_tell_passes_that_are_done_and_how_long_this_one_runs(terminal):
    batches_of_rows = [pa.record_batch({"x": np.linspace(0, 1, 90)})] * 7
    data = dp.from_batches(
        lambda columns: batches_of_rows, schema={"x": dp.Real(0, 1)}, neighbors=dp.AddRemove()
    )
    session = data.open(budget=dp.GDP(9))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(batches, "BATCH_ROWS", 100)
        for _ in range(2):
            dp.mean(session, "x", spend=dp.GDP(1))
    told = {re.sub(r"\d+ s", "so many s", text) for text in terminal if text != "\r\x1b[K"}
    assert told == {
        f"\r{passes} passes over the data done, the next one since so many s\x1b[K"
        for passes in range(2)
    }


def test_csv_tells_a_share_of_its_blocks(terminal, tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.trusted.extensions.csv_files.BLOCK", 400)
    monkeypatch.setattr("discreet.trusted.scale.files.CSV_BLOCK", 400)
    path = tmp_path / "a.csv"
    path.write_text("x\n" + "0.25\n" * 800)
    data = dp.read_csv(path, schema={"x": dp.Real(0, 1)}, neighbors=dp.AddRemove())
    dp.mean(data.open(budget=dp.GDP(9)), "x", spend=dp.GDP(1))
    shares = [int(text[1:].split("%")[0]) for text in terminal if "%" in text]
    assert shares == sorted(shares)
    assert len(shares) > 5
    assert shares[-1] >= 90


def test_a_service_and_a_file_show_nothing(terminal, monkeypatch):
    monkeypatch.setattr(progress, "_silent", set())
    silence()
    assert [*watched(iter(range(5)), 5)] == [*range(5)]
    monkeypatch.setattr(progress, "_silent", set())
    monkeypatch.setattr(os, "isatty", lambda place: False)
    assert [*watched(iter(range(5)), 5)] == [*range(5)]
    assert terminal == []


@pytest.mark.parametrize(
    "neighbors", [dp.AddRemove(), dp.AddRemove(unit="id", max_rows=1)], ids=str
)
def test_a_question_shows_shares_alone(neighbors, terminal, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 100)
    rows = 777
    table = pa.table({"x": np.linspace(0, 1, rows), "id": np.arange(rows)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=131_072 // 1000)
    monkeypatch.setattr("discreet.trusted.scale.parquet_files.TASK_ROWS", 100)
    data = dp.read_parquet(tmp_path / "a.parquet", schema={"x": dp.Real(0, 1)}, neighbors=neighbors)
    session = data.open(budget=dp.GDP(9))
    for _ in range(2):
        dp.mean(session, "x", spend=dp.GDP(1))
    shown = [text for text in terminal if text != "\r\x1b[K"]
    assert shown
    pattern = r"\r\d\d% of a pass over the data, about \d+ s left\x1b\[K"
    assert all(re.fullmatch(pattern, text) for text in shown)


def test_processes_of_a_service_are_silent_before_they_open_data():
    from discreet.server.work import child

    names = child.main.__code__.co_names
    assert "silence" in names
    assert names.index("silence") < names.index("room_of")
