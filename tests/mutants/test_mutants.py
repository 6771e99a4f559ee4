"""Every mutant still applies, and names tests that are there; `run.py` runs them."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest
from run import ROOT, Mutant, mutants

MUTANTS = mutants()


def named(mutant: Mutant) -> str:
    return f"{mutant.room}/{mutant.name}"


@functools.cache
def names_in(path: Path) -> set[str]:
    return {getattr(node, "name", "") for node in ast.parse(path.read_text()).body}


def is_there(test: str) -> bool:
    path, _, function = test.partition("::")
    return (ROOT / path).exists() and (not function or function in names_in(ROOT / path))


def missing_tests(mutant: Mutant) -> list[str]:
    """The tests of a mutant that are not in the repository."""
    return [test for test in mutant.tests if not is_there(test)]


@pytest.mark.parametrize("mutant", MUTANTS, ids=named)
def test_a_mutant_applies_and_its_tests_are_there(mutant: Mutant) -> None:
    assert mutant.place(ROOT).is_file()
    assert mutant.new != mutant.old
    assert mutant.breaks
    assert mutant.tests
    assert not missing_tests(mutant)


def test_there_are_mutants_of_every_room_with_names_of_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40
    rooms = {"noise", "ledger", "losses", "sensitivity", "engines", "session", "extensions"}
    rooms |= {"aggregation", "cluster", "core", "scale", "tree"}
    assert {mutant.room for mutant in MUTANTS} == rooms


def test_a_mutant_that_no_longer_applies_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "discreet"
    folder.mkdir(parents=True)
    gone = Mutant("noise", "gone", "src/discreet/a.py", "x = 1", "x = 2", "x", ("tests/none.py",))
    with pytest.raises(LookupError, match="0 times"):
        gone.place(tmp_path)
    (folder / "b.py").write_text("x = 1\nx = 1\n")
    with pytest.raises(LookupError, match="2 times"):
        gone.place(tmp_path)
    (folder / "b.py").write_text("x = 1\n")
    gone.apply(tmp_path)
    assert (folder / "b.py").read_text() == "x = 2\n"
    assert missing_tests(gone) == ["tests/none.py"]
