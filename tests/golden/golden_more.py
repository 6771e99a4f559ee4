"""Golden cases beside single questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def cases() -> Iterator[tuple[str, Any]]:
    yield from ()
