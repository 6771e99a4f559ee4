"""dp.tune: one debit, one release, and nothing of the runs that lose."""

from __future__ import annotations

import json
import logging
import pickle
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

import discreet as dp
from discreet import plain
from discreet.models.trials import tune as room
from discreet.seclusion import secluded
from discreet.testing import seeded_session
from discreet.trusted.engines.rehearsal import Rehearsal
from discreet.trusted.extensions.estimating.rows import ModelRows
from discreet.trusted.losses.pricing import within_spend

ROWS = 400
SCHEMA = {"a": dp.Real(-1, 1), "b": dp.Real(-3, 3), "y": dp.Boolean(), "t": dp.Real(-10, 10)}
BUDGET = dp.GDP(5)


def rows_of(seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, ROWS), rng.normal(size=ROWS)
    return {
        "a": a,
        "b": b,
        "y": rng.random(ROWS) < 1 / (1 + np.exp(-(2 * a - b))),
        "t": 2 * a - b + rng.normal(size=ROWS),
    }


def data_set(neighbors: Any = None, **more: Any) -> dp.Dataset:
    relation = dp.Replace() if neighbors is None else neighbors
    return dp.from_arrays(rows_of(), schema=SCHEMA, neighbors=relation, **more)


def some_trials() -> list[Any]:
    """Quick ones: a fit by second moments is one release."""
    formulas = ("t ~ a + b", "t ~ a", "t ~ b")
    return [dp.trial(dp.ols, formula, method="moments") for formula in formulas]


def tuned(session: dp.Session, **more: Any) -> Any:
    asked = {"score": "squared error", "trials": 4, "spend": dp.GDP(2)} | more
    return dp.tune(session, asked.pop("candidates", some_trials()), **asked)


def entries(session: dp.Session) -> list[str]:
    return [entry.kind for entry in session.ledger.entries()]


# ── what leaves ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_one_debit_and_one_release_which_a_key_gives_again(monkeypatch: Any) -> None:
    session = seeded_session(data_set(), BUDGET, 3)
    best = tuned(session, key="best")
    assert entries(session) == ["open", "debit", "answer"]
    assert best.chosen == best.trials[best.place] == str(some_trials()[best.place])
    assert best.fit.names[0] == "intercept"
    assert {one.entry for one in best.fit.releases} == {best.release.entry}
    assert {one.entry_hash for one in best.fit.releases} == {best.release.entry_hash}
    assert best.fit.facts.spend.mu == pytest.approx(2, rel=1e-4)

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("a stored answer is not run again")

    monkeypatch.setattr(room, "score_question", _only_in_public(room.score_question, never))
    again = tuned(session, key="best")
    assert again.release == best.release
    assert entries(session) == ["open", "debit", "answer"]
    assert pickle.loads(pickle.dumps(best)) == best
    assert dp.from_json(best.to_json()) == best
    with pytest.raises(dp.LedgerRefused):
        tuned(session, key="best", trials=5)
    assert session.ledger.verify()


def _only_in_public(asked: Callable[..., Any], otherwise: Callable[..., Any]) -> Any:
    """The check of trials before the debit goes on; what runs after it does not."""
    return lambda public, fit, score, spend: (
        asked(public, fit, score, spend) if fit.facts.spend == spend else otherwise()
    )


def digits(text: str) -> set[str]:
    """The noisy numbers of a run, those that are long enough to be nobody else's."""
    record = json.loads(text)["fit"]
    numbers = {str(value) for one in record["releases"] for value in one["integers"]}
    return {number.lstrip("-") for number in numbers if len(number) > 7}


def test_a_losing_run_is_nowhere(tmp_path: Any, monkeypatch: Any, capfd: Any, caplog: Any) -> None:
    """The numbers of the losing runs are the canaries; those of the winner show that they would
    be found.
    """
    path, told = tmp_path / "tune.ledger", []
    plain_text = room.told_of_a_run

    def noted(*given: Any) -> str:
        told.append(plain_text(*given))
        return told[-1]

    monkeypatch.setattr(room, "told_of_a_run", noted)
    caplog.set_level(logging.DEBUG)
    session = data_set(name="rows").open(budget=BUDGET, ledger=path)
    best = tuned(session, key="best", trials=12)
    while len(set(told)) < 2:  # one run in twenty times or so
        told.clear()
        best = tuned(data_set(name="rows").open(budget=BUDGET, ledger=path), trials=12)
    won = digits(best.release.found[0])
    lost = set().union(*map(digits, told)) - won
    assert len(won) > 5
    assert len(lost) > 5
    out, err = capfd.readouterr()
    seen = [
        *(one.read_bytes().decode("latin-1") for one in tmp_path.iterdir()),
        pickle.dumps(best).decode("latin-1"),
        best.to_json(),
        repr(best),
        str(best),
        repr(session),
        str(session.ledger.entries()),
        out,
        err,
        caplog.text,
    ]
    kept = session._engine.remembered  # with the rows: no model of a run, no question of one
    assert ModelRows not in kept
    assert not [text for text in kept[Rehearsal]._tried if "hidden runs" not in text]
    assert not [canary for canary in lost if any(canary in one for one in seen)]
    assert all(any(number in one for one in seen[:-3]) for number in won)


def test_what_a_run_says_is_not_seen(monkeypatch: Any, capfd: Any, caplog: Any) -> None:
    """A trial that prints, warns, logs and raises loses, and says nothing."""
    told = room.told_of_a_run
    done = []

    def loud(fit: Any, *score: float) -> str:
        done.append(len(fit.names))
        if len(fit.names) == 2:
            print("CANARY")
            logging.getLogger("discreet").error("CANARY")
            warnings.warn("CANARY", stacklevel=1)
            raise ValueError("CANARY")
        return told(fit, *score)

    monkeypatch.setattr(room, "told_of_a_run", loud)
    caplog.set_level(logging.DEBUG)
    for seed in range(9):
        done.clear()
        session = seeded_session(data_set(), BUDGET, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                best, said = tuned(session, trials=6), ""
            except dp.ReleaseFailed as error:
                best, said = None, str(error)
        assert "CANARY" not in said
        if best is None:  # all runs drew the loud trials
            assert set(done) == {2}
            continue
        assert len(best.fit.names) == 3
        assert "CANARY" not in repr(best) + best.to_json()
        if {2, 3} <= set(done):
            break
    else:
        raise AssertionError("no seed drew both")
    out, err = capfd.readouterr()
    assert "CANARY" not in out + err + caplog.text


@pytest.mark.slow
def test_better_settings_win_more_often() -> None:
    wins = [tuned(seeded_session(data_set(), BUDGET, seed), trials=6).place for seed in range(12)]
    assert wins.count(0) >= 8  # of three, and the others lack a column


# ── what it costs ───────────────────────────────────────────────────────────────────────────────


def test_the_preview_says_the_price_of_the_theorem() -> None:
    session = data_set().open(budget=dp.ApproxDP(4, 1e-5), pure=1.5, delta0=5e-6)
    spend = dp.ApproxDP(1.22, 1e-6)
    seen = dp.preview(
        session, dp.tune, some_trials(), score="squared error", trials=10, spend=spend
    )
    assert round(seen.run.mu, 3) == 0.2
    assert seen.fit.mu**2 + seen.score.mu**2 <= seen.run.mu**2
    assert "ε = 1.22" in str(seen)
    assert "Price: ε = 1.22, δ₀ = 1e-06" in " ".join(str(seen).split())  # in however many lines
    assert seen.expected_runs == pytest.approx(10)
    assert entries(session) == ["open"]
    best = tuned(session, spend=spend, trials=10)
    assert best.release.guarantee.delta == pytest.approx(1e-6)
    assert 1.219 < best.release.guarantee.epsilon <= 1.22
    spent = session.ledger.spent().exact()
    assert spent.mu_squared == 0
    assert 1.219 < spent.epsilon <= 1.22


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("budget", "spend"),
    [
        (dp.GDP(3), dp.GDP(1)),
        (dp.ZCDP(2), dp.ZCDP(0.5)),
        (dp.ZCDP(2), dp.ApproxDP(1, 1e-6)),
        (dp.ApproxDP(6, 1e-6), dp.ApproxDP(1, 1e-6)),
        (dp.ApproxDP(6, 1e-6), dp.GDP(1)),
    ],
)
def test_every_ledger_charges_what_the_runs_tell(budget: Any, spend: Any) -> None:
    session = data_set().open(budget=budget)
    best = tuned(session, spend=spend)
    release = best.release
    assert within_spend(release.mechanism, release.spend, release.delta)
    spent = session.ledger.spent().exact()
    whole = best.fit.facts.spend.mu**2
    assert float(spent.mu_squared + 2 * spent.rho) == pytest.approx(whole, rel=1e-6)
    if isinstance(spend, dp.GDP):
        assert whole <= spend.mu**2
    assert session.ledger.verify()


def test_pure_runs_cost_twice_their_epsilon() -> None:
    session = data_set().open(budget=dp.PureDP(5))
    solver = dp.SGD(law="laplace", steps=20, batch=100)
    trials = [dp.trial(dp.logistic, formula, solver=solver) for formula in ("y ~ a + b", "y ~ a")]
    best = tuned(session, candidates=trials, score="accuracy", spend=dp.PureDP(4))
    assert best.release.guarantee == dp.PureDP(4)
    assert float(session.ledger.spent().exact().epsilon) == pytest.approx(4)
    assert len(best.fit.params) in (2, 3)
    assert "ε = 2 with its score" in str(best)


def test_penalties_of_perturbed_minimisers_are_tried() -> None:
    trials = [dp.trial(dp.logistic, "y ~ a", method="objective", penalty=v) for v in (3, 10, 30)]
    session = data_set().open(budget=dp.PureDP(3))
    best = tuned(session, candidates=trials, score="log-loss", spend=dp.PureDP(2))
    assert best.chosen == str(trials[best.place])
    assert dp.from_json(best.to_json()) == best
    assert best.fit.penalty == pytest.approx((3, 10, 30)[best.place], rel=1e-6)


def test_prices_that_runs_were_the_first_to_ask_for_are_forgotten(monkeypatch: Any) -> None:
    """Else a later question would be quicker where a losing run had asked before."""
    asked: list[int] = []

    @plain.remembered(2)
    def priced(number: int) -> int:
        asked.append(number)
        return number

    def told(*given: Any) -> str:
        assert [priced(one) for one in (1, 2, 3, 4, 2)] == [1, 2, 3, 4, 2]
        return real(*given)

    real = room.told_of_a_run
    monkeypatch.setattr(room, "told_of_a_run", told)
    priced(1)
    tuned(seeded_session(data_set(), dp.GDP(9), "kept"), trials=4)
    assert asked == [1, 2, 3, 4]  # all runs together ask once
    assert [priced(one) for one in (1, 2)] == [1, 2]
    assert asked == [1, 2, 3, 4, 2]


@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
def test_a_penalty_that_a_run_cannot_pay_for_acts_as_one_that_it_can(neighbors: Any) -> None:
    """A hidden run of (1, 10⁻⁶) has about a tenth of μ: far too little for a penalty of 3."""
    trials = [
        dp.trial(dp.logistic, "y ~ a + b", method="objective", penalty=v) for v in (3, 10, 30)
    ]
    budget = dp.Ledger.open(dp.ApproxDP(4, 1e-5), pure=2, delta0=5e-6)
    session = seeded_session(data_set(neighbors), budget, "small")
    best = dp.tune(session, trials, score="accuracy", trials=10, spend=dp.ApproxDP(1, 1e-6))
    asked = (3, 10, 30)[best.place]
    assert best.chosen == str(trials[best.place])
    told = "was asked for and acts as" in " ".join(str(best.fit.summary()).split())
    assert told == (best.fit.penalty > asked * (1 + 1e-9))
    assert 7 < best.fit.penalty < 31


@pytest.mark.slow
@pytest.mark.parametrize(
    "score", ["squared error", pytest.param("log-loss", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("neighbors", [dp.AddRemove(), dp.Replace(unit="a", max_rows=2)], ids=str)
def test_other_scores_and_relations(score: str, neighbors: Any) -> None:
    numbers = score == "squared error"
    trials = (
        [dp.trial(dp.ols, "t ~ a + b"), dp.trial(dp.robust, "t ~ a", c=2)]
        if numbers
        else [dp.trial(dp.logistic, "y ~ a"), dp.trial(dp.logistic, "y ~ a", solver="newton")]
    )
    session = seeded_session(data_set(neighbors), dp.GDP(20), "others")
    best = tuned(session, candidates=trials, score=score, trials=2, spend=dp.GDP(8))
    assert 0.3 < best.score < 1.2
    assert best.place in (0, 1)


# ── what is refused ─────────────────────────────────────────────────────────────────────────────


def own(session: Any, formula: str, *, spend: Any) -> None:
    """No function of the library."""


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: dp.trial(own, "y ~ a"), "no fit of this package"),
        (lambda: dp.trial(dp.mean, "a"), "no fit of this package"),
        (lambda: dp.trial("dp.logistic", "y ~ a"), "no fit of this package"),
        (lambda: dp.trial(dp.logistic, "y ~ a", spend=dp.GDP(1)), "none of its own"),
        (lambda: dp.trial(dp.logistic, "y ~ a", key="k"), "none of its own"),
        (lambda: dp.trial(dp.logistic, "y ~ a", penlty=3), "penlty"),
        (lambda: dp.trial(dp.logistic, "y ~ a", solver="sgd"), "δ₀"),
        (lambda: dp.trial(dp.logistic), "formula"),
        (lambda: dp.trial(dp.m_estimate, "t ~ a", psi=lambda r: r), "no fit of this package"),
        (lambda: dp.trial(dp.ols, "t ~ a", where=lambda row: True), "where="),
        (lambda: room.Trial(own, ("y ~ a",), ()), "no fit of this package"),
        (lambda: room.Trial(dp.ols, ("t ~ a",), (("spend", dp.GDP(1)),)), "none of its own"),
    ],
)
def test_a_trial_that_is_none_is_refused(made: Callable[[], Any], says: str) -> None:
    with pytest.raises(dp.InvalidParameter, match=says):
        made()


def test_settings_are_read_once_and_are_the_trials_own() -> None:
    """What a caller's object would see in a hidden run is how many there are."""

    class Watching(dict):  # type: ignore[type-arg]
        reads = 0

        def __iter__(self) -> Any:
            Watching.reads += 1
            return super().__iter__()

        def items(self) -> Any:
            Watching.reads += 1
            return super().items()

    where = Watching(a=(-0.5, 0.5))
    made = dp.trial(dp.ols, "t ~ b", method="moments", where=where)
    where["a"], reads = (0, 0), Watching.reads
    best = tuned(data_set().open(budget=BUDGET), candidates=[made])
    assert Watching.reads == reads
    assert "-0.5" in best.chosen


class Counting(str):
    """Text that counts who compares it, or looks it up, in a hidden run."""

    __slots__ = ()
    seen: ClassVar[list[str]] = []

    def __eq__(self, other: object) -> bool:
        self.seen.extend(["eq"] * secluded())
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        self.seen.extend(["hash"] * secluded())
        return str.__hash__(self)


class Another:
    """No trial, but it has what one has."""

    asked, options = ("t ~ a",), (("method", "moments"),)

    @property
    def function(self) -> Any:
        Counting.seen.extend(["run"] * secluded())
        return dp.ols


class Exchanged(list[Any]):
    """A list that holds other things when it is read again."""

    def __iter__(self) -> Any:
        self.reads = getattr(self, "reads", 0) + 1
        return list.__iter__(self) if self.reads == 1 else iter([Another()])


def edited() -> Any:
    made = dp.trial(dp.ols, "t ~ a", method="moments")
    object.__setattr__(made, "options", ((Counting("method"), "moments"),))
    return made


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "more",
    [
        lambda: {"score": Counting("squared error")},
        lambda: {"candidates": [dp.trial(dp.ols, "t ~ a", **{Counting("method"): "moments"})]},
        lambda: {"candidates": [edited()]},
        lambda: {"candidates": Exchanged(some_trials())},
    ],
    ids=["score", "name", "edited trial", "exchanged trials"],
)
def test_nothing_of_the_callers_is_asked_in_a_hidden_run(more: Callable[[], Any]) -> None:
    """What is asked once a run tells how many there were."""
    Counting.seen.clear()
    tuned(seeded_session(data_set(), BUDGET, 3), **more())
    assert not Counting.seen


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"trials": 0.5}, "trials="),
        ({"trials": 0}, "trials="),
        ({"trials": 10**6}, "trials="),
        ({"trials": float("nan")}, "trials="),
        ({"trials": "ten"}, "trials="),
        ({"eta": -1}, "eta="),
        ({"score": "auc"}, "score="),
        ({"score": None}, "score="),
        ({"score": "accuracy"}, "a number"),
        ({"candidates": []}, "no list"),
        ({"candidates": [dp.logistic]}, "no list"),
        ({"candidates": "y ~ a"}, "no list"),
        ({"spend": 1.0}, "spend="),
        ({"spend": dp.GDP(1e-4)}, "spend="),
    ],
)
def test_bad_input_is_refused_before_the_debit(more: dict[str, Any], says: str) -> None:
    session = data_set().open(budget=BUDGET)
    with pytest.raises(dp.DiscreetError, match=says):
        tuned(session, **more)
    assert entries(session) == ["open"]


@pytest.mark.slow
def test_runs_whose_result_could_not_be_told_are_refused_before_the_debit() -> None:
    """(100, 10⁻⁶) for four runs is a price in ε and δ, but no Gaussian curve is known below it."""
    session = data_set().open(budget=dp.ApproxDP(400, 1e-4), pure=300, delta0=5e-5)
    with pytest.raises(dp.errors.NoTheorem):
        tuned(session, spend=dp.ApproxDP(100, 1e-6))
    assert entries(session) == ["open"]


@pytest.mark.slow
def test_a_trial_that_could_not_run_is_refused_before_the_debit() -> None:
    session = data_set().open(budget=BUDGET)
    for formula, wrong in (("t ~ nobody", dp.UndeclaredColumn), ("y ~ a", dp.InvalidParameter)):
        with pytest.raises(wrong):
            tuned(session, candidates=[*some_trials(), dp.trial(dp.ols, formula)])
    with pytest.raises(dp.DiscreetError):  # a Gaussian fit with a pure spend
        tuned(data_set().open(budget=dp.PureDP(2)), spend=dp.PureDP(1))
    with pytest.raises(dp.BudgetExceeded):
        tuned(session, spend=dp.GDP(6))
    assert entries(session) == ["open"]
