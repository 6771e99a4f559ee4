"""Every citation of the mathematics names something that is in the repository.

Sources cite entries of docs/theory/reference.md by number, alone, in lists or in ranges, and
sections of docs/theory/regression.md by number or title. `missing_citations` lists those that
name nothing; a name that the page had before it was in the repository counts as missing too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE, SECTIONS = "reference.md", "regression.md"
FORMER = "math" + ".md"  # written in two parts, so that this file does not say it
FEWEST = 150

GAP = r"\s+(?:#\s+)?"  # a citation may go on in the next line, of a comment too
NUMBER = r"[1-9]\d?(?!\w|\.\d)"
ITEM = rf"[A-N]{NUMBER}(?:[–-][A-N]?{NUMBER})?"
GROUP = r"[A-N](?=[),;])"  # a letter alone: its whole group
MORE = rf"(?:,|;|{GAP}and){GAP}"
NAMED = re.compile(rf"{re.escape(PAGE)}[`)]*{GAP}((?:{ITEM}|{GROUP})(?:{MORE}(?:{ITEM}|{GROUP}))*)")
BARE = re.compile(rf"\(({ITEM}(?:{MORE}{ITEM})*)(?=[);:,]|{GAP})|\*\*({ITEM})(?=,)")
SECTION = re.compile(
    rf"(?P<folder>how-to/)?{re.escape(SECTIONS)}(?:{GAP}§(?P<number>\d+))?"
    rf"(?:,{GAP}(?:\"(?P<quoted>[^\"\n]+)\"|\*(?P<slanted>[^*\n]+)\*))?"
)


@dataclass(frozen=True)
class Citation:
    """What a place of the repository cites: an entry or group, or a section by number or title."""

    place: str
    page: str
    name: str

    def __str__(self) -> str:
        return f"{self.place}: {self.page} has no {self.name}"


def citing_files(root: Path) -> Iterator[Path]:
    """All modules of src, tests and benchmarks, and all pages of docs."""
    for folder, kind in (("src", "py"), ("tests", "py"), ("benchmarks", "py"), ("docs", "md")):
        yield from sorted((root / folder).rglob(f"*.{kind}"))


def entries_of(listed: str) -> list[str]:
    """The entries of a list such as "B5, C1–C3": B5, C1, C2, C3."""
    found = []
    for letter, first, last in re.findall(r"([A-N])(\d*)(?:[–-][A-N]?(\d+))?", listed):
        if not first:
            found.append(letter)
            continue
        found += [f"{letter}{n}" for n in range(int(first), int(last or first) + 1)]
    return found


def citations(root: Path = ROOT) -> list[Citation]:
    """All citations of entries of the reference and of sections of the regression page."""
    found: list[Citation] = []
    for path in citing_files(root):
        text, name = path.read_text(), str(path.relative_to(root))
        theory = path.parent == root / "docs" / "theory"

        def place(match: re.Match[str], text: str = text, name: str = name) -> str:
            return f"{name}:{text.count(chr(10), 0, match.start()) + 1}"

        matches = list(NAMED.finditer(text))
        if matches or (theory and path.name != PAGE):  # then (B7, B8) is a citation as well
            matches += list(BARE.finditer(text))
        for match in matches:
            listed = next(group for group in match.groups() if group)
            found += [Citation(place(match), PAGE, entry) for entry in entries_of(listed)]
        for match in SECTION.finditer(text):
            page = f"{match['folder'] or 'theory/'}{SECTIONS}"
            title = match["quoted"] or match["slanted"]
            named = [f"§{match['number']}"] if match["number"] else []
            found += [Citation(place(match), page, one) for one in (*named, title) if one]
    return found


def entries(root: Path = ROOT) -> set[str]:
    """The numbers of all entries of the reference, and the letters of its groups."""
    text = (root / "docs" / "theory" / PAGE).read_text()
    groups = re.findall(r"^## ([A-N]) \S", text, flags=re.MULTILINE)
    return {*re.findall(r"^### ([A-N]\d+) \S", text, flags=re.MULTILINE), *groups}


def parts(page: Path) -> set[str]:
    """What can be cited of a page: §numbers, titles at any level, and words that lead in bold."""
    text = page.read_text()
    numbered = re.findall(r"^## (\d+) \S", text, flags=re.MULTILINE)
    titles = re.findall(r"^#+ (?:\d+ )?(.+)$", text, flags=re.MULTILINE)
    leads = re.findall(r"^\*\*([^*]+?)\.?\*\*", text, flags=re.MULTILINE)
    return {*(f"§{number}" for number in numbered), *(one.lower() for one in (*titles, *leads))}


def missing_citations(root: Path = ROOT) -> list[str]:
    """Citations that name nothing, one line each; a benchmark counts them."""
    known = {PAGE: entries(root)}
    for folder in ("theory", "how-to"):
        page = root / "docs" / folder / SECTIONS
        known[f"{folder}/{SECTIONS}"] = parts(page) if page.exists() else set()
    missing = [
        str(one)
        for one in citations(root)
        if one.name not in known[one.page] and one.name.lower() not in known[one.page]
    ]
    for path in citing_files(root):
        text, name = path.read_text(), str(path.relative_to(root))
        if FORMER in text:
            missing.append(f"{name}: it says {FORMER}, which is not in the repository")
        if path.is_relative_to(root / "src") and text.count(PAGE) > len(NAMED.findall(text)):
            missing.append(f"{name}: it says {PAGE} without an entry such as B5")
    return missing


def test_every_citation_names_what_is_there() -> None:
    missing = missing_citations()
    assert not missing, "\n".join(missing)


def test_there_are_many_citations() -> None:
    every = citations()
    found = [one for one in every if one.page == PAGE]
    sections = [one for one in every if one.page == f"theory/{SECTIONS}"]
    assert len({one.place for one in found if one.place.startswith("src/")}) > FEWEST
    assert len(found) > 2 * FEWEST
    assert len(sections) > 10


def test_entries_are_in_order_and_named_once() -> None:
    text = (ROOT / "docs" / "theory" / PAGE).read_text()
    listed = re.findall(r"^### ([A-N])(\d+) \S", text, flags=re.MULTILINE)
    assert listed == sorted(set(listed), key=lambda one: (one[0], int(one[1])))
    assert {letter for letter, _ in listed} == {one for one in entries() if len(one) == 1}


def repository(root: Path, module: str) -> Path:
    """A small repository with one module that cites."""
    for folder in ("src", "tests", "benchmarks", "docs/theory", "docs/how-to"):
        (root / folder).mkdir(parents=True)
    reference = "# Reference\n\n## B Noise\n\n### B1 One\n\n### B2 Two\n"
    (root / "docs" / "theory" / PAGE).write_text(reference)
    sections = "# Regression\n\n## 1 Tuning\n\n### Weights that fade\n\n## 2 Steps\n"
    (root / "docs" / "theory" / SECTIONS).write_text(sections)
    (root / "src" / "module.py").write_text(module)
    return root


def test_what_is_there_passes(tmp_path: Path) -> None:
    module = (
        f'"""A mean ({PAGE} B1, B2; {SECTIONS} §2), noise (B2), {PAGE} B1.\n'
        f'and {SECTIONS}, *Weights that fade*."""\n# {PAGE}\n# B1–B2\n'
    )
    root = repository(tmp_path, module)
    assert missing_citations(root) == []
    assert len(citations(root)) == 8


def test_what_is_not_there_is_found(tmp_path: Path) -> None:
    module = (
        f"# {PAGE} B1, B3\n# {PAGE} B1–B4\n# {SECTIONS} §3\n"
        f"# (B9)\n# {PAGE} K)\n# {FORMER} B1\n# {PAGE}'s formula\n# {SECTIONS}, *Elsewhere*\n"
    )
    found = "\n".join(missing_citations(repository(tmp_path, module)))
    expected = ("1: {} has no B3", "2: {} has no B3", "2: {} has no B4", "4: {} has no B9")
    for one in (*expected, "5: {} has no K"):
        assert f"src/module.py:{one.format(PAGE)}" in found
    assert f"src/module.py:3: theory/{SECTIONS} has no §3" in found
    assert f"theory/{SECTIONS} has no Elsewhere" in found
    assert f"it says {FORMER}" in found
    assert "without an entry" in found


def test_a_module_that_cites_nothing_has_no_citations(tmp_path: Path) -> None:
    root = repository(tmp_path, "noise = (L1, L2)  # two norms, (B7) and H0: no entries\n")
    assert citations(root) == []
