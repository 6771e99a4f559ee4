"""The tour, run by nbconvert in a kernel of its own: tables are tables and pictures are pictures,
without a magic line.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
LEAST = 12


def test_the_notebook_is_its_script_without_outputs() -> None:
    """`python examples/make_notebook.py` writes it."""
    place = importlib.util.spec_from_file_location("maker", EXAMPLES / "make_notebook.py")
    assert place is not None
    assert place.loader is not None
    maker = importlib.util.module_from_spec(place)
    place.loader.exec_module(maker)
    source = (EXAMPLES / "tour.py").read_text()
    assert (EXAMPLES / "tour.ipynb").read_text() == maker.written(source)
    assert "%matplotlib" not in source


def executed(folder: Path) -> list[dict[str, Any]]:
    """The cells of the tour after nbconvert ran it, with folders of its own."""
    own = {name: str(folder / name) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR")}
    own |= {name: str(folder / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")}
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--stdout"]
    done = subprocess.run(
        [*command, str(EXAMPLES / "tour.ipynb")],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | own,
    )
    cells: list[dict[str, Any]] = json.loads(done.stdout)["cells"]
    return cells


@pytest.mark.slow
def test_the_tour_shows_tables_and_pictures(tmp_path: Path) -> None:
    cells = executed(tmp_path)
    tables = pictures = 0
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        shown = [output.get("data", {}) for output in cell["outputs"]]
        drawn = [data["image/png"] for data in shown if "image/png" in data]
        tables += sum("<table" in "".join(data.get("text/html", "")) for data in shown)
        pictures += len(drawn)
        assert len(drawn) <= 1  # a figure is not shown twice
        for text in drawn:
            assert base64.b64decode(text).startswith(b"\x89PNG")
        if "plot" in "".join(cell["source"]):
            assert drawn
        assert all(output["output_type"] != "stream" for output in cell["outputs"])
    assert tables >= LEAST
    assert pictures >= LEAST
