"""What a test says: a statistic, a p-value and how it was found; and how results show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from discreet.errors import InvalidParameter
from discreet.inference.counts.binomial import checked_alternative
from discreet.inference.results.null_law import NullLaw
from discreet.inference.results.results import Result, checked_level
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told

LOST = (
    "NOISE HIDES IT: the noise of this table exceeds all of its rows, so that next to nothing "
    "could be found. Spend more, or ask more rows."
)


@dataclass(frozen=True, slots=True, repr=False)
class Evidence(Told):
    """The outcome of a test: `p_value` against `hypothesis`, in the direction of `alternative`;
    `lost` where noise hides all that the test could find, as far as the release shows.

    Post-processing of one release: asking for another alternative, or again, costs nothing.
    """

    hypothesis: str
    alternative: str
    statistic: float
    p_value: float
    method: str
    lost: bool = False
    # the law of a picture, or what computes it where that takes longer than the test
    law: NullLaw | Callable[[], NullLaw] | None = field(default=None, repr=False, compare=False)

    def rejects(self, alpha: float = 0.05) -> bool:
        """Whether the hypothesis is rejected at level `alpha`."""
        return self.p_value <= alpha

    @property
    def null(self) -> NullLaw | None:
        """The law of the statistic if the hypothesis were true, with the observed value in it;
        nothing where there is nothing to compare.
        """
        return self.law() if callable(self.law) else self.law

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """The null law with the observed value; the p-value is shaded."""
        from discreet.plots.nulls import plot_null

        words = (self.p_value, f"H0: {self.hypothesis}", self.alternative)
        return plot_null(self.null, *words, ax=ax, title=title, path=path)

    @property
    def notes(self) -> tuple[str, ...]:
        """What it says, and a warning where noise hides everything."""
        said = (
            f"H0: {self.hypothesis}. {self.alternative}: p = {p_text(self.p_value)} (statistic "
            f"{self.statistic:.4g}; {self.method})"
        )
        return (said, LOST) if self.lost else (said,)

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        row = (
            self.hypothesis,
            self.alternative,
            f"{self.statistic:.4g}",
            p_text(self.p_value),
            self.method,
        )
        header = ("null", "alternative", "statistic", "p-value", "method")
        return Summary("Private test", header, (row,), (LOST,) if self.lost else ())

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: the p-value, how it was found, what was asked."""
        return (
            f"Private test: p = {p_text(self.p_value)}, statistic {self.statistic:.4g}",
            f"By {self.method}.{' ' + LOST if self.lost else ''}",
            f"Asked: H0: {self.hypothesis}; {self.alternative}.",
        )

    def __str__(self) -> str:
        return "\n".join(self.notes)


def p_text(p: float) -> str:
    """A p-value with two significant digits."""
    return f"{p:.2g}" if p >= 1e-4 else f"{p:.0e}"


def freedom_text(degrees: int) -> str:
    """Degrees of freedom in words."""
    return f"{degrees} degree{'s' if degrees != 1 else ''} of freedom"


def with_evidence(summary: Summary, evidence: Evidence) -> Summary:
    """A summary with what a test says below its table."""
    return replace(summary, notes=(*evidence.notes, *summary.notes))


class TestedResult(Result):
    """A result that answers a question of yes or no too: `test()`, `p_value`."""

    __slots__ = ()
    __test__ = False

    def test(self) -> Evidence:
        """The test that belongs to the question."""
        raise NotImplementedError

    @property
    def p_value(self) -> float:
        """The p-value of `test()` as it stands."""
        return self.test().p_value

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print, with what the test says below it."""
        return with_evidence(Result.summary(self, level, target=target), self.test())

    def plot(
        self,
        level: float = 0.95,
        *,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """The estimates with their intervals, beside the null law of the test."""
        from discreet.plots.nulls import plot_tested

        return plot_tested(self, checked_level(level), ax=ax, title=title, path=path)


SIGNS = {"two-sided": 0.0, "greater": 1.0, "less": -1.0}


def sign_of(alternative: object) -> float:
    """What large values are multiplied by to be evidence: 1, −1, or 0 where both sides count."""
    return SIGNS[checked_alternative(alternative)]


def place_of(level: object, labels: tuple[str, ...], what: str) -> int:
    """The place of a level among its labels; 0 where none is named."""
    if level is None:
        return 0
    if str(level) in labels:
        return labels.index(str(level))
    raise InvalidParameter(
        what,
        f"{str(level)!r} is not a declared level",
        "groups are compared by their declared names",
        f"pass one of {', '.join(labels[:20])}",
    )
