"""The share of tasks that are done, of a session that says so; real ones in spark_sessions.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from discreet.trusted.cluster import progress as ours
from discreet.trusted.scale import progress


@pytest.fixture
def told(monkeypatch):
    said, times = [], iter(range(100))
    monkeypatch.setattr(progress, "tell", lambda share, left, _: said.append((share, left)))
    monkeypatch.setattr(progress, "wipe", lambda: said.append("wiped"))
    monkeypatch.setattr(progress, "clock", lambda: float(next(times)))
    return said


def test_shares_are_told_after_two_seconds_and_never_none_or_all(told):
    share = ours.Share()  # at second 0
    for stages in ([(1, 4)], [(1, 4)], [], [(0, 9)], [(4, 4), (1, 1)], [(4, 4), (1, 4)]):
        share(stages)
    share.end()
    assert told == [(0.25, 6.0), (0.625, pytest.approx(3.6)), "wiped"]


def test_connect_tells_by_itself_and_is_asked_no_longer_than_a_pass(told, monkeypatch):
    monkeypatch.setattr(progress, "watching", lambda: True)
    handlers = []
    session = SimpleNamespace(
        registerProgressHandler=handlers.append, removeProgressHandler=handlers.remove
    )
    with ours.shown(SimpleNamespace(sparkSession=session)):
        for done in (None, 1, 2):
            stage = SimpleNamespace(num_completed_tasks=done, num_tasks=8)
            handlers[0](stages=done and [stage], inflight_tasks=1, operation_id=None, done=False)
    assert [share for share, _ in told[:-1]] == [1 / 8, 2 / 8]
    assert handlers == []


def test_nothing_is_asked_of_a_session_that_nobody_watches(monkeypatch):
    monkeypatch.setattr(progress, "watching", lambda: False)
    with ours.shown(None):
        pass
    assert not progress.watching()
