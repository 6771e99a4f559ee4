"""Markdown of the pages beside the usual: formulas between dollar signs become MathML, and the
first use of a glossary term on a page shows what it means.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.treeprocessors import Treeprocessor

# after code spans (190) and before escapes (180): a backslash of LaTeX is its own
FORMULA_PRIORITY = 185
DISPLAY = r"\$\$(.+?)\$\$"
IN_LINE = r"(?<![\\\w])\$(?![\s\d])((?:\\.|[^$\\])+?)(?<!\s)\$(?!\w)"
# text in these is left alone
CLOSED = {"a", "code", "pre", "h1", "h2", "h3", "h4", "th", "abbr", "math", "summary", "script"}


class Formula(InlineProcessor):
    """LaTeX between dollar signs, as MathML."""

    def __init__(self, pattern: str, md: Markdown, display: str) -> None:
        super().__init__(pattern, md)
        self.compiled_re = re.compile(pattern, re.DOTALL | re.UNICODE)
        self.display = display

    def handleMatch(  # noqa: N802
        self, m: re.Match[str], data: str
    ) -> tuple[Any, int, int]:
        written = self.md.htmlStash.store(convert(m.group(1), display=self.display))
        return written, m.start(0), m.end(0)


class Hover(Treeprocessor):
    """The first use of each term outside headings, links and code says what it means."""

    def __init__(self, md: Markdown, terms: dict[str, str]) -> None:
        super().__init__(md)
        self.terms = {term.casefold(): said for term, said in terms.items()}
        # longer terms first: "privacy budget" before "budget"
        words = "|".join(re.escape(term) for term in sorted(terms, key=len, reverse=True))
        self.pattern = re.compile(rf"(?<![\w`-])({words})(?![\w-])", re.IGNORECASE)

    def run(self, root: Element) -> None:
        if self.terms:
            self._walk(root, set())

    def _walk(self, element: Element, seen: set[str]) -> None:
        if element.tag in CLOSED:
            return
        self._mark(element, None, seen)
        for child in [*element]:
            self._walk(child, seen)
            self._mark(element, child, seen)

    def _mark(self, parent: Element, before: Element | None, seen: set[str]) -> None:
        """Mark one term in the parent's text, or in what follows one of its children."""
        text = parent.text if before is None else before.tail
        for match in self.pattern.finditer(text or ""):
            term = match[0].casefold()
            if term in seen:
                continue
            seen.add(term)
            mark = Element("abbr", title=self.terms[term])
            mark.text, mark.tail = match[0], (text or "")[match.end() :]
            start = (text or "")[: match.start()]
            if before is None:
                parent.text = start
                parent.insert(0, mark)
            else:
                before.tail = start
                parent.insert([*parent].index(before) + 1, mark)
            self._mark(parent, mark, seen)
            return


def glossary(page: str) -> dict[str, str]:
    """The terms of a glossary page, each with its first sentence in plain words. A heading may name
    several: "## Budget, privacy budget".
    """
    found = {}
    for names, text in re.findall(r"^## (.+)\n+((?:.+\n?)+)", page, re.MULTILINE):
        plain = re.sub(r"\[([^\]]+)\]\([^)]*\)|[`*$]", r"\1", " ".join(text.split()))
        sentence = re.split(r"(?<=[.])\s(?=[A-Z])", plain)[0]
        found |= {name.strip(): sentence for name in names.split(",")}
    return found


class Pages(Extension):
    """What the pages of this site use."""

    def __init__(self, **given: Any) -> None:
        self.config = {"glossary": ["", "a page of terms"]}
        super().__init__(**given)

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.inlinePatterns.register(Formula(DISPLAY, md, "block"), "display", FORMULA_PRIORITY + 1)
        md.inlinePatterns.register(Formula(IN_LINE, md, "inline"), "formula", FORMULA_PRIORITY)
        md.ESCAPED_CHARS.append("$")
        path = self.getConfig("glossary")
        terms = glossary(Path(path).read_text(encoding="utf-8")) if path else {}
        # after inline patterns (20), before raw HTML is put back
        md.treeprocessors.register(Hover(md, terms), "hover", 5)


def on_post_page(output: str, **_: Any) -> str:
    """A hook of mkdocs: the search is a dialog, and those who do not see it hear its name."""
    return output.replace(
        'data-md-component="search" role="dialog"',
        'data-md-component="search" role="dialog" aria-label="Search"',
    )


def makeExtension(**given: Any) -> Pages:  # noqa: N802
    """The door for Markdown."""
    return Pages(**given)
