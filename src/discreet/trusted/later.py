"""What is loaded only where it is used: the one way from the core's tables to an extension.

A table of the core names the place of an extension's function as text; the import table's check
reads these texts as it reads imports (tests/architecture/test_imports.py).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def later(module: str, name: str) -> Callable[..., Any]:
    """The function of that name in that module, which is loaded at its first call."""

    def called(*given: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*given)

    return called
