"""Code of other libraries beside ours: docs/coming-from/peers/with_NAME.py (or .R), in sections,
and with_NAME.json with what each printed where that library is installed. The build shows it and
does not run it; `record_peer.py` does.

A section begins with a line `# == mean: A mean with an interval`; the first, `# == setup`, has what
the others need. The page docs/coming-from/index.md has a section of each name with our code, which
the build runs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.site.execution import Output, blocks

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "coming-from" / "peers"
OURS = "docs/coming-from/index.md"
FIELDS = ("command", "date", "language", "packages", "sha256", "outputs")
SECTION = re.compile(r"^# == (\w+)(?:: (.+))?\n", re.MULTILINE)
MARK = re.compile(r"<!-- task: (\w+) -->")


class StaleRecording(RuntimeError):
    """What a peer printed was recorded from another text of its file, or lacks a section."""


@dataclass(frozen=True, slots=True)
class Section:
    """A task in a peer's file: its title and code."""

    title: str
    code: str


def file_of(name: str) -> Path:
    """The file of a peer."""
    found = [path for path in FOLDER.glob(f"with_{name}.*") if path.suffix in (".py", ".R")]
    if len(found) != 1:
        raise StaleRecording(f"docs/coming-from/peers has no file with_{name}")
    return found[0]


def sections(name: str) -> dict[str, Section]:
    """The sections of a peer's file by their names."""
    parts = SECTION.split(file_of(name).read_text(encoding="utf-8"))[1:]
    return {
        task: Section(title or "", code.strip())
        for task, title, code in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


def recorded(name: str) -> dict[str, Any] | None:
    """What a peer's sections printed, as it was recorded last; None where it never ran."""
    path = FOLDER / f"with_{name}.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    lost = [field for field in FIELDS if field not in found]
    if lost or found["sha256"] != hashlib.sha256(file_of(name).read_bytes()).hexdigest():
        raise StaleRecording(f"with_{name} was changed after it was recorded: record it again")
    return found


def shown(name: str, ours: dict[str, tuple[str, str]]) -> str:
    """The tasks, a peer's column beside ours, in Markdown. Fences say py, so that nothing runs
    them here; `ours` has code and output by task.
    """
    found, pieces = recorded(name), []
    if found is None:
        pieces.append("The left column was not run here.\n{ .provenance }")
    else:
        packages = ", ".join(f"{key} {value}" for key, value in found["packages"].items())
        pieces.append(
            f"The left column was recorded on {found['date']} by {found['language']} with "
            f"{packages} (`{found['command']}`); the right one runs when this page is built.\n"
            "{ .provenance }"
        )
    language = "py" if file_of(name).suffix == ".py" else "r"
    for task, section in sections(name).items():
        theirs = _column(section.code, found["outputs"][task] if found else "", language)
        code, output = ours[task]
        pieces.append(
            f"## {section.title or 'Before anything'} {{ #{task} }}\n\n"
            f'<div class="columns" markdown>\n<div markdown>\n\n{theirs}\n\n</div>\n'
            f"<div markdown>\n\n{_column(code, output, 'py')}\n\n</div>\n</div>"
        )
    return "\n\n".join(pieces)


def _column(code: str, output: str, language: str) -> str:
    said = [line for line in code.splitlines() if not line.startswith("# ")]
    if not any(said):  # words alone: what that library does not have
        return " ".join(line.removeprefix("# ") for line in code.splitlines())
    text = f"```{language}\n{code}\n```"
    return text + (f"\n\n``` {{ .text .output }}\n{output}\n```" if output else "")


def ours(page: str, outputs: Sequence[Output]) -> dict[str, tuple[str, str]]:
    """Our code and what it printed, by task: each block stands below its mark."""
    ran = [block for block in blocks(page) if block.wanted]
    marks = [(match.start(), match[1]) for match in MARK.finditer(page)]
    found = {}
    for block, output in zip(ran, outputs, strict=True):
        task = [name for place, name in marks if place < block.end][-1]
        found[task] = (block.code, output.text)
    return found
