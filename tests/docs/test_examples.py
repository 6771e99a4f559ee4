"""Every Python example in README.md and docs/ runs as it stands, in an empty folder; those of the
README, of pages that tell how twice, each time in a fresh process, so that the second run
meets what the first left behind; and every link inside them leads somewhere.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.fresh_process import run_alone, run_fresh

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
FOLDERS = ("how-to", "tutorials", "start", "deciding", "coming-from", "cookbook")
TWICE = [
    page for page in PAGES if page.name in ("README.md", "index.md") or page.parent.name in FOLDERS
]
ONCE = [page for page in PAGES if page not in TWICE]
LEFT_OUT = "<!-- not run -->"
MOST_LEFT_OUT = 0
FENCE = re.compile(
    r"^(?P<before>[^\n]*\n\s*)?^(?P<indent>[ ]*)```python[^\n]*\n(?P<code>.*?)^[ ]*```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
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


def run_page(text: str, name: str) -> int:
    """Run a page's examples one after the other, in one namespace; how many ran."""
    namespace: dict[str, object] = {"__name__": "__example__"}
    ran = 0
    for line, code, wanted in examples(text):
        if wanted:
            # line numbers of the page, for tracebacks
            exec(compile("\n" * line + code, name, "exec"), namespace)
            ran += 1
    return ran


def code_of(text: str) -> str:
    """The examples of a page as one file, on the page's lines."""
    lines = [""] * (text.count("\n") + 1)
    for line, code, wanted in examples(text):
        if wanted:
            block = code.splitlines()
            lines[line : line + len(block)] = block
    return "\n".join(lines)


def run_in_a_fresh_process(page: Path, folder: Path) -> str:
    """What a page prints in a process of its own, in which every warning is an error."""
    code = code_of(page.read_text(encoding="utf-8"))
    run = run_alone if page == ROOT / "README.md" else run_fresh
    ended = run(code, str(page), folder)
    assert ended.code == 0, ended.stderr[-3000:]
    return ended.stdout


def examples_are_closed(text: str) -> bool:
    return text.count("```python") == len(examples(text))


@pytest.mark.slow
@pytest.mark.parametrize("page", TWICE, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_runs_twice(page: Path, tmp_path: Path) -> None:
    """In an empty folder; where a ledger was left, the second run is answered from it.

    A page that leaves nothing behind would meet an empty folder again, in a fresh process again.
    """
    assert examples_are_closed(page.read_text()), "a python block is not closed"
    run_in_a_fresh_process(page, tmp_path)
    if not any(tmp_path.iterdir()):
        return
    heads = {path: discreet.Ledger.open(None, path=path).head for path in ledgers(tmp_path)}
    run_in_a_fresh_process(page, tmp_path)
    assert {path: discreet.Ledger.open(None, path=path).head for path in ledgers(tmp_path)} == heads


def ledgers(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.ledger"))


@pytest.mark.slow
@pytest.mark.parametrize("page", ONCE, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    assert run_page(text, str(page)) == sum(wanted for _, _, wanted in examples(text))
    assert examples_are_closed(text), "a python block is not closed"


def test_the_readme_and_whole_stories_keep_a_ledger_and_use_keys() -> None:
    aside = ("how-to", "coming-from", "deciding")
    pages = [
        page
        for page in TWICE
        if page.parent.name not in aside and ".open(" in page.read_text(encoding="utf-8")
    ]
    assert len(pages) >= 6
    for page in pages:
        code = "\n".join(code for _, code, _ in examples(page.read_text()))
        kept = r"ledger=\"[\w-]+\.ledger\"|BudgetTree\.open\(\"[\w-]+\.tree\"\)|dp\.connect\("
        assert re.search(kept, code), page
        assert "key=" in code, page


def test_few_examples_are_left_out_and_the_readme_has_some() -> None:
    left_out = sum(not wanted for page in PAGES for _, _, wanted in examples(page.read_text()))
    assert left_out <= MOST_LEFT_OUT
    assert sum(wanted for _, _, wanted in examples((ROOT / "README.md").read_text())) >= 2


def test_the_runner_runs_shares_names_and_fails() -> None:
    page = (
        "Text.\n\n```python\nx = 1\n```\n\n<!-- not run -->\n```python\n1 / 0\n```\n\n- item\n\n"
        "  ```python\n  import discreet as dp\n  dp.GDP(1)\n  assert x == 1\n  ```\n"
    )
    assert [wanted for _, _, wanted in examples(page)] == [True, False, True]
    assert run_page(page, "page") == 2
    with pytest.raises(ZeroDivisionError):
        run_page(page.replace("<!-- not run -->", ""), "page")


@pytest.mark.slow
def test_a_page_that_cannot_run_twice_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nopen('left', 'x').close()\n```\n")
    run_in_a_fresh_process(page, tmp_path)
    with pytest.raises(AssertionError, match="FileExistsError"):
        run_in_a_fresh_process(page, tmp_path)


def test_the_package_docstring_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert discreet.__doc__ is not None
    lines = [line[4:] for line in discreet.__doc__.splitlines() if line.startswith("    ")]
    assert run_page("```python\n" + "\n".join(lines) + "\n```\n", "discreet") == 1


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
