"""What results print, as tests read it."""

from __future__ import annotations


def unwrapped(printed: object) -> str:
    """A result's text on one line: where its lines break says nothing."""
    return " ".join(str(printed).split())
