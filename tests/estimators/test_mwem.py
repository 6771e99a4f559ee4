"""dp.mwem as people use it: what it measures and costs, what is marked, what is refused."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from tests.survey import RELATIONS, SPENDS

import discreet as dp
from discreet.estimators.mwem.mwem import plan_of
from discreet.inference.mwem.workload import Box, side_key
from discreet.specs.queries.keys import Bins
from discreet.testing import seeded_session
from discreet.trusted.engines.execution import execute

SCHEMA = {
    "region": dp.Category(["E", "N", "S"], missing="E"),
    "sex": dp.Category(["F", "M"], missing="F"),
    "age": dp.Integer(18, 90, missing=40),
    "income": dp.Real(0, 100, missing=0),
    "member": dp.Boolean(missing=False),
    "gap": dp.Category(["u", "v"]),
    "code": dp.Category([*range(300)], missing=0),
    "open": dp.Open(),
}
COLUMNS = ["region", "sex", "age", "member"]
BINS = {"age": [18, 30, 50, 90]}


def arrays(rows: int = 3000, seed: int = 4) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    region = rng.choice(["E", "N", "S"], rows, p=[0.6, 0.3, 0.1])
    return {
        "region": region,
        "sex": np.where(rng.random(rows) < np.where(region == "E", 0.8, 0.3), "F", "M"),
        "age": rng.integers(18, 91, rows),
        "income": rng.uniform(0, 100, rows),
        "member": rng.random(rows) < 0.2,
        "gap": rng.choice(["u", "v"], rows),
        "code": rng.integers(0, 300, rows),
        "open": np.full(rows, "k"),
        "person": np.arange(rows) // 2,
    }


def session_of(relation=None, seed="mwem", data=None, budget=None):
    held = dp.from_arrays(
        arrays() if data is None else data, schema=SCHEMA, neighbors=relation or dp.Replace()
    )
    return seeded_session(held, budget or dp.ApproxDP(1e4, 1e-2), seed)


def run(session, **more):
    asked = {"bins": BINS, "rounds": 4, "spend": dp.PureDP(5)} | more
    return dp.mwem(session, asked.pop("columns", COLUMNS), **asked)


@pytest.mark.few(3)
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize(
    "queries",
    ["pairs", "ranges", [["region", "sex", "member"], {"age": (18, 50), "member": True}]],
    ids=["pairs", "ranges", "listed"],
)
def test_every_workload_works_under_every_relation(relation, queries) -> None:
    session = session_of(relation)
    for spend, variant in zip(SPENDS[:2], ("replay", "lecture"), strict=True):
        result = run(session, queries=queries, spend=spend, variant=variant)
        private = relation.unit is not None or isinstance(relation, dp.AddRemove)
        assert len(result.releases) == 2 * 4 + private
        assert len(result.facts.boxes) == 4
        assert result.rows == pytest.approx(3000, rel=0.5 if private else 1e-9)
        again = dp.from_json(result.to_json())
        assert again.measured == result.measured == pickle.loads(pickle.dumps(result)).measured
        assert (again.model.beliefs[0] == result.model.beliefs[0]).all()
        assert result.model.table((0,)).sum() == pytest.approx(1)
        text = str(result.summary())
        assert "NOT PRIVATE" in text
        assert "missing" not in text
        frame = result.frame(50)
        assert list(frame) == COLUMNS
        assert frame["age"].between(18, 90).all()


def test_it_learns_what_it_measures() -> None:
    result = run(session_of(), rounds=12, spend=dp.PureDP(200))
    data = arrays()
    for region in ("E", "N", "S"):
        for sex in ("F", "M"):
            truth = np.mean((data["region"] == region) & (data["sex"] == sex))
            answer = result.share({"region": region, "sex": sex})
            assert answer.estimate == pytest.approx(truth, abs=0.03)
    even = 1 / 6
    lecture = run(session_of(), rounds=12, spend=dp.PureDP(200), variant="lecture")
    truth = np.mean((data["region"] == "E") & (data["sex"] == "F"))
    asked = [one.table(["region", "sex"]).values[0] for one in (result, lecture)]
    assert abs(asked[0] - truth) < abs(asked[1] - truth) < abs(even - truth)


def test_measured_counts_are_those_of_their_boxes() -> None:
    """Next to no noise: each released count is what its filter keeps, edges of bins included."""
    data = arrays() | {"income": np.repeat([0.0, 25.0, 50.0, 100.0], 750)}
    session = session_of(data=data)
    columns, bins = ["income", "age", "sex"], {"income": [0, 25, 50, 100], "age": [18, 30, 50, 90]}
    for queries in ("pairs", "ranges", [["income"], ["age", "sex"]]):
        result = run(
            session, columns=columns, bins=bins, queries=queries, rounds=9, spend=dp.PureDP(1000)
        )
        plan = plan_of(session.public, columns, bins, [columns], 1, dp.PureDP(1), "replay")
        cells = execute(session._engine, plan.workload.query(np.zeros((3, 3, 2))).plan())[0]
        table = np.asarray(cells).reshape(3, 3, 2)
        assert table.sum() == 3000
        for box, release in zip(result.facts.boxes, result._measurements, strict=True):
            assert release.integers[0] == pytest.approx(box.count(table), abs=3)


def test_bins_of_a_box_end_where_the_next_begins() -> None:
    domain = plan_of(
        session_of().public, ["income", "sex"], {"income": [0, 25, 50, 100]}, "pairs", 1,
        dp.PureDP(1), "replay",
    ).domain  # fmt: skip
    cut = domain.cuts[0]
    assert side_key(cut, (0, 1)) == Bins("income", (0.0, np.nextafter(50.0, 0.0)))
    assert side_key(cut, (1, 2)) == Bins("income", (25.0, 100.0))
    with pytest.raises(dp.InvalidParameter, match="side by side"):
        side_key(cut, (0, 2))


@pytest.mark.slow
def test_it_costs_the_spend_and_no_more() -> None:
    for relation in RELATIONS[:2]:
        for spend in SPENDS:
            session = session_of(relation, budget=dp.ApproxDP(100, 1e-3))
            before = session.ledger.spent().exact()
            run(session, spend=spend)
            spent = session.ledger.spent().exact()
            paid = spent.mu_squared - before.mu_squared
            whole = session_of(relation, budget=dp.ApproxDP(100, 1e-3))
            dp.mean(whole, "age", spend=spend)
            assert paid > 0
            if not isinstance(spend, dp.PureDP):
                assert paid <= whole.ledger.spent().exact().mu_squared + Fraction(1, 10**9)
            assert session.ledger.verify()
    pure = session_of(budget=dp.PureDP(1))
    run(pure, spend=dp.PureDP(1))
    assert 0.999 < float(pure.ledger.spent().exact().epsilon) <= 1
    with pytest.raises(dp.BudgetExceeded):
        run(pure, spend=dp.PureDP(0.1))


def test_a_round_has_the_law_of_the_lectures() -> None:
    """ε/(2T) for a choice of rate ε/(4T), scores of sensitivity 1, and noise of scale 2T/ε."""
    counts = [10, 0, 5, 5, 1, 0, 8, 3]
    rows = np.repeat(np.arange(8), counts)
    data = dp.from_arrays(
        {"x": rows, "y": np.zeros(len(rows), dtype=bool)},
        schema={"x": dp.Integer(0, 7, missing=0), "y": dp.Boolean(missing=False)},
        neighbors=dp.AddRemove(),
    )
    session = seeded_session(data, dp.PureDP(10), 1)
    plan = plan_of(
        session.public, ["x", "y"], {"x": list(range(9))},
        [{"x": (0, end)} for end in range(1, 8)], 5, dp.PureDP(1), "lecture",
    )  # fmt: skip
    share = Fraction(19, 20)  # AddRemove: a twentieth is for the number of rows
    table = np.full((8, 2), 32 / 16)
    choice, count = plan.choice(plan.workload, table, 1), plan.count(Box(((0, (0,)),)), 1)
    assert float(choice.mechanism.rate) == pytest.approx(float(share) / 20, rel=1e-9)
    assert float(count.mechanism.spread) == pytest.approx(10 / float(share), rel=1e-9)
    scores = np.array(choice.query.assemble(execute(session._engine, choice.query.plan())))
    law = np.exp(0.05 * scores)  # at the whole spend, as stored
    assert law / law.sum() == pytest.approx(
        [0.16659487288088953, 0.13639634573270135, 0.14338953592010015, 0.150741274635573,
         0.12974421745531792, 0.14338953592010015, 0.12974421745531792], abs=1e-10,
    )  # fmt: skip


def test_a_key_goes_on_where_a_run_stopped() -> None:
    session = session_of()
    first = run(session, key="weights")
    spent = session.ledger.spent()
    assert run(session, key="weights").measured == first.measured
    assert session.ledger.spent() == spent


# -- what is marked --------------------------------------------------------------------------------


def test_only_measured_counts_have_intervals() -> None:
    condition = {"region": "E", "sex": "F"}
    result = run(session_of(), queries=[condition, ["age"]], rounds=2, spend=dp.PureDP(50))
    assert result.supports(condition)
    answer = result.share(condition)
    assert not answer.under_model
    low, high = answer.confidence_interval(0.95)[0]
    assert 0 < low < answer.estimate < high < 1
    data = answer.confidence_interval(0.95, target="data")[0]
    assert low < data[0] < data[1] < high
    assert answer.std_errors[0] > 0
    marked = [
        result.share({"sex": "M"}),
        result.share(condition, given={"member": True}),
        result.table(["region", "sex"]),
        result.table("sex"),
        result.mean("age"),
        result.mean("age", by="sex"),
    ]
    for answer in marked:
        assert answer.under_model
        assert np.isnan(answer.confidence_interval()).all()
        assert np.isnan(answer.std_errors).all()
        assert np.isfinite(answer.values).all()
        for text in (str(answer), repr(answer), answer.to_html()):
            assert "UNDER THE MODEL" in text
            assert "nan" not in text
    assert not result.supports({"sex": "M"})
    assert not result.supports("age ~ sex")
    for refused in (
        lambda: result.share({"sex": "M"}, unsupported=False),
        lambda: result.table("sex", unsupported=False),
        lambda: result.mean("age", unsupported=False),
        lambda: result.fit("member ~ sex"),
        lambda: result.frames(3),
        lambda: result.combine(lambda frame: (1.0, 1.0)),
        lambda: result.m_estimate(["age"], lambda values, beta: beta, [0.0]),
    ):
        with pytest.raises(dp.InvalidParameter):
            refused()


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS[:2], ids=str)
def test_intervals_of_measured_counts_cover(relation) -> None:
    """About the data and about the population, though queries are chosen for being missed."""
    rng = np.random.default_rng(6)
    law = rng.dirichlet(np.full(12, 0.7)).reshape(3, 4)
    schema = {"a": dp.Category([0, 1, 2], missing=0), "b": dp.Category([0, 1, 2, 3], missing=0)}
    covered = {"data": 0, "population": 0}
    asked = 0
    for turn in range(60):
        a, b = np.unravel_index(rng.choice(12, 1000, p=law.ravel()), (3, 4))
        data = dp.from_arrays({"a": a, "b": b}, schema=schema, neighbors=relation)
        session = seeded_session(data, dp.PureDP(10), f"cover {turn} {relation}")
        result = dp.mwem(session, ["a", "b"], rounds=4, spend=dp.PureDP(2))
        counts = np.histogram2d(a, b, bins=[range(4), range(5)])[0] / 1000
        for box in dict.fromkeys(result.facts.boxes):
            condition = {"ab"[place]: codes[0] for place, codes in box.sides}
            answer, asked = result.share(condition), asked + 1
            for target, truth in (("data", box.count(counts)), ("population", box.count(law))):
                low, high = answer.confidence_interval(0.95, target=target)[0]
                covered[target] += low <= truth <= high
    deviation = (0.95 * 0.05 / asked) ** 0.5
    assert covered["population"] / asked > 0.95 - 4.5 * deviation
    assert covered["data"] / asked > 0.95 - 4.5 * deviation
    assert covered["data"] / asked < 0.95 + 6 * deviation


# -- refusals --------------------------------------------------------------------------------------

BAD = {
    "one column": {"columns": ["sex"], "bins": None},
    "an unknown column": {"columns": ["sex", "eyes"], "bins": None},
    "an open column": {"columns": ["sex", "open"], "bins": None},
    "a number without bins": {"columns": ["sex", "age"], "bins": None},
    "a column with gaps": {"columns": ["sex", "gap"], "bins": None},
    "a table beyond the limit": {
        "columns": ["sex", "code", "age", "income"],
        "bins": {"age": 73, "income": 200},
    },
    "no rounds": {"rounds": 0},
    "half a round": {"rounds": 2.5},
    "True rounds": {"rounds": True},
    "too many rounds": {"rounds": 5000},
    "more rounds than conditions": {"queries": [{"sex": "F"}], "rounds": 2},
    "unknown queries": {"queries": "triples"},
    "no queries": {"queries": []},
    "a number": {"queries": 3},
    "a query twice": {"queries": [["sex"], ["sex"]]},
    "a condition twice": {"queries": [{"sex": "F"}, {"sex": "F"}]},
    "a condition on all rows": {"queries": [{"sex": ["F", "M"]}]},
    "a condition between edges": {"queries": [{"age": (20, 30)}]},
    "an unknown query column": {"queries": [["eyes"]]},
    "bins apart": {"queries": [{"age": ["18–29", "50–90"]}]},
    "an unknown variant": {"variant": "averaged"},
    "no spend": {"spend": 1.0},
    "next to nothing": {"spend": dp.PureDP(1e-8)},
}


@pytest.mark.parametrize("name", BAD)
def test_bad_questions_are_refused_before_any_debit(name) -> None:
    session = session_of()
    head = session.ledger.head
    with pytest.raises(dp.DiscreetError) as refused:
        run(session, **BAD[name])
    assert "Why it matters" in str(refused.value)
    assert session.ledger.head == head


def test_a_table_beyond_the_limit_says_what_to_leave_out() -> None:
    with pytest.raises(dp.InvalidParameter, match=r"leave out code \(300 cells\)"):
        run(session_of(), **BAD["a table beyond the limit"])


# -- data of any kind ------------------------------------------------------------------------------

ODD = {
    "empty": {name: values[:0] for name, values in arrays().items()},
    "one row": {name: values[:1] for name, values in arrays().items()},
    "nothing valid": {
        "region": [None, "?", 3],
        "sex": [None, "?", 3],
        "age": [None, -5, 1e300],
        "income": [float("nan"), None, "x"],
        "member": [None, "maybe", 2],
        "gap": [None, None, None],
        "code": [None, None, None],
        "open": [None, None, None],
        "person": [1, 1, 2],
    },
}


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("relation", RELATIONS[:2], ids=str)
def test_no_data_set_makes_a_difference_to_what_kind_of_answer_comes(kind, relation) -> None:
    result = run(session_of(relation, data=ODD[kind]), spend=dp.GDP(0.1), rounds=3)
    assert np.isfinite(result.model.beliefs[0]).all()
    assert len(result.frame(7)) == 7
    assert np.isfinite(result.mean("age").values).all()
    assert len(result.facts.boxes) == 3


# -- previews and pictures -------------------------------------------------------------------------


def test_a_preview_is_what_a_round_will_have() -> None:
    session = session_of()
    asked = {"bins": BINS, "rounds": 4, "spend": dp.PureDP(5)}
    forecast = dp.preview(session, dp.mwem, COLUMNS, **asked)
    assert session.ledger.spent().exact().mu_squared == 0
    result = dp.mwem(session, COLUMNS, **asked)
    assert forecast.noise == pytest.approx(result.noise)
    assert "4 rounds" in str(forecast)
    with pytest.raises(dp.InvalidParameter, match="private"):
        dp.preview(session_of(dp.AddRemove()), dp.mwem, COLUMNS, **asked)


@pytest.mark.slow
def test_pictures_are_drawn(tmp_path) -> None:
    session = session_of()
    result = run(session)
    result.plot(path=str(tmp_path / "weights.png"))
    result.table("region").plot(path=str(tmp_path / "table.png"))
    forecast = dp.preview(session, dp.mwem, COLUMNS, bins=BINS, spend=dp.PureDP(1))
    forecast.plot(path=str(tmp_path / "preview.png"))
    for name in ("weights", "table", "preview"):
        assert (tmp_path / f"{name}.png").stat().st_size > 4000
