"""What an attack achieved against each publisher, beside the limit that a guarantee sets."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.special import ndtri
from scipy.stats import beta

from discreet import plain
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.tradeoff.guessing import chance_of
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told

LEVEL = 0.95
BEYOND = 1e-9  # how unlikely guesses must be under a guarantee to be called beyond its limit
FORMAT = "discreet-attack"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One publisher's: what was achieved, with its interval, and the limit (None without a
    guarantee). `beyond` says that the guarantee cannot explain the guesses.
    """

    publisher: str
    achieved: float
    low: float
    high: float
    limit: float | None = None
    beyond: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "publisher": self.publisher,
            "achieved": self.achieved,
            "interval": [self.low, self.high],
            "limit": self.limit,
            "beyond": self.beyond,
        }


@dataclass(frozen=True, slots=True, repr=False)
class AttackResult(Told):
    """What one attack achieved, publisher by publisher.

    measure     what is achieved, in words; `chance` is what guessing blindly achieves
    outcomes    in the order in which publishers were named
    about       who was attacked how
    """

    name: str
    measure: str
    chance: float | None
    outcomes: tuple[Outcome, ...]
    about: tuple[str, ...]

    def __getitem__(self, publisher: object) -> Outcome:
        """The outcome against a publisher, by itself or by its text."""
        named = {one.publisher: one for one in self.outcomes}
        return named[str(publisher)]

    @property
    def beyond(self) -> tuple[str, ...]:
        """The publishers whose guarantee cannot explain what was guessed."""
        return tuple(one.publisher for one in self.outcomes if one.beyond)

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        rows = tuple(
            (
                one.publisher,
                f"{one.achieved:.3f}",
                f"{one.low:.3f}",
                f"{one.high:.3f}",
                "none" if one.limit is None else f"{one.limit:.3f}",
            )
            for one in self.outcomes
        )
        chance = () if self.chance is None else (f"Guessing blindly achieves {self.chance:.3g}.",)
        none = (
            ("A publisher that promises nothing has no limit: a better attack may do more.",)
            if any(one.limit is None for one in self.outcomes)
            else ()
        )
        kept = (
            ("The limit holds for every attack, on average over the noise of releases.",)
            if self.chance is not None and any(one.limit is not None for one in self.outcomes)
            else ()
        )
        broken = tuple(
            f"BEYOND ITS LIMIT: {publisher} does not keep its guarantee (level {BEYOND:g})."
            for publisher in self.beyond
        )
        return Summary(
            f"{self.name}: {self.measure}",
            ("published", "achieved", "95% from", "to", "limit"),
            rows,
            (*self.about, *chance, *kept, *none, *broken, "Made-up people: nobody is in them."),
        )

    @plain.called
    def plot(
        self, *, ax: Any = None, title: str | None = None, path: str | Path | None = None
    ) -> Any:
        """What was achieved, with intervals, and the limits."""
        from discreet.plots.attacks import plot_attack

        return plot_attack(self, ax=ax, title=title, path=path)

    def to_json(self) -> str:
        return json.dumps(
            {
                "format": FORMAT,
                "version": 1,
                "name": self.name,
                "measure": self.measure,
                "chance": self.chance,
                "outcomes": [one.to_dict() for one in self.outcomes],
                "about": list(self.about),
            },
            ensure_ascii=False,
        )


def guessed(
    publisher: object,
    guarantee: PrivacyProfile | None,
    limit: float | None,
    *,
    right: Sequence[int],
    coins: int,
) -> Outcome:
    """The outcome of guesses of fair coins: how many were right in each release.

    Method.    Clopper and Pearson's exact interval, as if guesses from one release were
               independent; against a guarantee the test of `chance_of`, which does not assume so.
    """
    beyond = guarantee is not None and chance_of(guarantee, right, coins) < BEYOND
    coins, found = coins * len(right), sum(right)
    low = 0.0 if found == 0 else float(beta.ppf((1 - LEVEL) / 2, found, coins - found + 1))
    high = 1.0 if found == coins else float(beta.isf((1 - LEVEL) / 2, found + 1, coins - found))
    return Outcome(str(publisher), found / coins, low, high, limit, beyond)


def averaged(
    publisher: object, values: Sequence[float], limit: float | None, *, beyond: bool = False
) -> Outcome:
    """The outcome of a mean over independent releases, with a normal interval within 0 and 1."""
    count, mean = len(values), math.fsum(values) / len(values)
    spread = math.fsum((value - mean) ** 2 for value in values) / max(1, count - 1)
    wide = float(ndtri((1 + LEVEL) / 2)) * math.sqrt(spread / count)
    return Outcome(
        str(publisher), mean, max(0.0, mean - wide), min(1.0, mean + wide), limit, beyond
    )
