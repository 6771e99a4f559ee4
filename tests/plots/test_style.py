"""What every picture keeps: colours that all can tell apart, legends and titles beside the data,
plain ticks, axes of the caller's own, light and dark paper, and a PNG for notebooks.
"""

from __future__ import annotations

import itertools
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from tests.survey import ASKS, data_set

import discreet as dp
from discreet.plots import cells
from discreet.plots.accounting import plot_budget, plot_epsilon_delta, plot_tradeoff
from discreet.plots.numbers import interval, number, power_of, tick_texts
from discreet.plots.style import CURVES, ON_DARK, ON_LIGHT, shades_of, stroke, text_width
from discreet.testing import seeded_session

# linear RGB as people without red, without green, without blue cones see it
# (Machado, Oliveira and Fernandes 2009, severity 1)
WITHOUT_CONES = (
    (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
)
LONG = ("Public administration and defence; compulsory social security", "Arts", "Trade")
SPEND = dp.GDP(0.5)


def lightness_and_hue(color: str, eyes: object = None) -> np.ndarray:
    """CIE Lab of a colour, as these eyes see it."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    if eyes is not None:
        linear = np.clip(np.array(eyes) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ linear / np.array([0.9505, 1.0, 1.089])
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


@pytest.mark.parametrize("eyes", [None, *WITHOUT_CONES], ids=["all", "red", "green", "blue"])
def test_colours_are_told_apart(eyes: object) -> None:
    """By 15 or more in CIE Lab (2 is the least that is seen): curves among each other; the parts of
    an interval and what stands beside it, on both papers.
    """
    seen = [lightness_and_hue(color, eyes) for color in CURVES]
    assert min(np.linalg.norm(one - two) for one, two in itertools.combinations(seen, 2)) > 15
    for shades in (ON_LIGHT, ON_DARK):
        marks = [shades.paper, shades.ink, shades.accent, shades.light, shades.other]
        colors = [lightness_and_hue(color, eyes) for color in marks]
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(colors, 2)) > 15


def test_no_two_curves_look_alike() -> None:
    lines = [(stroke(i)["color"], stroke(i)["linestyle"]) for i in range(28)]
    assert len(set(lines)) == 28


def test_numbers_are_plain() -> None:
    assert tick_texts([0, 25_000, 50_000]) == ["0", "25\u202f000", "50\u202f000"]
    assert tick_texts([-0.05, 0.0, 0.05]) == ["−0.05", "0", "0.05"]
    assert tick_texts([1.2e9, 1.25e9], 9) == ["1.20", "1.25"]
    assert tick_texts([]) == []
    assert (power_of(9.9e6), power_of(3e7), power_of(2e-5), power_of(0.0)) == (0, 6, -6, 0)
    assert (number(-30.333, 2.0), number(67.0), number(float("nan"))) == (
        "−30.33",
        "67",
        "not known",
    )
    assert interval(1.19e13, 1.21e13) == "11.900 … 12.100 ×10¹²"
    assert interval(0.2841, 0.3141) == "0.2841 … 0.3141"


def session() -> dp.Session:
    rng = np.random.default_rng(4)
    rows = 600
    names = [f"unit {place:02d}" for place in range(80)]
    columns = {
        "pay": rng.normal(3e9, 2e8, rows),
        "loss": -rng.gamma(2.0, 10.0, rows),
        "one": np.full(rows, 5.0),
        "branch": rng.choice(LONG, rows),
        "unit": rng.choice(names, rows),
        "side": rng.choice(["a", "b"], rows),
        "yes": rng.random(rows) < 0.4,
    }
    schema = {
        "pay": dp.Real(0, 10**10),
        "loss": dp.Real(-100, 0),
        "one": dp.Real(0, 100),
        "branch": dp.Category(LONG),
        "unit": dp.Category(names),
        "side": dp.Category(["a", "b"]),
        "yes": dp.Boolean(),
    }
    data = dp.from_arrays(columns, schema=schema, neighbors=dp.Replace())
    return seeded_session(data, dp.GDP(100), 1)


CASES = {
    "count": lambda s: dp.count(s, spend=SPEND, where={"yes": True}),
    "large numbers": lambda s: dp.mean(s, "pay", spend=SPEND),
    "negative numbers": lambda s: dp.median(s, "loss", spend=SPEND),
    "one bin": lambda s: dp.histogram(s, "one", bins=20, spend=SPEND),
    "one bin, curve": lambda s: dp.ecdf(s, "one", spend=SPEND),
    "density": lambda s: dp.density(s, "loss", spend=SPEND),
    "two groups": lambda s: dp.table(s, "pay", by="side", spend=SPEND),
    "long names": lambda s: dp.table(s, "loss", by="branch", spend=SPEND),
    "80 groups": lambda s: dp.table(s, "loss", by="unit", spend=SPEND),
    "matrix": lambda s: dp.covariance(s, ["pay", "loss"], spend=SPEND),
    "test": lambda s: dp.compare(s, "yes", by="branch", spend=SPEND),
    "expected shares": lambda s: dp.goodness_of_fit(s, "side", [0.9, 0.1], spend=SPEND),
    "proportion": lambda s: dp.proportion_test(s, "yes", null=0.5, spend=SPEND),
    "choice": lambda s: dp.mode(s, "branch", spend=dp.PureDP(1)),
    "order": lambda s: dp.top(s, "unit", 5, spend=dp.PureDP(1)),
    "preview": lambda s: dp.preview(s, dp.table, "pay", by="branch", spend=SPEND),
    "preview of a choice": lambda s: dp.preview(s, dp.mode, "branch", spend=dp.PureDP(1)),
    "preview of a median": lambda s: dp.preview(s, dp.median, "loss", spend=SPEND),
    "power": lambda s: dp.power(dp.compare, rows=300, spend=SPEND, baseline=0.1, share=0.2),
}


def check_layout(figure: Figure) -> None:
    """Legends, titles and subtitles touch neither data nor each other nor the figure's edge, and
    no number is left to an offset.
    """
    figure.draw_without_rendering()
    for axes in figure.axes:
        panel = axes.get_window_extent()
        heads = [text.get_window_extent() for text in (axes._left_title,) if text.get_text()]
        legend = axes.get_legend()
        if legend is not None:
            heads.append(legend.get_window_extent())
        heads += [
            text.get_window_extent()
            for text in axes.texts
            if text.get_window_extent().y0 >= panel.y1 and text.get_text()
        ]
        for box in heads:
            assert box.y0 >= panel.y1 - 0.5  # above the panel, where no data are
            assert box.x1 <= figure.bbox.x1 + 0.5
            assert box.y1 <= figure.bbox.y1 + 0.5
        assert not any(one.overlaps(two) for one, two in itertools.combinations(heads, 2))
        for axis in (axes.xaxis, axes.yaxis):
            assert not axis.get_offset_text().get_text()
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            boxes = [label.get_window_extent() for label in labels if label.get_text()]
            boxes = [box for box in boxes if box.overlaps(figure.bbox)]
            turned = any(label.get_rotation() for label in labels)
            for one, two in itertools.pairwise(boxes):
                assert turned or not one.overlaps(two)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_heads_stand_above_the_data(name: str) -> None:
    found = CASES[name](session())
    figure = found.plot()
    check_layout(figure)
    data, shown = figure._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert shown["width"] == round(96 * figure.get_size_inches()[0])


@pytest.mark.slow
def test_pictures_of_guarantees_keep_their_layout() -> None:
    ledger = dp.Ledger.open(dp.ApproxDP(1, 1e-6))
    for figure in (
        plot_tradeoff(dp.GDP(1), dp.PureDP(1), dp.ApproxDP(1, 1e-5)),
        plot_epsilon_delta(dp.GDP(1), dp.PureDP(1), points=5),
        plot_budget(ledger),
    ):
        check_layout(figure)
        assert figure.axes[0].has_data()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["count", "long names", "matrix", "test", "order", "preview", "power"]
)
def test_axes_and_titles_of_the_callers_own(name: str) -> None:
    figure = Figure(figsize=(12, 7), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    right.plot([0, 1], [0, 1])
    found = CASES[name](session())
    assert found.plot(ax=left, title="My own words") is left
    titles = [axes.get_title(loc="left").replace("\n", " ") for axes in figure.axes]
    assert "My own words" in titles
    assert len(right.lines) == 1
    figure.draw_without_rendering()
    bare = Figure()
    FigureCanvasAgg(bare)
    found.plot(ax=bare.add_axes((0.2, 0.2, 0.6, 0.6)), title="")
    bare.draw_without_rendering()


def test_dark_paper_has_light_ink() -> None:
    figure = Figure(facecolor="black")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.set_facecolor("black")
    assert shades_of(axes) is ON_DARK
    result = ASKS["table"](seeded_session(data_set(), dp.GDP(9), 1), SPEND)
    result.plot(ax=axes)
    assert axes._left_title.get_color() == ON_DARK.ink
    with matplotlib.rc_context({"figure.facecolor": "black", "axes.facecolor": "black"}):
        own = result.plot()
    assert own.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    assert shades_of(own.axes[0]) is ON_LIGHT


@pytest.mark.parametrize("name", ["count", "80 groups", "long names", "choice", "preview"])
def test_a_missing_matplotlib_is_said(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = CASES[name](session())
    text_width.cache_clear()
    for module in ("matplotlib.figure", "matplotlib.textpath", "discreet.plots.picture"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(dp.MissingExtra, match="plots"):
        found.plot()


def test_what_is_not_drawn_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "MOST_CELLS", 20)
    table = dp.table(session(), "loss", by="unit", spend=SPEND)
    axes = table.plot().axes[0]
    assert len(axes.collections[0].get_segments()) == 20
    assert any("the first 20 of 80" in text.get_text() for text in axes.texts)
