"""What a test of a hypothesis answers: a p-value with the words to read it, a function of releases alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from discreet.errors import InvalidParameter
from discreet.exact import rational
from discreet.inference.summary import Summary

SIGNS = {"two-sided": "≠", "less": "<", "greater": ">"}


@dataclass(frozen=True, slots=True)
class HypothesisTest:
    """A test's answer: `p_value`, what was tested and how; `result` is the estimate that it was computed from."""

    title: str
    parameter: str
    null: float
    alternative: str
    method: str
    p_value: float
    estimate: float
    about: str
    result: Any = field(repr=False, default=None)

    def rejects(self, alpha: float = 0.05) -> bool:
        """Whether the null hypothesis is rejected at level α: p ≤ α."""
        return self.p_value <= checked_alpha(alpha)

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        header = ("null", "alternative", "estimate", "p-value", "method")
        row = (f"{self.parameter} = {self.null:g}", f"{self.parameter} {SIGNS[self.alternative]} {self.null:g}", f"{self.estimate:.4g}", p_text(self.p_value), self.method)
        notes = [self.about]
        if self.result is not None:
            notes.insert(0, f"Privacy of this release: {self.result.release.guarantee}, neighbours {self.result.release.neighbors}.")
            if not self.result.release.secure:
                notes.append("NOT PRIVATE: drawn with seeded test noise.")
        return Summary(self.title, header, (row,), tuple(notes))

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def p_text(p: float) -> str:
    """A p-value for people: three digits, and below 1e-15 (where tails are no longer resolved) as such."""
    return "< 1e-15" if p < 1e-15 else f"{p:.3g}"


def checked_alpha(alpha: object) -> float:
    number = rational(alpha, "alpha")
    if not 0 < number < 1:
        raise InvalidParameter("alpha=", "it is not between 0 and 1", "it is the probability of a false rejection", "pass for example 0.05")
    return float(number)
