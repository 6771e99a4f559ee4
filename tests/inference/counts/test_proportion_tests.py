"""A released proportion can be asked for every test and interval afterwards; the test asked
directly; power and sample size from public facts.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import discreet as dp
from discreet import client, local
from discreet.inference.counts.binomial import NoisyCount
from discreet.inference.counts.most_powerful import power_at
from discreet.inference.counts.proportion_tests import METHODS
from discreet.inference.counts.tulap import ReleasedNoise, public_uniform
from discreet.testing import seeded_session

FLAGS = np.arange(400) % 25 < 14
SPENDS = (dp.PureDP(1), dp.GDP(1), dp.ZCDP(0.5), dp.ApproxDP(2, 1e-6))
ALTERNATIVES = ("two-sided", "less", "greater")


def session_of(flags: np.ndarray, neighbors: object = None, seed: str = "proportion") -> dp.Session:
    relation = dp.Replace() if neighbors is None else neighbors
    data = dp.from_arrays(
        {"id": np.arange(len(flags)), "b": flags, "g": np.where(flags, "yes", "no")},
        schema={"b": dp.Boolean(missing=False), "g": dp.Category(["yes", "no"])},
        neighbors=relation,
    )
    return seeded_session(data, dp.GDP(1000), seed)


@pytest.mark.slow
@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_a_released_proportion_answers_every_test(spend: dp.PureDP) -> None:
    session = session_of(FLAGS)
    result = dp.proportion(session, "b", spend=spend)
    head = session.ledger.head
    ends = {method: result.confidence_interval(method=method) for method in METHODS}
    for method in METHODS:
        p_values = {
            side: result.test(0.5, alternative=side, method=method).p_value for side in ALTERNATIVES
        }
        assert all(0 <= p <= 1 for p in p_values.values())
        assert p_values["greater"] + p_values["less"] >= 1 - 1e-9
        low, high = ends[method][0]
        assert ends[method].shape == (1, 2)
        assert 0 <= low <= result.estimate <= high <= 1
        # tests and intervals say the same
        for theta in (low - 0.003, low + 0.003, high - 0.003, high + 0.003):
            assert (result.test(theta, method=method).p_value > 0.05) == (low <= theta <= high)
    assert max(np.ptp([end[0, side] for end in ends.values()]) for side in (0, 1)) < 0.02
    assert session.ledger.head == head  # free


def test_geometric_counts_become_tulap_counts() -> None:
    """The uniform belongs to the release: the same at every reading, after JSON too,
    and other releases have others.
    """
    session = session_of(FLAGS)
    results = [dp.proportion(session, "b", spend=dp.PureDP(1)) for _ in range(40)]
    numbers = [public_uniform(result.release) for result in results]
    assert len(set(numbers)) == 40
    assert -0.5 < min(numbers) < -0.2 < 0.2 < max(numbers) < 0.5
    first = results[0]
    again = dp.from_json(first.to_json())
    exact = NoisyCount(first.release.integers[0] + numbers[0], 400, ReleasedNoise("tulap", 1.0))
    for side in ALTERNATIVES:
        assert (
            again.test(0.5, alternative=side).p_value
            == first.test(0.5, alternative=side).p_value
            == exact.p_value(0.5, side)
        )
    assert first.test(0.5, method="conservative", alternative="greater").p_value == NoisyCount(
        float(first.release.integers[0]), 400, ReleasedNoise("geometric", 1.0)
    ).p_value(0.5, "greater")


@pytest.mark.slow
@pytest.mark.parametrize("spend", SPENDS, ids=str)
@pytest.mark.parametrize(
    "relation", [dp.Replace(), dp.AddRemove(), dp.AddRemove(unit="id", max_rows=2)], ids=str
)
def test_the_test_asked_directly(spend: dp.PureDP, relation: object) -> None:
    session = session_of(FLAGS, relation)
    answer = dp.proportion_test(session, "b", 0.4, spend=spend, alternative="greater", key="once")
    same = dp.proportion_test(session, "b", 0.4, spend=spend, alternative="greater", key="once")
    assert answer.p_value == same.p_value < 0.01
    assert answer.rejects()
    assert not dp.proportion_test(session, "b", 0.56, spend=spend).rejects(1e-6)
    assert dp.proportion_test(session, "g", 0.44, spend=spend, level="no").p_value > 1e-6
    public = relation == dp.Replace()
    assert answer.method == ("exact" if public else "score")
    kind = answer.result.release.mechanism.kind
    assert kind == ("gaussian" if spend != SPENDS[0] else "tulap" if public else "geometric")
    text = str(answer)
    assert all(
        words in text
        for words in (
            "P(b = True) > 0.4",
            "p-value",
            str(answer.result.release.guarantee),
            "NOT PRIVATE",
        )
    )
    assert answer._repr_html_().startswith("<table")
    assert str(answer.result.release.guarantee) in str(answer.result.summary())
    preview = dp.preview(
        session,
        dp.proportion_test,
        "b",
        0.4,
        spend=spend,
        assume=dp.Assumptions(rows=400, share=0.5),
    )
    assert preview.question.mechanism == answer.result.release.mechanism


def test_where_rows_are_private_only_the_score_test_has_a_theorem() -> None:
    session = session_of(FLAGS, dp.AddRemove())
    filtered = dp.proportion(session_of(FLAGS), "b", spend=dp.GDP(1), where={"g": ["yes", "no"]})
    for result in (dp.proportion(session, "b", spend=dp.PureDP(1)), filtered):
        assert result.test(0.2).method == "score"
        for method in METHODS[:-1]:
            with pytest.raises(dp.NoTheorem, match="score"):
                result.test(0.2, method=method)
            with pytest.raises(dp.NoTheorem, match="score"):
                result.confidence_interval(method=method)


def test_bad_parameters_are_refused_before_anything_is_spent() -> None:
    session = session_of(FLAGS)
    result = dp.proportion(session, "b", spend=dp.PureDP(1))
    head = session.ledger.head
    for null in (-0.1, 1.1, math.nan, "half", None, True):
        with pytest.raises(dp.InvalidParameter):
            dp.proportion_test(session, "b", null, spend=dp.PureDP(1))  # type: ignore[arg-type]
        with pytest.raises(dp.InvalidParameter):
            result.test(null)  # type: ignore[arg-type]
    with pytest.raises(dp.InvalidParameter, match="alternative"):
        dp.proportion_test(session, "b", 0.5, spend=dp.PureDP(1), alternative="both")
    with pytest.raises(dp.InvalidParameter, match="method"):
        result.test(0.5, method="best")
    with pytest.raises(dp.NoTheorem, match="unbiased"):
        result.test(0.5, method="umpu")
    with pytest.raises(dp.InvalidParameter, match="target"):
        result.confidence_interval(method="exact", target="data")
    with pytest.raises(dp.InvalidParameter, match="alpha"):
        result.test(0.5).rejects(0)
    with pytest.raises(dp.UndeclaredColumn):
        dp.proportion_test(session, "c", 0.5, spend=dp.PureDP(1))
    assert session.ledger.head == head


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        np.zeros(0, dtype=bool),
        np.zeros(1, dtype=bool),
        np.zeros(20, dtype=bool),
        np.ones(20, dtype=bool),
    ],
    ids=["no rows", "one row", "all False", "all True"],
)
@pytest.mark.parametrize(
    "spend", [dp.PureDP(1e-6), dp.PureDP(1), dp.PureDP(1000), dp.GDP(1e-4), dp.GDP(500)], ids=str
)
def test_extremes_have_answers(flags: np.ndarray, spend: dp.PureDP) -> None:
    data = dp.from_arrays(
        {"b": flags}, schema={"b": dp.Boolean(missing=False)}, neighbors=dp.Replace()
    )
    session = seeded_session(
        data, dp.PureDP(10**5) if isinstance(spend, dp.PureDP) else dp.GDP(1000), "extremes"
    )
    for result in (
        dp.proportion(session, "b", spend=spend),
        dp.proportion_test(session, "b", 0.5, spend=spend).result,
    ):
        assert 0 <= result.estimate <= 1
        for method in METHODS:
            low, high = result.confidence_interval(method=method)[0]
            assert 0 <= low <= high <= 1
            for null, side in (
                (0.0, "greater"),
                (0.3, "two-sided"),
                (1.0, "less"),
                (0.0, "two-sided"),
            ):
                assert 0 <= result.test(null, alternative=side, method=method).p_value <= 1
        if len(flags) == 0:
            assert result.confidence_interval(method="exact").tolist() == [[0.0, 1.0]]
        elif (
            spend == dp.PureDP(1000)
            and len(flags) == 20
            and result.release.mechanism.kind == "geometric"
        ):
            # Clopper and Pearson's
            low, high = result.confidence_interval(method="conservative")[0]
            assert (low, high) == pytest.approx(
                (0.0, 1 - 0.025 ** (1 / 20)) if not flags.any() else (0.025 ** (1 / 20), 1.0),
                abs=1e-9,
            )


def test_power_is_exact_and_stands_between_the_alternatives() -> None:
    found = dp.power(
        dp.proportion_test, rows=30, null=0.8, share=0.9, spend=dp.PureDP(1), alternative="greater"
    )
    assert found.power == pytest.approx(0.3039826454627936, abs=1e-8)
    assert found.randomised < found.power < found.nonprivate
    assert found.nonprivate == power_at(30, 0.8, 0.9, ReleasedNoise("tulap", 1e-4), 0.05, "greater")
    assert all(
        words in str(found)
        for words in ("private", "randomised at the source", "30 rows", "no data was read")
    )
    assert found._repr_html_().startswith("<table")
    figure = found.plot()
    assert len(figure.axes) == 2
    gaussian = dp.power(dp.proportion_test, rows=200, null=0.5, share=0.6, spend=dp.GDP(0.5))
    assert gaussian.randomised < gaussian.power < gaussian.nonprivate
    assert gaussian.plan.privacy == pytest.approx(0.5)


@pytest.mark.slow
@pytest.mark.parametrize("spend", SPENDS, ids=str)
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_sample_sizes_are_the_least(spend: dp.PureDP, alternative: str) -> None:
    found = dp.sample_size(
        dp.proportion_test, null=0.5, share=0.6, spend=spend, alternative=alternative, power=0.9
    )
    assert found.power >= 0.9 > found.plan.power(found.rows - 1)
    assert (
        dp.sample_size(
            dp.proportion_test, null=0.5, share=0.6, spend=spend, alternative=alternative
        ).rows
        < found.rows
    )


@pytest.mark.slow
def test_power_comes_true() -> None:
    """The share of rejections in 150 seeded tests is the computed power, within a limit at 1e-9."""
    plan = dp.power(
        dp.proportion_test,
        rows=60,
        null=0.4,
        share=0.55,
        spend=dp.PureDP(0.5),
        alternative="greater",
    )
    rng = np.random.default_rng(6)
    rejected = 0
    for seed in range(150):
        session = session_of(rng.random(60) < 0.55, seed=f"power/{seed}")
        rejected += dp.proportion_test(
            session, "b", 0.4, spend=dp.PureDP(0.5), alternative="greater"
        ).rejects()
    deviation = math.sqrt(plan.power * (1 - plan.power) / 150)
    assert abs(rejected / 150 - plan.power) < 6.2 * deviation


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": 0},
        {"rows": 2.5},
        {"rows": True},
        {"null": 2},
        {"share": -1},
        {"alpha": 0},
        {"alpha": 1},
        {"alternative": "up"},
        {"spend": 0.5},
        {"shape": 0.5},
    ],
)
def test_impossible_plans_are_refused(wrong: dict[str, object]) -> None:
    facts: dict[str, object] = {
        "rows": 100,
        "null": 0.5,
        "share": 0.6,
        "spend": dp.PureDP(1),
    } | wrong
    with pytest.raises(dp.InvalidParameter):
        dp.power(dp.proportion_test, **facts)  # type: ignore[arg-type]


def test_impossible_sample_sizes_are_refused() -> None:
    for wrong in (
        {"share": 0.5},
        {"share": 0.4, "alternative": "greater"},
        {"share": 0.6, "alternative": "less"},
        {"power": 0.01},
        {"power": 1},
        {"share": 0.5 + 1e-7},
    ):
        with pytest.raises(dp.InvalidParameter):
            dp.sample_size(
                dp.proportion_test,
                **({"null": 0.5, "share": 0.6, "spend": dp.PureDP(1)} | wrong),
            )
    with pytest.raises(dp.InvalidParameter, match=r"dp\.proportion_test"):
        dp.power(dp.mean, rows=10, null=0.5, share=0.6, spend=dp.PureDP(1))


@pytest.mark.slow
@pytest.mark.parametrize("spend", SPENDS, ids=str)
@pytest.mark.parametrize("relation", [dp.Replace(), dp.AddRemove()], ids=str)
def test_the_interval_holds_what_the_test_does_not_reject(
    spend: dp.PureDP, relation: dp.Replace
) -> None:
    """Without a method named, interval, table and test go together:
    exact where the number of rows is public, else score.
    """
    result = dp.proportion(session_of(FLAGS, relation), "b", spend=spend)
    used = "exact" if relation == dp.Replace() else "score"
    assert result.confidence_interval().tolist() == result.confidence_interval(method=used).tolist()
    assert (
        result.confidence_interval(target="data").tolist()
        == result.confidence_interval(target="data", method="score").tolist()
    )
    main = result.quantities()[0]
    ((low, high),) = result.confidence_interval()
    assert (float(main.low[0]), float(main.high[0])) == (low, high)
    for end, outward in ((low, -1e-6), (high, 1e-6)):
        assert result.test(end + outward).p_value < 0.05 < result.test(end - outward).p_value


# -- JSON ------------------------------------------------------------------------------------------


def test_a_test_comes_back_from_json_whichever_data_it_was_asked_of() -> None:
    yes, number = (
        client.RandomizedResponse(client.Boolean(), 2),
        client.OneBitResponse(client.Real(0, 10), 2),
    )
    group = local.LocalShares(local.Collected(yes, (40, 60), 100))
    tests = [
        dp.proportion_test(session_of(FLAGS), "b", 0.5, spend=dp.PureDP(1), alternative="greater"),
        dp.proportion(session_of(FLAGS), "b", spend=dp.GDP(1)).test(0.6, method="fiducial"),
        dp.proportion(session_of(FLAGS, dp.AddRemove()), "b", spend=dp.PureDP(1)).test(0.4),
        group.test(0.5, alternative="less"),
        local.LocalMean(local.Collected(number, (40, 60), 100)).test(4),
        local.difference(group, group).test(alternative="greater"),
    ]
    for test in tests:
        again = dp.from_json(test.to_json())
        assert (again.p_value, again.estimate, again.asked, str(again)) == (
            test.p_value,
            test.estimate,
            test.asked,
            str(test),
        )
        assert json.loads(test.to_json())["p_value"] == test.p_value


def test_texts_that_no_test_wrote_are_refused() -> None:
    test = dp.proportion_test(session_of(FLAGS), "b", 0.5, spend=dp.PureDP(1))
    text = json.loads(test.to_json())
    changes = (
        {"version": 2},
        {"asked": []},
        {"asked": {"nul": 0.5}},
        {"asked": {"null": 7}},
        {"asked": {"null": {}}},
        {"result": None},
        {"result": {}},
        {"result": text},
        {"asked": {"null": 0.5, "method": "best"}},
        {"version": True},
        {"p_value": test.p_value / 2},
        {"estimate": test.estimate + 0.01},
        {"p_value": None},
        {"asked": {"null": 0.4}},
    )
    for change in changes:
        with pytest.raises(dp.DiscreetError):
            dp.from_json(json.dumps(text | change))
    count = json.loads(dp.count(session_of(FLAGS, dp.AddRemove()), spend=dp.PureDP(1)).to_json())
    with pytest.raises(dp.DiscreetError):
        dp.from_json(json.dumps(text | {"result": count}))
    two = json.loads(
        dp.independence_test(
            dp.from_arrays(
                {"b": FLAGS, "c": FLAGS[::-1]},
                schema={"b": dp.Boolean(missing=False), "c": dp.Boolean(missing=False)},
                neighbors=dp.Replace(),
            ).open(budget=dp.PureDP(1)),
            "b",
            "c",
            spend=dp.PureDP(1),
        ).to_json()
    )
    # its own test is another kind, and is not run
    with pytest.raises(dp.DiscreetError, match="not the text of a test"):
        dp.from_json(json.dumps(text | {"result": two, "asked": {"few": 10**12, "many": 10**12}}))
