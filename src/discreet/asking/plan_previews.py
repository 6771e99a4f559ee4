"""A plan of releases before it is run: is every question valid, do all spends fit in what is left,
and what is each answer expected to be worth? Computed from public facts and the ledger alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from discreet.accounting.guarantees import Guarantee
from discreet.asking.preview import Assumptions, forecast_of
from discreet.asking.records import resolve
from discreet.asking.release_plans import PlannedQuestion, ReleasePlan
from discreet.asking.sessions import Session
from discreet.errors import BudgetExceeded, LedgerRefused
from discreet.inference.results.results import checked_level
from discreet.inference.results.summary import Summary, number_text
from discreet.trusted.losses.pricing import Price, price_of_spend
from discreet.trusted.release import Question

IMAGINED_ROWS = (
    1000  # where a regression is checked, the number of rows is private, and none is assumed
)


@dataclass(frozen=True, slots=True)
class PlanPreview:
    """The forecast of a whole plan: free, and made without data.

    forecasts   a preview a question, in order
    price       of the questions that were not asked before
    left        what is left before the plan
    replayed    the names whose answers are known, which cost nothing more
    """

    plan: ReleasePlan
    forecasts: tuple[Any, ...]
    price: Price
    left: Price
    replayed: tuple[str, ...]
    level: float

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        header = ("name", "question", "spend", f"{100 * self.level:g}% width")
        rows = tuple(
            (question.name, str(question), _short(question.spend), _width(forecast))
            for question, forecast in zip(self.plan.questions, self.forecasts, strict=True)
        )
        notes = [f"Price of the plan: {self.price}. Left before it: {self.left}."]
        if self.replayed:
            notes.append(f"Answered before, at no further cost: {', '.join(self.replayed)}.")
        notes.append("Nothing was spent and no data was read.")
        return Summary("Preview of a plan", header, rows, tuple(notes))

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def preview_plan(plan: ReleasePlan, session: Session, level: float) -> PlanPreview:
    """`ReleasePlan.preview`."""
    level = checked_level(level)
    price, replayed = check_plan(plan, session)
    forecasts = tuple(_forecast(question, session, level) for question in plan.questions)
    return PlanPreview(plan, forecasts, price, session.ledger.remaining().exact(), replayed, level)


def check_plan(plan: ReleasePlan, session: Session) -> tuple[Price, tuple[str, ...]]:
    """The price of what was not asked before, and the names of what was; refused where a question
    is not valid, where its name was used for another, or where the whole does not fit.
    """
    entries, box = session.ledger.entries(), session.ledger.box
    paid = {entry.key: entry.request for entry in entries if entry.kind == "debit"}
    keys = {entry.key for entry in entries}
    price, replayed = Price(), []
    for question in plan.questions:
        asked = _question(question, session)
        if asked is not None and question.name in paid:
            _same_question(question.name, asked, paid[question.name] or {})
        if _begun(question.name, keys):
            replayed.append(question.name)
        else:
            delta = question.delta if asked is None else asked.delta
            price += price_of_spend(question.spend, box=box, delta=delta)
    if price != Price() and not session.ledger.how_many(price):
        raise BudgetExceeded(
            price=f"{price} for the whole plan",
            left=str(session.ledger.remaining()),
            remedy="split what is left instead: session.remaining().spend.split({...}), or write "
            "shares of a smaller budget into the plan",
        )
    return price, tuple(replayed)


def _question(question: PlannedQuestion, session: Session) -> Question | None:
    """The question as it would be asked; None for a procedure of several releases, which is checked
    by its forecast.
    """
    record = question.record
    if record.question:
        asked = question.call(resolve(record.question), session.public)
        return asked if isinstance(asked, Question) else None
    assumed = dict(question.assume)
    if session.public.rows is None:
        assumed.setdefault("rows", IMAGINED_ROWS)
    question.call(resolve(record.forecast), session, assume=Assumptions(**assumed), level=0.95)
    return None


def _begun(name: str, keys: set[str]) -> bool:
    """Whether a question was asked under this name, or a procedure begun, whose steps and
    reservation are named after it.
    """
    return any(key == name or key.startswith(f"{name}/") for key in keys)


def _same_question(name: str, asked: Question, request: dict[str, Any]) -> None:
    """Refuses a name under which something else was paid for, as the ledger would."""
    now = {
        "asked": asked.description.to_dict(),
        "query": asked.query.to_dict(),
        "spend": asked.spend.to_dict(),
    }
    if json.loads(json.dumps(now)) != {word: request.get(word) for word in now}:
        raise LedgerRefused(
            f"{name!r} of a plan",
            "the ledger knows another question under this name",
            "a name is the key of one question and its one answer",
            "give the changed question a new name, for example with the year in it",
        )


def _forecast(question: PlannedQuestion, session: Session, level: float) -> Any:
    record, assume = question.record, Assumptions(**question.assume)

    def forecast(first: Session, *places: Any, **options: Any) -> Any:
        return forecast_of(record, first, *places, assume=assume, at=level, **options)

    return question.call(forecast, session)


def _short(spend: Guarantee) -> str:
    """A spend without the name of its kind, which its letter tells."""
    return str(spend).partition(" (")[0]


def _width(forecast: Any) -> str:
    """The expected width of the interval, or the bound on a selection's score gap."""
    if hasattr(forecast, "score_gap"):
        return f"gap ≤ {forecast.score_gap:.6g}"
    if hasattr(forecast, "expected"):  # a fit has many
        widths = sorted(float(width) for width in forecast.widths)
        return f"{number_text(widths[0], widths[0])} … {number_text(widths[-1], widths[-1])}"
    return number_text(forecast.width, forecast.width)
