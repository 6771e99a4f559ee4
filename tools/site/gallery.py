"""Every picture that the library draws, with the code that makes it."""

from __future__ import annotations


def pages() -> dict[str, str]:
    """The pages of the gallery by name."""
    return {"index": "# Gallery\n"}
