"""Pictures and words of regressions: slopes are not flattened by the intercept, references stand
beside, titles name the response as it was modelled.
"""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dp
from discreet.plots.regression import panels
from discreet.testing import seeded_session

SCHEMA = {
    "pay": dp.Real(20, 5000),
    "school": dp.Integer(8, 18),
    "work": dp.Integer(0, 40),
    "region": dp.Category(["E", "N", "[S]"]),
    "member": dp.Boolean(),
}
FORMULA = "log(pay) ~ school + work + square(work) + region"


@pytest.fixture(scope="module")
def session():
    rng = np.random.default_rng(4)
    n = 4000
    school, work, region = (
        rng.integers(8, 19, n),
        rng.integers(0, 41, n),
        rng.choice(["E", "N", "[S]"], n),
    )
    pay = np.exp(
        4.5
        + 0.1 * school
        + 0.04 * work
        - 0.0007 * work**2
        + 0.2 * (region == "N")
        + 0.4 * rng.normal(size=n)
    )
    data = {
        "pay": pay,
        "school": school,
        "work": work,
        "region": region,
        "member": rng.random(n) < 0.4,
    }
    return seeded_session(
        dp.from_arrays(data, schema=SCHEMA, neighbors=dp.Replace()),
        dp.ApproxDP(90, 1e-4),
        "pictures",
    )


@pytest.fixture(scope="module")
def fit(session):
    return dp.robust(session, FORMULA, spend=dp.GDP(1))


def labels(figure):
    return [[text.get_text() for text in axes.get_yticklabels()] for axes in figure.axes]


@pytest.mark.slow
def test_the_intercept_does_not_flatten_the_slopes(fit, tmp_path):
    figure = fit.plot(path=str(tmp_path / "a.png"))
    assert labels(figure)[0] == ["intercept"]
    assert sorted(name for group in labels(figure) for name in group) == sorted(fit.names)
    # every interval is at least a hundredth of its axis wide
    for axes, group in zip(figure.axes, labels(figure), strict=True):
        low, high = axes.get_xlim()
        ends = fit.confidence_interval()[[fit.names.index(name) for name in group]]
        assert ((ends[:, 1] - ends[:, 0]) / (high - low)).min() > 0.01
        assert ends.min() >= low
        assert ends.max() <= high
    assert labels(fit.plot(intercept=False)) == labels(figure)[1:]
    assert "log(pay)" in figure.axes[0].get_title(loc="left")
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_panels_hold_coefficients_of_one_size_in_order():
    assert panels(["intercept", "a", "b", "c", "d"], np.array([100.0, 1.0, 0.5, 0.01, 0.9])) == [
        [0],
        [1, 2, 4],
        [3],
    ]
    assert panels(["intercept"], np.array([1.0])) == [[0]]
    assert panels(["intercept", "a"], np.array([1.0, 1.0]), intercept=False) == [[1]]
    assert panels(["a", "b"], np.array([0.0, 0.0])) == [[0, 1]]


@pytest.mark.slow
def test_a_reference_stands_beside(fit):
    triples = np.column_stack([fit.params, *fit.confidence_interval().T])
    whole, named = (
        fit.plot(reference=triples),
        fit.plot(reference={"school": triples[fit.names.index("school")]}),
    )
    for figure, count in ((whole, len(fit.names)), (named, 1)):
        marks = sum(
            len(line.get_xdata())
            for axes in figure.axes
            for line in axes.get_lines()
            if line.get_marker() == "|"
        )
        assert marks == count
        assert "reference" in [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    for wrong in (triples[:2], {"nobody": (1, 0, 2)}, {"school": (1, 2)}, "text"):
        with pytest.raises(dp.InvalidParameter, match="reference"):
            fit.plot(reference=wrong)


@pytest.mark.slow
def test_trajectories_have_every_iterate(fit, session):
    for shown in (
        fit,
        dp.robust(session, "pay ~ school", spend=dp.GDP(1), solver=dp.GradientDescent(60)),
    ):
        axes = shown.plot_trajectory().axes[0]
        assert all(len(line.get_xdata()) == len(shown.trajectory) for line in axes.get_lines())
        assert len(axes.get_lines()) == len(shown.names)


@pytest.mark.slow
def test_titles_name_the_response_as_it_was_modelled(fit, session):
    assert str(fit.summary()).startswith("Private robust regression of log(pay)")
    assert "<caption>Private robust regression of log(pay)" in fit._repr_html_()
    assert "residuals of log(pay)" in str(dp.residuals(session, fit, spend=dp.GDP(1)).summary())
    assert "of log(pay)" in str(dp.ols(session, FORMULA, spend=dp.GDP(1), method="moments"))
    assert "of member" in str(dp.logistic(session, "member ~ school", spend=dp.GDP(1)))
    assert "regression of region[[S]]" in str(
        dp.logistic(session, "C(region, base='[S]') ~ school", spend=dp.GDP(1))
    )
    assert "of pay" in str(
        dp.robust(session, "pay ~ school", spend=dp.GDP(1), solver="newton", where={"region": "N"})
    )


def test_filters_are_named_by_every_kind_of_fit(session):
    for options in ({}, {"solver": "newton"}, {"method": "moments"}):
        assert "Only rows where region" in str(
            dp.ols(session, "pay ~ school", spend=dp.GDP(1), where={"region": "N"}, **options)
        )


def test_columns_of_the_table_are_aligned(fit):
    lines = str(fit.summary()).splitlines()
    place = next(place for place, line in enumerate(lines) if "p" in line.split())
    end = len(lines[place][: f"{lines[place]} ".index(" p ")]) + 2
    body = [f"{line} " for line in lines[place:] if line.startswith((" school", " work"))][:2]
    assert len(body) == 2
    assert all(line[end - 1] != " " and line[end] == " " for line in body)


def test_tests_print_themselves(fit):
    assert str(fit.test(["region[N]", "region[[S]]"])).startswith("Wald test: chi-square = ")
    assert "p < 1e-15" in str(fit.test(["school", "work"]))
    assert "1 degree of freedom" in str(fit.test("work"))
    assert fit.noise_to_signal == pytest.approx(fit.privacy_errors / np.abs(fit.params))
