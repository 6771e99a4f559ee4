"""The house stays one that a reader finds the way in: few doors, small folders, no knots."""

from __future__ import annotations

import pytest
from code_lines import code_lines
from measures import (
    SOURCE,
    House,
    import_knots,
    long_lines,
    measured,
    modules_by_folder,
    written_lines,
)
from test_citations import missing_citations

MOST_FLAT, MOST_IN_A_FOLDER, MOST_HOPS, LEAST_LINES, MOST_LINES = 9, 16, 400, 40, 600

# modules that may be shorter: the doors of a layer, each read on its own
INTERFACES = {
    "__main__": "python -m discreet",
    "client": "the door of what ships in an app",
    "accounting/pld": "the documented names of loss distributions",
    "trusted/engines/files": "the engine over files, whose source is in another room",
    "trusted/later": "the way from the core's tables to an extension",
    "trusted/noise/assignment": "the one draw that a question to an engine needs",
    "trusted/extensions/*/draw": "how an extension draws",
    "trusted/extensions/*/loss": "what an extension costs",
    "trusted/learning/*/loss": "what a learner costs",
    "trusted/aggregation/*/loss": "what an aggregate costs",
}


@pytest.fixture(scope="module")
def house() -> House:
    return measured()


def test_few_modules_lie_flat() -> None:
    flat = modules_by_folder()[""]
    assert len(flat) <= MOST_FLAT, flat


def test_folders_are_small() -> None:
    large = {
        folder: len(names)
        for folder, names in modules_by_folder().items()
        if len(names) > MOST_IN_A_FOLDER
    }
    assert not large


@pytest.mark.slow
def test_there_are_no_knots() -> None:
    assert not import_knots()


def test_lines_are_short() -> None:
    assert not long_lines()


def test_modules_are_one_idea_long() -> None:
    """Tests and benchmarks too: what is longer is split by idea."""
    long = {path: len(lines) for path, lines in written_lines().items() if len(lines) > MOST_LINES}
    assert not long


def test_every_citation_names_something() -> None:
    assert not missing_citations()


@pytest.mark.slow
def test_a_question_goes_through_few_files(house: House) -> None:
    assert house.hops_mean <= MOST_HOPS
    assert house.hops_robust > house.hops_mean


def test_no_module_of_the_library_looks_like_a_test() -> None:
    assert not [
        f"{folder}/{name}"
        for folder, names in modules_by_folder().items()
        for name in names
        if name.startswith("test_")
    ]


def is_interface(name: str) -> bool:
    parts = name.split("/")
    return any(
        len(parts) == len(pattern)
        and all(a in (b, "*") for a, b in zip(pattern, parts, strict=True))
        for pattern in (interface.split("/") for interface in INTERFACES)
    )


def test_no_module_is_a_paragraph_of_its_neighbour() -> None:
    short = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE).with_suffix(""))
        if path.stem != "__init__" and not is_interface(name):
            lines = len(path.read_text().splitlines())
            if lines < LEAST_LINES:
                short.append(f"{name}: {lines}")
    assert not short


def test_interfaces_are_there() -> None:
    names = [str(path.relative_to(SOURCE).with_suffix("")) for path in sorted(SOURCE.rglob("*.py"))]
    assert all(
        any(is_interface(name) and name.endswith(listed.rpartition("*")[2]) for name in names)
        for listed in INTERFACES
    )


def test_the_counter_counts_code_alone() -> None:
    text = """'A module.'

# why
x = (
    1,
)


def f():
    'What.'
    return x
"""
    assert code_lines(text) == 5


@pytest.mark.slow
def test_the_house_is_measured(house: House) -> None:
    assert house.core_lines > house.extension_lines > 0
