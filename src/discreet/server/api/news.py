"""News of questions that ended, from those who open data: an answer that is waited for is looked at
when it is there. Where no news come, it is looked at now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from typing import Any

SILENT, HEARD = (0.002, 0.25), (0.05, 0.5)  # seconds between looks, the first and the longest
MOST_KNOWN = 1000  # questions that ended before anybody waited
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds before the socket is tried again


class News:
    """What is heard of questions that end, in one event loop."""

    def __init__(self, workers: Any) -> None:
        self._path: str | None = getattr(workers, "path", None)  # None: they are in this process
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._over: OrderedDict[str, None] = OrderedDict()
        self._listening: asyncio.Task[None] | None = None
        self.is_heard = False

    async def ended(self, question: str, tries: int, most: float) -> None:
        """Returns when a question has ended, or when it is time for a look; `most`: seconds."""
        self._listen()
        if self._over.pop(question, "none") is None:
            return
        first, longest = HEARD if self.is_heard else SILENT  # a line may be missed
        pause = min(first * 2 ** min(tries, 20), longest)
        event = asyncio.Event()
        self._waiting.setdefault(question, set()).add(event)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), min(pause, most))
        finally:
            self._waiting[question].discard(event)
            if not self._waiting[question]:
                del self._waiting[question]

    def _listen(self) -> None:
        if self._path is not None and (self._listening is None or self._listening.done()):
            self._listening = asyncio.get_running_loop().create_task(self._heard())

    async def _heard(self) -> None:
        pause = FIRST_PAUSE
        while True:
            with contextlib.suppress(OSError, ValueError):
                reader, writer = await asyncio.open_unix_connection(self._path)
                try:
                    writer.write(b'{"do": "news"}\n')
                    await writer.drain()
                    self.is_heard, pause = True, FIRST_PAUSE
                    while line := await reader.readline():
                        self._note(line.decode("ascii", "replace").strip())
                finally:
                    self.is_heard = False
                    writer.close()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _note(self, question: str) -> None:
        events = self._waiting.get(question)
        for event in events or ():
            event.set()
        if not events:
            self._over[question] = None
            while len(self._over) > MOST_KNOWN:
                self._over.popitem(last=False)
