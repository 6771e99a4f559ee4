"""What the site is made of, without building it: every public name has its place, measured tables
say where they come from, formulas and hover text are what pages write.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
from markdown import markdown
from tools.site import evidence, gallery, lectures, markup, mathematics, reference, staging
from tools.site.execution import blocks
from tools.site.groups import GROUPS
from tools.site.pages import LostLink, Site, linked_text

import discreet as dp
from discreet.asking.records import RECORDS

ROOT = Path(__file__).parents[2]


def test_every_public_name_stands_in_one_group_of_the_reference() -> None:
    reference.checked_groups()
    assert sum(map(len, GROUPS.values())) == len(dp.__all__)


def test_every_public_name_has_an_example_and_leads_on() -> None:
    """The build runs the examples; here they are counted."""
    assert not [name for name in dp.__all__ if len(reference.examples(name)) != 1]
    for name in dp.__all__:
        found = {part.word: part.text for part in reference.parts(reference.docstring(name))}
        assert "dp." in found["Example"] or name in found["Example"], name
        assert re.search(r"`dp\.|docs/", found["See also"]), name
        if any(record.name == name for record in RECORDS):
            assert {*reference.WANTED} <= {*found}, name


def test_formulas_become_mathml_and_code_stays() -> None:
    html = markdown("A $\\sqrt{n}$, `$x$`, \\$5 and $$\\frac{a}{b}$$", extensions=[markup.Pages()])
    assert html.count("<math") == 2
    assert "<msqrt>" in html
    assert "<mfrac>" in html
    assert "<code>$x$</code>" in html
    assert "$5 and" in html


def test_the_first_use_of_a_term_is_explained_and_no_other() -> None:
    terms = markup.glossary("# Words\n\n## Budget, box\n\nWhat may be spent. Not more.\n")
    assert terms == {"Budget": "What may be spent.", "box": "What may be spent."}


def test_links_names_and_files_lead_to_pages() -> None:
    site = Site(
        {"docs/how-to/a.md": "how-to/a.md", "docs/b.md": "b.md"},
        frozenset({"mean"}),
        lambda path: path == "src/x/y.py",
        lambda kind, name: "",
    )
    text = "[b](../b.md#c) `dp.mean(s)` `src/x/y.py`\n```python\n`dp.mean`\n```\n"
    shown = linked_text(text, origin="docs/how-to/a.md", site=site)
    assert "[b](../b.md#c)" in shown
    assert "[`dp.mean(s)`](../reference/mean.md)" in shown
    assert "[`src/x/y.py`](../source/src/x/y.py.md)" in shown
    assert "```python\n`dp.mean`\n```" in shown
    assert site.linked == {"src/x/y.py"}
    for lost in ("`dp.nothing`", "[b](../c.md)"):
        with pytest.raises(LostLink):
            linked_text(lost, origin="docs/how-to/a.md", site=site)


def test_blocks_are_those_that_the_tests_run() -> None:
    page = "```python {.folded}\nx = 1\n```\n\n<!-- not run -->\n```python\n1 / 0\n```\n"
    assert [(one.wanted, one.folded) for one in blocks(page)] == [(True, True), (False, False)]


def test_measured_tables_say_where_they_come_from() -> None:
    tables = evidence.stored()
    for table in tables.values():
        assert table["command"] in evidence.table_text(table)
        name = re.match(r"make bench NAME=(\w+)|python (benchmarks/\w+)", table["command"])
        assert name, table["command"]
        assert (ROOT / "benchmarks" / f"{name[1] or name[2].split('/')[1]}.py").exists()


def test_benchmarks_store_what_the_evidence_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.delitem(sys.modules, "stored", raising=False)  # a folder of tests has that name
    stored = importlib.import_module("stored")
    monkeypatch.setattr(stored, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["benchmarks/noise.py", "--runs", "9", "--store"])
    given = {
        "about": "coverage",
        "title": "A table",
        "says": "What it shows.",
        "columns": [stored.column("law"), stored.column("held", digits=2, target="≥ 0.94")],
        "rows": [{"law": "normal", "held": stored.share(95, 100)}],
    }
    with pytest.raises(ValueError, match="Monte-Carlo"):
        stored.table("one", runs=100, **given)
    path = stored.table("one", runs=100, error="a standard error", **given)
    text = evidence.table_text(evidence.read(path))
    assert "| normal | 0.95 ± 0.02 |" in text
    assert "`make bench NAME=noise ARGS='--runs 9'`" in text
    assert [*stored.ABOUT] == [*evidence.PARTS]


def test_the_gallery_leads_to_every_section_that_draws() -> None:
    pages = gallery.pages()
    on_disk = {path.stem for path in gallery.FOLDER.glob("*.md")}
    assert on_disk == {*gallery.ORDER}
    for name in gallery.ORDER:
        sections = gallery.SECTION.findall(pages[name])
        drawn = [one.code for one in blocks(pages[name]) if not one.folded]
        assert len(sections) == len(drawn) > 1, name
        assert all(re.search(r"plot\w*\((?:[^\n]*\n)*?.*\)$", code) for code in drawn), name
        assert f"{name}-{len(sections)}.png" in pages["index"]


def test_the_lectures_table_has_every_entry_with_what_was_corrected() -> None:
    table = lectures.table()
    for name in mathematics.anchors():
        assert table.count(f"| [{name} ") == (len(name) > 1), name
    said = mathematics.PAGE.read_text(encoding="utf-8").count("*Lectures say*")
    wrapped = len(re.findall(r"\*Lectures\n\s*say\*", mathematics.PAGE.read_text(encoding="utf-8")))
    rows = [line for line in table.splitlines() if line.startswith("| [")]
    corrected = [row for row in rows if row.split(" | ")[1] != "–"]
    assert len(corrected) >= 40
    assert len(corrected) <= said + wrapped
    assert sum("`src/discreet/" in row for row in rows) >= 50


def test_terms_of_the_glossary_are_explained_once() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
    terms = [name.strip().casefold() for heading in headings for name in heading.split(",")]
    assert len(headings) >= 30
    assert len(terms) == len(set(terms)) == len(markup.glossary(page))


def test_ci_builds_the_site() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert any(re.fullmatch(r"make .*\bdocs\b.*", line) for line in lines)
    assert "tools.site" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_page_stands_in_the_menu_and_every_entry_is_a_page() -> None:
    named = re.findall(r"^\s+- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    pages -= {f"gallery/{name}.md" for name in gallery.ORDER}  # the menu takes them from there
    made = {"gallery/index.md", "reference/index.md"} | {*staging.BESIDE.values()}
    assert sorted(pages - {*named}) == []
    assert sorted({*named} - pages - made) == []
    assert len(named) == len(set(named))


# what somebody comes for, and a function that does it: docs/coming-from/index.md has their code
TASKS = {
    "a mean with an interval": "mean",
    "means by group": "table",
    "a share": "proportion",
    "a median": "median",
    "counts by bins": "histogram",
    "two groups, one number": "compare_means",
    "two groups, yes or no": "compare",
    "how columns go together": "correlation",
    "a regression": "ols",
    "a yes or no explained": "logistic",
}


@pytest.mark.parametrize("task", TASKS)
def test_two_pages_from_the_first_one_a_task_is_done(task: str) -> None:
    """The first page leads to one that runs the function, or that names it, which leads to its
    page in the reference.
    """
    first = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    near = {
        link: (ROOT / "docs" / link).read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([\w/-]+\.md)\)", first)
    }
    call = f"dp.{TASKS[task]}("
    runs = [name for name, text in near.items() if any(call in one.code for one in blocks(text))]
    names = [name for name, text in near.items() if f"`dp.{TASKS[task]}" in text]
    assert runs or names
