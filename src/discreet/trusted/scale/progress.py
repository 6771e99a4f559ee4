"""The share of a pass that is done, and the time left, on the terminal of whoever started it.

Nothing is shown of a pass below two seconds, where standard error is no terminal, and in a service.
Shown is a share of row groups, of a CSV file's blocks or of buckets of units, never how many there
are; of streams and databases, whose end nobody knows, how many passes came to their end and for how
long this one has run: it tells what a clock tells (docs/known-limits.md).
"""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

QUIET, BETWEEN = 2.0, 0.5  # seconds of a pass without a word, and from one word to the next
Item = TypeVar("Item")
clock = time.monotonic
_silent: set[int] = set()  # processes in which nothing is shown


def silence() -> None:
    """Nothing is shown in this process from now on."""
    _silent.add(os.getpid())


class About(Iterator[Any]):
    """Items of which there are about so many."""

    def __init__(self, items: Iterator[Any], count: int) -> None:
        self._items, self._count = items, count

    def __next__(self) -> Any:
        return next(self._items)

    def __length_hint__(self) -> int:
        return self._count


def watched(items: Iterable[Item], count: int | None = None, passes: int = 0) -> Iterator[Item]:
    """The same items; that one is asked for says that those before it are done or under way.

    There are `count` of them, or as many as they say themselves (0: nobody knows, and `passes` over
    the same data are done).
    """
    count = operator.length_hint(items) if count is None else count
    if count == 1 or not watching():
        yield from items
        return
    start = last = clock()
    try:
        for done, item in enumerate(items):
            now = clock()
            if done and now - start >= QUIET and now - last >= BETWEEN:
                last, share = now, min(done / count, 0.99) if count else 0.0
                tell(share, (now - start) * (1 / share - 1) if count else now - start, passes)
            yield item
    finally:
        if last > start:
            wipe()


def watching() -> bool:
    """Whether somebody at a terminal is told."""
    return os.getpid() not in _silent and os.isatty(2)


def wipe() -> None:
    """Takes the line away."""
    os.write(2, b"\r\x1b[K")


def tell(share: float, seconds: float, passes: int) -> None:
    """One line, written over the one before; nothing waits for it."""
    text = f"{share:.0%} of a pass over the data, about {seconds:.0f} s left"
    if not share:
        text = f"{passes} passes over the data done, the next one since {seconds:.0f} s"
    os.write(2, f"\r{text}\x1b[K".encode())
