"""Numbers that say how easily the library can be read; `benchmarks/house.py` prints them, and
`test_house.py` holds their limits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from code_lines import trusted_lines
from test_citations import missing_citations
from test_imports import import_graph, knots, modules

import discreet as dp
from discreet.testing import seeded_session

SOURCE = Path(dp.__file__).parent
ROOT = Path(__file__).parents[2]
BESIDE = ("__init__", "__main__")
COLUMNS = 100


@dataclass(frozen=True, slots=True)
class House:
    """What is counted, in the order in which it is printed."""

    core_lines: int
    extension_lines: int
    learning_lines: int
    aggregation_lines: int
    scale_lines: int
    cluster_lines: int
    tree_lines: int
    flat_modules: int
    largest_folder: int
    knots: int
    long_lines: int
    uncited: int
    hops_mean: int
    hops_robust: int


def measured() -> House:
    lines = trusted_lines()
    folders = modules_by_folder()
    return House(
        core_lines=lines["core"],
        extension_lines=lines["extensions"],
        learning_lines=lines["learning"],
        aggregation_lines=lines["aggregation"],
        scale_lines=lines["scale"],
        cluster_lines=lines["cluster"],
        tree_lines=lines["tree"],
        flat_modules=len(folders[""]),
        largest_folder=max(len(names) for folder, names in folders.items() if folder),
        knots=len(import_knots()),
        long_lines=len(long_lines()),
        uncited=len(missing_citations()),
        hops_mean=hops(lambda session: dp.mean(session, "income", spend=dp.GDP(0.5)).summary()),
        hops_robust=hops(lambda session: dp.robust(session, "income ~ age", spend=dp.GDP(1))),
    )


def modules_by_folder() -> dict[str, list[str]]:
    """The modules of each folder of the library, beside `__init__` and `__main__`."""
    found: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        folder = "/".join(path.relative_to(SOURCE).parts[:-1])
        found.setdefault(folder, [])
        if path.stem not in BESIDE:
            found[folder].append(path.stem)
    return found


def import_knots() -> list[list[str]]:
    """Modules that import each other by some detour; lazy imports and packages count."""
    return knots(import_graph({name: path.read_text() for name, path in modules().items()}))


def written_lines() -> dict[str, list[str]]:
    """The lines of every module of the project."""
    return {
        str(path.relative_to(ROOT)): path.read_text().splitlines()
        for folder in ("src", "tests", "benchmarks", "tools")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def long_lines() -> list[str]:
    """Places of lines of more than 100 columns."""
    return [
        f"{path}:{number}"
        for path, lines in written_lines().items()
        for number, line in enumerate(lines, start=1)
        if len(line) > COLUMNS
    ]


def hops(ask: Callable[[Any], object]) -> int:
    """How many calls of one question go from one file of the library to another.

    The first time it is asked loads what is loaded once, and is not counted.
    """
    rng = np.random.default_rng(1)
    data = dp.from_arrays(
        {"income": rng.uniform(0, 100, 1000), "age": rng.uniform(18, 90, 1000)},
        schema={"income": dp.Real(0, 100), "age": dp.Real(18, 90)},
        neighbors=dp.Replace(),
    )
    counted, inside = 0, str(SOURCE)
    ask(seeded_session(data, dp.GDP(10), seed=1))
    session = seeded_session(data, dp.GDP(10), seed=1)

    def called(frame: FrameType, event: str, _: object) -> None:
        nonlocal counted
        if event == "call" and frame.f_back is not None:
            here, there = frame.f_back.f_code.co_filename, frame.f_code.co_filename
            counted += here != there and here.startswith(inside) and there.startswith(inside)

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        ask(session)
    finally:
        sys.setprofile(before)
    return counted
