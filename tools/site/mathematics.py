"""The entries of docs/theory/reference.md: where each stands on its page."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from markdown.extensions.toc import slugify

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "theory" / "reference.md"


@functools.cache
def anchors() -> dict[str, str]:
    """The anchor of every entry: "B6" is "b6-the-exponential-mechanism"."""
    text = PAGE.read_text(encoding="utf-8")
    return {
        title.split()[0]: slugify(re.sub(r"[`*]", "", title), "-")
        for title in re.findall(r"^### (.+)$", text, flags=re.MULTILINE)
    }
