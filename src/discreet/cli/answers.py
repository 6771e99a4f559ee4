"""What a command does: it reads the declaration, opens a session on the ledger, asks one public
function, and prints the answer on standard output, and what it cost beside it on standard error.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer

from discreet.cli.table import Command
from discreet.errors import DiscreetError, InvalidParameter

LONGEST_SHOWN = 150  # characters of a question that its key shows; a digest stands for the rest
_ASSUMED = ("rows", "mean", "standard_deviation", "share")


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """A refusal is printed as its four parts, without a traceback; the command ends with 2."""
    try:
        yield
    except DiscreetError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def answer(command: Command, given: Mapping[str, Any]) -> None:
    """Asks the question under its key, and says whether it was paid now or before."""
    import discreet as dp

    question, data = _question(command, given)
    key = given["key"] or default_key(question)
    session = data.open(ledger=given["ledger"])
    known = _known(session, key)
    result = question.call(getattr(dp, question.estimator), session, key=key)
    show(result, given)
    note_cost(session, f"key {key!r}", known)


def forecast(command: Command, given: Mapping[str, Any]) -> None:
    """Previews the same question: no data is read, nothing is spent, no ledger is made."""
    import discreet as dp
    from discreet.asking.preview import forecast_of

    question, data = _question(command, given)
    assume = dp.Assumptions(**{name: given[f"assume_{name}"] for name in _ASSUMED})

    def forecast_at(session: Any, *places: Any, **options: Any) -> Any:
        at = given["confidence"]
        return forecast_of(question.record, session, *places, assume=assume, at=at, **options)

    show(question.call(forecast_at, open_to_look(data, given["ledger"])), given)


def run_plan(path: Path, given: Mapping[str, Any]) -> None:
    """Runs a plan: its names are the keys."""
    import discreet as dp

    _output(given)
    plan, data = dp.read_plan(path), dp.declare(given["declare"], given["source"])
    session = data.open(ledger=given["ledger"])
    names = [question.name for question in plan.questions]
    known = all(_known(session, name) for name in names)
    results = plan.run(session)
    if given["as_json"]:
        told = {name: json.loads(result.to_json()) for name, result in results.items()}
        typer.echo(json.dumps(told, ensure_ascii=False))
    else:
        for number, (name, result) in enumerate(results.items()):
            mark = "##" if given["as_markdown"] else "──"
            typer.echo(f"{'' if number == 0 else chr(10)}{mark} {name}\n")
            show(result, given)
    note_cost(session, f"{len(names)} keys", known)


def check_plan(path: Path, given: Mapping[str, Any]) -> None:
    """Checks a plan whole and forecasts it."""
    import discreet as dp

    _output(given)
    plan, data = dp.read_plan(path), dp.declare(given["declare"], given["source"])
    session = open_to_look(data, given["ledger"])
    show(plan.preview(session, level=given["confidence"]), given)


def explain(given: Mapping[str, Any]) -> str:
    """`dp.explain` of a guarantee, or of what a ledger promises."""
    import discreet as dp
    from discreet.cli.words import spend_of

    letters = {letter: given[letter] for letter in ("epsilon", "delta", "mu", "rho")}
    ledger = given["ledger"]
    if ledger is not None and any(number is not None for number in letters.values()):
        raise InvalidParameter(
            "discreet explain",
            "a ledger and a guarantee were both given",
            "one promise is explained at a time",
            "leave one of them out",
        )
    guarantee = spend_of(letters) if ledger is None else _promise(ledger)
    return dp.explain(
        guarantee,
        false_alarm=given["false_alarm"],
        prior=given["prior"],
        delta=given["at_delta"],
    )


def _promise(path: Path) -> Any:
    """What a ledger promises in all; of ρ but for δ₀ the ε that it gives at δ₀ + 1e-6."""
    import discreet as dp
    from discreet.exact import float_up, rational

    ledger = dp.Ledger.open(None, path=path)
    budget, beside = ledger.budget, ledger.box.delta
    if not isinstance(budget, dp.ZCDP) or not beside:
        return budget
    return dp.ApproxDP(budget.epsilon_at(1e-6), float_up(beside + rational(1e-6, "delta")))


def default_key(question: Any) -> str:
    """The question as text, so that the same command means the same answer: what is asked and the
    spend, in words; of a long one the beginning and a digest.
    """
    from discreet.cli.words import spend_text

    text = " ".join(f"{question} {spend_text(question.spend)}".split())
    if len(text) <= LONGEST_SHOWN and text.isprintable():
        return text
    begin = "".join(one for one in text[: LONGEST_SHOWN - 20] if one.isprintable())
    return f"{begin}… {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def open_to_look(data: Any, ledger: Path | None) -> Any:
    """A session that nothing is asked of: on the ledger where there is one, else in memory."""
    return data.open(ledger=ledger if ledger is not None and ledger.exists() else None)


def show(result: Any, given: Mapping[str, Any]) -> None:
    """The answer as a table, as Markdown, or as the JSON that `dp.from_json` reads."""
    asked = inspect.signature(result.summary).parameters
    summary = result.summary(**({"level": given["confidence"]} if "level" in asked else {}))
    if not given["as_json"]:
        typer.echo(summary.to_markdown() if given["as_markdown"] else str(summary))
    elif hasattr(result, "to_json"):
        typer.echo(result.to_json())
    else:
        parts = ("title", "header", "rows", "notes")
        told = {part: getattr(summary, part) for part in parts}
        typer.echo(json.dumps(told, ensure_ascii=False))


def note_cost(session: Any, what: str, known: bool) -> None:
    """What the answer cost, and what is left, on standard error."""
    paid = "answered before, read from the ledger, nothing more was spent" if known else "paid now"
    typer.echo(f"{what}: {paid}.\n{session.remaining()}", err=True)


def _question(command: Command, given: Mapping[str, Any]) -> tuple[Any, Any]:
    """The question in the library's words, and the data set that it is about."""
    from discreet.asking.declarations import read_declaration
    from discreet.asking.release_plans import PlannedQuestion
    from discreet.cli.words import spend_of

    letters = {letter: given[letter] for letter in ("epsilon", "delta", "mu", "rho")}
    spend = spend_of(letters, given["spend"])
    _output(given)
    declared = read_declaration(given["declare"])
    source, asked = command.read(declared.schema, given)
    _accepted(command.estimator(given), asked)
    question = PlannedQuestion(
        "", command.estimator(given), MappingProxyType(asked), spend, MappingProxyType({})
    )
    return question, declared.dataset(source)


def _output(given: Mapping[str, Any]) -> None:
    """Refuses an output that cannot be written, before anything is paid for."""
    if given["as_json"] and given["as_markdown"]:
        raise InvalidParameter(
            "the output", "--json and --markdown", "it is one of them", "leave one of them out"
        )
    if not 0 < given["confidence"] < 1:
        raise InvalidParameter(
            f"--confidence {given['confidence']:g}",
            "not between 0 and 1",
            "an interval is read at this level",
            "write for example --confidence 0.95",
        )


def _accepted(estimator: str, asked: Mapping[str, Any]) -> None:
    """Refuses an option that the chosen function does not take."""
    import discreet as dp

    known = inspect.signature(getattr(dp, estimator)).parameters
    for name in asked:
        if name not in known:
            raise InvalidParameter(
                f"--{name}",
                f"dp.{estimator} takes no {name}=",
                "what does not belong to a question would be left out in silence",
                "leave it out",
            )


def _known(session: Any, key: str) -> bool:
    """Whether the ledger has begun a question, or the steps of one, under this key."""
    return any(
        entry.key == key or entry.key.startswith(f"{key}/") for entry in session.ledger.entries()
    )
