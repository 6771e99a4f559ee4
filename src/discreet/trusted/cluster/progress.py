"""The share of a pass's tasks that are done, and the time left, where `scale/progress.py` shows it:
on the terminal of whoever asked, after two seconds, and never a number of tasks or of rows.

A session at hand is asked every half second; one of Spark Connect tells by itself.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from discreet.trusted.scale import progress

GROUP = "spark.jobGroup.id"
_numbers = itertools.count()  # of passes that were watched


class Share:
    """Tells what is done of what is known to be to do."""

    def __init__(self) -> None:
        self._start = self._last = progress.clock()

    def __call__(self, stages: Iterable[tuple[int, int]]) -> None:
        """(tasks that are done, tasks) of each stage."""
        pairs, now = [*stages], progress.clock()
        done, count = (sum(numbers) for numbers in zip(*pairs, strict=True)) if pairs else (0, 0)
        late = now - self._start >= progress.QUIET and now - self._last >= progress.BETWEEN
        if late and 0 < done < count:
            self._last = now
            progress.tell(done / count, (now - self._start) * (count - done) / done, 0)

    def end(self) -> None:
        if self._last > self._start:
            progress.wipe()


@contextlib.contextmanager
def shown(frame: Any) -> Iterator[None]:
    """Shows how far the jobs are that this thread starts inside."""
    if not progress.watching():
        yield
        return
    share, session = Share(), frame.sparkSession
    watch = _at_hand if hasattr(frame, "_jdf") else _connected
    try:
        with watch(session, share):
            yield
    finally:
        share.end()


@contextlib.contextmanager
def _connected(session: Any, share: Share) -> Iterator[None]:
    def told(stages: Any, **_: Any) -> None:
        share((stage.num_completed_tasks, stage.num_tasks) for stage in stages or ())

    session.registerProgressHandler(told)
    try:
        yield
    finally:
        session.removeProgressHandler(told)


@contextlib.contextmanager
def _at_hand(session: Any, share: Share) -> Iterator[None]:
    context, ended, group = session.sparkContext, threading.Event(), f"discreet {next(_numbers)}"
    before = context.getLocalProperty(GROUP)

    def look() -> None:
        while not ended.wait(progress.BETWEEN):
            with contextlib.suppress(Exception):  # a job that ended while it was looked at
                share(_stages(context.statusTracker(), group))

    watcher = threading.Thread(target=look, daemon=True)
    context.setLocalProperty(GROUP, group)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        context.setLocalProperty(GROUP, before)


def _stages(tracker: Any, group: str) -> Iterator[tuple[int, int]]:
    for job in tracker.getJobIdsForGroup(group):
        for stage in getattr(tracker.getJobInfo(job), "stageIds", ()):
            found = tracker.getStageInfo(stage)
            if found is not None:
                yield found.numCompletedTasks, found.numTasks
