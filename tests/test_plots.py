"""Every result can be drawn, to a file or a figure, without touching global state."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import discreet as dp
from tests.survey import ASKS, RELATIONS, SPENDS, open_session

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("neighbors", RELATIONS[:2], ids=str)
def test_every_result_is_drawn(tmp_path: Path, name: str, neighbors: object) -> None:
    result = ASKS[name](open_session(neighbors), SPENDS[0])
    path = tmp_path / "result.png"
    figure = result.plot(0.9, path=str(path))
    assert path.read_bytes().startswith(PNG)
    assert path.stat().st_size > 5000
    (axes,) = figure.axes
    assert result.title in axes.get_title(loc="left")
    assert str(result.release.guarantee) in [text.get_text() for text in axes.texts]
    drawn = axes.collections[0].get_segments()
    assert len(drawn) == len(result.labels)
    if result.release.asked.estimator != "histogram":
        ends = np.array([segment[:, 1] for segment in drawn])
        np.testing.assert_allclose(ends, result.confidence_interval(0.9))
        np.testing.assert_allclose(np.array([segment[:, 1] for segment in axes.collections[1].get_segments()]), result.confidence_interval(0.9, target="data"))


def test_histogram_bars_are_densities() -> None:
    result = dp.histogram(open_session(), "income", bins=[0, 40, 50, 60, 100], spend=dp.GDP(100))
    (axes,) = result.plot().axes
    heights = [bar.get_height() for bar in axes.patches]
    np.testing.assert_allclose(heights * np.diff([0, 40, 50, 60, 100]), result.params, rtol=1e-9)


def test_negative_estimates_and_many_cells_are_drawn(tmp_path: Path) -> None:
    session = open_session()
    assert dp.histogram(session, "income", bins=200, spend=dp.GDP(0.02)).plot(path=str(tmp_path / "a.png"))
    table = dp.table(session, "income", by={"region": None, "age": 20}, spend=dp.GDP(0.02))
    assert len(table.plot().axes[0].collections[0].get_segments()) == 60


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
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parent.parent).returncode == 0
