"""dp.tune: settings tried on hidden runs, of which the best is released.

``best = dp.tune(session, [dp.trial(dp.ols, "y ~ a", method=m) for m in ("clipped", "moments")],
score="squared error", spend=dp.GDP(1))``. *Theorem and price*: docs/theory/tuning.md.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.accounting.calibration.best_of import approximate_run, gamma_for, gaussian_run
from discreet.accounting.guarantees import GDP, ApproxDP, Guarantee, PureDP, spend_mu_squared
from discreet.accounting.loss_distributions.best_of import mean_runs
from discreet.asking.noise_choice import require_spend
from discreet.asking.preview import Assumptions, forecast_of
from discreet.asking.reading import from_json
from discreet.asking.records import RECORDS, record_of
from discreet.asking.sessions import Session
from discreet.asking.steps import step_spend
from discreet.errors import InvalidParameter, shown
from discreet.exact import float_down, rational, sqrt_down
from discreet.inference.regression.best import BestResult, fit_text, in_its_place, told_of_a_run
from discreet.inference.results.stored import release_from_json
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told
from discreet.models.solvers import SGD, chosen_solver
from discreet.models.trials.scores import require_score, score_of, score_question
from discreet.sensitivity import PrivateRuns
from discreet.specs.hidden_runs import MOST_TRIALS, HiddenRuns
from discreet.specs.mechanisms.procedures import LARGEST_ETA, BestOf
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.release import Description, Question, Release

MOST_RUNS = 1000
SCORE_SHARE = Fraction(1, 4)  # of a run's μ² or ε
_FITS = ("ols", "robust", "logistic", "erm")  # with a linear predictor
_GUESSED_ROWS = 1000.0  # of a preview that only checks a trial


@dataclass(frozen=True, slots=True)
class Trial:
    """A fit of this library with its settings, to be run on hidden accounts.

    Its settings are rebuilt from plain values: what a caller's own object or function would see in
    a hidden run is how many of them there are.
    """

    function: Callable[..., Any]
    asked: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]

    def __post_init__(self) -> None:
        record = record_of(self.function)
        if record is None or record.name not in _FITS:
            raise InvalidParameter(
                "dp.trial",
                f"{shown(self.function)} is no fit of this package that can be tried",
                "a hidden run must keep nothing beside its answer, and its score needs a linear "
                "predictor",
                "try " + ", ".join(f"dp.{one.name}" for one in RECORDS if one.name in _FITS),
            )
        if type(self.asked) is not tuple or not _are_pairs(self.options):
            raise InvalidParameter(
                "dp.trial",
                "its settings are no tuples",
                "they are rebuilt from plain values",
                "make it with dp.trial(dp.ols, 'y ~ a', solver='newton')",
            )
        options = {}
        for given, held in self.options:
            name = plain.text(given, "a name")
            if name in ("spend", "key"):
                raise InvalidParameter(
                    f"dp.trial({name}=…)",
                    "a trial has none of its own",
                    "all runs are paid by one debit, and only the best is kept, under one key",
                    f"pass {name}= to dp.tune",
                )
            options[name] = _own(held, f"{name}=")
        object.__setattr__(self, "asked", tuple(_own(one, "dp.trial") for one in self.asked))
        object.__setattr__(self, "options", tuple(options.items()))
        _bound(self.function, self.asked, options)
        solver = chosen_solver(options.get("solver"))
        if isinstance(solver, SGD) and solver.law == "gaussian":
            raise InvalidParameter(
                "dp.trial(solver=…)",
                "a descent with Gaussian noise needs a δ₀ of its own",
                "the account of a hidden run has none",
                "use another solver, or dp.SGD(law='laplace') with a pure spend",
            )

    def __str__(self) -> str:
        parts = [repr(one) for one in self.asked]
        parts += [f"{name}={held!r}" for name, held in self.options]
        return f"dp.{self.function.__name__}({', '.join(parts)})"

    __repr__ = __str__


def _are_pairs(options: object) -> bool:
    return type(options) is tuple and all(
        type(pair) is tuple and len(pair) == 2 for pair in options
    )


def _own(given: Any, name: str) -> Any:
    """A setting of plain values alone."""
    read = plain.value(given, name)
    if _is_plain(read):
        return read
    raise InvalidParameter(
        f"dp.trial({name}…)",
        f"a {plain.kind_name(given)} is not made of plain values",
        "what is called in a hidden run sees how many there are",
        "use text, numbers, lists and dicts of them, and specifications of this package",
    )


def _is_plain(read: Any) -> bool:
    if type(read) is dict:
        return all(_is_plain(one) for pair in read.items() for one in pair)
    if type(read) is list or type(read) is tuple:
        return all(map(_is_plain, read))
    return plain.is_plain(read) or type(read) is date or type(read) is datetime


@plain.door
def trial(procedure: Callable[..., Any], *asked: Any, **options: Any) -> Trial:
    """A fit to be tried by `dp.tune`: ``dp.trial(dp.logistic, "y ~ a + b", solver="newton")``.

    It has neither a `spend` nor a `key`: every run spends what `dp.tune` gives it, and none is
    kept.

    Example.
            print(dp.trial(dp.robust, "income ~ age", c=1.0))
    See also. `dp.tune`.
    """
    return Trial(procedure, asked, tuple(options.items()))


def _bound(procedure: Callable[..., Any], asked: Sequence[Any], options: dict[str, Any]) -> None:
    """Refuses arguments that the procedure does not take."""
    try:
        inspect.signature(procedure).bind(None, *asked, spend=None, **options)
    except TypeError as error:
        found = str(error)
    else:
        return
    raise InvalidParameter(
        f"dp.trial(dp.{procedure.__name__}, …)",
        found,
        "a trial that cannot run would only be seen to lose",
        f"pass what dp.{procedure.__name__} takes, without session, spend and key",
    )


@plain.door
def tune(
    session: Session,
    candidates: Sequence[Trial],
    *,
    score: str,
    spend: Guarantee,
    trials: float = 10,
    eta: float = 0,
    key: str | None = None,
) -> BestResult:
    """The best of a random number of hidden runs of some trials.

    candidates   what `dp.trial` made; each run draws one of them, all alike
    score        "accuracy", "log-loss" (yes/no responses) or "squared error" (numbers): a noisy sum
                 on the same rows, which is part of a run's price
    trials       how many runs are to be expected; their number is random and stays hidden
    eta          of the law of that number: 0 (logarithmic) varies most and costs least
    spend        of everything together: one debit, one release

    With a `key`, asking again returns the stored answer and runs nothing.

    Formula.
            release the run with the best score of K runs,   K ~ a law with mean `trials`

            K  hidden: not even its value is told

    Validity. The best of several scores is too good a score: judge the chosen setting on other
              rows, with `dp.accuracy` say.
    Price.    One spend for all runs (docs/theory/tuning.md); a run that is not released costs
              nothing more.
    Example.
            session = dp.load_census().open(
                budget=dp.ApproxDP(epsilon=4, delta=1e-5), pure=1.5, delta0=5e-6
            )
            trials = [
                dp.trial(dp.ols, "income ~ age"),
                dp.trial(dp.ols, "income ~ age + education"),
            ]
            best = dp.tune(
                session, trials, score="squared error", trials=4, spend=dp.ApproxDP(1, 1e-6)
            )
            print(best.chosen)
    See also. `dp.trial`, `dp.holdout`; docs/how-to/tuning.md.
    """
    asked = _asked(session, candidates, score, spend, trials, eta)
    return _result(session.release(asked.question, key=key))


def best_from_json(text: str) -> BestResult:
    """The result that `BestResult.to_json` wrote."""
    return _result(release_from_json(json.dumps(json.loads(text)["release"])))


def _result(release: Release) -> BestResult:
    """The fit says what all runs together cost, by a guarantee of one number, which is true however
    it was charged.
    """
    query, mechanism = release.query, release.mechanism
    assert isinstance(query, HiddenRuns)
    assert isinstance(mechanism, BestOf)
    release = replace(release, query=replace(query, run=None))  # what ran does not leave
    whole = guarantee_of(replace(mechanism, delta=Fraction(0)))
    return BestResult(release, in_its_place(from_json(fit_text(release)), release, whole))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question about the best run, and what one run spends on its fit and on its score."""

    question: Question
    run: Guarantee
    fit: Guarantee
    score: Guarantee


def _asked(
    session: Session,
    candidates: Sequence[Trial],
    score: str,
    spend: Guarantee,
    trials: float,
    eta: float,
) -> _Asked:
    chosen, law = _checked_trials(candidates), _law(trials, eta)
    score, spend = require_score(score), require_spend(spend)
    base, mechanism, agreed = _priced(session, spend, *law)
    fit, judged = step_spend(base, 1 - SCORE_SHARE), step_spend(base, SCORE_SHARE)
    for one in chosen:
        _rehearsed(session, one, score, fit)

    def run(hidden: Any, place: int) -> tuple[int, str]:
        """One trial on a hidden session: its score, and its fit as text."""
        one = chosen[place]
        found = one.function(hidden, *one.asked, spend=fit, **dict(one.options))
        release = hidden.release(score_question(hidden.public, found, score, judged))
        return release.integers[0], told_of_a_run(found, *score_of(release, float(found.rows)))

    query = HiddenRuns(tuple(map(str, chosen)), score, mechanism.sensitivity, run)
    question = Question(Description("tune", score), query, mechanism, agreed, mechanism.delta)
    return _Asked(question, base, fit, judged)


def _checked_trials(candidates: object) -> tuple[Trial, ...]:
    """The trials, made anew: what was checked is what runs, and nobody else holds it."""
    listed = candidates if type(candidates) is list or type(candidates) is tuple else ()
    if not 1 <= len(listed) <= MOST_TRIALS or any(type(one) is not Trial for one in listed):
        raise InvalidParameter(
            "dp.tune",
            f"{shown(candidates)} is no list of 1 to {MOST_TRIALS} trials",
            "each run draws one of them",
            "pass for example [dp.trial(dp.ols, 'y ~ a'), dp.trial(dp.robust, 'y ~ a')]",
        )
    return tuple(Trial(one.function, one.asked, one.options) for one in listed)


def _law(trials: object, eta: object) -> tuple[Fraction, Fraction]:
    """η and γ of the number of runs."""
    mean, exact = rational(trials, "trials="), rational(eta, "eta=")
    if not 1 <= mean <= MOST_RUNS:
        raise InvalidParameter(
            "trials=",
            f"{shown(trials)} is not from 1 to {MOST_RUNS}",
            "it is how many runs are to be expected",
            "pass for example trials=10",
        )
    if not 0 <= exact <= LARGEST_ETA:
        raise InvalidParameter(
            "eta=",
            f"{shown(eta)} is not from 0 to {LARGEST_ETA}",
            "it shapes the law of the number of runs",
            "leave it out",
        )
    return exact, gamma_for(float(mean), exact)


def _priced(
    session: Session, spend: Guarantee, eta: Fraction, gamma: Fraction
) -> tuple[Guarantee, BestOf, Guarantee]:
    """What one run may spend, the mechanism, and the spend as it is charged in this ledger.

    An (ε, δ) is charged as ε and δ₀ where the ledger has a pure part, else by its μ.
    """
    if isinstance(spend, PureDP):
        factor = 1 if gamma == 1 else 2 + eta
        pure = float_down(rational(spend.epsilon, "epsilon") / factor)
        return PureDP(pure), BestOf(PrivateRuns(epsilon=pure), eta, gamma), spend
    if not isinstance(spend, ApproxDP):
        mu = gaussian_run(sqrt_down(spend_mu_squared(spend)), eta, gamma)
        return GDP(mu), BestOf(PrivateRuns(mu=mu), eta, gamma), spend
    epsilon, delta = rational(spend.epsilon, "epsilon"), rational(spend.delta, "delta")
    mu = approximate_run(epsilon, delta, eta, gamma)
    mechanism = BestOf(PrivateRuns(mu=mu), eta, gamma)
    whole = guarantee_of(mechanism)  # a result says it: refused here, where there is none
    if session.ledger.box.epsilon:
        return GDP(mu), replace(mechanism, delta=delta), PureDP(spend.epsilon)
    return GDP(mu), mechanism, whole


def _rehearsed(session: Session, one: Trial, score: str, spend: Guarantee) -> None:
    """Refuses, from public facts, a trial that could not run or could not be scored."""
    record = record_of(one.function)
    assert record is not None
    rows = session.public.rows
    assume = Assumptions(rows=_GUESSED_ROWS if rows is None else None)
    try:
        forecast = forecast_of(
            record, session, *one.asked, spend=spend, assume=assume, at=0.95, **dict(one.options)
        )
    except InvalidParameter as error:
        if error.asked != "preview":  # a fit without intervals has no forecast
            raise
        return
    score_question(session.public, forecast.expected, score, spend)


# ── preview ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, repr=False)
class TunePreview(Told):
    """What tuning would cost, and what each run would have: free, and made without data."""

    question: Question
    run: Guarantee
    fit: Guarantee
    score: Guarantee
    promise: Guarantee
    price: str
    how_many: int

    @property
    def expected_runs(self) -> float:
        mechanism = self.question.mechanism
        assert isinstance(mechanism, BestOf)
        return float(mean_runs(mechanism.eta, mechanism.gamma))

    def summary(self) -> Summary:
        rows = (
            ("everything", str(self.promise)),
            ("one run", str(self.run)),
            ("its fit", str(self.fit)),
            ("its score", str(self.score)),
        )
        return Summary(
            "Preview of tune",
            ("", "guarantee"),
            rows,
            (
                f"About {self.expected_runs:.3g} runs are to be expected; their number is random "
                f"and stays hidden. Price: {self.price}. About {self.how_many} like this fit in "
                "what is left.",
                "Nothing was spent and no data was read. dp.preview of a trial at the spend of its "
                "fit says how wide its intervals would be.",
            ),
        )


def tune_preview(
    session: Session,
    candidates: Sequence[Trial],
    *,
    score: str,
    spend: Guarantee,
    assume: Assumptions,
    level: float,
    trials: float = 10,
    eta: float = 0,
) -> TunePreview:
    asked = _asked(session, candidates, score, spend, trials, eta)
    mechanism = asked.question.mechanism
    assert isinstance(mechanism, BestOf)
    price = session.price(asked.question)
    promise = spend if isinstance(spend, ApproxDP) else guarantee_of(mechanism)
    return TunePreview(
        asked.question,
        asked.run,
        asked.fit,
        asked.score,
        promise,
        str(price),
        session.ledger.how_many(price),
    )
