"""``discreet serve``: a curator's service, and the processes of it that open data alone."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.errors import DiscreetError, InvalidParameter, MissingExtra

_State = Annotated[
    Path, typer.Option("--state", help="The folder of its state: SQLite, socket, keys.")
]
_Database = Annotated[
    str | None, typer.Option("--database", help="A PostgreSQL instead: postgresql://…")
]
_Data = Annotated[
    list[Path] | None,
    typer.Option("--data", help="A folder that data may lie in; may be repeated."),
]
_Connections = Annotated[
    Path | None,
    typer.Option("--connections", help="A TOML file of databases, for workers' eyes alone."),
]
_Key = Annotated[
    Path | None, typer.Option("--pin-key", help="The key of pins; one for all replicas.")
]
_Workers = Annotated[int, typer.Option("--workers", help="Processes that open data.")]
_Memory = Annotated[float, typer.Option("--memory", help="GiB of each; 0 for no limit.")]
_Seconds = Annotated[float, typer.Option("--seconds", help="That one question may take.")]


def serve(
    state: _State = Path("curator"),
    database: _Database = None,
    data: _Data = None,
    connections: _Connections = None,
    host: Annotated[str, typer.Option("--host", help="Where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Where it listens.")] = 8642,
    web: Annotated[int, typer.Option("--web", help="Web processes.")] = 1,
    workers: _Workers = 2,
    memory: _Memory = 8.0,
    seconds: _Seconds = 600.0,
    tick: Annotated[float, typer.Option("--tick", help="Answers leave at its multiples, s.")] = 1.0,
    https: Annotated[
        bool, typer.Option("--https/--http", help="Behind a proxy with TLS: secure cookies.")
    ] = False,
    web_user: Annotated[str | None, typer.Option("--web-user", help="Who talks.")] = None,
    worker_user: Annotated[str | None, typer.Option("--worker-user", help="Who reads.")] = None,
    pin_key: _Key = None,
    pins: Annotated[
        Path | None, typer.Option("--pins", help="A folder for heads of ledgers, on another disk.")
    ] = None,
    receipt_key: Annotated[
        Path | None, typer.Option("--receipt-key", help="What signs receipts; one for all.")
    ] = None,
    oidc: Annotated[
        Path | None, typer.Option("--oidc", help="A TOML file that names an OpenID provider.")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Made-up people and incomes.")] = False,
) -> None:
    """A service that holds data and answers questions about them: pages, and /v1 for programs."""
    try:
        from discreet.server.desk.desk import open_desk
        from discreet.server.serving.demo import demo_data, demo_folder, demo_people
        from discreet.server.serving.supervisor import Supervisor, first_operator
    except ImportError as error:
        raise MissingExtra(str(error.name), "server", "discreet serve") from None
    folders = [*(data or []), *([demo_folder(state)] if demo else [])]
    told = _settings(
        *(state, database, folders, workers, memory, seconds, pin_key),
        connections=None if connections is None else str(connections.resolve()),
        tick=tick,
        secure_cookies=https,
        pins=None if pins is None else str(pins.resolve()),
        receipt_key=None if receipt_key is None else str(receipt_key.resolve()),
        oidc={} if oidc is None else _provider(oidc),
    )
    supervisor = Supervisor(
        told,
        host=host,
        port=port,
        web=web,
        web_user=web_user,
        worker_user=worker_user,
        say=typer.echo,
    )
    supervisor.start()
    try:
        if demo:
            desk = open_desk(told)
            for login, password in demo_people(desk).items():
                typer.echo(f"  {login:10} {password}")
            _once_workers_listen(lambda: demo_data(desk))
        elif (first := first_operator(told)) is not None:
            typer.echo(f"first login: operator, {first} (told this once)")
    except BaseException:
        supervisor.close()
        raise
    supervisor.run()


def work(
    state: _State = Path("curator"),
    database: _Database = None,
    data: _Data = None,
    connections: _Connections = None,
    workers: _Workers = 2,
    memory: _Memory = 8.0,
    seconds: _Seconds = 600.0,
    pin_key: _Key = None,
) -> None:
    """The processes that open data, by themselves: for another user than the web processes'."""
    try:
        from discreet.server.store.opening import open_database
        from discreet.server.work.keeper import Keeper
    except ImportError as error:
        raise MissingExtra(str(error.name), "server", "discreet work") from None
    told = _settings(
        *(state, database, list(data or []), workers, memory, seconds, pin_key),
        connections=None if connections is None else str(connections.resolve()),
    )
    Keeper(told, open_database(told)).run()


def _settings(
    state: Path,
    database: str | None,
    folders: list[Path],
    workers: int,
    memory: float,
    seconds: float,
    pin_key: Path | None,
    **more: Any,
) -> Any:
    from discreet.server.settings import GIB, Settings, folders_of

    return Settings(
        state=str(state.resolve()),
        database=database,
        folders=folders_of(folders),
        workers=workers,
        memory=int(memory * GIB),
        seconds=seconds,
        key_file=None if pin_key is None else str(pin_key.resolve()),
        **more,
    )


def _provider(path: Path) -> dict[str, str]:
    """What a file says of an OpenID provider."""
    words = ("issuer", "client", "secret_file", "claim", "address")
    try:
        told = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        told = {}
    known = all(word in words and type(one) is str for word, one in told.items())
    if not known or not {"issuer", "client", "address"} <= set(told):
        raise InvalidParameter(
            "--oidc",
            "the file is no TOML with issuer, client and address, secret_file and claim",
            "who somebody is must be certain",
            'write for example issuer = "https://login.example.org"',
        )
    return told


def _once_workers_listen(act: Any) -> None:
    """Does something that needs workers, which take a moment to listen."""
    for left in range(100, -1, -1):
        try:
            act()
            return
        except DiscreetError as error:
            if getattr(error, "status", None) != 503 or not left:
                raise
            time.sleep(0.1)
