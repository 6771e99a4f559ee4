"""What must hold of the built pages: every link and anchor leads somewhere, nothing is loaded from
another host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# what a browser fetches by itself
LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src",
           "object": "data", "video": "src", "audio": "src"}  # fmt: skip
ELSEWHERE = re.compile(r"(?:url\(|@import|fetch\()\s*[\"']?(?:https?:)?//", re.IGNORECASE)


@dataclass
class Page(HTMLParser):
    """The anchors, links and loads of a built page."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in LOADING and given.get(LOADING[tag]):
            canonical = tag == "link" and given.get("rel") in ("canonical", "prev", "next")
            (self.links if canonical else self.loads).append(given[LOADING[tag]])


def read(path: Path) -> Page:
    """A built page."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def faults(site: Path) -> list[str]:
    """What does not hold, one line each."""
    pages = {path: read(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name}: loads {one}" for one in page.loads if urlsplit(one).netloc]
        for link in [*page.links, *page.loads]:
            if not leads(link, path, pages):
                found.append(f"{name}: {link} leads nowhere")
    for style in [*site.rglob("*.css")]:
        if ELSEWHERE.search(style.read_text(encoding="utf-8")):
            found.append(f"{style.relative_to(site)}: loads from another host")
    return found


def leads(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    """Whether a link of a built page leads to a page that is there, and to an anchor of it."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return path.name == "404.html"
    if not parts.fragment or target not in pages:
        return True
    anchor = unquote(parts.fragment)
    return anchor.startswith("__") or anchor in pages[target].anchors or anchor == "top"
