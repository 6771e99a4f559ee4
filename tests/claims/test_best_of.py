"""Claim: the best of a random number of private runs tells no more than `BestOf` is charged, and
nothing but the best run leaves.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr
from tests.survey import SCHEMA, survey

import discreet as dp
from discreet.accounting.calibration.best_of import gamma_for
from discreet.accounting.gaussian import gdp_delta, gdp_epsilon
from discreet.accounting.loss_distributions.best_of import (
    best_epsilon,
    best_mu,
    bounds,
    mean_runs,
    rank_epsilon,
)
from discreet.errors import BudgetExceeded, InvalidParameter, ReleaseFailed
from discreet.sensitivity import PrivateRuns
from discreet.specs.hidden_runs import HiddenRuns, OpenRuns
from discreet.specs.mechanisms.procedures import BestOf
from discreet.specs.registry import mechanism_from_dict, query_from_dict
from discreet.testing import seeded_session
from discreet.testing.seeded import SeededSource
from discreet.trusted.engines.rehearsal import Rehearsal
from discreet.trusted.learning.procedures.draw import best_run, number_of_runs
from discreet.trusted.losses.losses import loss_of
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.release import Description, Question

ETAS = (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(2))
GAMMAS = (Fraction(1, 1000), Fraction(1, 20), Fraction(1, 2))


# ── the law of K, and the theorem on finite runs ────────────────────────────────────────────────


def generating(eta: Fraction, gamma: Fraction, u: np.ndarray) -> np.ndarray:
    """E[u^K] in closed form."""
    rest, e = 1 - float(gamma), float(eta)
    if e == 0:
        return np.log1p(-rest * u) / math.log(float(gamma))
    return ((1 - rest * u) ** -e - 1) / (float(gamma) ** -e - 1)


def masses(eta: Fraction, gamma: Fraction, most: int) -> np.ndarray:
    """P(K = 1), …, P(K = most), by the definition of the law."""
    numbers = np.arange(1, most)
    ratios = (1 - float(gamma)) * (numbers + float(eta)) / (numbers + 1)
    relative = np.concatenate([[1.0], np.cumprod(ratios)])
    return relative / relative.sum()


def best_law(law: np.ndarray, scores: np.ndarray, f) -> np.ndarray:
    """P(best = y) for runs of a finite law; ties are broken alike."""
    best = np.zeros(len(law))
    for score in np.unique(scores):
        tied = scores == score
        below, level = law[scores < score].sum(), law[tied].sum()
        if level > 0:
            best[tied] = law[tied] / level * (f(below + level) - f(below))
    return best


def hockey(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.few(3)
@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_the_generating_function_and_the_mean_are_those_of_the_law(eta, gamma) -> None:
    law = masses(eta, gamma, 60_000)
    number = np.arange(1, len(law) + 1)
    assert float(mean_runs(eta, gamma)) == pytest.approx(float(law @ number), rel=1e-6)
    for u in (0.1, 0.5, 0.9):
        expected = float(generating(eta, gamma, np.array(u)))
        assert expected == pytest.approx(float(law @ u**number), rel=1e-8)


@pytest.mark.few(2)
@pytest.mark.parametrize("eta", ETAS)
def test_pure_runs_keep_their_multiple_of_epsilon_and_attain_it(eta) -> None:
    rng, epsilon, largest = np.random.default_rng(5), 0.4, 0.0
    for _ in range(300):
        q = rng.dirichlet(np.full(5, 0.3)) + 1e-12
        q /= q.sum()
        p = q * np.exp(rng.choice([-epsilon / 2, epsilon / 2], 5))
        p /= p.sum()  # ratios stay within ε
        scores = rng.integers(0, 4, 5)
        gamma = Fraction(1, int(rng.integers(2, 10_000)))
        for one, other in itertools.permutations((p, q)):
            best, against = (
                best_law(law, scores, lambda u, g=gamma: generating(eta, g, u))
                for law in (one, other)
            )
            seen = float(np.log(best / against)[against > 1e-9].max())
            assert seen <= float(2 + eta) * epsilon + 1e-6
            largest = max(largest, seen)
    # the extreme: a rare better outcome, and the outcome just below it, both at full ratio
    a, y = 1e-3, 1e-6
    q = np.array([a, y * math.exp(epsilon), 0])
    p = np.array([a * math.exp(epsilon), y, 0])
    p[2], q[2] = 1 - p.sum(), 1 - q.sum()
    gamma, scores = Fraction(1, 10**6), np.array([2, 1, 0])
    best = [best_law(law, scores, lambda u: generating(eta, gamma, u)) for law in (q, p)]
    attained = math.log(best[0][1] / best[1][1])
    assert (2 + float(eta)) * epsilon * 0.998 <= attained <= (2 + float(eta)) * epsilon
    base = PrivateRuns(epsilon=epsilon)
    loss = loss_of(BestOf(base, eta, gamma))
    assert loss.pure == ((2 + eta) * Fraction(2, 5),)


def test_a_fixed_number_of_runs_is_caught() -> None:
    """The control: K = 10 always, charged as if K were random."""
    epsilon = 0.4
    q, p = np.array([0.5, 0.5]), np.array([0.5 * math.exp(-epsilon), 0.0])
    p[1] = 1 - p[0]
    best = [best_law(law, np.array([0, 1]), lambda u: u**10) for law in (q, p)]
    assert math.log(best[0][0] / best[1][0]) > 2 * 2 * epsilon


def discretised(mu: float, cells: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """N(0, 1) and N(μ, 1) on fine cells: as private as the Gaussian pair, or more."""
    edges = np.concatenate([[-np.inf], np.linspace(-7, 7 + mu, cells), [np.inf]])
    return np.diff(ndtr(edges)), np.diff(ndtr(edges - mu))


@pytest.mark.few(1)
@pytest.mark.parametrize("eta", [Fraction(0), Fraction(1)])
@pytest.mark.parametrize("mu", [pytest.param(0.2, marks=pytest.mark.slow), 1.0])
def test_no_order_of_gaussian_runs_exceeds_the_price(mu, eta) -> None:
    """Scores that follow the likelihood ratio, either way, in the middle, or not at all."""
    gamma, exact = gamma_for(10, eta), Fraction(repr(mu))
    p, q = discretised(mu)
    places, rng = np.arange(len(p)), np.random.default_rng(1)
    knots, deltas = bounds(exact, eta, gamma)
    wide = Fraction(best_mu(exact, eta, gamma))
    for scores in (places, -places, -abs(places - len(p) // 2), rng.integers(0, 9, len(p))):
        laws = [best_law(law, scores, lambda u: generating(eta, gamma, u)) for law in (p, q)]
        for one, other in itertools.permutations(laws):
            for place in range(0, len(knots), 20):
                seen = hockey(one, other, knots[place])
                assert seen <= deltas[place] + 1e-9
                assert seen <= gdp_delta(wide, Fraction(float(knots[place]))) + 1e-9
            at = best_epsilon(exact, eta, gamma, Fraction(1, 10**6))
            assert hockey(one, other, at) <= 1e-6


def test_the_price_is_that_of_the_theorem() -> None:
    mu, delta = Fraction(1, 5), Fraction(1, 10**6)
    assert round(best_epsilon(mu, Fraction(0), gamma_for(10, Fraction(0)), delta), 2) == 1.22
    assert round(best_epsilon(mu, Fraction(1), gamma_for(10, Fraction(1)), delta), 2) == 1.31
    alone = gdp_epsilon(mu, delta)  # γ = 1: one run
    assert best_epsilon(mu, Fraction(0), Fraction(1), delta) == pytest.approx(alone, rel=1e-12)
    gamma = gamma_for(10, Fraction(0))
    hat = rank_epsilon(mu, gamma)
    room = float(gamma / (1 - gamma)) * math.expm1(hat)
    assert gdp_delta(mu, Fraction(hat)) == pytest.approx(room, rel=1e-9)
    assert float(mean_runs(Fraction(0), gamma)) == pytest.approx(10, rel=1e-9)


@pytest.mark.slow
def test_the_gaussian_curve_stays_above_beyond_the_last_point() -> None:
    for mu, mean, eta in ((0.05, 3, 0), (0.2, 10, 0), (0.2, 1.2, 1), (1.0, 100, 2)):
        exact, gamma = Fraction(repr(mu)), gamma_for(mean, Fraction(eta))
        knots, _ = bounds(exact, Fraction(eta), gamma)
        wide = Fraction(best_mu(exact, Fraction(eta), gamma))
        assert wide > exact
        shift = (1 + eta) * Fraction(rank_epsilon(exact, gamma))
        factor = float(mean_runs(Fraction(eta), gamma)) * math.exp(shift)
        for times in (1, 1.1, 1.5, 2, 3):
            far = Fraction(float(knots[-1])) * Fraction(times)
            assert factor * gdp_delta(exact, far - shift) <= gdp_delta(wide, far)


# ── what runs ───────────────────────────────────────────────────────────────────────────────────


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("eta", [Fraction(0), Fraction(3, 2)])
def test_the_number_of_runs_follows_its_law(eta) -> None:
    gamma, draws, cells = gamma_for(4, eta), 4000, 12
    mechanism, source = BestOf(PrivateRuns(mu=0.2), eta, gamma), SeededSource(f"K {eta}")
    drawn = np.array([number_of_runs(mechanism, source) for _ in range(draws)])
    counts = np.bincount(np.minimum(drawn, cells), minlength=cells + 1)[1:]

    def expected(about: Fraction) -> np.ndarray:
        law = masses(eta, about, 20_000)
        return draws * np.append(law[: cells - 1], law[cells - 1 :].sum())

    assert chi_square(counts, expected(gamma)) < 35  # 11 degrees of freedom: 1 in 4000
    assert chi_square(counts, expected(gamma_for(4 * 1.3, eta))) > 60
    assert chi_square(counts, expected(gamma_for(4 / 1.3, eta))) > 60


def test_one_run_where_gamma_is_one() -> None:
    mechanism = BestOf(PrivateRuns(mu=0.2), Fraction(0), Fraction(1))
    assert number_of_runs(mechanism, SeededSource(0)) == 1
    assert loss_of(mechanism).mu_squared == Fraction(1, 25)
    assert loss_of(BestOf(PrivateRuns(epsilon=0.5), Fraction(1), Fraction(1))).pure == (
        Fraction(1, 2),
    )


class _Engine:
    """Rows that no run reads."""

    schema = neighbors = None
    remembered: dict[type, object] = {}  # noqa: RUF012


class _Session:
    """What a run gets in place of a session: bits."""

    def __init__(self, engine, schema, neighbors, ledger, source) -> None:
        self.ledger, self.source = ledger, source


def test_the_answer_follows_the_exact_law_of_the_best() -> None:
    """Finite runs through the sampler itself, ties and failures among them."""
    law, scores = np.array([4, 2, 1, 1]) / 8, np.array([-1, 1, 1, 2])
    eta, gamma, draws = Fraction(0), gamma_for(3, Fraction(0)), 1000

    def run(session, trial):
        outcome = int(np.searchsorted([4, 6, 7, 8], session.source.bits(3), side="right"))
        if outcome == 0:
            raise ValueError("this run fails")
        return int(scores[outcome]), str(outcome)

    mechanism, source = BestOf(PrivateRuns(mu=0.2), eta, gamma), SeededSource("best")
    runs, counts = OpenRuns(_Engine(), _Session, PrivateRuns(mu=0.2), 2, run), np.zeros(4)
    for _ in range(draws):
        try:
            (trial, score), (text,) = best_run(mechanism, runs, source)
        except RuntimeError:  # all failed
            counts[0] += 1
            continue
        assert trial in (0, 1)
        assert score == scores[int(text)]
        counts[int(text)] += 1
    exact = best_law(law, scores, lambda u: generating(eta, gamma, u))
    assert chi_square(counts, draws * exact) < 22  # 3 degrees of freedom: 1 in 15000
    single = best_law(law, scores, lambda u: u)
    assert chi_square(counts, draws * single) > 60


# ── on a session ────────────────────────────────────────────────────────────────────────────────

BASE = PrivateRuns(mu=0.5)


def question(run, *, base: PrivateRuns = BASE, trials: tuple[str, ...] = ("a", "b")) -> Question:
    mechanism = BestOf(base, Fraction(0), gamma_for(5, Fraction(0)))
    spend = guarantee_of(mechanism)
    return Question(Description("tune"), HiddenRuns(trials, "a score", base, run), mechanism, spend)


def declared(tmp_path, kind: str) -> dp.Dataset:
    rows = survey(rows=200)
    if kind == "memory":
        return dp.from_arrays(rows, schema=SCHEMA, neighbors=dp.Replace(), name="rows")
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table(rows), path)
    return dp.read_parquet(path, schema=SCHEMA, neighbors=dp.Replace())


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_run_has_the_budget_of_one_run_and_no_more(kind, tmp_path) -> None:
    seen = []

    def run(session, trial):
        seen.append((session.ledger.box, session.ledger.persistent))
        first = dp.mean(session, "income", spend=dp.GDP(0.4))
        with pytest.raises(BudgetExceeded):
            dp.mean(session, "age", spend=dp.GDP(0.4))
        dp.mean(session, "age", spend=dp.GDP(0.29))
        return round(1000 * first.estimate), str(trial)

    session = declared(tmp_path, kind).open(budget=dp.GDP(5))
    release = session.release(question(run), key="best")
    assert all(box.mu_squared == Fraction(1, 4) and not kept for box, kept in seen)
    assert [entry.kind for entry in session.ledger.entries()] == ["open", "debit", "answer"]
    many = len(seen)
    again = session.release(question(run), key="best")
    assert again == release
    assert len(seen) == many  # from the ledger, without another run
    assert session.ledger.verify()
    assert release.integers[0] == int(release.found[0])
    kept = session._engine.remembered
    assert not [text for text in kept[Rehearsal]._tried if "hidden runs" not in text]
    assert set(kept) == {Rehearsal}  # what runs keep with the rows ended with them
    assert session.ledger.spent().exact().mu_squared >= loss_of(release.mechanism).mu_squared


@pytest.mark.slow
def test_the_best_run_is_the_one_with_the_greatest_score() -> None:
    scores: list[int] = []

    def run(session, trial):
        scores.append(round(1000 * dp.mean(session, "income", spend=dp.GDP(0.5)).estimate))
        return scores[-1], f"run {len(scores)}"

    data = dp.from_arrays(survey(rows=200), schema=SCHEMA, neighbors=dp.Replace())
    numbers = set()
    for seed in range(6):
        scores.clear()
        release = seeded_session(data, dp.GDP(5), seed).release(question(run))
        assert release.integers[1] == max(scores)
        assert release.found == (f"run {scores.index(max(scores)) + 1}",)
        numbers.add(len(scores))
    assert len(numbers) > 2


def test_runs_that_all_fail_say_nothing_and_are_paid() -> None:
    def run(session, trial):
        raise ValueError("a secret of the rows")

    session = dp.from_arrays(survey(rows=50), schema=SCHEMA, neighbors=dp.Replace()).open(
        budget=dp.GDP(5)
    )
    for _ in range(2):
        with pytest.raises(ReleaseFailed) as caught:
            session.release(question(run), key="k")
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
    assert [entry.kind for entry in session.ledger.entries()] == ["open", "debit", "answer"]


@pytest.mark.parametrize("returned", [(1.5, "x"), (True, "x"), (1, b"x"), 3, None, ("1", "x")])
def test_a_run_that_returns_something_else_has_failed(returned) -> None:
    session = dp.from_arrays(survey(rows=50), schema=SCHEMA, neighbors=dp.Replace()).open(
        budget=dp.GDP(5)
    )
    with pytest.raises(ReleaseFailed):
        session.release(question(lambda session, trial: returned))


def test_a_question_whose_runs_have_another_budget_is_refused() -> None:
    """The noise index of the price is that of the account: one cannot be stated for the other."""
    session = dp.from_arrays(survey(rows=50), schema=SCHEMA, neighbors=dp.Replace()).open(
        budget=dp.GDP(50)
    )
    asked = question(lambda session, trial: (1, "x"))
    query = HiddenRuns(("a",), "a score", PrivateRuns(mu=0.6), lambda session, trial: (1, "x"))
    with pytest.raises(InvalidParameter, match="not calibrated"):
        session.release(Question(asked.description, query, asked.mechanism, asked.spend))
    with pytest.raises(InvalidParameter, match="costs more"):
        session.release(Question(asked.description, asked.query, asked.mechanism, dp.GDP(0.5)))
    assert len(session.ledger.entries()) == 1


def test_specifications_are_read_again_and_checked() -> None:
    mechanism = BestOf(BASE, Fraction(1, 2), Fraction(1, 10), Fraction(1, 10**6))
    assert mechanism_from_dict(mechanism.to_dict()) == mechanism
    query = HiddenRuns(("a", "b"), "accuracy", BASE)
    assert query_from_dict(query.to_dict()) == query
    for wrong in (
        lambda: BestOf(BASE, Fraction(-1), Fraction(1, 2)),
        lambda: BestOf(BASE, Fraction(0), Fraction(0)),
        lambda: BestOf(BASE, Fraction(0), Fraction(3, 2)),
        lambda: BestOf(BASE, Fraction(0), Fraction(1, 2), Fraction(1)),
        lambda: BestOf(PrivateRuns(epsilon=1.0), Fraction(0), Fraction(1, 2), Fraction(1, 2)),
        lambda: HiddenRuns((), "accuracy", BASE),
        lambda: PrivateRuns(),
        lambda: PrivateRuns(0.1, 0.1),
        lambda: PrivateRuns(-0.1),
    ):
        with pytest.raises(InvalidParameter):
            wrong()
