"""Code of other libraries beside ours: docs/coming-from/peers/NAME.py, and NAME.json with what it
printed where that library is installed. The build shows it and does not run it; `record_peer.py`
does.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "coming-from" / "peers"
FIELDS = ("command", "date", "python", "packages", "sha256", "output")


class StaleRecording(RuntimeError):
    """What a peer printed was recorded from another text of its file."""


def recorded(name: str) -> dict[str, Any] | None:
    """What a peer's file printed, or None where it was never run."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    lost = [field for field in FIELDS if field not in found]
    if lost:
        raise StaleRecording(f"{path.name} lacks {', '.join(lost)}: record it again")
    if found["sha256"] != digest(name):
        raise StaleRecording(f"{name}.py was changed after it was recorded: record it again")
    return found


def digest(name: str) -> str:
    """The hash of a peer's file."""
    return hashlib.sha256((FOLDER / f"{name}.py").read_bytes()).hexdigest()


def shown(name: str) -> str:
    """Code and recorded output, in Markdown. The fence says py, so that nothing here runs it."""
    code = (FOLDER / f"{name}.py").read_text(encoding="utf-8").strip()
    text = f"```py\n{code}\n```\n"
    found = recorded(name)
    if found is None:
        return text + "\nNot run here: it does not install beside the project.\n{ .provenance }\n"
    packages = ", ".join(f"{key} {value}" for key, value in found["packages"].items())
    if found["output"]:
        text += f"\n``` {{ .text .output }}\n{found['output']}\n```\n"
    return text + f"\nRecorded {found['date']} with {packages}.\n{{ .provenance }}\n"
