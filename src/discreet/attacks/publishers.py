"""What people do to numbers before they publish them: nothing, five customs that promise nothing,
and a private release.

A publisher answers counts of filters on a table of made-up people. Attackers know everything about
a publisher but its random bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.accounting.profile import PrivacyProfile
from discreet.errors import InvalidParameter, shown
from discreet.estimators.basic import count
from discreet.inference.counts.results import CountResult
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream
from discreet.neighbors import Replace
from discreet.schema import Boolean, Schema
from discreet.testing.seeded import seeded_session
from discreet.trusted.datasets import Dataset, from_frame
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.release import plain_spend

Filter = Mapping[str, bool]
TOGETHER = 40  # filters that are asked of one declaration


@dataclass(frozen=True, slots=True)
class Survey:
    """Made-up people with yes/no columns, and counts that are asked about them.

    `columns` are yes/no columns by name; a filter is a mapping from columns to what they must be.
    """

    columns: Mapping[str, npt.NDArray[np.bool_]]
    filters: Sequence[Filter]

    @property
    def people(self) -> int:
        return len(next(iter(self.columns.values())))

    def chosen(self, filters: Filter) -> npt.NDArray[np.bool_]:
        """Who a filter chooses."""
        held = np.ones(self.people, dtype=bool)
        for name, wanted in filters.items():
            held &= self.columns[name] == wanted
        return held

    def counts(self) -> Array:
        """The exact answers."""
        return np.array([self.chosen(one).sum() for one in self.filters], dtype=float)


@dataclass(frozen=True, slots=True)
class Answers:
    """Published counts, NaN where one is refused, and the standard deviation of the error that was
    added to each on purpose.
    """

    values: Array
    spread: float = 0.0


@runtime_checkable
class Publisher(Protocol):
    """Somebody who publishes counts; `guarantee` is None where nothing is promised."""

    @property
    def guarantee(self) -> PrivacyProfile | None: ...

    def publish(self, survey: Survey, secret: str, stream: Stream) -> Answers:
        """Answers to the survey's filters; `secret` is the column that nobody else knows."""
        ...


@dataclass(frozen=True, slots=True)
class Raw:
    """Exact counts; rows as they are, without names."""

    guarantee: ClassVar[None] = None

    def publish(self, survey: Survey, secret: str, stream: Stream) -> Answers:
        return Answers(survey.counts())

    def __str__(self) -> str:
        return "as they are"


@dataclass(frozen=True, slots=True)
class Rounded:
    """Counts to the nearest multiple of `to`; dates to spans of `to` days."""

    to: int
    guarantee: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "to", whole(self.to, "to", 2))

    def publish(self, survey: Survey, secret: str, stream: Stream) -> Answers:
        return Answers(self.to * np.round(survey.counts() / self.to), self.to / 12**0.5)

    def __str__(self) -> str:
        return f"rounded to {self.to}"


@dataclass(frozen=True, slots=True)
class Suppressed:
    """Counts below `below` are refused; of rows, values that fewer people share are left out."""

    below: int
    guarantee: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "below", whole(self.below, "below", 1))

    def publish(self, survey: Survey, secret: str, stream: Stream) -> Answers:
        counts = survey.counts()
        return Answers(np.where(counts < self.below, np.nan, counts))

    def __str__(self) -> str:
        return f"none below {self.below}"


@dataclass(frozen=True, slots=True)
class KAnonymous:
    """Questions about fewer than `k` people are refused, whatever is counted among them; of rows,
    what fewer than `k` people share is left out.
    """

    k: int
    guarantee: ClassVar[None] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole(self.k, "k", 2))

    def publish(self, survey: Survey, secret: str, stream: Stream) -> Answers:
        groups = [
            survey.chosen({name: value for name, value in one.items() if name != secret}).sum()
            for one in survey.filters
        ]
        return Answers(np.where(np.array(groups) < self.k, np.nan, survey.counts()))

    def __str__(self) -> str:
        return f"groups of {self.k} or more"


@dataclass(frozen=True, slots=True)
class FreshNoise:
    """Normal noise of standard deviation `sd`, drawn anew for every question, and no budget."""

    sd: float
    guarantee: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not 0 < plain.number(self.sd, "sd") < float("inf"):
            raise InvalidParameter(
                "FreshNoise",
                f"sd={shown(self.sd)} is not above 0",
                "it is the spread of the noise",
                "pass for example FreshNoise(5)",
            )

    def publish(self, survey: Survey, secret: str, stream: Stream) -> Answers:
        counts = survey.counts()
        noise = self.sd * ndtri(stream.uniforms(counts.shape, "fresh noise"))
        return Answers(counts + noise, self.sd)

    def __str__(self) -> str:
        return f"fresh noise, sd {self.sd:g}"


@plain.kept()
@dataclass(frozen=True, slots=True)
class Released:
    """`dp.count` for every question, out of one budget that is split evenly: a session in memory
    with seeded noise (it protects nobody, and the people are made up).
    """

    budget: Guarantee

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", plain_spend(self.budget))

    @property
    def guarantee(self) -> PrivacyProfile:
        return self.budget

    def publish(self, survey: Survey, secret: str, stream: Stream) -> Answers:
        ledger, asked = Ledger.open(self.budget), list(survey.filters)
        spends = self.budget.split(len(asked))
        results: list[CountResult] = []
        for first in range(0, len(asked), TOGETHER):
            some = asked[first : first + TOGETHER]
            session = seeded_session(
                _declared(survey, some), ledger, f"attack/{stream.seed}/{first}"
            )
            results += [
                count(session, where=dict(one), spend=spend)
                for one, spend in zip(some, spends[first:], strict=False)
            ]
        private = results[0].quantities(target="data")[-1].privacy_variance[0]
        return Answers(
            np.array([result.unprojected[0] for result in results]), float(np.sqrt(private))
        )

    def __str__(self) -> str:
        return f"released, {self.budget}"


def _declared(survey: Survey, filters: Sequence[Filter]) -> Dataset:
    """The columns that filters name; each question copies the declaration."""
    names = dict.fromkeys(name for one in filters for name in one)
    return from_frame(
        {name: [bool(cell) for cell in survey.columns[name]] for name in names},
        schema=Schema({name: Boolean() for name in names}),
        neighbors=Replace(),
    )


def publishers(against: Sequence[Publisher]) -> list[Publisher]:
    """The publishers that were named, checked."""
    found: list[Any] = list(against) if isinstance(against, (list, tuple)) else [against]
    if not found or not all(
        isinstance(one, Publisher) and not isinstance(one, type) for one in found
    ):
        raise InvalidParameter(
            "against=",
            f"{shown(against)} are not publishers",
            "an attack is run against what somebody publishes",
            "pass for example [Raw(), Rounded(10), Released(dp.GDP(1))] from discreet.attacks",
        )
    return found


def whole(value: object, name: str, least: int) -> int:
    """A whole number that is not below `least`."""
    number = plain.whole(value, name)
    if number < least:
        raise InvalidParameter(
            name,
            f"{number} is below {least}",
            "it is a number of people, or a step between counts",
            f"pass a whole number of {least} or more",
        )
    return number
