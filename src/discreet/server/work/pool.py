"""Processes that open data, each within limits: one question at a time, so much memory, so long.

A process that takes too long is killed and another one takes its place; the debit stands, and the
same key finishes the question later. Nothing that a process writes is kept: neither its output nor
a memory image, which could hold rows.
"""

from __future__ import annotations

import contextlib
import json
import resource
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from discreet.server.work.queue import FairQueue, Job

ENTRY = "discreet.server.work.child"


class Child:
    """One process, started again after each of its ends."""

    def __init__(self, settings: str) -> None:
        self._settings, self._lock, self._closed = settings, threading.RLock(), False
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, job: dict[str, Any], seconds: float) -> dict[str, Any] | None:
        """What the process answers; None where it took too long, or died twice: it may have been
        dead before it was asked.
        """
        until = time.monotonic() + seconds
        for _ in range(2):
            try:
                process = self._alive()
                assert process.stdin is not None
                process.stdin.write(json.dumps(job).encode() + b"\n")
                process.stdin.flush()
                line = self._line(process, until)
                if line is not None:
                    told: dict[str, Any] = json.loads(line)
                    return told
            except (OSError, ValueError):
                pass
            self.end()
            if time.monotonic() >= until:
                break
        return None

    def begin(self) -> None:
        """Starts the process, so that the first question does not wait for it."""
        with contextlib.suppress(OSError):
            self._alive()

    def close(self) -> None:
        """Kills the process, and starts no other."""
        with self._lock:
            self._closed = True
        self.end()

    def end(self) -> None:
        """Kills the process, if there is one."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def _alive(self) -> subprocess.Popen[bytes]:
        with self._lock:  # what is started while the pool closes is known to `close`
            if self._closed:
                raise OSError("closed")
            if self._process is None or self._process.poll() is not None:
                self.end()
                self._process = subprocess.Popen(
                    [sys.executable, "-m", ENTRY],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,  # it could say something about rows
                )
                assert self._process.stdin is not None
                self._process.stdin.write(self._settings.encode() + b"\n")
                self._process.stdin.flush()
            return self._process

    @staticmethod
    def _line(process: subprocess.Popen[bytes], until: float) -> bytes | None:
        assert process.stdout is not None
        held = bytearray()
        while not held.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                return None
            piece = process.stdout.read1(1 << 16)  # type: ignore[attr-defined]
            if not piece:
                return None
            held += piece
        return bytes(held)


class Pool:
    """So many processes, fed from a fair queue by a thread each."""

    def __init__(
        self,
        settings: str,
        *,
        processes: int,
        seconds: float,
        ended: Callable[[Job, dict[str, Any] | None], None],
    ) -> None:
        self.queue, self._seconds, self._ended = FairQueue(), seconds, ended
        self._children = [Child(settings) for _ in range(processes)]
        self._threads = [
            threading.Thread(target=self._serve, args=(child,), daemon=True)
            for child in self._children
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Ends all processes."""
        self.queue.close()
        for child in self._children:
            child.close()

    def _serve(self, child: Child) -> None:
        child.begin()
        while (job := self.queue.take()) is not None:
            told = child.ask({name: job[name] for name in job if name != "reply"}, self._seconds)
            try:
                self._ended(job, told)
            finally:
                self.queue.done(job)


def limit_resources(memory: int) -> None:
    """Limits of this process: its memory, and no image of it on disk."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
