"""The share of a pass that is done, and the time left, on the terminal of whoever started it.

Nothing is shown of a pass below two seconds, of one whose tasks are not known beforehand (streams,
CSV), where standard error is no terminal, and in a service. Shown is a share of row groups or of
buckets of units, never how many there are: it tells what a clock tells (docs/known-limits.md).
"""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Iterator
from typing import TypeVar

QUIET, BETWEEN = 2.0, 0.5  # seconds of a pass without a word, and from one word to the next
Item = TypeVar("Item")
clock = time.monotonic
_silent: set[int] = set()  # processes in which nothing is shown


def silence() -> None:
    """Nothing is shown in this process from now on."""
    _silent.add(os.getpid())


def watched(items: Iterator[Item], count: int | None = None) -> Iterator[Item]:
    """The same items; that one is asked for says that those before it are done or under way.

    There are `count` of them, or as many as they say themselves.
    """
    count = operator.length_hint(items) if count is None else count
    if count < 2 or not watching():
        yield from items
        return
    start = last = clock()
    try:
        for done, item in enumerate(items):
            now = clock()
            if done and now - start >= QUIET and now - last >= BETWEEN:
                last = now
                tell(done / count, (now - start) * (count - done) / done)
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


def tell(share: float, left: float) -> None:
    """One line, written over the one before; nothing waits for it."""
    os.write(2, f"\r{share:.0%} of a pass over the data, about {left:.0f} s left\x1b[K".encode())
