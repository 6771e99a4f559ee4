"""No test here may hang: a limit for Python code,
and a harder one for code that does not come back to it.
"""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Iterator

import pytest

LIMIT = 300  # seconds a test; the slowest takes about three, and a busy machine ten times as long


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"still running after {LIMIT} seconds")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    faulthandler.dump_traceback_later(2 * LIMIT, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
