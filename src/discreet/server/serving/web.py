"""A web process: the routes on a socket that it is handed. It is never told where data lie.

``python -m discreet.server.serving.web`` is started by the supervisor, with its settings on the
first line; it ends with its pipe.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

import uvicorn

from discreet.errors import DiscreetError
from discreet.server.api.app import make_app
from discreet.server.desk.desk import open_desk
from discreet.server.settings import settings_from_json

KEEP_ALIVE = 75  # seconds


def serve_on(listening: socket.socket, settings_text: str) -> uvicorn.Server:
    """A server of the routes, which `run` starts."""
    app = make_app(open_desk(settings_from_json(settings_text)))
    config = uvicorn.Config(
        app,
        log_level="critical",  # an access log would say who asked what, and when
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=3,
        lifespan="off",
    )
    return uvicorn.Server(config)


def main() -> None:
    """Serves on the socket of file descriptor 3 until the pipe ends."""
    told = sys.stdin.readline()
    listening = socket.socket(fileno=int(os.environ["DISCREET_SOCKET"]))
    try:
        server = serve_on(listening, told)
    except DiscreetError as error:  # the database may be away: it is started again
        sys.exit(f"a web process does not start: {error.found}")

    def until_the_pipe_ends() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=until_the_pipe_ends, daemon=True).start()
    server.run(sockets=[listening])


if __name__ == "__main__":
    main()
