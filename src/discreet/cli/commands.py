"""The `discreet` command: a thin mirror of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.curator import curator_app
from discreet.cli.questions import add_explain, add_plans, add_questions
from discreet.cli.serve import serve, work

app = typer.Typer(
    help="Differentially private statistical inference.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
ledger_app = typer.Typer(help="Look at a ledger file and check it.", no_args_is_help=True)
add_questions(app)
add_plans(app)
add_explain(app)
app.add_typer(ledger_app, name="ledger")
app.add_typer(curator_app, name="curator")
app.command()(serve)
app.command()(work)


def _print_version(wanted: bool) -> None:
    if wanted:
        import discreet

        typer.echo(f"discreet {discreet.__version__}")
        raise typer.Exit()


@app.callback()
def _begin(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    """Differentially private statistical inference."""


@app.command()
def demo(
    folder: Annotated[
        Path, typer.Option("--output", help="Where the picture and the ledger go.")
    ] = Path("demo-output"),
) -> None:
    """Release a mean, a table and a histogram of real census incomes under one budget,
    and draw them.
    """
    from discreet.cli.demo import run_demo

    run_demo(folder)


@app.command()
def audit(
    procedure: Annotated[str | None, typer.Argument(help="A public function: mean.")] = None,
    mu: Annotated[float | None, typer.Option(help="Its spend, μ.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Its spend, ε.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ beside ε.")] = None,
    spend: Annotated[str | None, typer.Option(hidden=True)] = None,
    method: Annotated[str | None, typer.Option(help="runs, replay or canaries.")] = None,
    runs: Annotated[int, typer.Option(help="Runs that are guessed.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Of made-up rows and coins.")] = 1,
    every: Annotated[bool, typer.Option("--all", help="Replay every procedure.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of tables.")] = False,
) -> None:
    """Measure how much procedures tell about one made-up row; exit status 1 where a claim is
    refuted.
    """
    from discreet.cli.audit import run_audits

    spent = {"mu": mu, "epsilon": epsilon, "delta": delta, "rho": None}
    options = {"method": method, "runs": runs, "seed": seed}
    texts, refuted = run_audits(
        procedure, spent, bare=spend, every=every, as_json=as_json, options=options
    )
    for text in texts:
        typer.echo(text)
    if refuted:
        raise typer.Exit(1)


@app.command()
def account(
    sigma: Annotated[float, typer.Option(help="Noise, as a multiple of the sensitivity.")],
    delta: Annotated[float, typer.Option(help="The δ at which ε is read.")] = 1e-6,
    steps: Annotated[int, typer.Option(help="How many times.")] = 1,
    sampling_rate: Annotated[
        float, typer.Option(help="Share of the rows in each step's random sample.")
    ] = 1.0,
    scheme: Annotated[
        str, typer.Option(help="poisson (add/remove neighbours) or fixed (replace-one).")
    ] = "poisson",
    plot: Annotated[Path | None, typer.Option(help="Write a picture of ε(δ) here.")] = None,
) -> None:
    """What (sampled) Gaussian steps cost: ε at δ by every accountant that applies."""
    from rich.console import Console

    from discreet.cli.account import account_table, plot_account

    console = Console()
    with console.status("accounting …"):
        table = account_table(
            sigma=sigma, delta=delta, steps=steps, sampling_rate=sampling_rate, scheme=scheme
        )
    console.print(table)
    if plot is not None:
        plot_account(plot, sigma=sigma, steps=steps, sampling_rate=sampling_rate, scheme=scheme)
        console.print(f"Picture: {plot}", soft_wrap=True, highlight=False)


@ledger_app.command("show")
def ledger_show(
    file: Annotated[Path, typer.Argument(help="The ledger file.")],
    entries: Annotated[int, typer.Option(help="How many of the last entries to list.")] = 20,
) -> None:
    """What was promised, what was spent on what, and what is left."""
    from rich.console import Console

    from discreet.cli.ledger import ledger_table

    console = Console()
    for part in ledger_table(_open(file), entries):
        console.print(part)


@ledger_app.command("verify")
def ledger_verify(
    file: Annotated[Path, typer.Argument(help="The ledger file.")],
    expected_head: Annotated[
        str | None, typer.Option(help="A head hash noted earlier; the file must contain it.")
    ] = None,
) -> None:
    """Check the hash chain, the sums and the limits; exits with 1 if anything is wrong."""
    from discreet.errors import DiscreetError
    from discreet.trusted.ledger.opening import verify_file

    _must_exist(file)
    try:
        report = verify_file(file)
        if report.ok and expected_head is not None:
            _open(file, expected_head)
    except DiscreetError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    typer.echo(str(report))
    raise typer.Exit(0 if report.ok else 1)


@ledger_app.command("replay")
def ledger_replay(
    file: Annotated[Path, typer.Argument(help="The ledger file.")],
    delta: Annotated[float, typer.Option(help="The δ at which ε is said.")],
    accountant: Annotated[
        list[str], typer.Option(help="pld, rdp, gdp or zcdp; may be given several times.")
    ] = ["pld"],  # noqa: B006
) -> None:
    """Price the history again by other accountants;
    it describes what was used and changes nothing.
    """
    from rich.console import Console

    from discreet.cli.ledger import replay_table
    from discreet.errors import DiscreetError

    ledger = _open(file)
    try:
        replays = [ledger.replay(name, delta=delta) for name in accountant]
    except DiscreetError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    console = Console()
    for part in replay_table(replays):
        console.print(part)


def _open(file: Path, expected_head: str | None = None):  # type: ignore[no-untyped-def]
    from discreet.errors import DiscreetError
    from discreet.trusted.ledger.core import Ledger

    _must_exist(file)
    try:
        return Ledger.open(None, path=file, expected_head=expected_head)
    except DiscreetError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None


def _must_exist(file: Path) -> None:
    if not file.is_file():
        typer.echo(f"there is no file {file}", err=True)
        raise typer.Exit(1)


def main() -> None:
    """The console command: errors of discreet are printed as their four parts,
    without a traceback.
    """
    from discreet.errors import DiscreetError

    try:
        app()
    except DiscreetError as error:
        typer.echo(str(error), err=True)
        raise SystemExit(2) from None
