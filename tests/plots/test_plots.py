"""Every result can be drawn, to a file or a figure, without touching global state."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.survey import ASKS, RELATIONS, SPENDS, open_session

import discreet as dp

PNG = b"\x89PNG\r\n\x1a\n"


def ends(lines):
    """(first, last) of each segment of some lines, along the axis on which it has a length."""
    found = np.array([np.sort(segment, axis=0) for segment in lines.get_segments()])
    return found[:, :, int(np.ptp(found, axis=1).sum(axis=0).argmax())]


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("neighbors", RELATIONS[:2], ids=str)
def test_every_result_is_drawn(tmp_path: Path, name: str, neighbors: object) -> None:
    result = ASKS[name](open_session(neighbors), SPENDS[0])
    path = tmp_path / "result.png"
    figure = result.plot(0.9, path=str(path))
    assert path.read_bytes().startswith(PNG)
    assert path.stat().st_size > 5000
    axes = figure.axes[0]
    assert result.title in axes.get_title(loc="left")
    assert any(str(result.release.guarantee) in text.get_text() for text in axes.texts)
    if result.release.description.estimator == "histogram" and result.release.description.edges:
        assert len(axes.collections[0].get_segments()) == len(result.labels)
        return
    both, private = axes.collections[:2]
    if len(result.labels) == 1:  # rows stand from below: sampling alone, privacy alone, both
        both, private = axes.collections[-1], axes.collections[-2]
    np.testing.assert_allclose(ends(both), result.confidence_interval(0.9))
    np.testing.assert_allclose(ends(private), result.confidence_interval(0.9, target="data"))


def test_histogram_bars_are_densities() -> None:
    result = dp.histogram(open_session(), "income", bins=[0, 40, 50, 60, 100], spend=dp.GDP(100))
    (axes,) = result.plot().axes
    heights = [bar.get_height() for bar in axes.patches]
    np.testing.assert_allclose(heights * np.diff([0, 40, 50, 60, 100]), result.params, rtol=1e-9)


@pytest.mark.slow
def test_negative_estimates_and_many_cells_are_drawn(tmp_path: Path) -> None:
    session = open_session()
    assert dp.histogram(session, "income", bins=200, spend=dp.GDP(0.02)).plot(
        path=str(tmp_path / "a.png")
    )
    table = dp.table(session, "income", by={"region": None, "age": 20}, spend=dp.GDP(0.02))
    assert len(table.plot().axes[0].collections[0].get_segments()) == 80


@pytest.mark.slow
def test_titles_and_ticks_do_not_run_into_each_other() -> None:
    rng = np.random.default_rng(1)
    data = dp.from_arrays(
        {"bought": rng.random(400) < 0.3, "page": rng.choice(["old", "new"], 400)},
        schema={"bought": dp.Boolean(), "page": dp.Category(["old", "new"])},
        neighbors=dp.Replace(),
    )
    figure = dp.compare(data.open(budget=dp.GDP(2)), "bought", by="page", spend=dp.GDP(1)).plot()
    figure.draw_without_rendering()
    axes = figure.axes[0]
    boxes = [text.get_window_extent() for text in (axes._left_title, axes.texts[-1])]
    assert not boxes[0].overlaps(boxes[1])
    assert boxes[0].x1 <= figure.bbox.x1
    assert [0.0, 0.0] in [list(line.get_xdata()) for line in axes.lines]  # where groups are alike
    for plan in (
        dp.power(dp.proportion_test, rows=500, null=0.5, share=0.56, spend=dp.PureDP(0.5)),
        dp.power(dp.compare, rows=30, spend=dp.GDP(0.1), baseline=0.1, share=0.125),
    ):
        drawn = plan.plot()
        drawn.draw_without_rendering()
        for panel in drawn.axes:
            labels = [
                label.get_window_extent()
                for label in panel.get_xticklabels(which="both")
                if label.get_text()
            ]
            assert len(labels) >= 2
            assert not any(one.overlaps(next_one) for one, next_one in itertools.pairwise(labels))


@pytest.mark.slow
def test_pyplot_is_never_loaded() -> None:
    code = """
import sys
from tests.survey import ASKS, open_session
import discreet as dp
for ask in ASKS.values():
    ask(open_session(), dp.GDP(1)).plot()
assert "matplotlib" in sys.modules
assert "matplotlib.pyplot" not in sys.modules
"""
    assert (
        subprocess.run(
            [sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[2]
        ).returncode
        == 0
    )
