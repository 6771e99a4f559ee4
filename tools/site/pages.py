"""A page of the repository as mkdocs reads it: outputs stand below code, names and files are links,
and directives are replaced by what they name.

    <!-- evidence: NAME -->   the measured table of benchmarks/results/NAME.json
    <!-- lectures: all -->    every entry of the mathematics, with code, tests and corrections
    <!-- tasks: NAME -->      ten tasks in another library and here, docs/coming-from/peers/

Nothing here reads or writes a file but pictures (`Written.files`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tools.site.execution import Output, blocks

FENCED = re.compile(
    r"^(?P<indent>[ ]*)(?P<mark>`{3,}|~{3,})[^\n]*\n.*?^(?P=indent)(?P=mark)[ ]*$", re.M | re.S
)
LINK = re.compile(r"(?P<open>!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()(?P<target>[^)\s]+)(?P<close>\))")
NAME = re.compile(r"(?<![`\[\w])`(?P<code>dp\.(?P<name>\w+)\b[^`\n]*)`(?!`|\]\()")
FILE = re.compile(
    r"(?<![`\[\w])`(?P<path>[\w./-]+\.(?:py|md|toml|csv))(?:::(?P<inside>\w+))?`(?!`|\]\()"
)
DIRECTIVE = re.compile(
    r"^(?P<indent>[ ]*)<!-- (?P<kind>evidence|tasks|lectures): (?P<name>[\w/-]+) -->$", re.M
)
# names of `discreet` that are no public names, and what to read about them
ELSEWHERE = {"attacks": "tutorials/five-objections.md"}
OUTSIDE = ("http://", "https://", "mailto:", "#")


class LostLink(RuntimeError):
    """A link or a name leads nowhere."""


@dataclass
class Site:
    """Where everything is.

    places    of every page, by its path in the repository: its path in the site
    names     public names with a reference page
    known     whether a path of the repository is a file or folder that can be shown
    directive what stands for a directive, by kind and name
    linked    files of the repository that some page leads to; their pages are written last
    """

    places: Mapping[str, str]
    names: frozenset[str]
    known: Callable[[str], bool]
    directive: Callable[[str, str], str]
    linked: set[str] = field(default_factory=set)

    def way(self, target: str, *, page: str) -> str:
        """The link from a page of the site to a file of the repository; `page` is the page's path
        in the site.
        """
        target, _, inside = target.partition("#")
        inside = f"#{inside}" if inside else ""
        if target in self.places:
            place = self.places[target]
        elif self.known(target):
            self.linked.add(target)
            place = source_place(target)
        else:
            raise LostLink(f"{page}: nothing is at {target}")
        return os.path.relpath(place, os.path.dirname(page)) + inside


@dataclass(frozen=True, slots=True)
class Written:
    """A page of the site and the pictures beside it, by their names."""

    text: str
    files: Mapping[str, bytes]


def source_place(path: str) -> str:
    """Where the page of a file or folder of the repository stands."""
    return f"source/{path.rstrip('/')}.md"


def written(text: str, outputs: Sequence[Output], *, origin: str, site: Site) -> Written:
    """The page of the repository at `origin`, as it stands in the site."""
    page = site.places[origin]
    stem = os.path.splitext(os.path.basename(page))[0]
    files: dict[str, bytes] = {}
    shown, last, ran = [], 0, iter(outputs)
    for block in blocks(text):
        shown.append(text[last : block.end])
        last = block.end
        if not block.wanted:
            continue
        output = next(ran)
        if block.folded:
            shown[-1] = _folded(shown[-1])
        shown.append(_below(output, f"{stem}-{len(files) + 1}.png", files, block.indent))
    shown.append(text[last:])
    whole = "".join(shown)
    whole = DIRECTIVE.sub(
        lambda match: _indented(site.directive(match["kind"], match["name"]), len(match["indent"])),
        whole,
    )
    return Written(linked_text(whole, origin=origin, site=site), files)


def _folded(text: str) -> str:
    """The last block of a text, closed behind a word."""
    start = text.rindex("```python")
    code = re.sub(r"^```python[^\n]*", "```python", text[start:])
    inside = "\n".join(f"    {line}".rstrip() for line in code.splitlines())
    return f'{text[:start]}??? example "code"\n\n{inside}'


def _below(output: Output, name: str, files: dict[str, bytes], indent: int) -> str:
    """What stands below a block that ran."""
    parts = []
    if output.text:
        parts.append(f"``` {{ .text .output }}\n{output.text}\n```")
    if output.picture is not None:
        files[name] = output.picture.png
        words = re.sub(r"[\[\]\"$`<>]", "", output.picture.words)
        parts.append(f"![{words}]({name}){{ width={output.picture.width} loading=lazy .drawn }}")
    return "".join("\n\n" + _indented(part, indent) for part in parts)


def _indented(text: str, indent: int) -> str:
    return "\n".join(" " * indent + line if line else line for line in text.splitlines())


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """A text with what stands outside its fenced blocks changed."""
    return "".join(part if fenced else change(part) for fenced, part in _parts(text))


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    last = 0
    for match in FENCED.finditer(text):
        yield False, text[last : match.start()]
        yield True, match[0]
        last = match.end()
    yield False, text[last:]


def linked_text(text: str, *, origin: str, site: Site) -> str:
    """Names and files in code font become links; links lead to the site's pages."""
    page, folder = site.places[origin], os.path.dirname(origin)

    def linked(match: re.Match[str]) -> str:
        target = match["target"].strip("<>")
        if target.startswith(OUTSIDE):
            return match[0]
        path, _, inside = target.partition("#")
        if path.endswith(".png") and match["open"].startswith("!"):
            return match[0]
        place = os.path.normpath(os.path.join(folder, path)) + (f"#{inside}" if inside else "")
        return match["open"] + site.way(place, page=page) + match["close"]

    def named(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in site.names and name not in ELSEWHERE:
            raise LostLink(f"{page}: dp.{name} has no reference page")
        place = ELSEWHERE.get(name, f"reference/{name}.md")
        way = os.path.relpath(place, os.path.dirname(page))
        return f"[`{match['code']}`]({way})"

    def filed(match: re.Match[str]) -> str:
        path = next(
            (
                near + match["path"]
                for near in ("", "src/discreet/", f"{folder}/")
                if "/" in near + match["path"] and site.known(near + match["path"])
            ),
            None,
        )
        return match[0] if path is None else f"[{match[0]}]({site.way(path, page=page)})"

    def change(part: str) -> str:
        lines = [
            line if line.startswith("#") else FILE.sub(filed, NAME.sub(named, line))
            for line in LINK.sub(linked, part).split("\n")
        ]
        return "\n".join(lines)

    return outside_fences(text, change)
