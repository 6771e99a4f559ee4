"""How selection turns declared candidates into scores and a mechanism, from public facts alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting.calibration import selection as calibrate_selection
from discreet.accounting.guarantees import Guarantee, PureDP
from discreet.asking.cells import Where, cells_where, level_cells, rows_asked
from discreet.asking.noise_choice import require_spend
from discreet.asking.steps import step_spend
from discreet.encoding import Encoding
from discreet.errors import InvalidParameter, WrongColumnKind, shown
from discreet.estimators.questions import counts_question
from discreet.schema import Boolean, Category, Integer, Open, Real, Schema
from discreet.sensitivity import LInf
from discreet.specs.mechanisms.selection import LARGEST_COUNT, LARGEST_THRESHOLD, Choice
from discreet.specs.queries.keys import Held, Key
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.scores import CandidateGroup, CandidateScores
from discreet.specs.queries.sums import number_factor
from discreet.trusted.release import Description, PublicFacts, Question

Candidates = str | Mapping[str, Where] | Sequence[str]
Questions = Mapping[str, Where] | Sequence[Where]

Asked = Question | tuple[Question, Question]

COUNT_SHARE = Fraction(1, 32)  # of a choice's spend: how many rows hold a value
SUM_BITS = 20  # of the grid on which several columns are compared
METHODS: dict[str, Callable[[LInf, Guarantee], Choice]] = {
    "exponential": calibrate_selection.exponential_choice,
    "permute-and-flip": calibrate_selection.permute_and_flip,
    "noisy-max": calibrate_selection.noisy_max,
}


@dataclass(frozen=True, slots=True)
class Declared:
    """Candidates as groups of a query, with their labels and the words for the question."""

    groups: tuple[CandidateGroup, ...]
    labels: tuple[str, ...]
    column: str | None
    by: str
    where: str = ""

    def asked(self, estimator: str) -> Description:
        return Description(estimator, self.column, (self.by,), (self.labels,), self.where)


def select_question(
    public: PublicFacts,
    candidates: Candidates,
    *,
    spend: Guarantee,
    score: str | None = None,
    method: str | None = None,
) -> Question:
    declared = _declared(public.schema, candidates, score)
    return _choice(public, declared, "select", spend, method)


def mode_question(
    public: PublicFacts,
    column: str,
    *,
    spend: Guarantee,
    where: Where | None = None,
    method: str | None = None,
) -> Question:
    return _choice(
        public,
        _levels(public.schema, column, None, where, "the most frequent level"),
        "mode",
        spend,
        method,
    )


def top_question(
    public: PublicFacts,
    candidates: Candidates,
    k: int,
    *,
    spend: Guarantee,
    where: Where | None = None,
) -> Question:
    if isinstance(candidates, str):
        declared = _levels(public.schema, candidates, None, where, "the most frequent levels")
    elif where is not None:
        raise InvalidParameter(
            "where=",
            "given beside candidates that are filters or columns",
            "each candidate says for itself which rows count",
            "put the condition into each candidate's filter, or name a Category column",
        )
    else:
        declared = _declared(public.schema, candidates, None)
    if _whole(k, "k") > len(declared.labels):
        raise InvalidParameter(
            "k",
            f"there are only {len(declared.labels)} candidates",
            "each can be chosen once",
            "ask for fewer",
        )
    query = CandidateScores(declared.groups)
    mechanism = calibrate_selection.top_choices(
        query.sensitivity(public.neighbors), require_spend(spend), k
    )
    return Question(declared.asked("top"), query, mechanism, spend)


def above_threshold_question(
    public: PublicFacts,
    questions: Questions,
    threshold: int,
    *,
    spend: Guarantee,
    positives: int = 1,
) -> Question:
    if isinstance(questions, Mapping):
        filters = questions
    elif isinstance(questions, Sequence) and not isinstance(questions, str):
        filters = {f"question {place + 1}": where for place, where in enumerate(questions)}
    else:
        raise InvalidParameter(
            "questions",
            f"a {type(questions).__name__} is no list of filters",
            "questions are answered in order",
            "pass for example [{'region': 'N'}, {'age': (18, 30)}]",
        )
    declared = _filters(public.schema, filters, None, "question")
    query = CandidateScores(declared.groups)
    mechanism = calibrate_selection.above_threshold(
        query.sensitivity(public.neighbors),
        require_spend(spend),
        threshold=checked_threshold(threshold),
        positives=_whole(positives, "positives"),
    )
    return Question(declared.asked("above_threshold"), query, mechanism, spend)


def watch_question(
    public: PublicFacts, threshold: int, *, spend: Guarantee, positives: int = 1
) -> Question:
    """What opening a watch costs; the count of all rows stands for the counts that will be asked,
    which have the same sensitivity.
    """
    query = CandidateScores((CandidateGroup(()),))
    mechanism = calibrate_selection.above_threshold(
        query.sensitivity(public.neighbors),
        require_spend(spend),
        threshold=checked_threshold(threshold),
        positives=_whole(positives, "positives"),
    )
    return Question(
        Description("watch", by=("question",), labels=(("counts asked later",),)),
        query,
        mechanism,
        spend,
    )


def select_asked(
    public: PublicFacts,
    candidates: Candidates,
    *,
    spend: Guarantee,
    score: str | None = None,
    method: str | None = None,
) -> Asked:
    """`select_question`; before it, how many rows hold a value, where that is private."""
    reads = [candidates] if isinstance(candidates, str) else []
    reads += [score] if score is not None else []

    def choice(part: Guarantee) -> Question:
        return select_question(public, candidates, spend=part, score=score, method=method)

    return _with_count(public, choice, None, reads, spend)


def mode_asked(
    public: PublicFacts,
    column: str,
    *,
    spend: Guarantee,
    where: Where | None = None,
    method: str | None = None,
) -> Asked:
    """`mode_question`; before it, how many rows hold a value, where that is private."""

    def choice(part: Guarantee) -> Question:
        return mode_question(public, column, spend=part, where=where, method=method)

    return _with_count(public, choice, where, [column], spend)


def top_asked(
    public: PublicFacts,
    candidates: Candidates,
    k: int,
    *,
    spend: Guarantee,
    where: Where | None = None,
) -> Asked:
    """`top_question`; before it, how many rows hold a value, where that is private."""

    def choice(part: Guarantee) -> Question:
        return top_question(public, candidates, k, spend=part, where=where)

    reads = [candidates] if isinstance(candidates, str) else []
    return _with_count(public, choice, where, reads, spend)


def _with_count(
    public: PublicFacts,
    choice: Callable[[Guarantee], Question],
    where: Where | None,
    reads: Sequence[str],
    spend: Guarantee,
) -> Asked:
    """A choice, and where rows without a value of `reads` are left out a count of the others,
    which gets `COUNT_SHARE` of the spend: two steps of one reservation.
    """
    whole = choice(spend)  # refuses what is not declared
    rows = rows_asked(public.schema, where, *reads)
    if not any(isinstance(key, Held) for key in rows.keys):
        return whole
    asked = Description("count", where=rows.where)
    count = counts_question(public, asked, rows, step_spend(spend, COUNT_SHARE))
    return count, choice(step_spend(spend, 1 - COUNT_SHARE))


def default_method(spend: Guarantee) -> str:
    """The method with the least expected loss at equal price (see `estimators.selection`)."""
    return "permute-and-flip" if isinstance(spend, PureDP) else "exponential"


def checked_threshold(threshold: object) -> int:
    """A public number of rows."""
    if (
        isinstance(threshold, bool)
        or not isinstance(threshold, int)
        or abs(threshold) > LARGEST_THRESHOLD
    ):
        raise InvalidParameter(
            "threshold",
            f"{shown(threshold)} is not a whole number of rows",
            "counts are compared with it",
            "pass a whole number that was chosen without looking at the data",
        )
    return threshold


def _choice(
    public: PublicFacts, declared: Declared, estimator: str, spend: Guarantee, method: str | None
) -> Question:
    query = CandidateScores(declared.groups)
    name = default_method(require_spend(spend)) if method is None else method
    if not isinstance(name, str) or name not in METHODS:
        raise InvalidParameter(
            "method=",
            f"{shown(name)} is not known",
            "the method decides how the noise enters",
            f"pass one of {', '.join(METHODS)}, or leave it out for the best one",
        )
    return Question(
        declared.asked(estimator),
        query,
        METHODS[name](query.sensitivity(public.neighbors), spend),
        spend,
    )


def _declared(schema: Schema, candidates: Candidates, score: str | None) -> Declared:
    if isinstance(candidates, str):
        return _levels(schema, candidates, score, None, "a choice among levels")
    if isinstance(candidates, Mapping):
        return _filters(schema, candidates, score)
    if isinstance(candidates, Sequence) and all(isinstance(name, str) for name in candidates):
        if score is not None:
            raise InvalidParameter(
                "score=",
                "given beside a list of columns",
                "the columns' own sums are compared",
                "leave it out, or pass candidates as filters",
            )
        return _columns(schema, list(candidates))
    raise InvalidParameter(
        "candidates",
        f"a {type(candidates).__name__} declares none",
        "one of the declared candidates is chosen, none is learnt from the data",
        "pass a Category column, a mapping from labels to filters, or a list of number columns",
    )


def _levels(
    schema: Schema, column: str, score: str | None, where: Where | None, asked: str
) -> Declared:
    kind = schema[column]
    if not isinstance(kind, (Category, Boolean)):
        raise WrongColumnKind(column, type(kind).__name__, "Category or Boolean", asked)
    cells, subset = level_cells(schema, column), cells_where(schema, where)
    part = CandidateGroup(cells.keys + subset.keys + _held(schema, score), _factor(schema, score))
    return Declared((part,), cells.labels[0], score or column, column, subset.where)


def _filters(
    schema: Schema, filters: Mapping[str, Where], score: str | None, word: str = "candidate"
) -> Declared:
    labels = tuple(filters)
    if not labels or not all(isinstance(label, str) and label for label in labels):
        raise InvalidParameter(
            f"{word}s",
            "there are none, or one has no name",
            "the answer is the name of one of them",
            "pass for example {'young': {'age': (18, 30)}, 'north': {'region': 'N'}}",
        )
    factor = _factor(schema, score)
    for label in labels:
        if not isinstance(filters[label], Mapping):
            raise InvalidParameter(
                f"{word} {shown(label)}",
                "it is no filter",
                f"a {word} is about the set of rows that satisfy a declared filter",
                "pass for example {'age': (18, 30)}",
            )
    held = _held(schema, score)
    return Declared(
        tuple(
            CandidateGroup(cells_where(schema, filters[label]).keys + held, factor)
            for label in labels
        ),
        labels,
        score,
        word,
    )


def _columns(schema: Schema, names: list[str]) -> Declared:
    """Sums of several number columns on one grid over the union of their ranges,
    so that they can be compared.
    """
    kinds = [schema[name] for name in names]
    for name, kind in zip(names, kinds, strict=True):
        if isinstance(kind, (Category, Open)):
            raise WrongColumnKind(name, type(kind).__name__, "Real, Integer or Boolean", "a sum")
    if not names or len(set(names)) != len(names):
        raise InvalidParameter(
            "candidates",
            "no column, or one column twice",
            "the sums of different columns are compared",
            "name each column once",
        )
    bounds = [
        (0, 1) if isinstance(kind, Boolean) else (kind.low, kind.high)  # type: ignore[union-attr]
        for kind in kinds
    ]
    low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
    if any(isinstance(kind, Real) for kind in kinds):
        codes = (1 << (SUM_BITS - 1)) - 1
        grid = Encoding(low / 2 + high / 2, codes / ((high - low) / 2), -codes, codes)
    else:
        grid = Integer(int(low), int(high)).encoding(SUM_BITS)
    return Declared(
        tuple(CandidateGroup(_held(schema, name), Factor(name, grid)) for name in names),
        tuple(names),
        None,
        "column",
    )


def _factor(schema: Schema, score: str | None) -> Factor | None:
    return None if score is None else number_factor(schema, score, "a sum", SUM_BITS)


def _held(schema: Schema, summed: str | None) -> tuple[Key, ...]:
    """The filter that leaves out rows without a value of a summed column."""
    return () if summed is None else rows_asked(schema, None, summed).keys


def _whole(number: object, name: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= LARGEST_COUNT:
        raise InvalidParameter(
            f"{name}=",
            f"{shown(number)} is not a whole number from 1 to {LARGEST_COUNT}",
            "each of them has its price",
            f"pass for example {name}=3",
        )
    return number
