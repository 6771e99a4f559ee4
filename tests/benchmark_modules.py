"""A benchmark as a module: what it imports from its own folder is found there, in any order of
tests (a folder of recorded answers is called `stored` too).
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def benchmark(name: str) -> ModuleType:
    """The benchmark of that name, loaded anew."""
    told = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert told is not None
    assert told.loader is not None
    module = importlib.util.module_from_spec(told)
    sys.modules[name] = module  # its dataclasses look it up
    before = sys.path[:]
    if getattr(sys.modules.get("stored"), "__file__", None) is None:
        sys.modules.pop("stored", None)
    sys.path[:0] = [str(BENCHMARKS)]
    try:
        told.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module
