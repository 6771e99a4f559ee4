"""Stored values are what their definitions give, stand where they are said to stand, and all long
numbers of the accounting and reference tests have a definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reference.make_values import VALUES, differences
from tests.reference.stored import ROOT, Stored, stored

LONG = re.compile(r"\d+\.\d{9,}(?:e-?\d+)?")
RATE = 0.004266666666666667  # 256 of 60 000 rows: given, not computed
TESTS = ROOT / "tests"


def files_with_values() -> Iterator[Path]:
    yield from sorted((TESTS / "accounting").glob("*.py"))
    yield from sorted((TESTS / "reference").glob("test_*.py"))
    yield TESTS / "reference" / "values.py"
    yield TESTS / "claims" / "test_noise_law.py"
    yield TESTS / "claims" / "test_local_reports.py"


@pytest.mark.slow
@pytest.mark.parametrize("one", VALUES, ids=[f"{k} {one.name}" for k, one in enumerate(VALUES)])
def test_a_stored_value_is_what_its_definition_gives(one: Stored) -> None:
    assert differences(one, one.again()) == []


def test_every_stored_value_stands_in_its_files() -> None:
    assert [(one.name, one.missing()) for one in VALUES if one.missing()] == []


def test_every_long_number_has_a_definition() -> None:
    unknown = []
    for path in files_with_values():
        name = str(path.relative_to(ROOT))
        known = {abs(one.value) for one in VALUES if name in one.files} | {RATE}
        found = map(float, LONG.findall(path.read_text()))
        unknown += [f"{name}: {number!r}" for number in found if number not in known]
    assert unknown == []


def test_a_wrong_value_is_found() -> None:
    assert differences(stored(1.5, "tests/reference/values.py", float, "1.4"), 1.4) != []
    assert not stored(0.25, "tests/reference/values.py", float, "0.25").agrees(0.25 * (1 + 1e-12))


def test_no_definition_imports_the_library() -> None:
    for path in (TESTS / "reference").glob("*.py"):
        if not path.name.startswith("test_"):
            assert not re.search(r"^\s*(from|import) discreet", path.read_text(), re.MULTILINE)
