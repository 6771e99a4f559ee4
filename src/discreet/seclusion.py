"""Sections of a thread out of which nothing is seen: no warning, print, log, flag or exception.

Between a debit and its answer code runs on private cells, and whatever it says beside the answer
would be a release without noise: a warning that a product overflowed tells that a cell was large. A
secluded section says nothing, whatever the process is told to do with warnings.

    warnings      the filters that a secluded thread finds ignore everything, even under -W error
    numpy         floating-point errors are ignored; each thread has a state of its own
    print         sys.stdout and sys.stderr drop what a secluded thread writes
    logging       no level is enabled for a secluded thread, and no record of it is handled
    __del__       an exception that nobody can catch is dropped
    exceptions    `aside` gives FAILED for every one of them; an interrupt from the keyboard is
                  raised anew, without what it interrupted

All other threads of the process keep what they have. Nothing of theirs is saved and put back, so
that sections of several threads cannot put back each other's: filters stay the list they are, and
what is exchanged (the class of the module `warnings`, the streams, three functions of logging, the
hook for exceptions that cannot be raised) passes on what comes from threads that are not secluded,
and goes back when the last section ends.

Not held back: what native code writes to a file descriptor, and what is written to a stream object
that was kept from before (docs/known-limits.md).

Checked.  tests/claims/test_nothing_is_seen.py
"""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

Answer = TypeVar("Answer")


class Failed:
    """What `aside` gives for work that raised: nothing of what it raised is kept."""

    def __repr__(self) -> str:
        return "FAILED"


FAILED: Final = Failed()


def aside(work: Callable[[], Answer]) -> Answer | Failed:
    """work() in a secluded section, or FAILED.

    Theorem.  What leaves is the answer of `work`, FAILED, or an interrupt without context and
              without a frame of `work`.
    Proof.    Every exception is caught here, and dropped with its frames before anything is
              raised or returned.
    Checked.  tests/claims/test_nothing_is_seen.py::test_every_failure_looks_the_same
    """
    interrupted, depth = False, getattr(_here, "depth", 0)
    try:
        with Secluded():
            return work()
    except KeyboardInterrupt:
        interrupted = True
    except BaseException:
        pass  # even an exit: whether it came may depend on a cell
    finally:
        _here.depth = depth  # an interrupt can come while a section ends
    if interrupted:
        raise KeyboardInterrupt
    return FAILED


class Secluded:
    """A section of this thread: `with Secluded(): ...`. Sections nest, in any thread."""

    __slots__ = ("_errors",)

    def __enter__(self) -> None:
        self._errors = np.errstate(all="ignore")
        self._errors.__enter__()
        _enter()
        _here.depth = getattr(_here, "depth", 0) + 1

    def __exit__(self, *_: object) -> None:
        _here.depth -= 1
        _leave()
        self._errors.__exit__(None, None, None)


def seclude_worker() -> None:
    """Secludes a thread of a pool for all of its life.

    The thread that asks is in a section as long as the pool works (`in_threads`).
    """
    np.seterr(all="ignore")
    _here.depth = 1


class Sealed:
    """A private statistic on its way from the engine to the draw.

    It prints nothing, is not copied, and is empty once it was taken.
    """

    __slots__ = ("_content",)

    def __init__(self, statistic: Any) -> None:
        self._content = [statistic]

    def take(self) -> Any:
        return self._content.pop()

    def __repr__(self) -> str:
        return "Sealed()"

    def __reduce__(self) -> Any:
        raise TypeError("a private statistic is not copied")


_here = threading.local()  # depth: in how many sections this thread is


def secluded() -> bool:
    """Whether this thread is in a section."""
    return getattr(_here, "depth", 0) > 0


# ── what is exchanged while any section is open ─────────────────────────────────────────────────

_SILENT: list[Any] = [("ignore", None, Warning, None, 0)]
_OWN = ("warnings", "_py_warnings")  # where `catch_warnings` is
_STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")
_lock = threading.RLock()
_open = 0
_undo: list[Callable[[], None]] = []


def _enter() -> None:
    """Exchanges what is not exchanged, and only then counts the section.

    An interrupt can come between any two lines: what it leaves is exchanged for nobody, which
    passes everything on and is put back by the next section that ends, never a section that is
    counted and not exchanged.
    """
    global _open
    with _lock:
        _exchange_filters()
        for name in _STREAMS:
            _exchange_stream(name)
        if not _undo or _open == 0:
            _exchange_functions()
        _open += 1


def _leave() -> None:
    global _open
    with _lock:
        _open = max(_open - 1, 0)
        if _open == 0:
            _put_back()


def _put_back() -> None:
    while _undo:
        _undo[-1]()
        _undo.pop()
    for name in _STREAMS:
        while type(getattr(sys, name)) is _Stream:
            setattr(sys, name, object.__getattribute__(getattr(sys, name), "_stream"))
    if type(warnings) is _Warnings:
        # its type is known to be another
        setattr(warnings, "__class__", types.ModuleType)  # noqa: B010


def _in_child() -> None:
    """After a fork one thread is left: its own sections go on, and those of all others are over."""
    global _open, _lock
    _lock = threading.RLock()
    _open = getattr(_here, "depth", 0)
    if not _open:
        _put_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class _Warnings(types.ModuleType):
    """The module `warnings`, whose filters depend on the thread that warns.

    Python looks up `warnings.filters` for every warning. The module's own functions find the real
    list, so that a library that saves and restores it (`catch_warnings`) restores what there is.
    """

    @property
    def filters(self) -> Any:
        if secluded() and sys._getframe(1).f_globals.get("__name__") not in _OWN:
            return _SILENT
        return self.__dict__["filters"]

    @filters.setter
    def filters(self, filters: Any) -> None:
        self.__dict__["filters"] = filters


def _exchange_filters() -> None:
    if type(warnings) is not _Warnings:
        warnings.__class__ = _Warnings


class _Nothing(io.RawIOBase):
    """A file that drops what is written to it."""

    def writable(self) -> bool:
        return True

    def write(self, text: Any) -> int:
        return len(text)


class _Stream:
    """A stream that drops what secluded threads write; to all others it is what it stands for."""

    __slots__ = ("_dropped", "_stream")

    def __init__(self, stream: Any) -> None:
        object.__setattr__(self, "_stream", stream)
        nowhere = io.BufferedWriter(_Nothing())
        dropped = io.TextIOWrapper(nowhere, encoding="utf-8", errors="replace", write_through=True)
        object.__setattr__(self, "_dropped", dropped)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dropped if secluded() else self._stream, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._dropped if secluded() else self._stream, name, value)

    def __iter__(self) -> Any:
        return iter(self._stream)


def _exchange_stream(name: str) -> None:
    """Also a stream that somebody set while a section was open."""
    before = getattr(sys, name)
    if before is not None and type(before) is not _Stream:
        setattr(sys, name, _Stream(before))


def _exchange_functions() -> None:
    """Logging and the hook, once: what an interrupted section left is put back first."""
    while _undo:
        _undo[-1]()
        _undo.pop()
    _exchange_logging()
    _exchange_hook()


def _exchange_logging() -> None:
    """In a secluded thread no level is enabled, nothing is handled, and nothing sets logging up."""
    enabled, handled, set_up = (
        logging.Logger.isEnabledFor,
        logging.Logger.handle,
        logging.basicConfig,
    )

    def is_enabled_for(self: logging.Logger, level: int) -> bool:
        return not secluded() and enabled(self, level)

    def handle(self: logging.Logger, record: logging.LogRecord) -> None:
        if not secluded():
            handled(self, record)

    def basic_config(**options: Any) -> None:
        if not secluded():
            set_up(**options)

    _exchange(logging.Logger, "isEnabledFor", is_enabled_for)
    _exchange(logging.Logger, "handle", handle)
    _exchange(logging, "basicConfig", basic_config)


def _exchange_hook() -> None:
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if not secluded():
            before(unraisable)

    _exchange(sys, "unraisablehook", hook)


def _exchange(owner: Any, name: str, new: Any) -> None:
    """Sets an attribute, and remembers before how the old one is put back,
    unless another was set meanwhile.
    """
    before = getattr(owner, name)

    def undo() -> None:
        if getattr(owner, name) is new:
            setattr(owner, name, before)

    _undo.append(undo)
    setattr(owner, name, new)
