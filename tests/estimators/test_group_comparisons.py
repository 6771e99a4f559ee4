"""The public tests of groups, tables, means, ranks and parts: answers on every relation and spend,
total behaviour, refusals, previews, plans.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import stats
from tests.printed import unwrapped
from tests.survey import RELATIONS

import discreet as dp
from discreet.testing import seeded_session

LEVELS = ["a", "b", "c"]
SCHEMA = {
    "g": dp.Category(LEVELS),
    "two": dp.Category(["old", "new"], missing="old"),
    "y": dp.Boolean(),
    "x": dp.Real(0, 100),
    "z": dp.Real(0, 100),
    "n": dp.Integer(0, 10),
    "one": dp.Category(["only"], missing="only"),
    "text": dp.Open(),
}


def rows(count=1200, seed=3):
    rng = np.random.default_rng(seed)
    g, two = rng.choice(LEVELS, count), rng.choice(["old", "new"], count)
    x = np.clip(rng.normal(50, 10, count) + 12 * (g == "c"), 0, 100)
    return {
        "g": g,
        "two": two,
        "y": rng.random(count) < np.where(two == "new", 0.55, 0.3),
        "x": x,
        "z": np.clip(x - 8 + rng.normal(0, 3, count), 0, 100),
        "n": rng.integers(0, 11, count),
        "one": np.full(count, "only"),
        "text": np.full(count, "t"),
        "person": np.arange(count) // 2,
    }


def t_test(x, y):
    return stats.ttest_ind(x[y], x[~y]).pvalue


ASKS = {
    "compare": lambda s, spend, **o: dp.compare(s, "y", by="two", spend=spend, **o),
    "strata": lambda s, spend, **o: dp.compare(
        s, "g", level="c", by="two", strata="y", spend=spend, **o
    ),
    "independence": lambda s, spend, **o: dp.independence_test(
        s, "g", "n", bins={"n": [0, 4, 8, 10]}, spend=spend, **o
    ),
    "fit": lambda s, spend, **o: dp.goodness_of_fit(
        s, "g", {"a": 1, "b": 1, "c": 1}, spend=spend, **o
    ),
    "ranks": lambda s, spend, **o: dp.rank_test(s, "x", by="g", spend=spend, **o),
    "mean": lambda s, spend, **o: dp.mean_test(s, "x", 50, spend=spend, **o),
    "means": lambda s, spend, **o: dp.compare_means(s, "x", by="g", spend=spend, **o),
    "paired": lambda s, spend, **o: dp.paired_test(s, "x", "z", spend=spend, **o),
    "parts": lambda s, spend, **o: dp.subsample_test(
        s, t_test, columns=["x", "y"], parts=12, inner=0.2, spend=spend, **o
    ),
}


def opened(neighbors, data=None, seed=1):
    return seeded_session(
        dp.from_arrays(rows() if data is None else data, schema=SCHEMA, neighbors=neighbors),
        dp.GDP(1000),
        seed=seed,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("neighbors", "spend"),
    list(zip(RELATIONS, [dp.GDP(0.8), dp.PureDP(1.0)] * 2, strict=True)),
    ids=str,
)
def test_every_question_is_answered_on_every_relation(neighbors, spend):
    session = opened(neighbors)
    for name, ask in ASKS.items():
        result = ask(session, spend, where={"n": (0, 9)})
        evidence = (
            result.test() if name in ("mean", "paired", "parts") else result.test(few=199, many=199)
        )
        assert 0 < evidence.p_value <= 1, name
        assert "p = " in str(evidence), name
        assert all(np.all(quantity.low <= quantity.high) for quantity in result.quantities()), name
        again = dp.from_json(result.to_json())
        assert type(again) is type(result), name
        assert again.release == result.release == pickle.loads(pickle.dumps(result)).release, name
    assert "p = " in str(result)
    assert "NOT PRIVATE" in str(result)
    assert again.p_value == result.p_value


@pytest.mark.slow
def test_effects_are_found_with_their_sign_and_nothing_where_there_is_none():
    session, spend = opened(dp.Replace()), dp.GDP(1)
    comparison = dp.compare(session, "y", by="two", spend=spend)
    assert comparison.p_value < 0.001
    assert comparison.test(alternative="greater").rejects()
    assert not comparison.test(alternative="less").rejects()
    assert comparison.test(group="old", baseline="new", alternative="less").rejects()
    found = comparison.contrast()
    assert found.difference[1] < 0.25 < found.difference[2]
    assert found.ratio[1] > 1
    assert found.odds_ratio[1] > 1
    assert comparison.contrast("old", baseline="new").difference[0] == pytest.approx(
        -found.difference[0]
    )
    assert set(comparison.share()) == {"old", "new"}
    assert dp.independence_test(session, "two", "y", spend=spend).p_value < 0.001
    assert dp.independence_test(session, "g", "two", spend=spend).p_value > 0.001
    assert (
        dp.rank_test(
            session, "x", by="g", spend=spend, bins=[0, 40, 45, 50, 55, 60, 65, 70, 100]
        ).p_value
        < 0.001
    )
    ranks = dp.rank_test(session, "x", by="g", spend=spend)
    assert ranks.test(group="c", alternative="greater").rejects()
    assert not ranks.test(group="c", alternative="less").rejects()
    means = dp.compare_means(session, "x", by="g", spend=spend)
    assert means.p_value < 0.001
    assert means.test(group="c", baseline="b", alternative="greater").rejects(0.01)
    assert means.confidence_interval(0.9999)[1][0] < 12 < means.confidence_interval(0.9999)[1][1]
    assert set(means.means()) == set(LEVELS)
    paired = dp.paired_test(session, "x", "z", spend=spend)
    assert paired.p_value < 0.001
    assert paired.test(8).p_value > 0.001
    assert paired.test(alternative="greater").p_value < 0.001
    assert dp.goodness_of_fit(session, "g", [8, 1, 1], spend=spend).p_value < 0.001
    fair = dp.goodness_of_fit(session, "g", [1, 1, 1], spend=spend)
    assert fair.p_value > 0.001
    joint, single = fair.simultaneous_intervals(), fair.confidence_interval()
    assert ((joint[:, 0] <= single[:, 0]) & (joint[:, 1] >= single[:, 1])).all()


def test_any_test_becomes_private():
    data = rows()
    data["y"] = data["x"] > 55
    session = opened(dp.Replace(), data)
    assert (
        dp.subsample_test(
            session, t_test, columns=["x", "y"], spend=dp.PureDP(2), parts=30, inner=0.1
        ).p_value
        < 0.001
    )
    default = dp.subsample_test(session, t_test, columns=["x", "y"], spend=dp.GDP(1))
    assert default.p_value < 0.001
    assert default.release.query.parts <= 120
    broken = dp.subsample_test(
        session, lambda x: 1 / 0, columns="x", spend=dp.PureDP(2), parts=30, inner=0.1
    )
    assert broken.p_value > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
@pytest.mark.parametrize("case", ["empty", "one row", "one group", "all zero", "bad values"])
def test_all_data_are_answered(neighbors, case):
    data = rows(40)
    if case in ("empty", "one row"):
        data = {name: column[: int(case == "one row")] for name, column in data.items()}
    elif case == "one group":
        data["g"], data["two"] = np.full(40, "a"), np.full(40, "old")
    elif case == "all zero":
        data["y"], data["x"], data["z"] = np.zeros(40, bool), np.zeros(40), np.zeros(40)
    else:
        data = {
            name: np.array([None, float("nan"), "??", 1e300] * 10, dtype=object) for name in data
        }
    session = opened(neighbors, data)
    for name, ask in ASKS.items():
        result = ask(session, dp.PureDP(1.0))
        assert "p = " in str(result), (case, name)


def test_one_level_depends_on_nothing():
    session = opened(dp.AddRemove())
    assert dp.independence_test(session, "one", "y", spend=dp.GDP(1)).p_value == 1
    assert dp.goodness_of_fit(session, "one", [1], spend=dp.GDP(1)).p_value == 1
    assert dp.rank_test(session, "x", by="g", bins=1, spend=dp.GDP(1)).p_value == 1


def test_expected_shares_may_be_an_array_and_degrees_of_freedom_are_counted_in_words():
    session = opened(dp.Replace())
    listed, array = (
        dp.goodness_of_fit(session, "g", expected, spend=dp.GDP(1), key="fit")
        for expected in ([1, 1, 1], np.ones(3))
    )
    assert str(listed.test()) == str(array.test())
    assert "2 degrees of freedom" in str(array.test())
    assert "1 degree of freedom" in str(
        dp.compare_means(session, "x", by="two", spend=dp.GDP(1)).test()
    )


def test_the_least_p_value_of_a_mean_is_said_to_be_a_bound():
    tested = dp.mean_test(opened(dp.Replace()), "x", 50, spend=dp.GDP(1))
    assert tested.test(10).p_value == 1e-9
    assert "p ≤ 1e-09" in str(tested.test(10))
    assert "p ≤" not in str(tested.test(10, alternative="less"))
    assert "p ≤" not in str(tested.test(float(tested.params[0])))


def test_a_plan_says_its_rows_and_what_was_left_out():
    assert (
        str(dp.sample_size(dp.compare, spend=dp.GDP(1), baseline=0.3, share=0.4))
        .splitlines()[0]
        .startswith("Power of the comparison of two proportions with ")
    )
    with pytest.raises(
        dp.InvalidParameter,
        match=(
            r"dp\.mean_test: assumed were shift=\.(.|\n)*pass difference=, standard_deviation=, "
            r"low=, high="
        ),
    ):
        dp.power(dp.mean_test, rows=10, spend=dp.GDP(1), shift=1)
    with pytest.raises(dp.WrongColumnKind, match="a rank test needs Real or Integer"):
        dp.rank_test(opened(dp.Replace()), "g", by="two", spend=dp.GDP(1))


REFUSED = [
    lambda s: dp.compare(s, "x", by="two", spend=dp.GDP(1)),
    lambda s: dp.compare(s, "g", by="two", spend=dp.GDP(1)),
    lambda s: dp.compare(s, "y", by="y", spend=dp.GDP(1)),
    lambda s: dp.compare(s, "y", by="x", spend=dp.GDP(1)),
    lambda s: dp.compare(s, "y", by="one", spend=dp.GDP(1)),
    lambda s: dp.compare(s, "y", by=["two"], spend=dp.GDP(1)),
    lambda s: dp.compare(s, "y", by="two", level=3, spend=dp.GDP(1)),
    lambda s: dp.compare(s, "y", by="two", spend=1),
    lambda s: dp.independence_test(s, "g", "g", spend=dp.GDP(1)),
    lambda s: dp.independence_test(s, "g", "x", spend=dp.GDP(1)),
    lambda s: dp.independence_test(s, "g", "x", bins=4, spend=dp.GDP(1)),
    lambda s: dp.goodness_of_fit(s, "g", [1, 1], spend=dp.GDP(1)),
    lambda s: dp.goodness_of_fit(s, "g", {"a": 1}, spend=dp.GDP(1)),
    lambda s: dp.goodness_of_fit(s, "g", [1, -1, 1], spend=dp.GDP(1)),
    lambda s: dp.rank_test(s, "g", by="two", spend=dp.GDP(1)),
    lambda s: dp.mean_test(s, "x", float("nan"), spend=dp.GDP(1)),
    lambda s: dp.mean_test(s, "g", 1, spend=dp.GDP(1)),
    lambda s: dp.compare_means(s, "x", by="nope", spend=dp.GDP(1)),
    lambda s: dp.paired_test(s, "x", "g", spend=dp.GDP(1)),
    lambda s: dp.paired_test(s, "x", "x", spend=dp.GDP(1)),
    lambda s: dp.subsample_test(s, "no function", columns="x", spend=dp.GDP(1)),
    lambda s: dp.subsample_test(s, t_test, columns=[], spend=dp.GDP(1)),
    lambda s: dp.subsample_test(s, t_test, columns="text", spend=dp.GDP(1)),
    lambda s: dp.subsample_test(s, t_test, columns="x", parts=0, spend=dp.GDP(1)),
    lambda s: dp.subsample_test(s, t_test, columns="x", parts=5, inner=1.0, spend=dp.GDP(1)),
    lambda s: dp.subsample_test(s, t_test, columns="x", spend="much"),
    lambda s: dp.power(dp.compare, rows=10, spend=dp.GDP(1), share=0.5),
    lambda s: dp.power(dp.compare, rows=10, spend=dp.GDP(1), share=0.5, baseline=2),
    lambda s: dp.power(dp.independence_test, rows=10, spend=dp.GDP(1), table=[1, 2]),
    lambda s: dp.power(
        dp.independence_test, rows=10, spend=dp.GDP(1), table=np.ones((2, 3)), alternative="less"
    ),
    lambda s: dp.sample_size(dp.compare, spend=dp.GDP(1), share=0.5, baseline=0.5),
    lambda s: dp.power(
        dp.mean_test, rows=10, spend=dp.GDP(1), difference=1, standard_deviation=9, low=0, high=1
    ),
    lambda s: dp.power(
        dp.compare_means,
        rows=10,
        spend=dp.GDP(1),
        difference=1,
        standard_deviation=1,
        low=0,
        high=9,
        alternative="less",
    ),
    lambda s: dp.power(
        dp.mean_test,
        rows=10,
        spend=dp.GDP(1),
        difference=-1,
        standard_deviation=1,
        low=0,
        high=9,
        alternative="greater",
    ),
    lambda s: dp.power(
        dp.rank_test, rows=10, spend=dp.GDP(1), table=[[1, 2], [2, 1]], alternative="greater"
    ),
    lambda s: dp.power(
        dp.compare_means,
        rows=10,
        spend=dp.GDP(1),
        difference=1,
        standard_deviation=1,
        low=0,
        high=9,
        mean="x",
    ),
]


@pytest.mark.parametrize("ask", REFUSED)
def test_bad_questions_are_refused_before_any_debit(ask):
    session = opened(dp.Replace())
    before = session.ledger.head
    with pytest.raises(dp.DiscreetError):
        ask(session)
    assert session.ledger.head == before


def test_every_question_can_be_previewed():
    session, spend, assume = opened(dp.AddRemove()), dp.GDP(0.5), dp.Assumptions(rows=1000)
    before = session.ledger.head
    previews = [
        dp.preview(session, dp.compare, "y", by="two", spend=spend, assume=assume),
        dp.preview(session, dp.independence_test, "g", "y", spend=spend, assume=assume),
        dp.preview(session, dp.goodness_of_fit, "g", [1, 1, 1], spend=spend, assume=assume),
        dp.preview(session, dp.rank_test, "x", by="g", spend=spend, assume=assume),
        dp.preview(session, dp.mean_test, "x", 50, spend=spend, assume=assume),
        dp.preview(session, dp.compare_means, "x", by="g", spend=spend, assume=assume),
        dp.preview(session, dp.paired_test, "x", "z", spend=spend, assume=assume),
        dp.preview(
            session, dp.subsample_test, t_test, columns=["x", "y"], spend=spend, assume=assume
        ),
    ]
    assert all(
        preview.width > 0 and preview.noise > 0 and "Nothing was spent" in str(preview)
        for preview in previews
    )
    assert session.ledger.head == before


PLANS = {
    dp.compare: {"baseline": 0.3, "share": 0.4},
    dp.independence_test: {"table": [[0.3, 0.2], [0.2, 0.3]]},
    dp.goodness_of_fit: {"expected": [0.5, 0.3, 0.2], "shares": [0.4, 0.4, 0.2]},
    dp.rank_test: {"table": [[1, 2, 2], [2, 2, 1]]},
    dp.compare_means: {"difference": 5, "standard_deviation": 10, "low": 0, "high": 100},
    dp.mean_test: {"difference": 3, "standard_deviation": 10, "low": 0, "high": 100},
    dp.paired_test: {"difference": 5, "standard_deviation": 10, "low": 0, "high": 100},
    dp.subsample_test: {"effect": 0.2},
}


@pytest.mark.slow
@pytest.mark.parametrize("test", PLANS, ids=lambda test: test.__name__)
@pytest.mark.parametrize("spend", [dp.PureDP(0.5), dp.GDP(0.5)], ids=str)
def test_power_rises_with_rows_and_privacy_costs_some(test, spend):
    assumed = PLANS[test]
    small, large = (dp.power(test, rows=count, spend=spend, **assumed) for count in (150, 1500))
    assert small.power < large.power <= large.nonprivate + 1e-9
    assert small.power <= small.nonprivate + 1e-9
    planned = dp.sample_size(test, spend=spend, **assumed)
    assert (
        planned.power >= 0.8 > dp.power(test, rows=planned.rows // 2, spend=spend, **assumed).power
    )
    assert "no data was read" in str(planned)
    curves = planned.privacy_curves(np.array([0.25, 1.0, 4.0]))
    assert (np.diff(curves["private"]) > -1e-9).all()


@pytest.mark.slow
def test_planned_power_is_the_power_that_is_had(tmp_path):
    planned = dp.power(dp.compare, rows=400, spend=dp.GDP(0.5), baseline=0.3, share=0.45)
    rejected = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        two = rng.choice(["old", "new"], 400)
        session = seeded_session(
            dp.from_arrays(
                {"two": two, "y": rng.random(400) < np.where(two == "new", 0.45, 0.3)},
                schema={"two": SCHEMA["two"], "y": dp.Boolean()},
                neighbors=dp.Replace(),
            ),
            dp.GDP(10),
            seed=seed,
        )
        rejected.append(
            dp.compare(session, "y", by="two", spend=dp.GDP(0.5)).test(few=99, many=99).rejects()
        )
    assert abs(np.mean(rejected) - planned.power) < 5 * np.sqrt(
        planned.power * (1 - planned.power) / 60
    )
    planned.plot(path=str(tmp_path / "power.png"))
    assert (tmp_path / "power.png").stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "lost"), [(50, True), (5000, False)])
def test_a_test_says_where_noise_hides_everything(rows, lost):
    """ε = 0.1: a cell's noise has a standard deviation of 28 rows."""
    half = np.arange(rows) % 2 == 0
    data = dp.from_arrays(
        {"g": half, "y": np.arange(rows) % 3 == 0, "x": np.arange(rows) % 7.0},
        schema={"g": dp.Boolean(), "y": dp.Boolean(), "x": dp.Real(0, 7)},
        neighbors=dp.Replace(),
    )
    session = seeded_session(data, dp.PureDP(1), "lost")
    spend = dp.PureDP(0.1)
    for found in (
        dp.compare(session, "y", by="g", spend=spend),
        dp.independence_test(session, "y", "g", spend=spend),
        dp.rank_test(session, "x", by="g", spend=spend),
    ):
        assert ("NOISE HIDES IT" in str(found)) == found.test().lost == lost
        assert str(found).count("NOISE HIDES IT") == lost
        assert 0 < found.p_value <= 1
    # where a direction is asked for
    assert (
        "NOISE HIDES IT"
        in str(dp.compare(session, "y", by="g", spend=spend).test(alternative="less"))
    ) == lost


def test_the_public_number_of_rows_bounds_what_noise_can_hide_where_groups_may_be_missing():
    """The table's own total is noisy then, and at ε = 0.1 often looks larger than the 50 rows there
    are; the warning is never silent.
    """
    data = dp.from_arrays(
        {"g": ["a", "b"] * 25, "y": np.arange(50) % 3 == 0},
        schema={"g": dp.Category(["a", "b"]), "y": dp.Boolean()},
        neighbors=dp.Replace(),
    )
    found = [
        dp.compare(
            seeded_session(data, dp.PureDP(1), f"missing {seed}"), "y", by="g", spend=dp.PureDP(0.1)
        )
        for seed in range(12)
    ]
    assert max(float(item.pair().counts.sum()) for item in found) > 60
    assert all(item.test(few=99, many=99).lost for item in found)


def test_strata_without_bins_are_refused_by_their_own_name() -> None:
    data = dp.from_arrays(
        {"b": [True, False], "x": [0.0, 1.0], "g": ["a", "c"]},
        schema={"b": dp.Boolean(), "x": dp.Real(0, 1), "g": dp.Category(["a", "c"])},
        neighbors=dp.Replace(),
    )
    with pytest.raises(dp.InvalidParameter, match=r"strata='x'[\s\S]*strata=\{'x'"):
        dp.compare(data.open(budget=dp.PureDP(1)), "b", by="g", strata="x", spend=dp.PureDP(0.1))


def test_unequal_arms_have_less_power_and_half_is_the_default() -> None:
    shares = {"rows": 4000, "spend": dp.GDP(0.2), "baseline": 0.3, "share": 0.35}
    means = {
        "rows": 4000,
        "spend": dp.GDP(0.2),
        "difference": 3,
        "standard_deviation": 14,
        "low": 0,
        "high": 100,
    }
    for test, assumed in ((dp.compare, shares), (dp.compare_means, means)):
        equal = dp.power(test, **assumed)
        assert dp.power(test, allocation=0.5, **assumed).power == equal.power
        small, large = (dp.power(test, allocation=part, **assumed) for part in (0.1, 0.9))
        assert max(small.power, large.power) < equal.power
        assert "10 % of the rows" in unwrapped(small)
    # without noise the variance of a difference of means is σ²/(n·a·(1 − a))
    power = dp.power(dp.compare_means, allocation=0.2, **means).nonprivate
    fewer = dp.power(dp.compare_means, **{**means, "rows": 2560}).nonprivate
    # the test's variance is about the common mean, from which unequal groups lie unequally far
    assert power == pytest.approx(fewer, abs=0.01)


@pytest.mark.slow
def test_the_smallest_effect_and_the_least_spend_have_the_power_asked_for() -> None:
    found = dp.smallest_effect(dp.compare, rows=12_000, spend=dp.GDP(0.1), baseline=0.1)
    asked = {"rows": 12_000, "spend": dp.GDP(0.1), "baseline": 0.1}
    assert found.power == dp.power(dp.compare, share=found.effect, **asked).power >= 0.8
    assert dp.power(dp.compare, share=found.effect - 1e-4, **asked).power < 0.8
    assert found.rows == 12_000
    assert "Smallest share" in str(found)
    below = dp.smallest_effect(dp.compare, alternative="less", **asked)
    assert below.effect < 0.1 < found.effect
    far = {"standard_deviation": 14, "low": 0, "high": 200, "mean": 5}
    least = dp.smallest_effect(
        dp.compare_means, rows=2000, spend=dp.PureDP(2), allocation=0.3, **far
    )
    assert least.effect == pytest.approx(2, abs=2)
    for kind, delta in (("GDP", None), ("PureDP", None), ("ApproxDP", 1e-6)):
        needed = dp.spend_needed(
            dp.compare, rows=12_000, baseline=0.1, share=0.125, kind=kind, delta=delta
        )
        assert type(needed.spend).__name__ == kind
        asked = {"rows": 12_000, "baseline": 0.1, "share": 0.125}
        assert needed.power == dp.power(dp.compare, spend=needed.spend, **asked).power >= 0.8
        assert needed.nonprivate > needed.power
    less = dp.GDP(0.98 * dp.spend_needed(dp.compare, **asked).spend.mu)
    assert dp.power(dp.compare, spend=less, **asked).power < 0.8
    assert len(repr(needed).splitlines()) == 3
    assert needed.plot() is not None


@pytest.mark.parametrize(
    "ask",
    [
        lambda: dp.smallest_effect(dp.independence_test, rows=10, spend=dp.GDP(1)),
        lambda: dp.smallest_effect(dp.compare, rows=5, spend=dp.GDP(0.01), baseline=0.1),
        lambda: dp.smallest_effect(dp.compare, rows=9, spend=dp.GDP(1), baseline=0.1, share=0.3),
        lambda: dp.smallest_effect(dp.compare, rows=9, spend=dp.GDP(1), baseline=0.1, power=2),
        lambda: dp.smallest_effect(dp.mean, rows=9, spend=dp.GDP(1)),
        lambda: dp.spend_needed(dp.compare, rows=100, baseline=0.1, share=0.125),
        lambda: dp.spend_needed(dp.compare, rows=9, baseline=0.1, share=0.9, kind="ApproxDP"),
        lambda: dp.spend_needed(dp.compare, rows=9, baseline=0.1, share=0.9, delta=1e-6),
        lambda: dp.spend_needed(dp.compare, rows=0, baseline=0.1, share=0.9),
        lambda: dp.power(
            dp.compare, rows=9, spend=dp.GDP(1), baseline=0.1, share=0.2, allocation=1
        ),
    ],
)
def test_what_has_no_such_answer_is_refused(ask) -> None:
    with pytest.raises(dp.InvalidParameter):
        ask()
