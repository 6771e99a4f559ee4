"""Previews: free, made without data, and right about what a release will give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.printed import unwrapped
from tests.survey import RELATIONS, SPENDS, data_set, open_session

import discreet as dp
from discreet.testing import seeded_session
from discreet.trusted.engines.memory import MemoryEngine

QUESTIONS = [
    (dp.count, (), {"where": {"region": "N"}}, dp.Assumptions(rows=1000, share=0.3)),
    (dp.sum, ("income",), {}, dp.Assumptions(rows=1000, mean=50, standard_deviation=10)),
    (dp.mean, ("income",), {}, dp.Assumptions(rows=1000, mean=50, standard_deviation=10)),
    (dp.variance, ("income",), {}, dp.Assumptions(rows=1000, mean=50, standard_deviation=10)),
    (dp.proportion, ("member",), {}, dp.Assumptions(rows=1000, share=0.3)),
    (dp.histogram, ("region",), {}, dp.Assumptions(rows=1000)),
    (
        dp.table,
        ("income",),
        {"by": "member"},
        dp.Assumptions(rows=1000, mean=50, standard_deviation=10),
    ),
]
EVERY = pytest.mark.parametrize(
    ("estimator", "asked", "options", "assume"),
    QUESTIONS,
    ids=[question[0].__name__ for question in QUESTIONS],
)


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("spend", SPENDS, ids=repr)
def test_previews_are_free_and_read_no_data(
    monkeypatch: pytest.MonkeyPatch, estimator, asked, options, assume, neighbors, spend
) -> None:
    session = open_session(neighbors)
    head = session.ledger.head
    for method in ("sums", "gram"):
        monkeypatch.setattr(
            MemoryEngine, method, lambda self, plan: pytest.fail("a preview read data")
        )
    preview = dp.preview(
        session, estimator, *asked, spend=spend, assume=assume, key="ignored", **options
    )
    assert session.ledger.head == head
    assert preview.noise > 0
    assert preview.width > 0
    assert preview.how_many > 0
    text = unwrapped(preview)
    assert all(
        words in text
        for words in (
            "noise %",
            "95% interval width",
            "Assumed: 1000 rows",
            "Nothing was spent and no data was read",
            preview.price,
        )
    )
    assert preview._repr_html_().startswith("<table")


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("spend", SPENDS, ids=repr)
def test_previews_come_true(estimator, asked, options, assume, spend) -> None:
    """Noise and width within 25 % of the median of five releases:
    the assumptions are the survey's own.
    """
    session = seeded_session(data_set(), dp.GDP(1000), estimator.__name__)
    preview = dp.preview(session, estimator, *asked, spend=spend, assume=assume, **options)
    results = [estimator(session, *asked, spend=spend, **options) for _ in range(5)]
    main = [result.quantities()[-1] for result in results]
    assert preview.question.mechanism == results[0].release.mechanism
    assert preview.noise == pytest.approx(
        float(np.median([np.sqrt(np.median(quantity.privacy_variance)) for quantity in main])),
        rel=0.25,
    )
    assert preview.width == pytest.approx(
        float(np.median([np.median(quantity.high - quantity.low) for quantity in main])), rel=0.25
    )
    assert preview.price == str(session.price(preview.question))


def test_how_many_is_how_many() -> None:
    session = open_session(budget=dp.GDP(1))
    preview = dp.preview(session, dp.mean, "income", spend=dp.GDP(0.3))
    assert preview.how_many == 11  # 1 / 0.09
    for _ in range(preview.how_many):
        dp.mean(session, "income", spend=dp.GDP(0.3))
    assert dp.preview(session, dp.mean, "income", spend=dp.GDP(0.3)).how_many == 0
    with pytest.raises(dp.BudgetExceeded):
        dp.mean(session, "income", spend=dp.GDP(0.3))


def test_more_spend_less_noise_and_wider_levels() -> None:
    session = open_session()
    noises = [
        dp.preview(session, dp.mean, "income", spend=dp.GDP(mu)).noise for mu in (0.1, 0.2, 0.4)
    ]
    np.testing.assert_allclose([noises[0] / noises[1], noises[1] / noises[2]], 2, rtol=1e-3)
    assert (
        dp.preview(session, dp.mean, "income", spend=dp.GDP(0.1), level=0.5).width
        < dp.preview(session, dp.mean, "income", spend=dp.GDP(0.1)).width
    )


@pytest.mark.parametrize("neighbors", RELATIONS[1:], ids=str)
def test_where_rows_are_private_a_guess_is_asked_for(neighbors: object) -> None:
    with pytest.raises(dp.InvalidParameter, match="rows"):
        dp.preview(open_session(neighbors), dp.mean, "income", spend=dp.GDP(0.1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": 0},
        {"standard_deviation": 0},
        {"share": 1.5},
        {"share": -0.1},
        {"mean": float("nan")},
        {"rows": "many"},
    ],
)
def test_impossible_assumptions_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(dp.InvalidParameter):
        dp.Assumptions(**wrong)  # type: ignore[arg-type]


def test_only_estimators_can_be_previewed() -> None:
    with pytest.raises(dp.InvalidParameter, match=r"dp\.mean"):
        dp.preview(open_session(), len, "income", spend=dp.GDP(0.1))
    with pytest.raises(dp.UndeclaredColumn):
        dp.preview(open_session(), dp.mean, "incone", spend=dp.GDP(0.1))
    with pytest.raises(dp.InvalidParameter, match="spend"):
        dp.preview(open_session(), dp.mean, "income", spend=0.1)  # type: ignore[arg-type]


def test_a_level_of_a_column_is_the_estimators(tmp_path: Path) -> None:
    """Not the level of intervals, which is a float: by itself and in a plan."""
    session = open_session()
    one = dp.preview(session, dp.proportion, "region", level="N", spend=dp.GDP(0.5))
    assert one.level == 0.95
    assert dp.preview(session, dp.mean, "income", spend=dp.GDP(0.5), level=0.9).level == 0.9
    with pytest.raises(dp.InvalidParameter):
        dp.preview(session, dp.mean, "income", spend=dp.GDP(0.5), level="N")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        "[questions.a]\nestimator = 'proportion'\ncolumn = 'region'\nlevel = 'N'\n"
        "spend = { mu = 0.5 }\n"
    )
    (forecast,) = dp.read_plan(plan).preview(session, level=0.9).forecasts
    assert forecast.level == 0.9
    assert forecast.noise == one.noise
