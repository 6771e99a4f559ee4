"""What a test of a hypothesis answers: a p-value with the words to read it,
a function of releases alone.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from discreet.accounting import statement
from discreet.errors import InvalidParameter
from discreet.exact import rational
from discreet.inference.results.held import cautions, data_notes
from discreet.inference.results.null_law import NullLaw
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told

TEST_FORMAT = "discreet-test"
SIGNS = {"two-sided": "≠", "less": "<", "greater": ">"}


@dataclass(frozen=True, slots=True, repr=False)
class HypothesisTest(Told):
    """A test's answer: `p_value`, what was tested and how; `result` is the estimate that it was
    computed from, by ``result.test(**dict(asked))``.
    """

    title: str
    parameter: str
    null: float
    alternative: str
    method: str
    p_value: float
    estimate: float
    about: str
    result: Any = field(repr=False)
    asked: tuple[tuple[str, Any], ...] = field(repr=False)

    def rejects(self, alpha: float = 0.05) -> bool:
        """Whether the null hypothesis is rejected at level α: p ≤ α."""
        return self.p_value <= checked_alpha(alpha)

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        header = ("null", "alternative", "estimate", "p-value", "method")
        row = (
            f"{self.parameter} = {self.null:g}",
            f"{self.parameter} {SIGNS[self.alternative]} {self.null:g}",
            f"{self.estimate:.4g}",
            p_text(self.p_value),
            self.method,
        )
        notes = [self.about]
        # randomised reports have none: each is private by itself
        release = getattr(self.result, "release", None)
        if release is not None:
            told = statement.privacy(release.spend, release.guarantee)
            notes.insert(0, f"Privacy of this release: {told}, neighbours {release.neighbors}.")
            notes += data_notes(release)
            notes += cautions(release)
        return Summary(self.title, header, (row,), tuple(notes))

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: p-value and estimate, what they cost, what was asked."""
        release = getattr(self.result, "release", None)
        cost = (
            self.about
            if release is None
            else f"Privacy: {release.guarantee}, neighbours {release.neighbors}."
        )
        null, side = f"{self.null:g}", SIGNS[self.alternative]
        return (
            f"{self.title}: p = {p_text(self.p_value)}, estimate {self.estimate:.4g}",
            cost,
            f"Asked: {self.parameter} = {null} against {side} {null}, {self.method}.",
        )

    def to_json(self) -> str:
        """What was asked, the p-value, and the whole result it was asked of, as JSON text;
        `dp.from_json` reads it back and tests again.
        """
        told = {
            "title": self.title,
            "parameter": self.parameter,
            "p_value": self.p_value,
            "estimate": self.estimate,
        }
        return json.dumps(
            {
                "format": TEST_FORMAT,
                "version": 1,
                "asked": dict(self.asked),
                **told,
                "result": json.loads(self.result.to_json()),
            }
        )

    def null_law(self) -> NullLaw | None:
        """What the estimate would be if the null were true."""
        law: NullLaw | None = self.result.null_law(**dict(self.asked))
        return law

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """The null law with the observed value; the p-value is shaded."""
        from discreet.plots.nulls import plot_null

        words = f"H0: {self.parameter} = {self.null:g}"
        asked = f"{self.parameter} {SIGNS[self.alternative]} {self.null:g}"
        return plot_null(self.null_law(), self.p_value, words, asked, ax=ax, title=title, path=path)


def test_again(record: dict[str, Any], read: Callable[[str], Any]) -> HypothesisTest:
    """The test that `to_json` wrote as `record`, made again from the result in it;
    `read` reads results.
    """
    asked, inner = record.get("asked"), record.get("result")
    if (
        record.get("version") == 1
        and not isinstance(record["version"], bool)
        and isinstance(asked, dict)
        and isinstance(inner, dict)
        and inner.get("format") != TEST_FORMAT
    ):
        test = getattr(read(json.dumps(inner)), "test", None)
        try:
            signature = inspect.signature(test)  # type: ignore[arg-type]
            signature.bind(**asked)
        except TypeError:
            signature = None
        if (
            test is not None
            and signature is not None
            and signature.return_annotation in (HypothesisTest, HypothesisTest.__name__)
        ):
            made: HypothesisTest = test(**asked)
            if all(
                _same(record.get(name), getattr(made, name)) for name in ("p_value", "estimate")
            ):
                return made
            raise InvalidParameter(
                "from_json",
                "its p-value or estimate is not that of its result",
                "one of them was changed",
                "pass what to_json() wrote, unchanged",
            )
    raise InvalidParameter(
        "from_json",
        "this is not the text of a test",
        "another layout could be read wrongly",
        "pass what to_json() of this version wrote",
    )


def _same(told: object, found: float) -> bool:
    """Whether a number in a text is the one that was found again, apart from rounding."""
    return (
        isinstance(told, float | int)
        and not isinstance(told, bool)
        and (
            math.isclose(told, found, rel_tol=1e-6, abs_tol=1e-12)
            or (math.isnan(told) and math.isnan(found))
        )
    )


def p_text(p: float) -> str:
    """A p-value for people: three digits, and below 1e-15 (where tails are no longer resolved) as
    such.
    """
    return "< 1e-15" if p < 1e-15 else f"{p:.3g}"


def checked_alpha(alpha: object) -> float:
    number = rational(alpha, "alpha")
    if not 0 < number < 1:
        raise InvalidParameter(
            "alpha=",
            "it is not between 0 and 1",
            "it is the probability of a false rejection",
            "pass for example 0.05",
        )
    return float(number)
