"""Choosing among declared candidates, and asking which counts are above a threshold.

*Method.* Scores are exact whole numbers (counts of rows, or sums of a column on its grid) and the
mechanism's draw is exact. At the rate λ a candidate that is g behind the best is chosen with a
probability of about exp(−λ·g), so λ decides. A pure spend ε buys λ = ε/span for every method;
the expected loss in the worst case, among 10 candidates, is then 0.89/λ for permute-and-flip,
1.00/λ for report-noisy-max and 1.10/λ for the exponential choice. Any other spend charges the
exponential choice by its bounded range, which buys twice the λ of a pure method (1.98 times at
ρ = 0.125, 1.26 times at ρ = 5): 0.55/λ against 0.89/λ. So permute-and-flip is the default for pure
spends and the exponential choice for all others. span is the sensitivity Δ where all scores move
the same way (counts under AddRemove), else 2Δ.
*Validity.* `score_gap(level)` holds for every data set, over the noise alone. The answer is a
label, not an estimate: it has no interval.
Where rows without a value of a column are left out, how many hold one is released beside the
choice, with a 32nd of the spend.
*Reference.* docs/theory/selection.md; McSherry and Talwar 2007, McKenna and Sheldon 2020, Dong
et al. 2020, Lyu, Su and Li 2017.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import Where, cells_where
from discreet.asking.sessions import Session
from discreet.asking.steps import Steps
from discreet.errors import InvalidParameter
from discreet.estimators import selection_questions as build
from discreet.estimators.basic import _open
from discreet.estimators.selection_questions import Candidates, Questions
from discreet.inference.counts.selection import ChoiceResult, ThresholdResult, TopResult
from discreet.specs.queries.scores import CandidateGroup, CandidateScores
from discreet.trusted.release import Question, Release

if TYPE_CHECKING:
    from discreet.trusted.extensions.noisy_threshold import NoisyThreshold


@plain.door
def select(
    session: Session,
    candidates: Candidates,
    *,
    spend: Guarantee,
    score: str | None = None,
    method: str | None = None,
    key: str | None = None,
) -> ChoiceResult:
    """The declared candidate with, about, the greatest score.

    `candidates` is a mapping from labels to filters (``{"young": {"age": (18, 30)}, "north":
    {"region": "N"}}``, which may overlap), the name of a Category or Boolean column (its levels),
    or a list of number columns (their sums). The score is the number of rows, or the sum of the
    column named by `score`. `method` is "exponential", "permute-and-flip" or "noisy-max"; the best
    for the spend where left out.

    Formula.
            P(candidate) ∝ exp(ε·score / (2Δ))   ("exponential")

            Δ  how far one unit moves a score; the other methods take the greatest noisy score

    Validity. `score_gap` bounds how much worse the chosen one may be, for every data set; that it
              is the best is not certain.
    Price.    The spend, once a key, however many candidates there are.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            groups = {"young": {"age": (18, 30)}, "north": {"region": "N"}}
            answer = dp.select(session, groups, spend=dp.GDP(0.1))
            print(answer.chosen, answer.score_gap(0.95))
    See also. `dp.mode`, `dp.top`, `dp.above_threshold`.
    """
    asked = build.select_asked if _is_new(session, key) else build.select_question
    question = asked(_open(session).public, candidates, spend=spend, score=score, method=method)
    return ChoiceResult(*_answers(session, question, spend, key))


@plain.door
def mode(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    where: Where | None = None,
    method: str | None = None,
    key: str | None = None,
) -> ChoiceResult:
    """The most frequent level of a Category or Boolean column:
    the most frequent eye colour, say.

    Formula.
            P(level) falls exponentially in how many rows it is behind the most frequent one

    Validity. `score_gap` bounds how many rows the chosen level can be behind, for every data set.
    Price.    The spend, once a key, however many levels there are.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.mode(session, "region", spend=dp.GDP(0.1)))
    See also. `dp.top`, `dp.select`, `dp.histogram`.
    """
    asked = build.mode_asked if _is_new(session, key) else build.mode_question
    question = asked(_open(session).public, column, spend=spend, where=where, method=method)
    return ChoiceResult(*_answers(session, question, spend, key))


@plain.door
def top(
    session: Session,
    candidates: Candidates,
    k: int,
    *,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> TopResult:
    """The k most frequent levels of a column, or k of the candidates of `select`,
    in the order in which they were chosen.

    One choice after another among those that are left, at equal prices: permute-and-flip for a pure
    spend, exponential choices for all others.

    Formula.
            one choice after another, each more probable the more rows a level has

            a level that was chosen is left out of the next choice

    Validity. `score_gap` bounds how far the chosen ones can be behind, for every data set.
    Price.    The spend, once a key, in k equal choices.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.top(session, "region", 2, spend=dp.GDP(0.2)).chosen)
    See also. `dp.mode`, `dp.select`.
    """
    asked = build.top_asked if _is_new(session, key) else build.top_question
    question = asked(_open(session).public, candidates, k, spend=spend, where=where)
    return TopResult(*_answers(session, question, spend, key))


def _is_new(session: Session, key: str | None) -> bool:
    """Whether no choice alone was stored under a key, as versions before 0.4.0 did."""
    return not (isinstance(key, str) and _open(session).ledger.holds(key))


def _answers(
    session: Session, asked: build.Asked, spend: Guarantee, key: str | None
) -> tuple[Release, tuple[Release, ...]]:
    """A choice, and what was released before it: the number of rows that hold a value."""
    if isinstance(asked, Question):
        return _open(session).release(asked, key=key), ()
    with Steps(session, spend, key) as steps:
        for question, step in zip(asked, ("rows", "choice"), strict=True):
            steps.ask(question, step)
    return steps.releases[-1], tuple(steps.releases[:-1])


@plain.door
def above_threshold(
    session: Session,
    questions: Questions,
    threshold: int,
    *,
    spend: Guarantee,
    positives: int = 1,
    key: str | None = None,
) -> ThresholdResult:
    """Which filters keep about `threshold` rows or more, answered in order until `positives` of
    them do; the zeros before them cost nothing extra.

    `questions` is a list of filters or a mapping from labels to filters. The threshold is public:
    choose it without looking at the data.

    Formula.
            hit   if count + V ≥ threshold + W

            V  noise of one question
            W  noise of the threshold

    Validity. `score_gap` bounds how far the counts of hits can be below the threshold, for every
              data set.
    Price.    The spend, once a key, whatever the number of questions: only `positives` costs
              (sparse vector, docs/theory/selection.md).
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            ages = {f"{age} to {age + 9}": {"age": (age, age + 9)} for age in range(20, 90, 10)}
            found = dp.above_threshold(session, ages, 1400, spend=dp.GDP(0.5))
            print(found.hits, found.score_gap(0.95))
    See also. `dp.watch`, `dp.select`, `dp.histogram`.
    """
    return ThresholdResult(
        _open(session).release(
            build.above_threshold_question(
                _open(session).public, questions, threshold, spend=spend, positives=positives
            ),
            key=key,
        )
    )


@plain.door
def watch(session: Session, threshold: int, *, spend: Guarantee, positives: int = 1) -> Watch:
    """A noisy threshold that stays open: ask one filter after another, each chosen after the
    answers before it; paid once, here.

    It has no key: a watch lives in this process alone and cannot be resumed,
    because its noise is written nowhere.

    Formula.
            hit   if count + V ≥ threshold + W

            V  noise of one question
            W  noise of the threshold

    Validity. Each answer is right up to both noises, whatever was asked before it.
    Price.    The spend, once, at the opening; answers below the threshold are free.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            watch = dp.watch(session, 1400, spend=dp.GDP(0.5))
            for age in range(20, 90, 10):
                if watch.above({"age": (age, age + 9)}):
                    print("a large group begins at", age)
                    break
    See also. `dp.above_threshold`, `dp.holdout`.
    """
    return Watch(
        _open(session).open_threshold(
            build.watch_question(
                _open(session).public, threshold, spend=spend, positives=positives
            ),
        ),
        _open(session),
    )


class Watch:
    """An open watch; see `watch`. It cannot be copied, pickled, or used after a fork.

    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            watch = dp.watch(session, 3000, positives=2, spend=dp.GDP(0.5))
            print(watch.above({"region": "N"}), watch.above({"age": (18, 90)}))
    See also. `dp.watch`.
    """

    __slots__ = ("_noisy", "_session")

    def __init__(self, noisy: NoisyThreshold, session: Session) -> None:
        self._noisy, self._session = noisy, session

    @plain.door
    def above(self, where: Where) -> bool:
        """Whether the filter keeps about `threshold` rows or more;
        refuses once all positives were given.
        """
        if not isinstance(where, Mapping):
            raise InvalidParameter(
                "where",
                f"a {type(where).__name__} is no filter",
                "a watch counts the rows of a declared filter",
                "pass for example {'region': 'N'}",
            )
        return self._noisy.above(
            CandidateScores((CandidateGroup(cells_where(self._session.public.schema, where).keys),))
        )

    @property
    def left(self) -> int:
        """How many positive answers it can still give."""
        return self._noisy.left

    @property
    def threshold(self) -> int:
        """The public number of rows that counts are compared with."""
        return int(self._noisy.question.mechanism.threshold)  # type: ignore[attr-defined]

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self._noisy.__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"Watch(threshold {self.threshold}, {self.left} positive answers left)"
