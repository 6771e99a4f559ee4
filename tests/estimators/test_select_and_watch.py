"""dp.select, dp.mode, dp.top, dp.above_threshold and dp.watch as people use them:
answers, bounds, refusals, total behaviour.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
from fractions import Fraction

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from scipy import stats
from tests.printed import unwrapped
from tests.survey import RELATIONS, SCHEMA, SPENDS, data_set, open_session, survey

import discreet as dp
from discreet.estimators import selection_questions as build
from discreet.inference.counts import selection as bounds
from discreet.sensitivity import L1, LInf
from discreet.specs.mechanisms.selection import (
    AboveThreshold,
    ExponentialChoice,
    NoisyMax,
    PermuteAndFlip,
    TopChoices,
)
from discreet.testing import SeededSource, seeded_session
from discreet.trusted.engines.execution import execute
from discreet.trusted.losses.pricing import within_spend
from discreet.trusted.noise.samplers import apply

SCORES = LInf(Fraction(1), True)
YOUNG = {"young": {"age": (18, 40)}, "north": {"region": "N"}, "members": {"member": True}}
ASKS = {
    "select": lambda session, spend, **more: dp.select(session, YOUNG, spend=spend, **more),
    "select sums": lambda session, spend, **more: dp.select(
        session, "region", score="income", spend=spend, **more
    ),
    "select columns": lambda session, spend, **more: dp.select(
        session, ["income", "age", "member"], spend=spend, **more
    ),
    "mode": lambda session, spend, **more: dp.mode(
        session, "region", spend=spend, where={"age": (18, 80)}, **more
    ),
    "top": lambda session, spend, **more: dp.top(session, "region", 2, spend=spend, **more),
    "top filters": lambda session, spend, **more: dp.top(session, YOUNG, 3, spend=spend, **more),
    "above_threshold": lambda session, spend, **more: dp.above_threshold(
        session, YOUNG, 250, spend=spend, positives=2, **more
    ),
}
PREVIEWS = {
    "select": (dp.select, (YOUNG,), {}),
    "select sums": (dp.select, ("region",), {"score": "income"}),
    "select columns": (dp.select, (["income", "age", "member"],), {}),
    "mode": (dp.mode, ("region",), {"where": {"age": (18, 80)}}),
    "top": (dp.top, ("region", 2), {}),
    "top filters": (dp.top, (YOUNG, 3), {}),
    "above_threshold": (dp.above_threshold, (YOUNG, 250), {"positives": 2}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_every_question_works_under_every_relation_and_spend(name, relation):
    session = open_session(relation, budget=dp.ApproxDP(1e4, 0.1))
    for spend in SPENDS:
        result = ASKS[name](session, spend)
        release = result.release
        assert within_spend(release.mechanism, spend)
        assert dp.from_json(result.to_json()) == result
        assert pickle.loads(pickle.dumps(result)) == result
        assert result.score_gap(0.99) >= result.score_gap(0.95) >= 0
        assert str(result.guarantee) in unwrapped(result)
        assert len(result.to_frame()) == len(result.records())
        assert "<table" in result._repr_html_()
        estimator, asked, options = PREVIEWS[name]
        forecast = dp.preview(session, estimator, *asked, spend=spend, **options)
        assert forecast.score_gap == result.score_gap()
        assert forecast.question.mechanism == release.mechanism
        assert "Nothing was spent" in unwrapped(forecast)


def test_a_clear_winner_is_found():
    session = seeded_session(data_set(), dp.ApproxDP(1e4, 0.1), "winner")
    assert dp.mode(session, "region", spend=dp.GDP(1)).chosen == "E"
    assert dp.top(session, "region", 3, spend=dp.GDP(2)).chosen == ["E", "N", "S"]
    assert dp.select(session, YOUNG, spend=dp.PureDP(2)).chosen in ("young", "north", "members")
    assert dp.select(session, ["income", "member"], spend=dp.PureDP(2)).chosen == "income"
    assert dp.select(session, "member", spend=dp.PureDP(2)).chosen == "False"
    for method in ("exponential", "permute-and-flip", "noisy-max"):
        result = dp.mode(session, "region", spend=dp.PureDP(1), method=method)
        assert result.chosen == "E"
        assert result.method.replace(" ", "-").startswith(method)


def test_a_total_is_compared_by_its_value_and_not_by_its_distance_from_the_middle():
    """Many small values against few large ones: about the middle of the range the few would win."""
    arrays = {"x": [30.0] * 900 + [90.0] * 100, "g": ["many"] * 900 + ["few"] * 100}
    data = dp.from_arrays(
        arrays,
        schema={"x": dp.Real(0, 100), "g": dp.Category(["few", "many"])},
        neighbors=dp.Replace(),
    )
    session = seeded_session(data, dp.GDP(100), "totals")
    result = dp.select(session, "g", score="x", spend=dp.GDP(2))
    assert result.chosen == "many"
    assert result.unit == "sum of x"
    assert 100 < result.score_gap() < 1000


def test_methods_by_spend():
    session = open_session()
    for spend in SPENDS:
        mechanism = build.mode_question(session.public, "region", spend=spend).mechanism
        assert isinstance(
            mechanism, PermuteAndFlip if isinstance(spend, dp.PureDP) else ExponentialChoice
        )
        step = build.top_question(session.public, "region", 2, spend=spend).mechanism.step
        assert step == ("permute and flip" if isinstance(spend, dp.PureDP) else "exponential")
        least = {
            method: dp.preview(session, dp.mode, "region", spend=spend, method=method).score_gap
            for method in build.METHODS
        }
        assert least[build.default_method(spend)] == min(least.values())


def test_one_way_scores_need_half_the_noise():
    rates = {}
    for relation in (dp.Replace(), dp.AddRemove()):
        question = build.mode_question(open_session(relation).public, "region", spend=dp.PureDP(1))
        rates[relation] = question.mechanism.rate
    assert rates[dp.AddRemove()] == 2 * rates[dp.Replace()]


@pytest.mark.slow
@pytest.mark.parametrize("method", [*build.METHODS, "top", "threshold"])
def test_score_gaps_hold_in_the_worst_case(method):
    """All others just beyond the bound: the sampler fails no more often than the bound allows
    (a binomial limit at 1e-9), and it is not idle.
    """
    session, level, draws = open_session(dp.AddRemove()), 0.7, 1200
    if method == "top":
        question = build.top_question(session.public, "region", 2, spend=dp.PureDP(1))
    elif method == "threshold":
        question = build.above_threshold_question(
            session.public, YOUNG, 50, spend=dp.PureDP(1), positives=3
        )
    else:
        question = build.mode_question(session.public, "region", spend=dp.PureDP(1), method=method)
    release = dp.Release(
        question.description,
        question.query,
        question.mechanism,
        (0,),
        session.public.neighbors,
        question.spend,
        question.spend,
        None,
        "test",
        0,
        "",
    )
    gap = int(bounds.score_gap_steps(release, level))
    assert gap > 0
    if method == "threshold":
        scores = [50 + gap, 50 - gap - 1, 50 + gap]
        bad = [(1, 0, 1)]
    else:
        scores, bad = [gap + 1, 0, 0, 0], [(0,)]
    source, failed = SeededSource(f"gap {method}"), 0
    for _ in range(draws):
        answer = apply(question.mechanism, list(scores), source).integers
        failed += answer[: len(bad[0])] not in bad
    assert failed <= draws * 0.3 + 6.2 * (draws * 0.21) ** 0.5
    assert failed >= draws * (0.15 if method in ("exponential", "permute-and-flip") else 0.02)


def test_the_closed_forms_of_the_bounds():
    """Against sums over the law, by definition."""
    for spread in (0.3, 1.0, 4.0):
        ratio = np.exp(-1 / spread)
        reach = np.arange(-300, 301)
        law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(reach)
        difference = np.convolve(law, law)
        for gap in (0, 1, 2, 7):
            assert bounds._difference_tail(spread, gap) == pytest.approx(
                difference[600 + gap :].sum(), rel=1e-9
            )
            assert bounds._two_sided_tail(spread, gap + 1) == pytest.approx(
                law[np.abs(reach) >= gap + 1].sum(), rel=1e-9
            )
    for candidates, rate, gap in ((2, 1.0, 0.5), (5, 0.3, 4.0), (100, 0.01, 3000.0), (3, 0.5, 0.0)):
        heads, others = np.exp(-rate * gap), candidates - 1
        wanted = sum(
            stats.binom.pmf(count, others, heads) * count / (1 + count)
            for count in range(candidates)
        )
        assert bounds._flip_fails(rate, candidates, gap) == pytest.approx(wanted, rel=1e-6)
        assert bounds._flip_fails(rate, candidates, gap) <= bounds._exponential_fails(
            rate, candidates, gap
        ) * (1 + 1e-12)


# -- thresholds ------------------------------------------------------------------------------------


def test_answers_stop_after_the_last_positive_and_say_so():
    session = seeded_session(data_set(), dp.GDP(1000), "stop")
    questions = [{"region": "W"}, {"region": "E"}, {"age": (18, 90)}, {"region": "N"}]
    result = dp.above_threshold(session, questions, 300, spend=dp.GDP(10), positives=2)
    assert result.above == {"question 1": False, "question 2": True, "question 3": True}
    assert result.hits == ["question 2", "question 3"]
    assert result.unanswered == ("question 4",)
    assert [record["answer"] for record in result.records()] == [
        "below",
        "above",
        "above",
        "not reached",
    ]
    assert result.threshold == 300
    assert "every count above is at least 300" in str(result)


def test_a_watch_answers_adaptively_and_is_paid_once():
    session = seeded_session(data_set(), dp.GDP(1000), "watch")
    watch = dp.watch(session, 300, spend=dp.GDP(10), positives=2)
    spent = session.ledger.spent()
    assert watch.above({"region": "W"}) is False
    assert watch.above({"region": "E"}) is True
    assert watch.left == 1
    # other questions meanwhile
    assert dp.select(session, YOUNG, spend=dp.GDP(1)).chosen == "young"
    assert watch.above({"age": (18, 90)}) is True
    with pytest.raises(dp.LedgerRefused, match="all the positive answers"):
        watch.above({"region": "N"})
    assert watch.left == 0
    assert session.ledger.verify()
    assert session.ledger.spent().exact().mu_squared == spent.exact().mu_squared + 1


def test_a_watch_keeps_its_threshold_to_itself():
    session = seeded_session(data_set(), dp.GDP(1000), "secret")
    watch = dp.watch(session, 777_777_777, spend=dp.GDP(0.001))
    bound = watch._noisy._run._bound
    assert bound != 777_777_777
    texts = [
        repr(watch),
        str(watch),
        repr(watch._noisy),
        repr(watch._noisy._run),
        *(entry.body for entry in session.ledger.entries()),
    ]
    assert "777777777" in "".join(texts)
    assert str(bound) not in "".join(texts)
    for copying in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(dp.LedgerRefused, match="cannot be pickled or copied"):
            copying(watch)
        with pytest.raises(dp.LedgerRefused, match="cannot be pickled or copied"):
            copying(watch._noisy)


def test_a_watch_refuses_after_a_fork():
    watch = dp.watch(seeded_session(data_set(), dp.GDP(1000), "fork"), 300, spend=dp.GDP(1))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            watch.above({"region": "E"})
        except dp.LedgerRefused as refusal:
            code = 0 if "fork" in str(refusal) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert watch.above({"region": "E"}) in (True, False)


def test_a_watch_takes_nothing_but_counts():
    session = open_session()
    watch = dp.watch(session, 300, spend=dp.GDP(1))
    sums = build.select_question(session.public, ["income", "age"], spend=dp.GDP(1)).query
    for query in (
        sums,
        build.mode_question(session.public, "region", spend=dp.GDP(1)).query,
        dataclasses.replace(sums, groups=sums.groups[:1]),
        None,
    ):
        with pytest.raises(dp.InvalidParameter, match="not one count"):
            watch._noisy.above(query)
    for where in (None, "region", {}, {"nonsense": 1}):
        with pytest.raises(dp.DiscreetError):
            watch.above(where)
    assert watch.left == 1


def test_a_watch_survives_an_engine_that_fails(monkeypatch):
    session = open_session()
    watch = dp.watch(session, 300, spend=dp.GDP(1))
    head = session.ledger.head
    with monkeypatch.context() as broken:
        broken.setattr(session._engine, "sums", lambda plan: 1 / 0)
        with pytest.raises(dp.LedgerRefused, match="the engine failed") as refused:
            watch.above({"region": "E"})
    assert refused.value.__cause__ is None
    assert watch.left == 1
    assert session.ledger.head == head
    assert watch.above({"region": "E"}) in (True, False)


def test_a_watch_needs_budget():
    session = open_session(budget=dp.GDP(1))
    dp.watch(session, 10, spend=dp.GDP(1))
    with pytest.raises(dp.BudgetExceeded):
        dp.watch(session, 10, spend=dp.GDP(0.1))


# -- refusals --------------------------------------------------------------------------------------

BAD = {
    "no candidates": lambda s: dp.select(s, {}, spend=dp.GDP(1)),
    "a filter without a name": lambda s: dp.select(s, {"": {"age": (1, 2)}}, spend=dp.GDP(1)),
    "a candidate that is no filter": lambda s: dp.select(s, {"young": (18, 30)}, spend=dp.GDP(1)),
    "an empty filter": lambda s: dp.select(s, {"all": {}}, spend=dp.GDP(1)),
    "a number": lambda s: dp.select(s, 3, spend=dp.GDP(1)),
    "no columns": lambda s: dp.select(s, [], spend=dp.GDP(1)),
    "a column twice": lambda s: dp.select(s, ["age", "age"], spend=dp.GDP(1)),
    "levels as a sum": lambda s: dp.select(s, ["age", "region"], spend=dp.GDP(1)),
    "a score beside columns": lambda s: dp.select(
        s, ["age", "income"], score="age", spend=dp.GDP(1)
    ),
    "a score of levels": lambda s: dp.select(s, "region", score="region", spend=dp.GDP(1)),
    "an unknown score": lambda s: dp.select(s, "region", score="wage", spend=dp.GDP(1)),
    "an unknown column": lambda s: dp.mode(s, "eyes", spend=dp.GDP(1)),
    "the mode of a number": lambda s: dp.mode(s, "age", spend=dp.GDP(1)),
    "an unknown method": lambda s: dp.mode(s, "region", spend=dp.GDP(1), method="best"),
    "no spend": lambda s: dp.mode(s, "region", spend=0.1),
    "no session": lambda s: dp.mode("survey", "region", spend=dp.GDP(1)),
    "too many": lambda s: dp.top(s, "region", 5, spend=dp.GDP(1)),
    "none": lambda s: dp.top(s, "region", 0, spend=dp.GDP(1)),
    "True of them": lambda s: dp.top(s, "region", True, spend=dp.GDP(1)),
    "a filter beside filters": lambda s: dp.top(
        s, YOUNG, 2, spend=dp.GDP(1), where={"age": (18, 30)}
    ),
    "a threshold of half a row": lambda s: dp.above_threshold(
        s, [{"region": "N"}], 10.5, spend=dp.GDP(1)
    ),
    "no threshold": lambda s: dp.above_threshold(s, [{"region": "N"}], None, spend=dp.GDP(1)),
    "no positives": lambda s: dp.above_threshold(
        s, [{"region": "N"}], 10, spend=dp.GDP(1), positives=0
    ),
    "a filter as questions": lambda s: dp.above_threshold(s, "region", 10, spend=dp.GDP(1)),
    "no questions": lambda s: dp.above_threshold(s, [], 10, spend=dp.GDP(1)),
    "a watch without a threshold": lambda s: dp.watch(s, "many", spend=dp.GDP(1)),
    "a watch of no positives": lambda s: dp.watch(s, 10, spend=dp.GDP(1), positives=-1),
    "sums for next to nothing": lambda s: dp.select(
        s, "region", score="income", spend=dp.PureDP(1e-12), method="noisy-max"
    ),
    "a threshold for next to nothing": lambda s: dp.watch(s, 10, spend=dp.PureDP(1e-300)),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_questions_are_refused_before_any_debit(name):
    session = open_session()
    head = session.ledger.head
    with pytest.raises(dp.DiscreetError) as refused:
        BAD[name](session)
    assert "Why it matters" in str(refused.value)
    assert session.ledger.head == head


@pytest.mark.parametrize(
    "relation", [dp.Replace(), dp.AddRemove(unit="person", max_rows=2)], ids=str
)
def test_forged_questions_are_refused(relation):
    session = open_session(relation)
    head = session.ledger.head
    right = build.mode_question(session.public, "region", spend=dp.GDP(0.5))
    pure = build.above_threshold_question(
        session.public, YOUNG, 10, spend=dp.PureDP(0.5), positives=2
    )
    other = build.mode_question(
        open_session(dp.AddRemove() if relation == dp.Replace() else dp.Replace()).public,
        "region",
        spend=dp.GDP(0.5),
    )

    class Quiet(ExponentialChoice):
        """A choice that says it costs less."""

    forged = [
        dataclasses.replace(right, mechanism=other.mechanism),
        dataclasses.replace(right, spend=dp.GDP(0.49)),
        dataclasses.replace(pure, spend=dp.PureDP(0.49)),
        dataclasses.replace(
            right, mechanism=dataclasses.replace(right.mechanism, rate=right.mechanism.rate * 2)
        ),
        dataclasses.replace(
            right, mechanism=Quiet(right.mechanism.sensitivity, right.mechanism.rate)
        ),
        dataclasses.replace(pure, mechanism=dataclasses.replace(pure.mechanism, positives=3)),
        dataclasses.replace(
            pure,
            mechanism=dataclasses.replace(
                pure.mechanism, query_spread=pure.mechanism.query_spread / 2
            ),
        ),
    ]
    for question in forged:
        with pytest.raises(dp.InvalidParameter, match="a question"):
            session.release(question)
    assert session.ledger.head == head


# -- data of any kind ------------------------------------------------------------------------------

ODD = {
    "empty": {name: values[:0] for name, values in survey().items()},
    "one row": {name: values[:1] for name, values in survey().items()},
    "two rows": {name: values[:2] for name, values in survey().items()},
    "nothing valid": {
        "income": [float("nan"), None, "x"],
        "age": [None, -5, 1e300],
        "region": [None, "?", 3],
        "member": [None, "maybe", 2],
        "person": [1, 1, 2],
    },
    "at the bounds": {
        "income": [0.0, 100.0] * 5,
        "age": [18, 90] * 5,
        "region": ["E"] * 10,
        "member": [True] * 10,
        "person": list(range(10)),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_no_data_set_makes_a_difference_to_what_kind_of_answer_comes(kind, relation):
    session = open_session(relation, budget=dp.ApproxDP(1e4, 0.1), data=ODD[kind])
    for name, ask in ASKS.items():
        result = ask(session, dp.GDP(0.5))
        places = result.release.integers
        assert all(0 <= place < len(result.candidates) for place in places), name
    watch = dp.watch(session, 2, spend=dp.GDP(1))
    assert watch.above({"region": "E"}) in (True, False)


def test_a_key_repeats_the_answer_and_costs_nothing():
    session = open_session(budget=dp.GDP(1))
    first = dp.mode(session, "region", spend=dp.GDP(0.5), key="mode")
    spent = session.ledger.spent()
    assert (
        dp.mode(session, "region", spend=dp.GDP(0.5), key="mode").release.integers
        == first.release.integers
    )
    assert session.ledger.spent() == spent
    with pytest.raises(dp.LedgerRefused):
        dp.mode(session, "region", spend=dp.GDP(0.4), key="mode")


def test_many_levels_take_one_pass():
    rng = np.random.default_rng(2)
    names = [f"code {place}" for place in range(20_000)]
    data = dp.from_arrays(
        {"code": np.array(names)[np.minimum(rng.geometric(0.01, 30_000), 19_999)]},
        schema={"code": dp.Category(names)},
        neighbors=dp.AddRemove(),
    )
    result = dp.mode(seeded_session(data, dp.GDP(100), "levels"), "code", spend=dp.GDP(2))
    assert len(result.release.query.plan().plans) == 1
    assert int(result.chosen.split()[1]) < 60


def test_files_give_the_same_scores_as_memory(tmp_path):
    arrays = survey(rows=300)
    pyarrow.parquet.write_table(pyarrow.table(arrays), tmp_path / "survey.parquet")
    for relation in (dp.Replace(), dp.AddRemove(unit="person", max_rows=1)):
        memory = dp.from_arrays(arrays, schema=SCHEMA, neighbors=relation)
        files = dp.read_parquet(tmp_path / "survey.parquet", schema=SCHEMA, neighbors=relation)
        public = open_session(relation).public
        asked = [
            build.select_question(public, YOUNG, spend=dp.GDP(1), score="age"),
            build.select_question(public, ["income", "age", "member"], spend=dp.GDP(1)),
            build.mode_question(public, "region", spend=dp.GDP(1), where={"age": (20, 50)}),
        ]
        for question in asked:
            scores = [
                question.query.assemble(execute(data._engine, question.query.plan()))
                for data in (memory, files)
            ]
            assert scores[0] == scores[1]
            assert len(scores[0]) == question.query.size


BAD_MECHANISMS = {
    "no rate": lambda: ExponentialChoice(SCORES, Fraction(0)),
    "a float": lambda: PermuteAndFlip(SCORES, 0.5),
    "another norm": lambda: ExponentialChoice(L1(Fraction(1)), Fraction(1)),
    "no spread": lambda: NoisyMax(SCORES, Fraction(0)),
    "a spread that is no float": lambda: NoisyMax(SCORES, Fraction(1, 3)),
    "too much": lambda: NoisyMax(SCORES, Fraction(2) ** 51),
    "none of them": lambda: TopChoices(SCORES, Fraction(1), 0),
    "another step": lambda: TopChoices(SCORES, Fraction(1), 2, "laplace"),
    "half a threshold": lambda: AboveThreshold(SCORES, 0.5, 1, Fraction(1), Fraction(1), False),
    "no positives": lambda: AboveThreshold(SCORES, 5, 0, Fraction(1), Fraction(1), False),
    "perhaps renewed": lambda: AboveThreshold(SCORES, 5, 1, Fraction(1), Fraction(1), 1),
    "no noise": lambda: AboveThreshold(SCORES, 5, 1, Fraction(1), Fraction(0), False),
}


@pytest.mark.parametrize("name", BAD_MECHANISMS)
def test_bad_mechanisms_cannot_be_made(name):
    with pytest.raises(dp.InvalidParameter):
        BAD_MECHANISMS[name]()
