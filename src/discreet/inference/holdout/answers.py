"""What a reusable holdout answered: to each question the claimed mean, or a noisy one.

An answer is a function of what was claimed, of one released whole number where the claim was a
surprise, and of public facts; so it pickles, prints and comes back from JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import plain
from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee, guarantee_from_dict
from discreet.errors import InvalidParameter
from discreet.errors.questions import foreign_record
from discreet.exact import fraction_text, stored_fraction
from discreet.inference.counts.selection import threshold_gap
from discreet.inference.results.laws import Noise, half_width
from discreet.inference.results.results import _frame, checked_level
from discreet.inference.results.stored import UNREADABLE
from discreet.inference.results.summary import SHOWN_CELLS, Summary, number_text
from discreet.inference.results.told import Told
from discreet.neighbors import Neighbors, neighbors_from_dict
from discreet.specs.holdout.surprises import STEPS
from discreet.specs.holdout.thresholdout import Thresholdout
from discreet.specs.mechanisms.additive import AdditiveNoise, GaussianNoise

FORMAT, VERSION = "discreet-holdout", 1
TRAINING, HOLDOUT = "training", "holdout"
TARGETS = ("sample", "population")


@plain.kept()
@dataclass(frozen=True, slots=True)
class HoldoutFacts:
    """What is public of a holdout: its mechanism and price, and how many rows it has.

    `counted` is the noisy number of rows in steps of its noise, where the number is private.
    """

    mechanism: Thresholdout
    tolerance: int
    public_rows: int | None
    counted: int | None
    neighbors: Neighbors
    spend: Guarantee
    guarantee: Guarantee
    secure: bool = True

    @property
    def threshold(self) -> float:
        """How far a claimed mean may be off, as a share of the range, before it is a surprise."""
        return self.tolerance / STEPS

    @property
    def rows(self) -> float:
        """The number of rows: public, or as released; at least 1."""
        if self.public_rows is not None:
            return float(max(self.public_rows, 1))
        assert self.counted is not None
        assert self.mechanism.count is not None
        return max(float(self.counted * self.mechanism.count.step / STEPS), 1.0)

    def rows_between(self, level: float) -> tuple[float, float]:
        """An interval of the number of rows; one point where it is public."""
        if self.mechanism.count is None:
            return self.rows, self.rows
        half = float(half_width(level, np.float64(0), law_in_rows(self.mechanism.count)))
        return max(self.rows - half, 1.0), self.rows + half

    @property
    def answer_error(self) -> float:
        """Standard deviation of an answer's noise, as a share of the range."""
        return math.sqrt(float(self.mechanism.answer.variance)) / STEPS / self.rows

    def unseen(self, level: float, questions: int = 1) -> float:
        """How far a claimed mean that is no surprise can be off, as a share of the range.

        Method.    An unsurprising question has |d| − T·N below the sum of two noises; their tails.
        Validity.  For every data set, with probability at least `level` over the noise, for so many
                   questions at once; about the holdout's own rows.
        """
        gap = threshold_gap(self.mechanism.above, questions, 1 - level)
        return self.threshold + gap / STEPS / self.rows_between(level)[0]

    def to_dict(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism.to_dict(),
            "tolerance": self.tolerance,
            "public_rows": self.public_rows,
            "counted": None if self.counted is None else str(self.counted),
            "neighbors": self.neighbors.to_dict(),
            "spend": self.spend.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "secure": self.secure,
        }


def facts_from_dict(record: dict[str, Any]) -> HoldoutFacts:
    return HoldoutFacts(
        Thresholdout.from_dict(record["mechanism"]),
        record["tolerance"],
        record["public_rows"],
        None if record["counted"] is None else int(record["counted"]),
        neighbors_from_dict(record["neighbors"]),
        guarantee_from_dict(record["spend"]),
        guarantee_from_dict(record["guarantee"]),
        record["secure"],
    )


@plain.kept()
@dataclass(frozen=True, slots=True)
class Claim:
    """A question with the mean that was claimed for it, in words and numbers.

    `low` and `high` are the ends of the range in which each row has its value.
    """

    asked: str
    training: float
    low: Fraction
    high: Fraction
    notes: tuple[str, ...] = ()

    @property
    def place(self) -> float:
        """The claimed mean as a share of the range."""
        return (self.training - float(self.low)) / self.width

    @property
    def width(self) -> float:
        return float(self.high - self.low)

    def to_dict(self) -> dict[str, Any]:
        return {
            "asked": self.asked,
            "training": self.training,
            "low": fraction_text(self.low),
            "high": fraction_text(self.high),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, repr=False)
class HoldoutAnswer(Told):
    """The answer to one question: the claimed mean, or a noisy one where that was a surprise.

    `integer` is what the holdout released, None where the claim stood; `left` is how many
    surprises it can still answer.
    """

    facts: HoldoutFacts
    claim: Claim
    claimed_steps: int
    integer: int | None
    number: int
    left: int

    @property
    def source(self) -> str:
        """Where the answer comes from: "training", the claim itself, or "holdout"."""
        return TRAINING if self.integer is None else HOLDOUT

    @property
    def training(self) -> float:
        """The mean that was claimed."""
        return self.claim.training

    @property
    def value(self) -> float:
        """The answer, in the units of the question."""
        if self.integer is None:
            return self.training
        return float(self.claim.low) + self.claim.width * self._share()

    @property
    def std_error(self) -> float:
        """Standard deviation of the answer's noise; NaN for a claim that stood, which has none."""
        if self.integer is None:
            return math.nan
        return self.facts.answer_error * self.claim.width

    def confidence_interval(
        self, level: float = 0.95, *, target: str = "sample"
    ) -> tuple[float, float]:
        """An interval of the mean over the holdout's rows (`target="sample"`), or over all that
        they were drawn from (`"population"`).

        Method.    A surprise: the means s for which d − (s − t)·n, of the released number d and
                   the number of rows n, is within the width of its noise (Fieller); where n was
                   released with noise, that is in it. A claim that stood: `within`. The
                   population's adds the variance of a mean of numbers between 0 and 1 with this
                   mean, at most p(1 − p)/n.
        Validity.  The sample's: exact but for the noise's grid, whatever was asked before, given
                   that it was a surprise. The population's: for rows drawn independently, and a
                   question that was fixed before this holdout answered anything; a question that
                   was chosen by its answers fits its rows, and has no such interval.
        """
        level = checked_level(level)
        if target not in TARGETS:
            raise InvalidParameter(
                "target=",
                "it is neither sample nor population",
                "an interval is about the holdout's rows, or about what they were drawn from",
                "pass one of " + ", ".join(TARGETS),
            )
        if self.integer is None:
            if target == "population":
                return float(self.claim.low), float(self.claim.high)
            return self.within(level)
        low, high = self._ends(level, target)
        start = float(self.claim.low)
        return start + self.claim.width * min(low, high), start + self.claim.width * max(low, high)

    def within(self, level: float = 0.95) -> tuple[float, float]:
        """Where the holdout's own mean is, if the claim stood.

        Validity.  A mean outside would have been left unnoticed with probability at most
                   1 − level, over the noise, for every data set.
        """
        level = checked_level(level)
        if self.integer is not None:
            return self.confidence_interval(level)
        far = self.facts.unseen(level)
        low, high = float(self.claim.low), float(self.claim.high)
        return (
            max(low, self.training - far * self.claim.width),
            min(high, self.training + far * self.claim.width),
        )

    def _share(self) -> float:
        """The answer as a share of the range."""
        assert self.integer is not None
        beyond = self.integer * float(self.facts.mechanism.answer.step)
        return (self.claimed_steps + beyond / self.facts.rows) / STEPS

    def _ends(self, level: float, target: str) -> tuple[float, float]:
        """The places u that are not rejected: |d − (u − t)·n| at most the width of its error."""
        assert self.integer is not None
        facts, claimed = self.facts, self.claimed_steps / STEPS
        beyond = self.integer * float(facts.mechanism.answer.step) / STEPS
        error, of_rows = law_in_rows(facts.mechanism.answer), law_in_rows(facts.mechanism.count)
        near = (min(max(self._share(), 0.0), 1.0) * facts.rows + 2) / (facts.rows + 4)
        sampling = near * (1 - near) * facts.rows if target == "population" else 0.0

        def width(off: float) -> float:
            return float(half_width(level, np.float64(sampling), error + of_rows.scaled(off)))

        def rejected(place: float, sign: int) -> bool:
            off = place - claimed
            return sign * (beyond - off * facts.rows) > width(off) + 1 / STEPS

        if facts.mechanism.count is None:
            half = (width(0.0) + 1 / STEPS) / facts.rows
            return max(0.0, self._share() - half), min(1.0, self._share() + half)
        low = _least(lambda place: not rejected(place, 1))
        return low, 1 - _least(lambda place: not rejected(1 - place, -1))

    def record(self, level: float = 0.95) -> dict[str, Any]:
        """The answer as a tidy row."""
        low, high = self.confidence_interval(level)
        return {
            "number": self.number,
            "asked": self.claim.asked,
            "training": self.training,
            "answer": self.value,
            "source": self.source,
            "low": low,
            "high": high,
            "left": self.left,
        }

    def summary(self, level: float = 0.95) -> Summary:
        return table("Answer of a reusable holdout", (self,), self.facts, level)

    def plot(self, level: float = 0.95, **given: Any) -> Any:
        """The claim and the answer; saved if a path is given."""
        from discreet.plots.holdouts import plot_answers

        return plot_answers((self,), self.facts, level, **given)

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return HoldoutHistory(self.facts, (self,)).to_json()


@dataclass(frozen=True, slots=True, repr=False)
class HoldoutHistory(Told):
    """All answers of a holdout so far, in order."""

    facts: HoldoutFacts
    answers: tuple[HoldoutAnswer, ...]

    @property
    def left(self) -> int:
        """How many surprises could still be answered after the last of these."""
        if not self.answers:
            return self.facts.mechanism.above.positives
        return self.answers[-1].left

    @property
    def surprises(self) -> tuple[HoldoutAnswer, ...]:
        """The answers that came from the holdout."""
        return tuple(answer for answer in self.answers if answer.source == HOLDOUT)

    def summary(self, level: float = 0.95) -> Summary:
        return table("Answers of a reusable holdout", self.answers, self.facts, level)

    def to_frame(self, level: float = 0.95, *, backend: str = "pandas") -> Any:
        """A tidy data frame (`backend` is pandas, polars or pyarrow)."""
        records = [answer.record(level) for answer in self.answers]
        names = ("number", "asked", "training", "answer", "source", "low", "high", "left")
        return _frame({name: [record[name] for record in records] for name in names}, backend)

    def plot(self, level: float = 0.95, **given: Any) -> Any:
        """Every claim and its answer, with what is left; saved if a path is given."""
        from discreet.plots.holdouts import plot_answers

        return plot_answers(self.answers, self.facts, level, **given)

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        record = {
            "format": FORMAT,
            "version": VERSION,
            "facts": self.facts.to_dict(),
            "answers": [
                {
                    "claim": answer.claim.to_dict(),
                    "claimed_steps": answer.claimed_steps,
                    "integer": None if answer.integer is None else str(answer.integer),
                    "number": answer.number,
                    "left": answer.left,
                }
                for answer in self.answers
            ],
        }
        return json.dumps(record, ensure_ascii=False)


def history_from_json(text: str) -> HoldoutHistory:
    """The answers that `to_json` wrote."""
    try:
        record = json.loads(plain.text(text, "from_json"))
        if (record["format"], record["version"]) == (FORMAT, VERSION):
            facts = facts_from_dict(record["facts"])
            return HoldoutHistory(
                facts, tuple(_answer_from_dict(facts, answer) for answer in record["answers"])
            )
    except UNREADABLE:
        pass
    raise foreign_record(f"{FORMAT} of version {VERSION}")


def _answer_from_dict(facts: HoldoutFacts, record: dict[str, Any]) -> HoldoutAnswer:
    claim, integer = record["claim"], record["integer"]
    return HoldoutAnswer(
        facts,
        Claim(
            claim["asked"],
            claim["training"],
            stored_fraction(claim["low"]),
            stored_fraction(claim["high"]),
            tuple(claim["notes"]),
        ),
        record["claimed_steps"],
        None if integer is None else int(integer),
        record["number"],
        record["left"],
    )


def law_in_rows(noise: AdditiveNoise | None) -> Noise:
    """The law of a noise, in rows; none at all for None."""
    if noise is None:
        return Noise(0.0, 0.0)
    fourth = 0.0 if isinstance(noise, GaussianNoise) else float(noise.spread) ** 4
    return Noise(float(noise.variance) / STEPS**2, fourth / STEPS**4)


def _least(fits: Callable[[float], bool]) -> float:
    """The least place between 0 and 1 from which on all fit, by bisection; 1 where none does."""
    low, high = 0.0, 1.0
    if fits(low):
        return low
    for _ in range(32):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def table(
    title: str, answers: tuple[HoldoutAnswer, ...], facts: HoldoutFacts, level: float
) -> Summary:
    """A row a question, and what the holdout promises."""
    level = checked_level(level)
    header = ("#", "asked", "training", "answer", "from", f"{100 * level:g}% of its rows", "left")
    rows = []
    for answer in answers[-SHOWN_CELLS:]:
        low, high = answer.confidence_interval(level)
        error = facts.answer_error * answer.claim.width
        rows.append(
            (
                str(answer.number),
                answer.claim.asked,
                number_text(answer.training, error),
                number_text(answer.value, error),
                answer.source,
                f"{number_text(low, error)} … {number_text(high, error)}",
                str(answer.left),
            )
        )
    notes = [
        (
            f"A claim stands if it is within about {facts.threshold:g} of the range of what the "
            f"holdout's {facts.rows:.0f} rows say; within {facts.unseen(level):.3g} with "
            f"probability {100 * level:g}%. An answer's noise: {facts.answer_error:.2g} of the "
            "range."
        ),
        (
            f"Privacy of all answers together: {statement.privacy(facts.spend, facts.guarantee)}, "
            f"neighbours {facts.neighbors}. Paid when it was opened."
        ),
        "Intervals are about the holdout's own rows; those of claims are what was not noticed.",
    ]
    notes += list(dict.fromkeys(note for answer in answers for note in answer.claim.notes))
    if len(answers) > SHOWN_CELLS:
        notes.append(f"The last {SHOWN_CELLS} of {len(answers)}; to_frame() has all.")
    if facts.counted is not None:
        notes.append("The number of rows is private, and was released with noise.")
    if not facts.secure:
        notes.append("NOT PRIVATE: drawn with seeded test noise.")
    return Summary(title, header, tuple(rows), tuple(notes))
