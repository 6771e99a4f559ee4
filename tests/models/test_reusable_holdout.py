"""dp.holdout as people use it: answers, intervals, refusals, forks and copies."""

from __future__ import annotations

import copy
import os
import pickle

import numpy as np
import pytest
from tests.survey import RELATIONS, SPENDS

import discreet as dp
from discreet.inference.holdout.answers import law_in_rows
from discreet.specs.holdout.surprises import STEPS
from discreet.testing import seeded_session

SCHEMA = {
    "a": dp.Real(0, 1, missing=0),
    "b": dp.Real(0, 1),
    "age": dp.Integer(18, 90, missing=40),
    "region": dp.Category(["E", "N"]),
    "y": dp.Boolean(missing=False),
    "k": dp.Open(),
}


def arrays(rows: int = 2000, seed: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.random(rows)
    return {
        "a": a,
        "b": rng.random(rows),
        "age": rng.integers(18, 91, rows),
        "region": rng.choice(["E", "N"], rows),
        "y": rng.random(rows) < 0.2 + 0.6 * a,
        "k": np.full(rows, "k"),
        "person": np.arange(rows) // 2,
    }


def session_of(relation=None, seed="holdout", data=None, budget=None):
    held = dp.from_arrays(
        arrays() if data is None else data, schema=SCHEMA, neighbors=relation or dp.Replace()
    )
    return seeded_session(held, budget or dp.ApproxDP(1e4, 1e-2), seed)


def open_holdout(relation=None, seed="holdout", spend=None, answers=5, **more):
    session = session_of(relation, seed, **more)
    return dp.holdout(session, threshold=0.04, answers=answers, spend=spend or dp.GDP(5))


@pytest.fixture(scope="module")
def fit():
    return dp.logistic(session_of(seed="fit"), "y ~ a", spend=dp.GDP(20))


def asks(holdout, fit):
    return [
        holdout.share({"age": (18, 30)}, training=0.5),
        holdout.mean("age", training=54.0),
        holdout.mean(["a", "age"], training=2.0),
        holdout.mean(lambda row: row["a"] * row["a"], training=0.9),
        holdout.accuracy(fit, training=0.65),
    ]


@pytest.mark.few(2)
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_every_question_works_under_every_relation(relation, fit) -> None:
    data = arrays()
    spends = SPENDS[2:3] if relation.unit else (dp.GDP(5), dp.PureDP(20))
    for spend in spends:
        holdout = open_holdout(relation, spend=dp.GDP(20) if relation.unit else spend)
        answers = asks(holdout, fit)
        truths = [
            np.mean((data["age"] >= 18) & (data["age"] <= 30)),
            data["age"].mean(),
            np.mean(data["a"] * data["age"]),
            np.mean(data["a"] ** 2),
        ]
        sources = ["holdout", "training", "holdout", "holdout", "training"]
        assert [answer.source for answer in answers] == sources
        assert [answer.number for answer in answers] == [1, 2, 3, 4, 5]
        assert [answer.left for answer in answers] == [4, 4, 3, 2, 2]
        for answer, truth in zip(answers, truths, strict=False):
            width = answer.claim.width
            assert (
                abs(answer.value - truth) < (0.05 if answer.source == "training" else 0.02) * width
            )
            low, high = answer.confidence_interval(0.9999)
            assert low <= truth <= high
        history = holdout.history
        assert dp.from_json(history.to_json()) == history
        assert pickle.loads(pickle.dumps(history)) == history
        assert dp.from_json(answers[0].to_json()).answers == (answers[0],)
        assert len(history.to_frame()) == 5
        assert len(history.surprises) == 3
        text = str(holdout.summary())
        assert "NOT PRIVATE" in text
        assert "counts as 40" in text
        assert str(holdout.facts.guarantee) in text


def test_it_is_paid_once_and_answers_cost_nothing_more(fit) -> None:
    session = session_of()
    holdout = dp.holdout(session, threshold=0.04, answers=5, spend=dp.GDP(1))
    head, spent = session.ledger.head, session.ledger.spent()
    asks(holdout, fit)
    dp.count(session, spend=dp.GDP(0.1), where={"region": "N"})  # other questions meanwhile
    assert session.ledger.verify()
    assert [entry.kind for entry in session.ledger.entries()].count("debit") == 2
    assert 0.99 < float(spent.exact().mu_squared) <= 1
    assert float(session.ledger.spent().exact().mu_squared - spent.exact().mu_squared) <= 0.0101
    assert head != session.ledger.head


def test_no_answer_is_given_beyond_those_that_were_paid_for() -> None:
    holdout = open_holdout(answers=2, spend=dp.GDP(50))
    for _ in range(2):
        assert holdout.share({"region": "E"}, training=0.0).source == "holdout"
    assert holdout.left == 0
    for training in (0.5, 0.0):
        with pytest.raises(dp.LedgerRefused, match="all the answers that were paid for"):
            holdout.share({"region": "E"}, training=training)
    assert len(holdout.history.answers) == 2


def test_a_holdout_cannot_be_copied_or_used_after_a_fork() -> None:
    holdout = open_holdout()
    for copying in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(dp.LedgerRefused, match="cannot be pickled or copied"):
            copying(holdout)
        with pytest.raises(dp.LedgerRefused, match="cannot be pickled or copied"):
            copying(holdout._noisy)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            holdout.share({"region": "E"}, training=0.5)
        except dp.LedgerRefused as refusal:
            code = 0 if "fork" in str(refusal) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert holdout.share({"region": "E"}, training=0.5).source == "training"


def test_its_noisy_threshold_is_never_shown() -> None:
    holdout = open_holdout(spend=dp.GDP(0.01))
    bound = str(holdout._noisy._run._bound)
    holdout.share({"region": "E"}, training=0.5)
    texts = [repr(holdout), repr(holdout._noisy), str(holdout.summary()), holdout.history.to_json()]
    texts += [entry.body for entry in holdout._session.ledger.entries()]
    assert bound not in "".join(texts)


def test_an_engine_that_fails_uses_nothing_up(monkeypatch) -> None:
    holdout = open_holdout()
    with monkeypatch.context() as broken:
        broken.setattr(holdout._session._engine, "sums", lambda plan: 1 / 0)
        with pytest.raises(dp.LedgerRefused, match="the engine failed") as refused:
            holdout.share({"region": "E"}, training=0.0)
    assert refused.value.__cause__ is None
    assert holdout.left == 5
    assert holdout.share({"region": "E"}, training=0.0).source == "holdout"


def test_a_question_that_is_paid_for_as_a_watch_is_not_released() -> None:
    session = session_of()
    holdout = dp.holdout(session, threshold=0.04, answers=5, spend=dp.GDP(1))
    head = session.ledger.head
    with pytest.raises(dp.DiscreetError, match="that of a watch"):
        session.release(holdout._noisy.question)
    assert session.ledger.head == head


# -- intervals -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS[:2], ids=str)
@pytest.mark.parametrize("spend", [dp.GDP(1), dp.PureDP(2)], ids=str)
def test_intervals_of_answers_cover_the_rows(relation, spend) -> None:
    """400 surprises: about 5 % miss; an interval a third narrower would miss too often."""
    rows, covered, narrow = 4000, 0, 0
    data = dp.from_arrays(
        {"x": np.arange(rows) < rows // 4},
        schema={"x": dp.Boolean(missing=False)},
        neighbors=relation,
    )
    asked = 400
    session = seeded_session(data, dp.ApproxDP(1e6, 1e-2), f"cover {relation} {spend}")
    while asked:
        holdout = dp.holdout(session, threshold=0.01, answers=10, spend=spend)
        for _ in range(10):
            answer = holdout.share({"x": True}, training=0.9)
            while answer.source == "training":
                answer = holdout.share({"x": True}, training=0.9)
            low, high = answer.confidence_interval(0.95)
            covered += low <= 0.25 <= high
            middle, half = (low + high) / 2, (high - low) / 3
            narrow += abs(middle - 0.25) <= half
            asked -= 1
    deviation = (0.95 * 0.05 / 400) ** 0.5
    assert covered / 400 > 0.95 - 4.5 * deviation
    assert narrow / 400 < 0.95 - 4.5 * deviation
    assert covered / 400 < 0.95 + 4.5 * deviation


@pytest.mark.slow
def test_claims_that_stand_are_within_their_bound() -> None:
    """What is left unnoticed is beyond the bound rarely, and beyond half of its slack often."""
    rows = 1000
    schema = {"x": dp.Boolean(missing=False)}
    data = dp.from_arrays({"x": np.arange(rows) < 300}, schema=schema, neighbors=dp.Replace())
    session = seeded_session(data, dp.ApproxDP(1e6, 1e-2), "within")
    probe = dp.holdout(session, threshold=0.1, answers=1, spend=dp.GDP(0.3))
    slack = probe.facts.unseen(0.9) - 0.1
    stood = {}
    for part in (1.0, 0.1):
        claim = 0.3 + 0.1 + part * slack + 1e-3
        stood[part] = np.mean(
            [
                dp.holdout(session, threshold=0.1, answers=1, spend=dp.GDP(0.3))
                .share({"x": True}, training=claim)
                .source
                == "training"
                for _ in range(100)
            ]
        )
    assert stood[1.0] < 0.1
    assert stood[0.1] > 0.15


def test_population_intervals_are_wider_and_claims_have_none() -> None:
    holdout = open_holdout()
    answer = holdout.share({"region": "E"}, training=0.0)
    sample, population = (
        answer.confidence_interval(0.95, target=target) for target in ("sample", "population")
    )
    assert population[0] < sample[0] < sample[1] < population[1]
    half = (population[1] - population[0]) / 2
    wanted = 1.96 * (0.25 / 2000 + answer.std_error**2) ** 0.5
    assert half == pytest.approx(wanted, rel=0.02)
    stood = holdout.share({"region": "E"}, training=0.5)
    assert stood.confidence_interval(target="population") == (0.0, 1.0)
    assert np.isnan(stood.std_error)
    with pytest.raises(dp.InvalidParameter):
        answer.confidence_interval(target="rows")
    with pytest.raises(dp.InvalidParameter):
        answer.confidence_interval(1.0)


def test_the_law_of_noise_is_told_in_rows() -> None:
    noise = open_holdout(spend=dp.PureDP(1)).facts.mechanism.answer
    law = law_in_rows(noise)
    assert law.fourth**0.25 * STEPS == pytest.approx(float(noise.spread))
    assert law.variance == pytest.approx(2 * law.fourth**0.5, rel=1e-6)


# -- refusals --------------------------------------------------------------------------------------

BAD_OPENINGS = {
    "no answers": {"answers": 0},
    "half an answer": {"answers": 2.5},
    "True answers": {"answers": True},
    "too many answers": {"answers": 5000},
    "no threshold": {"threshold": 0},
    "a threshold of all": {"threshold": 1},
    "no number": {"threshold": "a lot"},
    "not a number": {"threshold": float("nan")},
    "no spend": {"spend": 1.0},
    "next to nothing": {"spend": dp.PureDP(1e-9), "answers": 4000},
}


@pytest.mark.parametrize("name", BAD_OPENINGS)
def test_bad_openings_are_refused_before_any_debit(name) -> None:
    session = session_of()
    head = session.ledger.head
    asked = {"threshold": 0.04, "answers": 5, "spend": dp.GDP(1)} | BAD_OPENINGS[name]
    with pytest.raises(dp.DiscreetError) as refused:
        dp.holdout(session, **asked)
    assert "Why it matters" in str(refused.value)
    assert session.ledger.head == head


BAD_QUESTIONS = {
    "no filter": lambda h: h.share("region", training=0.5),
    "an empty filter": lambda h: h.share({}, training=0.5),
    "an unknown column": lambda h: h.share({"eyes": 1}, training=0.5),
    "a claim above 1": lambda h: h.share({"region": "E"}, training=1.5),
    "a claim that is no number": lambda h: h.share({"region": "E"}, training=float("nan")),
    "no claim": lambda h: h.share({"region": "E"}, training=None),
    "a mean of levels": lambda h: h.mean("region", training=0.5),
    "a mean beyond the range": lambda h: h.mean("age", training=5.0),
    "a column with gaps": lambda h: h.mean("b", training=0.5),
    "four columns": lambda h: h.mean(["a"] * 4, training=0.5),
    "no columns": lambda h: h.mean([], training=0.5),
    "a number": lambda h: h.mean(3, training=0.5),
    "columns beside columns": lambda h: h.mean("a", training=0.5, columns=["a"]),
    "a function with a memory": lambda h: h.mean(lambda row: SCHEMA, training=0.5),
    "an open column": lambda h: h.mean(lambda row: row["k"] == "k", training=0.5),
    "an unknown column of a function": lambda h: h.mean(
        lambda row: 1, training=0.5, columns=["eyes"]
    ),
    "no fit": lambda h: h.accuracy("fit", training=0.5),
}


@pytest.mark.parametrize("name", BAD_QUESTIONS)
def test_bad_questions_are_refused_and_cost_nothing(name) -> None:
    holdout = open_holdout()
    with pytest.raises(dp.DiscreetError) as refused:
        BAD_QUESTIONS[name](holdout)
    assert "Why it matters" in str(refused.value)
    assert holdout.left == 5
    assert not holdout.history.answers


# -- data of any kind ------------------------------------------------------------------------------

ODD = {
    "empty": {name: values[:0] for name, values in arrays().items()},
    "one row": {name: values[:1] for name, values in arrays().items()},
    "nothing valid": {
        "a": [float("nan"), None, "x"],
        "b": [None, None, None],
        "age": [None, -5, 1e300],
        "region": [None, "?", 3],
        "y": [None, "maybe", 2],
        "k": [None, None, None],
        "person": [1, 1, 2],
    },
}


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_no_data_set_makes_a_difference_to_what_kind_of_answer_comes(kind, relation, fit) -> None:
    holdout = open_holdout(relation, data=ODD[kind], spend=dp.GDP(0.5), answers=50)
    for answer in asks(holdout, fit):
        assert np.isfinite(answer.value)
        low, high = answer.confidence_interval()
        assert np.isfinite([low, high]).all()
        assert low <= high
    assert holdout.facts.rows >= 1


# -- previews and pictures -------------------------------------------------------------------------


def test_a_preview_is_what_the_holdout_will_promise() -> None:
    session = session_of()
    asked = {"threshold": 0.04, "answers": 5, "spend": dp.PureDP(1)}
    forecast = dp.preview(session, dp.holdout, **asked)
    assert session.ledger.spent().exact().mu_squared == 0
    facts = dp.holdout(session, **asked).facts
    assert forecast.unseen[0] == (1, facts.unseen(0.95))
    assert forecast.noise == facts.answer_error
    assert "5 answers" in str(forecast)
    private = session_of(dp.AddRemove())
    with pytest.raises(dp.InvalidParameter, match="private"):
        dp.preview(private, dp.holdout, **asked)
    assumed = dp.preview(private, dp.holdout, **asked, assume=dp.Assumptions(rows=2000))
    assert assumed.noise > forecast.noise


@pytest.mark.slow
def test_pictures_are_drawn(fit, tmp_path) -> None:
    holdout = open_holdout()
    holdout.plot(path=str(tmp_path / "none.png"))
    answers = asks(holdout, fit)
    answers[0].plot(path=str(tmp_path / "one.png"))
    holdout.plot(path=str(tmp_path / "all.png"))
    dp.preview(holdout._session, dp.holdout, threshold=0.04, answers=5, spend=dp.GDP(1)).plot(
        path=str(tmp_path / "preview.png")
    )
    assert all(
        (tmp_path / f"{name}.png").stat().st_size > 5000 for name in ("one", "all", "preview")
    )
