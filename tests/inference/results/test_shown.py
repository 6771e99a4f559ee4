"""Results as people read them: three lines, entries by name, tables for papers, notes; and numbers
that stay inside their intervals and ranges whatever the noise.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from tests.golden.golden_asks import ASKS, SEARCHES
from tests.golden.golden_data import SCHEMA, arrays, survey
from tests.survey import open_session

import discreet as dp
from discreet.inference.results.named import NamedVector
from discreet.inference.results.summary import Summary, wrapped_label
from discreet.testing import seeded_session

# ── names ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def table() -> dp.Result:
    return dp.table(open_session(), "income", by="region", spend=dp.GDP(0.5))


def test_entries_are_read_by_name_and_by_position(table: dp.Result) -> None:
    assert table.params["N"] == table.params[1] == np.asarray(table.params)[1]
    low, high = table["N"].interval
    assert [low, high] == table.confidence_interval()[1].tolist()
    assert low <= table["N"].estimate <= high
    assert table.entry("N", 0.5).high < high
    assert table.entry("N", quantity="count").quantity == "count"
    assert [one.name for one in table] == ["E", "N", "S", "W"]
    assert "N" in table.params
    assert "Q" not in table.params
    assert list(table.params.to_dict()) == ["E", "N", "S", "W"]
    assert str(table["N"]).startswith("N: ")


def test_names_of_several_parts_and_of_single_numbers() -> None:
    session = open_session()
    cells = dp.table(session, by=["region", "member"], spend=dp.GDP(0.5))
    assert cells.params["N", "True"] == cells["N", "True"].estimate
    assert dp.mean(session, "income", spend=dp.GDP(0.5)).params["income"] > 0


@pytest.mark.parametrize("read", [lambda t: t["Q"], lambda t: t.params["Q"]])
def test_an_unknown_name_is_refused_with_the_known_ones(table: dp.Result, read: Any) -> None:
    with pytest.raises(dp.InvalidParameter, match="E; N; S; W"):
        read(table)
    with pytest.raises(dp.InvalidParameter, match="count, share, mean"):
        table.entry("N", quantity="median")


def test_a_named_vector_is_an_array_to_numpy() -> None:
    vector = NamedVector([1.0, 2.0, 4.0], ("a", "b", "c"))
    assert type(vector * 2) is type(vector[1:]) is type(vector @ np.eye(3)) is np.ndarray
    assert vector.sum() == 7
    assert (vector > 1).tolist() == [False, True, True]
    assert vector[[0, 2]].tolist() == [1.0, 4.0]
    assert np.concatenate([vector, [8.0]]).tolist() == [1.0, 2.0, 4.0, 8.0]
    back = pickle.loads(pickle.dumps(vector))
    assert back.names == vector.names
    assert repr(back).split() == ["a", "1", "b", "2", "c", "4"]


def test_coefficients_are_read_by_name() -> None:
    fit = dp.robust(open_session(), "income ~ age + region", spend=dp.GDP(1))
    assert fit.params["age"] == fit["age"].estimate
    assert fit["age"].interval == tuple(fit.confidence_interval()[1])
    assert fit.p_values["age"] == fit.p_values[1]
    assert repr(fit).count("\n") == 2


# ── inside, whatever the noise ────────────────────────────────────────────────────────────────────


def _bounds(column: Any) -> tuple[float, float]:
    return float(column.low), float(column.high)


BOUNDS = {name: _bounds(one) for name, one in SCHEMA.items() if hasattr(one, "low")}
LOCATIONS = ("mean", "median", "quantile", "location", "truncated mean")


def _every_result(spend: Any, neighbors: Any, seed: str) -> Any:
    data = dp.from_arrays(arrays(survey()), schema=SCHEMA, neighbors=neighbors)
    for name, ask in (ASKS | SEARCHES).items():
        try:
            result = ask(seeded_session(data, dp.GDP(900), f"{name} {seed}"), spend)
        except dp.DiscreetError:  # no such question under this relation or spend
            continue
        if isinstance(result, dp.Result):
            yield name, result


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
@pytest.mark.parametrize("spend", [dp.GDP(0.02), dp.PureDP(0.02), dp.GDP(0.75)], ids=str)
def test_estimates_stay_inside_and_privacy_alone_is_never_wider(neighbors: Any, spend: Any) -> None:
    seen, moved = 0, 0
    for name, result in _every_result(spend, neighbors, "inside"):
        whole, own = result.quantities(), result.quantities(target="data")
        for both, alone in zip(whole, own, strict=True):
            for one in (both, alone):
                known = ~np.isnan(one.estimate)
                assert np.all((one.low <= one.estimate)[known]), name
                assert np.all((one.estimate <= one.high)[known]), name
                if both.name in LOCATIONS and result.release.description.column in BOUNDS:
                    low, high = BOUNDS[result.release.description.column]
                    assert np.all((one.low >= low - 1e-9) & (one.high <= high + 1e-9)), name
            width, part = both.high - both.low, alone.high - alone.low
            assert np.all(part <= width * (1 + 1e-9) + 1e-12), name
        moved += int(np.any(result.params != result.unprojected))
        assert repr(result).count("\n") == 2
        seen += 1
    assert seen > 40
    assert moved > 5 or spend == dp.GDP(0.75)


# ── tables ────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = "<b>|a_b*$x^2 & 50% #1 ~\\{y}"


@pytest.fixture
def hostile() -> Summary:
    return Summary(HOSTILE, (HOSTILE, "n"), ((HOSTILE, "1.5"), ("plain", "−")), (HOSTILE,))


def test_html_escapes_everything(hostile: Summary) -> None:
    page = hostile.to_html()
    assert page == hostile._repr_html_()
    assert "<b>" not in page
    assert page.count("&lt;b&gt;") == 4
    assert page.startswith("<table")


def test_markdown_escapes_everything(hostile: Summary) -> None:
    text = hostile.to_markdown()
    cells = [line for line in text.splitlines() if line.startswith("| ")]
    assert len({line.replace("\\|", "").count("|") for line in cells}) == 1
    assert "\\<b\\>\\|a\\_b\\*\\$x" in text


def test_latex_escapes_everything(hostile: Summary) -> None:
    text = hostile.to_latex(label="tab:{one}")
    assert "\\label{tab:one}" in text
    for mark in ("a\\_b", "\\$x", "\\& 50\\% \\#1", "\\textasciitilde{}", "\\textbackslash{}"):
        assert mark in text
    assert text.count("\\begin{") == text.count("\\end{") == 3
    body = text[text.index("\\toprule") : text.index("\\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith("\\\\")]
    assert [line.replace("\\&", "").count("&") for line in rows] == [1, 1, 1]


def test_notes_stand_in_every_form(table: dp.Result) -> None:
    shown = table.summary().with_notes("missing cells were filled in with 0")
    for text in (str(shown), shown.to_html(), shown.to_markdown(), shown.to_latex()):
        assert "missing cells were filled in with 0" in text
    assert Summary("t", ("a",), (("1",),)).notes == ()


def test_what_was_done_to_the_data_is_told_once(table: dp.Result) -> None:
    """Also by fits of several releases, of which some count the rows and others do not."""
    session = open_session()
    fits = [
        dp.ols(session, "income ~ age", spend=dp.GDP(1), **how)
        for how in ({"method": "moments"}, {})
    ]
    for result in (table, *fits, dp.mode(session, "region", spend=dp.GDP(1))):
        assert str(result).count("left out") == 1
        assert "left out" in result._repr_html_()
    assert "rows hold a value of age, income (" in str(fits[1])


def test_long_labels_wrap_and_interactions_break_after_a_colon() -> None:
    name = "education[completed university degree]:region[a very long name of a region]:age"
    numbers = ("-0.0123", "0.0057", "0.0056", "0.0012", "-2.18", "0.029", "5")
    rows = ((name, *numbers, "-0.0235 … -0.0012"), ("age", *numbers, "1 … 2"))
    text = str(Summary("fit", ("", *"abcdefg", "95% interval"), rows, ()))
    assert max(map(len, text.splitlines())) <= 100
    assert "degree]:" in text
    assert wrapped_label("aaa:bbb:ccc", 8) == "aaa:bbb:\nccc"
    assert wrapped_label("a" * 10, 4) == "aaaa\naaaa\naa"
    assert wrapped_label("short", 40) == "short"
    level = "age:education[vocational]:region[N]"
    assert wrapped_label(level, 14) == "age:education\n[vocational]:\nregion[N]"
    assert wrapped_label("education[degree]", 16) == "education\n[degree]"


def test_ledger_session_plan_and_tests_render(table: dp.Result) -> None:
    session = open_session()
    plan = dp.plan(epsilon=1.0, delta=1e-5, steps=10, sampling_rate=0.1)
    evidence = dp.compare(session, "member", by="region", spend=dp.GDP(1)).test()
    for thing in (session, session.ledger, plan, evidence, table):
        assert thing._repr_html_().startswith("<table")
    assert "p-value" in evidence.to_markdown()
