"""A caller's function on random disjoint parts of the data, each part in a process of its own.

Theorem.  Row j of the table is a function of the rows of part j and of what the process held when
          the question was asked; nothing else of the function leaves.
Proof.    A part is run in a fork of this process. What it changes, keeps or breaks ends with it;
          it has no input, its output is dropped, and it is in a session of its own. Its answer is
          written into memory shared with nobody but this process, and marked as written at the
          end; neither that memory nor the one in which answers are kept is there in the fork of
          another part (`_keep_from_forks`). Whatever else it does (it raises, exits, dies, gives no
          number or a wrong number of them) leaves the mark unset, which gives missing values. There
          is no time limit, because a clock would let one part's rows, or another program, decide
          over a part.
Checked.  tests/claims/test_part_outputs.py
"""

from __future__ import annotations

import faulthandler
import functools
import gc
import mmap
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from discreet.neighbors import Replace
from discreet.schema import Category, Column
from discreet.seclusion import Failed, aside
from discreet.specs.aggregation.part_outputs import OutputsPlan
from discreet.trusted.engines.engine import Engine
from discreet.trusted.engines.memory import MemoryEngine, memory_engine_from_arrays
from discreet.trusted.extensions.part_tests import rows_of_parts
from discreet.trusted.noise.source import Source
from discreet.trusted.values import levels_of, number_of

Floats = npt.NDArray[np.float64]
MARK = b"written\n"


def output_table(engine: Engine, plan: OutputsPlan, source: Source) -> MemoryEngine:
    """A table of what the function gave, a row for each part, under row-level Replace."""
    declared = tuple(plan.outputs.values())

    def run(columns: list[npt.NDArray[Any]]) -> Floats:
        return read(plan.function(*columns), declared)

    works = (functools.partial(run, columns) for columns in rows_of_parts(engine, plan, source))
    found = in_processes(Works(works, plan.parts), len(declared))
    table = {
        name: _cells(column, found[:, place])
        for place, (name, column) in enumerate(plan.outputs.items())
    }
    return memory_engine_from_arrays(table, plan.outputs, Replace())


def read(given: Any, declared: tuple[Column, ...]) -> Floats:
    """What a function gave as numbers, codes for levels; a wrong number of them fails."""
    values = [given] if len(declared) == 1 else list(given)
    return np.array(
        [_number(value, column) for value, column in zip(values, declared, strict=True)]
    )


def _number(value: Any, column: Column) -> float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return float(levels_of(column)(value) if isinstance(column, Category) else number_of(value))


def _cells(column: Column, found: Floats) -> npt.NDArray[Any]:
    """Cells of a column, which the engine reads by the total rules."""
    if not isinstance(column, Category):
        return found
    codes = np.where(np.isnan(found), -1, found).astype(np.int64)
    return np.array([*column.levels, None], dtype=object)[codes]


class Works:
    """So many works, each made when its turn comes."""

    def __init__(self, works: Iterator[Callable[[], Floats]], count: int) -> None:
        self._works, self._count = works, count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Callable[[], Floats]]:
        return self._works


def in_processes(works: Works | Sequence[Callable[[], Floats]], width: int) -> Floats:
    """What each work gives, in a process of its own: `width` numbers, or as many NaN.

    As many run at a time as there are processors. On a terminal the number of parts that are done
    is shown, which tells how long they take (docs/known-limits.md).
    """
    kept, shown = mmap.mmap(-1, 8 * width * max(len(works), 1)), os.isatty(2)
    _keep_from_forks(kept)
    found = np.frombuffer(kept, dtype=np.float64)[: width * len(works)].reshape(-1, width)
    found[:] = np.nan
    running: deque[tuple[int, _Process]] = deque()

    def finish() -> None:
        number, process = running.popleft()
        try:
            found[number] = process.answer()
        finally:
            process.end()
        if shown:
            os.write(2, f"\r{number + 1} of {len(works)} parts\x1b[K".encode())

    try:
        for number, work in enumerate(works):
            if len(running) >= (os.cpu_count() or 1):
                finish()
            running.append((number, _Process(work, width)))
        while running:
            finish()
    finally:
        for _, process in running:
            process.end()
    return found.copy()


def _keep_from_forks(shared: mmap.mmap) -> None:
    """Memory that is not there in processes forked from now on (where the system can do that)."""
    with suppress(AttributeError, OSError):  # macOS, and some emulations of Linux, cannot
        shared.madvise(mmap.MADV_DONTFORK)


class _Process:
    """A process that runs one work; of it nothing is seen but the numbers that it gave."""

    def __init__(self, work: Callable[[], Floats], width: int) -> None:
        self._width, self._ended = width, False
        self._shared = mmap.mmap(-1, len(MARK) + 8 * width)
        # an interrupt between the fork and `_alone` would run the caller's program twice
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._child = os.fork()
            if self._child == 0:
                _alone(work, self._shared)
            _keep_from_forks(self._shared)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def answer(self) -> Floats:
        """The numbers, once the process has ended, however it did."""
        with suppress(ChildProcessError):  # somebody else waits for all children
            os.waitpid(self._child, 0)
        self._ended = True
        held = self._shared[:]
        if held[: len(MARK)] != MARK:
            return np.full(self._width, np.nan)
        return np.frombuffer(held, dtype=np.float64, offset=len(MARK))

    def end(self) -> None:
        """Ends the process if it still runs, as it does after an interrupt."""
        if not self._ended:
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
            self.answer()
        self._shared.close()


def _alone(work: Callable[[], Floats], shared: mmap.mmap) -> NoReturn:
    """The life of such a process: whatever happens, it ends here."""
    try:
        os.setsid()  # an interrupt from the keyboard is not for it
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        faulthandler.disable()
        gc.freeze()
        given = aside(work)
        if not isinstance(given, Failed):
            shared[len(MARK) :] = given.tobytes()
            shared[: len(MARK)] = MARK
    finally:
        os._exit(0)
