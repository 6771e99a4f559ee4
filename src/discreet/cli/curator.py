"""``discreet curator``: backups of a service, whether its ledgers are whole, and what is done where
one is an older copy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.errors import DiscreetError, MissingExtra

curator_app = typer.Typer(help="Look after the ledgers of a service.", no_args_is_help=True)
_State = Annotated[Path, typer.Option("--state", help="The folder of its state.")]
_Database = Annotated[str | None, typer.Option("--database", help="Its PostgreSQL: postgresql://…")]
_Pins = Annotated[Path | None, typer.Option("--pins", help="The folder of its pinned heads.")]
_Key = Annotated[
    Path | None, typer.Option("--receipt-key", help="The file of the key of its receipts.")
]


@curator_app.command()
def backup(
    to: Annotated[Path, typer.Argument(help="A new folder.")],
    state: _State = Path("curator"),
    database: _Database = None,
) -> None:
    """Copy the service's database and all ledgers, while it runs; neither keys nor pins."""
    settings = _settings(state, database, None, None)
    try:
        from discreet.server.store.backup import backup_of
    except ImportError as error:
        raise MissingExtra(str(error.name), "server", "discreet curator") from None
    for name, size in backup_of(settings, to):
        typer.echo(f"{name:40} {size} bytes")


@curator_app.command()
def verify(
    state: _State = Path("curator"),
    database: _Database = None,
    pins: _Pins = None,
    receipt_key: _Key = None,
    freeze: Annotated[
        bool, typer.Option("--freeze", help="Shut what is not whole, so that the rest can start.")
    ] = False,
) -> None:
    """Check every ledger against its own lines and against what was pinned; exits with 1 where
    one is not whole.
    """
    from discreet.server.desk.histories import CHANGED, FORGOTTEN

    histories, wrong = _desk(_settings(state, database, pins, receipt_key)).histories, 0
    for told in histories.report():
        found = "is whole"
        if told["older"]:
            found = f"{FORGOTTEN} (at {', '.join(told['older'])})"
        elif told["problems"]:
            found = "; ".join(told["problems"])
        bad = bool(told["older"] or told["problems"])
        wrong += bad
        if bad and freeze:
            histories.shut(told["id"], FORGOTTEN if told["older"] else CHANGED)
            found += "; it is shut now"
        typer.echo(f"{told['id']}  {told['name']}: {found}")
    raise typer.Exit(1 if wrong else 0)


@curator_app.command()
def recover(
    dataset: Annotated[str, typer.Argument(help="The id of a data set.")],
    state: _State = Path("curator"),
    database: _Database = None,
    pins: _Pins = None,
    receipt_key: _Key = None,
    receipts: Annotated[
        list[Path] | None,
        typer.Option("--receipts", help="A client's file of receipts; may be repeated."),
    ] = None,
) -> None:
    """Count as spent what an older copy forgot, and open the data set again; stop the service
    before, and start it after.
    """
    shown = [one for path in receipts or [] for one in _receipts(path)]
    desk = _desk(_settings(state, database, pins, receipt_key))
    burnt = desk.histories.recover(dataset, shown)
    for one in burnt:
        typer.echo(
            f"{one['node']}  {one['name']}: counted as spent "
            f"{json.dumps(one['counted_as_spent'])}, {one['unanswered']} questions unanswered"
        )
    typer.echo(f"{dataset} is open again; {len(burnt)} boxes are spent")


@curator_app.command()
def move(
    ledger: Annotated[Path, typer.Argument(help="A ledger file of the library.")],
    dataset: Annotated[str, typer.Argument(help="The id of a data set.")],
    state: _State = Path("curator"),
    database: _Database = None,
    pins: _Pins = None,
    receipt_key: _Key = None,
) -> None:
    """Count what was asked from a ledger file in a data set's box, and empty the file, so that both
    have one promise.
    """
    from discreet.server.desk.moving import move_ledger

    office = _desk(_settings(state, database, pins, receipt_key)).office
    told = move_ledger(office, dataset, ledger)
    typer.echo(f"{dataset}: counted as spent {json.dumps(told['counted_as_spent'])}")


def _receipts(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, ValueError):
        typer.echo(f"{path} is no file of receipts", err=True)
        raise typer.Exit(2) from None


def _settings(
    state: Path, database: str | None, pins: Path | None, receipt_key: Path | None
) -> Any:
    from discreet.server.settings import Settings

    if not state.is_dir():
        typer.echo(f"there is no folder {state}", err=True)
        raise typer.Exit(2)
    return Settings(
        state=str(state.resolve()),
        database=database,
        pins=None if pins is None else str(pins.resolve()),
        receipt_key=None if receipt_key is None else str(receipt_key.resolve()),
    )


def _desk(settings: Any) -> Any:
    try:
        from discreet.server.desk.desk import open_desk

        return open_desk(settings)
    except ImportError as error:
        raise MissingExtra(str(error.name), "server", "discreet curator") from None
    except DiscreetError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
