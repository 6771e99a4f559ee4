"""The bodies of calls: every word is known, and of its kind, or the call is refused."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Letters = Annotated[
    dict[str, float],
    Field(
        description="A guarantee by its letters.",
        examples=[{"mu": 0.1}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.01}],
        max_length=2,
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=120)]
Text = Annotated[str, Field(max_length=4000)]
Login = Annotated[str, Field(min_length=1, max_length=100)]
Secret = Annotated[str, Field(min_length=1, max_length=400)]
Time = Annotated[float, Field(ge=0, le=1e11, description="Seconds since 1970, UTC.")]


class Body(BaseModel):
    """A body whose words are all known."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class LoginBody(Body):
    login: Login
    password: Secret


class PasswordBody(Body):
    old: Secret
    new: Secret


class TokenBody(Body):
    name: Name
    scopes: Annotated[list[str], Field(max_length=10)] | None = None
    days: Annotated[float, Field(gt=0, le=366)] = 90


class PersonBody(Body):
    login: Login
    name: Name
    role: str
    password: Secret | None = None
    provider: bool = False


class DatasetBody(Body):
    """The words of a declaration file, and the budget of everything that is ever answered."""

    name: Name
    description: Text = ""
    source: str | Annotated[list[str], Field(min_length=1, max_length=1000)]
    format: str | None = None
    dialect: dict[str, Any] | None = None
    columns: Annotated[
        dict[str, dict[str, Any]],
        Field(alias="schema", description="Declared columns, as in a declaration file."),
    ]
    neighbors: str | dict[str, Any]
    reasons: dict[str, str] | None = None
    budget: Letters
    pure: float | None = None
    delta0: float | None = None
    rows_at_most: int | None = None
    listed: bool = False
    population: str | None = None


class PopulationBody(Body):
    """One box above data sets about the same people."""

    name: Name
    description: Text = ""
    neighbors: str | dict[str, Any]
    budget: Letters
    pure: float | None = None
    delta0: float | None = None


class VersionBody(Body):
    source: str | Annotated[list[str], Field(min_length=1, max_length=1000)]


class ReasonBody(Body):
    reason: Text = ""


class StudyBody(Body):
    dataset: str
    name: Name
    purpose: Text
    budget: Letters
    members: Annotated[list[Login], Field(max_length=100)] = []
    seats: str = "carved"
    plan: Annotated[list[Text], Field(max_length=1000)] = []
    expires_at: Time | None = None


class AmendBody(Body):
    name: Name | None = None
    purpose: Text | None = None
    budget: Letters | None = None
    members: Annotated[list[Login], Field(max_length=100)] | None = None
    seats: str | None = None
    plan: Annotated[list[Text], Field(max_length=1000)] | None = None
    expires_at: Time | None = None


class DecisionBody(Body):
    decision: str
    reason: Text = ""
    budget: Letters | None = None
    ask_above: Letters | None = None
    expires_at: Time | None = None
    terms: Name | None = None


class AnswerDecisionBody(Body):
    decision: str
    reason: Text = ""


class SeatBody(Body):
    login: Login
    budget: Letters


class ReleaseBody(Body):
    """One question, as a `Question` of the library writes itself."""

    question: dict[str, Any]
    reservation: Annotated[str, Field(max_length=1200)] | None = None


class NamedBody(Body):
    """An estimator by name, in the words of a plan: its own parameters beside these."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)
    estimator: Annotated[str, Field(max_length=100, examples=["mean"])]
    spend: Letters


class PreviewBody(NamedBody):
    assume: dict[str, float] | None = None
    level: Annotated[float, Field(gt=0, lt=1)] | None = None


class ReservationBody(Body):
    spend: Letters
    delta: Annotated[str, Field(max_length=80)] = "0"
