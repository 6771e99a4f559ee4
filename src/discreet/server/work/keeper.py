"""The keeper: listens where web processes ask, and hands jobs to a pool of processes.

Its sweeper closes studies whose time is over, and looks for paid questions that have no answer,
whoever admitted them and whatever crashed since, and puts them in the same queue; it is why a debit
is never the last that is heard of a question.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
from typing import Any

from discreet.errors import DiscreetError
from discreet.server.settings import Settings, settings_from_json
from discreet.server.store.database import Database
from discreet.server.store.opening import open_database
from discreet.server.trees import open_trees
from discreet.server.work.asked import LONGEST_LINE, send
from discreet.server.work.pool import Pool
from discreet.server.work.queue import Job

YOUNG = 2.0  # seconds that a question is left to the one who admitted it
LOOK_SEAT = "a look at a source"


class Keeper:
    """A socket, a pool and a sweeper."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings, self._database = settings, database
        self._trees = open_trees(settings)
        self._pool = Pool(
            settings.to_json(),
            processes=settings.workers,
            seconds=settings.seconds,
            ended=self._ended,
        )
        self._stopping = threading.Event()
        self._retry: dict[str, tuple[float, float]] = {}  # when, and how long is waited then
        self._listeners: list[socket.socket] = []  # told of each question that ends
        self._socket = self._listening()

    def run(self) -> None:
        """Serves until `stop`."""
        threading.Thread(target=self._sweeping, daemon=True).start()
        while not self._stopping.is_set():
            try:
                link, _ = self._socket.accept()
            except OSError:
                break
            threading.Thread(target=self._asked, args=(link,), daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._pool.close()

    def sweep(self, *, whole: bool = False) -> int:
        """Queues paid questions without an answer; `whole`: however old they are."""
        now = time.time()
        oldest = 0.0 if whole else now - 86_400.0
        with self._database.read() as rows:
            found = rows.run(
                "SELECT id, node FROM questions WHERE kind = 'release' AND state = 'asked'"
                " AND asked_at > ? AND asked_at < ? ORDER BY asked_at, id",
                *(oldest, now if whole else now - YOUNG),
            )
        ready = [one for one in found if self._retry.get(one["id"], (0.0, 0.0))[0] <= now]
        return sum(self._queued(one["id"], one["node"]) for one in ready)

    def expire(self) -> int:
        """Closes studies whose end has come: what they did not spend goes back. How many."""
        with self._database.read() as rows:
            found = rows.run(
                "SELECT studies.id AS id, studies.node AS node, datasets.id AS dataset FROM studies"
                " JOIN datasets ON datasets.id = studies.dataset WHERE studies.state = 'open'"
                " AND datasets.state = 'open' AND studies.expires_at <= ?",
                time.time(),
            )
        for one in found:
            self._trees.note(one["dataset"], one["node"], "expired", {"study": one["id"]})
            self._trees.close(one["dataset"], one["node"])
            with self._database.write() as rows:
                rows.changed("UPDATE studies SET state = 'closed' WHERE id = ?", one["id"])
        return len(found)

    def _queued(self, question: str, seat: str) -> bool:
        return self._pool.queue.put(seat, {"id": question, "do": "finish", "question": question})

    def _listening(self) -> socket.socket:
        path = os.fspath(self._settings.socket)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(path)
        os.chmod(path, 0o660)
        listening.listen(128)
        return listening

    def _asked(self, link: socket.socket) -> None:
        with link, link.makefile("rb") as lines:
            try:
                while line := lines.readline(LONGEST_LINE):
                    told = json.loads(line)
                    if told.get("do") == "finish":
                        self._queued(str(told["question"]), str(told["seat"]))
                    elif told.get("do") in ("look", "list"):
                        send(link, self._waited(told))
                    elif told.get("do") == "news":
                        self._listeners.append(link)
            except (OSError, ValueError, KeyError, AttributeError):
                return
            finally:
                with contextlib.suppress(ValueError):
                    self._listeners.remove(link)

    def _waited(self, told: dict[str, Any]) -> dict[str, Any]:
        """A job whose answer is waited for."""
        over, reply = threading.Event(), dict[str, Any]()

        def done(answer: dict[str, Any] | None) -> None:
            reply.update(answer or {"broken": True})
            over.set()

        self._pool.queue.put(LOOK_SEAT, {**told, "id": f"look {id(over)}", "reply": done})
        over.wait(self._settings.seconds * 2)
        return reply or {"broken": True}

    def _ended(self, job: Job, told: dict[str, Any] | None) -> None:
        if job["do"] != "finish":
            job["reply"](told)
            return
        if told is None or "broken" in told:
            _, waited = self._retry.get(job["id"], (0.0, 0.5))
            pause = min(2 * waited, 3600.0)
            self._retry[job["id"]] = time.time() + pause, pause
            self._note_failed(job["id"])
        else:
            self._retry.pop(job["id"], None)
        for link in [*self._listeners]:
            with contextlib.suppress(OSError):  # one that does not read hears no more of it
                link.send(f"{job['id']}\n".encode(), socket.MSG_DONTWAIT)

    def _note_failed(self, question: str) -> None:
        """A process died of a question: whoever asked it is told so when the answer was due."""
        with contextlib.suppress(Exception), self._database.write() as rows:
            rows.changed(
                "UPDATE questions SET state = 'failed', finished_at = ? WHERE id = ?"
                " AND state = 'asked'",
                *(time.time(), question),
            )

    def _sweeping(self) -> None:
        whole = True
        while not self._stopping.is_set():
            with contextlib.suppress(Exception):  # the database may be away for a while
                self.sweep(whole=whole)
                whole = False
                self.expire()
            self._stopping.wait(self._settings.sweep)


def main() -> None:
    """``python -m discreet.server.work.keeper``: settings on the first line; ends with its pipe."""
    settings = settings_from_json(sys.stdin.readline())
    try:
        keeper = Keeper(settings, open_database(settings))
    except DiscreetError as error:  # the database may be away: it is started again
        sys.exit(f"workers do not start: {error.found}")

    def until_the_pipe_ends() -> None:
        sys.stdin.read()
        keeper.stop()
        os._exit(0)

    threading.Thread(target=until_the_pipe_ends, daemon=True).start()
    keeper.run()


if __name__ == "__main__":
    main()
