"""All pages of the site in one folder, as mkdocs reads them, and the settings beside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from tools.site import evidence, gallery, lectures, peers, reference, sources
from tools.site.execution import outputs_of
from tools.site.groups import GROUPS
from tools.site.pages import Site, written

import discreet as dp

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
STAGED = ROOT / "build" / "docs"
PAGES = STAGED / "pages"
SETTINGS = ROOT / "mkdocs.yml"
ASSETS = Path(__file__).parent / "assets"
# pages outside docs/ that the site has, and where
BESIDE = {
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "src/discreet/trusted/README.md": "project/trusted.md",
}
# how much a page counts in the search, by how its path begins: tasks before theory
RANKS = {
    "coming-from/index": 6,
    "reference/": 2,
    "start/": 2,
    "theory/": 0.3,
    "project/": 0.2,
    "evidence/": 0.3,
    "gallery/": 0.5,
}
GENERATED = "generated/"  # how the settings' nav names what is made here


def places() -> dict[str, str]:
    """Where each page of the repository stands in the site."""
    pages = {
        str(path.relative_to(ROOT)): str(path.relative_to(DOCS))
        for path in sorted(DOCS.rglob("*.md"))
    }
    return pages | BESIDE | {"README.md": pages.get("docs/index.md", "index.md")}


def written_pages() -> dict[str, str]:
    """The text of every page that the repository has or that is made, by its path in it."""
    texts = {
        origin: (ROOT / origin).read_text(encoding="utf-8")
        for origin in places()
        if origin != "README.md"
    }
    reference.checked_groups()
    texts |= {f"docs/reference/{name}.md": reference.page(name) for name in dp.__all__}
    texts["docs/reference/index.md"] = reference.overview()
    texts |= {f"docs/gallery/{name}.md": text for name, text in gallery.pages().items()}
    texts["docs/evidence/index.md"] = evidence.overview(evidence.stored())
    return texts


def stage(only: str = "", workers: int = 2) -> None:
    """Write all pages (or only those whose path begins so) and the settings of mkdocs."""
    texts = written_pages()
    made = {origin: origin.removeprefix("docs/") for origin in texts if origin.startswith("docs/")}
    ours: dict[str, tuple[str, str]] = {}
    site = Site(
        made | places(),
        frozenset(dp.__all__),
        sources.known,
        lambda kind, name: _directive(kind, name, ours),
    )
    if only:
        texts = {
            origin: text for origin, text in texts.items() if site.places[origin].startswith(only)
        }
    outputs = outputs_of(texts, workers)
    if peers.OURS in outputs:
        ours |= peers.ours(texts[peers.OURS], outputs[peers.OURS])
    shutil.rmtree(STAGED, ignore_errors=True)
    for origin, text in texts.items():
        page = written(text, outputs[origin], origin=origin, site=site)
        place = site.places[origin]
        _write(PAGES / place, ranked(place, page.text))
        for name, content in page.files.items():
            _write((PAGES / place).parent / name, content)
    for picture in DOCS.rglob("*.png"):
        _write(PAGES / picture.relative_to(DOCS), picture.read_bytes())
    for path in sorted(site.linked):
        _write(PAGES / f"source/{path.rstrip('/')}.md", sources.source_page(path))
    shutil.copytree(ASSETS, PAGES / "assets", dirs_exist_ok=True)
    (STAGED / "mkdocs.yml").write_text(yaml.safe_dump(settings(site.linked)), encoding="utf-8")


def _directive(kind: str, name: str, ours: dict[str, tuple[str, str]]) -> str:
    if kind == "evidence":
        return evidence.table_text(evidence.read(evidence.FOLDER / f"{name}.json"))
    return lectures.table() if kind == "lectures" else peers.shown(name, ours)


def ranked(place: str, text: str) -> str:
    """A page with what the search is told of it."""
    rank = next((rank for begin, rank in RANKS.items() if place.startswith(begin)), None)
    if rank is None or text.startswith("---\n"):
        return text
    return f"---\nsearch:\n  boost: {rank}\n---\n\n{text}"


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def settings(linked: set[str]) -> dict[str, Any]:
    """The settings of the repository, with what is made put into the nav."""
    given: dict[str, Any] = yaml.safe_load(SETTINGS.read_text(encoding="utf-8"))
    given["nav"] = [*_filled(given["nav"])]
    given["docs_dir"] = str(PAGES)
    given["site_dir"] = str(ROOT / "site" / dp.__version__)
    given["not_in_nav"] = "source/"
    given["hooks"] = [str(ROOT / "tools" / "site" / "markup.py")]
    return given


def _filled(nav: list[Any]) -> Iterator[Any]:
    for entry in nav:
        if isinstance(entry, str) and entry.startswith(GENERATED):
            yield from _made(entry.removeprefix(GENERATED))
        elif isinstance(entry, dict):
            ((title, inside),) = entry.items()
            yield {title: [*_filled(inside)] if isinstance(inside, list) else inside}
        else:
            yield entry


def _made(name: str) -> Iterator[Any]:
    if name == "reference":
        for title, names in GROUPS.items():
            yield {title: [f"reference/{one}.md" for one in names]}
    elif name == "gallery":
        for one in gallery.pages():
            if one != "index":
                yield f"gallery/{one}.md"
