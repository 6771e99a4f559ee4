"""dp.synthesize from end to end: every relation and spend, what is refused, what is stored,
and data of which little can be said.
"""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.inference.synthesis.refits import combined
from discreet.testing import seeded_session

SCHEMA = {
    "age": dp.Integer(18, 90),
    "sex": dp.Category(["F", "M"]),
    "income": dp.Category(["low", "middle", "high"], missing="low"),
    "member": dp.Boolean(missing=False),
    "joined": dp.Date("2020-01-01", "2021-12-31"),
    "note": dp.Open(),
}
COLUMNS = ["age", "sex", "income", "member"]
STORED = Path(__file__).parents[1] / "golden" / "stored" / "synthesis.json"
BINS = {"age": [18, 30, 45, 60, 90]}
ANALYSES = ["C(income, base='high') ~ sex + member", "age by sex"]
RELATIONS = (
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="id", max_rows=2),
    dp.AddRemove(unit="id", max_rows=2),
)


def columns_of(rows, seed=1):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows)
    rich = rng.random(rows) < np.where(sex == "F", 0.5, 0.3)
    return {
        "age": rng.integers(18, 91, rows),
        "sex": np.where(rng.random(rows) < 0.05, None, sex),
        "income": np.where(rich, "high", rng.choice(["low", "middle"], rows)),
        "member": rng.random(rows) < np.where(rich, 0.7, 0.2),
        "joined": np.datetime64("2020-01-01") + rng.integers(0, 730, rows),
        "note": ["n"] * rows,
        "id": np.arange(rows) // 2,
    }


def session_of(columns, neighbors=RELATIONS[0], seed=1, budget=dp.ApproxDP(60, 1e-3)):  # noqa: B008
    data = dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors)
    return seeded_session(data, budget, seed)


def made(rows=4000, neighbors=RELATIONS[0], spend=dp.GDP(2), **options):  # noqa: B008
    asked = {"bins": BINS, "analyses": ANALYSES} | options
    return dp.synthesize(session_of(columns_of(rows), neighbors), COLUMNS, spend=spend, **asked)


@pytest.fixture(scope="module")
def synthesis():
    return made()


@pytest.mark.few(3)
@pytest.mark.parametrize("spend", [dp.GDP(6), dp.PureDP(12), dp.GDP(4)], ids=str)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_answers_are_near_the_data_and_intervals_hold_it(neighbors, spend):
    columns = columns_of(4000)
    session = session_of(columns, neighbors, budget=spend)
    found = dp.synthesize(session, COLUMNS, bins=BINS, analyses=ANALYSES, spend=spend)
    rich = np.array(columns["income"]) == "high"
    truth = (rich & columns["member"]).mean()
    share = found.share({"income": "high", "member": True})
    low, high = share.confidence_interval(1 - 1e-6, target="data")[0]
    assert low < truth < high
    assert high - low < 0.4
    mean = found.mean("age", by="sex")
    assert np.abs(np.asarray(mean.params) - 54).max() < 12
    fit = found.fit(ANALYSES[0])
    assert fit.names == ("intercept", "sex[M]", "member[True]")
    assert fit.params["member[True]"] > 1
    assert set(found.frame().columns) == set(COLUMNS)
    assert found.rows == pytest.approx(4000, rel=0.05)


def test_it_costs_the_spend_and_no_more():
    for spend, relation in itertools.product((dp.GDP(0.5), dp.PureDP(0.5)), RELATIONS[:3]):
        session = session_of(columns_of(200), relation, budget=spend)
        found = dp.synthesize(session, COLUMNS, bins=BINS, analyses=ANALYSES, spend=spend)
        assert len(found.releases) == 3
        left = session.remaining()
        assert (left.epsilon if isinstance(spend, dp.PureDP) else left.mu) < 0.001
        with pytest.raises(dp.BudgetExceeded):
            dp.synthesize(session, COLUMNS, bins=BINS, spend=spend)


def test_the_same_key_gives_the_same_synthesis():
    session = session_of(columns_of(500))
    first, second = (
        dp.synthesize(session, COLUMNS, bins=BINS, spend=dp.GDP(1), key="once") for _ in range(2)
    )
    assert first.to_json() == second.to_json()
    assert sum(entry.kind == "debit" for entry in session.ledger.entries()) == 3


def test_files_give_the_same_tables(tmp_path):
    columns = columns_of(700)
    path = str(tmp_path / "rows.parquet")
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=100)
    for neighbors in (dp.Replace(), dp.AddRemove(unit="id", max_rows=2)):
        stored = dp.read_parquet(path, schema=SCHEMA, neighbors=neighbors)
        asked = {"bins": BINS, "analyses": ANALYSES, "spend": dp.GDP(2)}
        there = dp.synthesize(seeded_session(stored, dp.GDP(9), 5), COLUMNS, **asked)
        here = dp.synthesize(session_of(columns, neighbors, 5), COLUMNS, **asked)
        assert [one.integers for one in here.releases] == [one.integers for one in there.releases]


# -- what is stored ----------------------------------------


def test_json_opens_without_data_and_gives_the_same(synthesis):
    text = synthesis.to_json()
    again = dp.from_json(text)
    for ask in (
        lambda one: one.fit(ANALYSES[0]).confidence_interval(),
        lambda one: one.table(["sex", "age"]).confidence_interval(0.9),
        lambda one: one.mean("age", by="sex").confidence_interval(),
        lambda one: one.share({"age": (18, 45)}, given={"sex": "F"}).confidence_interval(),
    ):
        np.testing.assert_array_equal(ask(again), ask(synthesis))
    assert again.frame().equals(synthesis.frame())
    assert pickle.loads(pickle.dumps(synthesis)).frame().equals(synthesis.frame())
    assert str(again.report()) == str(synthesis.report())
    record = json.loads(text)
    assert set(record) == {"format", "version", "facts", "releases"}
    assert len(pickle.dumps(synthesis)) < 40_000
    for broken in (
        record | {"version": 9},
        record | {"releases": record["releases"][:2]},
        record | {"releases": record["releases"][1:] + record["releases"][:1]},
        record | {"facts": record["facts"] | {"columns": record["facts"]["columns"][1:]}},
        record | {"facts": {}},
    ):
        with pytest.raises(InvalidParameter):
            dp.from_json(json.dumps(broken))


def test_what_was_stored_stays_readable():
    """A synthesis as the version that introduced it wrote it; tables give the very same intervals,
    what needs the model the same as far as its fit goes."""
    stored = json.loads(STORED.read_text())
    found = dp.from_json(stored["text"])
    cells = found.table(["sex", "age"]).confidence_interval()
    np.testing.assert_allclose(cells, stored["table"], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(
        found.fit(ANALYSES[0]).confidence_interval(), stored["fit"], rtol=1e-3, atol=1e-3
    )
    errors = list(found.pair_errors.values())
    np.testing.assert_allclose(errors, stored["pairs"], rtol=0.05)


def test_frames_have_the_data_s_kinds_and_combine(synthesis):
    frame = synthesis.frame(300)
    assert len(frame) == 300
    assert frame["age"].between(18, 90).all()
    assert (frame["age"] % 1 == 0).all()
    assert set(frame["sex"].dropna()) == {"F", "M"}
    assert frame["member"].dtype == bool
    assert frame["sex"].isna().any()
    assert not frame["income"].isna().any()
    sets = synthesis.frames(3, rows=50)
    assert [len(one) for one in sets] == [50] * 3
    assert not sets[0].equals(sets[1])
    assert sets[0].equals(synthesis.frames(3, rows=50)[0])
    found = synthesis.combine(lambda one: (one["age"].mean(), one["age"].var() / len(one)), 5)
    assert found.estimate == pytest.approx(synthesis.mean("age").estimate, abs=2)
    assert "synthetic sets" in str(found)
    estimates, variances = np.array([[1.0], [3.0], [2.0]]), np.array([[0.1], [0.1], [0.4]])
    value, within, total = combined(estimates, variances)
    assert (value, within, total) == (2.0, pytest.approx(0.2), pytest.approx(4 / 3 - 0.2))


@pytest.mark.parametrize("given", [(np.nan, 1.0), (1.0, -1.0), ("much", 1.0), (None, 1.0), 3.0])
def test_sets_are_combined_from_finite_numbers_alone(synthesis, given):
    with pytest.raises(InvalidParameter, match="combine"):
        synthesis.combine(lambda one: given, 2)


def test_a_date_in_periods_is_drawn_as_a_date():
    session = session_of(columns_of(300))
    found = dp.synthesize(session, ["joined", "sex"], bins={"joined": "quarter"}, spend=dp.GDP(3))
    days = found.frame()["joined"].dropna()
    assert days.between("2020-01-01", "2021-12-31").all()


def test_drawn_columns_have_the_types_of_the_declared_ones():
    declared = {
        "day": dp.Date("2020-01-01", "2020-12-31"),
        "moment": dp.Datetime("2020-01-01", "2020-12-31 23:59:59"),
        "whole": dp.Integer(0, 9),
        "real": dp.Real(0, 9),
        "yes": dp.Boolean(),
        "code": dp.Category([1, 2, 3]),
        "mixed": dp.Category([1, "two", True]),
        "gone": dp.Category(["a", "b"]),
    }
    rows = {name: np.array([None] * 90) for name in declared}
    rows["whole"], rows["real"] = np.arange(90) % 10, np.arange(90) / 10
    data = dp.from_arrays(rows, schema=declared, neighbors=dp.Replace())
    bins = {"day": "quarter", "moment": "quarter", "whole": [0, 5, 9], "real": 3}
    found = dp.synthesize(
        seeded_session(data, dp.GDP(50), 3), list(declared), bins=bins, spend=dp.GDP(40)
    )
    frame = found.frame(30)
    kinds = [str(kind) for kind in frame.dtypes]
    assert kinds[:6] == ["datetime64[us]"] * 2 + ["int64", "float64", "object", "float64"]
    assert frame[["day", "moment", "yes", "code", "mixed", "gone"]].isna().all(axis=None)
    text = ["String", "String"]
    polars_kinds = ["Date", "Datetime", "Int64", "Float64", "Boolean", "Int64", *text]
    drawn = found.frame(30, backend="polars")
    assert [kind.base_type().__name__ for kind in drawn.dtypes] == polars_kinds
    arrow = ["date32[day]", "timestamp[us]", "int64", "double", "bool", "int64", *text]
    rows = found.frame(30, backend="pyarrow")
    assert [str(kind).lower() for kind in rows.schema.types] == [kind.lower() for kind in arrow]
    for made in (frame, drawn, rows):
        assert len(dp.from_frame(made, schema=declared, neighbors=dp.Replace()).schema) == 8


def test_synthetic_rows_go_back_into_the_library(synthesis):
    data = dp.from_frame(
        synthesis.frame(), schema={name: SCHEMA[name] for name in COLUMNS}, neighbors=dp.Replace()
    )
    assert "0 unreadable" not in str(data.check())
    session = seeded_session(data, dp.GDP(50), 1)
    share = dp.proportion(session, "income", level="high", spend=dp.GDP(40)).estimate
    assert share == pytest.approx(synthesis.share({"income": "high"}).estimate, abs=0.01)


# -- what no table holds ----------------------------------------


def test_what_no_table_holds_is_refused_or_marked(synthesis):
    question = "sex ~ age + member + income"
    assert synthesis.supports(ANALYSES[0])
    assert synthesis.supports("age by sex")
    assert not synthesis.supports(question)
    asked = (
        lambda **more: synthesis.fit(question, **more),
        lambda **more: synthesis.share({"sex": "F", "age": (18, 45), "member": True}, **more),
        lambda **more: synthesis.table(["age", "sex", "member"], **more),
        lambda **more: synthesis.mean("age", by=["sex", "member"], **more),
        lambda **more: synthesis.m_estimate(
            ["age", "sex", "member"], lambda v, b: v["age"] - b[0], [1.0], **more
        ),
    )
    for ask in asked:
        with pytest.raises(InvalidParameter) as refused:
            ask()
        assert "analyses=" in str(refused.value)
        found = ask(unsupported=True)
        assert found.under_model
        assert "UNDER THE MODEL" in str(found)
        assert "UNDER THE MODEL" in str(found.to_markdown())
        assert np.isfinite(found.confidence_interval()).all()
        assert np.asarray(found.std_errors).min() > 0
    assert not synthesis.share({"sex": "F"}, unsupported=True).under_model


def test_an_estimate_of_one_s_own_is_that_of_the_library(synthesis):
    def psi(values, beta):
        x = np.array([np.ones(len(values["sex"])), values["sex"], values["member"]])
        y = values["income"] == 2
        return x * (y - 1 / (1 + np.exp(-beta @ x)))

    own = synthesis.m_estimate(["sex", "income", "member"], psi, [0.0, 0.0, 0.0])
    fit = synthesis.fit(ANALYSES[0])
    np.testing.assert_allclose(own.params, fit.params, atol=1e-4)
    np.testing.assert_allclose(own.std_errors, fit.std_errors, rtol=1e-3)


# -- refused before the debit ----------------------------------------


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (["sex"], {}, "there are 1"),
        ("sex", {}, "no list"),
        (["sex", "sex"], {}, "twice"),
        (["sex", "seks"], {}, "seks"),
        (["sex", "note"], {}, "Open"),
        (["sex", "age"], {}, "without bins"),
        (["sex", "age"], {"bins": {"age": [18, 60]}}, "declared bounds"),
        (["sex", "age"], {"bins": {"age": [60, 18]}}, "increase"),
        (["sex", "age"], {"bins": {"ages": [18, 90]}}, "none of the columns"),
        (["sex", "age"], {"bins": [18, 90]}, "mapping"),
        (["sex", "age"], {"bins": {"age": 4000}}, "bins"),
        (["sex", "income"], {"bins": {"sex": [0, 1]}}, "levels"),
        (["sex", "joined"], {"bins": {"joined": "weekday"}}, "cycle"),
        (["sex", "income"], {"analyses": "sex by income"}, "list"),
        (["sex", "income"], {"analyses": ["sex ~ member"]}, "member"),
        (["sex", "income"], {"analyses": ["sex ~ log(income)"]}, "formula"),
        (["sex", "income"], {"analyses": [7]}, "analysis"),
        (["sex", "income"], {"spend": 1.0}, "spend"),
        (["sex", "income"], {"spend": dp.GDP(1e-6)}, "too small"),
        (["age", "sex", "income"], {"bins": {"age": 70}, "analyses": [COLUMNS[:3]] * 2}, ""),
    ],
)
def test_bad_input_is_refused_before_the_debit(columns, options, said):
    session = session_of(columns_of(50))
    options = {"spend": dp.GDP(1)} | options
    if not said:
        assert dp.synthesize(session, columns, **options)
        return
    with pytest.raises(dp.DiscreetError) as refused:
        dp.synthesize(session, columns, **options)
    assert said in str(refused.value)
    assert not [entry for entry in session.ledger.entries() if entry.kind == "debit"]


def test_tables_beyond_their_limits_name_the_columns_to_drop():
    schema = {f"c{place}": dp.Category(range(60), missing=0) for place in range(5)}
    wide = {f"w{place}": dp.Category(range(1000), missing=0) for place in range(6)}
    columns = {name: [0, 1] for name in (*schema, *wide)}
    data = dp.from_arrays(columns, schema=schema | wide, neighbors=dp.Replace())
    session = seeded_session(data, dp.GDP(1), 1)
    for names, analyses, said in (
        (list(schema), ["c0 ~ c1 + c2"], "leave out c0"),
        (list(schema), [f"c{a} by c{b}" for a, b in itertools.combinations(range(5), 2)], "cells"),
        (list(wide), [], "w0 (1000 cells)"),
    ):
        with pytest.raises(InvalidParameter) as refused:
            dp.synthesize(session, names, analyses=analyses, spend=dp.GDP(1))
        assert said in str(refused.value)
        assert "leave out" in str(refused.value)


# -- data of which little can be said ----------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize("relation", RELATIONS[:2], ids=str)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_small_and_empty_tables_give_finite_answers(relation, rows):
    columns = {name: values[:rows] for name, values in columns_of(10).items()}
    session = session_of(columns, relation)
    found = dp.synthesize(session, COLUMNS, bins=BINS, analyses=ANALYSES, spend=dp.GDP(1))
    for answer in (
        found.share({"sex": "F"}),
        found.table(["sex", "age"]),
        found.mean("age", by="sex"),
        found.fit(ANALYSES[0]),
    ):
        assert np.isfinite(np.asarray(answer.params)).all()
        assert np.isfinite(answer.confidence_interval()).all()
        assert "nan" not in str(answer)
    assert len(found.frame()) >= 1
    assert str(found.report())


def test_one_level_and_a_column_that_is_all_missing():
    columns = {"one": ["a"] * 40, "gone": [None] * 40, "b": [True, False] * 20}
    schema = {
        "one": dp.Category(["a"], missing="a"),
        "gone": dp.Real(0, 1),
        "b": dp.Boolean(),
    }
    data = dp.from_arrays(columns, schema=schema, neighbors=dp.Replace())
    found = dp.synthesize(
        seeded_session(data, dp.GDP(9), 1),
        ["one", "gone", "b"],
        bins={"gone": 2},
        analyses=["gone by b"],
        spend=dp.GDP(8),
    )
    assert found.frame()["gone"].isna().mean() > 0.9
    mean = found.mean("gone", by="b")
    assert np.isfinite(mean.confidence_interval()).all()
    assert "FEW ROWS" in str(mean)
    assert found.share({"gone": None}).estimate == pytest.approx(1, abs=0.05)
    assert found.share({"one": "a"}).estimate == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS[:2], ids=str)
def test_intervals_cover_and_rows_as_if_real_do_not(relation):
    """400 rows, 6 cells, 80 samples: the Monte-Carlo error of a cell's coverage is 0.024, of the
    average over cells less. Rows drawn from the model ignore their own drawing and the noise."""
    rng, law = np.random.default_rng(3), np.array([[0.3, 0.1, 0.15], [0.1, 0.25, 0.1]])
    schema = {"a": dp.Category([0, 1], missing=0), "b": dp.Category([0, 1, 2], missing=0)}
    hits, naive = [], []
    for seed in range(80):
        cells = rng.choice(6, 400, p=law.ravel())
        data = dp.from_arrays({"a": cells // 3, "b": cells % 3}, schema=schema, neighbors=relation)
        session = seeded_session(data, dp.GDP(1), f"cover {seed}")
        found = dp.synthesize(session, ["a", "b"], analyses=["a by b"], spend=dp.GDP(0.3))
        ends = found.table(["a", "b"]).confidence_interval()
        hits.append((ends[:, 0] <= law.ravel()) & (law.ravel() <= ends[:, 1]))
        frame = found.frame(400, draw="independent")
        share = np.bincount(frame["a"] * 3 + frame["b"], minlength=6) / 400
        error = 1.96 * np.sqrt(share * (1 - share) / 400)
        naive.append(np.abs(share - law.ravel()) <= error)
    assert abs(np.mean(hits) - 0.95) < 0.03
    assert np.mean(hits, axis=0).min() > 0.85
    assert np.mean(naive) < 0.85


# -- what is said ----------------------------------------


def test_what_is_said_tells_what_was_done(synthesis):
    told = str(synthesis)
    for words in ("4000 rows (public)", "level of its own: age, sex", "income", "for looking"):
        assert words in told
    assert "A cell without a value counts in income as low, member as False" in told
    assert "NOT PRIVATE" in told
    mean = str(synthesis.mean("age", by="sex"))
    assert "middle of its bin" in mean
    assert "without a value in age, sex are left out" in mean
    assert "UNDER" not in mean
    assert "sex, income, member" in str(synthesis.report())
    assert set(synthesis.pair_errors) == set(itertools.combinations(COLUMNS, 2))
    assert len(repr(synthesis).splitlines()) == 3
    units = str(made(300, RELATIONS[2]).share({"sex": "F"}))
    assert "fully alike" in units


@pytest.mark.slow
def test_pictures_are_drawn(synthesis, tmp_path):
    for name, one in (
        ("synthesis", synthesis),
        ("table", synthesis.table(["sex", "income"])),
        ("fit", synthesis.fit(ANALYSES[0])),
    ):
        one.plot(path=str(tmp_path / f"{name}.png"))
        assert (tmp_path / f"{name}.png").stat().st_size > 5000


def test_a_preview_tells_the_noise_of_every_table(synthesis):
    session = session_of(columns_of(4000))
    asked = {"bins": BINS, "analyses": ANALYSES, "spend": dp.GDP(2)}
    preview = dp.preview(session, dp.synthesize, COLUMNS, **asked)
    names = {one.columns: one for one in preview.tables}
    for place, name in enumerate(COLUMNS):
        # what was measured once more in the last release has less
        assert synthesis.tables.measured[place,].sigma <= names[name].least * 1.0000001
    declared = names["sex, income, member"]
    measured = synthesis.tables.measured[1, 2, 3].sigma
    assert declared.least <= measured <= declared.most * 1.5
    assert [one.quantity for one in preview.forecasts][-1] == "age, sex: share of a cell"
    assert "income[high]: member[True]" in str(preview)
    assert not session.ledger.entries() or all(
        entry.kind != "debit" for entry in session.ledger.entries()
    )
    private = session_of(columns_of(40), dp.AddRemove())
    with pytest.raises(InvalidParameter):
        dp.preview(private, dp.synthesize, COLUMNS, **asked)
    assert dp.preview(
        private, dp.synthesize, COLUMNS, assume=dp.Assumptions(rows=4000), **asked
    ).forecasts
