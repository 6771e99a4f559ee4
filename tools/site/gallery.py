"""Every picture that the library draws, with the code that makes it: the pages of docs/gallery, and
an index of all their pictures. A section of such a page makes one picture.
"""

from __future__ import annotations

import re
from pathlib import Path

from markdown.extensions.toc import slugify

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "gallery"
# in the order of the menu
ORDER = ("before", "numbers", "distributions", "groups", "models", "choices", "synthetic",
         "guarantees")  # fmt: skip
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def pages() -> dict[str, str]:
    """The pages of the gallery by name, the index first."""
    texts = {name: (FOLDER / f"{name}.md").read_text(encoding="utf-8") for name in ORDER}
    return {"index": _index(texts)} | texts


def _index(texts: dict[str, str]) -> str:
    pieces = [
        "# Gallery",
        "Every picture that the library draws. Each leads to the code that made it, when this page "
        "was built.",
    ]
    for name, text in texts.items():
        title = text.splitlines()[0].removeprefix("# ")
        cards = "\n".join(
            _card(name, heading, place) for place, heading in enumerate(SECTION.findall(text), 1)
        )
        pieces += [f"## {title}", f'<div class="cards" markdown>\n\n{cards}\n</div>']
    return "\n\n".join(pieces) + "\n"


def _card(name: str, heading: str, place: int) -> str:
    anchor = slugify(heading, "-")
    picture = f"![]({name}-{place}.png){{ loading=lazy .drawn }}"
    return (
        f"<div markdown>\n\n[{heading}]({name}.md#{anchor})\n\n"
        f"[{picture.replace('![]', f'![{heading}]')}]({name}.md#{anchor})\n\n</div>\n"
    )
