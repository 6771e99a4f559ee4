"""A plan of releases, written down before anything is asked: names, questions and spends.

    budget = { epsilon = 1, delta = 1e-6 }     # what the shares below are shares of
    assume = { standard_deviation = 30_000 }   # for forecasts alone

    [questions.mean-income]
    estimator = "mean"
    column = "income"
    share = 1                                  # of the budget, by weight …

    [questions.wages]
    estimator = "ols"
    formula = "income ~ age + region"
    spend = { mu = 0.1 }                       # … or a spend of its own

A name is the key of its answers, so that running a plan again costs nothing. What an estimator
takes beside `session`, `spend` and `key` is written under its own name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.records import RECORDS, Record, resolve
from discreet.asking.sessions import Session
from discreet.asking.written import Written, near_or
from discreet.errors import shown
from discreet.exact import rational
from discreet.inference.results.summary import Summary

LONGEST_NAME = 180
# what a file cannot write down: a function, a fit, a conversation
_NOT_WRITTEN = ("m_estimate", "residuals", "subsample", "subsample_test", "watch", "holdout")
_RECORDS = {record.name: record for record in RECORDS if record.name not in _NOT_WRITTEN}
_OF_THE_PLAN = ("budget", "assume", "questions")
_ASSUMED = ("rows", "mean", "standard_deviation", "share")  # the words of dp.Assumptions
_OF_A_QUESTION = ("estimator", "spend", "share", "assume")
_GIVEN = ("session", "spend", "key")  # by `run`
_PLAN = Written(
    "a plan", "a plan is checked whole before anything is spent, so every word of it must be known"
)


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """One question of a plan: what is asked under which name, for which spend."""

    name: str
    estimator: str
    asked: Mapping[str, Any] = field(hash=False)  # the estimator's own parameters, by name
    spend: Guarantee
    assume: Mapping[str, float] = field(hash=False)

    @property
    def record(self) -> Record:
        return _RECORDS[self.estimator]

    @property
    def delta(self) -> Fraction:
        """The δ₀ that the question names beside its spend."""
        given = self.asked.get("delta")
        return Fraction(0) if given is None else rational(given, "delta")

    def call(self, function: Callable[..., Any], first: Any, **more: Any) -> Any:
        """`function` of this question: its positional parameters by place, all others by name."""
        options = dict(self.asked)
        places = [options.pop(name) for name in self._places()]
        return function(first, *places, spend=self.spend, **options, **more)

    def _places(self) -> list[str]:
        """The parameters that are handed over by place."""
        return [
            name
            for name, one in _parameters(self.record).items()
            if one.kind is one.POSITIONAL_OR_KEYWORD and name in self.asked
        ]

    def __str__(self) -> str:
        places = self._places()
        words = [
            *(_said(self.asked[name]) for name in places),
            *(f"{name}={_said(one)}" for name, one in self.asked.items() if name not in places),
        ]
        return f"{self.estimator}({', '.join(words)})"


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    r"""Questions with their spends, in the order in which they are asked; see `dp.read_plan`.

    Example.
            from pathlib import Path

            Path("plan.toml").write_text(
                "budget = { mu = 0.5 }\n"
                "[questions.ages]\nestimator = 'mean'\ncolumn = 'age'\nshare = 1\n"
            )
            session = dp.load_census().open(budget=dp.GDP(0.5))
            print(dp.preview(session, dp.read_plan("plan.toml")))
    See also. `dp.read_plan`.
    """

    questions: tuple[PlannedQuestion, ...]
    budget: Guarantee | None = None

    def preview(self, session: Session, *, level: float = 0.95) -> Any:
        """Checks the whole plan against a session, and forecasts every question; spends nothing.

        Refused where a question is not valid, where a name was used for another question, or where
        the spends do not all fit in what is left.
        """
        return resolve("asking.plan_previews:preview_plan")(self, session, level)

    def run(self, session: Session) -> dict[str, Any]:
        """The results by name, each under its name as key: a second run replays the first.

        The plan is checked whole before the first question is asked.
        """
        resolve("asking.plan_previews:check_plan")(self, session)
        return {
            question.name: question.call(
                resolve(question.record.function), session, key=question.name
            )
            for question in self.questions
        }

    def __str__(self) -> str:
        return "\n".join(
            f"{question.name}: {question}, spend {question.spend}" for question in self.questions
        )

    def _repr_html_(self) -> str:
        rows = tuple((one.name, str(one), str(one.spend)) for one in self.questions)
        return Summary("Plan", ("name", "question", "spend"), rows).to_html()


@plain.called
def read_plan(path: str | Path) -> ReleasePlan:
    r"""The plan that a TOML file writes down (this module's first lines show one).

    Example.
            from pathlib import Path

            Path("plan.toml").write_text(
                "budget = { mu = 0.5 }\n"
                "[questions.ages]\nestimator = 'mean'\ncolumn = 'age'\nshare = 1\n"
                "[questions.regions]\nestimator = 'histogram'\ncolumn = 'region'\nshare = 1\n"
            )
            plan = dp.read_plan("plan.toml")
            session = dp.load_census().open(budget=dp.GDP(0.5))
            for name, answer in plan.run(session).items():
                print(name, answer.params)
    See also. `dp.ReleasePlan`, `dp.preview`; docs/how-to/budgets.md.
    """
    return plan_of(_PLAN.read(path))


def plan_of(told: Mapping[str, Any]) -> ReleasePlan:
    """The plan that parsed TOML says."""
    _PLAN.known(told, _OF_THE_PLAN, "the plan")
    questions = told.get("questions")
    if type(questions) is not dict or not questions:
        raise _PLAN.refused("it has no questions", "add a table [questions.NAME] for each")
    for name, question in questions.items():
        _checked_name(name)
        if type(question) is not dict:
            raise _PLAN.refused(f"{name!r} is no table", f"write [questions.{name}]")
    budget = None if "budget" not in told else _PLAN.guarantee(told["budget"], "budget")
    spends = _spends(questions, budget)
    usual = told.get("assume", {})
    return ReleasePlan(
        tuple(_planned(name, one, spends[name], usual) for name, one in questions.items()), budget
    )


def _planned(
    name: str, told: Mapping[str, Any], spend: Guarantee, usual: Mapping[str, float]
) -> PlannedQuestion:
    record = _record(name, told.get("estimator"))
    known = _parameters(record)
    asked = {word: value for word, value in told.items() if word not in _OF_A_QUESTION}
    if not any(one.kind is one.VAR_KEYWORD for one in known.values()):
        _PLAN.known(asked, known, f"{name!r}")
    lacking = [
        one.name
        for one in known.values()
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD and one.name not in asked
    ]
    if lacking:
        raise _PLAN.refused(
            f"{name!r} lacks {', '.join(lacking)}", f"say what dp.{record.name} needs"
        )
    assume = {**_assumed(usual), **_assumed(told.get("assume", {}))}
    return PlannedQuestion(
        name, record.name, MappingProxyType(asked), spend, MappingProxyType(assume)
    )


def _assumed(told: object) -> dict[str, float]:
    if type(told) is not dict:
        raise _PLAN.refused(f"assume = {shown(told)}", "write for example { rows = 2000 }")
    _PLAN.known(told, _ASSUMED, "assume")
    return told


def _spends(
    questions: Mapping[str, Mapping[str, Any]], budget: Guarantee | None
) -> dict[str, Guarantee]:
    """Each question's spend: its own, or its share of the budget among all that have one."""
    shared: dict[str, float] = {}
    for name, told in questions.items():
        if ("spend" in told) == ("share" in told):
            raise _PLAN.refused(f"{name!r} has not one of spend and share", "write one of them")
        if "share" in told:
            shared[name] = told["share"]
    if shared and budget is None:
        raise _PLAN.refused(
            "it has shares and no budget", "add budget = { epsilon = 1, delta = 1e-6 } at the top"
        )
    spends = {} if budget is None or not shared else budget.split(shared)
    return {
        name: spends[name] if name in shared else _PLAN.guarantee(told["spend"], "spend")
        for name, told in questions.items()
    }


def _record(name: str, estimator: object) -> Record:
    record = _RECORDS.get(estimator) if type(estimator) is str else None
    if record is None:
        raise _PLAN.refused(
            f"{name!r} asks for estimator = {shown(estimator)}", near_or(estimator, _RECORDS)
        )
    return record


def _parameters(record: Record) -> dict[str, inspect.Parameter]:
    found = inspect.signature(resolve(record.function)).parameters
    return {name: one for name, one in found.items() if name not in _GIVEN}


def _checked_name(name: str) -> None:
    if not 1 <= len(name) <= LONGEST_NAME or "/" in name or not name.isprintable():
        raise _PLAN.refused(
            f"{shown(name)} is no name of a question",
            f"use 1 to {LONGEST_NAME} characters and no '/'",
        )


def _said(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_said(one)}" for name, one in value.items())
    return str(value)
