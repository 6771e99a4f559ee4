"""A page for every public name: its signature, what its docstring says, part by part, the example
that the docstring ends with, and what comes back.

A docstring begins with what one gets. Parts begin with a word and a full stop: `Formula.`,
`Method.`, `Validity.`, `Price.`, `Theorem.`, `Proof.`, `Checked.`, `Reference.`, `Example.`
(followed by indented code) and `See also.`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools.site import mathematics
from tools.site.groups import GROUPS

import discreet as dp

PARTS = ("Formula", "Method", "Validity", "Price", "Theorem", "Proof", "Checked", "Reference",
         "Example", "See also")  # fmt: skip
PART = re.compile(rf"^(?P<part>{'|'.join(PARTS)})\.(?:\s+|$)")
TITLES = {"Validity": "When it holds", "Price": "What it costs", "Checked": "Checked by"}
# the parts that every estimator's page has
WANTED = ("Formula", "Validity", "Price", "Example", "See also")
WIDE = 80
ENTRY = re.compile(r"`?(?:docs/theory/)?reference\.md`?\s+([A-N]\d+)((?:(?:, |–| and )[A-N]?\d+)*)")
DEFINED = re.compile(r"^(\w[\w=\". ]*?)\s{2,}(\S.*)$")


class NoPage(RuntimeError):
    """A public name has no group, or its docstring no example."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a docstring: its word ("" for what comes first) and its text, dedented."""

    word: str
    text: str


def parts(docstring: str) -> list[Part]:
    """The parts of a docstring, in order."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in inspect.cleandoc(docstring).splitlines():
        match = PART.match(line)
        if match:
            rest = line[match.end() :]
            found.append((match["part"], [" " * match.end() + rest if rest else ""]))
        else:
            found[-1][1].append(line)
    return [Part(word, _dedented(lines)) for word, lines in found]


def _dedented(lines: list[str]) -> str:
    """The lines of a part without the indent that hangs below its word."""
    filled = [line for line in lines if line.strip()]
    margins = [len(line) - len(line.lstrip()) for line in filled]
    rest = (margins[1:] if lines and lines[0].strip() else margins) or margins
    if margins and min(rest) > 0:  # what follows the word begins elsewhere than it
        margin = min(rest)
        lines = [line[min(margin, len(line) - len(line.lstrip())) :] for line in lines]
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def examples(name: str) -> list[str]:
    """The code of a name's examples."""
    return [
        textwrap.dedent(part.text).strip()
        for part in parts(docstring(name))
        if part.word == "Example"
    ]


def docstring(name: str) -> str:
    """The docstring of a public name."""
    return getattr(dp, name).__doc__ or ""


def page(name: str) -> str:
    """The page of a public name, in Markdown with code to be run."""
    thing = getattr(dp, name)
    pieces = [f"---\ntitle: dp.{name}\n---", f"# dp.{name}", signature(name)]
    shown = parts(docstring(name))
    for part in shown:
        if part.word == "":
            pieces.append(prose(part.text))
        elif part.word == "Formula":
            pieces += ["## Formula", formula(part.text)]
        elif part.word not in ("Example", "See also"):
            pieces += [f"## {TITLES.get(part.word, part.word)}", prose(part.text)]
    for code in examples(name):
        pieces += ["## Example", f"```python\nimport discreet as dp\n\n{code}\n```"]
    pieces += [*_members(thing), *_answer(thing)]
    for part in shown:
        if part.word == "See also":
            pieces += ["## See also", prose(part.text)]
    place = inspect.getsourcefile(thing)
    if place and "discreet/" in place:
        path = "src/discreet/" + place.split("src/discreet/")[1]
        pieces.append(f"Written in `{path}`.\n{{ .provenance }}")
    return "\n\n".join(pieces) + "\n"


def signature(name: str) -> str:
    """How a name is called, a parameter a line where it is long."""
    thing = getattr(dp, name)
    try:
        asked = inspect.signature(thing)
    except ValueError:
        return f"```python-signature\ndp.{name}\n```"
    texts, bare = [], False
    for parameter in asked.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not bare:
            texts.append("*")
            bare = True
        bare = bare or parameter.kind is parameter.VAR_POSITIONAL
        texts.append(_plain(str(parameter)))
    back = asked.return_annotation
    said = "" if back in (inspect.Signature.empty, "None", None) else f" -> {_plain(str(back))}"
    if inspect.isclass(thing):
        said = ""
    line = f"dp.{name}({', '.join(texts)}){said}"
    if len(line) > WIDE:
        inside = "\n".join(f"    {text}," for text in texts)
        line = f"dp.{name}(\n{inside}\n){said}"
    return f"``` {{ .python .signature }}\n{line}\n```"


def _plain(text: str) -> str:
    """An annotation without the quotes that postpone it."""
    return re.sub(r"(: |-> |^)'([^']*)'", r"\1\2", text)


def formula(text: str) -> str:
    """A formula and, below it, what its letters mean."""
    written, _, legend = text.partition("\n\n")
    shown = f"``` {{ .text .formula }}\n{textwrap.dedent(written)}\n```"
    return f"{shown}\n\n{prose(textwrap.dedent(legend))}".rstrip()


def prose(text: str) -> str:
    """A docstring's paragraphs in Markdown: lists of words with their meaning become lists,
    formulas keep their lines, citations become links.
    """
    return "\n\n".join(_paragraph(one) for one in re.split(r"\n[ ]*\n", text) if one.strip())


def _paragraph(text: str) -> str:
    lines = text.splitlines()
    if all(line.startswith("    ") for line in lines):
        return "``` { .text .formula }\n" + textwrap.dedent(text) + "\n```"
    if lines[0].lstrip().startswith("|"):
        return _table(lines)
    if DEFINED.match(lines[0]) and not lines[0].startswith(("-", "*")):
        return cited("\n".join(_definitions(lines)))
    return cited("\n".join(line.strip() if not line.startswith("- ") else line for line in lines))


def _definitions(lines: list[str]) -> Iterator[str]:
    for line in lines:
        match = DEFINED.match(line)
        if match:
            yield f"- `{match[1].strip()}`: {match[2]}"
        else:
            yield f"  {line.strip()}"


def _table(lines: list[str]) -> str:
    """A table drawn with bars whose cells may go on in the next line."""
    rows: list[list[str]] = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if rows and len(rows) > 2 and cells[-1].strip("-") != "" and line[2:3] == " ":
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def cited(text: str) -> str:
    """Citations of the mathematics and of pages lead there."""
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    text = ENTRY.sub(
        lambda match: (
            f"[{match[1]}{match[2]}](../theory/reference.md#{mathematics.anchors()[match[1]]})"
        ),
        text,
    )
    return re.sub(r"(?<!\]\()(?<![\[`\w/])docs/((?:[\w-]+/)?[\w-]+\.md)", r"[docs/\1](../\1)", text)


def _to_entry(match: re.Match[str]) -> str:
    anchor = mathematics.anchors()[match[1]]
    return f"[{match[1]}{match[2]}](../theory/reference.md#{anchor})"


def _members(thing: Any) -> list[str]:
    """What an object of a class has, with the first sentence of each."""
    if not inspect.isclass(thing) or issubclass(thing, BaseException):
        return []
    rows = [*_rows(thing)]
    return ["## What it has", *rows] if rows else []


def _answer(thing: Any) -> list[str]:
    """What a function gives back, where that is a class of the library."""
    if inspect.isclass(thing):
        return []
    try:
        back = typing.get_type_hints(inspect.unwrap(thing)).get("return")
    except (NameError, TypeError):
        return []
    classes = [
        one
        for one in (typing.get_args(back) or (back,))
        if inspect.isclass(one) and one.__module__.startswith("discreet.")
    ]
    pieces = []
    for one in classes:
        pieces += [f"## What comes back: `{one.__name__}`"]
        said = parts(one.__doc__ or "")[0].text
        if said and not said.startswith(f"{one.__name__}("):
            pieces.append(prose(said))
        for part in parts(one.__doc__ or ""):
            if part.word in ("Formula", "Method", "Validity"):
                pieces.append(f"**{TITLES.get(part.word, part.word)}.** {prose(part.text)}")
        pieces += _rows(one)
    return pieces


def _rows(thing: type) -> list[str]:
    """A table of the public fields, properties and methods of a class."""
    fields = [one.name for one in dataclasses.fields(thing)] if _is_dataclass(thing) else []
    rows = []
    for name in sorted({*dir(thing), *fields}):
        if name.startswith("_"):
            continue
        member = inspect.getattr_static(thing, name, None)
        said = ""
        if not isinstance(member, (int, float, str, tuple)) and member is not None:
            said = inspect.getdoc(getattr(thing, name, None)) or ""
        call = "()" if callable(getattr(thing, name, None)) else ""
        first = re.split(r"(?<=[.:;])\s", " ".join(parts(said)[0].text.split()))[0]
        if name in fields and (not said or "member_descriptor" in type(member).__name__):
            first = ""
        rows.append(f"| `{name}{call}` | {cited(first).rstrip(';:').replace('|', chr(92) + '|')} |")
    if not rows:
        return []
    return ["| name | what it is |\n| :-- | :-- |\n" + "\n".join(rows)]


def _is_dataclass(thing: type) -> bool:
    return dataclasses.is_dataclass(thing)


def overview() -> str:
    """The page of all public names by what they are for."""
    pieces = [
        "# Reference",
        "Every public name. A page says how it is called, what one gets, by which formula, when it "
        "holds and what it costs, with an example and what that prints. The examples run when the "
        "site is built, with noise from a seed; your own answers will differ.",
    ]
    for title, names in GROUPS.items():
        rows = "\n".join(f"| `dp.{name}` | {first_sentence(name)} |" for name in names)
        pieces += [f"## {title}", f"| name | gives |\n| :-- | :-- |\n{rows}"]
    return "\n\n".join(pieces) + "\n"


def first_sentence(name: str) -> str:
    """What one gets, in a sentence."""
    text = " ".join(parts(docstring(name))[0].text.split("\n\n")[0].split())
    first = re.split(r"(?<=[.:;])\s", text)[0].rstrip(":;")
    return cited(first).replace("|", "\\|")


def checked_groups() -> None:
    """Every public name is in one group."""
    grouped = [name for names in GROUPS.values() for name in names]
    lost = {*dp.__all__} ^ {*grouped}
    if lost or len(grouped) != len(set(grouped)):
        raise NoPage(f"tools/site/groups.py and dp.__all__ differ in {sorted(lost)}")
