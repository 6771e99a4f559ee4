"""A process that opens data: settings on its first line, then a job a line, and a word back.

``python -m discreet.server.work.child`` is started by the keeper and by nobody else.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from discreet.errors import DiscreetError
from discreet.server.settings import settings_from_json
from discreet.server.store.opening import open_database
from discreet.server.trees import open_trees
from discreet.server.work.asked import refusal_words
from discreet.server.work.pool import limit_resources
from discreet.server.work.room import Room, room_of
from discreet.trusted.scale.progress import silence

BROKEN = {"broken": True}


def answered(room: Room, job: dict[str, Any]) -> dict[str, Any]:
    """What comes of a job; of a failure that is no refusal only that there was one."""
    try:
        if job["do"] == "finish":
            return {"state": room.finish(job["question"])}
        if job["do"] == "look":
            return room.look(job["declared"])
        if job["do"] == "list":
            return {"sources": room.listed()}
    except DiscreetError as error:
        if job["do"] != "finish":
            return {"refused": refusal_words(error)}
    except Exception:  # its text could say something about rows
        pass
    return BROKEN


def main() -> None:
    """Serves jobs until the pipe ends; what else is written to standard output goes nowhere."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    settings = settings_from_json(sys.stdin.readline())
    limit_resources(settings.memory)
    silence()
    database = open_database(settings)
    room = room_of(settings, database, open_trees(settings), time.time)
    for line in sys.stdin:
        replies.write(json.dumps(answered(room, json.loads(line))) + "\n")


if __name__ == "__main__":
    main()
