"""dp.subsample: what each kind of output is asked, coverage at the part size, refusals."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from tests.printed import unwrapped

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.estimators.aggregation.subsample import default_parts, on_parts
from discreet.inference.aggregation.friendly import FriendlyMeanResult
from discreet.inference.aggregation.subsample import SubsampleResult, VoteResult
from discreet.specs.aggregation.part_outputs import PartOutputs
from discreet.testing import seeded_session

ROWS = 3000
SCHEMA = {"x": dp.Real(-5, 5, missing=0.0), "y": dp.Real(-10, 10, missing=0.0), "k": dp.Open()}
NAMES = ["x", "y"]
LINE = {"slope": dp.Real(-10, 10), "level": dp.Real(-10, 10)}


def slope(x, y):
    return np.polyfit(x, y, 1)[0] if len(x) > 1 else math.nan


def line(x, y):
    return np.polyfit(x, y, 1)


def rising(x, y):
    return "up" if slope(x, y) > 1 else "down"


def together(works, width):
    """What `in_processes` gives for a function that never fails, without processes."""
    return np.array([work() for work in works]).reshape(len(works), width)


def data_of(rows=ROWS, seed=1, neighbors=None, **columns):
    random = np.random.default_rng(seed)
    x = random.normal(size=rows)
    table = {"x": x, "y": 1.5 * x + random.normal(size=rows), "k": ["a"] * rows}
    return dp.from_arrays(table | columns, schema=SCHEMA, neighbors=neighbors or dp.Replace())


def session_of(*asked, seed=0, **options):
    return seeded_session(data_of(*asked, **options), dp.ApproxDP(200, 1e-3), seed)


def ask(session, function=slope, *, output=None, spend=None, **options):
    return dp.subsample(
        session,
        function,
        columns=NAMES,
        output=output or dp.Real(0, 5),
        spend=spend or dp.GDP(4),
        **({"parts": 12} | options),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"aggregate": "mean"}, {"aggregate": "mean", "bias": "two sizes"}],
    ids=["median", "mean", "two sizes"],
)
def test_a_number_is_near_what_the_function_gives(options):
    result = ask(session_of(), **options)
    assert type(result) is SubsampleResult
    low, high = result.confidence_interval()[0]
    assert low <= result.estimate <= high
    assert abs(result.estimate - 1.5) < 0.5
    assert 0 < result.noise_share[0] <= 1
    words = str(result.summary())
    assert "slope ran on 12 secret parts of about 250 rows." in words
    assert "counts as 2.5" in words
    assert "on parts of this size" in words or "many rows" in words or "on a part" in words
    again = dp.from_json(result.to_json())
    assert again.quantities()[0].low == result.quantities()[0].low
    assert str(again.summary()) == words
    assert pickle.loads(pickle.dumps(result)).estimate == result.estimate
    assert "0x" not in result.to_json()


@pytest.mark.slow
def test_levels_are_voted_on():
    vote = ask(session_of(), rising, output=dp.Category(["down", "up"]))
    assert type(vote) is VoteResult
    assert vote.chosen == "up"
    assert vote.unit == "parts"
    assert "up to" not in str(vote.summary())
    assert "12 secret parts" in str(vote.summary())
    assert dp.from_json(vote.to_json()).chosen == "up"
    shares = ask(
        session_of(), rising, output=dp.Category(["down", "up"]), aggregate="shares", parts=40
    )
    low, high = shares.confidence_interval()[1]
    assert low > 0.6
    assert high <= 1
    assert [label for (label,) in shares.labels] == ["down", "up"]


@pytest.mark.slow
def test_yes_and_no_have_a_share():
    result = ask(session_of(), lambda x, y: slope(x, y) > 1.5, output=dp.Boolean(), parts=40)
    low, high = result.confidence_interval()[0]
    assert 0.1 < low < 0.5 < high < 0.9


def test_several_numbers_have_a_friendly_mean(monkeypatch):
    monkeypatch.setattr("discreet.trusted.aggregation.part_outputs.in_processes", together)
    result = ask(session_of(6000), line, output=LINE, radius=1.5, spend=dp.GDP(9), parts=120)
    assert type(result) is FriendlyMeanResult
    assert result.found
    ends = result.confidence_interval()
    assert (ends[:, 0] < [1.5, 0]).all()
    assert (ends[:, 1] > [1.5, 0]).all()
    assert (ends[:, 1] - ends[:, 0] < 0.5).all()
    assert "the parts that have friends" in str(result.summary())
    assert dp.from_json(result.to_json()).confidence_interval().tolist() == ends.tolist()


def test_a_key_gives_the_same_answer_and_another_function_is_refused():
    session = session_of()
    first = ask(session, key="a")
    assert ask(session, key="a").estimate == first.estimate
    with pytest.raises(dp.DiscreetError):
        ask(session, lambda x, y: 2.0, key="a")


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize(
    "neighbors",
    [dp.AddRemove(), dp.Replace(unit="k", max_rows=3), dp.AddRemove(unit="k", max_rows=3)],
    ids=str,
)
def test_every_relation_is_answered(neighbors):
    names = [f"u{number // 3}" for number in range(900)]
    result = ask(session_of(900, neighbors=neighbors, k=names), parts=12)
    assert abs(result.estimate - 1.5) < 1


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_few_rows_give_finite_answers(rows):
    session = session_of(rows)
    for options in (
        {},
        {"parts": None},
        {"aggregate": "mean"},
        {"aggregate": "mean", "bias": "two sizes"},
        {"function": rising, "output": dp.Category(["down", "up"]), "aggregate": "shares"},
        {"function": line, "output": LINE, "radius": 1.0},
    ):
        result = ask(session, **({"parts": 5} | options))
        ends = result.confidence_interval()
        assert np.isfinite(ends).all()
        assert np.isfinite(result.params).all()
        assert str(result.summary())


@pytest.mark.slow
def test_all_missing_gives_a_finite_answer():
    session = session_of(200, x=[math.nan] * 200)
    assert np.isfinite(ask(session).confidence_interval()).all()


@pytest.mark.slow
def test_rows_without_a_value_are_left_out_unless_they_are_kept():
    x = np.random.default_rng(3).normal(3, 1, 900)
    x[::9] = math.nan
    data = dp.from_arrays({"x": x}, schema={"x": dp.Real(-5, 5)}, neighbors=dp.Replace())
    session = seeded_session(data, dp.GDP(20), 3)
    asked = {"columns": "x", "output": dp.Real(0, 5, missing=0.5), "spend": dp.GDP(4)}
    found = dp.subsample(session, np.mean, parts=30, **asked)
    assert found.params[0] == pytest.approx(3, abs=0.4)
    assert "Rows without a value of x are left out;" in unwrapped(found.summary())
    kept = dp.subsample(session, np.mean, parts=30, missing="keep", **asked)
    assert kept.params[0] == pytest.approx(0.5, abs=0.05)
    assert "left out" not in unwrapped(kept.summary())
    with pytest.raises(InvalidParameter, match="missing="):
        dp.subsample(session, np.mean, missing="drop", **asked)
    shown = dp.preview(session, dp.subsample, np.mean, missing="keep", **asked)
    assert shown.width > 0


@pytest.mark.slow
def test_coverage_at_the_part_size(monkeypatch):
    """A function with a bias: intervals are for its law on parts, and two sizes take it away.

    80 data sets, Monte-Carlo error of a coverage 0.024; α below 1e-6 for each bound.
    """
    monkeypatch.setattr("discreet.trusted.aggregation.part_outputs.in_processes", together)
    truth, rows, parts = 2.0, 25, 60

    def biased(x, y):
        return x.mean() + truth + 4 / len(x)

    hits = {"median": 0, "mean": 0, "two sizes": 0}
    for seed in range(80):
        session = session_of(rows * parts, seed)
        for way in hits:
            options = {} if way == "median" else {"aggregate": "mean"}
            aim = truth + 4 / rows
            if way == "two sizes":
                options, aim = options | {"bias": way}, truth
            low, high = ask(session, biased, parts=parts, **options).confidence_interval()[0]
            hits[way] += low <= aim <= high
    assert all(count >= 64 for count in hits.values())


def test_previews_explain_the_parts():
    session = session_of()
    for options, words in (
        ({"output": dp.Real(0, 5)}, "39 parts of about 76.92 rows, √(n/2) of n = 3000 rows"),
        ({"output": dp.Real(0, 5), "aggregate": "mean"}, "39 parts"),
        ({"output": dp.Real(0, 5), "aggregate": "mean", "bias": "two sizes"}, "and twice as many"),
        ({"output": dp.Real(0, 5), "parts": 30}, "30 parts of about 100 rows, as asked"),
        ({"output": dp.Boolean()}, "39 parts"),
        ({"output": LINE, "radius": 1.0, "spend": dp.GDP(1)}, "as many as a core needs"),
    ):
        asked = {"columns": NAMES, "spend": dp.GDP(4)} | options
        shown = dp.preview(session, dp.subsample, slope, **asked)
        assert words in unwrapped(shown.summary())
        assert shown.width > 0
    vote = dp.preview(
        session,
        dp.subsample,
        rising,
        columns=NAMES,
        spend=dp.GDP(4),
        output=dp.Category(["a", "b"]),
    )
    assert vote.unit == "parts"
    assert len(session.ledger.entries()) == 1  # it was opened
    private = session_of(neighbors=dp.AddRemove())
    shown = dp.preview(
        private, dp.subsample, slope, columns=NAMES, spend=dp.GDP(4), output=dp.Real(0, 5)
    )
    usual = "100 parts, the usual number where that of rows is private"
    assert usual in unwrapped(shown.summary())


def test_the_default_number_of_parts():
    public = session_of(20_000).public
    on = on_parts(
        public, slope, columns=NAMES, output=dp.Real(0, 1), parts=None, where=None, spend=dp.GDP(1)
    )
    assert on.parts == 100
    counts = [default_parts(public, on.cells, dp.GDP(mu)) for mu in (9, 0.1, 1e-4)]
    assert counts == [100, 1000, 1000]
    assert default_parts(session_of(3).public, on.cells, dp.GDP(1)) == 1


def test_what_cannot_be_run_is_refused_before_the_debit():
    session = session_of()
    good = {"output": dp.Real(0, 1)}
    for options in (
        {},
        good | {"parts": 0},
        good | {"parts": -3},
        good | {"parts": 2.0},
        good | {"parts": True},
        good | {"aggregate": "vote"},
        good | {"aggregate": 3},
        good | {"bias": "two sizes"},
        good | {"bias": "none", "aggregate": "mean"},
        good | {"columns": []},
        good | {"columns": ["x", "x"]},
        good | {"columns": ["nobody"]},
        good | {"columns": ["k"]},
        good | {"spend": 1.0},
        good | {"function": 3},
        {"output": dp.Open()},
        {"output": "real"},
        {"output": {}},
        {"output": [dp.Real(0, 1), dp.Category(["a"])]},
        {"output": LINE},
        {"output": LINE, "radius": 0},
        {"output": LINE, "radius": -1},
        {"output": LINE, "radius": math.nan},
        {"output": LINE, "radius": 1, "bias": "two sizes"},
        {"output": LINE, "radius": 1, "delta": 0},
        {"output": LINE, "radius": 1, "spend": dp.PureDP(1)},
    ):
        asked = {"columns": NAMES, "spend": dp.GDP(1), "function": slope} | options
        with pytest.raises(dp.DiscreetError) as refused:
            dp.subsample(session, asked.pop("function"), **asked)
        assert len(str(refused.value).splitlines()) >= 3
    assert len(session.ledger.entries()) == 1  # it was opened


def test_a_system_without_fork_is_refused_before_the_debit(monkeypatch):
    session = session_of()
    monkeypatch.delattr("os.fork")
    with pytest.raises(dp.DiscreetError, match="cannot fork"):
        ask(session)
    assert len(session.ledger.entries()) == 1


def test_a_release_holds_no_function_and_no_cell():
    result = ask(session_of())
    record = json.loads(result.to_json())
    assert "function" not in json.dumps(record)
    query = result.release.query
    assert isinstance(query, PartOutputs)
    with pytest.raises(dp.DiscreetError, match="not here"):
        dp.from_json(result.to_json()).release.query.plan()
