"""The entries of docs/theory/reference.md as a table: what the lectures print otherwise, which code
relies on the entry, which test holds it. Found by citations, so that nobody keeps a list.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from tools.site import mathematics

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^### (?P<name>[A-N]\d+) (?P<title>.+)$", re.MULTILINE)
GROUP = re.compile(r"^## (?P<letter>[A-N]) (?P<title>.+)$", re.MULTILINE)
CITED = re.compile(
    r"reference\.md`?\)?\s+(?:#\s+)?((?:[A-N]\d+(?:[–-][A-N]?\d+)?(?:(?:,|;|\s+and)\s+)?)+)"
)
MOST = 2  # places that are shown of each


def table() -> str:
    """All entries, by the groups of the page."""
    text = mathematics.PAGE.read_text(encoding="utf-8")
    code, tests = _citations("src/discreet"), _citations("tests")
    pieces = []
    for group in GROUP.finditer(text):
        rows = [
            _row(match, body, code, tests)
            for match, body in _entries(text)
            if match["name"][0] == group["letter"]
        ]
        head = "| entry | what the lectures print | code | tests |\n| :-- | :-- | :-- | :-- |"
        pieces += [f"## {group['title']}", "\n".join([head, *rows])]
    return "\n\n".join(pieces)


def _entries(text: str) -> Iterator[tuple[re.Match[str], str]]:
    found = [*HEADING.finditer(text)]
    ends = [match.start() for match in found[1:]] + [len(text)]
    for match, end in zip(found, ends, strict=True):
        yield match, re.split(r"^## ", text[match.end() : end], maxsplit=1, flags=re.MULTILINE)[0]


def _row(
    match: re.Match[str], body: str, code: dict[str, list[str]], tests: dict[str, list[str]]
) -> str:
    name = match["name"]
    entry = f"[{name} {match['title']}](reference.md#{mathematics.anchors()[name]})"
    said = re.search(r"\*Lectures\s+say\*\s+(.+?)(?:\n\s*\n|\Z)", body, re.DOTALL)
    printed = "–" if said is None else " ".join(said[1].split()).replace("|", "\\|")
    return f"| {entry} | {printed} | {_places(code, name)} | {_places(tests, name)} |"


def _places(cited: dict[str, list[str]], name: str) -> str:
    return ", ".join(f"`{path}`" for path in cited.get(name, [])[:MOST]) or "–"


@functools.cache
def _citations(folder: str) -> dict[str, list[str]]:
    """The files of a folder that cite an entry, those that cite the fewest others first."""
    by_file = {
        str(path.relative_to(ROOT)): _cited(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / folder).rglob("*.py"))
    }
    found: dict[str, list[str]] = {}
    for path in sorted(by_file, key=lambda path: len(by_file[path])):
        for name in by_file[path]:
            found.setdefault(name, []).append(path)
    return found


def _cited(text: str) -> set[str]:
    names = set()
    for listed in CITED.findall(text):
        for letter, first, last in re.findall(r"([A-N])(\d+)(?:[–-][A-N]?(\d+))?", listed):
            names |= {f"{letter}{n}" for n in range(int(first), int(last or first) + 1)}
    return names
