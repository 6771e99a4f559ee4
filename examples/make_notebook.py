"""Writes tour.ipynb from tour.py, without outputs.

    python examples/make_notebook.py

`# %%` begins a cell of code, `# %% [markdown]` one of words.
"""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent
MARK = "# %%"


def notebook(source: str) -> dict[str, object]:
    """The notebook of a script in cells."""
    cells = []
    for number, part in enumerate(source.split(MARK)[1:]):
        first, _, rest = part.partition("\n")
        words = first.strip() == "[markdown]"
        lines = rest.strip("\n").split("\n")
        if words:
            lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
        text = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
        cell = {"id": f"cell-{number}", "metadata": {}, "source": text}
        code = {"cell_type": "code", "execution_count": None, "outputs": []}
        cells.append(({"cell_type": "markdown"} if words else code) | cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def written(source: str) -> str:
    """The file's text."""
    return json.dumps(notebook(source), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (HERE / "tour.ipynb").write_text(written((HERE / "tour.py").read_text()))
