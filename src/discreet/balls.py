"""Working precision of ball arithmetic, for one thread at a time.

python-flint keeps the precision in one place per process. A ball encloses the true value at every precision, so another
thread that changes it meanwhile can only make an answer less sharp, never wrong; the lock keeps our own threads apart.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flint import ctx

_state = {"lock": threading.RLock()}
os.register_at_fork(after_in_child=lambda: _state.update(lock=threading.RLock()))


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with `bits` bits inside the block."""
    with _state["lock"]:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before
