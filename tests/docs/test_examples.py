"""Every Python example in README.md and docs/ runs as it stands,
and every link inside them leads somewhere.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    path
    for path in (
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "SECURITY.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    )
    if path.exists()
]
LEFT_OUT = "<!-- not run -->"
MOST_LEFT_OUT = 2
FENCE = re.compile(
    r"^(?P<before>[^\n]*\n\s*)?^(?P<indent>[ ]*)```python[^\n]*\n(?P<code>.*?)^[ ]*```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
FILES = re.compile(r"[\"']([\w.-]+\.(?:parquet|csv))[\"']")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)\s]*)?\)")


def examples(text: str) -> list[tuple[int, str, bool]]:
    """(line, code, whether it is to be run) of every Python block."""
    found = []
    for match in FENCE.finditer(text):
        indent = len(match["indent"])
        code = "\n".join(line[indent:] for line in match["code"].splitlines())
        found.append(
            (text[: match.start("code")].count("\n"), code, LEFT_OUT not in (match["before"] or ""))
        )
    return found


def write_survey(path: Path, rows: int = 500) -> None:
    """A table with the columns that the pages talk about."""
    rng = np.random.default_rng(3)
    table = pyarrow.table(
        {
            "income": rng.gamma(4, 12_000, rows),
            "age": rng.integers(18, 91, rows),
            "region": rng.choice(["E", "N", "S", "W"], rows),
            "member": rng.random(rows) < 0.3,
            "person": np.repeat(np.arange(rows), 2)[:rows],
            "person_id": np.repeat(np.arange(rows), 2)[:rows],
            "employed": rng.random(rows) < 0.7,
            "cost": rng.gamma(2, 50, rows),
        }
    )
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)


def run_page(text: str, name: str, folder: Path) -> int:
    """Run a page's examples one after the other, in one namespace; how many ran."""
    for file in set(FILES.findall(text)):
        write_survey(folder / file)
    namespace: dict[str, object] = {"__name__": "__example__"}
    ran = 0
    for line, code, wanted in examples(text):
        if wanted:
            # line numbers of the page, for tracebacks
            exec(compile("\n" * line + code, name, "exec"), namespace)
            ran += 1
    return ran


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    assert run_page(text, str(page), tmp_path) == sum(wanted for _, _, wanted in examples(text))
    assert text.count("```python") == len(examples(text)), "a python block is not closed"


def test_few_examples_are_left_out_and_the_readme_has_some() -> None:
    left_out = sum(not wanted for page in PAGES for _, _, wanted in examples(page.read_text()))
    assert left_out <= MOST_LEFT_OUT
    assert sum(wanted for _, _, wanted in examples((ROOT / "README.md").read_text())) >= 2


def test_the_runner_runs_shares_names_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (
        "Text.\n\n```python\nx = 1\n```\n\n<!-- not run -->\n```python\n1 / 0\n```\n\n- item\n\n"
        '  ```python\n  import discreet as dp\n  dp.read_parquet("a.parquet", schema={"age": '
        "dp.Integer(0, 9)}, neighbors=dp.Replace())\n  assert x == 1\n  ```\n"
    )
    assert [wanted for _, _, wanted in examples(page)] == [True, False, True]
    assert run_page(page, "page", tmp_path) == 2
    with pytest.raises(ZeroDivisionError):
        run_page(page.replace("<!-- not run -->", ""), "page", tmp_path)


def test_the_package_docstring_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert discreet.__doc__ is not None
    lines = [line[4:] for line in discreet.__doc__.splitlines() if line.startswith("    ")]
    assert run_page("```python\n" + "\n".join(lines) + "\n```\n", "discreet", tmp_path) == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    lost = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not lost


CITED = re.compile(
    r"\b(?:docs/[\w/-]+\.md|tests/[\w/]+\.py|src/discreet/[\w/]+\.py|benchmarks/\w+\.py)"
)


@pytest.mark.parametrize(
    "place",
    [*PAGES, *sorted((ROOT / "src").rglob("*.py"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_file_that_is_named_exists(place: Path) -> None:
    assert not [name for name in CITED.findall(place.read_text()) if not (ROOT / name).exists()]
