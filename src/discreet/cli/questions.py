"""The commands of the table (`table.py`) on the command line: asked on the app itself, previewed on
``discreet preview``; what they share is said here once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli import answers
from discreet.cli.table import COMMANDS, TESTS, Command

_SPEND = "The spend"
_OUTPUT = "Output"
_ASSUME = "Assumed, for the forecast alone"


def _option(kind: Any, *flags: str, help: str, default: Any = None, **more: Any) -> Any:
    return kind, typer.Option(*flags, help=help, **more), default


_SHARED = {
    "declare": _option(
        Path,
        "--declare",
        help="The TOML file that declares the data.",
        default=inspect.Parameter.empty,
    ),
    "ledger": _option(
        Path,
        "--ledger",
        help="The ledger file; made if it is new.",
        default=inspect.Parameter.empty,
    ),
    "source": _option(Path | None, "--source", help="The data file, instead of the declared one."),
    "epsilon": _option(
        float | None, "--epsilon", help="ε: pure, or with --delta.", rich_help_panel=_SPEND
    ),
    "delta": _option(float | None, "--delta", help="δ beside --epsilon.", rich_help_panel=_SPEND),
    "mu": _option(float | None, "--mu", help="μ of Gaussian DP.", rich_help_panel=_SPEND),
    "rho": _option(float | None, "--rho", help="ρ of zCDP.", rich_help_panel=_SPEND),
    "spend": _option(str | None, "--spend", help="Refused: epsilon or mu?", hidden=True),
    "confidence": _option(
        float, "--confidence", help="Level of intervals.", default=0.95, rich_help_panel=_OUTPUT
    ),
    "as_json": _option(
        bool, "--json", help="JSON, as dp.from_json reads.", default=False, rich_help_panel=_OUTPUT
    ),
    "as_markdown": _option(
        bool, "--markdown", help="A Markdown table.", default=False, rich_help_panel=_OUTPUT
    ),
}
_KEY = _option(
    str | None,
    "--key",
    help="The answer's name in the ledger. By default the question and its spend as text: the "
    "same command twice costs once.",
)
_OWN = {
    "where": _option(
        list[str] | None,
        "--where",
        help="region=N,S or age=18..30 or member=true; may be repeated.",
    ),
    "by": _option(
        list[str] | None, "--by", help="region, visit:month or age:18,40,90; may be repeated."
    ),
    "strata": _option(list[str] | None, "--strata", help="Columns to adjust for, as --by."),
    "level": _option(str | None, "--level", help="The level whose share is asked for."),
    "bins": _option(str | None, "--bins", help="A number of bins, edges 0,10,20, or month."),
    "edges": _option(
        list[str] | None, "--bins", help="Bins of a number column, age:18,40,90; may be repeated."
    ),
    "method": _option(str | None, "--method", help="As method= of the function."),
    "noise": _option(str | None, "--noise", help="As noise= of the function."),
    "solver": _option(str | None, "--solver", help="As solver= of the function."),
    "base": _option(
        list[str] | None,
        "--base",
        help="'most frequent', or region=N or region='most frequent'; may be repeated.",
    ),
    "delta0": _option(float | None, "--delta0", help="The δ that the question itself needs."),
    "model": _option(str | None, "--model", help="ols (default), robust, logistic or poisson."),
}
_ASSUMPTIONS = {
    "assume_rows": _option(float | None, "--rows", help="Rows.", rich_help_panel=_ASSUME),
    "assume_mean": _option(float | None, "--mean", help="Mean.", rich_help_panel=_ASSUME),
    "assume_standard_deviation": _option(
        float | None, "--standard-deviation", help="Spread.", rich_help_panel=_ASSUME
    ),
    "assume_share": _option(float | None, "--share", help="Share.", rich_help_panel=_ASSUME),
}


def add_questions(app: typer.Typer) -> None:
    """Adds the commands of the table, to be asked and to be previewed."""
    preview = typer.Typer(help="Forecast any question: spends nothing.", no_args_is_help=True)
    for place, act in ((app, answers.answer), (preview, answers.forecast)):
        test = typer.Typer(help="Tests whose null laws hold the noise.", no_args_is_help=True)
        for command in COMMANDS:
            place.command(command.name)(_function(command, act))
        for command in TESTS:
            test.command(command.name)(_function(command, act))
        place.add_typer(test, name="test")
    app.add_typer(preview, name="preview")


def add_plans(app: typer.Typer) -> None:
    """Adds ``plan check`` and ``plan run``."""
    plan = typer.Typer(help="Check or run a plan (a TOML file).", no_args_is_help=True)
    path = (Path, typer.Argument(help="The plan.", metavar="PLAN"), inspect.Parameter.empty)
    words = ("declare", "ledger", "source", "confidence", "as_json", "as_markdown")
    shared = {"path": path, **{word: _SHARED[word] for word in words}}
    looked = {**shared, "ledger": _optional(_SHARED["ledger"])}
    for name, act, options, help in (
        ("check", answers.check_plan, looked, "Is it valid, does it fit, what is it worth? Free."),
        ("run", answers.run_plan, shared, "Ask its questions, under their names as keys."),
    ):
        plan.command(name)(_made(_of_path(act), options, help))
    app.add_typer(plan, name="plan")


def add_explain(app: typer.Typer) -> None:
    """Adds ``explain``."""
    options = {
        **{word: _SHARED[word] for word in ("epsilon", "delta", "mu", "rho")},
        "ledger": _option(Path | None, "--ledger", help="A ledger, whose promise is explained."),
        "false_alarm": _option(
            float, "--false-alarm", help="How often the attacker errs.", default=0.05
        ),
        "prior": _option(float | None, "--prior", help="What the attacker believed before."),
        "at_delta": _option(float, "--at-delta", help="δ of the sentence on odds.", default=1e-6),
    }

    def act(given: Mapping[str, Any]) -> None:
        typer.echo(answers.explain(given))

    app.command("explain")(_made(act, options, "A guarantee in words."))


def _function(
    command: Command, act: Callable[[Command, Mapping[str, Any]], None]
) -> Callable[..., None]:
    """The function whose signature Typer reads for a command."""
    words = (list[str] | None, typer.Argument(metavar=command.usage, show_default=False), None)
    options = {"words": words, **_SHARED}
    for option in command.options.split():
        name = option.rstrip("!")
        options[name] = _needed(_OWN[name]) if option.endswith("!") else _OWN[name]
    if len(command.models) > 1:
        options["model"] = _OWN["model"]
    if act is answers.forecast:
        options |= _ASSUMPTIONS
        options["ledger"] = _optional(_SHARED["ledger"])
    else:
        options["key"] = _KEY
    return _made(lambda given: act(command, given), options, command.help)


def _made(
    act: Callable[[Mapping[str, Any]], None], options: Mapping[str, Any], help: str
) -> Callable[..., None]:
    def run(**given: Any) -> None:
        with answers.refusing():
            act(given)

    annotations = {name: Annotated[kind, told] for name, (kind, told, _) in options.items()}
    parameters = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotations[name]
        )
        for name, (_, _, default) in options.items()
    ]
    run.__doc__, run.__annotations__ = help, annotations
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _of_path(act: Callable[[Path, Mapping[str, Any]], None]) -> Callable[[Mapping[str, Any]], None]:
    return lambda given: act(given["path"], given)


def _needed(option: Any) -> Any:
    return list[str], option[1], inspect.Parameter.empty


def _optional(option: Any) -> Any:
    return option[0] | None, option[1], None
